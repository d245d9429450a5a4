//! `tiermark apply`, `revert` and `status`: what is recommended becomes what is set, and goes again.

use super::advise::{Advice, advice};
use crate::cli::{ApplyArgs, RevertArgs, StatusArgs};
use crate::context::Context;
use crate::exit::{Missing, Usage};
use crate::out;
use anyhow::Result;
use change::lasting::Settings;
use change::{Journal, Lasting};
use report::settings::Outcome;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// Shows what each file would say, asks, and writes.
pub fn apply(context: &Context, args: &ApplyArgs) -> Result<ExitCode> {
    for name in &args.rules {
        if !advise::ALL.iter().any(|rule| rule.name == name) {
            return Err(Usage(format!("there is no rule {name:?}; `tiermark rules` lists them")).into());
        }
    }
    let Advice { all, .. } = advice(context, &args.goals)?;
    let chosen =
        all.into_iter().filter(|said| args.rules.is_empty() || args.rules.iter().any(|name| name == said.rule));
    let settings: Vec<Settings> = chosen
        .filter(|said| !said.changes.is_empty())
        .map(|said| Settings { rule: said.rule.to_owned(), title: said.title, wanted: said.changes })
        .collect();
    let lasting = lasting(&args.goals.root)?;
    let (planned, refused) = lasting.plan(&settings);
    let refused: Vec<(String, String)> = refused.into_iter().map(|(rule, error)| (rule, error.to_string())).collect();
    let outcome = |id| Outcome { planned: &planned, refused: &refused, id };
    let code = if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let nothing = planned.edits.is_empty() && planned.live.is_empty();
    if !context.json {
        out::show(&report::terminal::plan_of_settings(&outcome(None), &context.style), &context.style)?;
    }
    if args.dry_run || nothing {
        if context.json {
            out::print_json(&report::json::applied(&outcome(None), args.dry_run))?;
        }
        return Ok(code);
    }
    agreed(args.yes, &args.goals.root)?;
    let applied = lasting.apply(&journal(context)?, planned.clone())?;
    if context.json {
        out::print_json(&report::json::applied(&outcome(Some(&applied.id)), false))?;
    } else {
        out::show(&report::terminal::applied(&applied, &args.goals.root, &context.style), &context.style)?;
    }
    Ok(code)
}

/// Takes it back.
pub fn revert(context: &Context, args: &RevertArgs) -> Result<ExitCode> {
    let lasting = lasting(&args.root)?;
    let journal = journal(context)?;
    let known: Vec<String> = lasting.applied()?.into_iter().map(|applied| applied.id).rev().collect();
    let ids = match (&args.id, args.all) {
        (Some(id), _) => vec![id.clone()],
        (None, true) => known,
        (None, false) => known.into_iter().take(1).collect(),
    };
    let mut reverted = Vec::new();
    if !ids.is_empty() {
        agreed(args.yes, &args.root)?;
    }
    for id in &ids {
        let applied = lasting.revert(&journal, id)?;
        if !context.json {
            out::show(&report::terminal::reverted(&applied, &context.style), &context.style)?;
        }
        reverted.push(applied);
    }
    if context.json {
        out::print_json(&report::json::reverted(&reverted))?;
    } else if ids.is_empty() {
        out::print("nothing is applied\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What became of what was applied.
pub fn status(context: &Context, args: &StatusArgs) -> Result<ExitCode> {
    // What a killed process left half written is taken back first, so that it is not told as applied.
    context.tidy();
    let all = lasting(&args.root)?.status()?;
    if context.json {
        out::print_json(&report::json::status(&all))?;
    } else {
        out::show(&report::terminal::status(&all, &context.style), &context.style)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn lasting(root: &Path) -> Result<Lasting> {
    if !root.is_dir() {
        return Err(Missing(format!("--root {} is no folder", root.display())).into());
    }
    Ok(Lasting::at(root))
}

/// With what a killed process left undone.
fn journal(context: &Context) -> Result<Journal> {
    Ok(context.open()?.1)
}

/// Asks, unless that was answered already.
pub(super) fn agreed(yes: bool, root: &Path) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Usage("nothing was written: without a terminal it takes --yes".to_owned()).into());
    }
    eprint!("write this below {}? [y/N] ", root.display());
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Usage("nothing was written".to_owned()).into())
}
