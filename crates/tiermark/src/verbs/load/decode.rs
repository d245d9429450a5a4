//! `load decode`: what its options ask for.

use super::{parsed, pressure, tiers};
use crate::cli::DecodeArgs;
use crate::exit::{Missing, Usage};
use anyhow::Result;
use basics::decoding::Decoding;
use basics::{Bytes, Nanos, Plan};
use gguf::{Header, Shape};
use machine::Machine;
use std::fs::File;
use std::path::Path;
use workloads::decode::{Request, decoding};

/// What is to be done.
pub fn plan(args: &DecodeArgs, machine: &Machine) -> Result<Plan> {
    let (name, header) = model(args)?;
    let decoding = decoding(&name, &header, args.prompt, args.tokens).map_err(|error| Usage(error.to_string()))?;
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
        seed: pressed.seed,
        page: Bytes(rustix::param::page_size() as u64),
    };
    Ok(request.plan()?)
}

/// The model's name and its header.
fn model(args: &DecodeArgs) -> Result<(String, Header)> {
    if let Some(shape) = &args.shape {
        let parsed = Shape::parse(shape).map_err(|error| Usage(format!("--shape: {error}")))?;
        return Ok((shape.clone(), parsed.header()));
    }
    let Some(path) = &args.model else {
        return Err(Usage("give --model FILE.gguf or --shape KEY=N,…".to_owned()).into());
    };
    let wrong = |error: std::io::Error| Missing(format!("the model {}: {error}", path.display()));
    let file = File::open(path).map_err(wrong)?;
    let len = file.metadata().map_err(wrong)?.len();
    let header = gguf::read(file, len).map_err(|error| Usage(format!("{}: {error}", path.display())))?;
    let name = header.name.clone().unwrap_or_else(|| stem(path));
    Ok((name, header))
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
