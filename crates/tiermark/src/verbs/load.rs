//! `tiermark load`: a workload whose memory is short, on one tier for swap after the other.

use crate::cli::{LoadVerb, Pattern, SwapArgs};
use crate::context::Context;
use crate::exit::{Missing, Usage};
use crate::verbs::run::execute;
use crate::{exit, out};
use anyhow::Result;
use basics::job::{Direction, Entropy, Order};
use basics::pressure::Pressure;
use basics::units::MIB;
use basics::{Bytes, Nanos};
use machine::{Machine, Root};
use runner::Errand;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use workloads::{Tier, ladder, swap};

/// Does what was typed.
pub fn load(context: &Context, verb: &LoadVerb) -> Result<ExitCode> {
    match verb {
        LoadVerb::Swap(args) => swap(context, args),
        LoadVerb::Errand { errand } => self::errand(errand),
    }
}

/// In a process that was started for it.
fn errand(errand: &str) -> Result<ExitCode> {
    let errand: Errand = serde_json::from_str(errand).map_err(|error| Usage(error.to_string()))?;
    runner::run_errand(&errand, &mut std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(option: &str, text: &str) -> Result<T, Usage> {
    text.parse().map_err(|error: T::Err| Usage(format!("{option}: {error}")))
}

fn swap(context: &Context, args: &SwapArgs) -> Result<ExitCode> {
    let root = Root::live();
    let machine = machine::read(&root);
    let plan = request(args, &machine)?.plan()?;
    if args.dry_run {
        runner::may_begin(&plan)?;
        if context.json {
            out::print_json(&report::json::plan(&plan, &machine))?;
        } else {
            out::show(&report::terminal::plan(&plan, &machine, &context.style), &context.style)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !rustix::process::geteuid().is_root() {
        let needs = "swap and memory cgroups are set up by root alone; try again with sudo, or see what would be done with --dry-run";
        return Err(Missing(needs.to_owned()).into());
    }
    let finished = execute(context, machine, plan, args.progress)?;
    let record = context.open_for_reading()?.load(&finished.id)?;
    if context.json {
        out::print_json(&report::json::run(&record))?;
    } else {
        out::show(&report::terminal::run(&record, &context.style), &context.style)?;
    }
    Ok(exit::of_run(&finished))
}

/// Where nothing but the locked memory limits the run, other programs wait with it.
const WATCHDOG: u8 = 95;

/// What must be locked so that so much of the RAM that is available now stays.
fn all_but(leave: Bytes, machine: &Machine) -> Result<Bytes, Usage> {
    let meminfo = || Usage("/proc/meminfo does not say how much RAM is available; give --lock SIZE".to_owned());
    let available = machine.ram_available.get().copied().ok_or_else(meminfo)?;
    if leave >= available {
        return Err(Usage(format!("--leave {leave}: only {available} are available, so there is nothing to lock")));
    }
    Ok(Bytes(available.0 - leave.0))
}

/// With `--quick` everything is smaller by as much, so that the same share of it does not fit, and shorter.
const QUICK: u64 = 8;

fn request(args: &SwapArgs, machine: &Machine) -> Result<swap::Request> {
    let size =
        |option: &str, text: &Option<String>| text.as_deref().map(|text| parsed::<Bytes>(option, text)).transpose();
    let smaller = |bytes: Bytes| Bytes(if args.quick { (bytes.0 / QUICK).max(64 * MIB).min(bytes.0) } else { bytes.0 });
    let whole: Bytes = parsed("--size", &args.size)?;
    // The share of it that is given stays the same, whatever the size becomes.
    let part = |bytes: Bytes| Bytes((bytes.0 as f64 * smaller(whole).0 as f64 / whole.0.max(1) as f64) as u64);
    let memory = size("--memory", &args.memory)?.map(part);
    let lock = match size("--leave", &args.leave)? {
        Some(leave) => Some(all_but(part(leave), machine)?),
        None => size("--lock", &args.lock)?.map(part),
    };
    let watchdog = args.watchdog.or(memory.is_none().then_some(WATCHDOG));
    let pressure = Pressure { memory, lock, watchdog };
    let time = match &args.runtime {
        Some(text) => parsed::<Nanos>("--runtime", text)?,
        None => Nanos::from_millis(if args.quick { 1500 } else { 15_000 }),
    };
    Ok(swap::Request {
        order: order(args, smaller(whole))?,
        direction: if args.write { Direction::Write } else { Direction::Read },
        size: smaller(whole),
        pressure,
        tiers: tiers(args)?,
        entropy: args.content.entropy(),
        threads: args.threads,
        time,
        repeat: args.repeat,
        page_cluster: args.page_cluster,
        swappiness: args.swappiness,
        seed: args.seed,
        page: Bytes(rustix::param::page_size() as u64),
    })
}

/// In a region of this length that the threads share.
fn order(args: &SwapArgs, size: Bytes) -> Result<Order, Usage> {
    Ok(match args.pattern {
        Pattern::Cyclic => Order::Sequential,
        Pattern::Random => Order::Uniform,
        Pattern::Zipf => Order::Zipf { theta: args.theta },
        Pattern::Stride => {
            let page = Bytes(rustix::param::page_size() as u64);
            let stride: Bytes = parsed("--stride", &args.stride)?;
            let part = size.0 / u64::from(args.threads.max(1));
            let places = u32::try_from(part / stride.0.max(1)).unwrap_or(u32::MAX);
            if places == 0 || !stride.0.is_multiple_of(page.0) {
                return Err(Usage(format!(
                    "--stride {stride} must be a multiple of {page} and less than a thread's part of --size"
                )));
            }
            Order::Strided { places, align: page }
        }
    })
}

/// The tiers of `--swap` and `--ladder`, each once.
fn tiers(args: &SwapArgs) -> Result<Vec<Tier>> {
    let mut names = args.swap.clone();
    if args.ladder || names.is_empty() {
        names.extend(ladder(&disk(args)?));
    }
    let mut tiers: Vec<Tier> = Vec::new();
    for name in names {
        let profiles = |name: &str| {
            let profile = methods::profile_named(name).map_err(|error| error.to_string())?;
            let toml = profile.to_toml().map_err(|error| error.to_string())?;
            Ok((profile.name, toml))
        };
        let tier = Tier::parse(&name, &profiles).map_err(workloads::WorkloadError::from)?;
        if tiers.iter().all(|other| other.name != tier.name) {
            tiers.push(tier);
        }
    }
    Ok(tiers)
}

/// Where this machine's disk is for those rungs that want it: where it was said, or where large temporary files belong.
fn disk(args: &SwapArgs) -> Result<PathBuf> {
    let dir = args.disk.clone().unwrap_or_else(|| PathBuf::from("/var/tmp"));
    let dir = std::fs::canonicalize(&dir)
        .map_err(|error| Missing(format!("{} cannot be looked at: {error}; give --disk DIR", dir.display())))?;
    Ok(dir)
}

impl crate::cli::Content {
    fn entropy(self) -> Entropy {
        match self {
            crate::cli::Content::Zeros => Entropy::Zeros,
            crate::cli::Content::Half => Entropy::Compressible,
            crate::cli::Content::Random => Entropy::Incompressible,
        }
    }
}
