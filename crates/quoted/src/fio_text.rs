//! What fio prints for people: `read: IOPS=11.7k, BW=182MiB/s (191MB/s)(10.7GiB/60001msec)` and the lines of latencies below
//! it. A block is a job, or a group of jobs reported together; the lines of fio 2 (`read : io=…, bw=…KB/s, iops=…`) are read too.

use crate::error::{At, rate};
use crate::figures::{Fio, FioSide, Spread, percentile_name};
use crate::{Block, Figures, Format, QuoteError, Text};
use basics::Bytes;
use std::collections::BTreeMap;

pub fn read(text: &Text<'_>) -> Result<Vec<Block>, QuoteError> {
    let mut reader = Reader::default();
    for line in &text.lines {
        reader.line(At { format: Format::FioText, line: line.number }, line.text.trim())?;
    }
    reader.close()?;
    Ok(reader.blocks)
}

/// What the lines before the first figure say of a job, by its name.
#[derive(Clone, Default)]
struct Asked {
    rw: Option<String>,
    block_b: Option<u64>,
    depth: Option<u32>,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Read,
    Write,
    Trim,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Slat,
    Clat,
    Lat,
}

#[derive(Default)]
struct Reader {
    asked: BTreeMap<String, Asked>,
    blocks: Vec<Block>,
    open: Option<(At, Fio)>,
    direction: Option<Direction>,
    /// The percentiles that are being read: where they were announced, of what, µs of their unit, whether any came.
    percentiles: Option<(At, Kind, f64, bool)>,
}

impl Reader {
    fn line(&mut self, at: At, text: &str) -> Result<(), QuoteError> {
        if let Some(list) = text.strip_prefix('|') {
            return self.percentiles(at, list);
        }
        self.no_more_percentiles()?;
        if let Some((name, asked)) = asked(text) {
            self.asked.insert(name.to_owned(), asked);
        } else if let Some((name, jobs)) = text.split_once(": (groupid=") {
            self.close()?;
            let jobs = jobs.split_once("jobs=").and_then(|(_, rest)| rest.split_once(')'));
            let jobs = jobs.map(|(jobs, _)| at.count(jobs, "the number of jobs")).transpose()?;
            let jobs = jobs.and_then(|jobs| u32::try_from(jobs).ok());
            let Asked { rw, block_b, depth } = self.asked.get(name).cloned().unwrap_or_default();
            let fio = Fio { job: name.to_owned(), rw, block_b, depth, jobs, ..Fio::default() };
            self.open = Some((at, fio));
        } else if text.starts_with("Run status group") {
            self.close()?;
        } else if let Some((direction, rest)) = direction(text) {
            self.direction(at, direction, rest)?;
        } else if let Some((kind, unit, rest)) = latency(text) {
            if let Some(rest) = rest.strip_prefix("percentiles") {
                let per = unit_us(unit.or_else(|| bracketed(rest)).unwrap_or_default());
                let per = per.ok_or_else(|| at.cut("the unit of the percentiles"))?;
                self.percentiles = self.direction.map(|_| (at, kind, per, false));
            } else if rest.contains("avg") || rest.contains("min=") {
                let per = unit_us(unit.unwrap_or_default()).ok_or_else(|| at.cut("the unit of the latency"))?;
                let found = summary(at, rest, per)?;
                if let Some(spread) = self.spread(kind) {
                    *spread = Spread { percentiles: std::mem::take(&mut spread.percentiles), ..found };
                }
            }
        }
        Ok(())
    }

    /// The latency of the open direction that a line speaks of.
    fn spread(&mut self, kind: Kind) -> Option<&mut Spread> {
        let (_, fio) = self.open.as_mut()?;
        let side = match self.direction? {
            Direction::Read => fio.read.as_mut(),
            Direction::Write => fio.write.as_mut(),
            Direction::Trim => fio.trim.as_mut(),
        }?;
        let spread = match kind {
            Kind::Slat => &mut side.slat_us,
            Kind::Clat => &mut side.clat_us,
            Kind::Lat => &mut side.lat_us,
        };
        Some(spread.get_or_insert_default())
    }

    fn direction(&mut self, at: At, direction: Direction, rest: &str) -> Result<(), QuoteError> {
        let side = side(at, rest)?;
        let slot = |fio: &Fio| match direction {
            Direction::Read => fio.read.is_some(),
            Direction::Write => fio.write.is_some(),
            Direction::Trim => fio.trim.is_some(),
        };
        if self.open.as_ref().is_some_and(|(_, fio)| slot(fio)) {
            self.close()?;
        }
        let (_, fio) = self.open.get_or_insert_with(|| (at, Fio::default()));
        *match direction {
            Direction::Read => &mut fio.read,
            Direction::Write => &mut fio.write,
            Direction::Trim => &mut fio.trim,
        } = Some(side);
        self.direction = Some(direction);
        Ok(())
    }

    /// `1.00th=[   12],  5.00th=[   14], …`
    fn percentiles(&mut self, at: At, list: &str) -> Result<(), QuoteError> {
        let Some((_, kind, per_us, any)) = &mut self.percentiles else { return Ok(()) };
        *any = true;
        let (kind, per_us) = (*kind, *per_us);
        // A comma goes on behind a bracket only; one inside is a foreign number, which is told below.
        for entry in list.split_inclusive(']').map(|entry| entry.trim_start_matches([',', ' '])) {
            if entry.is_empty() {
                continue;
            }
            let Some((percent, value)) = entry.strip_suffix(']').and_then(|entry| entry.split_once("th=[")) else {
                return Err(at.cut("the end of a percentile"));
            };
            let percent = at.number(percent, "a percentile's rank")?;
            let value = thousands(at, value, "a percentile")?;
            if let Some(spread) = self.spread(kind) {
                spread.percentiles.insert(percentile_name(percent), value * per_us);
            }
        }
        Ok(())
    }

    fn no_more_percentiles(&mut self) -> Result<(), QuoteError> {
        match self.percentiles.take() {
            Some((at, _, _, false)) => Err(at.cut("the list of percentiles")),
            _ => Ok(()),
        }
    }

    fn close(&mut self) -> Result<(), QuoteError> {
        self.no_more_percentiles()?;
        self.direction = None;
        let Some((at, fio)) = self.open.take() else { return Ok(()) };
        if fio.read.is_none() && fio.write.is_none() && fio.trim.is_none() {
            return Err(at.cut("the line with IOPS of this job"));
        }
        let what = fio.job.clone();
        self.blocks.push(Block { format: Format::FioText, line: at.line, what, figures: Figures::FioText(fio) });
        Ok(())
    }
}

/// `swap: (g=0): rw=randrw, bs=(R) 16.0KiB-16.0KiB, …, ioengine=libaio, iodepth=4`
fn asked(text: &str) -> Option<(&str, Asked)> {
    let (name, rest) = text.split_once(": (g=")?;
    let (_, rest) = rest.split_once("): rw=")?;
    let (rw, rest) = rest.split_once(',')?;
    let depth = rest.split_once("iodepth=").and_then(|(_, depth)| depth.trim().parse().ok());
    let sizes = rest.split_once("bs=").and_then(|(_, sizes)| sizes.split_once("ioengine="));
    // One size when every range says the same twice.
    let sizes = sizes.map(|(sizes, _)| {
        sizes.split([',', '-', '/']).filter_map(|size| {
            let size = size.trim();
            let size = size.strip_prefix('(').and_then(|size| size.split_once(')')).map_or(size, |(_, size)| size);
            (!size.trim().is_empty()).then(|| size.trim().parse::<Bytes>().ok())
        })
    });
    let block_b = sizes.and_then(|sizes| {
        let mut sizes: Vec<_> = sizes.collect();
        sizes.dedup();
        match sizes.as_slice() {
            [Some(size)] => Some(size.0),
            _ => None,
        }
    });
    Some((name, Asked { rw: Some(rw.trim().to_owned()), block_b, depth }))
}

/// The direction whose line this is, and what follows the colon.
fn direction(text: &str) -> Option<(Direction, &str)> {
    let (word, rest) = text.split_once(':')?;
    let direction = match word.trim() {
        "read" => Direction::Read,
        "write" => Direction::Write,
        "trim" => Direction::Trim,
        _ => return None,
    };
    let rest = rest.trim_start();
    (rest.starts_with("IOPS=") || rest.starts_with("io=")).then_some((direction, rest))
}

/// `KEY=value` in a list with commas.
fn value<'a>(list: &'a str, key: &str) -> Option<&'a str> {
    list.split(", ").find_map(|entry| entry.trim().strip_prefix(key)?.strip_prefix('='))
}

fn side(at: At, rest: &str) -> Result<FioSide, QuoteError> {
    let old = rest.starts_with("io=");
    let [iops, bw] = if old { ["iops", "bw"] } else { ["IOPS", "BW"] };
    let iops = value(rest, iops).ok_or_else(|| at.cut("the rate in operations"))?;
    let iops = thousands(at, iops.trim_end_matches(','), "the rate in operations")?;
    let bw = value(rest, bw).ok_or_else(|| at.cut("the rate in bytes"))?;
    // In fio 2 a KB is 2^10 bytes.
    let kilo = if old { 1024.0 } else { 1000.0 };
    let a_second = |text: &str| at.with_unit(text, "the rate in bytes", |unit| rate(unit, kilo));
    if old {
        let runtime = value(rest, "runt").map(|text| at.with_unit(text, "the time", |unit| Some(unit_us(unit)? / 1e6)));
        return Ok(FioSide { iops, mbps: a_second(bw)? / 1e6, runtime_s: runtime.transpose()?, ..FioSide::default() });
    }
    let (first, brackets) = bw.split_once('(').unwrap_or((bw, ""));
    let first = a_second(first)?;
    // The same rate in the other unit, then bytes and time: `182MiB/s (191MB/s)(10.7GiB/60001msec)`.
    let mut mbps = first / 1e6;
    let mut runtime_s = None;
    for part in brackets.split('(').filter(|part| !part.is_empty()) {
        let Some((part, _)) = part.split_once(')') else { return Err(at.cut("a closing bracket")) };
        match part.split_once('/') {
            Some((_, "s")) => mbps = a_second(part)? / 1e6,
            Some((_, time)) => {
                runtime_s = Some(at.with_unit(time, "the time", |unit| Some(unit_us(unit)? / 1e6))?);
            }
            None => return Err(at.cut("the time")),
        }
    }
    Ok(FioSide { iops, mbps, runtime_s, ..FioSide::default() })
}

/// Which latency a line speaks of, its unit where that follows at once, and the rest. `clat (usec): min=…`,
/// `clat percentiles (usec):`.
fn latency(text: &str) -> Option<(Kind, Option<&str>, &str)> {
    let (word, rest) = text.split_once(char::is_whitespace)?;
    let kind = match word {
        "slat" => Kind::Slat,
        "clat" => Kind::Clat,
        "lat" => Kind::Lat,
        _ => return None,
    };
    let rest = rest.trim_start();
    if rest.starts_with("percentiles") {
        return Some((kind, None, rest));
    }
    let (unit, rest) = rest.strip_prefix('(')?.split_once(')')?;
    Some((kind, Some(unit), rest.trim_start().strip_prefix(':')?))
}

fn bracketed(text: &str) -> Option<&str> {
    Some(text.split_once('(')?.1.split_once(')')?.0)
}

fn unit_us(unit: &str) -> Option<f64> {
    match unit {
        "nsec" => Some(1e-3),
        "usec" => Some(1.0),
        "msec" => Some(1e3),
        "sec" => Some(1e6),
        _ => None,
    }
}

/// `min=    2, max=12125, avg=24.81, stdev=205.77`
fn summary(at: At, rest: &str, per_us: f64) -> Result<Spread, QuoteError> {
    let one = |key: &str| {
        let text = value(rest, key).ok_or_else(|| at.cut(&format!("{key} of the latency")))?;
        Ok(Some(thousands(at, text.trim_end_matches(','), &format!("{key} of the latency"))? * per_us))
    };
    Ok(Spread {
        min: one("min")?,
        max: one("max")?,
        mean: one("avg")?,
        stddev: one("stdev")?,
        percentiles: BTreeMap::new(),
    })
}

/// A number that fio may shorten: `88.0k`.
fn thousands(at: At, text: &str, what: &str) -> Result<f64, QuoteError> {
    let text = text.trim();
    let (number, factor) = match text.char_indices().next_back() {
        Some((end, 'k')) => (&text[..end], 1e3),
        Some((end, 'M' | 'm')) => (&text[..end], 1e6),
        Some((end, 'G' | 'g')) => (&text[..end], 1e9),
        _ => (text, 1.0),
    };
    Ok(at.number(number, what)? * factor)
}
