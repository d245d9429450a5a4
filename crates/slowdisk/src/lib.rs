//! An emulated disk: a profile's model paces a FUSE file ([`fuse`]), a loop device over it is what other programs use. It
//! holds what is written ([`store`]), forgets what was not flushed when its power is cut ([`undo`]), fails as it is told
//! ([`faults`]), and says in its figures where it could not keep the profile's word ([`figures`]). What a device's
//! behaviour is stands in `profile`; how its figures are judged, elsewhere.
#![forbid(unsafe_code)]

mod asked;
mod backing;
mod calibrate;
mod control;
mod disk;
mod emulator;
mod error;
pub mod faults;
pub mod figures;
mod fuse;
pub mod registry;
mod schedule;
mod store;
mod undo;
mod way;

pub use asked::{Asked, Program, Seen, What};
pub use backing::Backing;
pub use control::Client;
pub use emulator::{Emulator, Options};
pub use error::SlowdiskError;
pub use faults::Fault;
pub use figures::Figures;
pub use registry::{Description, Most, Registry};
