//! The one connection on which a server is watched and told what to do, beside those that load it.

use crate::error::RedisError;
use crate::refusal::with_way_out;
use crate::running::Running;
use crate::start::Address;
use basics::redis::{Medium, Server};
use redis::{Client, Connection, ConnectionAddr, ConnectionInfo, RedisConnectionInfo, Value};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// For one answer; a main thread that waits for its disk answers no sooner.
const PATIENCE: Duration = Duration::from_secs(60);
/// For its port to be open, which it is before it reads its data set.
const OPENS: Duration = Duration::from_secs(20);
/// Between two tries to reach a server that starts.
const AGAIN: Duration = Duration::from_millis(5);

/// What `INFO` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info(BTreeMap<String, String>);

impl Info {
    /// Of its text.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.trim_end().split_once(':'));
        Info(lines.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// A field.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Every field.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// A field that is a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    /// What server it is: `redis 7.0.15`, `valkey 8.0.1`.
    pub fn version(&self) -> String {
        match (self.get("valkey_version"), self.get("redis_version")) {
            (Some(version), _) => format!("valkey {version}"),
            (None, Some(version)) => format!("redis {version}"),
            (None, None) => "a server of unknown version".to_owned(),
        }
    }
}

/// The last event of a kind that took longer than `latency-monitor-threshold`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spike {
    /// As the server calls it: `fork`, `aof-fsync-always`.
    pub event: String,
    /// When, Unix time in seconds.
    pub at: u64,
    /// How long, in ms.
    pub ms: u64,
    /// The longest of its kind, in ms.
    pub most_ms: u64,
}

impl Spike {
    /// Of its fields; newer servers say more.
    fn of(fields: &[Value]) -> Option<Self> {
        let [event, at, ms, most_ms, ..] = fields else { return None };
        let number = |value| redis::from_redis_value::<u64>(value).ok();
        let event = redis::from_redis_value(event).ok()?;
        Some(Spike { event, at: number(at)?, ms: number(ms)?, most_ms: number(most_ms)? })
    }
}

/// A connection to a server.
pub struct Control {
    at: Address,
    connection: Connection,
}

impl Control {
    /// Waits until the server answers `PING`, as long as `is_alive` says that it runs.
    ///
    /// # Errors
    /// [`RedisError::Ended`], [`RedisError::NotReady`] with what it said last.
    pub fn wait(
        at: &Address,
        password: Option<&str>,
        patience: Duration,
        mut is_alive: impl FnMut() -> bool,
    ) -> Result<Self, RedisError> {
        let (begun, mut answers) = (Instant::now(), false);
        loop {
            let opened = Self::open(at, password);
            answers |= opened.is_ok();
            let why = match opened {
                Err(error) => error,
                Ok(mut control) => match redis::cmd("PING").query::<Value>(&mut control.connection) {
                    Ok(_) => return Ok(control),
                    // Its data set is not read yet; any other answer stays what it is.
                    Err(error) if error.code().is_some_and(|code| code != "LOADING") => {
                        return Err(asked(at, "PING", &error));
                    }
                    Err(error) => asked(at, "PING", &error),
                },
            };
            if !is_alive() {
                return Err(RedisError::Ended { wrote: None });
            }
            if begun.elapsed() > patience.min(if answers { patience } else { OPENS }) {
                let (at, why, seconds) = (at.clone(), why.to_string(), begun.elapsed().as_secs());
                return Err(RedisError::NotReady { at, seconds, why });
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Connects to a server of a plan, where it answers now.
    ///
    /// # Errors
    /// As the way to it has.
    pub fn of(server: &Server, at: &Address) -> Result<Self, RedisError> {
        match &server.medium {
            Medium::Running { url, secret, .. } => {
                Running::at(if secret.0.is_empty() { url } else { &secret.0 })?.control()
            }
            _ => Self::open(at, server.password()),
        }
    }

    /// Connects, with a password where it wants one.
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn open(at: &Address, password: Option<&str>) -> Result<Self, RedisError> {
        let failed = |error: redis::RedisError| asked(at, "listen", &error);
        let address = match at {
            Address::Tcp(addr) => ConnectionAddr::Tcp(addr.ip().to_string(), addr.port()),
            Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
        };
        let info = ConnectionInfo {
            addr: address,
            redis: RedisConnectionInfo { password: password.map(str::to_owned), ..RedisConnectionInfo::default() },
        };
        Self::to(at, info).map_err(failed)
    }

    /// Connects as it is told.
    pub(crate) fn to(at: &Address, info: ConnectionInfo) -> redis::RedisResult<Self> {
        let connection = Client::open(info)?.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(Control { at: at.clone(), connection })
    }

    /// What a setting is now; nothing where it is not told.
    pub fn setting(&mut self, name: &str) -> Option<String> {
        let pair: Vec<String> = redis::cmd("CONFIG").arg("GET").arg(name).query(&mut self.connection).ok()?;
        pair.into_iter().nth(1)
    }

    /// Gives a command of which only the success matters.
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn order(&mut self, command: &str) -> Result<(), RedisError> {
        let mut words = command.split(' ');
        let mut order = redis::cmd(words.next().unwrap_or_default());
        words.for_each(|word| {
            order.arg(word);
        });
        order.query::<Value>(&mut self.connection).map(drop).map_err(|error| asked(&self.at, command, &error))
    }

    /// Commands that took longer than its `slowlog-log-slower-than`: the second since 1970 in which each ended, how many µs it took,
    /// and its first two words: what follows may be a value.
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn slow_commands(&mut self) -> Result<Vec<(u64, u64, String)>, RedisError> {
        // Number, second, µs, words; and since Redis 4 who gave it.
        type Entry = (u64, u64, u64, Vec<Vec<u8>>, Vec<u8>, Vec<u8>);
        let entries: Vec<Entry> = redis::cmd("SLOWLOG")
            .arg("GET")
            .arg(512)
            .query(&mut self.connection)
            .map_err(|error| asked(&self.at, "SLOWLOG GET", &error))?;
        let told = |(_, second, us, words, ..): Entry| {
            let word = |word: &Vec<u8>| String::from_utf8_lossy(&word[..word.len().min(24)]).into_owned();
            (second, us, words.iter().take(2).map(word).collect::<Vec<_>>().join(" "))
        };
        Ok(entries.into_iter().map(told).collect())
    }

    /// What its latency monitor noted of an event (`fork`): the second since 1970, and the longest of it in ms.
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn latency_history(&mut self, event: &str) -> Result<Vec<(u64, u64)>, RedisError> {
        let mut command = redis::cmd("LATENCY");
        command.arg("HISTORY").arg(event);
        command.query(&mut self.connection).map_err(|error| asked(&self.at, "LATENCY HISTORY", &error))
    }

    /// How long the values of these keys are; 0 of one that is not there.
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn lengths(&mut self, keys: &[String]) -> Result<Vec<u64>, RedisError> {
        let mut pipe = redis::Pipeline::with_capacity(keys.len());
        keys.iter().for_each(|key| {
            pipe.cmd("STRLEN").arg(key);
        });
        pipe.query(&mut self.connection).map_err(|error| asked(&self.at, "STRLEN", &error))
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn info(&mut self) -> Result<Info, RedisError> {
        let text: String =
            redis::cmd("INFO").query(&mut self.connection).map_err(|error| asked(&self.at, "INFO", &error))?;
        Ok(Info::parse(&text))
    }

    /// What it saw slow by itself, the last of each kind (`LATENCY LATEST`).
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn latest(&mut self) -> Result<Vec<Spike>, RedisError> {
        let mut ask = redis::cmd("LATENCY");
        let all: Vec<Vec<Value>> = ask
            .arg("LATEST")
            .query(&mut self.connection)
            .map_err(|error| asked(&self.at, "tell LATENCY LATEST", &error))?;
        Ok(all.iter().filter_map(|one| Spike::of(one)).collect())
    }
}

pub(crate) fn asked(at: &Address, what: &str, error: &redis::RedisError) -> RedisError {
    RedisError::Asked { at: at.clone(), what: what.to_owned(), why: with_way_out(&error.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read() {
        let info =
            Info::parse("# Server\r\nredis_version:7.0.15\r\n\r\n# Stats\r\ntotal_forks:3\r\ndb0:keys=5,expires=0\r\n");
        assert_eq!((info.version().as_str(), info.number("total_forks")), ("redis 7.0.15", Some(3)));
        assert_eq!((info.get("db0"), info.number("db0")), (Some("keys=5,expires=0"), None));
        assert!(Info::default().version().contains("unknown"));
    }

    #[test]
    fn an_event_is_read_whatever_stands_behind_it() {
        let fields = [Value::BulkString(b"fork".to_vec()), Value::Int(1_700_000_000), Value::Int(12), Value::Int(30)];
        let fork = Spike { event: "fork".to_owned(), at: 1_700_000_000, ms: 12, most_ms: 30 };
        assert_eq!(Spike::of(&fields), Some(fork.clone()));
        assert_eq!(Spike::of(&[&fields[..], &[Value::Int(42)]].concat()), Some(fork));
        assert_eq!(Spike::of(&fields[..2]), None);
    }

    #[test]
    fn nobody_is_told_as_that() {
        let at = Address::Unix("/nowhere/socket".into());
        let error = Control::wait(&at, None, Duration::from_secs(9), || false).map(drop).unwrap_err();
        assert!(matches!(error, RedisError::Ended { .. }), "{error}");
        assert!(Control::open(&at, None).map(drop).unwrap_err().to_string().contains("/nowhere/socket"));
    }
}
