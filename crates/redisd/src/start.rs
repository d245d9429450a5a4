//! What to start: the program and its redis.conf. Whatever the distribution's own file says is left aside.

use crate::error::RedisError;
use basics::redis::{Link, Server};
use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The names of the program.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];
/// Of a folder: what it is started with.
const CONF: &str = "redis.conf";

/// Where a server listens: on this machine alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP on loopback.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(addr) => addr.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A server to be started in a folder of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start<'a> {
    /// What it is.
    pub server: &'a Server,
    /// Its folder, where all its files go.
    pub dir: &'a Path,
    /// Where it is to listen.
    pub address: Address,
}

/// Whether a file may be started.
pub fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The program in the folders of `path`, which is what the variable `PATH` holds.
///
/// # Errors
/// [`RedisError::NotFound`].
pub fn find(path: &OsStr) -> Result<PathBuf, RedisError> {
    let all = || std::env::split_paths(path);
    PROGRAMS
        .iter()
        .find_map(|name| all().map(|folder| folder.join(name)).find(|path| is_program(path)))
        .ok_or_else(|| RedisError::NotFound { searched: path.to_string_lossy().into_owned() })
}

/// A port of loopback that nobody listens on now.
///
/// # Errors
/// The system's.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

impl Address {
    /// Where a server in `dir` is to listen.
    ///
    /// # Errors
    /// The system's, where no port is free.
    pub fn of(link: Link, dir: &Path) -> io::Result<Self> {
        Ok(match link {
            Link::Tcp => Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?))),
            Link::Unix => Address::Unix(dir.join("socket")),
        })
    }
}

impl Start<'_> {
    /// Writes redis.conf into its folder, and gives its path: the server's one argument.
    ///
    /// # Errors
    /// [`RedisError::File`].
    pub fn write(&self) -> Result<PathBuf, RedisError> {
        let path = self.dir.join(CONF);
        let failed = |source| RedisError::File { action: "write", path: path.clone(), source };
        std::fs::write(&path, self.conf()).map_err(failed)?;
        Ok(path)
    }

    /// The lines of redis.conf.
    pub fn conf(&self) -> String {
        let mut lines = String::new();
        let mut line = |name: &str, value: &str| {
            // A value with a space is several words, except where it is none at all.
            let value = if value.is_empty() { "\"\"" } else { value };
            let _ = writeln!(lines, "{name} {value}");
        };
        match &self.address {
            Address::Tcp(addr) => {
                line("bind", &addr.ip().to_string());
                line("port", &addr.port().to_string());
            }
            Address::Unix(path) => {
                line("port", "0");
                line("unixsocket", &quoted(path));
            }
        }
        line("dir", &quoted(self.dir));
        line("daemonize", "no");
        line("maxclients", "10000");
        // What it saw slow, for the attribution of spikes.
        line("latency-monitor-threshold", "1");
        line("slowlog-log-slower-than", "1000");
        line("slowlog-max-len", "512");
        let settings = self.server.mode.settings();
        settings.iter().filter(|(name, _)| !self.server.settings.contains_key(*name)).for_each(|(n, v)| line(n, v));
        self.server.settings.iter().for_each(|(name, value)| line(name, value));
        lines
    }
}

/// As redis.conf takes a path that may hold spaces.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::redis::{Medium, Mode};

    #[test]
    fn a_mode_is_written_out_and_settings_of_ones_own_come_before_it() {
        let mut server = Server {
            program: "/usr/bin/redis-server".into(),
            mode: Mode::AofEverysec,
            medium: Medium::Directory("/mnt".into()),
            settings: [("appendfsync".to_owned(), "no".to_owned())].into(),
            link: Link::Unix,
            connections: 1,
            pipeline: 1,
            keys: 1,
            expires: None,
            log: None,
            lose: None,
            commands: Default::default(),
            delay: None,
            every: None,
            cache: None,
        };
        let dir = Path::new("/mnt/a b");
        let address = Address::of(server.link, dir).unwrap();
        let conf = Start { server: &server, dir, address: address.clone() }.conf();
        for line in ["unixsocket \"/mnt/a b/socket\"\n", "save \"\"\n", "appendonly yes\n", "appendfsync no\n"] {
            assert!(conf.contains(line), "{conf}");
        }
        assert!(!conf.contains("appendfsync everysec"), "{conf}");
        server.mode = Mode::Rdb;
        let conf = Start { server: &server, dir, address }.conf();
        assert!(conf.contains("save 3600 1 300 100 60 10000\n"), "{conf}");
    }

    #[test]
    fn who_is_not_there_is_not_found() {
        let error = find("/nowhere".as_ref()).unwrap_err().to_string();
        assert!(error.contains("--server"), "{error}");
    }
}
