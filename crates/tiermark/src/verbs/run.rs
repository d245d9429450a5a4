//! `tiermark run`: a method or a job file of fio's, on a target.

use crate::cli::{RunArgs, When};
use crate::context::{self, Context};
use crate::exit::Missing;
use crate::progress::Bar;
use crate::{exit, out};
use anyhow::Result;
use basics::Plan;
use machine::{Machine, Root};
use methods::{MethodError, Request, Settings, Site, fio};
use runner::{Finished, Progress, Runner};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Expands the method or the job file to a plan and runs it, or prints it.
pub fn run(context: &Context, args: &RunArgs) -> Result<ExitCode> {
    let machine = machine::read(&Root::live());
    let plan = plan(args, &machine)?;
    if args.dry_run {
        // What the run would be refused, its plan is refused too.
        runner::may_begin(&plan)?;
        if context.json {
            out::print_json(&report::json::plan(&plan, &machine))?;
        } else {
            out::show(&report::terminal::plan(&plan, &machine, &context.style), &context.style)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let finished = execute(context, machine, plan, args.progress)?;
    let store = context.open_for_reading()?;
    let record = store.load(&finished.id)?;
    if context.json {
        out::print_json(&report::json::run(&record))?;
    } else {
        out::show(&report::terminal::run(&record, &context.style), &context.style)?;
    }
    Ok(exit::of_run(&finished))
}

/// What is to be done.
pub fn plan(args: &RunArgs, machine: &Machine) -> Result<Plan> {
    let root = Root::live();
    let plan = match args.job_file() {
        Some(path) => of_job_file(path, args, machine, &root)?,
        None => of_method(args, machine, &root)?,
    };
    Ok(match args.scale {
        Some(scale) => plan.scaled(scale).map_err(MethodError::from)?,
        None => plan,
    })
}

fn of_method(args: &RunArgs, machine: &Machine, root: &Root) -> Result<Plan> {
    let method = methods::find(&args.method)?;
    let settings = Settings::parse(method.name(), method.parameters(), &args.set)?;
    let site = site(args, machine, root)?.ok_or_else(|| MethodError::Missing { path: "".into() })?;
    let request = Request { site: &site, settings: &settings, as_published: args.as_published, machine };
    Ok(method.plan(&request)?)
}

fn of_job_file(path: &Path, args: &RunArgs, machine: &Machine, root: &Root) -> Result<Plan> {
    let site = site(args, machine, root)?;
    let request = fio::Request { path, on: site.as_ref(), destroy: args.destroy.as_deref(), machine, root };
    let plan = fio::plan(&request, &fio::Live(machine))?;
    for (key, says) in [("ignored", "keys that change nothing here"), ("notes", "not as fio does it")] {
        if let Some(what) = plan.parameters.get(key) {
            out::say(&format!("{says}: {what}"));
        }
    }
    Ok(plan)
}

/// What `--on` names.
fn site(args: &RunArgs, machine: &Machine, root: &Root) -> Result<Option<Site>, MethodError> {
    let named = |on: &OsString| {
        let text = on.to_str().ok_or_else(|| MethodError::Unusable {
            path: on.clone().into(),
            why: "its name is not UTF-8, as records are; give a path whose name is".to_owned(),
        })?;
        Site::named(text, args.destroy.as_deref(), machine, root)
    };
    args.on.as_ref().map(named).transpose()
}

/// Runs a plan with signals caught, progress shown and errors told.
pub fn execute(context: &Context, machine: machine::Machine, plan: basics::Plan, progress: When) -> Result<Finished> {
    execute_watched(context, machine, plan, &mut Bar::new(context.progress(progress)))
}

/// The same for one of several runs: told to end, none follows it.
pub fn execute_one_of(
    context: &Context,
    machine: machine::Machine,
    plan: basics::Plan,
    progress: When,
) -> Result<Finished> {
    let finished = execute(context, machine, plan, progress)?;
    if finished.state == record::State::Interrupted {
        return Err(exit::BrokenOff(finished.id.to_string()).into());
    }
    Ok(finished)
}

/// The same, told to someone.
pub fn execute_watched(
    context: &Context,
    machine: machine::Machine,
    plan: basics::Plan,
    progress: &mut dyn Progress,
) -> Result<Finished> {
    let (mut store, journal) = context.open()?;
    let interrupted = context::interrupted()?;
    let program = std::env::current_exe().map_err(|error| Missing(format!("this program cannot be found: {error}")))?;
    let mut runner =
        Runner { store: &mut store, journal: &journal, interrupted: &interrupted, progress, program: &program };
    Ok(runner.run(plan, machine, &context.command)?)
}
