//! fio's logs: `time, value, direction, block size, offset` a line, the same for bandwidth, IOPS and latencies; which it is
//! stands in the name that fio gives the file, `NAME_bw.1.log`. A log is a whole file, nothing that is cut out of another.

use crate::error::At;
use crate::figures::{FioLog, LogSide, Spread};
use crate::{Block, Figures, Format, Line, QuoteError, Text};

/// What stands in the files' names, and a unit's share of its figure's unit.
const KINDS: [(&str, f64); 5] = [("bw", 1024.0 / 1e6), ("iops", 1.0), ("lat", 1e-3), ("clat", 1e-3), ("slat", 1e-3)];

pub fn read(text: &Text<'_>) -> Result<Vec<Block>, QuoteError> {
    let mut lines = text.lines.iter().filter(|line| !line.text.trim().is_empty());
    let Some(first) = lines.next().filter(|line| looks_like_one(line)) else { return Ok(Vec::new()) };
    let at = |line: &Line<'_>| At { format: Format::FioLog, line: line.number };
    let (what, kind) = text.name.rsplit(['/', '\\']).next().unwrap_or_default().rsplit_once('_').unwrap_or_default();
    let kind = kind.split('.').next().unwrap_or_default();
    let Some((kind, unit)) = KINDS.into_iter().find(|(known, _)| *known == kind) else {
        return Err(at(first).wrong(
            "its file's name does not say of what: give the file the end that fio gave it, _bw.1.log, _iops.1.log, _lat.1.log, \
             _clat.1.log or _slat.1.log",
        ));
    };
    let mut sums: [Option<Sum>; 3] = [None, None, None];
    for line in std::iter::once(first).chain(lines) {
        let at = at(line);
        let cells: Vec<&str> = line.text.split(',').collect();
        if !(4..=6).contains(&cells.len()) {
            return Err(
                at.wrong(format!("it has {} numbers, not 4 to 6: it was cut off or is of another file", cells.len()))
            );
        }
        let time = at.count(cells[0], "the time")?;
        let value = at.count(cells[1], "the value")? as f64 * unit;
        let direction = at.count(cells[2], "the direction")?;
        let Some(sum) = usize::try_from(direction).ok().and_then(|index| sums.get_mut(index)) else {
            return Err(at.wrong(format!("its direction is {direction}, not 0, 1 or 2")));
        };
        sum.get_or_insert_default().add(time, value);
    }
    let [read, write, trim] = sums.map(|sum| sum.map(|sum| sum.side()));
    let figures = FioLog { kind: kind.to_owned(), read, write, trim };
    let block =
        Block { format: Format::FioLog, line: first.number, what: what.to_owned(), figures: Figures::FioLog(figures) };
    Ok(vec![block])
}

fn looks_like_one(line: &Line<'_>) -> bool {
    let numbers = line.text.split(',').all(|cell| {
        let cell = cell.trim();
        !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit())
    });
    numbers && line.text.matches(", ").count() >= 3
}

#[derive(Default)]
struct Sum {
    entries: u64,
    until: u64,
    total: f64,
    least: Option<f64>,
    most: f64,
}

impl Sum {
    fn add(&mut self, time: u64, value: f64) {
        self.entries += 1;
        self.until = self.until.max(time);
        self.total += value;
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.most = self.most.max(value);
    }

    fn side(self) -> LogSide {
        let values = Spread {
            min: self.least,
            max: Some(self.most),
            mean: Some(self.total / self.entries as f64),
            ..Spread::default()
        };
        LogSide { entries: self.entries, until_s: self.until as f64 / 1e3, values }
    }
}
