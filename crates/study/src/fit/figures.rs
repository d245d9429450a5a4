//! A profile from figures alone, without a run: rates and means at some depths, as a review states them. They show neither how
//! latencies spread nor what changes over time; the spread is tried from narrow to wide, the rest is named as unseen.

use super::{FitError, Fitted, fitted};
use crate::little;
use crate::model::{Origin, RunView, State, StepView};
use basics::{Job, Nanos, Side};
use machine::Machine;
use profile::Figures;
use profile::figures::{Flow, Whole};
use profile::format::{Alternative, Confidence};

/// Operations that a row stands for: so many that chance is less than what digits are published.
const OPERATIONS: f64 = 100_000.0;
/// Standard deviations of the logarithm of a latency that are tried where no percentile is given: as constant as a link, as
/// most media, as widely as the writes of SD cards (1.1 in the published swap table).
const NARROW: f64 = 0.05;
const USUAL: f64 = 0.5;
const WIDE: f64 = 1.1;
/// How far off a percentile that somebody published may take the spread.
const PUBLISHED: f64 = 0.2;
/// What a log-normal law has below its 99th percentile, in standard deviations.
const P99: f64 = 2.326;
/// What only a series or a percentile could show.
const OVER_TIME: [&str; 5] = ["stall", "cache", "slowdown", "zone", "flush"];

/// Fits a profile to quoted figures. Rate and latency of a row that do not sum to its depth are marked as inconsistent.
///
/// # Errors
/// [`FitError::Nonsense`] for rows that make no sense, [`FitError::Nothing`] for none that says anything.
pub fn of_figures(figures: &Figures) -> Result<Fitted, FitError> {
    let rows = figures.whole().map_err(|error| FitError::Nonsense(error.to_string()))?;
    let steps: Vec<Quoted> = rows.iter().map(Quoted::new).collect();
    let machine = Machine::default();
    let views = steps.iter().zip(0..).map(|(step, index)| step.view(index)).collect();
    let run = RunView {
        id: &figures.name,
        state: State::Done,
        origin: Origin::Quoted(&figures.source),
        machine: &machine,
        harness_ns_per_op: None,
        method: "job",
        as_published: false,
        scale: None,
        rounds: None,
        parameters: const { &std::collections::BTreeMap::new() },
        steps: views,
        left_out: &[],
        quoted: None,
    };
    let marks = little::marks(&run);
    let runs = [run];
    let [read, write] = [true, false].map(|is_read| sigmas(&rows, is_read));
    let [low, usual, high] = [0, 1, 2].map(|i: usize| fitted(&figures.name, &runs, Some([read[i], write[i]])));
    let Fitted { mut profile, mut sources } = usual?;
    for other in [low?, high?] {
        profile.alternatives.push(Alternative { channels: other.profile.channels, link: other.profile.link });
        profile.alternatives.extend(other.profile.alternatives);
        for (field, is) in other.profile.confidence {
            let known = profile.confidence.entry(field).or_insert(is);
            *known = Confidence { low: known.low.min(is.low), high: known.high.max(is.high) };
        }
    }
    let own = Alternative { channels: profile.channels, link: profile.link };
    let mut kept: Vec<Alternative> = Vec::new();
    for other in profile.alternatives {
        if other != own && !kept.contains(&other) {
            kept.push(other);
        }
    }
    profile.alternatives = kept;
    for (name, side, tried) in [("read", &profile.read, read), ("write", &profile.write, write)] {
        let Some(side) = side else { continue };
        let both = [(name.to_owned(), true), (format!("{name}.sequential"), side.sequential.is_some())];
        for (field, _) in both.into_iter().filter(|(_, is)| *is) {
            let key = format!("{field}.latency_us.sigma");
            profile.confidence.insert(key.clone(), Confidence { low: tried[0], high: tried[2] });
            sources.insert(key, if tried[0] == NARROW { "assumed" } else { "p99 over mean" }.to_owned());
        }
    }
    profile.title.clone_from(&figures.title);
    profile.source = format!("fitted to {} quoted figures: {}", rows.len(), figures.source);
    profile.inconsistent = marks;
    profile.unseen.retain(|said| !OVER_TIME.iter().any(|field| said.starts_with(field)));
    let of = |field| format!("{field}: means of steady figures do not show it");
    profile.unseen.extend(OVER_TIME.iter().map(of));
    for (name, tried) in [("read", read), ("write", write)] {
        if tried[0] == NARROW {
            profile.unseen.push(format!(
                "{name}.latency_us: how far it spreads, for no p99 is given at depth 1: a sigma of {NARROW} to {WIDE} is allowed for"
            ));
        }
    }
    profile.check().map_err(|error| FitError::Nonsense(error.to_string()))?;
    Ok(Fitted { profile, sources })
}

/// Narrow, usual and wide: from the percentile of the row with the least depth, or for any device.
fn sigmas(rows: &[Whole], is_read: bool) -> [f64; 3] {
    let side = |row: &Whole| if is_read { row.read } else { row.write };
    let ratio = |row: &Whole| side(row).and_then(|flow| Some(flow.p99_us? / flow.mean_us));
    let alone = rows.iter().filter(|row| row.depth * row.threads == 1).filter_map(ratio);
    let Some(ratio) = alone.reduce(f64::max) else { return [NARROW, USUAL, WIDE] };
    // ln(p99 / mean) = 2.326 σ − σ² / 2 rises up to σ = 2.3; what lies beyond is a tail that no log-normal law has.
    let log = ratio.max(1.0).ln();
    let sigma = P99 - (P99 * P99 - 2.0 * log).max(0.0).sqrt();
    [(sigma * (1.0 - PUBLISHED)).max(0.01), sigma.max(0.02), (sigma * (1.0 + PUBLISHED)).max(0.05)]
}

/// A row as a step.
struct Quoted {
    label: String,
    job: Job,
    elapsed: Nanos,
    read: Side,
    write: Side,
}

impl Quoted {
    fn new(row: &Whole) -> Self {
        let rate: f64 = [row.read, row.write].into_iter().flatten().map(|flow| flow.iops).sum();
        let seconds = OPERATIONS / rate;
        let side = |flow: Option<Flow>| {
            let mut side = Side::default();
            if let Some(flow) = flow {
                let count = (flow.iops * seconds).round() as u64;
                side.latency.record_n(Nanos((flow.mean_us * 1e3).round() as u64), count);
                side.bytes = count * row.size.0;
            }
            side
        };
        let job = Job {
            direction: row.direction,
            order: row.order,
            block: basics::job::Block::Fixed(row.size),
            depth: row.depth,
            threads: row.threads,
            ..Job::default()
        };
        let elapsed = Nanos::from_secs(seconds);
        Quoted { label: row.label.clone(), job, elapsed, read: side(row.read), write: side(row.write) }
    }

    fn view(&self, index: u32) -> StepView<'_> {
        StepView {
            index,
            name: &self.label,
            tier: None,
            target: "quoted",
            job: &self.job,
            region: None,
            engine: None,
            state: State::Done,
            elapsed: self.elapsed,
            read: &self.read,
            write: &self.write,
            cpu: None,
            failed: None,
            not_run: None,
            each: &[],
            load: None,
            notes: &[],
            intervals: Vec::new(),
            samples: Vec::new(),
            before: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(rows: &str) -> Result<Fitted, FitError> {
        let text = format!("name = \"x\"\nsource = \"a review\"\n{rows}");
        of_figures(&Figures::parse(&text).unwrap())
    }
    const ALONE: &str = "[[row]]\nrw = \"randread\"\nbs = \"4KiB\"\nread_lat_us = 100\n";

    #[test]
    fn a_mean_and_a_saturated_rate_are_a_device_with_channels_or_a_link() {
        let deep = "[[row]]\nrw = \"randread\"\nbs = \"4KiB\"\ndepth = 128\nread_iops = 80000\n";
        let found = fit(&format!("{ALONE}{deep}")).unwrap().profile;
        assert!(found.inconsistent.is_empty(), "{:?}", found.inconsistent);
        let structures = std::iter::once(found.channels).chain(found.alternatives.iter().map(|a| a.channels));
        let structures: Vec<Option<u32>> = structures.collect();
        assert!(structures.contains(&Some(8)) && structures.contains(&None), "{structures:?}");
        assert!(found.source.contains("2 quoted figures: a review"), "{}", found.source);
        assert_eq!(found.confidence["read.latency_us.sigma"], Confidence { low: NARROW, high: WIDE });
        for field in OVER_TIME {
            let said: Vec<_> = found.unseen.iter().filter(|said| said.starts_with(field)).collect();
            assert_eq!(said.len(), 1, "{said:?}");
        }
        assert_eq!(profile::Profile::parse(&found.to_toml().unwrap()).unwrap(), found);
    }

    #[test]
    fn a_p99_tells_the_spread_and_contradictions_are_marked() {
        let tight = ALONE.replace("= 100", "= { mean = 100, p99 = 193.2 }");
        let found = fit(&tight).unwrap().profile;
        let Confidence { low, high } = found.confidence["read.latency_us.sigma"];
        assert!((low - 0.24).abs() < 0.01 && (high - 0.36).abs() < 0.01, "{low} {high}");
        // fio's clat at depth 4: IOPS × latency is 3.
        let clat = "[[row]]\nrw = \"randread\"\nbs = \"4KiB\"\ndepth = 4\nread_iops = 10000\nread_lat_us = 300\n";
        let marked = fit(&format!("{ALONE}{clat}")).unwrap().profile.inconsistent;
        assert!(marked[0].contains("sums to 3.00, not to the depth of 4"), "{marked:?}");
    }

    #[test]
    fn rows_without_sense_are_refused() {
        assert_eq!(fit("row = []"), Err(FitError::Nothing));
        let told = fit("[[row]]\nrw = \"read\"\nbs = \"1k\"").unwrap_err().to_string();
        assert!(told.contains("row 1: neither a rate"), "{told}");
    }
}
