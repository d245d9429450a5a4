//! What a ring would like to use of the kernel, and a ring set up with as much of it as the kernel takes.

use rustix::io::Errno;
use rustix::io_uring::{IoringSetupFlags, io_uring_params, io_uring_setup};
use std::io;
use std::os::fd::OwnedFd;

/// What a ring would like to use. Each can be refused by a kernel, by a limit or (in tests) by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Feature {
    /// `IORING_SETUP_NO_SQARRAY` (6.6): one indirection less.
    NoSqArray,
    /// `IORING_SETUP_DEFER_TASKRUN` (6.1): completions are worked off in `enter`, in batches.
    DeferTaskrun,
    /// `IORING_SETUP_SINGLE_ISSUER` (6.0): one thread submits.
    SingleIssuer,
    /// `IORING_SETUP_COOP_TASKRUN` (5.19): completions do not interrupt the thread.
    CoopTaskrun,
    /// `IORING_REGISTER_RING_FDS` (5.18): `enter` need not look the ring up.
    RegisteredRing,
    /// `IORING_FEAT_EXT_ARG` (5.11): waiting has a time limit.
    Timeout,
    /// `IORING_REGISTER_FILES`: an operation need not take a reference to the file.
    RegisteredFile,
    /// `IORING_REGISTER_BUFFERS`: an operation need not pin its pages; counts against RLIMIT_MEMLOCK.
    RegisteredBuffers,
}

impl Feature {
    /// The name by which the kernel's documentation knows it.
    pub fn name(self) -> &'static str {
        match self {
            Feature::NoSqArray => "NO_SQARRAY",
            Feature::DeferTaskrun => "DEFER_TASKRUN",
            Feature::SingleIssuer => "SINGLE_ISSUER",
            Feature::CoopTaskrun => "COOP_TASKRUN",
            Feature::RegisteredRing => "registered ring",
            Feature::Timeout => "EXT_ARG",
            Feature::RegisteredFile => "registered file",
            Feature::RegisteredBuffers => "registered buffers",
        }
    }
    /// The kernel that first had it.
    pub fn since(self) -> &'static str {
        match self {
            Feature::NoSqArray => "Linux 6.6",
            Feature::DeferTaskrun => "Linux 6.1",
            Feature::SingleIssuer => "Linux 6.0",
            Feature::CoopTaskrun => "Linux 5.19",
            Feature::RegisteredRing => "Linux 5.18",
            Feature::Timeout => "Linux 5.11",
            Feature::RegisteredFile | Feature::RegisteredBuffers => "Linux 5.1",
        }
    }
}

/// A feature that this ring does without, and the answer that it got.
#[derive(Debug)]
pub struct Refusal {
    /// Which.
    pub feature: Feature,
    /// Why.
    pub error: io::Error,
}

/// Set-up flags in the order in which they are dropped: newest first, so that what depends on another goes before it.
const SETUP: [(Feature, IoringSetupFlags); 4] = [
    (Feature::NoSqArray, IoringSetupFlags::NO_SQARRAY),
    (Feature::DeferTaskrun, IoringSetupFlags::DEFER_TASKRUN),
    (Feature::SingleIssuer, IoringSetupFlags::SINGLE_ISSUER),
    (Feature::CoopTaskrun, IoringSetupFlags::COOP_TASKRUN),
];

/// Submission entries: what one `enter` can carry. Beyond a batch of 16 nothing is gained, so the ring stays small
/// however deep the queue is.
const SUBMISSIONS: u32 = 64;

pub(super) fn refused(feature: Feature) -> Refusal {
    Refusal { feature, error: Errno::INVAL.into() }
}

/// Sets a ring up with as many of [`SETUP`] as the kernel takes.
pub(super) fn set_up(
    depth: u32,
    refuse: &[Feature],
    refusals: &mut Vec<Refusal>,
) -> io::Result<(OwnedFd, io_uring_params)> {
    let mut wanted = IoringSetupFlags::CQSIZE | IoringSetupFlags::CLAMP;
    let mut droppable = Vec::new();
    for (feature, flag) in SETUP {
        // DEFER_TASKRUN is valid only beside SINGLE_ISSUER, and without time limits the wait polls, which deferred
        // completions do not wake: a refusal of either takes it along. No kernel is in the second case by itself.
        let implied = feature == Feature::DeferTaskrun
            && (refuse.contains(&Feature::SingleIssuer) || refuse.contains(&Feature::Timeout));
        if refuse.contains(&feature) || implied {
            refusals.push(refused(feature));
        } else {
            wanted |= flag;
            droppable.push((feature, flag));
        }
    }
    let mut droppable = droppable.into_iter();
    loop {
        let mut params = io_uring_params::default();
        params.flags = wanted;
        params.cq_entries = depth.next_power_of_two();
        // SAFETY: `params` lives through the call; the ring that results is owned.
        match unsafe { io_uring_setup(depth.next_power_of_two().min(SUBMISSIONS), &mut params) } {
            Ok(ring) => return Ok((ring, params)),
            Err(Errno::INVAL) => {
                let Some((feature, flag)) = droppable.next() else { return Err(Errno::INVAL.into()) };
                wanted -= flag;
                refusals.push(refused(feature));
            }
            Err(other) => return Err(other.into()),
        }
    }
}
