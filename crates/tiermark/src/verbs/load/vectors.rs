//! `load vectors`: what its options ask for, and its run.

use super::{parsed, redis};
use crate::cli::{Replaced, VectorsArgs};
use crate::context::Context;
use crate::exit::{Missing, Usage};
use anyhow::Result;
use basics::vectors::{Format, Refill, Source};
use basics::{Nanos, Plan};
use std::path::Path;
use std::process::ExitCode;
use workloads::vectors::Request;

/// Requests of a visit when nobody says how many or how long.
const OPERATIONS: u64 = 20_000;
/// Vectors that are made up for a group.
const GROUP: u64 = 100;

/// Does what was typed.
pub fn vectors(context: &Context, args: &VectorsArgs) -> Result<ExitCode> {
    let plan = plan(args)?;
    let emulates = args.on.iter().any(|on| !Path::new(on).is_dir());
    redis::carry_out(context, plan, args.dry_run, emulates, args.progress)
}

fn plan(args: &VectorsArgs) -> Result<Plan> {
    let mut formats = Vec::new();
    for format in &args.format {
        formats.push(format.parse::<Format>().map_err(|why| Usage(format!("--format {why}")))?);
    }
    if formats.is_empty() {
        formats = Format::ALL.to_vec();
    }
    let source = match &args.file {
        None => Source::MadeUp {
            count: args.vectors,
            dim: args.dim,
            groups: u32::try_from(args.vectors / GROUP).unwrap_or(u32::MAX).max(1),
            spread: args.spread,
            seed: args.seed,
        },
        Some(path) => {
            let path = std::fs::canonicalize(path).map_err(|error| Missing(format!("{}: {error}", path.display())))?;
            let (rows, dim) = ::vectors::shape(&path).map_err(|error| Usage(error.to_string()))?;
            Source::File { path, count: rows - ::vectors::QUESTIONS, dim }
        }
    };
    let time = args.runtime.as_deref().map(|time| parsed::<Nanos>("--runtime", time)).transpose()?;
    let request = Request {
        program: redis::program(args.server.as_deref())?,
        source,
        formats,
        media: args.on.iter().map(|on| redis::medium(on, &args.size)).collect::<Result<_>>()?,
        remotes: args.away.iter().map(|time| parsed::<Nanos>("--away", time)).collect::<Result<_, _>>()?,
        hot_percent: args.hot,
        theta: args.theta,
        expires: args.expires.as_deref().map(|time| parsed::<Nanos>("--expires", time)).transpose()?,
        refill: args.replace.map(|replaced| match replaced {
            Replaced::OnDemand => Refill::OnDemand,
            Replaced::Prefetch => Refill::Prefetch,
        }),
        compute: args.compute.as_deref().map(|time| parsed::<Nanos>("--compute", time)).transpose()?,
        settings: redis::settings(&args.config)?,
        clients: args.clients,
        operations: args.operations.or(time.is_none().then_some(OPERATIONS)),
        time,
        repeat: args.repeat,
        seed: args.seed,
    };
    Ok(request.plan()?)
}
