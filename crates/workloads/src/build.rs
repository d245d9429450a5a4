//! `load build`: a compilation for as long as it takes a board to become hot, with all of its processors.

use crate::{Tier, WorkloadError};
use basics::desktop::Building;
use basics::job::{Block, Direction, Engine, Stop};
use basics::plan::{Step, Target, step_seed};
use basics::pressure::{Area, Pressed, Pressure, Swap, Work};
use basics::units::MIB;
use basics::{Bytes, Job, Nanos, Plan};

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The compilation.
    pub building: Building,
    /// What is taken away; nothing where it is to have all memory.
    pub pressure: Pressure,
    /// What it is swapped to; this machine's own swap where nothing is said.
    pub tiers: Vec<Tier>,
    /// How long.
    pub time: Option<Nanos>,
    /// So many builds, instead.
    pub builds: Option<u64>,
    /// Visits of each tier.
    pub repeat: u32,
    /// Of every random choice.
    pub seed: u64,
}

/// What a compiler takes at most, each.
const EACH: Bytes = Bytes(256 * MIB);

impl Request {
    /// The plan: a target for each tier, a step for each visit.
    ///
    /// # Errors
    /// When the options make no sense together.
    pub fn plan(&self) -> Result<Plan, WorkloadError> {
        let building = &self.building;
        let mut plan = Plan { method: "load-build".to_owned(), seed: self.seed, ..Plan::default() };
        plan.parameters = [
            ("compiler", building.program.as_ref().map_or("mix".to_owned(), |program| program.display().to_string())),
            ("units", building.units.to_string()),
            ("jobs", building.jobs.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into();
        let size = Bytes(EACH.0 * u64::from(building.jobs));
        let own = Swap { areas: vec![Area::Own], ..Swap::default() };
        let swaps = match self.tiers.is_empty() {
            true => vec![("this machine".to_owned(), own)],
            false => self.tiers.iter().map(|tier| (tier.name.clone(), tier.sized(crate::room(size)))).collect(),
        };
        for (_, swap) in &swaps {
            plan.targets.push(Target::Pressed(Pressed {
                size,
                pressure: self.pressure.clone(),
                swap: swap.clone(),
                work: Work::Build(Box::new(building.clone())),
                curve: None,
                pager: false,
            }));
        }
        for _ in 0..self.repeat.max(1) {
            for (target, (tier, _)) in swaps.iter().enumerate() {
                let operations = self.builds.map(|builds| builds * u64::from(building.units));
                let job = Job {
                    direction: Direction::Read,
                    block: Block::Fixed(Bytes(4096)),
                    direct: false,
                    engine: Engine::Built,
                    stop: Stop { time: self.time, operations, ..Stop::default() },
                    seed: step_seed(self.seed, plan.steps.len()),
                    ..Job::default()
                };
                let (name, tier) = ("build".to_owned(), Some(tier.clone()));
                plan.steps.push(Step { name, tier, target, job, may_fail: true, before: Vec::new() });
            }
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::desktop::Compiler;

    #[test]
    fn a_build_is_so_many_files() {
        let building = Building { compiler: Compiler::Mix, program: None, units: 40, jobs: 4 };
        let request = Request {
            building,
            pressure: Pressure::default(),
            tiers: Vec::new(),
            time: None,
            builds: Some(2),
            repeat: 1,
            seed: 1,
        };
        let plan = request.plan().unwrap();
        assert_eq!(plan.steps[0].job.stop.operations, Some(80));
        let Target::Pressed(target) = &plan.targets[0] else { panic!("no target under pressure") };
        assert_eq!(target.swap.areas, [Area::Own]);
    }
}
