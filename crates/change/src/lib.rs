//! The only code that mutates the machine. Every mutation is journalled and flushed before it happens, is undone when its
//! owner is dropped, and is undone by the next start when the owner was killed or the power failed ([`journal`]); what
//! holds anything of value is never written ([`guard`]). What to change is decided elsewhere.
//!
//! The house rule: journal {target, before, wanted, boot id}, fsync, then write. If the present value is neither before
//! nor wanted, somebody else has been there: say so and leave it.
//!
//! What can be changed, each with its way back: a file of our own ([`TestFile`]), a FUSE mount ([`FuseMount`]), a loop device
//! ([`LoopDevice`]), a kernel setting ([`Value`]), a swap area that is on ([`SwapOn`]), a zram device ([`Zram`]), a control group
//! with limits of memory ([`Cgroup`]), the file system of an emulated disk ([`Mount`]), and a process that must be gone afterwards ([`Helper`]).
#![forbid(unsafe_code)]

pub mod cgroup;
mod claim;
pub mod error;
mod folder;
mod fuse_mount;
pub mod guard;
mod helper;
pub mod journal;
mod kind;
pub mod lasting;
mod loop_device;
mod mount;
pub mod swap_area;
pub mod test_file;
mod value;
mod wanted;
pub mod zram;

pub use cgroup::{Cgroup, Limits};
pub use claim::Claim;
pub use error::ChangeError;
pub use folder::Folder;
pub use fuse_mount::FuseMount;
pub use guard::{DeviceGrant, Refused, live_device_for_writing as guard_for_writing};
pub use helper::Helper;
pub use journal::{Journal, Recovered};
pub use lasting::Lasting;
pub use loop_device::{LoopDevice, Part};
pub use mount::Mount;
pub use swap_area::SwapOn;
pub use test_file::{TestFile, may_make, room};
pub use value::{Value, read as value_now};
pub use wanted::{Place, Tool, Wanted};
pub use zram::{Zram, ZramStat};
