//! `tiermark run`: a method on a target.

use crate::cli::{RunArgs, When};
use crate::context::{self, Context};
use crate::progress::Bar;
use crate::{exit, out};
use anyhow::Result;
use machine::Root;
use methods::{MethodError, Request, Settings, Site};
use runner::{Finished, Runner};
use std::process::ExitCode;

/// Expands the method to a plan and runs it, or prints it.
pub fn run(context: &Context, args: &RunArgs) -> Result<ExitCode> {
    let method = methods::find(&args.method)?;
    let settings = Settings::parse(method.name(), method.parameters(), &args.set)?;
    let root = Root::live();
    let machine = machine::read(&root);
    let on = args.on.to_str().ok_or_else(|| MethodError::Unusable {
        path: args.on.clone().into(),
        why: "its name is not UTF-8, as records are; give a path whose name is".to_owned(),
    })?;
    let site = Site::named(on, args.destroy.as_deref(), &machine, &root)?;
    let request = Request { site: &site, settings: &settings, as_published: args.as_published, machine: &machine };
    let plan = method.plan(&request)?;
    if args.dry_run {
        // What the run would be refused, its plan is refused too.
        runner::may_begin(&plan)?;
        out::print_json(&report::json::plan(&plan))?;
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

/// Runs a plan with signals caught, progress shown and errors told.
pub fn execute(context: &Context, machine: machine::Machine, plan: basics::Plan, progress: When) -> Result<Finished> {
    let (mut store, journal) = context.open()?;
    let interrupted = context::interrupted()?;
    let mut bar = Bar::new(progress);
    let mut runner = Runner { store: &mut store, journal: &journal, interrupted: &interrupted, progress: &mut bar };
    Ok(runner.run(plan, machine, &context.command)?)
}
