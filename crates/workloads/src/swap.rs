//! `load swap`: memory that does not fit, touched in a pattern. The plainest workload there is, and the one that shows what a
//! tier makes of swapping: how often it can be gone through, what a fault costs, what of the disk's own rate arrives.

use crate::{Tier, WorkloadError, room};
use basics::job::{Block, Direction, Engine, Entropy, Order, Stop};
use basics::plan::{Step, Target, step_seed};
use basics::pressure::{Pressed, Pressure, Swap, Work};
use basics::units::MIB;
use basics::{Bytes, Job, Nanos, Plan};
use std::collections::BTreeMap;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// In which order the pages are touched.
    pub order: Order,
    /// Whether they are read or changed.
    pub direction: Direction,
    /// How much memory there is of them.
    pub size: Bytes,
    /// What is taken away.
    pub pressure: Pressure,
    /// What they are swapped to: a row each.
    pub tiers: Vec<Tier>,
    /// What they hold, for those tiers that compress.
    pub entropy: Entropy,
    /// Threads, each with its own part.
    pub threads: u32,
    /// How long each row is measured, once its memory is filled.
    pub time: Nanos,
    /// How often each tier is visited.
    pub repeat: u32,
    /// `vm.page-cluster`, where it is to be another.
    pub page_cluster: Option<u32>,
    /// `vm.swappiness`, where it is to be another.
    pub swappiness: Option<u8>,
    /// It is watched for its memory curve, for these limits or some of our choice.
    pub curve: Option<Vec<Bytes>>,
    /// Of every random choice.
    pub seed: u64,
    /// Length of this machine's pages.
    pub page: Bytes,
}

/// Less is soon all the kernel's own needs: page tables, the measuring process.
const LEAST: Bytes = Bytes(32 * MIB);

impl Request {
    /// The plan: a target for each tier, a step for each visit.
    ///
    /// # Errors
    /// When sizes make no sense together.
    pub fn plan(&self) -> Result<Plan, WorkloadError> {
        let left = self.pressure.left();
        let size = |sentence: String| Err(WorkloadError::Size(sentence));
        if self.size < LEAST {
            return size(format!("--size {} is too little to press on; take {LEAST} or more", self.size));
        }
        if let Some(left) = left.filter(|left| *left < LEAST) {
            return size(format!("only {left} would be left of --memory; leave at least {LEAST}"));
        }
        if left.is_none() && self.pressure.lock.is_none() {
            return size(
                "without pressure there is no swapping; give --memory SIZE, such as --memory 600M, or --lock SIZE"
                    .into(),
            );
        }
        let room = room(self.size);
        let targets = self.tiers.iter().map(|tier| {
            let swap = Swap { page_cluster: self.page_cluster, swappiness: self.swappiness, ..tier.sized(room) };
            Target::Pressed(Pressed {
                size: self.size,
                pressure: self.pressure.clone(),
                swap,
                work: Work::Touch,
                curve: self.curve.clone(),
                pager: false,
            })
        });
        let mut plan = Plan {
            method: "load-swap".to_owned(),
            parameters: self.parameters(),
            seed: self.seed,
            targets: targets.collect(),
            ..Plan::default()
        };
        for round in 0..self.repeat.max(1) {
            for (target, tier) in self.tiers.iter().enumerate() {
                let name = if self.repeat > 1 { format!("touch-r{}", round + 1) } else { "touch".to_owned() };
                let job = Job { seed: step_seed(self.seed, plan.steps.len()), ..self.job() };
                let step =
                    Step { name, tier: Some(tier.name.clone()), target, job, may_fail: true, before: Vec::new() };
                plan.steps.push(step);
            }
        }
        Ok(plan)
    }

    fn job(&self) -> Job {
        Job {
            direction: self.direction,
            order: self.order,
            block: Block::Fixed(self.page),
            threads: self.threads,
            size: Some(Bytes(self.size.0 - self.size.0 % self.page.0)),
            direct: false,
            entropy: self.entropy,
            stop: Stop { time: Some(self.time), ..Stop::default() },
            engine: Engine::Touch,
            ..Job::default()
        }
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::from([("size".to_owned(), self.size.to_string())]);
        let mut add = |key: &str, value: Option<String>| all.extend(value.map(|value| (key.to_owned(), value)));
        add("memory", self.pressure.memory.map(|memory| memory.to_string()));
        add("lock", self.pressure.lock.map(|lock| lock.to_string()));
        add("page-cluster", self.page_cluster.map(|pages| pages.to_string()));
        add("swappiness", self.swappiness.map(|percent| percent.to_string()));
        add("repeat", (self.repeat > 1).then(|| self.repeat.to_string()));
        add("tiers", Some(self.tiers.iter().map(|tier| tier.name.as_str()).collect::<Vec<_>>().join(" ")));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tiers: &[&str]) -> Request {
        let tier = |text: &&str| Tier::parse(text, &|_| Err("none".into())).unwrap();
        Request {
            order: Order::Sequential,
            direction: Direction::Read,
            size: Bytes(1000 * MIB),
            pressure: Pressure { memory: Some(Bytes(600 * MIB)), ..Pressure::default() },
            tiers: tiers.iter().map(tier).collect(),
            entropy: Entropy::Compressible,
            threads: 1,
            time: Nanos::from_millis(10_000),
            repeat: 2,
            page_cluster: None,
            swappiness: None,
            curve: None,
            seed: 1,
            page: Bytes(4096),
        }
    }

    #[test]
    fn tiers_are_visited_in_turns() {
        let plan = request(&["none", "zram"]).plan().unwrap();
        let visits: Vec<_> = plan.steps.iter().map(|step| (step.name.as_str(), step.target)).collect();
        assert_eq!(visits, [("touch-r1", 0), ("touch-r1", 1), ("touch-r2", 0), ("touch-r2", 1)]);
        let Target::Pressed(zram) = &plan.targets[1] else { panic!("{:?}", plan.targets) };
        assert_eq!(zram.swap.areas[0].size(), Some(Bytes(2128 * MIB)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let none = request(&["none"]);
        let bad = |request: Request| request.plan().unwrap_err().to_string();
        assert!(bad(Request { pressure: Pressure::default(), ..none.clone() }).contains("--memory SIZE"));
        assert!(bad(Request { size: Bytes(5), ..none.clone() }).contains("--size 5 B"));
        let lock = Some(Bytes(590 * MIB));
        let memory = Some(Bytes(600 * MIB));
        assert!(bad(Request { pressure: Pressure { memory, lock, watchdog: None }, ..none }).contains("10 MiB"));
    }
}
