//! Reads the meters of all threads once an interval, hands the difference to the sink as one [`Interval`], adds it to the
//! totals and watches the confidence interval that a stop rule asks for.

use crate::Sink;
use crate::confidence::Series;
use crate::meter::{CHUNK, Histogram, Lane, Meter, Shape};
use basics::job::{Figure, Until};
use basics::{Interval, Latencies, Nanos, Side};
use std::sync::atomic::Ordering::Relaxed;
use sys::clock::Rate;

/// What was seen of one kind of histogram, all threads together, modulo 2^32.
struct Seen(Vec<u32>);

/// Sums meters, interval by interval.
pub(crate) struct Collector<'a> {
    meters: &'a [Meter],
    shape: Shape,
    /// Latencies are counted in ticks divided by this.
    per_tick: f64,
    seen: [Seen; 4],
    seen_bytes: [u64; 2],
    seen_untimed: [u64; 2],
    interval: Interval,
    pub(crate) read: Side,
    pub(crate) write: Side,
    until: Option<Until>,
    series: Series,
}

fn side(present: bool, open_loop: bool) -> Side {
    Side { service: (present && open_loop).then(Latencies::new), ..Side::default() }
}

/// Adds to `interval` and `total` what the `pick`ed histograms of all threads counted since `seen`.
fn difference<'a>(
    meters: &'a [Meter],
    shape: Shape,
    pick: impl Fn(&'a Meter) -> Option<&'a Histogram>,
    nanos: impl Fn(f64) -> f64,
    seen: &mut Seen,
    [interval, total]: [&mut Latencies; 2],
) {
    for chunk in 0..shape.buckets().div_ceil(CHUNK) {
        if !meters.iter().filter_map(&pick).any(|h| h.is_touched(chunk)) {
            continue;
        }
        for index in chunk * CHUNK..((chunk + 1) * CHUNK).min(shape.buckets()) {
            let now = meters.iter().filter_map(&pick).fold(0u32, |sum, h| sum.wrapping_add(h.count(index)));
            let new = now.wrapping_sub(seen.0[index]);
            if new > 0 {
                seen.0[index] = now;
                let latency = Nanos(nanos(shape.middle(index)).round() as u64);
                interval.record_n(latency, u64::from(new));
                total.record_n(latency, u64::from(new));
            }
        }
    }
}

impl<'a> Collector<'a> {
    pub(crate) fn new(meters: &'a [Meter], shape: Shape, per_tick: f64, until: Option<Until>) -> Self {
        let first = meters.first();
        let reads = first.is_some_and(|m| m.read.is_some());
        let writes = first.is_some_and(|m| m.write.is_some());
        let lanes = |m: &'a Meter| m.read.iter().chain(&m.write).any(|l| l.service.is_some());
        let open_loop = first.is_some_and(lanes);
        let seen = |present: bool| Seen(vec![0; if present { shape.buckets() } else { 0 }]);
        Collector {
            meters,
            shape,
            per_tick,
            seen: [seen(reads), seen(reads && open_loop), seen(writes), seen(writes && open_loop)],
            seen_bytes: [0; 2],
            seen_untimed: [0; 2],
            interval: Interval { read: side(reads, open_loop), write: side(writes, open_loop), ..Interval::default() },
            read: side(reads, open_loop),
            write: side(writes, open_loop),
            until,
            series: Series::new(),
        }
    }

    /// Ends the interval at `end` (since the measurement began) and hands it on. True when the figure asked for is known
    /// well enough.
    pub(crate) fn cut(&mut self, end: Nanos, rate: Rate, sink: &mut dyn Sink) -> bool {
        let interval = &mut self.interval;
        interval.start = interval.end;
        interval.end = end.max(interval.start);
        interval.read.clear();
        interval.write.clear();
        interval.position = self.meters.first().map_or(0, |m| m.position.load(Relaxed));
        let nanos = |units: f64| rate.nanos(units / self.per_tick);
        let [read, read_service, write, write_service] = &mut self.seen;
        type Pick = for<'m> fn(&'m Meter) -> Option<&'m Lane>;
        let directions: [(Pick, _, _, _, _, _); 2] = [
            (|m| m.read.as_ref(), read, read_service, &mut interval.read, &mut self.read, 0),
            (|m| m.write.as_ref(), write, write_service, &mut interval.write, &mut self.write, 1),
        ];
        for (lane, seen, seen_service, part, total, which) in directions {
            let pick = |m: &'a Meter| lane(m).map(|l| &l.latency);
            if !seen.0.is_empty() {
                difference(self.meters, self.shape, pick, nanos, seen, [&mut part.latency, &mut total.latency]);
            }
            if let (Some(now), Some(all)) = (&mut part.service, &mut total.service) {
                let pick = |m: &'a Meter| lane(m).and_then(|l| l.service.as_ref());
                difference(self.meters, self.shape, pick, nanos, seen_service, [now, all]);
            }
            let bytes: u64 = self.meters.iter().filter_map(lane).map(|l| l.bytes.load(Relaxed)).sum();
            part.bytes = bytes - self.seen_bytes[which];
            total.bytes = bytes;
            self.seen_bytes[which] = bytes;
            let untimed: u64 = self.meters.iter().filter_map(lane).map(|l| l.untimed.load(Relaxed)).sum();
            part.untimed = untimed - self.seen_untimed[which];
            total.untimed = untimed;
            self.seen_untimed[which] = untimed;
        }
        let is_empty = self.interval.read.bytes + self.interval.write.bytes == 0;
        // The last look may come when the last interval has just been cut, with nothing left to tell.
        if self.interval.end > self.interval.start || !is_empty {
            sink.interval(&self.interval);
        }
        self.is_known()
    }

    /// Where the last interval ended.
    pub(crate) fn end(&self) -> Nanos {
        self.interval.end
    }

    /// Adds the interval to the series; true when the stop rule is satisfied.
    fn is_known(&mut self) -> bool {
        let Some(until) = self.until else { return false };
        let Some(value) = figure_of(&self.interval, until.figure) else { return false };
        self.series.is_known(value, until.percent) && self.interval.end >= until.at_least
    }
}

/// The figure of a stop rule in one interval; nothing when an interval without width or without operations says nothing
/// about it.
pub(crate) fn figure_of(interval: &Interval, figure: Figure) -> Option<f64> {
    let (read, write) = (&interval.read, &interval.write);
    let operations = (read.operations() + write.operations()) as f64;
    let width = (interval.end - interval.start).secs();
    match figure {
        Figure::Iops if width > 0.0 => Some(operations / width),
        Figure::MeanLatency if operations > 0.0 => {
            let sum = |side: &Side| side.latency.mean().map_or(0.0, |m| m.0 as f64) * side.operations() as f64;
            Some((sum(read) + sum(write)) / operations)
        }
        _ => None,
    }
}
