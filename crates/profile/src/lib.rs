//! Devices as other people measured and published them: figures with their source, shipped as data. A missing figure
//! was not published: it is unknown, never zero. Pure.
#![forbid(unsafe_code)]

pub mod articles;
mod cache;
mod device;
mod devices;
pub mod distribution;
mod ends;
pub mod figures;
pub mod format;
mod library;
mod medium;
mod side;
mod split;
mod stalls;

pub use device::{Device, Request};
pub use devices::{Figure, Published, PublishedDevice, device, published};
pub use distribution::Latency;
pub use figures::{Figures, FiguresError};
pub use format::{Profile, ProfileError};
pub use library::{find, shipped, text};
