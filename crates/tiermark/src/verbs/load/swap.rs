//! `load swap`: what its options ask for.

use super::{curve, page, parsed, pressure, tiers};
use crate::cli::{Pattern, SwapArgs};
use crate::exit::Usage;
use anyhow::Result;
use basics::job::{Direction, Entropy, Order};
use basics::units::MIB;
use basics::{Bytes, Nanos, Plan};
use machine::Machine;
use workloads::swap::Request;

/// With `--quick` everything is smaller by as much, so that the same share of it does not fit, and shorter.
const QUICK: u64 = 8;

/// What is to be done.
pub fn plan(args: &SwapArgs, machine: &Machine) -> Result<Plan> {
    let smaller = |bytes: Bytes| Bytes(if args.quick { (bytes.0 / QUICK).max(64 * MIB).min(bytes.0) } else { bytes.0 });
    let whole: Bytes = parsed("--size", &args.size)?;
    // The share of it that is given stays the same, whatever the size becomes.
    let part = |bytes: Bytes| Bytes((bytes.0 as f64 * smaller(whole).0 as f64 / whole.0.max(1) as f64) as u64);
    let time = match &args.runtime {
        Some(text) => parsed::<Nanos>("--runtime", text)?,
        None => Nanos::from_millis(match (args.quick, args.pressed.curve.is_some()) {
            (true, false) => 1500,
            (false, false) => 15_000,
            // A curve is known once all was touched a few times.
            (true, true) => 8000,
            (false, true) => 40_000,
        }),
    };
    let pressed = &args.pressed;
    let request = Request {
        order: order(args, smaller(whole))?,
        direction: if args.write { Direction::Write } else { Direction::Read },
        size: smaller(whole),
        pressure: pressure(pressed, machine, part)?,
        tiers: tiers(pressed, |_| true)?,
        entropy: args.content.entropy(),
        threads: args.threads,
        time,
        repeat: pressed.repeat,
        page_cluster: pressed.page_cluster,
        swappiness: pressed.swappiness,
        curve: curve(pressed, part)?,
        seed: pressed.seed,
        page: page(),
    };
    Ok(request.plan()?)
}

/// In a region of this length that the threads share.
fn order(args: &SwapArgs, size: Bytes) -> Result<Order, Usage> {
    Ok(match args.pattern {
        Pattern::Cyclic => Order::Sequential,
        Pattern::Random => Order::Uniform,
        Pattern::Zipf => Order::Zipf { theta: args.theta },
        Pattern::Stride => {
            let page = page();
            let stride: Bytes = parsed("--stride", &args.stride)?;
            let part = size.0 / u64::from(args.threads.max(1));
            let places = u32::try_from(part / stride.0.max(1)).unwrap_or(u32::MAX);
            if places == 0 || !stride.0.is_multiple_of(page.0) {
                return Err(Usage(format!(
                    "--stride {stride} must be a multiple of {page} and less than a thread's part of --size"
                )));
            }
            Order::Strided { places, align: page }
        }
    })
}

impl crate::cli::Content {
    pub(super) fn entropy(self) -> Entropy {
        match self {
            crate::cli::Content::Zeros => Entropy::Zeros,
            crate::cli::Content::Half => Entropy::Compressible,
            crate::cli::Content::Random => Entropy::Incompressible,
        }
    }
}
