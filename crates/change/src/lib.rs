//! The only code that mutates the machine. Every mutation is journalled and flushed before it happens, is undone when its
//! owner is dropped, and is undone by the next start when the owner was killed or the power failed ([`journal`]); what
//! holds anything of value is never written ([`guard`]). What to change is decided elsewhere.
//!
//! The house rule: journal {target, before, wanted, boot id}, fsync, then write. If the present value is neither before
//! nor wanted, somebody else has been there: say so and leave it.
#![forbid(unsafe_code)]

pub mod error;
mod fuse_mount;
pub mod guard;
pub mod journal;
mod kind;
mod loop_device;
pub mod test_file;

pub use error::ChangeError;
pub use fuse_mount::FuseMount;
pub use guard::{DeviceGrant, Refused};
pub use journal::{Journal, Recovered};
pub use loop_device::LoopDevice;
pub use test_file::{TestFile, may_make, room};
