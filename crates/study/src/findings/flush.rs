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
/// A platter of 15,000 rpm, the fastest made, comes round in 4 ms: half of that is the mean wait for a sector.
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
    // The median: a few slow ones move a mean to where no fsync was.
    let p50 = subject.figures.fsync.get()?.percentile(50.0)?;
    if block.rotational != Known::Is(true) || p50 >= HALF_TURN || fsyncs < FSYNCS {
        return None;
    }
    let p99 = fsync_p99(&subject.steps, &subject.figures).into_option();
    let tail = p99.map(|p99| format!(", p99 {p99}")).unwrap_or_default();
    let evidence = vec![at(step, format_args!("p50 {p50}{tail}")), format!("{disk} rotational: 1")];
    let opening = format!("An fsync takes {p50} in the median on {}{tail}", subject.name());
    let (weight, text, advice) = match who_answers(tier) {
        Answers::ItsCache => (
            40,
            format!(
                "{opening}; a platter needs 2 ms to come round, so its cache answers: what Redis or a database was told \
                 is durable is lost with the power, unless that cache outlives it."
            ),
            "switch the drive's write cache off (`hdparm -W0`) where databases lie, and measure again",
        ),
        Answers::TheHost => (
            35,
            format!(
                "{opening}: this is a virtual disk, and the host or its cache answers. Whether a commit of a database or \
                 of Redis outlives a power cut is decided there and cannot be seen from here."
            ),
            "before a database relies on it, ask how the host caches this disk: QEMU's `cache=unsafe` drops every flush, \
             and the other modes keep to it as far as the host's own disk does",
        ),
        // A remark: what was seen, and nobody accused.
        Answers::Unknown => (
            25,
            format!(
                "{opening}, which is marked as rotating; virtual disks and USB bridges are so marked by default, so \
                 whether the medium or a cache answers is not known."
            ),
            "before a database or Redis relies on it, find out whether its cache outlives a power cut",
        ),
    };
    let mut found = finding("fsync-too-fast", weight, Some(subject.name()), text, evidence);
    found.advice = Some(advice.to_owned());
    Some(found.into())
}

/// Who says that a write is durable, when no platter can have come round.
enum Answers {
    ItsCache,
    TheHost,
    Unknown,
}

fn who_answers(tier: &Tier) -> Answers {
    match tier.kind {
        TierKind::Virtio => Answers::TheHost,
        _ if states_rotation(tier) => Answers::ItsCache,
        _ => Answers::Unknown,
    }
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
        let found = found(&run, "fsync-too-fast");
        assert!(found[0].text.contains("so its cache answers: what Redis or a database was told"), "{found:?}");
        assert!(found[0].advice.as_ref().unwrap().contains("hdparm -W0"));
    }

    /// Bug: a mean of 201 µs between 122 µs and 4 ms was given as what an fsync takes.
    #[test]
    fn a_few_slow_fsyncs_do_not_hide_the_median() {
        let mut step = Step::fsyncs("vda", Nanos(122_000));
        step.write.latency.record_n(Nanos(4_000_000), step.write.operations() / 20);
        let disk = Tier { kind: TierKind::Virtio, name: "vda".into(), ..disk("write back", true) };
        let run = Run::default().tiers([disk]).steps([step.at_disk("vda", 1.0, 20_000)]);
        let found = found(&run, "fsync-too-fast");
        let text = &found[0].text;
        assert!(
            text.starts_with("An fsync takes 122 µs in the median on vda, p99 4.00 ms: this is a virtual disk"),
            "{text}"
        );
        assert!(found[0].advice.as_ref().unwrap().contains("ask how the host caches this disk"));
    }

    /// Bug: a virtual disk, which the kernel marks as rotating because it does not say otherwise, was called a platter.
    #[test]
    fn a_default_mark_makes_no_platter() {
        for kind in [TierKind::Usb, TierKind::Block, TierKind::Sata] {
            let step = Step::fsyncs("sda", Nanos(150_000)).at_disk("sda", 1.0, 20_000);
            let run = Run::default().tiers([Tier { kind, ..disk("write back", true) }]).steps([step]);
            assert!(found(&run, "fsync-too-fast").is_empty());
            assert!(remarked(&run, "fsync-too-fast")[0].text.ends_with("is not known."));
        }
    }
}
