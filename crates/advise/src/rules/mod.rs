//! The rules, one file each. A new one: its file here with its `RULE`, its line in [`ALL`], its test beside it.

mod barriers;
mod bgsave_error;
mod btrfs;
mod card;
mod clients;
mod dirty;
mod eviction;
mod huge_pages;
mod links;
mod maxmemory;
mod medium;
mod memory_cgroup;
mod no_swap;
mod noatime;
mod observe;
mod overcommit;
mod page_cluster;
mod pcie;
mod persistence;
mod processor;
mod readahead;
mod replica;
mod rewrite_fsync;
mod room;
mod scheduler;
mod swap;
mod swap_managers;
mod swap_on_card;
mod swappiness;
mod trim;
mod uas;
mod vectors;
mod zswap;
mod zswap_over_zram;
mod zswap_parameters;

use crate::model::{Evidence, Gain, Origin, Rule};
use crate::situation::Situation;
use basics::redis::Mode;
use change::{Tool, Wanted};
use machine::{BlockFacts, Hop, Tier, TierKind};
use std::path::Path;

/// All, in the order in which they are told: what is broken, what the hardware is held back by, what the kernel is told, Redis.
pub const ALL: [&Rule; 43] = [
    &room::FREE,
    &card::WEAR,
    &processor::SUPPLY,
    &processor::HEAT,
    &processor::GOVERNOR,
    &links::SLOW,
    &pcie::RULE,
    &uas::RULE,
    &links::SHARED,
    &card::MODE,
    &card::CLASS,
    &barriers::RULE,
    &swap_on_card::RULE,
    &swap_managers::RULE,
    &zswap_over_zram::RULE,
    &no_swap::RULE,
    &zswap::RULE,
    &zswap_parameters::RULE,
    &page_cluster::RULE,
    &swappiness::RULE,
    &memory_cgroup::RULE,
    &dirty::RULE,
    &btrfs::RULE,
    &noatime::RULE,
    &trim::DISCARD,
    &trim::TRIM,
    &scheduler::RULE,
    &readahead::RULE,
    &room::ALIGNED,
    &room::F2FS,
    &persistence::RULE,
    &medium::RULE,
    &replica::RULE,
    &maxmemory::RULE,
    &eviction::RULE,
    &vectors::RULE,
    &bgsave_error::RULE,
    &rewrite_fsync::RULE,
    &overcommit::RULE,
    &huge_pages::RULE,
    &swap::RULE,
    &clients::RULE,
    &observe::RULE,
];

/// The articles.
const OPTANE: &str = "Playing with an Intel Optane on a Raspberry Pi 5";
const ARTICLE: &str = "Redis on Tiny Devices";
const DESKTOP: &str = "Project Pi3Desk";
const CARD: &str = "Raspberry PI Storage Performance: Part 1 USB vs SD Card";
/// Chapters of the kernel's documentation.
const KERNEL_VM: &str = "Linux kernel documentation, admin-guide/sysctl/vm";
const KERNEL_MM: &str = "Linux kernel documentation, admin-guide/mm/zswap";
const KERNEL_BLOCK: &str = "Linux kernel documentation, block";
const KERNEL_CPU: &str = "Linux kernel documentation, admin-guide/pm/cpufreq";
/// What Redis's own documentation and the comments of its redis.conf say.
const REDIS_CONF: &str = "redis.conf of Redis 7";
const REDIS_ADMIN: &str = "redis.io, administration";

/// A line of redis.conf.
fn redis(name: &str, value: impl Into<String>) -> change::Wanted {
    change::Wanted::Redis { name: name.to_owned(), value: value.into() }
}

/// A kernel setting.
fn sysctl(name: &str, value: impl Into<String>) -> change::Wanted {
    change::Wanted::Sysctl { name: name.to_owned(), value: value.into() }
}

/// A parameter of the kernel's command line.
fn boot(name: &str, value: &str) -> Wanted {
    Wanted::Boot { name: name.to_owned(), value: Some(value.to_owned()) }
}

/// One that goes.
fn without_boot(name: &str) -> Wanted {
    Wanted::Boot { name: name.to_owned(), value: None }
}

/// Options of a line of fstab.
fn mount(at: &Path, add: &[&str], drop: &[&str]) -> Wanted {
    let all = |options: &[&str]| options.iter().map(|option| (*option).to_owned()).collect();
    Wanted::Mount { at: at.to_owned(), add: all(add), drop: all(drop) }
}

/// A unit that starts by itself, or not at all.
fn unit(name: &str, enabled: bool) -> Wanted {
    Wanted::Unit { name: name.to_owned(), enabled }
}

/// A setting of a tool with drop-ins.
fn tool(tool: Tool, section: &str, name: &str, value: &str) -> Wanted {
    Wanted::Tool { tool, section: section.to_owned(), name: name.to_owned(), value: value.to_owned() }
}

/// A variable in a file of the shell's form.
fn variable(path: &str, name: &str, value: &str) -> Wanted {
    Wanted::Variable { path: path.into(), name: name.to_owned(), value: value.to_owned() }
}

/// A setting of a disk's queue.
fn queue(disk: &str, name: &str, value: &str) -> Wanted {
    Wanted::Queue { disk: disk.to_owned(), name: name.to_owned(), value: value.to_owned() }
}

/// `mmcblk0: scheduler bfq`
fn queue_words(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Queue { disk, name, value } => format!("{disk}: {name} {value}"),
        other => other.line(),
    }
}

/// What each real disk needs, with what it stands on; none where none needs anything.
fn each_disk(
    situation: &Situation<'_>,
    mut of: impl FnMut(&Tier, &BlockFacts) -> Option<(Wanted, Evidence)>,
) -> Option<(Vec<Wanted>, Vec<Evidence>)> {
    let real = |tier: &&Tier| !matches!(tier.kind, TierKind::Dm | TierKind::Md | TierKind::FileSystem | TierKind::Ram);
    let disks = situation.machine.tiers.iter().filter(real);
    let all: (Vec<Wanted>, Vec<Evidence>) = disks.filter_map(|tier| of(tier, tier.block.as_ref()?)).unzip();
    (!all.0.is_empty()).then_some(all)
}

/// How much more a link lets through than the narrowest one of a tier: the range of the buses' own arithmetic.
fn gain_of_links(tier: &Tier, better: Hop) -> Option<Gain> {
    let now = tier.ceiling.get()?.practical_mbps;
    let could = better.practical_mbps?;
    let percent = |a: f64, b: f64| 100.0 * (a / b - 1.0);
    let middle = |range: (f64, f64)| (range.0 + range.1) / 2.0;
    Some(Gain {
        of: format!("more through the link of {}, where the disk itself can ({})", tier.name, better.name),
        percent: percent(middle(could), middle(now)),
        low: percent(could.0, now.1),
        high: percent(could.1, now.0),
        from: Origin::Published(OPTANE.to_owned()),
    })
}

/// The command that measures what is recommended here; none where nobody said where the files lie.
pub fn measure(situation: &Situation<'_>) -> Option<String> {
    let goals = situation.goals;
    if !goals.job.is_redis() {
        return Some("tiermark check".to_owned());
    }
    let choice = persistence::choose(situation);
    let on = goals.on.as_deref()?;
    let modes = if choice.mode == Mode::MemoryOnly { String::new() } else { format!(" --mode {}", choice.mode) };
    Some(format!("tiermark load redis --on {on} --mode memory-only{modes} --payload {}", goals.payload.0))
}

#[cfg(test)]
pub(crate) mod testing;
