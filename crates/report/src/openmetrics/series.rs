//! What a load of Redis was like from second to second, under the names that `load redis --metrics` serves while it runs, with time
//! stamps: `promtool tsdb create-blocks-from openmetrics` makes a past of it that the same dashboard shows.

use basics::Nanos;
use basics::redis::{Mode, Served};
use exposition::load::{self, Cell, Requests};
use exposition::text::{Family, Kind};
use exposition::{kernel, redis};
use record::{Record, StepRecord};

/// Between two points: as often as the page is made new.
const EVERY: Nanos = Nanos(1_000_000_000);
/// Time stamps are told apart by so much.
const FINEST: Nanos = Nanos(1_000_000);
/// Linux counts processors' time in so many parts of a second for whoever reads it, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// The families of all steps that loaded a server; none of other runs.
pub(super) fn families(record: &Record) -> Vec<Family> {
    let mut all = Vec::new();
    // The visits to a cell add up, as they do on the page.
    let mut cells: Vec<Requests> = Vec::new();
    for step in &record.steps {
        let Some((served, mode)) = served(step) else { continue };
        let cell = Cell { mode: mode.name().to_owned(), medium: served.medium.clone(), payload: served.payload.0 };
        let place = cells.iter().position(|known| *known.cell() == cell).unwrap_or_else(|| {
            cells.push(Requests::of(cell));
            cells.len() - 1
        });
        let began = step.started + step.measured_from.unwrap_or_default();
        let intervals = record.intervals.iter().filter(|(index, _)| *index == step.index);
        let ends = intervals.clone().map(|(_, interval)| began + interval.end).collect::<Vec<_>>();
        for ((_, interval), told) in intervals.zip(told(&ends)) {
            cells[place].add(interval);
            if told {
                all.extend(load::families([&cells[place]]).into_iter().map(|family| family.at(began + interval.end)));
            }
        }
        let samples = record.samples.iter().filter(|(index, _)| *index == step.index);
        let times = samples.clone().map(|(_, sample)| step.started + sample.at).collect::<Vec<_>>();
        for ((_, sample), at) in
            samples.zip(&times).zip(told(&times)).filter_map(|(sample, told)| told.then_some(sample))
        {
            // A record holds the sum over all processors.
            let ticks: Vec<_> = sample.cpu_ticks.iter().map(|ticks| ("all".to_owned(), *ticks)).collect();
            all.extend(kernel::families(sample, &ticks, TICKS_PER_SECOND).into_iter().map(|family| family.at(*at)));
        }
        let end = ends.last().copied().unwrap_or(began);
        all.extend(of_server(served, mode).into_iter().map(|family| family.at(end)));
    }
    all
}

fn served(step: &StepRecord) -> Option<(&Served, Mode)> {
    let served = step.load.as_ref()?.redis.as_ref()?;
    Some((served, served.mode?))
}

/// Which of these moments are told: the last one, and those that are a second after the one before.
fn told(times: &[Nanos]) -> Vec<bool> {
    let mut before: Option<Nanos> = None;
    let is_last = |index| index + 1 == times.len();
    let mut one = |(index, at): (usize, &Nanos)| {
        let least = if is_last(index) { FINEST } else { EVERY };
        let told = before.is_none_or(|before| *at >= before + least);
        if told {
            before = Some(*at);
        }
        told
    };
    times.iter().enumerate().map(&mut one).collect()
}

/// What is kept of the server itself: as it stood when its load was over.
fn of_server(served: &Served, mode: Mode) -> Vec<Family> {
    let copied = match mode {
        Mode::Rdb => Some("rdb_last_cow_size"),
        Mode::AofRewrite => Some("aof_last_cow_size"),
        _ => None,
    };
    let mut fields = vec![
        ("total_forks", served.forks as f64),
        ("aof_delayed_fsync", served.delayed_fsyncs as f64),
        ("keyspace_hits", served.hits as f64),
        ("keyspace_misses", served.misses as f64),
    ];
    fields.extend(copied.map(|field| (field, served.copied.0 as f64)));
    let family = |(field, value)| Some(redis::family(field)?.with(vec![], value));
    let mut all: Vec<Family> = fields.into_iter().filter_map(family).collect();
    if let Some(fork) = served.last_fork {
        all.extend(redis::family("latest_fork_usec").map(|family| family.with(vec![], fork.secs())));
    }
    let labels = vec![("version", served.version.clone())];
    all.push(Family::new(Kind::Gauge, "tiermark_redis_info", "Which server it was.").with(labels, 1.0));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_a_second_and_the_last() {
        let times = |ms: &[u64]| ms.iter().map(|ms| Nanos(ms * 1_000_000)).collect::<Vec<_>>();
        assert_eq!(told(&times(&[0, 400, 1000, 1900, 2100, 2101])), [true, false, true, false, true, true]);
        assert_eq!(told(&times(&[0, 0])), [true, false]);
        assert_eq!(told(&[]), Vec::<bool>::new());
    }
}
