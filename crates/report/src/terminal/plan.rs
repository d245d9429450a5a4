//! A plan before it is run: each step in words, what it will write where, how long it takes and what it wears, as far as that
//! can be said, and all of it together.

use super::Style;
use super::lay::Tone;
use crate::costs::costs;
use crate::words;
use basics::cost::{Cost, Span};
use basics::job::{Entropy, Figure, Job};
use basics::plan::{Act, Plan, Rounds, Step, Target};
use basics::pressure::Area;
use basics::units::{grouped, significant};
use basics::{Bytes, Nanos};
use machine::Machine;
use std::fmt::Display;

/// The whole plan; nothing of it has been done.
pub fn plan(plan: &Plan, machine: &Machine, style: &Style) -> String {
    let mut on: Vec<String> = plan.targets.iter().map(Target::describe).collect();
    on.dedup();
    let mut out = style.both_ends(
        &format!("plan {}  {} on {}", plan.hash(), plan.method, on.join(", ")),
        "nothing of it has been done",
    );
    let costs = costs(plan, machine);
    for (index, (step, cost)) in plan.steps.iter().zip(&costs).enumerate() {
        if let Some(rounds) = plan.rounds.as_ref().filter(|rounds| index == rounds.steps_of(1).start) {
            out.push('\n');
            out.push_str(&style.paragraph("", &again(plan, rounds), Tone::Strong));
        }
        if plan.rounds.as_ref().is_none_or(|rounds| !(rounds.steps_of(1).start..rounds.end()).contains(&index)) {
            out.push('\n');
            out.push_str(&self::step(index, step, &plan.targets[step.target], cost, style));
        }
    }
    for left_out in &plan.left_out {
        let what = if left_out.step.is_empty() { "every step" } else { &left_out.step };
        let text = format!("{} {what}: {}", left_out.tier, left_out.why);
        out.push_str(&style.paragraph("  left out  ", &text, Tone::Faint));
    }
    out.push('\n');
    out.push_str(&style.paragraph("in all  ", &in_all(plan, &costs), Tone::Strong));
    out
}

/// The rounds after the first, of which there may be hundreds of steps.
fn again(plan: &Plan, rounds: &Rounds) -> String {
    let first = rounds.steps_of(0).start;
    let tracked = rounds.tracked.iter().filter_map(|place| plan.steps.get(first + place));
    let tracked: Vec<&str> = tracked.map(|step| Rounds::point(&step.name)).collect();
    format!(
        "{} to {}: the same again, {} to {} rounds in all, until {} hold still",
        rounds.steps_of(1).start,
        rounds.end().saturating_sub(1),
        rounds.least,
        rounds.most,
        basics::units::listed(&tracked)
    )
}

fn step(index: usize, step: &Step, target: &Target, cost: &Cost, style: &Style) -> String {
    let tier = step.tier.as_ref().map_or(String::new(), |tier| format!(" of {tier}"));
    let mut out = style.paragraph("", &format!("{index:<2} {}{tier}", step.name), Tone::Strong);
    let acts = |acts: &[Act]| acts.iter().map(|act| act.describe()).collect::<Vec<_>>().join(", ");
    let mut say = |lead: &str, text: &str| out.push_str(&style.paragraph(lead, text, Tone::Plain));
    if cost.laid_out.0 > 0 {
        say("   first   ", &format!("write {} to lay it out {}", cost.laid_out, place(target)));
    }
    if !step.before.is_empty() {
        say("   first   ", &acts(&step.before));
    }
    say("   does    ", &format!("{}{} {}", words::asked(&step.job, target), region(&step.job, target), place(target)));
    say("   takes   ", &format!("{}{}", takes(&cost.time), ends(&step.job)));
    say("   writes  ", &writes(step, target, cost));
    out
}

/// Where a step works.
fn place(target: &Target) -> String {
    match target {
        Target::Memory { .. } => "in memory".to_owned(),
        Target::Null { .. } => "on nothing at all".to_owned(),
        Target::File { path } => format!("on the file {}", path.display()),
        Target::TestFile { dir, .. } => format!("on a test file in {}", dir.display()),
        Target::Device { path, .. } => format!("on the device {}", path.display()),
        Target::Profile { name, .. } => format!("on the profile {name}, in virtual time"),
        Target::Redis(server) => {
            format!("by {}, {} keys", server.describe(), basics::units::grouped(server.keys as i64))
        }
        Target::Pressed(pressed) => {
            format!("in memory of a process of its own, {}, {}", pressed.pressure.describe(), pressed.swap.describe())
        }
    }
}

/// How much of its target a job visits, where the job or the target says so.
fn region(job: &Job, target: &Target) -> String {
    let whole = match target {
        Target::TestFile { size, .. } | Target::Memory { size } => Some(*size),
        _ => None,
    };
    let from = if job.offset.0 > 0 { format!(" from {} on", job.offset) } else { String::new() };
    job.size.or(whole).map_or(from.clone(), |size| format!(", in {size}{from},"))
}

fn takes(time: &Span<Nanos>) -> String {
    span(time, |time| words::duration(*time), "as long as the device needs")
}

/// What ends a job beside its time.
fn ends(job: &Job) -> String {
    let stop = &job.stop;
    let mut ends = Vec::new();
    ends.extend(stop.bytes.map(|bytes| format!("{bytes} are moved")));
    ends.extend(stop.operations.map(|n| format!("{} operations are done", grouped(n as i64))));
    ends.extend(stop.until.map(|until| {
        let figure = match until.figure {
            Figure::Iops => "the rate",
            Figure::MeanLatency => "the mean latency",
        };
        format!("{figure} is known to ±{} %", significant(until.percent))
    }));
    if ends.is_empty() { String::new() } else { format!(", until {}", ends.join(" or ")) }
}

fn writes(step: &Step, target: &Target, cost: &Cost) -> String {
    if matches!(target, Target::Profile { .. }) {
        return "nothing: no device is touched".to_owned();
    }
    if let Some(swap) = swapped(target) {
        return swap;
    }
    if cost.worn().is_none() {
        return "nothing to a device".to_owned();
    }
    let content = match step.job.entropy {
        Entropy::Zeros => "zeros",
        Entropy::Compressible => "data that compress 2:1",
        Entropy::Incompressible => "data that do not compress",
        Entropy::Deduplicable => "data that repeat",
        Entropy::Stamps => "8 bytes in each 4 KiB and zeros",
        Entropy::Tagged => "data that say where they were written",
    };
    let own = if cost.written.is_none() { String::new() } else { format!("{} of {content}", amount(&cost.written)) };
    match (cost.laid_out.0, own.is_empty()) {
        (0, _) => own,
        (_, true) => format!("{} to lay the file out", cost.laid_out),
        (_, false) => format!("{} to lay the file out, then {own}", cost.laid_out),
    }
}

/// What swap costs the disks that it is on, where it is on any; how much of it goes out only the run shows.
fn swapped(target: &Target) -> Option<String> {
    let Target::Pressed(pressed) = target else { return None };
    let of_disk = |area: &Area| -> Option<String> {
        let area = if let Area::Zram { behind, .. } = area { behind.as_deref()? } else { area };
        match area {
            Area::File { dir, size } => Some(format!("{size} to make a swap file in {}", dir.display())),
            Area::Own => Some("to this machine's own swap".to_owned()),
            Area::Device { path, .. } => Some(format!("to {}", path.display())),
            // In memory both.
            Area::Emulated { .. } | Area::Zram { .. } => None,
        }
    };
    let disks: Vec<String> = pressed.swap.areas.iter().filter_map(of_disk).collect();
    (!disks.is_empty()).then(|| format!("{}, and every page that goes out", basics::units::listed(&disks)))
}

fn amount(bytes: &Span<Bytes>) -> String {
    span(bytes, ToString::to_string, "as much as the device takes in that time")
}

/// From what to what; `open` where the device decides.
fn span<T: Copy + PartialEq + Default, D: Display>(span: &Span<T>, show: impl Fn(&T) -> D, open: &str) -> String {
    let least = (span.least != T::default()).then(|| show(&span.least));
    match (span.exact(), least, span.most) {
        (Some(exact), ..) => show(&exact).to_string(),
        (None, None, Some(most)) => format!("at most {}", show(&most)),
        (None, Some(least), Some(most)) => format!("{least} to {}", show(&most)),
        (None, None, None) => open.to_owned(),
        (None, Some(least), None) => format!("{least} at least, {open}"),
    }
}

/// The sums, and what becomes of the files.
fn in_all(plan: &Plan, costs: &[Cost]) -> String {
    let all = Cost::sum(costs);
    let steps = if plan.steps.len() == 1 { "1 step".to_owned() } else { format!("{} steps", plan.steps.len()) };
    let is_virtual = plan.targets.iter().any(|target| matches!(target, Target::Profile { .. }));
    let when = if is_virtual { " of virtual time, computed in less" } else { "" };
    let (fills, laid_out) = (all.laid_out.0 > 0, format!("{} to lay test files out", all.laid_out));
    let worn = match (fills, all.written.is_none()) {
        (false, true) => None,
        (false, false) => Some(amount(&all.written)),
        (true, true) => Some(laid_out),
        (true, false) => Some(format!("{laid_out} and {} after that", amount(&all.written))),
    };
    let swap: Vec<String> = plan.targets.iter().filter_map(swapped).collect();
    let worn = match (worn, swap.is_empty()) {
        (None, true) => "nothing is written to a device".to_owned(),
        (Some(worn), _) => format!("of the life of the devices it costs {worn}, and what file systems add"),
        (None, false) => format!("of the life of the devices it costs {}", swap.join("; ")),
    };
    let when = if fills { format!("{when}, and what the laying out takes") } else { when.to_owned() };
    let files = plan.targets.iter().any(|target| matches!(target, Target::TestFile { .. }));
    let files = if files { "; the test files are removed at the end, however it ends" } else { "" };
    format!("{steps}; {}{when}; {worn}{files}.", takes(&all.time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::Known;
    use methods::{Request, Settings, Site};

    fn planned(method: &str, on: &str, set: &[&str]) -> String {
        let machine = Machine { page_size: Known::Is(Bytes(4096)), ..Machine::default() };
        let site = Site::named(on, None, &machine, &machine::Root::live()).unwrap();
        let method = methods::find(method).unwrap();
        let set: Vec<String> = set.iter().map(|word| (*word).to_owned()).collect();
        let settings = Settings::parse(method.name(), method.parameters(), &set).unwrap();
        let request = Request { site: &site, settings: &settings, as_published: false, machine: &machine };
        plan(&method.plan(&request).unwrap(), &machine, &Style { width: 400, ..Style::default() })
    }

    #[test]
    fn every_step_is_in_words_and_the_sums_are_right() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        let text = planned("zeros", at.to_str().unwrap(), &["size=48MiB"]);
        assert!(text.contains("first   make the file anew, sync"), "{text}");
        assert!(text.contains(&format!("in 48 MiB, on a test file in {}", at.display())), "{text}");
        for content in ["48 MiB of zeros", "48 MiB of data that compress 2:1", "48 MiB of data that do not compress"] {
            assert!(text.contains(&format!("writes  {content}")), "{content}: {text}");
        }
        assert!(text.contains("as long as the device needs, until 48 MiB are moved"), "{text}");
        assert!(text.contains("3 steps;") && text.contains("it costs 144 MiB, and"), "{text}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

        let text = planned("job", at.to_str().unwrap(), &["rw=randread", "size=16MiB", "runtime=7s", "until=2"]);
        assert!(text.contains("16 MiB to lay the file out"), "{text}");
        assert!(text.contains(", until the rate is known to ±2 %"), "{text}");
        assert!(text.contains(" to 7 s, and what the laying out takes; "), "{text}");
        assert!(text.contains("it costs 16 MiB to lay test files out, and what file systems add;"), "{text}");
        let text = planned("job", "memory", &["runtime=7s"]);
        assert!(
            text.contains("takes   7 s") && text.contains("1 step; 7 s; nothing is written to a device."),
            "{text}"
        );
        let text = planned("snia", "profile:p4800x", &[]);
        assert!(text.contains("0-512B-r1") && !text.contains("0-512B-r2"), "{text}");
        let again = "the same again, 5 to 25 rounds in all, until 0-4KiB, 65-64KiB and 100-1MiB hold still";
        assert!(text.contains(again) && text.contains("1400 steps; 4 min 40 s to 23 min 20 s"), "{text}");
        let text = planned("swap-sim", "profile:optane-pi5", &[]);
        assert!(text.contains("no device is touched") && text.contains("of virtual time"), "{text}");
    }
}
