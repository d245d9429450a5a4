//! The rules, one file each. A new one: its file here with its `RULE`, its line in [`ALL`], its test beside it.

mod bgsave_error;
mod clients;
mod eviction;
mod huge_pages;
mod maxmemory;
mod medium;
mod observe;
mod overcommit;
mod persistence;
mod replica;
mod rewrite_fsync;
mod swap;
mod vectors;

use crate::model::Rule;
use crate::situation::Situation;
use basics::redis::Mode;

/// All, in the order in which they are told.
pub const ALL: [&Rule; 13] = [
    &persistence::RULE,
    &medium::RULE,
    &replica::RULE,
    &maxmemory::RULE,
    &eviction::RULE,
    &vectors::RULE,
    &bgsave_error::RULE,
    &rewrite_fsync::RULE,
    &overcommit::RULE,
    &huge_pages::RULE,
    &swap::RULE,
    &clients::RULE,
    &observe::RULE,
];

/// The third article.
const ARTICLE: &str = "Redis on Tiny Devices";
/// What Redis's own documentation and the comments of its redis.conf say.
const REDIS_CONF: &str = "redis.conf of Redis 7";
const REDIS_ADMIN: &str = "redis.io, administration";

/// A line of redis.conf.
fn redis(name: &str, value: impl Into<String>) -> change::Wanted {
    change::Wanted::Redis { name: name.to_owned(), value: value.into() }
}

/// A kernel setting.
fn sysctl(name: &str, value: impl Into<String>) -> change::Wanted {
    change::Wanted::Sysctl { name: name.to_owned(), value: value.into() }
}

/// The command that measures what is recommended here; none where nobody said where the files lie.
pub fn measure(situation: &Situation<'_>) -> Option<String> {
    let (goals, choice) = (situation.goals, persistence::choose(situation));
    let on = goals.on.as_deref()?;
    let modes = if choice.mode == Mode::MemoryOnly { String::new() } else { format!(" --mode {}", choice.mode) };
    Some(format!("tiermark load redis --on {on} --mode memory-only{modes} --payload {}", goals.payload.0))
}

#[cfg(test)]
pub(crate) mod testing;
