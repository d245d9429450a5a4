//! Figures that are not the disk's: the page cache answered, or a file system compressed.

use super::{Draft, Scene, Subject, at, finding, mbps};
use crate::figures::TierSteps;
use crate::layer::{Layer, measured};
use crate::model::StepView;
use basics::Why;
use basics::job::{Direction, Entropy};
use basics::units::{listed, significant};
use machine::{Ceiling, TierKind};

/// A rate above the encoded limit by this factor cannot have come over the bus; what is below may be rounding.
const BEYOND: f64 = 1.1;
/// Zeros that are written this much faster than data that do not compress were compressed.
const FASTER: f64 = 1.5;

/// A tier that reads this much faster than all below it together did not read from them.
const OUTRUNS: f64 = 1.5;

/// True when a rate is higher than anything that the line code leaves.
fn beyond_the_bus(rate: f64, ceiling: &Ceiling) -> bool {
    rate > BEYOND * ceiling.encoded_mbps
}

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let of = |s| page_cache(s).or_else(|| outrunning(scene, s)).into_iter().chain(compression(s)).chain(buffered(s));
    scene.subjects.iter().filter(on_a_disk).flat_map(of).collect()
}

fn on_a_disk(subject: &&Subject<'_, '_>) -> bool {
    !subject.steps.tier.is_some_and(|tier| in_memory(tier.kind))
}

fn in_memory(kind: TierKind) -> bool {
    matches!(kind, TierKind::Ram | TierKind::Zram)
}

/// Reads of a tier that the page cache answered: what proves it, and the rate in 10^6 B/s.
pub(super) fn cached(steps: &TierSteps<'_, '_>) -> Vec<(String, f64)> {
    if steps.tier.is_some_and(|tier| in_memory(tier.kind)) {
        return Vec::new();
    }
    let ceiling = steps.tier.and_then(|tier| tier.ceiling.get());
    let reads = steps.all().filter(|step| step.is_whole() && !step.read.latency.is_empty());
    reads
        .filter_map(|step| {
            let rate = basics::Bytes(step.read.bytes).mbps(step.elapsed);
            let members = steps.members(step);
            let proof = match (measured(step, &members), ceiling) {
                (Layer::PageCache(proof), _) => proof,
                // Several disks together may well be faster than the bus of one.
                (_, Some(ceiling)) if members.len() == 1 && beyond_the_bus(rate, ceiling) => {
                    let most = mbps(ceiling.encoded_mbps);
                    at(step, format_args!("{}, {} carries {most} at most", mbps(rate), ceiling.hop))
                }
                _ => return None,
            };
            Some((proof, rate))
        })
        .collect()
}

/// Takes the trust from reads of tiers that outran the tiers below them.
pub(crate) fn distrust_caches(subjects: &mut [Subject<'_, '_>]) {
    let outran: Vec<bool> = subjects.iter().map(|subject| outran(subject, subjects).is_some()).collect();
    for (subject, _) in subjects.iter_mut().zip(outran).filter(|(_, outran)| *outran) {
        subject.trusted.forget_reads(&Why::NotMeasured("a cache".to_owned()));
    }
}

/// What a tier read in sequence and what all tiers below it read together, 10^6 B/s, when the first cannot be theirs.
fn outran(subject: &Subject<'_, '_>, all: &[Subject<'_, '_>]) -> Option<(f64, f64)> {
    let tier = subject.steps.tier.filter(|tier| !in_memory(tier.kind) && !tier.below.is_empty())?;
    let below = tier.below.iter().map(|name| {
        let below = all.iter().find(|other| other.name() == name)?;
        below.trusted.seq_read_mbps.get().copied()
    });
    let below = below.sum::<Option<f64>>()?;
    let here = *subject.figures.seq_read_mbps.get()?;
    (here > OUTRUNS * below).then_some((here, below))
}

/// A loop device over a file that the page cache holds, and the like.
fn outrunning(scene: &Scene<'_, '_>, subject: &Subject<'_, '_>) -> Option<Draft> {
    let (here, below) = outran(subject, &scene.subjects)?;
    let tier = subject.steps.tier?;
    let carriers = listed(&tier.below);
    let whose = match tier.kind {
        TierKind::Loop => "the page cache, which holds its backing file, answered",
        _ => "a cache between them answered",
    };
    let text = format!(
        "{} reads {} and {carriers}, on which it lies, {}: {whose}, not the disk.",
        subject.name(),
        mbps(here),
        mbps(below)
    );
    let mut evidence: Vec<String> =
        subject.steps.measured("seq-read").map(|step| at(step, mbps(here))).into_iter().collect();
    let carrier = tier.below.iter().filter_map(|name| scene.subject(name)?.steps.measured("seq-read"));
    evidence.extend(carrier.map(|step| at(step, mbps(basics::Bytes(step.read.bytes).mbps(step.elapsed)))));
    let mut found = finding("faster-than-below", 90, Some(subject.name()), text, evidence);
    found.advice =
        Some(format!("judge by {carriers}, or attach the loop device with direct I/O (`losetup --direct-io=on`)"));
    if tier.kind != TierKind::Loop {
        found.advice = Some(format!("judge by {carriers}"));
    }
    Some(found.into())
}

fn page_cache(subject: &Subject<'_, '_>) -> Option<Draft> {
    let cached = cached(&subject.steps);
    let fastest = cached.iter().map(|(_, rate)| *rate).reduce(f64::max)?;
    let text = format!(
        "What was read on {} ({}) is the page cache, not the disk: the disk's own rate is not known.",
        subject.name(),
        mbps(fastest)
    );
    let evidence = cached.into_iter().map(|(proof, _)| proof).collect();
    let mut found = finding("page-cache", 95, Some(subject.name()), text, evidence);
    found.advice =
        Some("measure on a file system that takes O_DIRECT, or with a file larger than the RAM, or as root".to_owned());
    Some(found.into())
}

/// What a file system made of content that compresses: by the rates of zeros and of what does not, by the bytes that came to
/// the disk, or at last by its mount option alone.
fn compression(subject: &Subject<'_, '_>) -> Option<Draft> {
    let rate = |step: &StepView<'_>| basics::Bytes(step.write.bytes).mbps(step.elapsed);
    let mount = subject.steps.tier.and_then(|tier| tier.mounts.iter().find(|mount| mount.compression.is_some()));
    let who = mount.map_or_else(
        || "the file system".to_owned(),
        |mount| format!("{} ({})", mount.fs, mount.compression.as_deref().unwrap_or_default()),
    );
    let name = subject.name();
    if let Some((zeros, solid)) = zeros_and_solid(subject)
        && rate(zeros) > FASTER * rate(solid)
    {
        let text = format!(
            "On {name} {who} compresses: zeros {}, incompressible {}; a benchmark that writes zeros measures the \
             compressor.",
            mbps(rate(zeros)),
            mbps(rate(solid))
        );
        let mut evidence = vec![at(zeros, mbps(rate(zeros))), at(solid, mbps(rate(solid)))];
        evidence.extend(shrunk(subject).into_iter().map(|(step, times)| at_the_disk(step, times)));
        return Some(finding("compression", 40, Some(name), text, evidence).into());
    }
    let shrunk = shrunk(subject);
    let bytes = |step: &StepView<'_>| step.write.bytes.max(step.read.bytes);
    if let Some((step, times)) = shrunk.iter().max_by_key(|(step, _)| (step.write.bytes, bytes(step))) {
        let text = format!(
            "On {name} {who} compresses: of {} that step {} moved {} passed the disk. Where that is so the rates are those of \
             the compressor and the memory, not the disk's.",
            basics::Bytes(bytes(step)),
            step.name,
            basics::Bytes((bytes(step) as f64 / times) as u64)
        );
        let evidence = shrunk.iter().map(|(step, times)| at_the_disk(step, *times)).collect();
        let mut found = finding("compression", 90, Some(name), text, evidence);
        found.advice = Some("measure with data that do not compress, or without the mount's compression".to_owned());
        return Some(found.into());
    }
    // Nothing measured contradicts it: the mount option alone.
    let mount = mount?;
    let text = format!(
        "{} is mounted with compression ({who}): the figures are of data that do not compress, text and programs are \
         written faster.",
        mount.at.display()
    );
    let options = format!("mount {}: {}", mount.at.display(), mount.compression.as_deref().unwrap_or_default());
    Some(finding("compression", 20, Some(name), text, vec![options]).into())
}

/// Zeros, and the same written with data that do not compress.
fn zeros_and_solid<'r, 'a>(subject: &Subject<'r, 'a>) -> Option<(&'r StepView<'a>, &'r StepView<'a>)> {
    let of = |entropy| subject.steps.all().filter(move |step| step.is_whole() && step.job.entropy == entropy);
    let work = |step: &StepView<'_>| {
        let job = step.job;
        (job.direction, job.order, job.block.clone(), job.direct, job.end_fsync, job.sync)
    };
    let zeros = of(Entropy::Zeros).filter(|step| step.job.direction == Direction::Write).last()?;
    let solid = of(Entropy::Incompressible).filter(|step| work(step) == work(zeros)).last()?;
    Some((zeros, solid))
}

/// The steps of which a disk moved so little that the rest was compressed away, with how many of their bytes one of the disk's
/// stood for.
fn shrunk<'r, 'a>(subject: &Subject<'r, 'a>) -> Vec<(&'r StepView<'a>, f64)> {
    let compressed = |step: &'r StepView<'a>| match measured(step, &subject.steps.members(step)) {
        Layer::Compressed(times) => Some((step, times)),
        Layer::Disk | Layer::PageCache(_) | Layer::Unknown => None,
    };
    subject.steps.all().filter(|step| step.is_whole()).filter_map(compressed).collect()
}

fn at_the_disk(step: &StepView<'_>, times: f64) -> String {
    at(step, format_args!("{} % of the bytes at the disk", significant(100.0 / times)))
}

/// Direct writes that a file system took through the page cache.
fn buffered(subject: &Subject<'_, '_>) -> Option<Draft> {
    fn why<'a>(step: &StepView<'a>) -> Option<&'a str> {
        step.engine.and_then(|engine| engine.direct_writes_refused())
    }
    let steps: Vec<_> = subject.steps.all().filter(|step| step.is_whole() && why(step).is_some()).collect();
    let text = format!(
        "Direct writes to {} were buffered ones: {}. Each is copied and checksummed before the disk has it, and its latency \
         holds that too.",
        subject.name(),
        why(steps.first()?)?
    );
    let evidence = steps.iter().map(|step| at(step, "without direct writes")).collect();
    let mut found = finding("direct-writes-buffered", 30, Some(subject.name()), text, evidence);
    found.advice = Some(
        "for the disk's own writes measure in a directory whose new files have no checksums (`chattr +C` on an empty one)"
            .to_owned(),
    );
    Some(found.into())
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::{found, remarked};
    use crate::testing::{Run, Step, capped, mount, tier};
    use basics::EngineUse;
    use basics::job::Entropy;
    use machine::{Tier, TierKind};

    #[test]
    fn a_rate_that_no_bus_carries_is_the_page_cache() {
        let usb2 = || capped("sda", TierKind::Usb, "USB 2", 60.0, (35.0, 40.0));
        let run = Run::default().tiers([usb2()]).steps([Step::seq_read("sda", 2100.0)]);
        let cache = found(&run, "page-cache");
        assert!(cache[0].text.contains("(2,100 MB/s) is the page cache, not the disk"), "{}", cache[0].text);
        assert!(found(&run, "bus-limited").is_empty());
        let study = crate::explain(&run.view()).tiers.remove(0);
        assert_eq!(study.ceiling_share, basics::Known::not_measured("page cache"));
        assert!(study.good_for.iter().all(|fitness| fitness.verdict == "unknown"), "a cache is good for nothing");
        let honest = Run::default().tiers([usb2()]).steps([Step::seq_read("sda", 38.0)]);
        assert!(found(&honest, "page-cache").is_empty());
    }

    #[test]
    fn bytes_that_the_disk_never_saw_are_the_page_cache() {
        let disk = |share| {
            let step = Step::seq_read("vda", 900.0).at_disk("vda", share, 0);
            Run::default().tiers([tier("vda", TierKind::Virtio)]).steps([step])
        };
        let cache = found(&disk(0.1), "page-cache");
        assert_eq!(cache[0].evidence, ["step 0 seq-read: 10 % of the bytes came from the disk"]);
        assert!(found(&disk(0.97), "page-cache").is_empty());
    }

    /// Half of the bytes lie on each of two disks that carry one btrfs: together they are all. Where only one of them was
    /// observed nothing follows from its part.
    #[test]
    fn a_file_system_on_two_disks_has_the_bytes_of_both() {
        let member = |name| Tier { mounts: vec![mount("/mnt", "btrfs", None)], ..tier(name, TierKind::Usb) };
        let run = |share| {
            let step = Step::seq_read("sda", 100.0).at_disk("sda", share, 0).at_disk("sdb", share, 0);
            Run::default().tiers([member("sda"), member("sdb")]).steps([step])
        };
        assert!(found(&run(0.4), "page-cache").is_empty());
        let cache = found(&run(0.05), "page-cache");
        assert_eq!(cache[0].evidence, ["step 0 seq-read: 10 % of the bytes came from the disk"]);
        let mut half = run(0.4);
        for sample in half.steps[0].sampled() {
            sample.disks.remove("sdb");
        }
        assert!(found(&half, "page-cache").is_empty());
        half.machine.tiers.pop();
        assert_eq!(found(&half, "page-cache").len(), 1, "alone it lacks most of the bytes");
    }

    /// Bug: a loop device whose file the page cache held was the fastest disk of the machine.
    #[test]
    fn a_layer_is_not_faster_than_what_lies_below() {
        let looped = || Tier { below: vec!["vda".into()], ..tier("loop0", TierKind::Loop) };
        let run = |rate| {
            let steps = [Step::seq_read("vda", 1054.0), Step::seq_read("loop0", rate)];
            Run::default().tiers([tier("vda", TierKind::Virtio), looped()]).steps(steps)
        };
        let faster = found(&run(5959.0), "faster-than-below");
        assert_eq!(
            faster[0].text,
            "loop0 reads 5,959 MB/s and vda, on which it lies, 1,054 MB/s: the page cache, which holds its backing file, \
             answered, not the disk."
        );
        assert_eq!(faster[0].evidence, ["step 1 seq-read: 5,959 MB/s", "step 0 seq-read: 1,054 MB/s"]);
        let study = crate::explain(&run(5959.0).view());
        let judged = study.tiers.iter().find(|tier| tier.name == "loop0").unwrap();
        assert!(judged.good_for.iter().all(|fitness| fitness.verdict == "unknown"), "{:?}", judged.good_for);
        assert!(found(&run(1100.0), "faster-than-below").is_empty());
    }

    #[test]
    fn a_refused_o_direct_is_said() {
        let mut step = Step::seq_read("sda", 900.0);
        step.engine
            .as_mut()
            .unwrap()
            .dropped
            .push((basics::EngineUse::DIRECT.to_owned(), "overlayfs does not support it".to_owned()));
        let run = Run::default().steps([step]);
        let cache = found(&run, "page-cache");
        assert_eq!(cache[0].evidence, ["step 0 seq-read: O_DIRECT dropped, overlayfs does not support it"]);
    }

    #[test]
    fn zeros_against_incompressible() {
        let btrfs = Tier { mounts: vec![mount("/", "btrfs", Some("zstd:1"))], ..tier("sda", TierKind::Usb) };
        let step = |name: &str, rate, entropy| Step::seq_write("sda", rate).named(name).entropy(entropy);
        let steps = |zeros| {
            [
                step("seq-write-zeros", zeros, Entropy::Zeros),
                step("seq-write-incompressible", 28.0, Entropy::Incompressible),
            ]
        };
        let compressed = found(&Run::default().tiers([btrfs.clone()]).steps(steps(123.0)), "compression");
        assert!(
            compressed[0].text.starts_with("On sda btrfs (zstd:1) compresses: zeros 123 MB/s, incompressible 27.8"),
            "{}",
            compressed[0].text
        );
        let plain = Run::default().tiers([tier("sda", TierKind::Usb)]).steps(steps(29.0));
        assert!(remarked(&plain, "compression").is_empty());
        let at_the_disk = |share| {
            let [zeros, solid] = steps(123.0);
            Run::default().tiers([btrfs.clone()]).steps([zeros.at_disk("sda", share, 1), solid.at_disk("sda", 1.0, 1)])
        };
        let proven = found(&at_the_disk(0.031), "compression");
        assert_eq!(proven[0].evidence[2..], ["step 0 seq-write-zeros: 3.10 % of the bytes at the disk"]);
        let unmeasured = Run::default().tiers([btrfs]).steps([Step::seq_read("sda", 30.0)]);
        assert_eq!(remarked(&unmeasured, "compression")[0].weight, 20);
    }

    /// Bug: what iozone fills unless told otherwise, and what `dd` takes from /dev/zero, were the disk's figures on btrfs.
    #[test]
    fn what_compresses_and_does_not_reach_the_disk_was_compressed() {
        let btrfs = Tier { mounts: vec![mount("/mnt", "btrfs", Some("zstd:1"))], ..tier("sda", TierKind::Usb) };
        let step =
            |entropy, share| Step::seq_write("sda", 200.0).named("write-4k").entropy(entropy).at_disk("sda", share, 1);
        let run = |step| Run::default().tiers([btrfs.clone()]).steps([step]);
        let found_in = |run: &Run| remarked(run, "compression").remove(0);
        let stamps = found_in(&run(step(Entropy::Stamps, 0.04)));
        assert_eq!(stamps.weight, 90);
        assert!(
            stamps.text.starts_with("On sda btrfs (zstd:1) compresses: of 381 MiB that step write-4k moved 15."),
            "{}",
            stamps.text
        );
        assert_eq!(stamps.evidence, ["step 0 write-4k: 4.00 % of the bytes at the disk"]);
        assert_eq!(
            found_in(&run(step(Entropy::Incompressible, 0.04))).weight,
            20,
            "who counts them wrongly proves nothing"
        );
        assert_eq!(found_in(&run(step(Entropy::Stamps, 1.02))).weight, 20);
        // Nothing waits for these bytes: the page cache may hold them still.
        let mut unsynced = step(Entropy::Stamps, 0.04);
        (unsynced.job.direct, unsynced.job.end_fsync) = (false, false);
        assert_eq!(found_in(&run(unsynced)).weight, 20);
    }

    #[test]
    fn direct_writes_that_were_buffered_are_said() {
        let mut step = Step::seq_write("sda", 30.0);
        let why = "btrfs does so".to_owned();
        step.engine.as_mut().unwrap().dropped.push((EngineUse::DIRECT_WRITES.to_owned(), why));
        let buffered = found(&Run::default().steps([step]), "direct-writes-buffered");
        assert!(
            buffered[0].text.starts_with("Direct writes to sda were buffered ones: btrfs does so."),
            "{}",
            buffered[0].text
        );
        assert!(found(&Run::default().steps([Step::seq_write("sda", 30.0)]), "direct-writes-buffered").is_empty());
    }
}
