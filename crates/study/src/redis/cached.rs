//! A cache of vectors as a table: a row for each way to store them and each place where those are that the cache has not; and from
//! which share of hits on a cache pays at all.

use crate::load::unmeasured;
use crate::model::RunView;
use basics::stats::median;
use basics::units::significant;
use basics::vectors::{Cached, Cold, Format};
use basics::{Bytes, Known, Latencies, Nanos, Why};

/// One way to store vectors, with one place for those that the cache has not. Figures are medians of the visits.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorRow {
    /// How they are stored.
    pub format: Format,
    /// Where the others are: the medium of a file, or how far off a server.
    pub place: String,
    /// A vector, as it is stored.
    pub bytes: Bytes,
    /// What the server needs for one.
    pub per_vector: Known<f64>,
    /// Part of the ten nearest that is found by what is stored.
    pub recall: Known<f64>,
    /// Vectors that the cache has room for, of so many.
    pub hot: (u64, u64),
    /// Vectors that it had at the end.
    pub kept: Known<f64>,
    /// Requests of a hundred that it answered.
    pub hit_percent: Known<f64>,
    /// Requests a second.
    pub ops_per_s: Known<f64>,
    /// Of all requests, µs: median, 95th and 99th percentile.
    pub lat_us: Known<(f64, f64, f64)>,
    /// Medians, µs: of a hit, of a miss, and of fetching alone.
    pub hit_us: Known<f64>,
    /// The same.
    pub miss_us: Known<f64>,
    /// The same.
    pub fetch_us: Known<f64>,
    /// Hits of a hundred from which on asking the cache first takes less time, in the mean, than fetching each vector.
    pub break_even_percent: Known<f64>,
    /// After the model was replaced in the middle, where it was: until the hits were back, s.
    pub back_s: Option<Known<f64>>,
    /// Median and 95th percentile in the second after it, µs.
    pub after_us: Option<(f64, f64)>,
    /// Visits that came to their end.
    pub visits: usize,
    /// What it means.
    pub why: String,
}

/// What one visit gives.
struct Visit<'a> {
    ops: f64,
    all: Latencies,
    cached: &'a Cached,
}

/// The rows of a run, in the order of its plan; none where no cache of vectors was asked.
pub fn vector_rows(run: &RunView<'_>) -> Vec<VectorRow> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    let of_it = |step: &&crate::model::StepView<'_>| step.name.starts_with(PREFIX);
    for step in run.steps.iter().filter(of_it) {
        let name = (step.name, step.tier.unwrap_or_default());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
        .into_iter()
        .filter_map(|(name, place)| {
            let steps: Vec<_> =
                run.steps.iter().filter(|step| (step.name, step.tier.unwrap_or_default()) == (name, place)).collect();
            let visits: Vec<Visit<'_>> = steps
                .iter()
                .filter(|step| step.is_whole())
                .filter_map(|step| {
                    let cached = step.load?.redis.as_deref()?.cached.as_deref()?;
                    let ops = step.read.operations() as f64 / step.elapsed.secs();
                    ops.is_finite().then(|| Visit { ops, all: step.read.latency.clone(), cached })
                })
                .collect();
            let format = name.strip_prefix(PREFIX)?.parse().ok()?;
            let failed = steps.iter().find_map(|step| step.failed).map(|(_, why)| why.to_owned());
            Some(row(format, place, &visits, failed.unwrap_or_else(|| unmeasured(&steps).to_owned())))
        })
        .collect()
}

/// Steps of a cache are called so, and then by their format.
pub const PREFIX: &str = "vectors ";

fn row(format: Format, place: &str, visits: &[Visit<'_>], lack: String) -> VectorRow {
    let middle = |pick: &dyn Fn(&Visit<'_>) -> Option<f64>| {
        let all: Vec<f64> = visits.iter().filter_map(pick).collect();
        median(&all).map_or_else(|| Known::Unknown(Why::NotMeasured(lack.clone())), Known::Is)
    };
    let of = |latencies: &Latencies, percent: f64| latencies.percentile(percent).map(Nanos::us);
    let all = |percent: f64| middle(&|visit| of(&visit.all, percent));
    let lat_us = match (all(50.0), all(95.0), all(99.0)) {
        (Known::Is(p50), Known::Is(p95), Known::Is(p99)) => Known::Is((p50, p95, p99)),
        (Known::Unknown(why), ..) | (_, Known::Unknown(why), _) | (.., Known::Unknown(why)) => Known::Unknown(why),
    };
    let plan = visits.iter().find_map(|visit| visit.cached.plan.as_ref());
    let replaced = plan.is_some_and(|plan| plan.refill.is_some());
    let back = || {
        let back = middle(&|visit| Some(visit.cached.back?.secs()));
        if back.get().is_some() { back } else { Known::not_measured("not before the end") }
    };
    let after = |pick: fn(&(Nanos, Nanos)) -> Nanos| middle(&|visit| Some(pick(visit.cached.after.as_ref()?).us()));
    let mut row = VectorRow {
        format,
        place: place.to_owned(),
        bytes: plan.map_or(Bytes(0), |plan| format.bytes(plan.source.dim())),
        per_vector: middle(&|visit| visit.cached.per_vector),
        recall: middle(&|visit| visit.cached.recall),
        hot: plan.map_or((0, 0), |plan| (plan.hot, plan.source.count())),
        kept: middle(&|visit| Some(visit.cached.kept as f64)),
        hit_percent: middle(&|visit| share(visit.cached)),
        ops_per_s: middle(&|visit| Some(visit.ops)),
        lat_us,
        hit_us: middle(&|visit| of(&visit.cached.hits, 50.0)),
        miss_us: middle(&|visit| of(&visit.cached.misses, 50.0)),
        fetch_us: middle(&|visit| of(&visit.cached.fetched, 50.0)),
        break_even_percent: break_even(visits),
        back_s: replaced.then(back),
        after_us: after(|after| after.0).get().copied().zip(after(|after| after.1).get().copied()),
        visits: visits.len(),
        why: lack,
    };
    if !visits.is_empty() {
        row.why = why(&row, visits, plan.and_then(|plan| plan.compute), plan.map(|plan| plan.cold));
    }
    row
}

/// Hits of a hundred requests, as long as the model was the first one.
fn share(cached: &Cached) -> Option<f64> {
    let (hits, misses) = (cached.hits.count() as f64, cached.misses.count() as f64);
    (hits + misses > 0.0).then(|| 100.0 * hits / (hits + misses))
}

/// Means of a hit, a miss and a fetch, over all visits, µs.
fn means(visits: &[Visit<'_>]) -> Option<(f64, f64, f64)> {
    let of = |pick: fn(&Cached) -> &Latencies| {
        let mut all = Latencies::new();
        visits.iter().for_each(|visit| all.merge(pick(visit.cached)));
        all.mean().map(Nanos::us)
    };
    Some((of(|c| &c.hits)?, of(|c| &c.misses)?, of(|c| &c.fetched)?))
}

/// Of h hits of one request, with hit, miss and fetch as they take in the mean: h·hit + (1 − h)·miss = fetch.
fn break_even(visits: &[Visit<'_>]) -> Known<f64> {
    let Some((hit, miss, fetch)) = means(visits) else {
        return Known::not_measured("hits and misses were not both seen");
    };
    if hit >= fetch {
        return Known::not_measured("fetching is as fast as a hit");
    }
    Known::Is((100.0 * (miss - fetch) / (miss - hit)).clamp(0.0, 100.0))
}

fn why(row: &VectorRow, visits: &[Visit<'_>], compute: Option<Nanos>, cold: Option<Cold>) -> String {
    let mut parts = Vec::new();
    let us = |us: f64| Nanos((us * 1000.0) as u64);
    let from = if matches!(cold, Some(Cold::Remote(_))) { "from the server far away" } else { "from the medium" };
    if let Some((hit, miss, fetch)) = means(visits) {
        let share = row.hit_percent.get().copied().unwrap_or(0.0) / 100.0;
        let mean = share * hit + (1.0 - share) * miss;
        match row.break_even_percent.get() {
            None => parts.push(format!(
                "no cache is needed: fetching a vector {from} takes {}, a hit {}",
                us(fetch),
                us(hit)
            )),
            Some(even) => parts.push(format!(
                "a request takes {} in the mean, fetching each vector {from} {}: the cache pays from {} % of hits on, and has {} %",
                us(mean),
                us(fetch),
                significant(*even),
                significant(100.0 * share)
            )),
        }
        if let Some(compute) = compute {
            parts.push(format!(
                "computing one anew takes {compute}, {} times as long as fetching it",
                significant(compute.us() / fetch.max(1e-3))
            ));
        }
    }
    if let Some(per_vector) = row.per_vector.get() {
        let overhead = per_vector - row.bytes.0 as f64;
        parts.push(format!(
            "of {} that the server needs for a vector {} are its key and its own books",
            Bytes(*per_vector as u64),
            Bytes(overhead.max(0.0) as u64)
        ));
    }
    match (&row.back_s, row.after_us) {
        (Some(Known::Is(back)), after) => {
            let slow = after.map_or_else(String::new, |(p50, p95)| {
                format!(" (p50 {}, p95 {} in the second after it)", us(p50), us(p95))
            });
            parts.push(format!("after the model was replaced its hits were back in {} s{slow}", significant(*back)));
        }
        (Some(Known::Unknown(_)), _) => {
            parts.push("after the model was replaced its hits were not back before the end".to_owned());
        }
        (None, _) => {}
    }
    parts.join("; ")
}

/// The answer in a sentence.
pub fn vectors_headline(rows: &[VectorRow]) -> Option<String> {
    let whole = rows.iter().find(|row| row.format == Format::F32)?;
    let best = rows.iter().filter(|row| row.format != Format::F32 && row.place == whole.place);
    let said: Vec<String> = best
        .filter_map(|row| {
            let times = whole.per_vector.get()? / row.per_vector.get()?;
            let recall = 100.0 * row.recall.get()?;
            Some(format!(
                "{} holds {} times as many and finds {} %",
                row.format,
                significant(times),
                significant(recall)
            ))
        })
        .collect();
    (!said.is_empty()).then(|| format!("In the same memory {} of the ten nearest.", said.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::Job;
    use basics::job::Engine;
    use basics::pressure::Load;
    use basics::redis::Served;
    use basics::vectors::{Cache, Refill, Source};

    fn visit(format: Format, (hit, miss, fetch): (u64, u64, u64), per_vector: f64, recall: f64) -> Step {
        let mut step = Step::new(&format!("{PREFIX}{format}"), "sd", Job { engine: Engine::Resp, ..Job::default() });
        let mut cached = Cached {
            plan: Some(Cache {
                source: Source::MadeUp { count: 1000, dim: 384, groups: 1, spread: 1, seed: 1 },
                format,
                hot: 100,
                cold: Cold::File,
                refill: Some(Refill::Prefetch),
                compute: Some(Nanos::from_millis(20)),
            }),
            per_vector: Some(per_vector),
            recall: Some(recall),
            back: Some(Nanos::from_millis(700)),
            ..Cached::default()
        };
        cached.hits.record_n(Nanos(hit * 1000), 800);
        cached.misses.record_n(Nanos(miss * 1000), 200);
        cached.fetched.record_n(Nanos(fetch * 1000), 200);
        step.read.latency.record_n(Nanos(hit * 1000), 800);
        step.read.latency.record_n(Nanos(miss * 1000), 200);
        step.elapsed = Nanos::from_millis(1000);
        let served = Served { cached: Some(Box::new(cached)), ..Served::default() };
        step.load = Some(Load { redis: Some(Box::new(served)), ..Load::default() });
        step
    }

    #[test]
    fn a_row_says_when_a_cache_pays() {
        let steps = [
            visit(Format::F32, (100, 1100, 900), 1700.0, 1.0),
            visit(Format::Int8, (100, 1100, 900), 550.0, 0.97),
            visit(Format::Int4, (100, 160, 40), 350.0, 0.8),
        ];
        let rows = vector_rows(&Run::default().steps(steps).view());
        assert_eq!(rows.len(), 3);
        // 0.2 h·100 + 0.8·1100 = 900 at h = 20 %.
        let even = rows[0].break_even_percent.get().unwrap();
        assert!((even - 20.0).abs() < 0.5, "{even}");
        assert_eq!((rows[0].bytes, rows[0].hot, rows[0].visits), (Bytes(1536), (100, 1000), 1));
        assert_eq!((rows[0].ops_per_s.get(), rows[0].hit_percent.get()), (Some(&1000.0), Some(&80.0)));
        assert!(rows[0].why.contains("pays from 20.0 % of hits on, and has 80 %"), "{}", rows[0].why);
        assert!(rows[0].why.contains("22.2 times as long") && rows[0].why.contains("back in 0.7"), "{}", rows[0].why);
        assert!(rows[2].why.starts_with("no cache is needed"), "{}", rows[2].why);
        assert_eq!(
            vectors_headline(&rows).unwrap(),
            "In the same memory int8 holds 3.09 times as many and finds 97 %, int4 holds 4.86 times as many and finds 80 % of the ten nearest."
        );
    }

    #[test]
    fn what_failed_says_why() {
        let failed = visit(Format::F32, (1, 1, 1), 1.0, 1.0).failed(basics::FailKind::Other, "no room");
        let rows = vector_rows(&Run::default().steps([failed]).view());
        assert!(rows[0].ops_per_s.get().is_none() && rows[0].why == "no room", "{rows:?}");
    }
}
