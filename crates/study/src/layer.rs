//! Which layer was really measured: the disk, the page cache in front of it, or a file system that compresses. Judged
//! from what the engine noted and from the bytes that reached the disk while the job believed to move its own.

use crate::model::{StepSummary, StepView};

use basics::job::{Engine, Entropy, Sync};
use basics::units::significant;
use basics::{EngineUse, Known};
use machine::Tier;
use observe::Disk;
use std::path::Path;

/// Below this share of the job's bytes at the disk, most of them came from (or stayed in) somewhere else.
const MOSTLY: f64 = 0.5;
/// Samples must cover this share of the step before their bytes are held against the step's.
const COVERED: f64 = 0.5;

/// What stood between a job and the medium.
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    /// The job's bytes were the disk's.
    Disk,
    /// They were served from memory; the text is the evidence.
    PageCache(String),
    /// Fewer reached the disk than were moved, and the data were such that a file system can compress them: how many
    /// of the job's bytes one byte on the disk held.
    Compressed(f64),
    /// Nothing tells.
    Unknown,
}

/// The layer that a step measured whose bytes went to `members`, see [`members`].
pub fn measured(step: &StepView<'_>, members: &[&Tier]) -> Layer {
    if let Some(evidence) = direct_refused(step) {
        return Layer::PageCache(evidence);
    }
    let Known::Is(share) = share_at_disk(step, members) else { return Layer::Unknown };
    if share >= MOSTLY {
        Layer::Disk
    } else if may_shrink(step) {
        Layer::Compressed(1.0 / share.max(1e-3))
    } else if step.job.direction.writes() {
        // Writes that an fsync waited for and that the counters miss went to another disk; nothing follows from that.
        Layer::Unknown
    } else {
        Layer::PageCache(format!(
            "step {} {}: {:.0} % of the bytes came from the disk",
            step.index,
            step.name,
            100.0 * share
        ))
    }
}

/// Whether bytes that no disk saw can have been compressed away: the content lets that be done, and nothing else would have
/// kept them from the disk, as the page cache does with buffered reads and with writes that nothing syncs.
fn may_shrink(step: &StepView<'_>) -> bool {
    let job = step.job;
    let synced = job.direction.writes() && (job.end_fsync || job.sync != Sync::None);
    job.entropy != Entropy::Incompressible && (job.direct || synced)
}

/// What the engine said about O_DIRECT, when the job asked for it and did not get it.
pub(crate) fn direct_refused(step: &StepView<'_>) -> Option<String> {
    if !step.job.direct
        || step
            .engine
            .is_some_and(|engine| matches!(engine.used, Engine::Memory | Engine::Mmap) || engine.used.is_workload())
    {
        return None;
    }
    let why = step.engine?.direct_refused()?;
    Some(format!("step {} {}: {} dropped, {why}", step.index, step.name, EngineUse::DIRECT))
}

/// The tiers that carry the file system on which a step of `tier` ran: of btrfs or bcachefs on several devices all of
/// them, else the tier alone.
pub fn members<'a>(step: &StepView<'_>, tier: &'a Tier, tiers: &'a [Tier]) -> Vec<&'a Tier> {
    let Some(mount) = mount_of(step, tier) else { return vec![tier] };
    let carries = |other: &&Tier| other.mounts.iter().any(|also| also.at == mount.at && also.fs == mount.fs);
    let carriers: Vec<&Tier> = tiers.iter().filter(carries).collect();
    // A disk below another carrier passes on the same bytes: they count once.
    let apart = |one: &&&Tier| !carriers.iter().any(|other| other.below.contains(&one.name));
    let apart: Vec<&Tier> = carriers.iter().filter(apart).copied().collect();
    if apart.len() < 2 { vec![tier] } else { apart }
}

/// The bytes a second of all the members' disks over the job's: 1 when all that the job moved was moved by the disks.
///
/// Unknown when the samples do not show each member's disk or cover too little of the step.
pub fn share_at_disk(step: &StepView<'_>, members: &[&Tier]) -> Known<f64> {
    let share = counters(step, members).and_then(|disks| share(step, &disks));
    share.map_or_else(|| Known::not_measured("no disk counters"), Known::Is)
}

/// What the disk of a step moved a second beyond the job's own bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Beyond {
    /// 10^6 B/s of the job's own.
    pub own_mbps: f64,
    /// 10^6 B/s beside them; none where it may be chance at the edges of the samples.
    pub more_mbps: f64,
}

/// What the members' disks moved beyond the job's own bytes. Unknown where the page cache stands between them, where a journal
/// joins each write, and without counters. Bytes written are not held against it where a file system writes elsewhere and
/// its trees anew, or on several disks, of which each may hold a copy.
pub(crate) fn beyond_own(step: &StepView<'_>, members: &[&Tier]) -> Option<Beyond> {
    let (job, engine) = (step.job, step.engine?);
    let through_memory = matches!(engine.used, Engine::Mmap | Engine::Memory)
        || engine.used.is_workload()
        || engine.direct_refused().is_some()
        || engine.direct_writes_refused().is_some();
    if !job.direct || through_memory || job.sync != Sync::None {
        return None;
    }
    let (read, written) = rates(step, &counters(step, members)?)?;
    let own = |bytes: u64| bytes as f64 / step.elapsed.secs();
    let plain = members.len() == 1 && !members.iter().any(|tier| copies_on_write(step, tier));
    let more =
        (read - own(step.read.bytes)).max(0.0) + if plain { (written - own(step.write.bytes)).max(0.0) } else { 0.0 };
    // What is under way as a sample is taken counts here or there.
    let edges = 2.0 * f64::from(job.depth * job.threads) * job.block.largest().0 as f64 / step.elapsed.secs();
    let more = if more > edges { more } else { 0.0 };
    Some(Beyond { own_mbps: own(step.read.bytes + step.write.bytes) / 1e6, more_mbps: more / 1e6 })
}

/// Whether the step's file system puts what is written elsewhere, with the trees that lead there.
fn copies_on_write(step: &StepView<'_>, tier: &Tier) -> bool {
    mount_of(step, tier)
        .is_some_and(|mount| matches!(mount.fs.as_str(), "btrfs" | "bcachefs" | "f2fs" | "zfs" | "nilfs2"))
}

/// The mount of a tier that a step's target lies in. A device is itself, whatever is mounted at the root above its node.
fn mount_of<'a>(step: &StepView<'_>, tier: &'a Tier) -> Option<&'a machine::Mount> {
    let target = Path::new(step.target);
    let mounts = tier.mounts.iter().filter(|mount| target.starts_with(&mount.at) && !target.starts_with("/dev"));
    mounts.max_by_key(|mount| mount.at.components().count())
}

/// The members' disks as the first and the last sample of a step have them.
fn counters<'a>(step: &StepView<'a>, members: &[&Tier]) -> Option<Vec<(&'a Disk, &'a Disk)>> {
    let (first, last) = ends(step).filter(|_| !members.is_empty())?;
    let of = |member: &&Tier| {
        let disk = disk_of(step, member)?;
        Some((first.disks.get(disk)?, last.disks.get(disk)?))
    };
    members.iter().map(of).collect()
}

/// The bytes a second of these disks between the first sample and the last over the job's: those read, or of a step that only
/// wrote those written. Nothing where the samples cover too little of the step.
fn share(step: &StepView<'_>, disks: &[(&Disk, &Disk)]) -> Option<f64> {
    let (read, written) = rates(step, disks)?;
    let (bytes, rate) = match (step.read.bytes, step.write.bytes) {
        (0, 0) => return None,
        (0, own) => (own, written),
        (own, _) => (own, read),
    };
    Some(rate / (bytes as f64 / step.elapsed.secs()))
}

/// Bytes a second that these disks read and wrote between the first sample and the last; nothing where the samples cover too
/// little of the step.
fn rates(step: &StepView<'_>, disks: &[(&Disk, &Disk)]) -> Option<(f64, f64)> {
    let (first, last) = ends(step)?;
    let (window, elapsed) = ((last.at - first.at).secs(), step.elapsed.secs());
    if window <= 0.0 || elapsed <= 0.0 || window < COVERED * elapsed {
        return None;
    }
    let moved = |bytes: fn(&Disk) -> u64| -> f64 {
        disks.iter().map(|(before, after)| bytes(after).saturating_sub(bytes(before)) as f64).sum()
    };
    Some((moved(|disk| disk.read_bytes) / window, moved(|disk| disk.write_bytes) / window))
}

/// The same of all disks that were observed, whichever the step's was: one above another counts its bytes again, so it may
/// be too high.
fn share_of_all(step: &StepView<'_>) -> Option<f64> {
    let (first, last) = ends(step)?;
    let disks: Vec<_> = first.disks.iter().filter_map(|(name, before)| Some((before, last.disks.get(name)?))).collect();
    if disks.is_empty() { None } else { share(step, &disks) }
}

/// The share of the bytes read through the page cache that any disk moved meanwhile; nothing where the cache was not in the
/// way, or where no disk was observed.
pub(crate) fn read_from_disks(step: &StepView<'_>) -> Option<f64> {
    let engine = step.engine?.used;
    let cached = !step.job.direct || engine == Engine::Mmap || direct_refused(step).is_some();
    if !cached || engine == Engine::Memory || engine.is_workload() || step.read.bytes == 0 {
        return None;
    }
    share_of_all(step)
}

/// The share of the bytes at the disks, where they were so few that the rest was compressed away.
pub(crate) fn compressed_to(step: &StepView<'_>) -> Option<f64> {
    if !may_shrink(step) || direct_refused(step).is_some() {
        return None;
    }
    share_of_all(step).filter(|share| *share < MOSTLY)
}

impl StepSummary {
    /// The note that a file system compressed what was measured.
    pub fn compression_note(&self) -> Option<String> {
        let share = self.compressed_to?;
        Some(format!(
            "Of the bytes that were moved {} % passed a disk, for they compress: the rate is not the disk's.",
            significant(100.0 * share)
        ))
    }

    /// The note that most of what was read came from the page cache.
    pub fn cache_note(&self) -> Option<String> {
        let share = self.read_from_disks.filter(|share| *share < MOSTLY)?;
        Some(format!(
            "Read through the page cache, and {:.0} % of the bytes came from it and not from a disk: the rate is the memory's.",
            100.0 * (1.0 - share)
        ))
    }
}

/// First and last sample of a step.
pub(crate) fn ends<'a>(step: &StepView<'a>) -> Option<(&'a observe::Sample, &'a observe::Sample)> {
    match step.samples.as_slice() {
        [first, .., last] => Some((first, last)),
        _ => None,
    }
}

/// The disk among the sampled ones that the tier's bytes must pass: its own counters, or those of the only one below.
pub(crate) fn disk_of<'a>(step: &StepView<'_>, tier: &'a Tier) -> Option<&'a str> {
    let sampled = &step.samples.first()?.disks;
    let below = tier.below.iter().filter(|_| tier.below.len() == 1);
    std::iter::once(&tier.name).chain(below).map(String::as_str).find(|name| sampled.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use crate::summarise;
    use crate::testing::Step;
    use basics::job::{Engine, Entropy};

    /// Bug: 318,071 buffered reads a second were given without a word of the page cache.
    #[test]
    fn buffered_reads_that_no_disk_saw_are_noted() {
        let note = |direct, engine, share| {
            let mut step = Step::seq_read("vda", 900.0).at_disk("vda", share, 0);
            step.job.direct = direct;
            step.engine.as_mut().unwrap().used = engine;
            summarise(&step.view()).cache_note()
        };
        let cached = note(false, Engine::Psync, 0.1).unwrap();
        assert!(cached.starts_with("Read through the page cache, and 90 % of the bytes came from it"), "{cached}");
        assert!(note(true, Engine::Mmap, 0.0).is_some());
        assert_eq!(note(true, Engine::Psync, 0.0), None);
        assert_eq!(note(false, Engine::Psync, 0.98), None);
    }

    #[test]
    fn compression_is_noted_where_nothing_else_explains_the_bytes() {
        let note = |entropy, share, synced| {
            let mut step = Step::seq_write("sda", 400.0).entropy(entropy).at_disk("sda", share, 1);
            (step.job.direct, step.job.end_fsync) = (false, synced);
            summarise(&step.view()).compression_note()
        };
        let zeros = note(Entropy::Zeros, 0.03, true).unwrap();
        assert!(zeros.starts_with("Of the bytes that were moved 3.00 % passed a disk"), "{zeros}");
        assert_eq!(note(Entropy::Zeros, 0.03, false), None, "they may be in the page cache still");
        assert_eq!(note(Entropy::Incompressible, 0.03, true), None);
        assert_eq!(note(Entropy::Zeros, 0.99, true), None);
    }
}
