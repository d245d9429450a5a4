//! What a rule may look at: the machine as it was read, what is wanted of it, and what was measured here.

use crate::goals::Goals;
use crate::model::{Evidence, Gain, Origin};
use basics::redis::Mode;
use basics::units::{grouped, significant};
use basics::{Bytes, Known};
use machine::{Machine, Mount, Setup, SwapArea, Tier, TierKind, Warning};
use study::proof::Effect;
use study::{RedisCell, VectorRow};

/// What was measured of a Redis server, and in which run.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The run's name.
    pub run: String,
    /// One of its cells.
    pub cell: RedisCell,
}

/// What was measured of a cache of vectors, and in which run.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenVectors {
    /// The run's name.
    pub run: String,
    /// One of its rows.
    pub row: VectorRow,
}

/// What a disk of this machine would do as swap, and in which run that was measured: pages at random, 70 % reads, depth 4.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenMedium {
    /// The run's name.
    pub run: String,
    /// The tier.
    pub tier: String,
    /// Pages a second.
    pub pages_per_s: f64,
    /// Length of one.
    pub page: Bytes,
}

/// What was proven on this machine of the settings of one rule.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenProof {
    /// The proof's number.
    pub number: i64,
    /// The rule.
    pub rule: String,
    /// The work by which it was judged.
    pub with: String,
    /// What the figures are.
    pub of: String,
    /// What it did.
    pub effect: Effect,
}

/// All that a rule may look at.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// How it is set up.
    pub setup: &'a Setup,
    /// What is wanted.
    pub goals: &'a Goals,
    /// What was measured on this machine, the newest first.
    pub seen: &'a [Seen],
    /// What was measured of caches of vectors, the newest first.
    pub vectors: &'a [SeenVectors],
    /// What was proven, the newest first.
    pub proofs: &'a [SeenProof],
    /// What disks would do as swap, the newest first.
    pub media: &'a [SeenMedium],
}

/// Values whose lengths differ by more than this factor are as good as another workload.
const ALIKE: f64 = 9.0;

impl<'a> Situation<'a> {
    /// The tier that the system lies on, and how it is mounted.
    pub(crate) fn system(&self) -> Option<(&'a Tier, &'a Mount)> {
        self.mounts().find(|(_, mount)| mount.at == std::path::Path::new("/"))
    }

    /// All mounted file systems of all tiers.
    pub(crate) fn mounts(&self) -> impl Iterator<Item = (&'a Tier, &'a Mount)> {
        self.machine.tiers.iter().flat_map(|tier| tier.mounts.iter().map(move |mount| (tier, mount)))
    }

    /// The swap area that the kernel fills first, and its tier.
    pub(crate) fn first_swap(&self) -> Option<(&'a SwapArea, Option<&'a Tier>)> {
        // Of equals the first: it was there before.
        let area = self.machine.swaps.iter().rev().max_by_key(|area| area.priority)?;
        Some((area, area.tier.as_deref().and_then(|name| self.machine.tier(name))))
    }

    /// What was measured of a tier as swap.
    pub(crate) fn medium(&self, tier: &str) -> Option<&'a SeenMedium> {
        self.media.iter().find(|seen| seen.tier == tier)
    }

    /// What was noticed under this name, with its tier.
    pub(crate) fn noticed(&self, id: &'a str) -> impl Iterator<Item = (&'a Tier, &'a Warning)> {
        let all = self.machine.tiers.iter().flat_map(|tier| tier.warnings.iter().map(move |warning| (tier, warning)));
        all.filter(move |(_, warning)| warning.id == id)
    }

    /// The same of the machine as a whole.
    pub(crate) fn notice(&self, id: &str) -> Option<&'a Warning> {
        self.machine.notices.iter().find(|notice| notice.id == id)
    }

    /// A setting below `/proc/sys/vm`, as a number.
    pub(crate) fn vm(&self, name: &str) -> Option<u64> {
        self.machine.vm.get(name)?.get()?.parse().ok()
    }

    /// Main memory in MiB.
    pub(crate) fn ram_mib(&self) -> Option<u64> {
        Some(self.machine.ram.get()?.0 >> 20)
    }

    /// The tier that the files lie on, where that is known.
    pub(crate) fn tier(&self) -> Option<&'a Tier> {
        let dir = self.goals.dir.as_deref()?;
        let mounts = self.machine.tiers.iter().flat_map(|tier| tier.mounts.iter().map(move |mount| (tier, mount)));
        let above = mounts.filter(|(_, mount)| dir.starts_with(&mount.at));
        Some(above.max_by_key(|(_, mount)| mount.at.components().count())?.0)
    }

    /// Whether the files lie on a memory card; none where nobody said where they lie, or nobody can tell.
    pub(crate) fn is_card(&self) -> Option<bool> {
        match self.tier() {
            Some(tier) => Some(matches!(tier.kind, TierKind::Sd | TierKind::Emmc)),
            // Profiles of cards are named so.
            None => self.goals.on.as_deref().filter(|_| self.goals.dir.is_none()).map(|on| {
                let name = on.strip_prefix("profile:").unwrap_or(on);
                name.starts_with("sd-") || name.starts_with("microsd-")
            }),
        }
    }

    /// What was measured in this mode where the files lie, with values most like those that are wanted; the newest of equals.
    /// Where nobody said where they lie: anywhere on this machine.
    pub(crate) fn measured(&self, mode: Mode) -> Option<&'a Seen> {
        self.measured_that(mode, |cell| cell.ops_per_s.get().is_some() && cell.lost.is_none())
    }

    /// The same of runs in which the server was lost.
    pub(crate) fn lost(&self, mode: Mode) -> Option<&'a Seen> {
        self.measured_that(mode, |cell| cell.lost.is_some())
    }

    fn measured_that(&self, mode: Mode, which: impl Fn(&RedisCell) -> bool) -> Option<&'a Seen> {
        let apart = |seen: &Seen| {
            let (a, b) = (seen.cell.payload.0.max(1) as f64, self.goals.payload.0.max(1) as f64);
            (a / b).max(b / a)
        };
        let here = self.seen.iter().filter(|seen| {
            seen.cell.mode == mode.name() && self.is_here(&seen.cell.medium) && apart(seen) < ALIKE && which(&seen.cell)
        });
        // The first of equals is the newest.
        here.min_by(|a, b| apart(a).total_cmp(&apart(b)))
    }

    /// Whether what is so called is where the files lie: the same profile, or a directory on the same file system.
    fn is_here(&self, medium: &str) -> bool {
        let Some(on) = &self.goals.on else { return medium.starts_with('/') };
        match &self.goals.dir {
            None => medium == on.strip_prefix("profile:").unwrap_or(on),
            Some(dir) => {
                let at = |path: &std::path::Path| self.machine.mount_of(path).map(|mount| &mount.at);
                let medium = std::path::Path::new(medium);
                medium.is_absolute() && (medium == dir || (at(medium).is_some() && at(medium) == at(dir)))
            }
        }
    }
}

impl Seen {
    /// Its rate and p95 as evidence.
    pub(crate) fn evidence(&self) -> Evidence {
        let cell = &self.cell;
        let rate = cell.ops_per_s.get().map(|ops| format!("{}/s", grouped(ops.round() as i64)));
        let p95 = cell.lat.get().map(|lat| format!("p95 {} ms", significant(lat.p95 / 1000.0)));
        let cost = cell.cost_percent.get().filter(|_| cell.mode != Mode::MemoryOnly.name());
        let cost = cost.map(|cost| format!("{} % below memory-only", significant(cost.max(0.0))));
        let figures: Vec<String> = [rate, p95, cost].into_iter().flatten().collect();
        let text = format!("{} on {}, values of {}: {}", cell.mode, cell.medium, cell.payload, figures.join(", "));
        Evidence { text, from: Origin::Run(self.run.clone()) }
    }

    /// What it lost, as evidence.
    pub(crate) fn loss(&self) -> Option<Evidence> {
        let (cell, lost) = (&self.cell, self.cell.lost.as_ref()?);
        let how = match lost.how {
            basics::redis::Lose::Kill => "killed",
            basics::redis::Lose::Power => "cut off from power",
        };
        let text =
            format!("{} on {}, {how} {} times: {} gone at worst", cell.mode, cell.medium, lost.seeds, lost.in_words());
        Some(Evidence { text, from: Origin::Run(self.run.clone()) })
    }

    /// How much more it serves than another, where both scatter less than they differ.
    pub(crate) fn gain_over(&self, other: &Seen, of: &str) -> Option<Gain> {
        let (Known::Is(ops), Known::Is(base)) = (&self.cell.ops_per_s, &other.cell.ops_per_s) else { return None };
        let ends = |seen: &Seen, ops: f64| seen.cell.range_ops.unwrap_or((ops, ops));
        let ((least, most), (base_least, base_most)) = (ends(self, *ops), ends(other, *base));
        let percent = |a: f64, b: f64| 100.0 * (a / b - 1.0);
        (*base > 0.0 && base_least > 0.0).then(|| Gain {
            of: of.to_owned(),
            percent: percent(*ops, *base),
            low: percent(least, base_most),
            high: percent(most, base_least),
            from: Origin::Run(self.run.clone()),
        })
    }
}
