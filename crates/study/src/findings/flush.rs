//! What a write costs that must be durable, and whether anything reached the disk when it was said to be.

use super::{Draft, Jointly, Scene, Subject, at, finding};
use crate::figures::fsync_p99;
use crate::layer::{disk_of, ends};
use basics::units::listed;
use basics::{Known, Nanos};
use machine::{Tier, TierKind};

/// From here on at p99 a program that waits for an fsync is felt: the Redis article calls 20 to 60 ms spiky.
const SLOW: Nanos = Nanos(20_000_000);
/// Fewer flushes than this share of the fsyncs are none to speak of: a file system may join a few.
const FLUSHED: f64 = 0.01;
/// Fewest fsyncs for that.
const FSYNCS: u64 = 20;
/// A platter of 15,000 rpm, the fastest made, comes round in 4 ms: half of that is the least mean wait for a sector.
const HALF_TURN: Nanos = Nanos(2_000_000);

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    scene.subjects.iter().flat_map(|subject| slow(subject).into_iter().chain(too_good(subject))).collect()
}

fn slow(subject: &Subject<'_, '_>) -> Option<Draft> {
    let p50 = subject.figures.fsync.get()?.percentile(50.0)?;
    let p99 = fsync_p99(&subject.steps, &subject.figures).into_option()?;
    if p99 < SLOW {
        return None;
    }
    let step = subject.steps.measured("fsync")?;
    let text = format!(
        "A write that must be durable costs {p50} on {}, {p99} at p99: databases and Redis with `appendfsync always` \
         wait for it.",
        subject.name()
    );
    let mut found =
        finding("slow-fsync", 40, Some(subject.name()), text, vec![at(step, format_args!("p50 {p50}, p99 {p99}"))]);
    found.advice = Some(
        "keep databases and append-only files on a tier with a faster fsync, or let them sync once a second".to_owned(),
    );
    let jointly = Some(Jointly { detail: format!("{p50}, {p99} at p99"), sentence: together });
    Some(Draft { finding: found, jointly })
}

fn together(tiers: &[(String, String)]) -> String {
    let each: Vec<String> = tiers.iter().map(|(tier, cost)| format!("{cost} on {tier}")).collect();
    format!(
        "A write that must be durable costs {}: databases and Redis with `appendfsync always` wait for it.",
        listed(&each)
    )
}

/// Durable too fast: a write cache that was never told to flush, or a platter that cannot have come round.
fn too_good(subject: &Subject<'_, '_>) -> Option<Draft> {
    let step = subject.steps.measured("fsync")?;
    // Which of several members an fsync must flush is the file system's to know.
    let [tier] = *subject.steps.members(step) else { return None };
    let block = tier.block.as_ref()?;
    let (first, last) = ends(step)?;
    let disk = disk_of(step, tier)?;
    let (before, after) = (first.disks.get(disk)?, last.disks.get(disk)?);
    let fsyncs = step.write.operations();
    let cached = block.write_cache.get().is_some_and(|cache| cache == "write back");
    if let (Some(before), Some(after)) = (before.flushes, after.flushes)
        && cached
        && fsyncs >= FSYNCS
        && ((after - before) as f64) < FLUSHED * fsyncs as f64
    {
        let text = format!(
            "{fsyncs} fsyncs sent {} flushes to {disk}, whose write cache is on: what was said to be durable may be \
             lost with the power.",
            after - before
        );
        let evidence = vec![
            at(step, format_args!("{fsyncs} writes with fsync, {} flushes", after - before)),
            format!("{disk} write cache: write back"),
        ];
        let mut found = finding("fsync-without-flush", 80, Some(subject.name()), text, evidence);
        found.advice = Some("look for `nobarrier` or `barrier=0` among the mount options".to_owned());
        return Some(found.into());
    }
    let mean = subject.figures.fsync.get()?.mean.get().copied()?;
    if block.rotational != Known::Is(true) || mean >= HALF_TURN {
        return None;
    }
    let evidence = vec![at(step, format_args!("mean {mean}")), format!("{disk} rotational: 1")];
    let (weight, text) = if states_rotation(tier) {
        (
            40,
            format!(
                "An fsync takes {mean} on {}, less than a platter needs to come round (2 ms): its cache answers.",
                subject.name()
            ),
        )
    } else {
        // A remark: what was seen, and nobody accused.
        (
            25,
            format!(
                "An fsync takes {mean} on {}, which is marked as rotating; virtual disks and USB bridges are so marked by \
             default, so whether the medium or a cache answers is not known.",
                subject.name()
            ),
        )
    };
    Some(finding("fsync-too-fast", weight, Some(subject.name()), text, evidence).into())
}

/// True when the mark `rotational` is the disk's own word. It is the kernel's default for every disk that does not say
/// otherwise, and virtio, USB bridges and virtual SCSI disks do not; behind an ATA link the drive itself is asked.
fn states_rotation(tier: &Tier) -> bool {
    tier.kind == TierKind::Sata && tier.hops.iter().any(|hop| hop.kind == "sata")
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::{found, remarked};
    use crate::testing::{Run, Step, tier};
    use basics::{Known, Nanos};
    use machine::{BlockFacts, Tier, TierKind};

    fn disk(cache: &str, rotational: bool) -> Tier {
        let block = BlockFacts {
            write_cache: Known::Is(cache.to_owned()),
            rotational: Known::Is(rotational),
            ..BlockFacts::default()
        };
        Tier { block: Some(block), ..tier("sda", TierKind::Sata) }
    }

    #[test]
    fn slow_fsyncs_are_said_with_their_percentiles() {
        let run = Run::default().steps([Step::fsyncs("mmcblk0", Nanos(33_000_000))]);
        let slow = found(&run, "slow-fsync");
        assert!(slow[0].text.starts_with("A write that must be durable costs 33.0 ms on mmcblk0"), "{}", slow[0].text);
        let few =
            Run::default().steps([Step::fsyncs("mmcblk0", Nanos(33_000_000)).replaced(&[3; 33], Nanos(33_000_000))]);
        assert!(remarked(&few, "slow-fsync").is_empty(), "99 fsyncs have no p99");
        let fast = Run::default().steps([Step::fsyncs("sda", Nanos(300_000))]);
        assert!(remarked(&fast, "slow-fsync").is_empty());
    }

    #[test]
    fn only_a_write_cache_that_got_no_flush_is_accused() {
        let run = |cache: &str, flushes| {
            let step = Step::fsyncs("sda", Nanos(100_000)).at_disk("sda", 1.0, flushes);
            Run::default().tiers([disk(cache, false)]).steps([step])
        };
        let lost = found(&run("write back", 0), "fsync-without-flush");
        assert!(lost[0].text.contains("fsyncs sent 0 flushes to sda, whose write cache is on"), "{}", lost[0].text);
        assert!(found(&run("write through", 0), "fsync-without-flush").is_empty());
        assert!(found(&run("write back", 20_000), "fsync-without-flush").is_empty());
    }

    #[test]
    fn a_platter_cannot_be_that_fast() {
        let step = Step::fsyncs("sda", Nanos(150_000)).at_disk("sda", 1.0, 20_000);
        let link = machine::Hop { kind: "sata".to_owned(), ..machine::Hop::default() };
        let platter = Tier { hops: vec![link], ..disk("write back", true) };
        let run = Run::default().tiers([platter]).steps([step]);
        assert!(found(&run, "fsync-too-fast")[0].text.ends_with("its cache answers."));
    }

    /// Bug: a virtual disk, which the kernel marks as rotating because it does not say otherwise, was called a platter.
    #[test]
    fn a_default_mark_makes_no_platter() {
        for kind in [TierKind::Virtio, TierKind::Usb, TierKind::Block, TierKind::Sata] {
            let step = Step::fsyncs("sda", Nanos(150_000)).at_disk("sda", 1.0, 20_000);
            let run = Run::default().tiers([Tier { kind, ..disk("write back", true) }]).steps([step]);
            assert!(found(&run, "fsync-too-fast").is_empty());
            assert!(remarked(&run, "fsync-too-fast")[0].text.ends_with("is not known."));
        }
    }
}
