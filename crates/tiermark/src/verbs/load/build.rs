//! `load build`: what its options ask for.

use super::parsed;
use crate::cli::{BuildArgs, Compiles};
use crate::exit::Missing;
use anyhow::Result;
use basics::desktop::{Building, Compiler};
use basics::pressure::Pressure;
use basics::{Bytes, Nanos, Plan};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use workloads::build::Request;

/// How long, when nobody says so: a board without a heat sink throttles within minutes.
const TIME: Nanos = Nanos::from_millis(600_000);
/// Programs that compile C.
const C: [&str; 3] = ["cc", "gcc", "clang"];

/// What is to be done.
pub fn plan(args: &BuildArgs) -> Result<Plan> {
    let (compiler, program) = compiler(args.compiler)?;
    let processors = std::thread::available_parallelism().map_or(1, |all| all.get() as u32);
    let jobs = args.jobs.unwrap_or(processors);
    let memory = args.memory.as_deref().map(|memory| parsed::<Bytes>("--memory", memory)).transpose()?;
    let time = args.runtime.as_deref().map(|time| parsed::<Nanos>("--runtime", time)).transpose()?;
    let request = Request {
        building: Building { compiler, program, units: args.units, jobs },
        pressure: Pressure { memory, ..Pressure::default() },
        tiers: args.swap.iter().map(|name| super::tier(name)).collect::<Result<_>>()?,
        time: time.or(args.builds.is_none().then_some(TIME)),
        builds: args.builds,
        repeat: args.repeat,
        seed: args.seed,
    };
    Ok(request.plan()?)
}

/// The one that was asked for, or the first that is there.
pub(in crate::verbs) fn compiler(asked: Option<Compiles>) -> Result<(Compiler, Option<PathBuf>)> {
    let c = || C.iter().find_map(|name| in_path(name)).map(|program| (Compiler::C, Some(program)));
    let rust = || in_path("rustc").map(|program| (Compiler::Rust, Some(program)));
    let lacks = |what: &str| Missing(format!("no {what} is in PATH; install one, or take --compiler mix"));
    Ok(match asked {
        Some(Compiles::C) => c().ok_or_else(|| lacks("cc, gcc or clang"))?,
        Some(Compiles::Rust) => rust().ok_or_else(|| lacks("rustc"))?,
        Some(Compiles::Mix) => (Compiler::Mix, None),
        None => c().or_else(rust).unwrap_or((Compiler::Mix, None)),
    })
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(is_program)
}
