//! `load decode`: what its options ask for.

use super::{curve, page, parsed, pressure, tiers};
use crate::cli::DecodeArgs;
use crate::exit::Usage;
use crate::verbs::models;
use anyhow::Result;
use basics::decoding::Decoding;
use basics::{Nanos, Plan};
use machine::Machine;
use workloads::decode::{Request, decoding};

/// What is to be done.
pub fn plan(args: &DecodeArgs, machine: &Machine) -> Result<Plan> {
    let (name, header) = models::one(&args.model)?;
    let decoding = decoding(&name, &header, args.prompt, args.tokens, args.context);
    let decoding = decoding.map_err(|error| Usage(error.to_string()))?;
    let pressed = &args.pressed;
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let mapped = args.mapped;
    let request = Request {
        decoding: Decoding { mapped, ..decoding },
        pressure: pressure(pressed, machine, |bytes| bytes)?,
        // One file is mapped: rungs of several places, or of none, are not for it.
        tiers: tiers(pressed, |name| !mapped || !(name == "none" || name.contains(',') || name.contains("zswap")))?,
        threads: args.threads.unwrap_or(processors),
        time: parsed::<Nanos>("--runtime", &args.runtime)?,
        repeat: pressed.repeat,
        page_cluster: pressed.page_cluster,
        swappiness: pressed.swappiness,
        curve: curve(pressed, |bytes| bytes)?,
        seed: pressed.seed,
        page: page(),
    };
    Ok(request.plan()?)
}
