//! `tiermark move`: the system, copied to another disk and started from there.

use super::load::parsed;
use super::settings::agreed;
use crate::cli::{BootPlace, MoveArgs, RootFs, TableStyle, When};
use crate::context::{self, Context};
use crate::exit::{Missing, Usage};
use crate::out;
use anyhow::Result;
use basics::Bytes;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mover::{BOOT_LEN, Fs, Phase, Progress, Request, Style, TargetWanted, Whence};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Does it, or what comes after it.
pub fn moving(context: &Context, args: &MoveArgs) -> Result<ExitCode> {
    let from = args.from.clone().map_or(Whence::Live, Whence::Image);
    if !rustix::process::geteuid().is_root() {
        return Err(Missing("file systems are made and mounted by root alone; try again with sudo".to_owned()).into());
    }
    let journal = context.open()?.1;
    let run = format!("move-{}", std::process::id());
    if args.undo || args.finish {
        let at = if args.undo { mover::undo(&from, &journal, &run)? } else { mover::finish(&from, &journal, &run)? };
        let what = if args.undo { "the old system starts again" } else { "the new system stays" };
        if context.json {
            out::print_json(&report::json::moved_back(what, &at))?;
        } else {
            out::print(&format!("{what}: {at}\n"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let request = request(args, from)?;
    let planned = mover::plan(&request, &journal, &run)?;
    if !context.json {
        out::show(&report::terminal::move_planned(&planned, &request, &context.style), &context.style)?;
    }
    if args.dry_run {
        if context.json {
            out::print_json(&report::json::move_planned(&planned, &request))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    agreed(args.yes, &request.to.path)?;
    let interrupted = context::interrupted()?;
    let mut bar = Bar::new(args.progress);
    let moved = mover::run(&request, &journal, &run, &mut bar, &interrupted);
    bar.0.finish_and_clear();
    let moved = moved?;
    if context.json {
        out::print_json(&report::json::moved(&moved, &request))?;
    } else {
        out::show(&report::terminal::moved(&moved, &context.style), &context.style)?;
    }
    Ok(if moved.command_line.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was typed.
fn request(args: &MoveArgs, from: Whence) -> Result<Request> {
    let to = args.to.clone().ok_or_else(|| Usage("--to DISK|FILE says where to".to_owned()))?;
    let size =
        |option: &str, text: &Option<String>| text.as_deref().map(|text| parsed::<Bytes>(option, text)).transpose();
    let fs = match args.fs {
        RootFs::Ext4 => Fs::Ext4,
        RootFs::Btrfs => Fs::Btrfs,
    };
    let compress = match (fs, args.compress.as_deref()) {
        (Fs::Ext4, Some(_)) => return Err(Usage("--compress is btrfs's; add --fs btrfs".to_owned()).into()),
        (Fs::Ext4, None) | (_, Some("none")) => None,
        (Fs::Btrfs, None) => Some("zstd:1".to_owned()),
        (Fs::Btrfs, Some(how)) => Some(compression(how)?.to_owned()),
    };
    let boot = (args.boot == BootPlace::Move).then_some(BOOT_LEN);
    let style = match args.table {
        Some(TableStyle::Gpt) => Style::Gpt,
        Some(TableStyle::Mbr) => Style::Mbr,
        // The first boot code of a Raspberry Pi before the 4 reads an MBR alone; the later ones read both.
        None if boot.is_some() => Style::Mbr,
        None => Style::Gpt,
    };
    let swap = size("--swap", &args.swap)?;
    let destroy = args.destroy.as_deref().map(full_name);
    let to =
        TargetWanted { path: full(&to)?, size: size("--size", &args.size)?, destroy, fs, compress, swap, boot, style };
    Ok(Request { from, to })
}

/// As mount(8) takes it (btrfs(5)).
fn compression(how: &str) -> Result<&str, Usage> {
    let (name, level) = how.split_once(':').map_or((how, None), |(name, level)| (name, Some(level)));
    let most = match name {
        "zstd" => 15,
        "zlib" => 9,
        "lzo" => 0,
        _ => return Err(Usage(format!("--compress {how}: btrfs has zstd, lzo and zlib"))),
    };
    match level.map(str::parse::<i32>) {
        None => Ok(how),
        Some(Ok(level)) if (1..=most).contains(&level) => Ok(how),
        _ => Err(Usage(format!(
            "--compress {how}: {name} has {}",
            if most == 0 { "no levels".to_owned() } else { format!("levels 1 to {most}") }
        ))),
    }
}

/// A path whose folder is there, without links; the last part need not be.
fn full(path: &Path) -> Result<PathBuf> {
    if let Ok(path) = std::fs::canonicalize(path) {
        return Ok(path);
    }
    let name = path.file_name().ok_or_else(|| Usage(format!("{} names no file", path.display())))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = std::fs::canonicalize(folder).map_err(|error| Missing(format!("{}: {error}", folder.display())))?;
    Ok(folder.join(name))
}

/// A name that was given in full stays as it is; of a file it may be given as `--to` was.
fn full_name(name: &str) -> String {
    let path = Path::new(name);
    if path.starts_with("/dev") {
        return name.to_owned();
    }
    full(path).ok().and_then(|path| path.to_str().map(str::to_owned)).unwrap_or_else(|| name.to_owned())
}

/// What is being done, how much of it is left.
struct Bar(ProgressBar);

impl Bar {
    fn new(when: When) -> Self {
        let shown = match when {
            When::Auto => std::io::stderr().is_terminal(),
            When::Always | When::Live => true,
            When::Never => false,
        };
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Bar(ProgressBar::with_draw_target(None, target))
    }
}

/// A file costs as much as so many bytes: its entry, its attributes, a seek.
const FILE: u64 = 16 << 10;

impl Progress for Bar {
    fn phase(&mut self, phase: Phase, files: u64, bytes: u64) {
        let what = match phase {
            Phase::Measuring => "looking",
            Phase::Copying => "copying",
            Phase::Verifying => "reading it again",
        };
        let style = ProgressStyle::with_template("{msg:18} {bar:30} {percent:>3} %  {bytes_per_sec}  {eta} left");
        self.0.reset();
        self.0.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.0.set_message(what);
        self.0.set_length(bytes + FILE * files);
    }

    fn went_on(&mut self, files: u64, bytes: u64) {
        self.0.inc(bytes + FILE * files);
    }
}
