//! A probe out of the run that made it.

use super::{Backing, Probe, ProbePoint};
use crate::model::{RunView, StepView};
use crate::tokens::Visit;
use basics::{Bytes, Known};

/// What a run of the method `probe` says of one of its tiers; none when it did not multiply anything. `own` is what its process
/// needed of a limit for itself.
pub fn probe_of(run: &RunView<'_>, tier: &str, own: Bytes) -> Option<Probe> {
    let seen: Vec<(&StepView<'_>, Visit, f64)> = run
        .steps
        .iter()
        .filter(|step| step.is_whole())
        .filter_map(|step| {
            let (load, generated) = (step.load?, step.load?.generated.as_deref()?);
            Some((step, Visit::of(step, load, generated)?, generated.touched?.0 as f64))
        })
        .collect();
    let in_memory = || seen.iter().filter(|(step, _, _)| step.tier == Some("none"));
    let multiply: Vec<f64> = in_memory().map(|(_, visit, touched)| touched * visit.tps / 1e6).collect();
    let fastest = multiply.iter().copied().fold(0.0, f64::max);
    if fastest <= 0.0 {
        return None;
    }
    let on_tier = || seen.iter().filter(|(step, _, _)| step.tier == Some(tier));
    let points = on_tier().filter_map(|(step, visit, touched)| {
        let load = step.load?;
        let left = load.left?.0.saturating_sub(own.0) as f64;
        let read = visit.read?;
        // What multiplying takes is not what reading takes: a prediction adds the two again.
        let reading = 1.0 / visit.tps - touched / (fastest * 1e6);
        let mbps = read / 1e6 / reading;
        let rate = reading > 0.0 && read > 0.0;
        Some(ProbePoint {
            kept: (left / touched).min(1.0),
            missed: read / touched,
            mbps: if rate { Known::Is(mbps) } else { Known::not_measured("nothing was brought in") },
        })
    });
    let points: Vec<ProbePoint> = points.collect();
    let generated = on_tier().find_map(|(step, _, _)| step.load?.generated.as_deref());
    let size = on_tier().map(|(_, _, touched)| *touched).fold(0.0, f64::max);
    Some(Probe {
        points,
        size: Bytes(size as u64),
        backing: if generated.is_some_and(|all| all.mapped) { Backing::File } else { Backing::Anonymous },
        threads: in_memory().find_map(|(step, _, _)| Some(step.load?.generated.as_deref()?.threads))?,
        multiply_mbps: multiply,
        available: Known::not_measured("a limit was given"),
        // Both are taken from the same scan, so that what overlaps there overlaps in what is predicted.
        overlap: Known::Is(0.0),
    })
}
