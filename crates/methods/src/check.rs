//! The method behind `tiermark check`: a short look at every tier, within a budget of time. The names of its steps are
//! what `study` explains, so they are part of this room's face:
//!
//! | step | what |
//! | --- | --- |
//! | `seq-write`, `seq-read` | 1 MiB, sequential, depth 4, direct; the write ends with an fsync inside the time |
//! | `swap-sim` | 16 KiB random, 70 % reads, depth 4, direct (see `swap-sim`) |
//! | `page-read-qd1` | 16 KiB random reads, depth 1 |
//! | `rand-read-4k-qd1`, `rand-read-4k-qd32` | 4 KiB random reads |
//! | `fsync` | 4 KiB written through the page cache, an fsync after each |
//! | `seq-write-zeros` | where a file system compresses: `seq-write` with zeros, to be held against the honest one |
//! | `ram-read`, `ram-write`, `ram-load` | bandwidth by 1 MiB blocks; dependent loads over 256 MiB |

use crate::site::{Site, Where};
use crate::swap_sim::{PAGE, swap_job};
use basics::job::{Block, Direction, Engine, Entropy, Figure, Order, Stop, Sync, Until};
use basics::plan::{Act, LeftOut, Step, step_seed};
use basics::units::{GIB, MIB};
use basics::{Bytes, Job, Nanos, Plan};
use std::collections::BTreeMap;

/// How much time `check` takes, in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// About 15 s.
    Quick,
    /// About 60 s.
    Usual,
    /// About 5 min.
    Thorough,
}

/// What an effort allows.
struct Budget {
    name: &'static str,
    whole: Nanos,
    /// One step takes no longer, however few tiers there are.
    step: Nanos,
    /// Half width of the confidence interval that ends a step early, per cent.
    percent: f64,
    /// Largest test file.
    file: Bytes,
}

impl Effort {
    fn budget(self) -> Budget {
        let (name, whole, step, percent, file) = match self {
            Effort::Quick => ("quick", 13, 1.0, 4.0, 256 * MIB),
            Effort::Usual => ("usual", 52, 4.0, 2.0, GIB),
            Effort::Thorough => ("thorough", 280, 25.0, 1.0, 4 * GIB),
        };
        let (whole, step) = (Nanos::from_millis(whole * 1000), Nanos::from_secs(step));
        Budget { name, whole, step, percent, file: Bytes(file) }
    }
}

/// Time that a step of RAM takes at most: memory settles in a fraction of a second.
const RAM_STEP: Nanos = Nanos::from_millis(700);
/// Least time of a step, however many tiers there are: fifteen intervals of 10 ms.
const LEAST_STEP: Nanos = Nanos::from_millis(150);
/// Memory walked over: well beyond the last-level cache of a small machine.
const RAM_WALK: Bytes = Bytes(256 * MIB);

/// The plan of a check over `sites`.
pub fn check(effort: Effort, sites: &[Site], mut left_out: Vec<LeftOut>) -> Plan {
    let budget = effort.budget();
    let drafts: Vec<(usize, Draft)> =
        sites.iter().enumerate().flat_map(|(i, s)| drafts(s).map(move |d| (i, d))).collect();
    let (memory, disks): (Vec<_>, Vec<_>) = drafts.into_iter().partition(|(i, _)| sites[*i].at == Where::Memory);
    let weight: u32 = disks.iter().map(|(_, draft)| draft.weight).sum();
    let for_disks = budget.whole - Nanos(RAM_STEP.0 * memory.len() as u64);
    let mut targets = Vec::new();
    let mut steps = Vec::new();
    let seed = Job::default().seed;
    let mut of_site = BTreeMap::new();
    for (i, draft) in memory.into_iter().chain(disks) {
        let site = &sites[i];
        let entropy = draft.job.entropy;
        // Each kind of content has its own file: what was written with zeros is no ground for honest reads.
        let target = *of_site.entry((i, entropy == Entropy::Zeros)).or_insert_with(|| {
            let room = site.room.get().map_or(budget.file.0, |room| room.0);
            let size = match site.at {
                Where::Memory => RAM_WALK,
                _ => Bytes(budget.file.0.min(room / 2) / MIB * MIB),
            };
            targets.push(site.target(size, entropy, true));
            targets.len() - 1
        });
        let share = match site.at {
            Where::Memory => RAM_STEP,
            _ => Nanos(for_disks.0 / u64::from(weight.max(1)) * u64::from(draft.weight)),
        };
        let time = share.clamp(LEAST_STEP, budget.step);
        let until = Until { figure: Figure::Iops, percent: budget.percent, at_least: Nanos(time.0 / 3) };
        let bytes = draft.whole_file.then(|| match &targets[target] {
            basics::plan::Target::TestFile { size, .. } => *size,
            _ => budget.file,
        });
        let stop = Stop { time: Some(time), bytes, operations: None, until: (!draft.whole_file).then_some(until) };
        // Thirty intervals at the least, so that a confidence interval can be had from a short step.
        let interval = Nanos((time.0 / 40).clamp(10_000_000, 100_000_000));
        // What the disk can do is asked, not how its controller gets along with scattered memory.
        let huge_pages = draft.job.engine != Engine::Memory;
        let job = Job { stop, interval, huge_pages, seed: step_seed(seed, steps.len()), ..draft.job };
        steps.push(Step {
            name: draft.name.to_owned(),
            tier: site.tier.clone(),
            target,
            job,
            may_fail: true,
            before: draft.before,
        });
    }
    for site in sites.iter().filter(|site| matches!(site.at, Where::Device { .. })) {
        let why = match &site.room {
            basics::Known::Unknown(why) => why.clone(),
            basics::Known::Is(_) => continue,
        };
        for step in ["seq-write", "swap-sim", "fsync"] {
            let tier = site.tier.clone().unwrap_or_default();
            left_out.push(LeftOut { tier, step: step.to_owned(), why: why.clone() });
        }
    }
    Plan {
        method: "check".to_owned(),
        parameters: BTreeMap::from([("effort".to_owned(), budget.name.to_owned())]),
        as_published: false,
        seed,
        targets,
        steps,
        left_out,
        ..Plan::default()
    }
}

/// A step before it has its share of the time.
struct Draft {
    name: &'static str,
    job: Job,
    /// Share of the time, against the others.
    weight: u32,
    /// It ends with the file, not with confidence: the steps after it read what it wrote.
    whole_file: bool,
    /// Done before it.
    before: Vec<Act>,
}

fn draft(name: &'static str, weight: u32, job: Job) -> Draft {
    Draft { name, job, weight, whole_file: false, before: vec![] }
}

fn drafts(site: &Site) -> impl Iterator<Item = Draft> {
    let sequential = Job { block: Block::Fixed(Bytes(MIB)), depth: 4, ..Job::default() };
    let write = Job { direction: Direction::Write, end_fsync: true, ..sequential.clone() };
    let random =
        |size: u64, depth| Job { order: Order::Permuted, block: Block::Fixed(Bytes(size)), depth, ..Job::default() };
    let reads = || {
        vec![
            draft("seq-read", 2, sequential.clone()),
            draft("page-read-qd1", 2, random(PAGE.0, 1)),
            draft("rand-read-4k-qd1", 2, random(4096, 1)),
            draft("rand-read-4k-qd32", 2, random(4096, 32)),
        ]
    };
    let list = match site.at {
        Where::Memory => {
            let ram = Job { engine: Engine::Memory, depth: 1, ..sequential.clone() };
            let load = Job { order: Order::Permuted, block: Block::Fixed(Bytes(64)), ..ram.clone() };
            vec![
                draft("ram-read", 1, ram.clone()),
                draft("ram-write", 1, Job { direction: Direction::Write, ..ram }),
                draft("ram-load", 1, load),
            ]
        }
        Where::Null { .. } | Where::Profile { .. } => vec![],
        Where::File(_) | Where::Device { .. } => reads(),
        Where::Directory(_) => {
            let mut list = vec![Draft { whole_file: true, ..draft("seq-write", 3, write.clone()) }];
            list.extend(reads());
            list.insert(2, draft("swap-sim", 3, swap_job(PAGE, Job::default().seed)));
            let sync = Sync::Fsync { every: 1 };
            list.push(draft("fsync", 2, Job { direction: Direction::Write, direct: false, sync, ..Job::default() }));
            if site.compresses {
                // Reserved room is written as it comes: only what a file system allocates itself is compressed.
                list[0].before = vec![Act::Renew];
                let zeros = Job { entropy: Entropy::Zeros, ..write };
                let before = vec![Act::Renew];
                list.push(Draft { whole_file: true, before, ..draft("seq-write-zeros", 2, zeros) });
            }
            list
        }
    };
    list.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::plan::Target;
    use basics::{Known, Why};

    fn directory(tier: &str, room: u64, compresses: bool) -> Site {
        let at = Where::Directory(format!("/mnt/{tier}").into());
        Site { tier: Some(tier.into()), at, room: Known::Is(Bytes(room)), compresses }
    }

    fn memory() -> Site {
        Site { tier: Some("RAM".into()), at: Where::Memory, room: Known::default(), compresses: false }
    }

    #[test]
    fn every_effort_keeps_its_promise_however_many_tiers_there_are() {
        for (effort, seconds) in [(Effort::Quick, 15.0), (Effort::Usual, 60.0), (Effort::Thorough, 300.0)] {
            for disks in [1, 2, 7] {
                let mut sites = vec![memory()];
                sites.extend((0..disks).map(|i| directory(&format!("sd{i}"), 10 * GIB, i == 0)));
                let plan = check(effort, &sites, vec![]);
                assert!(plan.steps.iter().all(|step| step.job.check() == Ok(())));
                let longest = plan.longest().unwrap().secs();
                assert!(longest <= seconds, "{effort:?} with {disks} disks: {longest} s");
            }
        }
    }

    /// Or the reads at depth 32 would find in the device's cache what those at depth 1 had read just before.
    #[test]
    fn no_two_steps_visit_a_file_in_the_same_order() {
        let plan = check(Effort::Usual, &[memory(), directory("sda", 10 * GIB, true)], vec![]);
        let seeds: std::collections::BTreeSet<u64> = plan.steps.iter().map(|step| step.job.seed).collect();
        assert_eq!(seeds.len(), plan.steps.len());
        assert_eq!(plan.steps[0].job.seed, plan.seed);
    }

    #[test]
    fn the_first_step_on_a_file_writes_it_and_zeros_have_their_own() {
        let plan = check(Effort::Usual, &[directory("sda", 100 * MIB, true)], vec![]);
        let first = &plan.steps[0];
        assert_eq!((first.name.as_str(), first.job.direction), ("seq-write", Direction::Write));
        let Target::TestFile { size, first_step_fills: true, .. } = plan.targets[first.target] else {
            panic!("{plan:?}")
        };
        assert_eq!(size, Bytes(50 * MIB), "half of the room, because the zeros need a file as well");
        let zeros = plan.steps.last().unwrap();
        assert_eq!(zeros.name, "seq-write-zeros");
        assert_ne!(zeros.target, first.target);
        for step in [first, zeros] {
            assert_eq!(step.before, [Act::Renew], "what lies in reserved room is not compressed");
        }
    }

    #[test]
    fn a_bare_device_is_only_read_and_the_rest_says_why() {
        let at = Where::Device { path: "/dev/sdb".into(), destroy: None };
        let room = Known::Unknown(Why::NotMeasured("not mounted".into()));
        let site = Site { tier: Some("sdb".into()), at, room, compresses: false };
        let plan = check(Effort::Quick, &[site], vec![]);
        assert!(plan.steps.iter().all(|step| !step.job.direction.writes()));
        assert_eq!(plan.left_out.len(), 3);
        assert_eq!(plan.left_out[0].why.to_string(), "not mounted");
    }
}
