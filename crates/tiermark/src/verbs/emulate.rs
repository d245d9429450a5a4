//! `tiermark emulate`: a profile as a block device that every program can use, with its faults.

use crate::cli::{EmulateArgs, EmulateVerb};
use crate::context::{self, Context};
use crate::exit::Missing;
use crate::out;
use anyhow::Result;
use basics::units::significant;
use profile::Profile;
use rustix::fs::{Mode, OFlags};
use serde_json::json;
use slowdisk::{Asked, Client, Description, Emulator, Fault, Figures, Options, Registry, Seen, SlowdiskError};
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

const SCHEMA: &str = "tiermark.emulate/1";

/// Starts a disk, or asks or tells one that runs.
pub fn emulate(context: &Context, args: &EmulateArgs) -> Result<ExitCode> {
    let registry = || anyhow::Ok(Registry::open(&folder(context)?)?);
    match &args.action {
        Some(EmulateVerb::List) => list(context, &registry()?),
        Some(EmulateVerb::Show { name }) => show(context, &registry()?, name),
        Some(EmulateVerb::Stop { name }) => stop(context, &registry()?, name),
        Some(EmulateVerb::Fault { name, faults }) => fault(context, &registry()?, name, faults),
        Some(EmulateVerb::Ask { asked }) => ask(asked),
        None if args.detach => detach(context),
        None => start(context, &registry()?, args),
    }
}

/// Where running disks have their folders: in memory where there is such a place for this user, beside the database if not.
fn folder(context: &Context) -> Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    match runtime {
        Some(runtime) => Ok(runtime.join("tiermark/emulate")),
        None => Ok(context.journal_folder()?.with_file_name("emulate")),
    }
}

fn options(args: &EmulateArgs) -> Result<Options> {
    let profile = methods::profile_named(args.profile.as_deref().unwrap_or_default())?;
    let faults = args.fault.iter().map(|spec| spec.parse::<Fault>()).collect::<Result<_, _>>()?;
    let size = args
        .size
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: basics::units::UnitError| SlowdiskError::Usage(format!("--size: {error}")))?;
    let backing = args.backing.clone().filter(|backing| backing.as_os_str() != "ram");
    let (at, name) = (args.at.clone(), args.name.clone());
    Ok(Options {
        profile,
        size,
        backing,
        at,
        name,
        seed: args.seed,
        sector: args.sector,
        own_session: args.detached,
        faults,
    })
}

fn start(context: &Context, registry: &Registry, args: &EmulateArgs) -> Result<ExitCode> {
    let options = options(args)?;
    if args.detached {
        // No terminal's signals reach it from now on.
        let _ = rustix::process::setsid();
    }
    // Caught from the beginning: whatever is made is undone.
    let interrupted = if args.detached { context::told_to_end()? } else { context::interrupted()? };
    let (store, journal) = context.open()?;
    drop(store);
    let emulator = Emulator::start(&options, registry, &journal, &by_a_process)?;
    let description = emulator.description();
    if context.json || args.detached {
        out::print_line(&document(description))?;
    } else {
        out::print(&introduction(description, &options.profile))?;
    }
    if args.detached {
        forget_output();
    }
    let live = std::io::stderr().is_terminal() && !context.json && !args.detached;
    let mut before = Figures::default();
    let account = |figures: &Figures| {
        if live {
            out::live(&figures.line(&before));
            before = figures.clone();
        }
    };
    let refused = |why: &str| out::say(why);
    let served = emulator.serve(&interrupted, account, refused);
    let figures = emulator.figures();
    let stopped = emulator.stop();
    if live {
        out::live("");
    }
    served?;
    stopped?;
    if !context.json && !args.detached {
        out::print(&account_of(&figures))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Uses the device that standard input is, and prints what was seen of it.
fn ask(asked: &str) -> Result<ExitCode> {
    let asked: Asked = serde_json::from_str(asked).map_err(|error| SlowdiskError::Usage(error.to_string()))?;
    let device = std::io::stdin().as_fd().try_clone_to_owned()?;
    out::print_json(&serde_json::to_value(asked.run(&device.into())?)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Has this program do that in another process. That makes a session of its own, which must not be barred by leading a group
/// already: in the emulator's session it would be as far ahead of other programs as that.
fn by_a_process(asked: &Asked, device: File) -> Result<Seen, SlowdiskError> {
    let failed =
        |error: &dyn std::fmt::Display| SlowdiskError::Told(format!("the emulated disk cannot be measured: {error}"));
    let asked = serde_json::to_string(asked).map_err(|error| failed(&error))?;
    let start = |program| {
        let mut command = Command::new(program);
        command.args(["emulate", "ask", &asked]).stdin(Stdio::from(device));
        // It holds the device open: without the emulator it would be in the way of who clears up.
        sys::child::dies_with_us(&mut command, rustix::process::Signal::KILL).output()
    };
    let output = std::env::current_exe().and_then(start).map_err(|error| failed(&error))?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        match said.trim().strip_prefix("tiermark: ") {
            Some(sentence) if !output.status.success() => SlowdiskError::Told(sentence.to_owned()),
            _ => failed(&format!("{} {}", output.status, said.trim())),
        }
    })
}

/// Whoever started it has gone, and with it the pipes.
fn forget_output() {
    if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Starts the same again in the background and waits until it is ready.
fn detach(context: &Context) -> Result<ExitCode> {
    let program = std::env::current_exe().map_err(|error| Missing(format!("this program cannot be found: {error}")))?;
    let words = std::env::args_os().skip(1).filter(|word| word != "--detach");
    let mut child = Command::new(program)
        .args(words)
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    let Ok(document) = serde_json::from_str::<serde_json::Value>(&line) else {
        let status = child.wait()?;
        let mut said = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            stderr.read_to_string(&mut said)?;
        }
        said.lines().for_each(|line| out::say(line.strip_prefix("tiermark: ").unwrap_or(line)));
        let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
        return Ok(ExitCode::from(code.unwrap_or(1)));
    };
    if context.json {
        out::print_json(&document)?;
    } else {
        let word = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
        out::print(&format!("{}  (tiermark emulate stop {})", word("device"), word("name")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn introduction(description: &Description, profile: &Profile) -> String {
    let Description { name, device, floor_us, most, .. } = description;
    let known = |figure: Option<f64>| figure.map_or_else(|| "unknown".to_owned(), significant);
    let mut text = format!(
        "{}\n{name}: {}, held in {}; Ctrl-C or `tiermark emulate stop {name}` ends it\n\
         a request takes {} µs at least here; at most {} reads and {} writes a second are carried, or {} and {} MB/s",
        device.display(),
        description.size(),
        description.backing,
        significant(*floor_us),
        known(most.read_iops),
        known(most.write_iops),
        known(most.read_mbps),
        known(most.write_mbps),
    );
    for read in [true, false] {
        if let Err(error) = profile.direction(read) {
            text += &format!("\n{error}; here it is as fast as this machine allows");
        }
    }
    text
}

fn account_of(figures: &Figures) -> String {
    format!(
        "{} reads, {} writes, {} flushes; floor reached in {} % of the requests, late in {} %",
        figures.reads,
        figures.writes,
        figures.flushes,
        percent(figures.floor_reached, figures),
        percent(figures.late, figures),
    )
}

fn percent(part: u64, figures: &Figures) -> String {
    let all = figures.transfers() + figures.flushes;
    significant(100.0 * part as f64 / all.max(1) as f64)
}

fn document(description: &Description) -> serde_json::Value {
    json!({
        "schema": SCHEMA,
        "name": description.name,
        "profile": description.profile,
        "device": description.device,
        "size_B": description.size,
        "floor_us": description.floor_us,
        "most": description.most,
        "backing": description.backing,
        "pid": description.owner.pid,
    })
}

fn list(context: &Context, registry: &Registry) -> Result<ExitCode> {
    let running = registry.running()?;
    if context.json {
        let disks: Vec<_> = running.iter().map(|(description, _)| document(description)).collect();
        out::print_json(&json!({ "schema": "tiermark.emulated/1", "disks": disks }))?;
    } else if running.is_empty() {
        out::print("no emulated disk runs; `tiermark emulate PROFILE` makes one")?;
    } else {
        let line = |(d, _): &(Description, PathBuf)| {
            let size = d.size().to_string();
            format!("{:<20} {:<12} {size:>9}  {}  held in {}", d.name, d.device.display(), d.profile, d.backing)
        };
        out::print(&running.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(context: &Context, registry: &Registry, name: &str) -> Result<ExitCode> {
    let (description, folder) = registry.find(name)?;
    let figures = Client::new(&description, &folder).figures()?;
    if context.json {
        let mut document = document(&description);
        document["figures"] = serde_json::to_value(&figures)?;
        out::print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!(
        "{name}: {} ({}), {}{}\n{}\n{}\
         the way costs a read {} µs and a write {} µs, which is taken off; answers left late by {} µs (p50), {} µs (p99), {} µs at most\n\
         {} µs of CPU a request; holds {}, of which a power cut would put {} at risk",
        description.device.display(),
        description.profile,
        description.size(),
        if figures.online { "" } else { ", OFF" },
        account_of(&figures),
        means(&figures),
        significant(figures.way_read_us),
        significant(figures.way_write_us),
        significant(figures.late_p50_us),
        significant(figures.late_p99_us),
        significant(figures.late_max_us),
        significant(figures.cpu_us_per_request),
        basics::Bytes(figures.taken_bytes),
        basics::Bytes(figures.unflushed_bytes),
    );
    for fault in &figures.faults {
        text += &format!("\nfault {}: struck {} times", fault.fault, fault.struck);
    }
    out::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// How long requests took by the profile, of those that there were.
fn means(figures: &Figures) -> String {
    let sides = [("read", figures.reads, figures.read_mean_us), ("write", figures.writes, figures.write_mean_us)];
    let took = sides.iter().filter(|(_, requests, _)| *requests > 0);
    let took: Vec<String> = took.map(|(side, _, mean)| format!("a {side} {} µs", significant(*mean))).collect();
    if took.is_empty() { String::new() } else { format!("by the profile {} on average\n", took.join(" and ")) }
}

fn stop(context: &Context, registry: &Registry, name: &str) -> Result<ExitCode> {
    let (description, folder) = registry.find(name)?;
    Client::new(&description, &folder).stop()?;
    if context.json {
        out::print_json(&json!({ "schema": SCHEMA, "name": name, "stopped": true }))?;
    } else {
        out::print(&format!("{name} is gone"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn fault(context: &Context, registry: &Registry, name: &str, faults: &[String]) -> Result<ExitCode> {
    // A mistake is told here, with its own exit status.
    faults.iter().try_for_each(|spec| spec.parse::<Fault>().map(drop))?;
    let (description, folder) = registry.find(name)?;
    let client = Client::new(&description, &folder);
    client.fault(faults)?;
    if context.json {
        let figures = client.figures()?;
        out::print_json(
            &json!({ "schema": SCHEMA, "name": name, "online": figures.online, "faults": figures.faults }),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
