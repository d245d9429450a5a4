//! Curves of several runs beside each other, as a comparison in a review puts them: how far apart two devices are at both
//! ends of a curve, where one gives a tenth of the other, and where it overtakes it.

use crate::findings::times;
use crate::model::{Finding, RunView};
use crate::sweeps::{Axis, Sweep, sweeps};
use basics::Bytes;
use basics::units::significant;

/// Weight of what is said: the reason why one makes such a page, below what is wrong with a device.
const WEIGHT: u8 = 50;
/// Nobody is ahead by less.
const AHEAD: f64 = 1.01;

/// Every pair of runs along every curve that both have, the earlier run the measure of the later one. What is too erratic to
/// be drawn is not compared.
pub fn beside(runs: &[RunView<'_>]) -> Vec<Finding> {
    let curves: Vec<Vec<Sweep<'_, '_>>> = runs.iter().map(|run| sweeps(run)).collect();
    let mut out = Vec::new();
    for (i, theirs) in curves.iter().enumerate() {
        for (j, ours) in curves.iter().enumerate().skip(i + 1) {
            let pairs = theirs.iter().filter_map(|theirs| {
                let same = |ours: &&Sweep<'_, '_>| (ours.axis, ours.title()) == (theirs.axis, theirs.title());
                Some((theirs, ours.iter().find(same)?))
            });
            out.extend(pairs.filter_map(|(theirs, ours)| pair([&runs[i], &runs[j]], [theirs, ours])));
        }
    }
    out
}

fn pair(runs: [&RunView<'_>; 2], curves: [&Sweep<'_, '_>; 2]) -> Option<Finding> {
    let [theirs, ours] = curves;
    if theirs.erratic().or_else(|| ours.erratic()).is_some() {
        return None;
    }
    let mut names =
        curves.map(|curve| curve.points.first().map_or("", |p| p.step.tier.unwrap_or(p.step.target)).to_owned());
    if names[0] == names[1] {
        names = runs.map(|run| format!("run {}", run.id));
    }
    let common = theirs.points.iter().filter_map(|point| {
        let other = ours.points.iter().find(|other| other.at == point.at)?;
        Some((point, other, other.side.mbps / point.side.mbps))
    });
    let mut common: Vec<_> = common.collect();
    common.sort_by_key(|(point, ..)| point.at);
    let place = |at: u64| match theirs.axis {
        Axis::Size => Bytes(at).to_string(),
        Axis::Depth => format!("depth {at}"),
        Axis::Reads => format!("{at} % reads"),
    };
    let [first, .., last] = &common[..] else { return None };
    // More digits would claim a precision that two devices do not have.
    let share = |ratio: f64| {
        if ratio < 0.01 {
            significant(ratio)
        } else if ratio < 2.0 {
            format!("{ratio:.2}")
        } else {
            times(ratio)
        }
    };
    let mut text = format!(
        "{}: {} has {} times the rate of {} at {} and {} times at {}",
        capital(&theirs.title()),
        names[1],
        share(first.2),
        names[0],
        place(first.0.at),
        share(last.2),
        place(last.0.at)
    );
    let tenth = common.iter().take_while(|(_, _, ratio)| *ratio <= 0.1).last();
    if let Some((point, ..)) = tenth.filter(|(point, ..)| point.at < last.0.at) {
        text += &format!(", a tenth or less up to {}", place(point.at));
    }
    let behind = common.iter().rposition(|(_, _, ratio)| *ratio <= 1.0).map_or(0, |at| at + 1);
    if let Some((point, ..)) = common.get(behind)
        && behind > 0
        && common[behind..].iter().all(|(_, _, ratio)| *ratio >= AHEAD)
    {
        text += &format!(", and overtakes it from {} on", place(point.at));
    }
    let proof = |run: &RunView<'_>, side: usize| {
        let steps: Vec<String> = [first, last]
            .iter()
            .map(|(theirs, ours, _)| {
                let point = if side == 0 { theirs } else { ours };
                format!("{} {} MB/s", point.step.name, significant(point.side.mbps))
            })
            .collect();
        format!("run {}: {}", run.id, steps.join(", "))
    };
    Some(Finding {
        id: "beside".to_owned(),
        weight: WEIGHT,
        tier: None,
        text: text + ".",
        advice: None,
        gain: None,
        evidence: vec![proof(runs[0], 0), proof(runs[1], 1)],
    })
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweeps::tests::deep;
    use crate::testing::{Run, Step};

    fn device(id: &str, name: &str, rates: [u64; 5]) -> Run {
        let point = |(depth, rate): (u32, u64)| Step { tier: name.to_owned(), ..deep(depth, rate) };
        let mut run = Run::of("ssd-review", &[]).steps([1, 2, 4, 8, 16].into_iter().zip(rates).map(point));
        run.id = id.to_owned();
        run
    }

    #[test]
    fn a_device_that_comes_from_behind_overtakes() {
        let (fast, slow) = (device("a", "x", [1000; 5]), device("b", "y", [80, 100, 400, 900, 1200]));
        let told = beside(&[fast.view(), slow.view()]);
        assert_eq!(
            told[0].text,
            "Random reads of 4 KiB: y has 0.08 times the rate of x at depth 1 and 1.20 times at depth 16, a tenth or less up to \
             depth 2, and overtakes it from depth 16 on."
        );
        assert_eq!(told[0].evidence[0], "run a: deep-1 41.0 MB/s, deep-16 41.0 MB/s");
        let again = beside(&[fast.view(), device("c", "x", [990, 1010, 1005, 995, 1001]).view()]);
        assert_eq!(
            again[0].text,
            "Random reads of 4 KiB: run c has 0.99 times the rate of run a at depth 1 and 1.00 times at depth 16."
        );
        let fits = device("d", "z", [100, 200, 90, 200, 80]);
        assert!(beside(&[fast.view(), fits.view()]).is_empty(), "what goes by fits and starts is not compared");
    }
}
