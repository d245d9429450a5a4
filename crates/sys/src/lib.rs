//! Thin safe faces of the system calls that no crate offers, or offers too slowly for a measuring loop: the bare ring,
//! locked buffers, a cheap clock, inlined reads and writes, mappings. The only `unsafe` of the workspace is here, each
//! block with its SAFETY line. It holds no policy: what to do when something is refused is for the caller.

pub mod child;
pub mod clock;
pub mod errno;
pub mod faults;
pub mod file;
pub mod loopdev;
pub mod map;
pub mod memory;
pub mod peer;
mod perf;
pub mod process;
pub mod region;
pub mod ring;
pub mod swap;
pub mod thread;
pub mod tracepoints;
pub mod weights;
