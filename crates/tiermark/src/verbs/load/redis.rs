//! `load redis`: what its options ask for, and its run. It takes no memory away, and needs root only for media that are emulated.

use super::parsed;
use crate::cli::{Content, RedisArgs, RedisLink, RedisLose, When};
use crate::context::Context;
use crate::exit::{Missing, Usage};
use crate::progress::Bar;
use crate::verbs::run::{execute, execute_watched};
use crate::{exit, out};
use anyhow::Result;
use basics::job::{Block, Order, Pacing};
use basics::redis::{Link, Lose, Medium, Mode, Secret};
use basics::redis_commands::CommandMix;
use basics::{Bytes, Nanos, Plan};
use clap::ValueEnum;
use exposition::{Live, Server, Watched};
use machine::{Machine, Root};
use runner::Finished;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use study::Learned;
use workloads::redis::Request;

/// Requests of a visit when nobody says how many or how long, as the third article has it.
const OPERATIONS: u64 = 100_000;

/// Does what was typed.
pub fn redis(context: &Context, args: &RedisArgs) -> Result<ExitCode> {
    if args.dashboard {
        out::print_as_it_is(exposition::DASHBOARD)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut args = args.clone();
    if let Some(url) = &args.learn {
        let monitor = args.monitor.as_deref().map(|time| parsed::<Nanos>("--monitor", time)).transpose()?;
        let looked = redisd::look(url, monitor.map(|time| Duration::from_nanos(time.0)))?;
        let learned = study::learned(&looked);
        if args.on.is_empty() {
            if context.json {
                out::print_json(&report::json::learned(&learned))?;
            } else {
                out::show(&report::terminal::learned(&learned, &context.style), &context.style)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        out::beside(&report::terminal::learned(&learned, &context.style));
        args.take(&learned)?;
    }
    let args = &args;
    let metrics = args.metrics.as_deref().map(exposition::address).transpose()?;
    let machine = machine::read(&Root::live());
    let plan = plan(args)?;
    let emulates = args.on.iter().any(|on| !Path::new(on).is_dir());
    if let Some(done) = not_yet(context, &machine, &plan, args.dry_run, emulates)? {
        return Ok(done);
    }
    // A server that is not there is told before there is a run of it.
    if let Some(url) = &args.url {
        redisd::Running::at(url)?.greet()?;
    }
    let finished = match metrics {
        None => execute(context, machine, plan, args.progress)?,
        Some(at) => {
            let live = Live::new();
            // Before anything of the run is begun.
            let shown = live.clone();
            let page = Server::start(at, move |format| shown.page(format))?;
            out::say(&format!("metrics at {}", page.url()));
            let mut bar = Bar::new(context.progress(args.progress));
            execute_watched(context, machine, plan, &mut Watched::new(live, &mut bar))?
        }
    };
    show(context, &finished)
}

/// Says what would be done where that is all that is wanted; and refuses what cannot be.
fn not_yet(
    context: &Context,
    machine: &Machine,
    plan: &Plan,
    dry_run: bool,
    emulates: bool,
) -> Result<Option<ExitCode>> {
    if dry_run {
        runner::may_begin(plan)?;
        if context.json {
            out::print_json(&report::json::plan(plan, machine))?;
        } else {
            out::show(&report::terminal::plan(plan, machine, &context.style), &context.style)?;
        }
        return Ok(Some(ExitCode::SUCCESS));
    }
    if emulates && !rustix::process::geteuid().is_root() {
        let needs = "an emulated disk is made by root alone; try again with sudo, or give a directory with --on";
        return Err(Missing(needs.to_owned()).into());
    }
    Ok(None)
}

fn show(context: &Context, finished: &Finished) -> Result<ExitCode> {
    let record = context.open_for_reading()?.load(&finished.id)?;
    if context.json {
        out::print_json(&report::json::run(&record))?;
    } else {
        out::show(&report::terminal::run(&record, &context.style), &context.style)?;
    }
    Ok(exit::of_run(finished))
}

/// Does a plan whose servers are tiermark's own, or says what would be done.
pub(super) fn carry_out(
    context: &Context,
    plan: Plan,
    dry_run: bool,
    emulates: bool,
    progress: When,
) -> Result<ExitCode> {
    let machine = machine::read(&Root::live());
    if let Some(done) = not_yet(context, &machine, &plan, dry_run, emulates)? {
        return Ok(done);
    }
    show(context, &execute(context, machine, plan, progress)?)
}

impl RedisArgs {
    /// What was learned, where nothing else was said.
    fn take(&mut self, learned: &Learned) -> Result<()> {
        let words = learned.words();
        for pair in words.chunks_exact(2) {
            let (name, value) = (pair[0].as_str(), &pair[1]);
            match name {
                "--payload" if self.payload.is_empty() => self.payload.push(value.clone()),
                "--commands" if self.commands.is_none() && self.reads.is_none() => self.commands = Some(value.clone()),
                "--reads" if self.reads.is_none() && self.commands.is_none() => self.reads = Some(parsed(name, value)?),
                "--keys" if self.keys.is_none() => self.keys = Some(parsed(name, value)?),
                "--theta" if self.theta.is_none() => self.theta = Some(parsed(name, value)?),
                "--expires" if self.expires.is_none() => self.expires = Some(value.clone()),
                "--content" if self.content.is_none() => {
                    self.content = Content::from_str(value, false).ok();
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What is to be done.
pub(super) fn plan(args: &RedisArgs) -> Result<Plan> {
    let program = if args.url.is_some() { PathBuf::new() } else { program(args.server.as_deref())? };
    let (mut modes, mut payloads) = (Vec::new(), Vec::new());
    for mode in &args.mode {
        modes.push(mode.parse::<Mode>().map_err(|why| Usage(format!("--mode {why}")))?);
    }
    for payload in &args.payload {
        payloads.push(lengths(payload)?);
    }
    if args.url.is_some() {
        modes = vec![Mode::AsItRuns];
        if !args.writes && !args.payload.is_empty() {
            return Err(Usage("--payload is of values that are set; say --writes, or leave it away".to_owned()).into());
        }
    } else if modes.is_empty() {
        modes = Mode::PUBLISHED.to_vec();
    }
    if payloads.is_empty() && args.url.is_some() {
        payloads.push(Block::Fixed(Bytes(if args.writes { 512 } else { 1 })));
    } else if payloads.is_empty() {
        payloads = [64, 512, 4096].map(|size| Block::Fixed(Bytes(size))).to_vec();
    }
    let mut media = Vec::new();
    for on in &args.on {
        media.push(medium(on, &args.size)?);
    }
    if let Some(url) = &args.url {
        let running = redisd::Running::at(url)?;
        let (url, secret) = (running.url().to_owned(), Secret(url.clone()));
        media.push(Medium::Running { url, secret, writes: args.writes });
    }
    let time = args.runtime.as_deref().map(|time| parsed::<Nanos>("--runtime", time)).transpose()?;
    let rate = |iops: f64| Usage(format!("--rate {iops}: it must be more than 0"));
    let pacing = match (args.rate, args.fixed_rate) {
        (Some(iops), false) if iops > 0.0 => Pacing::Poisson { iops },
        (Some(iops), true) if iops > 0.0 => Pacing::Fixed { iops },
        (Some(iops), _) => return Err(rate(iops).into()),
        (None, _) => Pacing::Closed,
    };
    let request = Request {
        program,
        modes,
        media,
        payloads,
        settings: settings(&args.config)?,
        link: if args.link == RedisLink::Unix { Link::Unix } else { Link::Tcp },
        connections: args.connections,
        threads: args.threads,
        pipeline: args.pipeline,
        commands: args.commands.as_deref().map_or(Ok(CommandMix::default()), |mix| parsed("--commands", mix))?,
        reads: args.reads.unwrap_or(if args.url.is_some() && !args.writes { 100 } else { 50 }),
        keys: args.keys,
        order: args.theta.map_or(Order::Uniform, |theta| Order::Zipf { theta }),
        entropy: args.content.unwrap_or(Content::Half).entropy(),
        expires: args.expires.as_deref().map(|time| parsed::<Nanos>("--expires", time)).transpose()?,
        log: args.log.clone(),
        pacing,
        operations: args.operations.or((time.is_none() && args.lose.is_none()).then_some(OPERATIONS)),
        time,
        repeat: args.seeds.or(args.repeat).unwrap_or(if args.as_published || args.lose.is_some() { 5 } else { 3 }),
        lose: args.lose.map(|lose| match lose {
            RedisLose::Kill => Lose::Kill,
            RedisLose::Power => Lose::Power,
        }),
        delay: parsed::<Nanos>("--delay", &args.delay)?,
        every: every(&args.every)?,
        as_published: args.as_published,
        seed: args.seed,
    };
    Ok(request.plan()?)
}

/// The server's program.
pub(super) fn program(said: Option<&Path>) -> Result<PathBuf> {
    Ok(match said {
        Some(path) => {
            let missing = |why: &dyn std::fmt::Display| Missing(format!("--server {}: {why}", path.display()));
            let program = std::fs::canonicalize(path).map_err(|error| missing(&error))?;
            if !redisd::is_program(&program) {
                return Err(missing(&"it is no program; give the path of a redis-server").into());
            }
            program
        }
        None => {
            redisd::find(&std::env::var_os("PATH").unwrap_or_default()).map_err(|error| Missing(error.to_string()))?
        }
    })
}

/// Settings by which a server would not be found where it was started, or would not end with the run.
const OWN: [&str; 7] = ["bind", "daemonize", "dir", "pidfile", "port", "supervised", "unixsocket"];

/// Settings of redis.conf.
pub(super) fn settings(config: &[String]) -> Result<BTreeMap<String, String>> {
    let mut settings = BTreeMap::new();
    for setting in config {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| Usage(format!("--config {setting}: write NAME=VALUE, as redis.conf has them")))?;
        if name.starts_with("tls-") {
            return Err(Usage(format!("--config {setting}: load redis speaks no TLS; leave it out")).into());
        }
        // redis.conf knows no case.
        let name = name.trim().to_lowercase();
        if OWN.contains(&name.as_str()) {
            let why = "where the server listens and its files lie is tiermark's own to say; leave it out";
            return Err(Usage(format!("--config {setting}: {why}")).into());
        }
        settings.insert(name, value.to_owned());
    }
    Ok(settings)
}

/// A server takes no two snapshots at once, and one of an empty data set takes milliseconds.
fn every(time: &str) -> Result<Nanos> {
    let every = parsed::<Nanos>("--every", time)?;
    let least = Nanos::from_millis(100);
    if every < least { Err(Usage(format!("--every {time}: {least} or more")).into()) } else { Ok(every) }
}

/// One length, or several with their shares: `64:70,512:30`.
fn lengths(payload: &str) -> Result<Block> {
    if !payload.contains([':', ',']) {
        return Ok(Block::Fixed(parsed("--payload", payload)?));
    }
    let wrong = || Usage(format!("--payload {payload}: a mix is lengths with their shares, such as 64:70,512:30"));
    let mut parts = Vec::new();
    for part in payload.split(',') {
        let (size, weight) = part.split_once(':').ok_or_else(wrong)?;
        let weight: u32 = weight.parse().ok().filter(|weight| *weight > 0).ok_or_else(wrong)?;
        parts.push((parsed::<Bytes>("--payload", size)?, weight));
    }
    Ok(Block::Split(parts))
}

/// A directory, or a profile to emulate, with a fault or without.
pub(super) fn medium(on: &str, size: &str) -> Result<Medium> {
    let path = Path::new(on);
    if path.is_dir() {
        let dir = std::fs::canonicalize(path).map_err(|error| Missing(format!("--on {on}: {error}")))?;
        return Ok(Medium::Directory(dir));
    }
    let (profile, fault) = on.split_once('+').map_or((on, None), |(profile, fault)| (profile, Some(fault)));
    if let Some(fault) = fault {
        fault.parse::<slowdisk::Fault>().map_err(|error| Usage(format!("--on {on}: {error}")))?;
    }
    let profile = methods::profile_named(profile.strip_prefix("profile:").unwrap_or(profile))
        .map_err(|error| Usage(format!("--on {on}: give a directory, or a profile to emulate ({error})")))?;
    let toml = profile.to_toml().map_err(|error| Usage(format!("--on {on}: {error}")))?;
    let (size, fault) = (parsed("--size", size)?, fault.map(str::to_owned));
    Ok(Medium::Emulated { name: profile.name, toml, size, fault })
}
