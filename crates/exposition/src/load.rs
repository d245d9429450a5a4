//! What only the load generator knows: how long its clients waited, by command and by cell of the table.

use crate::text::{Family, Kind, Labels, Value};
use basics::{Interval, Latencies, Side};

/// Upper bounds in seconds; a quantile read off them is wrong by a fifth at most.
pub const BOUNDS: [f64; 37] = [
    1e-5, 1.5e-5, 2e-5, 3e-5, 5e-5, 7e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4, 7e-4, 1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 7e-3,
    1e-2, 1.5e-2, 2e-2, 3e-2, 5e-2, 7e-2, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0,
];

/// A cell of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// How the server keeps its data.
    pub mode: String,
    /// Where.
    pub medium: String,
    /// Length of a value.
    pub payload: u64,
}

impl Cell {
    /// As labels, with some more.
    pub fn labels(&self, more: &[(&'static str, &str)]) -> Labels {
        let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let own = [("mode", self.mode.clone()), ("medium", self.medium.clone()), ("payload", self.payload.to_string())];
        own.into_iter().chain(more).collect()
    }
}

/// Counts between the bounds.
#[derive(Debug, Clone, PartialEq)]
struct Counts {
    filled: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl Counts {
    const NONE: Counts = Counts { filled: [0; BOUNDS.len() + 1], sum: 0.0 };

    fn add(&mut self, latencies: &Latencies) {
        let mut bound = 0;
        // They come in ascending order.
        for (longest, count) in latencies.buckets() {
            let seconds = longest.secs();
            while bound < BOUNDS.len() && seconds > BOUNDS[bound] {
                bound += 1;
            }
            self.filled[bound] += count;
        }
        self.sum += latencies.mean().map_or(0.0, |mean| mean.secs() * latencies.count() as f64);
    }

    fn value(&self) -> Value {
        Value::Histogram { bounds: &BOUNDS, counts: self.filled.to_vec(), sum: self.sum }
    }
}

/// Of one command.
#[derive(Debug, Clone, PartialEq)]
struct Tally {
    latency: Counts,
    service: Option<Counts>,
    requests: u64,
    bytes: u64,
}

impl Tally {
    const NONE: Tally = Tally { latency: Counts::NONE, service: None, requests: 0, bytes: 0 };

    fn add(&mut self, side: &Side) {
        self.latency.add(&side.latency);
        if let Some(service) = &side.service {
            self.service.get_or_insert(Counts::NONE).add(service);
        }
        self.requests += side.operations();
        self.bytes += side.bytes;
    }
}

/// All requests to the server of a cell so far, over all visits. Its size does not grow with their number.
#[derive(Debug, Clone, PartialEq)]
pub struct Requests {
    cell: Cell,
    get: Tally,
    set: Tally,
}

impl Requests {
    /// None yet.
    pub fn of(cell: Cell) -> Self {
        Requests { cell, get: Tally::NONE, set: Tally::NONE }
    }

    /// Whose.
    pub fn cell(&self) -> &Cell {
        &self.cell
    }

    /// Counts those of an interval in.
    pub fn add(&mut self, interval: &Interval) {
        self.get.add(&interval.read);
        self.set.add(&interval.write);
    }
}

/// The families of all cells.
pub fn families<'a>(cells: impl IntoIterator<Item = &'a Requests>) -> Vec<Family> {
    let about = |command: &str| format!("{command} of requests, by command and cell.");
    let mut requests = Family::new(Kind::Counter, "tiermark_requests_total", about("Number"));
    let mut bytes = Family::new(Kind::Counter, "tiermark_request_bytes_total", about("Bytes of values"));
    let latency = about("Latency, at a rate from the moment that was meant,");
    let mut latency = Family::new(Kind::Histogram, "tiermark_request_duration_seconds", latency);
    let mut service =
        Family::new(Kind::Histogram, "tiermark_request_service_seconds", about("Time from sending to answer"));
    for cell in cells {
        for (command, tally) in [("get", &cell.get), ("set", &cell.set)] {
            // A command that nobody gives has no metric.
            if tally.requests == 0 {
                continue;
            }
            let labels = || cell.cell.labels(&[("command", command)]);
            requests = requests.with(labels(), tally.requests as f64);
            bytes = bytes.with(labels(), tally.bytes as f64);
            latency.push(labels(), tally.latency.value());
            // In closed loop they are the same.
            service.push(labels(), tally.service.as_ref().unwrap_or(&tally.latency).value());
        }
    }
    vec![requests, bytes, latency, service]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, write};
    use basics::Nanos;

    fn interval(us: &[u64]) -> Interval {
        let mut interval = Interval::default();
        for us in us {
            interval.write.latency.record(Nanos(us * 1000));
            interval.write.bytes += 64;
        }
        interval
    }

    #[test]
    fn every_request_is_in_its_bucket() {
        let cell = Cell { mode: "rdb".to_owned(), medium: "/mnt".to_owned(), payload: 64 };
        let mut requests = Requests::of(cell);
        requests.add(&interval(&[5, 12, 12, 900]));
        requests.add(&interval(&[20_000_000]));
        let text = write(families([&requests]), Format::OpenMetrics);
        let of = |name: &str, more: &str| {
            let start = format!("{name}{{mode=\"rdb\",medium=\"/mnt\",payload=\"64\",command=\"set\"{more}}} ");
            let found = text.lines().find_map(|line| line.strip_prefix(&start));
            found.unwrap_or_else(|| panic!("{start}: {text}")).parse::<f64>().unwrap()
        };
        let bucket = |le: &str| of("tiermark_request_duration_seconds_bucket", &format!(",le=\"{le}\""));
        assert_eq!((bucket("1e-5"), bucket("1.5e-5"), bucket("0.0007"), bucket("0.001")), (1.0, 3.0, 3.0, 4.0));
        assert_eq!((bucket("10.0"), bucket("+Inf"), of("tiermark_requests_total", "")), (4.0, 5.0, 5.0));
        assert_eq!(
            (of("tiermark_request_duration_seconds_count", ""), of("tiermark_request_bytes_total", "")),
            (5.0, 320.0)
        );
        assert!((of("tiermark_request_duration_seconds_sum", "") - 20.000_929).abs() < 0.05);
        assert!(!text.contains("command=\"get\""), "{text}");
    }

    #[test]
    fn at_a_rate_service_is_told_beside() {
        let cell = Cell { mode: "rdb".to_owned(), medium: "m".to_owned(), payload: 1 };
        let mut requests = Requests::of(cell);
        let mut late = interval(&[500_000]);
        late.write.service.get_or_insert_with(Latencies::new).record(Nanos(100_000));
        requests.add(&late);
        let text = write(families([&requests]), Format::OpenMetrics);
        let sum = |name: &str| {
            let line =
                text.lines().find(|line| line.starts_with(&format!("tiermark_request_{name}_seconds_sum"))).unwrap();
            line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
        };
        assert!(sum("duration") > 0.4 && sum("service") < 0.001, "{text}");
    }

    #[test]
    fn bounds_ascend() {
        assert!(BOUNDS.is_sorted_by(|a, b| a < b));
    }
}
