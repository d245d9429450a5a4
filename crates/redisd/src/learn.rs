//! A look at a server that serves somebody, without changing anything: its own counters twice, some of its keys, and, only when
//! asked for, every command for a while. What is read of it: keys' names, kinds, lengths and times to live, and the beginnings of a
//! few values, to see how they compress.

use crate::control::Info;
use crate::error::RedisError;
use crate::refusal::with_way_out;
use basics::learned::{Looked, LookedKey};
use basics::{Bytes, Nanos};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use redis::{Client, Connection, ConnectionInfo, IntoConnectionInfo, Value};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::time::{Duration, Instant};

/// Between the two looks at its counters, at least.
const LOOK: Duration = Duration::from_secs(2);
/// Keys that are looked at.
const KEYS: usize = 1000;
/// And for how long at most.
const BUDGET: Duration = Duration::from_secs(5);
/// Values whose beginnings are compressed, and how much of each.
const VALUES: usize = 32;
const BEGINNING: isize = 4095;
/// Different keys that are counted while every command is listened to.
const COUNTED: usize = 1_000_000;
/// For one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at the server at a URL (`redis://user:password@host:port/db`, `unix:///path`); for `monitor` every command is listened
/// to, which costs the server up to half of what it can do (Redis's documentation of MONITOR).
///
/// # Errors
/// [`RedisError::Url`], [`RedisError::AtUrl`].
pub fn look(url: &str, monitor: Option<Duration>) -> Result<Looked, RedisError> {
    let mut connection = connect(url)?;
    let asked = |error: redis::RedisError| told(url, &error);
    let mut lacks = Vec::new();
    // So that keys do not count as used because they were looked at; since Redis 7.2.
    let _ = redis::cmd("CLIENT").arg("NO-TOUCH").arg("ON").query::<Value>(&mut connection);
    let begun = Instant::now();
    let before = info(&mut connection).map_err(asked)?;
    let keys: u64 = redis::cmd("DBSIZE").query(&mut connection).map_err(asked)?;
    let names = names(&mut connection, KEYS, &|| begun.elapsed() > BUDGET).map_err(asked)?;
    let sample = sample(&mut connection, &names).map_err(asked)?;
    let strings = names.iter().zip(&sample).filter(|(_, key)| key.kind == "string").map(|(name, _)| name);
    let compressed = compressed(&mut connection, &strings.take(VALUES).collect::<Vec<_>>());
    let uses = match monitor {
        None => Vec::new(),
        Some(time) => listen(url, time).unwrap_or_else(|why| {
            lacks.push(format!("its commands cannot be listened to: {why}"));
            Vec::new()
        }),
    };
    std::thread::sleep(LOOK.saturating_sub(begun.elapsed()));
    let after = info(&mut connection).map_err(asked)?;
    let number = |info: &Info, key: &str| info.number(key).unwrap_or(0);
    let calls_before: HashMap<String, u64> = calls(&before).collect();
    Ok(Looked {
        version: after.version(),
        keys,
        memory: Bytes(number(&after, "used_memory")),
        commands: calls(&after)
            .map(|(name, all)| {
                let then = calls_before.get(&name).copied().unwrap_or(0);
                (name, all, all.saturating_sub(then))
            })
            .collect(),
        time: begun.elapsed().into(),
        expired: (
            number(&after, "expired_keys"),
            number(&after, "expired_keys").saturating_sub(number(&before, "expired_keys")),
        ),
        evicted: number(&after, "evicted_keys"),
        hits: (number(&after, "keyspace_hits"), number(&after, "keyspace_misses")),
        sample,
        compressed,
        uses,
        lacks,
    })
}

fn connect(url: &str) -> Result<Connection, RedisError> {
    opened(&parsed(url)?).map_err(|error| told(url, &error))
}

/// What a URL says.
pub(crate) fn parsed(url: &str) -> Result<ConnectionInfo, RedisError> {
    if url.starts_with("rediss:") {
        return Err(tls(url));
    }
    url.into_connection_info().map_err(|error| {
        let what =
            if error.to_string().contains("database number") { "its database is no number" } else { "no address" };
        let why = format!("{what}; write redis://[user:password@]host[:port][/db], or unix:///path of a socket");
        RedisError::Url { url: hidden(url), why }
    })
}

pub(crate) fn tls(url: &str) -> RedisError {
    let why = "TLS is not spoken here; give the address of a port without it, on this machine perhaps";
    RedisError::Url { url: hidden(url), why: why.to_owned() }
}

/// A connection that is given up where an answer does not come.
pub(crate) fn opened(info: &ConnectionInfo) -> redis::RedisResult<Connection> {
    let connection = Client::open(info.clone())?.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    Ok(connection)
}

pub(crate) fn told(url: &str, error: &redis::RedisError) -> RedisError {
    let why = match error.code() {
        _ if error.kind() == redis::ErrorKind::AuthenticationFailed => {
            "it has another password or user than the URL says".to_owned()
        }
        Some("NOAUTH") => "it wants a password: write redis://:PASSWORD@host, or redis://USER:PASSWORD@host".to_owned(),
        Some("NOPERM") => format!("{error}; its user needs INFO, DBSIZE, SCAN, TYPE, PTTL, STRLEN and GETRANGE"),
        _ if error.is_timeout() => {
            format!("nothing was answered within {} s: does Redis listen there, and does it hang?", PATIENCE.as_secs())
        }
        _ if error.kind() == redis::ErrorKind::ParseError => {
            "what it answers is not Redis's protocol: another program listens there".to_owned()
        }
        _ if error.is_connection_dropped() => {
            format!(
                "{error}: it closed the connection; does it speak TLS alone, is its maxclients reached, or is it another program?"
            )
        }
        _ => with_way_out(&error.to_string()),
    };
    RedisError::AtUrl { url: hidden(url), why }
}

/// A word with the user and password taken out of the URL that it is or ends with: what of it may be shown and kept.
pub fn hidden(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let rest = rest.rsplit_once('@').map_or_else(|| rest.to_owned(), |(_, host)| format!("…@{host}"));
    // Of a socket they stand at the end: `unix:///path?db=1&pass=secret`.
    let Some((path, query)) = rest.split_once('?') else { return format!("{scheme}://{rest}") };
    let parts = query.split('&').map(|part| match part.split_once('=') {
        Some((name @ ("pass" | "user"), _)) => format!("{name}=…"),
        _ => part.to_owned(),
    });
    format!("{scheme}://{path}?{}", parts.collect::<Vec<_>>().join("&"))
}

fn info(connection: &mut Connection) -> redis::RedisResult<Info> {
    // Everything: commandstats are not in the default sections.
    let text: String = redis::cmd("INFO").arg("all").query(connection)?;
    Ok(Info::parse(&text))
}

/// `cmdstat_get:calls=5,usec=…`: its name and its calls.
fn calls(info: &Info) -> impl Iterator<Item = (String, u64)> + '_ {
    info.all().filter_map(|(key, value)| {
        let calls = value.split(',').find_map(|part| part.strip_prefix("calls="))?;
        Some((key.strip_prefix("cmdstat_")?.to_owned(), calls.parse().ok()?))
    })
}

/// Names of keys: SCAN goes through the buckets of a hash table, so that the first ones are a sample without a pattern.
pub(crate) fn names(
    connection: &mut Connection,
    most: usize,
    enough: &dyn Fn() -> bool,
) -> redis::RedisResult<Vec<Vec<u8>>> {
    let (mut cursor, mut names, mut known) = (0u64, Vec::new(), HashSet::new());
    loop {
        let some: (u64, Vec<Vec<u8>>) = redis::cmd("SCAN").arg(cursor).arg("COUNT").arg(200).query(connection)?;
        // A key may be told twice.
        names.extend(some.1.into_iter().filter(|name| known.insert(name.clone())));
        cursor = some.0;
        if cursor == 0 || names.len() >= most || enough() {
            names.truncate(most);
            return Ok(names);
        }
    }
}

/// Kind, length and time to live of each.
pub(crate) fn sample(connection: &mut Connection, names: &[Vec<u8>]) -> redis::RedisResult<Vec<LookedKey>> {
    let mut kinds = redis::Pipeline::with_capacity(2 * names.len());
    for name in names {
        kinds.cmd("TYPE").arg(name).cmd("PTTL").arg(name);
    }
    let told: Vec<Value> = if names.is_empty() { Vec::new() } else { kinds.query(connection)? };
    let mut keys: Vec<LookedKey> = told
        .chunks_exact(2)
        .map(|pair| LookedKey {
            kind: redis::from_redis_value(&pair[0]).unwrap_or_default(),
            length: None,
            left: redis::from_redis_value::<i64>(&pair[1])
                .ok()
                .filter(|left| *left >= 0)
                .map(|left| Nanos(left.unsigned_abs().saturating_mul(1_000_000))),
        })
        .collect();
    let mut lengths = redis::Pipeline::new();
    let strings: Vec<usize> = (0..keys.len()).filter(|at| keys[*at].kind == "string").collect();
    strings.iter().for_each(|at| {
        lengths.cmd("STRLEN").arg(&names[*at]);
    });
    let told: Vec<u64> = if strings.is_empty() { Vec::new() } else { lengths.query(connection)? };
    for (at, length) in strings.into_iter().zip(told) {
        keys[at].length = Some(Bytes(length));
    }
    // One that went meanwhile has no kind.
    keys.iter_mut().filter(|key| key.kind == "none").for_each(|key| key.length = None);
    Ok(keys)
}

/// What the beginnings of these values are compressed to.
fn compressed(connection: &mut Connection, names: &[&Vec<u8>]) -> Option<(Bytes, Bytes)> {
    let mut begins = redis::Pipeline::new();
    names.iter().for_each(|name| {
        begins.cmd("GETRANGE").arg(name).arg(0).arg(BEGINNING);
    });
    let values: Vec<Vec<u8>> = if names.is_empty() { Vec::new() } else { begins.query(connection).ok()? };
    // Together, as short ones compress to more than they are.
    let all = values.concat();
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&all).ok()?;
    let packed = packed.finish().ok()?;
    (!all.is_empty()).then_some((Bytes(all.len() as u64), Bytes(packed.len() as u64)))
}

/// How often each key was used, of the first key of each command.
fn listen(url: &str, time: Duration) -> Result<Vec<u64>, RedisError> {
    let mut connection = connect(url)?;
    let asked = |error: redis::RedisError| told(url, &error);
    connection.send_packed_command(&redis::cmd("MONITOR").get_packed_command()).map_err(asked)?;
    connection.recv_response().map_err(asked)?;
    let begun = Instant::now();
    let mut uses: HashMap<u64, u64> = HashMap::new();
    while let Some(left) = time.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        connection.set_read_timeout(Some(left)).map_err(asked)?;
        let line = match connection.recv_response() {
            Ok(line) => redis::from_redis_value::<String>(&line).unwrap_or_default(),
            Err(error) if error.is_timeout() => break,
            Err(error) => return Err(asked(error)),
        };
        let Some(key) = key_of(&line) else { continue };
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let (known, number) = (uses.len(), hasher.finish());
        if known < COUNTED || uses.contains_key(&number) {
            *uses.entry(number).or_default() += 1;
        }
    }
    Ok(uses.into_values().collect())
}

/// Of a line such as `1339518083.107412 [0 127.0.0.1:60866] "set" "key" "value"`: the first word behind the command.
fn key_of(line: &str) -> Option<&str> {
    let words = line.split_once("] ")?.1;
    let key = words.strip_prefix('"')?.split_once("\" \"")?.1;
    // A quotation mark within is told with a backslash before it.
    let end = key.match_indices('"').map(|(at, _)| at).find(|at| !key[..*at].ends_with('\\'))?;
    Some(&key[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_what_is_told_of_a_command() {
        let line = r#"1339518083.107412 [0 127.0.0.1:60866] "set" "a \"b\" c" "value""#;
        assert_eq!(key_of(line), Some(r#"a \"b\" c"#));
        assert_eq!(key_of(r#"1.2 [0 unix:/x] "get" "k""#), Some("k"));
        assert_eq!(key_of(r#"1.2 [0 127.0.0.1:1] "ping""#), None);
        assert_eq!(key_of("OK"), None);
    }

    #[test]
    fn calls_are_counted_by_command() {
        let info = Info::parse("cmdstat_get:calls=5,usec=9\r\ncmdstat_config|get:calls=2,usec=1\r\nused_memory:7\r\n");
        let mut all: Vec<_> = calls(&info).collect();
        all.sort();
        assert_eq!(all, [("config|get".to_owned(), 2), ("get".to_owned(), 5)]);
    }

    #[test]
    fn passwords_are_not_told() {
        assert_eq!(hidden("redis://me:secret@host:1/2"), "redis://…@host:1/2");
        assert_eq!(hidden("redis://host"), "redis://host");
        assert_eq!(hidden("--url=unix:///s?db=1&pass=secret"), "--url=unix:///s?db=1&pass=…");
        assert_eq!(hidden("a@b?pass=c"), "a@b?pass=c", "no URL");
        let tls = look("rediss://me:secret@host", None).unwrap_err().to_string();
        assert!(tls.contains("TLS") && !tls.contains("secret"), "{tls}");
        assert!(look("http://host", None).unwrap_err().to_string().contains("redis://"));
    }
}
