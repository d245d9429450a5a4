//! `tiermark check --for desktop`: the desktop article's checks, each a run of its own that can be shown and compared: iozone's matrix, zeros,
//! a compilation; and what stands: what btrfs made of files of each type, zswap's pool, temperature and throttling.

use crate::cli::{CheckArgs, When};
use crate::context::Context;
use crate::exit::Missing;
use crate::verbs::run::execute_one_of;
use crate::{exit, out};
use anyhow::Result;
use basics::desktop::{Building, Compiler};
use basics::pressure::Pressure;
use basics::{Bytes, Known, Nanos, Why};
use machine::{Machine, Root};
use methods::{Request, Settings, Site};
use record::{Origin, Record, State};
use report::{DesktopCheck, Zswapped};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// How long it compiles; with --quick a tenth.
const BUILD: Nanos = Nanos::from_millis(180_000);
/// iozone's file, and that of zeros, with --quick.
const SMALL: &str = "size=16MiB";
/// Files looked at for compression are below these; the first that is there on btrfs.
const LOOKED_AT: [&str; 2] = ["/usr", "/home"];

/// Makes them all.
pub fn check(context: &Context, args: &CheckArgs) -> Result<ExitCode> {
    let dir = match args.within.as_slice() {
        [] => PathBuf::from("/var/tmp"),
        [dir] => dir.clone(),
        _ => return Err(exit::Usage("--for desktop measures in one directory; give one --in".to_owned()).into()),
    };
    let dir = dir.canonicalize().map_err(|error| Missing(format!("--in {}: {error}", dir.display())))?;
    let machine = machine::read_with(&Root::live(), std::slice::from_ref(&dir));
    let size: &[String] = if args.quick { &[SMALL.to_owned()] } else { &[] };
    let iozone = method(context, &machine, "iozone", size, &dir)?;
    let zeros = method(context, &machine, "zeros", size, &dir)?;
    let build = build(context, args.quick)?;
    let before = before(context, &iozone)?;
    let files = files(&machine, &dir, &args.within);
    let all = DesktopCheck { dir, iozone, before, zeros, build, files, zswap: zswap() };
    if context.json {
        out::print_json(&report::json::desktop_check(&all))?;
    } else {
        out::show(&report::terminal::desktop_check(&all, &context.style), &context.style)?;
    }
    let broken = [&all.iozone, &all.zeros, &all.build].into_iter().any(|record| record.run.state != State::Done);
    Ok(if broken { exit::partly() } else { ExitCode::SUCCESS })
}

fn method(context: &Context, machine: &Machine, name: &str, sets: &[String], dir: &Path) -> Result<Record> {
    let method = methods::find(name)?;
    let settings = Settings::parse(method.name(), method.parameters(), sets)?;
    let dir = dir.to_str().ok_or_else(|| Missing(format!("{} is not UTF-8", dir.display())))?;
    let site = Site::named(dir, None, machine, &Root::live())?;
    let request = Request { site: &site, settings: &settings, as_published: false, machine };
    let finished = execute_one_of(context, machine.clone(), method.plan(&request)?, When::Auto)?;
    Ok(context.open_for_reading()?.load(&finished.id)?)
}

/// A real compile, or the mix where there is no compiler.
fn build(context: &Context, quick: bool) -> Result<Record> {
    let (compiler, program) = super::load::compiler(None)?;
    let jobs = std::thread::available_parallelism().map_or(1, |all| all.get() as u32);
    let units = if compiler == Compiler::Mix { 400 } else { 40 };
    let request = workloads::build::Request {
        building: Building { compiler, program, units, jobs },
        pressure: Pressure::default(),
        tiers: Vec::new(),
        time: Some(if quick { Nanos(BUILD.0 / 10) } else { BUILD }),
        builds: None,
        repeat: 1,
        seed: 42,
    };
    let finished = execute_one_of(context, machine::read(&Root::live()), request.plan()?, When::Auto)?;
    Ok(context.open_for_reading()?.load(&finished.id)?)
}

/// iozone's matrix of this machine from before, the newest of another tier, or else the newest.
fn before(context: &Context, now: &Record) -> Result<Option<Record>> {
    let store = context.open_for_reading()?;
    let tier = |record: &Record| record.steps.first().and_then(|step| step.tier.clone());
    let mut newest = None;
    for head in store.runs()?.iter().filter(|head| {
        head.method == "iozone" && head.origin == Origin::Measured && head.state == State::Done && head.id != now.run.id
    }) {
        let record = store.load(&head.id)?;
        if record.run.machine.model != now.run.machine.model {
            continue;
        }
        if tier(&record) != tier(now) {
            return Ok(Some(record));
        }
        newest.get_or_insert(record);
    }
    Ok(newest)
}

/// What compsize says of files on btrfs: of the directory that was given, else of the system's own.
fn files(machine: &Machine, dir: &Path, given: &[PathBuf]) -> Known<quoted::Compsize> {
    let lacks = |why: String| Known::Unknown(Why::NotMeasured(why));
    let on_btrfs = |path: &Path| {
        let mounts = machine.tiers.iter().flat_map(|tier| &tier.mounts).filter(|mount| path.starts_with(&mount.at));
        mounts.max_by_key(|mount| mount.at.components().count()).is_some_and(|mount| mount.fs == "btrfs")
    };
    let places = given.iter().map(|_| dir).chain(LOOKED_AT.iter().map(Path::new)).chain([dir]);
    let Some(place) = places.into_iter().find(|path| on_btrfs(path)) else {
        return lacks("no file system of btrfs there".to_owned());
    };
    // Not beyond its own file system.
    let output = Command::new("compsize").arg("-x").arg(place).stdin(Stdio::null()).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return lacks(format!("compsize: {error}; install btrfs-compsize")),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let figures = quoted::read(&text).ok().and_then(|blocks| {
        blocks.into_iter().find_map(|block| match block.figures {
            quoted::Figures::Compsize(compsize) => Some(compsize),
            _ => None,
        })
    });
    figures.map_or_else(
        || {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("it printed no table").to_owned();
            lacks(format!("compsize {}: {said}", place.display()))
        },
        Known::Is,
    )
}

/// zswap as it stands.
fn zswap() -> Known<Zswapped> {
    const PARAMETERS: &str = "/sys/module/zswap/parameters";
    let lacks = |why: &str| Known::Unknown(Why::NotMeasured(why.to_owned()));
    let read =
        |name: &str| std::fs::read_to_string(format!("{PARAMETERS}/{name}")).ok().map(|text| text.trim().to_owned());
    match read("enabled").as_deref() {
        None => return lacks("this kernel has no zswap"),
        Some("Y" | "1") => {}
        Some(_) => return lacks("it is off"),
    }
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let of = |key: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        Some(Bytes(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? * 1024))
    };
    Known::Is(Zswapped {
        compressor: read("compressor").unwrap_or_default(),
        max_pool_percent: read("max_pool_percent").and_then(|text| text.parse().ok()),
        pool: of("Zswap:"),
        stored: of("Zswapped:"),
    })
}
