//! What a plan costs on this machine, where the limit of a bus bounds what the plan leaves open.

use basics::cost::Cost;
use basics::plan::{Plan, Step, Target};
use machine::Machine;

/// The cost of each step.
pub(crate) fn costs(plan: &Plan, machine: &Machine) -> Vec<Cost> {
    plan.costs(|step| limit(plan, machine, step))
}

/// What the bus of a step's tier lets through after its line code, 10^6 B/s: nothing passes it faster.
fn limit(plan: &Plan, machine: &Machine, step: &Step) -> Option<f64> {
    let tier = machine.tier(step.tier.as_deref()?)?;
    if let Target::TestFile { dir: path, .. } | Target::File { path } = &plan.targets[step.target] {
        // Of a file system on several disks one bus is no limit.
        let mount = machine.mount_of(path)?;
        let carriers = machine.tiers.iter().filter(|tier| tier.mounts.iter().any(|other| other.at == mount.at));
        if carriers.count() > 1 {
            return None;
        }
    }
    Some(tier.ceiling.get()?.encoded_mbps)
}
