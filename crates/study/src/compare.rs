//! Two runs, or two groups of repeated runs, step by step, with a verdict that the noise allows.
//!
//! With three or more repeats on both sides the interval comes from the spread between repeats (Welch's t on
//! logarithms). With fewer it comes from inside the steps (batch means); that sees no difference from run to run, so the
//! usual scatter between runs ([`Kind`]) is added to it.

use crate::model::{Comparison, FigureComparison, RunView, State, StepView, Verdict};
use crate::quotes;
use crate::series::{self, Way};
use crate::work;
use basics::stats::{batch_means, mean, median, stdev, student_t};
use basics::units::significant;
use basics::{Known, Latencies, Scale};

/// A kind of figure, and how far it scatters from run to run of an unchanged disk.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// Standard deviation of the logarithm.
    sigma: f64,
    /// As [`TELLING`], of single runs.
    telling: f64,
    more_is_better: bool,
}

/// The quartiles of fio's own rates lay 2 to 9 % from their median in docs/benchmarks.md, on a disk that others use too;
/// the middle of that.
const RATE: Kind = Kind { sigma: 0.05, telling: 0.2, more_is_better: true };
/// Those of its p99s 5 to 40 %.
const TAIL: Kind = Kind { sigma: 0.12, telling: 0.45, more_is_better: false };
/// 97.5th percentile of the normal law.
const Z: f64 = 1.96;
/// Half width of a ratio's interval up to which "no difference seen" means something, when it comes from repeats.
const TELLING: f64 = 0.15;
/// Fewest repeats on each side for an interval from the spread between them.
const REPEATS: usize = 3;
/// Fewest operations in a joined interval for a p99 of its own.
const FOR_A_P99: u64 = 100;

/// Compares `before` with `after`, each one run or several repeats of it. Steps are matched by name and tier; a step
/// that occurs several times counts as repeated.
pub fn compare(before: &[RunView<'_>], after: &[RunView<'_>]) -> Comparison {
    let mut figures = Vec::new();
    let mut unmatched = Vec::new();
    let mut ways = Vec::new();
    for (name, tier) in keys(before) {
        let (old, new) = (steps(before, name, tier), steps(after, name, tier));
        let label = label(name, tier);
        match (old.first(), new.first()) {
            (Some(_), None) => unmatched.push(format!("{label}: {}", alone(after, name, tier, "before", "after"))),
            (Some(first), Some(_)) => {
                let others = || old.iter().chain(&new).skip(1);
                if let Some(what) = others().find_map(|other| work::differs(first, other)) {
                    unmatched.push(format!("{label}: {what} differs, so the figures cannot be compared"));
                } else {
                    ways.extend(
                        others()
                            .find_map(|other| work::another_way(first, other))
                            .map(|way| format!("{label}: {way}.")),
                    );
                    figures.extend(compare_step(name, tier, &old, &new));
                }
            }
            (None, _) => {}
        }
    }
    let (pairs, unpaired) = quotes::pairs(before, after);
    for pair in pairs {
        let kind = if pair.more_is_better { RATE } else { TAIL };
        let side = |values: &[f64]| values.iter().map(|value| Measured { value: *value, noise: Some(0.0) }).collect();
        let (old, new): (Vec<_>, Vec<_>) = (side(&pair.before), side(&pair.after));
        figures.extend(compare_figure("quoted", None, pair.name, kind, &old, &new));
    }
    unmatched.extend(unpaired);
    let seen = keys(before);
    let new = keys(after).into_iter().filter(|key| !seen.contains(key));
    unmatched.extend(new.map(|(n, t)| format!("{}: {}", label(n, t), alone(before, n, t, "after", "before"))));
    let mut notes = notes(before, after);
    if before.len().min(after.len()) < REPEATS && !figures.is_empty() {
        let least = |kind: Kind| significant((100.0 * ((Z * kind.sigma * 2f64.sqrt()).exp() - 1.0)).round());
        notes.push(format!(
            "Single runs differ by chance: rates must differ by some {} %, p99s by {} %, to be called better or worse; \
             three runs of each kind show smaller differences.",
            least(RATE),
            least(TAIL)
        ));
    }
    notes.extend(ways);
    Comparison { headline: headline(&figures), figures, unmatched, notes }
}

type Key<'a> = (&'a str, Option<&'a str>);

fn label(name: &str, tier: Option<&str>) -> String {
    tier.map_or_else(|| name.to_owned(), |tier| format!("{tier} {name}"))
}

/// Why a step of one side has nothing to stand against: `others` lack it, or have a part of it.
fn alone(others: &[RunView<'_>], name: &str, tier: Option<&str>, here: &str, there: &str) -> String {
    let same = |step: &&StepView<'_>| step.name == name && step.tier == tier && step.did_something();
    match others.iter().flat_map(|run| &run.steps).find(same) {
        Some(_) => format!("only {here}; {there} it did not come to its end, and a part of it is not compared"),
        None => format!("only {here}"),
    }
}

fn keys<'a>(runs: &[RunView<'a>]) -> Vec<Key<'a>> {
    let mut out = Vec::new();
    for step in runs.iter().flat_map(|run| &run.steps).filter(|step| step.is_whole()) {
        if !out.contains(&(step.name, step.tier)) {
            out.push((step.name, step.tier));
        }
    }
    out
}

fn steps<'r, 'a>(runs: &'r [RunView<'a>], name: &str, tier: Option<&str>) -> Vec<&'r StepView<'a>> {
    let wanted = |step: &&StepView<'_>| step.name == name && step.tier == tier && step.is_whole();
    runs.iter().flat_map(|run| &run.steps).filter(wanted).collect()
}

/// A figure of one step with the noise inside that step.
struct Measured {
    value: f64,
    /// Half width of the 95 % interval over the value; unknown when the series is too short.
    noise: Option<f64>,
}

fn compare_step(name: &str, tier: Option<&str>, old: &[&StepView<'_>], new: &[&StepView<'_>]) -> Vec<FigureComparison> {
    let mut out = Vec::new();
    for (way, word) in [(Way::Read, "read"), (Way::Write, "write")] {
        let unit = if large_blocks(old) { "MB/s" } else { "IOPS" };
        let rate = |steps: &[&StepView<'_>]| steps.iter().filter_map(|step| rate(step, way)).collect::<Vec<_>>();
        let tail = |steps: &[&StepView<'_>]| steps.iter().filter_map(|step| p99(step, way)).collect::<Vec<_>>();
        out.extend(compare_figure(name, tier, format!("{word} {unit}"), RATE, &rate(old), &rate(new)));
        out.extend(compare_figure(name, tier, format!("{word} p99 µs"), TAIL, &tail(old), &tail(new)));
    }
    out
}

/// From 64 KiB on people speak of MB/s, below of IOPS.
fn large_blocks(steps: &[&StepView<'_>]) -> bool {
    steps.first().is_some_and(|step| step.job.block.largest().0 >= 64 * basics::units::KIB)
}

fn rate(step: &StepView<'_>, way: Way) -> Option<Measured> {
    let side = series::side(step, way)?;
    if side.latency.is_empty() {
        return None;
    }
    let scale = if large_blocks(&[step]) { side.bytes as f64 / side.operations() as f64 / 1e6 } else { 1.0 };
    // Operations over the whole time, an fsync at its end included: the rate that every other output gives.
    let value = Some(side.operations() as f64 / step.elapsed.secs()).filter(|value| value.is_finite())?;
    let noise = batch_means(&series::rates(&series::pieces(step, way))).map(|interval| interval.half_width / value);
    Some(Measured { value: value * scale, noise })
}

/// The p99 of the whole step; its noise from the p99s of ten or more stretches of it.
fn p99(step: &StepView<'_>, way: Way) -> Option<Measured> {
    let side = series::side(step, way)?;
    if side.operations() < FOR_A_P99 || !side.is_each_timed() {
        return None;
    }
    let mut stretches = Vec::new();
    let mut open = Latencies::new();
    for interval in &step.intervals {
        let part = if way == Way::Write { &interval.write } else { &interval.read };
        open.merge(&part.latency);
        if open.count() >= FOR_A_P99 {
            stretches.extend(open.percentile(99.0).map(|p99| p99.us()));
            open.clear();
        }
    }
    let value = side.latency.percentile(99.0)?.us();
    let noise = batch_means(&stretches).map(|interval| interval.half_width / interval.mean);
    Some(Measured { value, noise }).filter(|measured| measured.value > 0.0)
}

fn compare_figure(
    step: &str,
    tier: Option<&str>,
    figure: String,
    kind: Kind,
    old: &[Measured],
    new: &[Measured],
) -> Option<FigureComparison> {
    let values = |side: &[Measured]| side.iter().map(|m| m.value).collect::<Vec<_>>();
    let (before, after) = (median(&values(old))?, median(&values(new))?);
    let more_is_better = kind.more_is_better;
    let repeated = old.len() >= REPEATS && new.len() >= REPEATS;
    let ratio = after / before;
    let runs = (1.0 / old.len() as f64 + 1.0 / new.len() as f64).sqrt();
    let spread = if repeated {
        between(&values(old), &values(new))
    } else {
        within(old, new).map(|inside| inside.hypot(Z * kind.sigma * runs))
    };
    let ratio_ci95 = match spread {
        Some(half) => Known::Is((ratio * (-half).exp(), ratio * half.exp())),
        None => Known::not_measured("too short"),
    };
    let verdict =
        verdict(ratio, ratio_ci95.get().copied(), more_is_better, if repeated { TELLING } else { kind.telling });
    let text = words(ratio, ratio_ci95.get().copied(), verdict);
    Some(FigureComparison {
        step: step.to_owned(),
        tier: tier.map(str::to_owned),
        figure,
        more_is_better,
        before,
        after,
        ratio,
        ratio_ci95,
        verdict,
        text,
    })
}

/// Half width of the log ratio's 95 % interval from the spread between repeats: Welch's t, with the degrees of freedom
/// after Welch and Satterthwaite.
fn between(old: &[f64], new: &[f64]) -> Option<f64> {
    let part = |values: &[f64]| {
        let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        Some((stdev(&logs)?.powi(2) / logs.len() as f64, logs.len() as f64 - 1.0))
    };
    let ((va, fa), (vb, fb)) = (part(old)?, part(new)?);
    let variance = va + vb;
    let weight = va * va / fa + vb * vb / fb;
    let degrees = if weight > 0.0 { variance * variance / weight } else { fa + fb };
    Some(student_t(0.95, degrees) * variance.sqrt())
}

/// The same from the noise inside the steps.
fn within(old: &[Measured], new: &[Measured]) -> Option<f64> {
    let part = |side: &[Measured]| {
        let noises: Option<Vec<f64>> = side.iter().map(|m| m.noise).collect();
        Some(mean(&noises?)? / (side.len() as f64).sqrt())
    };
    Some(part(old)?.hypot(part(new)?))
}

fn verdict(ratio: f64, ci: Option<(f64, f64)>, more_is_better: bool, telling: f64) -> Verdict {
    let Some((low, high)) = ci else { return Verdict::Unclear };
    let clear = low > 1.0 || high < 1.0;
    match (clear, (ratio > 1.0) == more_is_better) {
        (true, true) => Verdict::Better,
        (true, false) => Verdict::Worse,
        (false, _) if low >= 1.0 - telling && high <= 1.0 + telling => Verdict::Same,
        (false, _) => Verdict::Unclear,
    }
}

fn words(ratio: f64, ci: Option<(f64, f64)>, verdict: Verdict) -> String {
    let Some((low, high)) = ci else { return "too short to tell".to_owned() };
    // The largest difference that the interval leaves room for.
    let room = 100.0 * (high - 1.0).abs().max((1.0 - low).abs());
    match verdict {
        Verdict::Same => format!("no difference seen (±{} %)", significant(room.max(1.0).round())),
        Verdict::Unclear => format!("unclear: anything from {} to {} times", significant(low), significant(high)),
        Verdict::Better | Verdict::Worse => {
            format!("{} times (95 %: {} to {})", significant(ratio), significant(low), significant(high))
        }
    }
}

fn headline(figures: &[FigureComparison]) -> String {
    let count = |verdict| figures.iter().filter(|figure| figure.verdict == verdict).count();
    let (better, worse, same) = (count(Verdict::Better), count(Verdict::Worse), count(Verdict::Same));
    let unclear = count(Verdict::Unclear);
    match figures.len() {
        0 => "Nothing in common: no step or figure stands in both.".to_owned(),
        all if same == all => format!("No difference seen in any of {all} figures."),
        all => format!("Of {all} figures {better} are better, {worse} worse, {same} the same, {unclear} unclear."),
    }
}

/// That others were at work on one side, in steps that are compared.
fn unquiet(when: &str, runs: &[RunView<'_>]) -> Option<String> {
    let whole = || runs.iter().flat_map(|run| &run.steps).filter(|step| step.is_whole());
    let disturbed = whole().filter(|step| crate::findings::disturbed(step)).count();
    (disturbed > 0).then(|| {
        let all = whole().count();
        format!(
            "The machine was not quiet in {disturbed} of {all} steps {when}: a difference there may be the others'."
        )
    })
}

/// What differs between the machines of the first runs, and what else stands in the way of a verdict.
fn notes(before: &[RunView<'_>], after: &[RunView<'_>]) -> Vec<String> {
    let (Some(a), Some(b)) = (before.first(), after.first()) else { return Vec::new() };
    let origins =
        (a.origin != b.origin).then(|| format!("The figures are of different kinds: {}, then {}.", a.origin, b.origin));
    let filled =
        |run: &RunView<'_>| (run.as_published, run.parameters.get("fill").cloned().unwrap_or("0ns".to_owned()));
    let past = (a.method == b.method && filled(a) != filled(b)).then(|| {
        "What was written before the points differs (as published, or the parameter fill): writes near the rate at which a \
         cache empties are not those of the same moment."
            .to_owned()
    });
    let whole = |scale: Option<Scale>| scale.map_or("whole".to_owned(), |scale| scale.to_string());
    let scales = (a.scale != b.scale)
        .then(|| format!("The durations are of different scales: {}, then {}.", whole(a.scale), whole(b.scale)));
    let same = after.iter().find(|run| !run.id.is_empty() && before.iter().any(|other| other.id == run.id));
    let same = same.map(|run| format!("Run {} stands on both sides: it says nothing about itself.", run.id));
    let (a, b) = (a.machine, b.machine);
    let facts = [
        ("The machine", &a.model, &b.model),
        ("The kernel", &a.kernel, &b.kernel),
        ("The CPU governor", &a.cpu.governor, &b.cpu.governor),
    ];
    let facts = facts
        .into_iter()
        .filter_map(|(what, a, b)| Some((what, a.get()?, b.get()?)))
        .filter(|(_, a, b)| a != b)
        .map(|(what, a, b)| format!("{what} differs: {a}, then {b}."));
    let mut out: Vec<String> = origins.into_iter().chain(past).chain(scales).chain(same).chain(facts).collect();
    let sides = [("before", before), ("after", after)];
    let broken = sides.into_iter().filter(|(_, runs)| runs.iter().any(|run| run.state != State::Done));
    out.extend(broken.map(|(when, _)| format!("The run {when} did not come to its end: steps may be missing.")));
    out.extend(sides.into_iter().filter_map(|(when, runs)| unquiet(when, runs)));
    if let (Some(a), Some(b)) = (a.page_size.get(), b.page_size.get())
        && a != b
    {
        out.push(format!("The page size differs: {a}, then {b}."));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::{Bytes, Nanos};

    /// 2 s of reads around `rate` a tenth of a second, with noise of ±`spread` that repeats every seven intervals.
    fn reads(rate: f64, spread: f64) -> Step {
        let wave = [0.0, 0.9, -0.6, 0.3, -1.0, 0.7, -0.3];
        let counts: Vec<u64> = (0..28).map(|i| (rate * (1.0 + spread * wave[i % 7])).round() as u64).collect();
        Step::page_read("sda", Nanos(1_000_000)).replaced(&counts, Nanos(1_000_000))
    }

    fn run(step: Step) -> Run {
        Run::default().steps([step])
    }

    fn rate_of(before: &[Run], after: &[Run]) -> FigureComparison {
        let before: Vec<_> = before.iter().map(Run::view).collect();
        let after: Vec<_> = after.iter().map(Run::view).collect();
        compare(&before, &after).figures.remove(0)
    }

    #[test]
    fn verdicts_know_the_noise() {
        let rate = |before: Step, after: Step| rate_of(&[run(before)], &[run(after)]);
        let same = rate(reads(100.0, 0.05), reads(101.0, 0.05));
        assert_eq!(same.verdict, Verdict::Same);
        assert!(same.text.starts_with("no difference seen (±"), "{}", same.text);
        let better = rate(reads(100.0, 0.05), reads(180.0, 0.05));
        assert_eq!((better.verdict, better.figure.as_str()), (Verdict::Better, "read IOPS"));
        assert!(better.text.starts_with("1.80 times (95 %: 1.5"), "{}", better.text);
        assert_eq!(rate(reads(100.0, 0.05), reads(60.0, 0.05)).verdict, Verdict::Worse);
        // 10 % apart under noise of half the rate says nothing, in either direction.
        let unclear = rate(reads(100.0, 0.6), reads(110.0, 0.6));
        assert_eq!(unclear.verdict, Verdict::Unclear);
        assert!(unclear.text.starts_with("unclear: anything from 0."), "{}", unclear.text);
    }

    /// What single runs of an unchanged disk differ by is no difference, however quiet each was in itself.
    #[test]
    fn single_runs_scatter() {
        let ratio = |after| rate_of(&[run(reads(1000.0, 0.001))], &[run(reads(after, 0.001))]);
        assert_eq!(ratio(1020.0).verdict, Verdict::Same);
        assert_eq!(ratio(1020.0).text, "no difference seen (±17 %)");
        assert_eq!(ratio(1120.0).verdict, Verdict::Unclear);
        assert_eq!(ratio(880.0).verdict, Verdict::Unclear);
        assert_eq!(ratio(1200.0).verdict, Verdict::Better);
    }

    /// Repeats that scatter by 10 % cannot show a difference of 5 %, though each alone was quiet; repeats that agree can.
    #[test]
    fn repeats_show_the_noise_between_runs() {
        let runs = |rates: [f64; 5]| rates.map(|rate| run(reads(rate, 0.001)));
        let scattered =
            rate_of(&runs([900.0, 1000.0, 1100.0, 950.0, 1050.0]), &runs([950.0, 1050.0, 1150.0, 1000.0, 1100.0]));
        assert_eq!(scattered.verdict, Verdict::Unclear);
        let tight =
            rate_of(&runs([1000.0, 1001.0, 999.0, 1000.0, 1002.0]), &runs([1020.0, 1021.0, 1019.0, 1020.0, 1022.0]));
        assert_eq!(tight.verdict, Verdict::Better);
    }

    /// Bug: the rate of a step that stalled was the median of its intervals here and operations over time elsewhere.
    #[test]
    fn the_rate_is_the_one_that_a_summary_gives() {
        let stalled = || {
            let counts: Vec<u64> = (0..30).map(|i| if i % 3 == 0 { 10 } else { 700 }).collect();
            Step::page_read("sda", Nanos(1_000_000)).replaced(&counts, Nanos(1_000_000))
        };
        let rate = rate_of(&[run(stalled())], &[run(stalled())]);
        assert_eq!(rate.before, crate::summarise(&stalled().view()).read.unwrap().iops);
    }

    #[test]
    fn less_latency_is_better() {
        let slow = Step::page_read("sda", Nanos(1_000_000)).replaced(&[100; 28], Nanos(1_000_000));
        let fast = Step::page_read("sda", Nanos(1_000_000)).replaced(&[100; 28], Nanos(500_000));
        let (slow, fast) = (run(slow), run(fast));
        let all = compare(&[slow.view()], &[fast.view()]);
        let p99 = all.figures.iter().find(|figure| figure.figure == "read p99 µs").unwrap();
        assert_eq!((p99.verdict, p99.more_is_better), (Verdict::Better, false));
        assert!((p99.ratio - 0.5).abs() < 0.01);
        assert_eq!(all.headline, "Of 2 figures 1 are better, 0 worse, 1 the same, 0 unclear.");
    }

    /// The same rate with a long fsync at the end is a slower write.
    #[test]
    fn an_fsync_at_the_end_counts() {
        let slow = {
            let mut step = Step::seq_write("sda", 104.8576);
            step.elapsed = Nanos(2 * step.elapsed.0);
            step
        };
        let rate = rate_of(&[run(Step::seq_write("sda", 104.8576))], &[run(slow)]);
        assert_eq!(rate.figure, "write MB/s");
        assert!((rate.before - 104.8576).abs() < 0.1 && (rate.ratio - 0.5).abs() < 0.01, "{rate:?}");
    }

    #[test]
    fn what_was_simulated_is_not_held_against_a_measurement_unsaid() {
        let run = run(reads(100.0, 0.05));
        let origin = crate::Origin::Simulated("optane-pi5");
        let simulated = RunView { origin, state: State::Interrupted, ..run.view() };
        assert_eq!(
            compare(&[run.view()], &[simulated]).notes[..2],
            [
                "The figures are of different kinds: measured, then simulated: optane-pi5.",
                "The run after did not come to its end: steps may be missing.",
            ]
        );
    }

    #[test]
    fn a_tenth_of_the_time_is_not_held_against_the_whole_unsaid() {
        let run = run(reads(100.0, 0.05));
        let scaled = RunView { scale: Some("1/10".parse().unwrap()), ..run.view() };
        let notes = compare(&[run.view()], &[scaled]).notes;
        assert_eq!(notes[0], "The durations are of different scales: whole, then 1/10.");
    }

    #[test]
    fn a_run_against_itself_and_a_machine_at_work_are_said() {
        let mut one = Run { id: "7c1e04aa".into(), ..run(reads(100.0, 0.05)) };
        let notes = compare(&[one.view()], &[one.view()]).notes;
        assert_eq!(notes[0], "Run 7c1e04aa stands on both sides: it says nothing about itself.");
        for (i, sample) in one.steps[0].sampled().iter_mut().enumerate() {
            sample.cpu_ticks = Some([30 * i as u64, 0, 0, 10 * i as u64, 0, 0, 0, 0]);
        }
        let notes = compare(&[run(reads(100.0, 0.05)).view()], &[one.view()]).notes;
        let others = "The machine was not quiet in 1 of 1 steps after: a difference there may be the others'.";
        assert_eq!(notes[0], others);
    }

    #[test]
    fn a_part_of_a_step_is_not_compared() {
        let mut part = reads(50.0, 0.05);
        part.state = crate::State::Interrupted;
        let all = compare(&[run(reads(100.0, 0.05)).view()], &[run(part).view()]);
        assert!(all.figures.is_empty());
        assert_eq!(
            all.unmatched,
            ["sda page-read-qd1: only before; after it did not come to its end, and a part of it is not compared"]
        );
    }

    #[test]
    fn what_cannot_be_compared_is_said() {
        let mut before = Run::default().steps([Step::seq_read("sda", 100.0), Step::seq_read("sdb", 100.0)]);
        let mut after = Run::default().steps([Step::seq_read("sda", 100.0).block(4096), Step::seq_read("sdc", 100.0)]);
        before.machine.page_size = Known::Is(Bytes(4096));
        after.machine.page_size = Known::Is(Bytes(16384));
        let all = compare(&[before.view()], &[after.view()]);
        assert!(all.figures.is_empty());
        assert_eq!(
            all.unmatched,
            [
                "sda seq-read: the block size differs, so the figures cannot be compared",
                "sdb seq-read: only before",
                "sdc seq-read: only after",
            ]
        );
        assert_eq!(all.notes, ["The page size differs: 4 KiB, then 16 KiB."]);
    }
}
