//! A server that runs already and is none of ours: where it is, what it wants to hear first, which keys it has, and how what was set
//! there goes away again.

use crate::control::Control;
use crate::error::RedisError;
use crate::learn;
use crate::start::Address;
use redis::{ConnectionAddr, ConnectionInfo};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

/// Keys that are asked for or removed at a time.
const BATCH: usize = 500;

/// A key that holds a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringKey {
    /// Its name.
    pub name: Vec<u8>,
    /// Bytes of its value.
    pub length: u64,
}

/// Where a server is, as its URL says it.
pub struct Running {
    info: ConnectionInfo,
    at: Address,
    url: String,
}

impl Running {
    /// Of `redis://[user:password@]host[:port][/db]` or `unix:///path`; nobody is asked but the resolver of names.
    ///
    /// # Errors
    /// [`RedisError::Url`], [`RedisError::AtUrl`] of a name that nobody knows.
    pub fn at(url: &str) -> Result<Self, RedisError> {
        let info = learn::parsed(url)?;
        let shown = shown(&info);
        let at = match &info.addr {
            ConnectionAddr::Tcp(host, port) => {
                let unknown = |why: String| RedisError::AtUrl { url: shown.clone(), why };
                let mut found = (host.as_str(), *port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
                // A server listens more often on IPv4 alone than on IPv6 alone.
                let all: Vec<SocketAddr> = found.by_ref().collect();
                let one = all.iter().find(|addr| addr.is_ipv4()).or(all.first());
                Address::Tcp(*one.ok_or_else(|| unknown(format!("{host} has no address")))?)
            }
            ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
            _ => return Err(learn::tls(url)),
        };
        Ok(Running { info, at, url: shown })
    }

    /// Where it answers.
    pub fn address(&self) -> &Address {
        &self.at
    }

    /// Its URL without user and password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A connection on which it is watched.
    ///
    /// # Errors
    /// [`RedisError::AtUrl`].
    pub fn control(&self) -> Result<Control, RedisError> {
        Control::to(&self.at, self.info.clone()).map_err(|error| learn::told(&self.url, &error))
    }

    /// Asks whether it is there and answers, without the patience that a load has.
    ///
    /// # Errors
    /// [`RedisError::AtUrl`].
    pub fn greet(&self) -> Result<(), RedisError> {
        let failed = |error: redis::RedisError| learn::told(&self.url, &error);
        let mut connection = learn::opened(&self.info).map_err(failed)?;
        redis::cmd("INFO").query::<String>(&mut connection).map(drop).map_err(failed)
    }

    /// What each connection says first, as RESP has it.
    pub fn greeting(&self) -> Vec<u8> {
        let redis = &self.info.redis;
        let mut all = Vec::new();
        if let Some(password) = &redis.password {
            let mut auth = redis::cmd("AUTH");
            if let Some(user) = &redis.username {
                auth.arg(user);
            }
            all.extend(auth.arg(password).get_packed_command());
        }
        if redis.db != 0 {
            all.extend(redis::cmd("SELECT").arg(redis.db).get_packed_command());
        }
        all
    }

    /// Keys that hold strings, so many at most, in the order of SCAN, which is none of their names.
    ///
    /// # Errors
    /// [`RedisError::AtUrl`].
    pub fn string_keys(&self, most: usize, enough: &dyn Fn() -> bool) -> Result<Vec<StringKey>, RedisError> {
        let failed = |error: redis::RedisError| learn::told(&self.url, &error);
        let mut connection = learn::opened(&self.info).map_err(failed)?;
        let names = learn::names(&mut connection, most, enough).map_err(failed)?;
        let mut keys = Vec::new();
        for some in names.chunks(BATCH) {
            let looked = learn::sample(&mut connection, some).map_err(failed)?;
            let strings = some.iter().zip(looked).filter_map(|(name, key)| Some((name.clone(), key.length?.0)));
            keys.extend(strings.map(|(name, length)| StringKey { name, length }));
        }
        Ok(keys)
    }

    /// Removes keys (UNLINK, or DEL before Redis 4).
    ///
    /// # Errors
    /// [`RedisError::AtUrl`].
    pub fn remove(&self, mut names: impl Iterator<Item = String>) -> Result<(), RedisError> {
        let failed = |error: redis::RedisError| learn::told(&self.url, &error);
        let mut connection = learn::opened(&self.info).map_err(failed)?;
        loop {
            let some: Vec<String> = names.by_ref().take(BATCH).collect();
            if some.is_empty() {
                return Ok(());
            }
            let told = redis::cmd("UNLINK").arg(&some).query::<u64>(&mut connection);
            told.or_else(|_| redis::cmd("DEL").arg(&some).query::<u64>(&mut connection)).map_err(failed)?;
        }
    }

    /// Its process, where it runs on this machine and is seen from here: what it says is compared with what `proc` has.
    pub fn process(&self, pid: Option<u64>, proc: &Path) -> Option<u32> {
        let near = match &self.at {
            Address::Tcp(addr) => addr.ip().is_loopback(),
            Address::Unix(_) => true,
        };
        let pid = u32::try_from(pid?).ok().filter(|_| near)?;
        // In a container it counts otherwise.
        let name = std::fs::read_to_string(proc.join(pid.to_string()).join("comm")).ok()?;
        ["redis", "valkey", "keydb"].iter().any(|server| name.starts_with(server)).then_some(pid)
    }
}

/// A URL without what nobody else shall read.
fn shown(info: &ConnectionInfo) -> String {
    let db = if info.redis.db == 0 { String::new() } else { info.redis.db.to_string() };
    match &info.addr {
        ConnectionAddr::Unix(path) if db.is_empty() => format!("unix://{}", path.display()),
        ConnectionAddr::Unix(path) => format!("unix://{}?db={db}", path.display()),
        addr => {
            let at = match addr {
                // As it has to be typed.
                ConnectionAddr::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
                addr => addr.to_string(),
            };
            if db.is_empty() { format!("redis://{at}") } else { format!("redis://{at}/{db}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_what_is_said_first() {
        let running = Running::at("redis://me:a*b@127.0.0.1:6380/2").unwrap();
        assert_eq!(running.address(), &Address::Tcp("127.0.0.1:6380".parse().unwrap()));
        assert_eq!(running.url(), "redis://127.0.0.1:6380/2");
        let greeting = String::from_utf8(running.greeting()).unwrap();
        assert_eq!(greeting, "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$3\r\na*b\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n");
        assert_eq!(Running::at("redis://[::1]:6380").unwrap().url(), "redis://[::1]:6380");
        let socket = Running::at("unix:///run/redis.sock").unwrap();
        assert_eq!((socket.url(), socket.greeting().len()), ("unix:///run/redis.sock", 0));
    }

    #[test]
    fn what_is_none_is_refused() {
        let refused = |url: &str| Running::at(url).map(drop).unwrap_err().to_string();
        assert!(refused("rediss://:hush@host").contains("TLS") && !refused("rediss://:hush@host").contains("hush"));
        assert!(refused("/run/redis.sock").contains("unix:///path"));
    }

    #[test]
    fn a_process_is_known_by_its_name() {
        let proc = tempfile::tempdir().unwrap();
        std::fs::create_dir(proc.path().join("7")).unwrap();
        std::fs::write(proc.path().join("7/comm"), "redis-server\n").unwrap();
        let here = Running::at("redis://127.0.0.1").unwrap();
        assert_eq!((here.process(Some(7), proc.path()), here.process(Some(8), proc.path())), (Some(7), None));
        assert_eq!(Running::at("redis://192.0.2.1").unwrap().process(Some(7), proc.path()), None);
        std::fs::write(proc.path().join("7/comm"), "systemd\n").unwrap();
        assert_eq!(here.process(Some(7), proc.path()), None);
    }
}
