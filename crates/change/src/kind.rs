//! The kinds of change. A new one is a variant with its journal form, its [`Reversible`], and its crash test.

use crate::cgroup::{ControllerChange, GroupChange};
use crate::error::ChangeError;
use crate::folder::FolderChange;
use crate::fuse_mount::MountChange;
use crate::helper::HelperChange;
use crate::lasting::LastingChange;
use crate::loop_device::LoopChange;
use crate::mount::DiskMountChange;
use crate::swap_area::SwapChange;
use crate::test_file::FileChange;
use crate::value::ValueChange;
use crate::zram::ZramChange;
use serde::{Deserialize, Serialize};

/// What the world looks like now, compared with a journal entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Present {
    /// As before the change: nothing is left to undo.
    Before,
    /// As the change made it, wholly or in part.
    Wanted,
    /// Finished: it stands, and nothing is to be undone.
    Done,
    /// Somebody else has been there; how, as the end of a sentence that begins with the target's name.
    Neither(String),
    /// It cannot be looked at now (not mounted, not plugged in); why, as the end of such a sentence.
    Away(String),
}

/// One reversible mutation, as its journal entry describes it: target, before, wanted.
pub(crate) trait Reversible {
    /// The thing changed, for people.
    fn target(&self) -> String;
    /// Looks, and touches nothing.
    fn present(&self) -> Result<Present, ChangeError>;
    /// Goes back to `before`, durably. Called only when the present is [`Present::Wanted`].
    fn undo(&self) -> Result<(), ChangeError>;
    /// What undoing did, as the end of a sentence that begins with the target's name.
    fn undone(&self) -> &'static str;
    /// Whether it was done to the running kernel alone, and so is gone when the machine is started again: what is found
    /// then under the same name is somebody else's.
    fn of_this_boot(&self) -> bool {
        false
    }
    /// Whether undoing means to wait for another process, which may itself wait for the journal.
    fn waits_for_a_process(&self) -> bool {
        false
    }
}

/// A change as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Change {
    /// A file of tiermark's own.
    TestFile(FileChange),
    /// The folder of an emulated disk and the FUSE file system mounted there.
    FuseMount(MountChange),
    /// A loop device over a file of tiermark's own.
    LoopDevice(LoopChange),
    /// A kernel setting.
    Value(ValueChange),
    /// A swap area that is on.
    SwapOn(SwapChange),
    /// A zram device.
    Zram(ZramChange),
    /// A control group.
    Cgroup(GroupChange),
    /// A controller that the control groups of a hierarchy have.
    CgroupController(ControllerChange),
    /// A process of our own.
    Helper(HelperChange),
    /// A folder of tiermark's own.
    Folder(FolderChange),
    /// An emulated disk's file system, mounted.
    DiskMount(DiskMountChange),
    /// Settings in files, while they are written.
    Lasting(LastingChange),
}

impl Change {
    pub fn reversible(&self) -> &dyn Reversible {
        match self {
            Change::TestFile(change) => change,
            Change::FuseMount(change) => change,
            Change::LoopDevice(change) => change,
            Change::Value(change) => change,
            Change::SwapOn(change) => change,
            Change::Zram(change) => change,
            Change::Cgroup(change) => change,
            Change::CgroupController(change) => change,
            Change::Helper(change) => change,
            Change::Folder(change) => change,
            Change::DiskMount(change) => change,
            Change::Lasting(change) => change,
        }
    }
}
