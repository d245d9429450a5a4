//! `load desktop`: what its options ask for.

use super::parsed;
use crate::cli::DesktopArgs;
use crate::exit::Missing;
use anyhow::Result;
use basics::desktop::Browsing;
use basics::{Bytes, Nanos, Plan};
use machine::Machine;
use workloads::desktop::{Request, Setup};

/// What is to be done.
pub fn plan(args: &DesktopArgs, machine: &Machine) -> Result<Plan> {
    let program = match &args.browser {
        Some(program) => std::fs::canonicalize(program)
            .map_err(|error| Missing(format!("--browser {}: {error}", program.display())))?,
        None => {
            browser::find(&std::env::var_os("PATH").unwrap_or_default()).map_err(|error| Missing(error.to_string()))?
        }
    };
    let profiles = |name: &str| {
        let profile = methods::profile_named(name).map_err(|error| error.to_string())?;
        let toml = profile.to_toml().map_err(|error| error.to_string())?;
        Ok((profile.name, toml))
    };
    let both = ["stock".to_owned(), "moved".to_owned()];
    let names = if args.on.is_empty() { &both[..] } else { &args.on };
    let setups = names.iter().map(|name| Setup::parse(name, &profiles)).collect::<Result<Vec<_>, _>>()?;
    let request = Request {
        browsing: Browsing {
            program,
            copied: !args.program_stays,
            pages: args.pages,
            weight: parsed::<Bytes>("--weight", &args.weight)?,
            patience: parsed::<Nanos>("--patience", &args.patience)?,
        },
        setups,
        memory: parsed::<Bytes>("--memory", &args.memory)?,
        machine: machine.ram.get().copied(),
        switches: args.switches,
        time: args.runtime.as_deref().map(|time| parsed::<Nanos>("--runtime", time)).transpose()?,
        repeat: args.repeat,
        seed: args.seed,
    };
    Ok(request.plan()?)
}
