//! `tiermark load`: a workload whose memory is short, on one tier for swap after the other. What all workloads take is read
//! here; what each is for itself in a file of its own.

mod build;
pub(super) use build::compiler;
mod decode;
mod desktop;
mod llm;
mod redis;
mod swap;
mod vectors;

use crate::cli::{LoadVerb, PressedArgs, When};
use crate::context::Context;
use crate::exit::{Missing, Usage};
use crate::verbs::run::execute;
use crate::{exit, out};
use anyhow::Result;
use basics::plan::Target;
use basics::pressure::Pressure;
use basics::{Bytes, Plan};
use machine::{Machine, Root};
use runner::Errand;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use workloads::{Tier, ladder};

/// Does what was typed.
pub fn load(context: &Context, verb: &LoadVerb) -> Result<ExitCode> {
    match verb {
        LoadVerb::Swap(args) => carry_out(context, &args.pressed, |machine| swap::plan(args, machine)),
        LoadVerb::Decode(args) => carry_out(context, &args.pressed, |machine| decode::plan(args, machine)),
        LoadVerb::Llm(args) => carry_out(context, &args.pressed, |machine| llm::plan(args, machine)),
        LoadVerb::Redis(args) => redis::redis(context, args),
        LoadVerb::Vectors(args) => vectors::vectors(context, args),
        LoadVerb::Desktop(args) => {
            go(context, (args.dry_run, args.progress), true, |machine| desktop::plan(args, machine))
        }
        LoadVerb::Build(args) => {
            let needs_root = args.memory.is_some();
            go(context, (args.dry_run, args.progress), needs_root, |_| build::plan(args))
        }
        LoadVerb::Errand { errand } => self::errand(errand),
    }
}

/// What is to be done, of those that have a plan.
pub fn plan(verb: &LoadVerb, machine: &Machine) -> Result<Plan> {
    match verb {
        LoadVerb::Swap(args) => swap::plan(args, machine),
        LoadVerb::Decode(args) => decode::plan(args, machine),
        LoadVerb::Llm(args) => llm::plan(args, machine),
        LoadVerb::Redis(args) => redis::plan(args),
        LoadVerb::Desktop(args) => desktop::plan(args, machine),
        LoadVerb::Build(args) => build::plan(args),
        LoadVerb::Vectors(_) | LoadVerb::Errand { .. } => {
            Err(Usage("load swap, decode, llm, redis, desktop and build are work that can be repeated".to_owned())
                .into())
        }
    }
}

/// In a process that was started for it.
fn errand(errand: &str) -> Result<ExitCode> {
    let errand: Errand = serde_json::from_str(errand).map_err(|error| Usage(error.to_string()))?;
    runner::run_errand(&errand, &mut std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn parsed<T: FromStr<Err: std::fmt::Display>>(option: &str, text: &str) -> Result<T, Usage> {
    text.parse().map_err(|error: T::Err| Usage(format!("{option}: {error}")))
}

/// Length of this machine's pages.
pub(super) fn page() -> Bytes {
    Bytes(rustix::param::page_size() as u64)
}

fn carry_out(context: &Context, args: &PressedArgs, plan: impl FnOnce(&Machine) -> Result<Plan>) -> Result<ExitCode> {
    let plan = |machine: &Machine| {
        let mut plan = plan(machine)?;
        if args.pager {
            helped(&mut plan);
        }
        Ok(plan)
    };
    go(context, (args.dry_run, args.progress), true, plan)
}

/// Does it, or says what would be done.
fn go(
    context: &Context,
    (dry_run, progress): (bool, When),
    needs_root: bool,
    plan: impl FnOnce(&Machine) -> Result<Plan>,
) -> Result<ExitCode> {
    let machine = machine::read(&Root::live());
    let plan = plan(&machine)?;
    if dry_run {
        runner::may_begin(&plan)?;
        if context.json {
            out::print_json(&report::json::plan(&plan, &machine))?;
        } else {
            out::show(&report::terminal::plan(&plan, &machine, &context.style), &context.style)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if needs_root && !rustix::process::geteuid().is_root() {
        let needs = "swap and memory cgroups are set up by root alone; try again with sudo, or see what would be done with --dry-run";
        return Err(Missing(needs.to_owned()).into());
    }
    let finished = execute(context, machine, plan, progress)?;
    let record = context.open_for_reading()?.load(&finished.id)?;
    if context.json {
        out::print_json(&report::json::run(&record))?;
    } else {
        out::show(&report::terminal::run(&record, &context.style), &context.style)?;
    }
    Ok(exit::of_run(&finished))
}

/// The pager is beside each process.
pub(super) fn helped(plan: &mut Plan) {
    for target in &mut plan.targets {
        if let Target::Pressed(pressed) = target {
            pressed.pager = true;
        }
    }
    plan.parameters.insert("pager".to_owned(), "yes".to_owned());
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

/// What is taken away; `part` scales what was asked for.
fn pressure(args: &PressedArgs, machine: &Machine, part: impl Fn(Bytes) -> Bytes) -> Result<Pressure, Usage> {
    let size = |option: &str, text: &Option<String>| {
        text.as_deref().map(|text| parsed::<Bytes>(option, text)).transpose().map(|size| size.map(&part))
    };
    let memory = size("--memory", &args.memory)?;
    let lock = match size("--leave", &args.leave)? {
        Some(leave) => Some(all_but(leave, machine)?),
        None => size("--lock", &args.lock)?,
    };
    let watchdog = args.watchdog.or((memory.is_none() && lock.is_some()).then_some(WATCHDOG));
    Ok(Pressure { memory, lock, watchdog })
}

/// The limits of `--curve`; none are of our choice. `part` scales them as it does `--memory`.
fn curve(args: &PressedArgs, part: impl Fn(Bytes) -> Bytes) -> Result<Option<Vec<Bytes>>, Usage> {
    let limits =
        |text: &str| text.split(',').filter(|limit| !limit.is_empty()).map(|limit| parsed("--curve", limit)).collect();
    let limits: Option<Vec<Bytes>> = args.curve.as_deref().map(limits).transpose()?;
    Ok(limits.map(|limits| limits.into_iter().map(part).collect()))
}

/// The tiers of `--swap` and `--ladder`, each once; of the ladder those that `fit`.
fn tiers(args: &PressedArgs, fit: impl Fn(&str) -> bool) -> Result<Vec<Tier>> {
    let mut names = args.swap.clone();
    if args.ladder || names.is_empty() {
        names.extend(ladder(&disk(args)?).into_iter().filter(|name| fit(name)));
    }
    let mut tiers: Vec<Tier> = Vec::new();
    for name in names {
        let tier = tier(&name)?;
        if tiers.iter().all(|other| other.name != tier.name) {
            tiers.push(tier);
        }
    }
    Ok(tiers)
}

/// A tier as it is written.
pub(super) fn tier(name: &str) -> Result<Tier> {
    let profiles = |name: &str| {
        let profile = methods::profile_named(name).map_err(|error| error.to_string())?;
        let toml = profile.to_toml().map_err(|error| error.to_string())?;
        Ok((profile.name, toml))
    };
    Ok(Tier::parse(name, &profiles).map_err(workloads::WorkloadError::from)?)
}

/// Where this machine's disk is for those rungs that want it: where it was said, or where large temporary files belong.
fn disk(args: &PressedArgs) -> Result<PathBuf> {
    let dir = args.disk.clone().unwrap_or_else(|| PathBuf::from("/var/tmp"));
    let dir = std::fs::canonicalize(&dir)
        .map_err(|error| Missing(format!("{} cannot be looked at: {error}; give --disk DIR", dir.display())))?;
    Ok(dir)
}
