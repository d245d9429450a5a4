//! What a compilation says about a machine: how long it takes, when the processor begins to slow down, how much of its frequency is lost,
//! and how hot it is.

use crate::load::{by_tier, cpu, unmeasured};
use crate::model::{RunView, StepView};
use basics::job::Engine;
use basics::stats::median;
use basics::units::significant;
use basics::{Known, Nanos, Why};
use observe::Sample;

/// Bits of the firmware's word that mean it takes frequency away now: under-voltage, capped, throttled, soft limit.
const NOW: u32 = 0b1111;
/// A processor that lost so much of its frequency under full load, and not for a moment, is held down. Governors vary by less.
const LOST: f64 = 0.05;
/// What is called a moment, s.
const MOMENT: f64 = 5.0;
/// From here on a load counts as full.
const BUSY: f64 = 80.0;

/// A compilation, on one tier for swap or none. Figures are medians of the visits.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BuildRow {
    /// Where it was swapped to.
    pub tier: String,
    /// One build, s.
    pub build_s: Known<f64>,
    /// Files a minute, over all.
    pub per_minute: Known<f64>,
    /// How much slower the last quarter was than the first, per cent.
    pub slower_percent: Known<f64>,
    /// Until it was throttled, minutes.
    pub minutes_to_throttling: Known<f64>,
    /// Mean frequency in the last quarter against the highest seen, per cent less.
    pub frequency_lost_percent: Known<f64>,
    /// MHz: highest, and mean of the last quarter.
    pub mhz: Known<(f64, f64)>,
    /// °C: at the begin, and the highest.
    pub temperature_c: Known<(f64, f64)>,
    /// Share of all processors' time that was used, per cent.
    pub cpu_percent: Known<f64>,
    /// Visits that came to their end.
    pub visits: usize,
    /// Why it is so.
    pub why: String,
}

/// The rows of a run; empty where nothing was compiled.
pub fn build_rows(run: &RunView<'_>) -> Vec<BuildRow> {
    by_tier(run, Engine::Built).map(|(tier, steps)| row(tier, &steps)).collect()
}

fn row(tier: &str, steps: &[&StepView<'_>]) -> BuildRow {
    let whole: Vec<&StepView<'_>> = steps
        .iter()
        .copied()
        .filter(|step| step.is_whole() && step.load.is_some_and(|load| load.built.is_some()))
        .collect();
    let lack = || Why::NotMeasured(unmeasured(steps).to_owned());
    let middle = |pick: &dyn Fn(&StepView<'_>) -> Option<f64>, lacks: Option<&str>| {
        let all: Vec<f64> = whole.iter().filter_map(|step| pick(step)).collect();
        let why = || match lacks.filter(|_| !whole.is_empty()) {
            Some(lacks) => Why::NotMeasured(lacks.to_owned()),
            None => lack(),
        };
        median(&all).map_or_else(|| Known::Unknown(why()), Known::Is)
    };
    let pair = |a: Known<f64>, b: Known<f64>| match (a, b) {
        (Known::Is(a), Known::Is(b)) => Known::Is((a, b)),
        (Known::Unknown(why), _) | (_, Known::Unknown(why)) => Known::Unknown(why),
    };
    const NO_MHZ: &str = "this machine does not tell its frequency";
    const NO_HEAT: &str = "this machine does not tell its temperature";
    let silent = whole.iter().all(|step| step.samples.iter().all(|s| s.throttled.is_none() && s.cpu_mhz.is_none()));
    let throttled = if silent { "this machine tells neither throttling nor its frequency" } else { "not throttled" };
    let mut row = BuildRow {
        tier: tier.to_owned(),
        build_s: middle(
            &|step| {
                let builds = &step.load?.built.as_deref()?.builds;
                median(&builds.iter().map(|time| time.secs()).collect::<Vec<_>>())
            },
            Some("no build was done in the time"),
        ),
        per_minute: middle(&|step| Some(60.0 * step.read.operations() as f64 / step.elapsed.secs()), None),
        slower_percent: middle(&slower, Some("too short")),
        minutes_to_throttling: middle(&|step| throttling(step).map(|at| at / 60.0), Some(throttled)),
        frequency_lost_percent: middle(
            &|step| frequency(step).map(|(top, last)| 100.0 * (1.0 - last / top)),
            Some(NO_MHZ),
        ),
        mhz: pair(
            middle(&|step| frequency(step).map(|both| both.0), Some(NO_MHZ)),
            middle(&|step| frequency(step).map(|both| both.1), Some(NO_MHZ)),
        ),
        temperature_c: pair(
            middle(&|step| step.samples.iter().find_map(|sample| sample.temperature_c), Some(NO_HEAT)),
            middle(&|step| step.samples.iter().filter_map(|s| s.temperature_c).reduce(f64::max), Some(NO_HEAT)),
        ),
        cpu_percent: middle(
            &|step| {
                let (first, last) = step.samples.first().zip(step.samples.last())?;
                cpu(first, last).map(|cpu| cpu.0)
            },
            None,
        ),
        visits: whole.len(),
        why: unmeasured(steps).to_owned(),
    };
    if !whole.is_empty() {
        row.why = why(&row, &whole);
    }
    row
}

/// How much slower the last quarter was than the first, per cent.
fn slower(step: &StepView<'_>) -> Option<f64> {
    let end = step.intervals.last()?.end.secs();
    let done = |from: f64, to: f64| -> f64 {
        let within = step.intervals.iter().filter(|one| one.start.secs() >= from && one.end.secs() <= to);
        within.map(|one| one.read.operations() as f64).sum()
    };
    let (first, last) = (done(0.0, end / 4.0), done(end * 0.75, end + 1.0));
    // Of fewer the chance is larger than what is looked for.
    (first >= 50.0).then(|| 100.0 * (first / last.max(1.0) - 1.0))
}

/// Highest frequency, and the mean of the last quarter, MHz.
fn frequency(step: &StepView<'_>) -> Option<(f64, f64)> {
    let all: Vec<(f64, f64)> =
        step.samples.iter().filter_map(|sample| Some((sample.at.secs(), f64::from(sample.cpu_mhz?)))).collect();
    let top = all.iter().map(|(_, mhz)| *mhz).reduce(f64::max).filter(|top| *top > 0.0)?;
    let from = all.first()?.0 + 0.75 * (all.last()?.0 - all.first()?.0);
    let last: Vec<f64> = all.iter().filter(|(at, _)| *at >= from).map(|(_, mhz)| *mhz).collect();
    Some((top, last.iter().sum::<f64>() / last.len().max(1) as f64))
}

/// When it was first throttled, s since the begin: by the firmware's word, else by a frequency that stays lower.
fn throttling(step: &StepView<'_>) -> Option<f64> {
    let begin = step.samples.first()?.at.secs();
    let by_word = step.samples.iter().find(|sample| sample.throttled.is_some_and(|word| word & NOW != 0));
    if let Some(sample) = by_word {
        return Some(sample.at.secs() - begin);
    }
    if step.samples.iter().any(|sample| sample.throttled.is_some()) {
        return None;
    }
    let (top, _) = frequency(step)?;
    let mut since: Option<&Sample> = None;
    for (before, sample) in step.samples.iter().zip(step.samples.iter().skip(1)) {
        let low = sample.cpu_mhz.is_some_and(|mhz| f64::from(mhz) < (1.0 - LOST) * top);
        // One that idles is slower because nobody wants more.
        let busy = cpu(before, sample).is_none_or(|(used, _)| used >= BUSY);
        if !(low && busy) {
            since = None;
            continue;
        }
        let first = since.get_or_insert(sample);
        if sample.at.secs() - first.at.secs() >= MOMENT {
            return Some(first.at.secs() - begin);
        }
    }
    None
}

fn why(row: &BuildRow, whole: &[&StepView<'_>]) -> String {
    let mut parts = Vec::new();
    if let Some(built) = whole.first().and_then(|step| step.load?.built.as_deref()) {
        parts.push(format!("{}, {} at a time", built.version, built.jobs));
    }
    let word = whole.iter().flat_map(|step| &step.samples).filter_map(|sample| sample.throttled).fold(0, |a, b| a | b);
    let causes = [(0b0001, "the supply is too weak"), (0b1000, "the soft temperature limit"), (0b0100, "heat")];
    let causes: Vec<&str> = causes.iter().filter(|(bit, _)| word & bit != 0).map(|(_, cause)| *cause).collect();
    match (row.minutes_to_throttling.get(), row.frequency_lost_percent.get()) {
        (Some(minutes), lost) => {
            let lost =
                lost.map_or_else(String::new, |lost| format!(", {} % of its frequency lost", significant(*lost)));
            let by = if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
            parts.push(format!(
                "throttled after {} minutes{lost}{by}: a heat sink, a fan, or a better supply",
                significant(*minutes)
            ));
        }
        (None, _) => parts.push(row.minutes_to_throttling.to_string()),
    }
    if let Some((begin, top)) = row.temperature_c.get() {
        parts.push(format!("{} °C at the begin, {} °C at most", significant(*begin), significant(*top)));
    }
    parts.join("; ")
}

/// The answer in a sentence.
pub fn build_headline(rows: &[BuildRow]) -> Option<String> {
    let row = rows.first()?;
    let build = row.build_s.get().map(|time| format!("A build takes {}", Nanos::from_secs(*time)));
    let build = build.or_else(|| Some(format!("{} files a minute", significant(*row.per_minute.get()?))))?;
    Some(match (row.minutes_to_throttling.get(), row.frequency_lost_percent.get()) {
        (Some(minutes), Some(lost)) => {
            format!(
                "{build}; throttled after {} minutes, {} % of the frequency lost.",
                significant(*minutes),
                significant(*lost)
            )
        }
        (Some(minutes), None) => format!("{build}; throttled after {} minutes.", significant(*minutes)),
        (None, _) => format!("{build}; {}.", row.minutes_to_throttling),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::desktop::Built;
    use basics::pressure::Load;
    use basics::{Interval, Job};

    /// Ten minutes on a board that is full of work: 1200 MHz, and from minute three on `slow`.
    fn board(slow: u32, word: Option<u32>) -> Step {
        let mut step = Step::new("build", "this machine", Job { engine: Engine::Built, ..Job::default() });
        for second in 0..600u32 {
            let late = second >= 180;
            let mhz = if late { slow } else { 1200 };
            step.samples.push(Sample {
                at: Nanos::from_secs(f64::from(second)),
                cpu_mhz: Some(mhz),
                temperature_c: Some(50.0 + f64::from(second.min(180)) / 6.0),
                throttled: word.map(|word| if late { word } else { 0 }),
                cpu_ticks: Some([u64::from(second) * 400, 0, 0, 0, 0, 0, 0, 0]),
                ..Sample::default()
            });
            let mut interval = Interval {
                start: Nanos::from_secs(f64::from(second)),
                end: Nanos::from_secs(f64::from(second + 1)),
                ..Interval::default()
            };
            interval.read.latency.record_n(Nanos::from_millis(500), u64::from(mhz / 100));
            step.read.merge(&interval.read);
            step.intervals.push(interval);
        }
        step.elapsed = Nanos::from_secs(600.0);
        let builds = vec![Nanos::from_secs(20.0); 3];
        let built = Built { version: "cc 12".into(), builds, units: 100, jobs: 4, ..Built::default() };
        step.load = Some(Load { built: Some(Box::new(built)), ..Load::default() });
        step
    }

    #[test]
    fn a_board_that_becomes_hot_is_seen_to() {
        for word in [None, Some(0b0100)] {
            let rows = build_rows(&Run::default().steps([board(600, word)]).view());
            let row = &rows[0];
            let minutes = row.minutes_to_throttling.get().unwrap();
            assert!((minutes - 3.0).abs() < 0.1, "{word:?}: {minutes}");
            assert_eq!(row.frequency_lost_percent.get(), Some(&50.0));
            assert_eq!((row.build_s.get(), row.temperature_c.get()), (Some(&20.0), Some(&(50.0, 80.0))));
            let slower = row.slower_percent.get().unwrap();
            assert!((80.0..120.0).contains(slower), "{slower}");
            assert!(build_headline(&rows).unwrap().contains("throttled after 3"), "{:?}", build_headline(&rows));
        }
        let heat = build_rows(&Run::default().steps([board(600, Some(0b0101))]).view());
        assert!(heat[0].why.contains("the supply is too weak, heat"), "{}", heat[0].why);
    }

    #[test]
    fn what_is_not_throttled_says_so_and_so_does_what_tells_nothing() {
        let cool = build_rows(&Run::default().steps([board(1200, Some(0))]).view());
        assert!(cool[0].why.contains("not throttled"), "{}", cool[0].why);
        let mut dumb = board(1200, None);
        dumb.samples.iter_mut().for_each(|sample| (sample.cpu_mhz, sample.temperature_c) = (None, None));
        let rows = build_rows(&Run::default().steps([dumb]).view());
        assert!(rows[0].why.contains("tells neither"), "{}", rows[0].why);
        assert!(rows[0].frequency_lost_percent.get().is_none());
    }
}
