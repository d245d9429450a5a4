//! One file a verb: each turns what was typed into calls of the rooms below and prints what they say.

mod advise;
mod begin;
mod check;
mod check_desktop;
mod compare;
mod emulate;
mod export;
mod import;
mod load;
mod manuals;
mod methods;
mod models;
mod moving;
mod pager;
mod predict;
mod profile;
mod profiles;
mod prove;
mod report;
mod run;
mod runs;
mod settings;
mod show;
mod tiers;
pub mod watch;

use crate::cli::{Cli, LoadVerb, Verb};
use crate::context::Context;
use anyhow::Result;
use std::process::ExitCode;

/// Does what was typed.
pub fn dispatch(cli: Cli) -> Result<ExitCode> {
    let context = Context::new(&cli);
    let Some(verb) = cli.verb else { return begin::begin(&context) };
    if let Verb::Completions { shell } = verb {
        return manuals::completions(shell);
    }
    // The other verbs open the store, which does the same.
    let opens_no_store = match &verb {
        Verb::Tiers(_)
        | Verb::Watch(_)
        | Verb::Methods { .. }
        | Verb::Rules
        | Verb::Profiles { .. }
        | Verb::Man { .. } => true,
        Verb::Run(args) => args.dry_run,
        Verb::Emulate(args) => args.action.is_some(),
        Verb::Load(LoadVerb::Swap(args)) => args.pressed.dry_run,
        Verb::Load(LoadVerb::Decode(args)) => args.pressed.dry_run,
        Verb::Load(LoadVerb::Llm(args)) => args.pressed.dry_run,
        Verb::Pager(args) => args.action.is_none(),
        Verb::Predict(args) => !args.probe,
        _ => false,
    };
    if opens_no_store {
        context.tidy();
    }
    match verb {
        Verb::Check(args) => check::check(&context, &args),
        Verb::Tiers(args) => tiers::tiers(&context, &args),
        Verb::Methods { name } => methods::methods(&context, name.as_deref()),
        Verb::Profiles { name } => profiles::profiles(&context, name.as_deref()),
        Verb::Profile(args) => profile::profile(&context, &args),
        Verb::Watch(args) => watch::watch(&context, &args),
        Verb::Run(args) => run::run(&context, &args),
        Verb::Runs => runs::runs(&context),
        Verb::Show { run } => show::show(&context, &run),
        Verb::Compare { runs } => compare::compare(&context, &runs),
        Verb::Report { runs, format, out } => report::report(&context, &runs, format, out.as_deref()),
        Verb::Export { run, format, out } => export::export(&context, &run, format, out.as_deref()),
        Verb::Import { file } => import::import(&context, &file),
        Verb::Emulate(args) => emulate::emulate(&context, &args),
        Verb::Load(verb) => load::load(&context, &verb),
        Verb::Pager(args) => pager::pager(&context, &args),
        Verb::Predict(args) => predict::predict(&context, &args),
        Verb::Advise(args) => advise::advise(&context, &args),
        Verb::Rules => advise::rules(&context),
        Verb::Apply(args) => settings::apply(&context, &args),
        Verb::Revert(args) => settings::revert(&context, &args),
        Verb::Move(args) => moving::moving(&context, &args),
        Verb::Prove(args) => prove::prove(&context, &args),
        Verb::Status(args) => settings::status(&context, &args),
        Verb::Completions { shell } => manuals::completions(shell),
        Verb::Man { folder } => manuals::man(&folder),
    }
}
