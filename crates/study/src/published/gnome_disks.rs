//! The three figures of GNOME Disks, and whether the rate is the same all over the device. Rates are the arithmetic mean of the
//! samples' own rates, as the program computes them; the first access time is left out.

use crate::model::{RunView, StepView};
use basics::stats::median;
use basics::{Bytes, Each};
use serde::Serialize;

/// What the window of GNOME Disks shows, and the places that are slow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GnomeDisks {
    /// MB/s (10^6).
    #[serde(rename = "read_MBps", skip_serializing_if = "Option::is_none")]
    pub read_mbps: Option<f64>,
    /// MB/s (10^6).
    #[serde(rename = "write_MBps", skip_serializing_if = "Option::is_none")]
    pub write_mbps: Option<f64>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_ms: Option<f64>,
    /// No slow zone. Unknown with fewer than 20 samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<bool>,
    /// Stretches of the device where the rate stays below three quarters of the median.
    pub slow_zones: Vec<Zone>,
}

/// A stretch of the device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Zone {
    /// `read` or `write`.
    pub rw: &'static str,
    /// Share of the device, 0 to 1.
    pub from: f64,
    /// Share of the device, 0 to 1.
    pub to: f64,
    /// Mean rate there, MB/s.
    #[serde(rename = "MBps")]
    pub mbps: f64,
}

/// A place is slow below this share of the median: random samples of a steady disk scatter by a tenth or so.
const SLOW: f64 = 0.75;
/// So many slow samples in a row are a place and not a hiccup.
const ROW: usize = 3;
/// Fewer samples say nothing of places.
const ENOUGH: usize = 20;

pub(super) fn figures(run: &RunView<'_>) -> GnomeDisks {
    let step = |name: &str| run.steps.iter().find(|step| step.name == name && step.is_whole());
    let (read, write) = (step("read"), step("write"));
    let access = step("access").and_then(|step| mean(step.each.iter().skip(1).map(|each| each.latency.us() / 1e3)));
    let of = |step: Option<&StepView<'_>>| step.and_then(|step| mean(step.each.iter().map(rate)));
    let sides = [("read", read), ("write", write)];
    let slow_zones: Vec<Zone> =
        sides.into_iter().filter_map(|(rw, step)| Some(zones(rw, step?.each))).flatten().collect();
    let enough = sides.iter().any(|(_, step)| step.is_some_and(|step| step.each.len() >= ENOUGH));
    GnomeDisks {
        read_mbps: of(read),
        write_mbps: of(write),
        access_ms: access,
        stable: enough.then_some(slow_zones.is_empty()),
        slow_zones,
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

fn rate(each: &Each) -> f64 {
    Bytes(each.len.0).mbps(each.latency)
}

fn zones(rw: &'static str, each: &[Each]) -> Vec<Zone> {
    let rates: Vec<f64> = each.iter().map(rate).collect();
    let Some(typical) = median(&rates).filter(|_| rates.len() >= ENOUGH) else { return Vec::new() };
    let places = rates.len() as f64;
    let mut zones = Vec::new();
    let mut from = 0;
    for at in 0..=rates.len() {
        if rates.get(at).is_some_and(|rate| *rate < SLOW * typical) {
            continue;
        }
        if at - from >= ROW {
            let rates = &rates[from..at];
            let mbps = rates.iter().sum::<f64>() / rates.len() as f64;
            zones.push(Zone { rw, from: from as f64 / places, to: at as f64 / places, mbps });
        }
        from = at + 1;
    }
    zones
}

impl GnomeDisks {
    pub(super) fn lines(&self) -> Vec<String> {
        let rate = |word: &str, rate: Option<f64>| rate.map(|rate| format!("Average {word} rate: {rate:.1} MB/s"));
        let access = self.access_ms.map(|ms| format!("Average access time: {ms:.2} ms"));
        let stable = self
            .stable
            .map(|stable| if stable { "Stable over the device".to_owned() } else { "Not stable:".to_owned() });
        let zone = |zone: &Zone| {
            let Zone { rw, from, to, mbps } = zone;
            format!("  {rw}s from {:.0} to {:.0} % of the device: {mbps:.1} MB/s", 100.0 * from, 100.0 * to)
        };
        let figures = [rate("read", self.read_mbps), rate("write", self.write_mbps), access, stable];
        figures.into_iter().flatten().chain(self.slow_zones.iter().map(zone)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::Nanos;

    fn series(ms: &[u64]) -> Vec<Each> {
        let each = |(i, ms): (usize, &u64)| Each {
            offset: Bytes(i as u64 * 100_000_000),
            len: Bytes(10_000_000),
            read: true,
            at: Nanos(0),
            latency: Nanos::from_millis(*ms),
            waited: Nanos(0),
        };
        ms.iter().enumerate().map(each).collect()
    }

    /// By hand: 10 MB in 500, 250 and 1000 ms are 20, 40 and 10 MB/s; their arithmetic mean is 23.3, though 30 MB in 1750 ms
    /// are 17.1.
    #[test]
    fn the_rate_is_the_mean_of_rates() {
        let each = series(&[500, 250, 1000]);
        let mean = mean(each.iter().map(rate)).unwrap();
        assert!((mean - 70.0 / 3.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn both_slow_ends_are_places_and_a_hiccup_is_none() {
        let mut ms = vec![450; 100];
        ms[..5].fill(900);
        ms[95..].fill(900);
        ms[50] = 2000;
        let zones = zones("read", &series(&ms));
        let places: Vec<_> = zones.iter().map(|zone| (zone.from, zone.to)).collect();
        assert_eq!(places, [(0.0, 0.05), (0.95, 1.0)]);
        assert!((zones[0].mbps - 11.1).abs() < 0.1);
        assert!(super::zones("read", &series(&[450; 100])).is_empty());
    }
}
