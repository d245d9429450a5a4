//! What a browser under pressure says about the set-ups of its disk: a row for each over all its visits, and a verdict of the second against
//! the first, from the same acts on both.

use crate::load::{by_tier, cpu, unmeasured};
use crate::model::{RunView, State, StepView};
use crate::proof::{Effect, Proven, paired};
use basics::desktop::{Act, Browsed};
use basics::job::Engine;
use basics::pressure::Load;
use basics::stats::median;
use basics::units::significant;
use basics::{Known, Latencies, Nanos, Why};
use observe::Sample;

/// A set-up under a browser. Figures are medians of the visits.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DesktopRow {
    /// As it was asked for.
    pub setup: String,
    /// What a user waited for one act (a page opened, a tab gone to), in the mean, s. What did not come counts as the patience.
    pub wait_s: Known<f64>,
    /// Until the browser answered, s.
    pub start_s: Known<f64>,
    /// Until a page could be used, s; the median and the longest of the pages.
    pub interactive_s: Known<(f64, f64)>,
    /// To a tab, s: median and 95th percentile over all visits.
    pub switch_s: Known<(f64, f64)>,
    /// The longest that the page in front did not answer, s.
    pub longest_freeze_s: Known<f64>,
    /// Of the questions to it, the 99th percentile, ms.
    pub answer_p99_ms: Known<f64>,
    /// Pages that were opened, those that answered at the end, and those that crashed.
    pub pages: Known<(f64, f64, f64)>,
    /// 10^6 bytes that came from swap and went there, zswap's included.
    pub swap_mb: Known<(f64, f64)>,
    /// 10^6 bytes that the disk read and wrote.
    pub disk_mb: Known<(f64, f64)>,
    /// Major faults of the browser's processes.
    pub major_faults: Known<f64>,
    /// Share of the time in which something waited for memory, and in which all did, per cent (PSI, of the machine).
    pub memory_percent: Known<(f64, f64)>,
    /// The same of I/O.
    pub io_percent: Known<(f64, f64)>,
    /// Share of all processors' time that was used, per cent.
    pub cpu_percent: Known<f64>,
    /// zswap: how many times smaller pages are in it, and the most that it took, 10^6 bytes.
    pub zswap: Known<(f64, f64)>,
    /// The file system: how many times smaller files are on it.
    pub files_ratio: Known<f64>,
    /// Visits that came to their end.
    pub visits: usize,
    /// Why it is so.
    pub why: String,
}

/// One set-up held against another.
#[derive(Debug, Clone, PartialEq)]
pub struct DesktopVerdict {
    /// The first.
    pub from: String,
    /// The other.
    pub to: String,
    /// How much less was waited, act by act: half the time is 100 %.
    pub effect: Effect,
    /// Acts that were held against one another, and the visits that they are of.
    pub acts: usize,
    /// The same.
    pub visits: usize,
    /// In a sentence.
    pub sentence: String,
}

struct Visit<'a> {
    step: &'a StepView<'a>,
    load: &'a Load,
    seen: &'a Browsed,
}

fn visits<'a>(steps: &[&'a StepView<'a>]) -> Vec<Visit<'a>> {
    let of = |step: &'a StepView<'a>| {
        let load = step.load?;
        Some(Visit { step, load, seen: load.browsed.as_deref()? })
    };
    // One in which nothing came is an answer as well.
    steps.iter().filter(|step| step.state == State::Done).filter_map(|step| of(step)).collect()
}

/// What an act took, s; what did not come, the patience.
fn waited(seen: &Browsed, act: &Act) -> f64 {
    act.took.map_or(seen.patience.secs(), Nanos::secs)
}

/// The rows of a run, in the order of its plan; empty where no browser worked.
pub fn desktop_rows(run: &RunView<'_>) -> Vec<DesktopRow> {
    by_tier(run, Engine::Browsed).map(|(setup, steps)| row(setup, &steps)).collect()
}

fn row(setup: &str, steps: &[&StepView<'_>]) -> DesktopRow {
    let visits = visits(steps);
    let lack = || Why::NotMeasured(unmeasured(steps).to_owned());
    let known = |value: Option<f64>| value.map_or_else(|| Known::Unknown(lack()), Known::Is);
    let middle =
        |pick: &dyn Fn(&Visit<'_>) -> Option<f64>| known(median(&visits.iter().filter_map(pick).collect::<Vec<_>>()));
    let both = |pick: &dyn Fn(&Visit<'_>) -> Option<(f64, f64)>| {
        let all: Vec<(f64, f64)> = visits.iter().filter_map(pick).collect();
        let of = |which: fn(&(f64, f64)) -> f64| median(&all.iter().map(which).collect::<Vec<_>>());
        of(|both| both.0).zip(of(|both| both.1)).map_or_else(|| Known::Unknown(lack()), Known::Is)
    };
    let pressure = |which: &'static str| {
        both(&|visit| {
            let of = |sample: &Sample| sample.pressure_us.get(which).copied();
            let (first, last) = ends(visit.step)?;
            let (before, after, time) = (of(first)?, of(last)?, (last.at - first.at).us());
            let share = |a: u64, b: u64| 100.0 * b.saturating_sub(a) as f64 / time;
            Some((share(before.0, after.0), share(before.1, after.1)))
        })
    };
    let mut switches = Latencies::new();
    visits.iter().for_each(|visit| switches.merge(&visit.step.read.latency));
    let percentile = |percent: f64| switches.percentile(percent).map(Nanos::secs);
    let mut row = DesktopRow {
        setup: setup.to_owned(),
        wait_s: middle(&|visit| mean(visit.seen)),
        start_s: middle(&|visit| Some(visit.seen.started.secs())),
        interactive_s: both(&|visit| {
            let opened = visit.seen.acts.iter().filter(|act| act.opens).map(|act| waited(visit.seen, act));
            let opened: Vec<f64> = opened.collect();
            Some((median(&opened)?, opened.iter().copied().fold(0.0, f64::max)))
        }),
        switch_s: percentile(50.0).zip(percentile(95.0)).map_or_else(|| Known::Unknown(lack()), Known::Is),
        longest_freeze_s: middle(&|visit| Some(visit.seen.longest.secs())),
        answer_p99_ms: middle(&|visit| Some(visit.seen.answers.percentile(99.0)?.us() / 1e3)),
        pages: middle(&|visit| Some(visit.seen.pages.len() as f64)).and_then_both(
            || middle(&|visit| Some(visit.seen.pages.iter().filter(|page| page.alive).count() as f64)),
            || middle(&|visit| Some(visit.seen.pages.iter().filter(|page| page.crashed).count() as f64)),
        ),
        swap_mb: both(&|visit| {
            let page = visit.load.page.0 as f64 / 1e6;
            let moved = |key: &str| moved(visit.step, key);
            // What zswap takes and gives back passes it before it is counted as swapped.
            let sum = |a: Option<f64>, b: Option<f64>| Some((a? + b.unwrap_or(0.0)) * page);
            Some((sum(moved("pswpin"), moved("zswpin"))?, sum(moved("pswpout"), moved("zswpout"))?))
        }),
        disk_mb: both(&|visit| {
            let (first, last) = ends(visit.step)?;
            let of = |sample: &Sample| {
                let disks = sample.disks.values();
                (!sample.disks.is_empty()).then(|| {
                    disks.fold((0.0, 0.0), |(r, w), disk| (r + disk.read_bytes as f64, w + disk.write_bytes as f64))
                })
            };
            let ((r0, w0), (r1, w1)) = (of(first)?, of(last)?);
            Some(((r1 - r0) / 1e6, (w1 - w0) / 1e6))
        }),
        major_faults: middle(&|visit| visit.seen.major_faults.map(|faults| faults as f64)),
        memory_percent: pressure("memory"),
        io_percent: pressure("io"),
        cpu_percent: middle(&|visit| ends(visit.step).and_then(|(first, last)| cpu(first, last)).map(|cpu| cpu.0)),
        zswap: both(&|visit| {
            let zswap = visit.seen.zswap.filter(|zswap| zswap.pool.0 > 0)?;
            Some((zswap.stored.0 as f64 / zswap.pool.0 as f64, zswap.most.0 as f64 / 1e6))
        }),
        files_ratio: middle(&|visit| {
            let (files, taken) = visit.seen.files.filter(|(_, taken)| taken.0 > 0)?;
            Some(files.0 as f64 / taken.0 as f64)
        }),
        visits: visits.len(),
        why: unmeasured(steps).to_owned(),
    };
    if !visits.is_empty() {
        row.why = why(&row, &visits);
    }
    row
}

/// A row's pages are three figures that are known together.
trait AndBoth {
    fn and_then_both(
        self,
        second: impl FnOnce() -> Known<f64>,
        third: impl FnOnce() -> Known<f64>,
    ) -> Known<(f64, f64, f64)>;
}

impl AndBoth for Known<f64> {
    fn and_then_both(
        self,
        second: impl FnOnce() -> Known<f64>,
        third: impl FnOnce() -> Known<f64>,
    ) -> Known<(f64, f64, f64)> {
        match (self, second(), third()) {
            (Known::Is(a), Known::Is(b), Known::Is(c)) => Known::Is((a, b, c)),
            (Known::Unknown(why), ..) | (_, Known::Unknown(why), _) | (.., Known::Unknown(why)) => Known::Unknown(why),
        }
    }
}

fn ends<'a>(step: &'a StepView<'_>) -> Option<(&'a Sample, &'a Sample)> {
    step.samples.first().copied().zip(step.samples.last().copied()).filter(|(first, last)| last.at > first.at)
}

fn moved(step: &StepView<'_>, key: &str) -> Option<f64> {
    let (first, last) = ends(step)?;
    Some(last.vm.get(key)?.saturating_sub(*first.vm.get(key)?) as f64)
}

/// The mean wait of a visit.
pub(crate) fn mean(seen: &Browsed) -> Option<f64> {
    let waits: Vec<f64> = seen.acts.iter().map(|act| waited(seen, act)).collect();
    (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64)
}

fn why(row: &DesktopRow, visits: &[Visit<'_>]) -> String {
    let mut parts = Vec::new();
    let acts = || visits.iter().flat_map(|visit| &visit.seen.acts);
    let missed = acts().filter(|act| act.took.is_none()).count();
    if let Some((asked, alive, crashed)) = row.pages.get()
        && (missed > 0 || *crashed > 0.0 || alive < asked)
    {
        let patience = visits[0].seen.patience;
        parts.push(format!(
            "of {} acts {missed} did not come within {patience}, and {} of {} pages live at the end",
            acts().count(),
            significant(*alive),
            significant(*asked)
        ));
    }
    let gone = visits.iter().filter(|visit| visit.seen.gone.is_some()).count();
    if gone > 0 {
        parts.push(format!("in {gone} of {} visits the whole browser was ended", visits.len()));
    }
    if let Some((read, wrote)) = row.disk_mb.get() {
        let faults = row.major_faults.get().map_or_else(String::new, |faults| {
            format!(" at {} major faults", basics::units::grouped(faults.round() as i64))
        });
        parts.push(format!("the disk read {} MB and wrote {} MB{faults}", significant(*read), significant(*wrote)));
    }
    if let Some((some, all)) = row.memory_percent.get() {
        parts.push(format!(
            "something waited for memory in {} % of the time, everything in {} %",
            significant(*some),
            significant(*all)
        ));
    }
    if let Some((ratio, most)) = row.zswap.get() {
        let apart = visits.iter().any(|visit| visit.seen.zswap.is_some_and(|zswap| zswap.counted_apart));
        let apart = if apart { ", by which the limit was lowered as this kernel does not count it there" } else { "" };
        parts.push(format!(
            "zswap held pages in a {} of their size, {} MB at most{apart}",
            fraction(*ratio),
            significant(*most)
        ));
    }
    if let Some(ratio) = row.files_ratio.get().filter(|ratio| **ratio > 1.05) {
        parts.push(format!("its files take a {} of their size on the disk", fraction(*ratio)));
    }
    parts.join("; ")
}

fn fraction(ratio: f64) -> String {
    format!("1/{}", significant(ratio))
}

/// The second set-up and each further one against the first.
pub fn desktop_verdicts(run: &RunView<'_>) -> Vec<DesktopVerdict> {
    let all: Vec<(&str, Vec<Visit<'_>>)> =
        by_tier(run, Engine::Browsed).map(|(setup, steps)| (setup, visits(&steps))).collect();
    let Some((first, others)) = all.split_first() else { return Vec::new() };
    others.iter().filter_map(|other| verdict(first, other)).collect()
}

fn verdict(first: &(&str, Vec<Visit<'_>>), other: &(&str, Vec<Visit<'_>>)) -> Option<DesktopVerdict> {
    let rounds = || first.1.iter().zip(&other.1).filter(|(a, b)| a.step.job.seed == b.step.job.seed);
    let of = |visit: &Visit<'_>, act: &Act| waited(visit.seen, act);
    let pairs: Vec<(f64, f64)> = rounds()
        .flat_map(|(a, b)| {
            let acts = a.seen.acts.iter().zip(&b.seen.acts);
            acts.filter(|(x, y)| (x.page, x.opens) == (y.page, y.opens)).map(|(x, y)| (of(a, x), of(b, y)))
        })
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let effect = paired(&pairs, false);
    let (from, to) = (first.0, other.0);
    let means = |pick: fn(&(f64, f64)) -> f64| pairs.iter().map(pick).sum::<f64>() / pairs.len() as f64;
    let (before, after) = (means(|pair| pair.0), means(|pair| pair.1));
    let rounds = rounds().count();
    let over = format!("over {} acts of {rounds} visit{}", pairs.len(), if rounds == 1 { "" } else { "s" });
    let seconds = format!("{} s an act on {from}, {} s on {to}", significant(before), significant(after));
    let sentence = match (effect.verdict, effect.percent) {
        (Proven::Helped, Some((low, mid, high))) => format!(
            "{to} helped by {} % [{}, {}] {over}: {seconds}.",
            significant(mid),
            significant(low),
            significant(high)
        ),
        (Proven::Hurt, Some((low, mid, high))) => format!(
            "{to} hurt by {} % [{}, {}] {over}: {seconds}.",
            significant(mid),
            significant(low),
            significant(high)
        ),
        (Proven::NoEffect, Some((low, _, high))) => {
            // What was not seen may be there all the same.
            format!(
                "No effect of {to} is seen {over}, which leaves room for [{}, {}] %: {seconds}; more visits narrow it.",
                significant(low),
                significant(high)
            )
        }
        _ => format!("Too few acts for a verdict ({}): {seconds}.", pairs.len()),
    };
    Some(DesktopVerdict {
        from: from.to_owned(),
        to: to.to_owned(),
        effect,
        acts: pairs.len(),
        visits: rounds,
        sentence,
    })
}

/// The answer in a sentence.
pub fn desktop_headline(run: &RunView<'_>) -> Option<String> {
    let verdicts = desktop_verdicts(run);
    if let Some(verdict) = verdicts.first() {
        return Some(verdict.sentence.clone());
    }
    let rows = desktop_rows(run);
    let row = rows.first()?;
    let wait = row.wait_s.get()?;
    Some(format!("On {} a user waits {} s for a page or a tab in the mean.", row.setup, significant(*wait)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::desktop::{PageSeen, ZswapSeen};
    use basics::{Bytes, Job};

    fn visit(setup: &str, seed: u64, open: f64, switch: f64, crashes: bool) -> Step {
        let mut step = Step::new("desktop", setup, Job { engine: Engine::Browsed, seed, ..Job::default() });
        let mut seen = Browsed {
            patience: Nanos::from_secs(60.0),
            started: Nanos::from_secs(2.0),
            longest: Nanos::from_secs(switch),
            ..Browsed::default()
        };
        for page in 0..3 {
            let gone = crashes && page == 2;
            let took = (!gone).then(|| Nanos::from_secs(open + f64::from(page) / 10.0));
            seen.pages.push(PageSeen { interactive: took, alive: !gone, crashed: gone });
            seen.acts.push(Act { page, opens: true, took });
        }
        for page in (0..9).map(|at| at % 3) {
            let took = (!(crashes && page == 2)).then(|| Nanos::from_secs(switch + f64::from(page) / 50.0));
            took.iter().for_each(|took| step.read.latency.record(*took));
            seen.acts.push(Act { page, opens: false, took });
        }
        seen.zswap = Some(ZswapSeen { stored: Bytes(300), pool: Bytes(100), most: Bytes(120), counted_apart: true });
        step.elapsed = Nanos::from_secs(30.0);
        step.load = Some(Load { browsed: Some(Box::new(seen)), ..Load::default() });
        step
    }

    #[test]
    fn the_same_acts_are_held_against_each_other() {
        let steps = [
            visit("stock", 1, 8.0, 2.0, true),
            visit("moved", 1, 4.0, 0.5, false),
            visit("stock", 2, 8.2, 2.1, true),
            visit("moved", 2, 4.1, 0.4, false),
        ];
        let run = Run::default().steps(steps);
        let view = run.view();
        let rows = desktop_rows(&view);
        assert_eq!((rows.len(), rows[0].visits), (2, 2));
        assert_eq!(rows[0].pages.get(), Some(&(3.0, 2.0, 1.0)));
        assert!(rows[0].why.contains("8 did not come within 60"), "{}", rows[0].why);
        assert!(rows[1].why.contains("1/3"), "{}", rows[1].why);
        assert!(rows[0].wait_s.get() > rows[1].wait_s.get());
        let verdicts = desktop_verdicts(&view);
        assert_eq!((verdicts.len(), verdicts[0].acts, verdicts[0].visits), (1, 24, 2));
        assert_eq!(verdicts[0].effect.verdict, Proven::Helped);
        assert!(desktop_headline(&view).unwrap().starts_with("moved helped by"), "{:?}", desktop_headline(&view));
    }

    #[test]
    fn a_set_up_against_itself_is_no_effect_and_few_acts_are_no_verdict() {
        let same = [visit("a", 1, 8.0, 2.0, false), visit("b", 1, 8.0, 2.0, false)];
        assert_eq!(desktop_verdicts(&Run::default().steps(same).view())[0].effect.verdict, Proven::NoEffect);
        // Rounds whose acts are others are not held against one another.
        let other = [visit("a", 1, 8.0, 2.0, false), visit("b", 2, 1.0, 1.0, false)];
        assert!(desktop_verdicts(&Run::default().steps(other).view()).is_empty());
    }
}
