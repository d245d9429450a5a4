//! A real Redis server, or Valkey: where its program is, the redis.conf that makes it do what a plan says, and its answers to the few
//! commands with which it is watched; and a way to it as if it were far away. Nothing is started here, and no load is made.
#![forbid(unsafe_code)]

mod control;
mod error;
mod far;
mod learn;
mod refusal;
mod running;
mod start;
mod store;

pub use control::{Control, Info, Spike};
pub use error::RedisError;
pub use far::{Far, Knife};
pub use learn::{hidden, look};
pub use refusal::with_way_out;
pub use running::{Running, StringKey};
pub use start::{Address, Start, find, free_port, is_program};
pub use store::Store;
