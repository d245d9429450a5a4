//! The commands that a load of Redis is made of, and how many of each. What they are as bytes, and which one is next, is the
//! engine's.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A command that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// A string is read.
    Get,
    /// A string is set.
    Set,
    /// A counter goes up.
    Incr,
    /// A field of a hash is set.
    Hset,
    /// A field of a hash is read.
    Hget,
    /// A member of a sorted set gets its score.
    Zadd,
    /// An entry is appended to a stream.
    Xadd,
}

impl Command {
    /// All, in the order of tables.
    pub const ALL: [Command; 7] =
        [Command::Get, Command::Set, Command::Incr, Command::Hset, Command::Hget, Command::Zadd, Command::Xadd];

    /// On the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Command::Get => "get",
            Command::Set => "set",
            Command::Incr => "incr",
            Command::Hset => "hset",
            Command::Hget => "hget",
            Command::Zadd => "zadd",
            Command::Xadd => "xadd",
        }
    }

    /// Whether it reads.
    pub fn reads(self) -> bool {
        matches!(self, Command::Get | Command::Hget)
    }

    /// What its keys begin with: a key has one type, and another type's command on it is refused (WRONGTYPE).
    pub fn prefix(self) -> &'static str {
        match self {
            Command::Get | Command::Set => "key:",
            Command::Incr => "count:",
            Command::Hset | Command::Hget => "hash:",
            Command::Zadd => "zset:",
            Command::Xadd => "stream:",
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Commands with their weights, each above 0 and no command twice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandMix(Vec<(Command, u32)>);

impl CommandMix {
    /// No mix: GETs and SETs as the job's direction says.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One command alone.
    pub fn only(command: Command) -> Self {
        CommandMix(vec![(command, 1)])
    }

    /// Whether it is one of them.
    pub fn has(&self, command: Command) -> bool {
        self.0.iter().any(|(one, _)| *one == command)
    }

    /// Reads of a hundred commands, to the nearest whole number; at least one of each kind that there is.
    pub fn reads_percent(&self) -> u8 {
        let sum = |which: fn(Command) -> bool| {
            self.0.iter().filter(|(command, _)| which(*command)).map(|(_, weight)| u64::from(*weight)).sum::<u64>()
        };
        let (reads, writes) = (sum(Command::reads), sum(|command| !command.reads()));
        let percent = (200 * reads + reads + writes) / (2 * (reads + writes).max(1));
        match (reads, writes) {
            (_, 0) => 100,
            (0, _) => 0,
            _ => percent.clamp(1, 99) as u8,
        }
    }

    /// In the order in which they were written.
    pub fn weights(&self) -> &[(Command, u32)] {
        &self.0
    }
}

impl fmt::Display for CommandMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self.0.iter().map(|(command, weight)| format!("{command}={weight}")).collect();
        f.write_str(&each.join(","))
    }
}

impl FromStr for CommandMix {
    type Err = String;

    /// `get=50,set=30,incr=20`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut all: Vec<(Command, u32)> = Vec::new();
        for part in text.split(',') {
            let Some((name, weight)) = part.split_once('=') else {
                return Err(format!("{part:?} is no command with its weight, as get=50 is"));
            };
            let Some(command) = Command::ALL.into_iter().find(|command| command.name().eq_ignore_ascii_case(name))
            else {
                return Err(format!("{name:?} is none of {}", Command::ALL.map(Command::name).join(", ")));
            };
            if all.iter().any(|(other, _)| *other == command) {
                return Err(format!("{command} is there twice; give it one weight"));
            }
            match weight.parse() {
                Ok(weight) if weight > 0 => all.push((command, weight)),
                _ => return Err(format!("the weight of {command} is a whole number above 0, not {weight:?}")),
            }
        }
        Ok(CommandMix(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_read() {
        let mix: CommandMix = "get=50,SET=30,incr=20".parse().unwrap();
        assert_eq!(mix.weights(), [(Command::Get, 50), (Command::Set, 30), (Command::Incr, 20)]);
        assert_eq!((mix.reads_percent(), mix.to_string().as_str()), (50, "get=50,set=30,incr=20"));
        let percent = |text: &str| text.parse::<CommandMix>().unwrap().reads_percent();
        assert_eq!(
            (percent("get=1,set=2"), percent("hget=1,set=999"), percent("zadd=3"), percent("get=9")),
            (33, 1, 0, 100)
        );
        for command in Command::ALL {
            assert_eq!(serde_json::to_string(&command).unwrap(), format!("\"{command}\""));
        }
    }

    #[test]
    fn what_is_no_mix_is_said_in_a_sentence() {
        let why = |text: &str| text.parse::<CommandMix>().unwrap_err();
        assert!(why("get=0").contains("above 0"));
        assert!(why("get=-1").contains("above 0"));
        assert!(why("foo=1").contains("none of get, set, incr"));
        assert!(why("get=1,get=2").contains("twice"));
        assert!(why("").contains("get=50"));
    }
}
