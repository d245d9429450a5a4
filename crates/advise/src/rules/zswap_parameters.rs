//! Settings of zswap that this kernel does not have, or that leave programs no memory.

use super::{KERNEL_MM, boot, without_boot};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "zswap-parameters",
    title: "zswap as this kernel has it",
    condition: "the command line asks zswap for an allocator or a compressor that this kernel did not take, or its pool may take more than \
                40 % of memory",
    source: "Linux: z3fold and zbud are gone since 6.15 and the choice itself since 6.18; admin-guide/mm/zswap",
    jobs: &Job::ALL,
    judge,
};

/// More than this is not left to programs.
const MOST: u32 = 40;

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let zswap = situation.machine.zswap.get()?;
    let asked = |name: &str| situation.setup.parameter(&format!("zswap.{name}"));
    let (mut parts, mut evidence, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    let mut ignored = |name: &str, now: Option<&str>| {
        let Some(wanted) = asked(name).filter(|wanted| Some(*wanted) != now) else { return };
        let instead = now.map_or("it has no such choice any more".to_owned(), |now| format!("it uses {now}"));
        parts.push(format!("zswap.{name}={wanted} was not taken by this kernel: {instead}"));
        evidence.push(Evidence::machine("/proc/cmdline", format!("zswap.{name}={wanted}")));
        let file = format!("/sys/module/zswap/parameters/{name}");
        evidence.push(Evidence::machine(&file, now.unwrap_or("there is none")));
        changes.push(without_boot(&format!("zswap.{name}")));
    };
    ignored("zpool", zswap.zpool.get().map(String::as_str));
    if let Some(now) = zswap.compressor.get() {
        ignored("compressor", Some(now));
    }
    if let Some(percent) = zswap.max_pool_percent.get().filter(|percent| zswap.enabled && **percent > MOST) {
        parts.push(format!("zswap's pool may take {percent} % of memory, which programs then lack"));
        evidence.push(Evidence::machine("/sys/module/zswap/parameters/max_pool_percent", percent.to_string()));
        changes.push(boot("zswap.max_pool_percent", "20"));
    }
    if parts.is_empty() {
        return None;
    }
    evidence.push(Evidence::published(KERNEL_MM, "max_pool_percent: 20 by default"));
    let titles: Vec<String> = changes.iter().map(change::Wanted::line).collect();
    Some(Recommendation {
        title: titles.join(", "),
        why: format!("{}.", parts.join("; ")),
        evidence,
        changes,
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use basics::Known;
    use machine::Zswap;

    #[test]
    fn what_the_kernel_did_not_take() {
        let said = |parameters: &str, zpool: Known<String>, percent: u32| {
            let mut scene = Scene::of(Job::Any);
            scene.setup.parameters = parameters.split(' ').map(str::to_owned).collect();
            let max_pool_percent = Known::Is(percent);
            scene.machine.zswap = Known::Is(Zswap { enabled: true, zpool, max_pool_percent, ..Zswap::default() });
            judge(&scene.situation()).map(|said| said.title)
        };
        assert_eq!(said("zswap.zpool=z3fold", Known::default(), 20).unwrap(), "without zswap.zpool");
        let smalloc = || Known::Is("zsmalloc".to_owned());
        assert_eq!(said("zswap.zpool=z3fold", smalloc(), 20).unwrap(), "without zswap.zpool");
        assert_eq!(said("zswap.zpool=zsmalloc", smalloc(), 20), None);
        assert_eq!(said("", smalloc(), 60).unwrap(), "zswap.max_pool_percent=20");
    }
}
