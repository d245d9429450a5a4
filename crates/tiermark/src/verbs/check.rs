//! `tiermark check`: the machine, every tier measured, explained, and a report.

use crate::cli::{CheckArgs, CheckedFor, When};
use crate::context::Context;
use crate::verbs::report::Place;
use crate::verbs::run::execute;
use crate::{exit, out};
use anyhow::Result;
use machine::Root;
use methods::Effort;
use std::process::ExitCode;

/// Surveys the tiers, measures, studies, reports.
pub fn check(context: &Context, args: &CheckArgs) -> Result<ExitCode> {
    if let Some(CheckedFor::Desktop) = args.job {
        return super::check_desktop::check(context, args);
    }
    for dir in &args.within {
        if !dir.is_dir() {
            return Err(exit::Missing(format!("--in {}: there is no such directory", dir.display())).into());
        }
        // Who names a place expects figures of it: better told now than after a minute.
        change::may_make(dir, methods::LEAST_ROOM)?;
    }
    let given = args.out.clone().map(Place::Given);
    given.as_ref().map_or(Ok(()), Place::check)?;
    let root = Root::live();
    let asked: Vec<_> = args.within.iter().filter_map(|dir| dir.canonicalize().ok()).collect();
    let machine = machine::read_with(&root, &asked);
    let effort = match (args.quick, args.thorough) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Thorough,
        _ => Effort::Usual,
    };
    let (sites, left_out) = methods::survey(&machine, &root, &args.within);
    let plan = methods::check(effort, &sites, left_out);
    let finished = execute(context, machine, plan, When::Auto)?;
    let store = context.open_for_reading()?;
    let record = store.load(&finished.id)?;
    let study = study::explain(&report::view(&record));
    let place = match given {
        Some(place) => place,
        None => Place::Default(context.report_path(&report::file_name(&record))?),
    };
    // A report that cannot be written must not take the answer with it.
    let written = place.write(&report::html::report(&[&record]));
    let path = written.is_ok().then(|| place.path());
    if context.json {
        out::print_json(&report::json::check(&record, &study, path))?;
    } else {
        out::show(&report::terminal::check(&record, &study, path, &context.style), &context.style)?;
    }
    written?;
    Ok(exit::of_run(&finished))
}
