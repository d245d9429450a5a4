//! Keeps an unmodified program's next pages ahead of it: learns the order in which the program goes through its memory from
//! its page faults, has the next units brought in at the disk's sequential rate, sends out what was just used, and keeps as
//! much as fits. All that it does is advice to the kernel and looking at pages, which changes no byte and leaves nothing behind.
#![forbid(unsafe_code)]

mod after;
mod beside;
mod counts;
mod cycle;
mod folios;
mod follow;
mod groups;
mod hand;
mod history;
mod keep;
mod known;
mod lag;
mod limits;
mod maps;
mod memory;
mod penance;
mod quota;
mod room;
mod session;
mod streams;
mod tree;
mod units;
mod window;
mod world;

pub use after::after;
pub use hand::serve;
pub use session::{Mode, Session, Standing};
pub use tree::Pager;
pub use units::UNIT;
