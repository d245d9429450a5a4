//! A real Redis server, or Valkey: where its program is, the redis.conf that makes it do what a plan says, and its answers to the few
//! commands with which it is watched. Nothing is started here, and no load is made.
#![forbid(unsafe_code)]

mod control;
mod error;
mod refusal;
mod start;

pub use control::{Control, Info, Spike};
pub use error::RedisError;
pub use refusal::with_way_out;
pub use start::{Address, Start, find, free_port};
