//! Figures of one device as somebody published or noted them, as a file: rates and latencies by direction, size and depth.
//! What a row leaves out is completed by Little's law where that can be; what its numbers mean for a device is left to `study`.

use basics::Bytes;
use basics::job::{Direction, Order};
use serde::Deserialize;
use thiserror::Error;

/// Rows of one device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Short, in kebab-case.
    pub name: String,
    /// What it is. Default: nothing.
    #[serde(default)]
    pub title: String,
    /// Where the figures come from.
    pub source: String,
    /// The rows, `[[row]]`.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// One row: a closed loop, past the page cache.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What was done, in fio's words.
    pub rw: Rw,
    /// Length of an operation, `"4KiB"`.
    pub bs: String,
    /// Operations in flight for each thread. Default: 1.
    #[serde(default = "one")]
    pub depth: u32,
    /// Threads. Default: 1.
    #[serde(default = "one")]
    pub threads: u32,
    /// Share of reads of a mixed row, per cent. Default: what the rates say, else 50.
    pub read_percent: Option<u8>,
    /// Reads a second.
    pub read_iops: Option<f64>,
    /// Writes a second.
    pub write_iops: Option<f64>,
    /// 10^6 bytes read a second, in place of `read_iops`.
    #[serde(rename = "read_MBps")]
    pub read_mbps: Option<f64>,
    /// 10^6 bytes written a second, in place of `write_iops`.
    #[serde(rename = "write_MBps")]
    pub write_mbps: Option<f64>,
    /// Latency of reads.
    pub read_lat_us: Option<Lat>,
    /// Latency of writes.
    pub write_lat_us: Option<Lat>,
}

/// What a row did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rw {
    /// Reads in sequence.
    Read,
    /// Writes in sequence.
    Write,
    /// Reads at random places.
    RandRead,
    /// Writes at random places.
    RandWrite,
    /// Both in sequence.
    Rw,
    /// Both at random places.
    RandRw,
}

/// A latency: its mean, or more than that.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Lat {
    /// The mean, µs.
    Mean(f64),
    /// With its spread.
    More(Spread),
}

/// A mean and a percentile.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The mean, µs.
    pub mean: f64,
    /// 99th percentile, µs.
    pub p99: Option<f64>,
}

impl Lat {
    fn mean(self) -> f64 {
        match self {
            Lat::Mean(mean) => mean,
            Lat::More(spread) => spread.mean,
        }
    }
    fn p99(self) -> Option<f64> {
        match self {
            Lat::Mean(_) => None,
            Lat::More(spread) => spread.p99,
        }
    }
}

/// One direction of a completed row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// Operations a second.
    pub iops: f64,
    /// Mean latency, µs.
    pub mean_us: f64,
    /// 99th percentile, µs, where it is given.
    pub p99_us: Option<f64>,
}

/// A row with nothing left open.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// `randread 4KiB depth 1`.
    pub label: String,
    /// Direction.
    pub direction: Direction,
    /// Order.
    pub order: Order,
    /// Length of an operation.
    pub size: Bytes,
    /// Operations in flight for each thread.
    pub depth: u32,
    /// Threads.
    pub threads: u32,
    /// Reads, where there are any.
    pub read: Option<Flow>,
    /// Writes, where there are any.
    pub write: Option<Flow>,
}

/// Why figures cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum FiguresError {
    /// No TOML, or not of figures.
    #[error("{0}")]
    Syntax(String),
    /// A row that makes no sense.
    #[error("row {row}: {why}")]
    Row {
        /// Counted from 1.
        row: usize,
        /// What is wrong, and what it must be.
        why: String,
    },
}

fn one() -> u32 {
    1
}

impl Figures {
    /// Reads figures.
    ///
    /// # Errors
    /// [`FiguresError::Syntax`] with line and column.
    pub fn parse(text: &str) -> Result<Self, FiguresError> {
        toml::from_str(text).map_err(|error| FiguresError::Syntax(crate::format::told(text, &error)))
    }

    /// Every row with rate and latency of each direction.
    ///
    /// # Errors
    /// [`FiguresError::Row`], the first that makes no sense or leaves too much open.
    pub fn whole(&self) -> Result<Vec<Whole>, FiguresError> {
        let numbered = self.rows.iter().enumerate();
        numbered.map(|(i, row)| row.whole().map_err(|why| FiguresError::Row { row: i + 1, why })).collect()
    }
}

impl Row {
    fn whole(&self) -> Result<Whole, String> {
        let size: Bytes =
            self.bs.parse().map_err(|_| format!("bs is {:?}; it must be a size such as \"4KiB\"", self.bs))?;
        if !(512..=1 << 30).contains(&size.0) {
            return Err(format!("bs is {size}; it must be from 512 B to 1 GiB"));
        }
        if !(1..=4096).contains(&self.depth) || !(1..=256).contains(&self.threads) {
            return Err("depth must be from 1 to 4096, threads from 1 to 256".to_owned());
        }
        let order = if matches!(self.rw, Rw::Read | Rw::Write | Rw::Rw) { Order::Sequential } else { Order::Permuted };
        let (reads, writes) = match self.rw {
            Rw::Read | Rw::RandRead => (true, false),
            Rw::Write | Rw::RandWrite => (false, true),
            Rw::Rw | Rw::RandRw => (true, true),
        };
        let rate = |iops: Option<f64>, mbps: Option<f64>| iops.or(mbps.map(|rate| rate * 1e6 / size.0 as f64));
        let given = [
            (reads, rate(self.read_iops, self.read_mbps), self.read_lat_us, "read"),
            (writes, rate(self.write_iops, self.write_mbps), self.write_lat_us, "write"),
        ];
        for (is, iops, lat, name) in given {
            let numbers = [iops, lat.map(Lat::mean), lat.and_then(Lat::p99)];
            if numbers.into_iter().flatten().any(|number| !(number.is_finite() && number > 0.0 && number < 3.6e9)) {
                return Err(format!("a {name} figure is not above 0"));
            }
            if !is && (iops.is_some() || lat.is_some()) {
                return Err(format!("it has {name} figures, and its rw does no {name}s"));
            }
        }
        let asked = f64::from(self.depth) * f64::from(self.threads);
        let [read, write] = completed(&given.map(|(is, iops, lat, _)| (is, iops, lat)), self.read_percent, asked)?;
        let percent = |read: Flow, write: Flow| (100.0 * read.iops / (read.iops + write.iops)).round() as u8;
        let direction = match (read, write) {
            (Some(read), Some(write)) => Direction::Mixed { read_percent: percent(read, write) },
            (Some(_), None) => Direction::Read,
            _ => Direction::Write,
        };
        let word = format!("{:?}", self.rw).to_lowercase();
        let threads = if self.threads > 1 { format!(" × {}", self.threads) } else { String::new() };
        let label = format!("{word} {size} depth {}{threads}", self.depth);
        Ok(Whole { label, direction, order, size, depth: self.depth, threads: self.threads, read, write })
    }
}

/// Rates from latencies and latencies from rates: in a closed loop rate × latency, summed over directions, is the depth.
fn completed(
    sides: &[(bool, Option<f64>, Option<Lat>); 2],
    read_percent: Option<u8>,
    asked: f64,
) -> Result<[Option<Flow>; 2], String> {
    let mixed = sides[0].0 && sides[1].0;
    let mut iops = [sides[0].1, sides[1].1];
    let mean = [0, 1].map(|side: usize| sides[side].2.map(Lat::mean));
    let share = f64::from(read_percent.unwrap_or(50)) / 100.0;
    if mixed && !(0.01..=0.99).contains(&share) {
        return Err("read_percent must be from 1 to 99".to_owned());
    }
    let shares =
        if mixed { [share, 1.0 - share] } else { [f64::from(u8::from(sides[0].0)), f64::from(u8::from(sides[1].0))] };
    match (iops, mean) {
        ([None, None], _) => {
            // No rate at all: the depth over the mean of all operations.
            let known = |side: usize| if sides[side].0 { mean[side].map(|us| shares[side] * us) } else { Some(0.0) };
            let Some(us) = known(0).zip(known(1)).map(|(a, b)| a + b) else {
                return Err("neither a rate nor the latency of each direction is given".to_owned());
            };
            iops = shares.map(|share| Some(asked * 1e6 / us * share));
        }
        ([Some(reads), None], _) if mixed => iops[1] = Some(reads * (1.0 - share) / share),
        ([None, Some(writes)], _) if mixed => iops[0] = Some(writes * share / (1.0 - share)),
        _ => {}
    }
    let known: f64 = (0..2).filter_map(|side| Some(iops[side]? * mean[side]? / 1e6)).sum();
    let open: f64 = (0..2).filter(|side| mean[*side].is_none() && sides[*side].0).filter_map(|side| iops[side]).sum();
    let rest = (asked - known) * 1e6 / open;
    if open > 0.0 && rest <= 0.0 {
        return Err("the latency that is given leaves none for the other direction at this depth".to_owned());
    }
    Ok([0, 1].map(|side: usize| {
        let (is, _, lat) = sides[side];
        let mean_us = mean[side].unwrap_or(rest);
        iops[side].filter(|_| is).map(|iops| Flow { iops, mean_us, p99_us: lat.and_then(Lat::p99) })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(row: &str) -> Result<Vec<Whole>, FiguresError> {
        Figures::parse(&format!("name = \"x\"\nsource = \"s\"\n[[row]]\n{row}"))?.whole()
    }
    fn only(row: &str) -> Whole {
        whole(row).unwrap().remove(0)
    }

    #[test]
    fn what_a_row_leaves_out_is_what_little_says() {
        let read = |row: &str| only(row).read.unwrap();
        assert_eq!(read("rw = \"randread\"\nbs = \"4k\"\nread_lat_us = 100").iops, 10_000.0);
        assert_eq!(read("rw = \"randread\"\nbs = \"4k\"\ndepth = 32\nread_iops = 320000").mean_us, 100.0);
        let both = read(
            "rw = \"randread\"\nbs = \"4k\"\ndepth = 4\nread_iops = 30000\nread_lat_us = { mean = 100, p99 = 300 }",
        );
        assert_eq!((both.iops, both.mean_us, both.p99_us), (30_000.0, 100.0, Some(300.0)), "both stand as they are");
        assert_eq!(read("rw = \"read\"\nbs = \"1MiB\"\nread_MBps = 104.8576").iops, 100.0);
        let mixed =
            only("rw = \"randrw\"\nbs = \"16KiB\"\ndepth = 4\nread_iops = 7000\nwrite_iops = 3000\nread_lat_us = 400");
        assert_eq!(mixed.direction, Direction::Mixed { read_percent: 70 });
        assert!((mixed.write.unwrap().mean_us - 400.0).abs() < 1e-6);
        let share = only("rw = \"randrw\"\nbs = \"16KiB\"\nread_percent = 75\nread_iops = 3000");
        assert_eq!(share.write.unwrap().iops, 1000.0);
        assert_eq!(share.label, "randrw 16 KiB depth 1");
    }

    #[test]
    fn a_row_that_makes_no_sense_is_named() {
        for (row, says) in [
            ("rw = \"randread\"\nbs = \"4k\"", "neither a rate nor"),
            ("rw = \"randread\"\nbs = \"4 pears\"\nread_iops = 1", "4 pears"),
            ("rw = \"randread\"\nbs = \"4k\"\nread_iops = 0", "not above 0"),
            ("rw = \"randread\"\nbs = \"4k\"\nwrite_iops = 5", "does no writes"),
            ("rw = \"randread\"\nbs = \"4k\"\ndepth = 0\nread_iops = 5", "depth must be"),
            ("rw = \"randrw\"\nbs = \"4k\"\nread_iops = 10000\nread_lat_us = 200", "leaves none"),
            ("rw = \"seek\"\nbs = \"4k\"", "seek"),
            ("rw = \"randread\"\nbs = \"4k\"\niops = 5", "iops"),
        ] {
            let told = whole(row).unwrap_err().to_string();
            assert!(told.contains(says), "{row}: {told}");
        }
    }
}
