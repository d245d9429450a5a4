//! A server as an application uses it: values are got and set, one at a time or many at once.

use crate::control::asked;
use crate::error::RedisError;
use crate::start::Address;
use redis::{Client, Connection, ConnectionAddr, ConnectionInfo, RedisConnectionInfo};
use std::time::Duration;

/// For an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client's connection.
pub struct Store {
    at: Address,
    connection: Connection,
    expires: Option<Duration>,
}

impl Store {
    /// Connected; what is set ends by itself after a while, where that is said.
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn open(at: &Address, password: Option<&str>, expires: Option<Duration>) -> Result<Self, RedisError> {
        let addr = match at {
            Address::Tcp(addr) => ConnectionAddr::Tcp(addr.ip().to_string(), addr.port()),
            Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
        };
        let redis = RedisConnectionInfo { password: password.map(str::to_owned), ..RedisConnectionInfo::default() };
        let connect = || {
            let connection = Client::open(ConnectionInfo { addr, redis })?.get_connection_with_timeout(PATIENCE)?;
            connection.set_read_timeout(Some(PATIENCE))?;
            Ok(connection)
        };
        let connection = connect().map_err(|error| asked(at, "listen", &error))?;
        Ok(Store { at: at.clone(), connection, expires })
    }

    /// A value, where it is there.
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, RedisError> {
        redis::cmd("GET").arg(key).query(&mut self.connection).map_err(|error| asked(&self.at, "GET", &error))
    }

    /// Those of these values that are there, asked for together, in their order.
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn get_all(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, RedisError> {
        let mut all = redis::Pipeline::with_capacity(keys.len());
        keys.iter().for_each(|key| {
            all.cmd("GET").arg(key);
        });
        all.query(&mut self.connection).map_err(|error| asked(&self.at, "GET", &error))
    }

    /// Sets these together.
    ///
    /// # Errors
    /// [`RedisError::Asked`].
    pub fn set(&mut self, values: &[(String, Vec<u8>)]) -> Result<(), RedisError> {
        let mut all = redis::Pipeline::with_capacity(values.len());
        for (key, value) in values {
            all.cmd("SET").arg(key).arg(value);
            if let Some(time) = self.expires {
                all.arg("PX").arg(time.as_millis().max(1) as u64);
            }
            all.ignore();
        }
        all.query(&mut self.connection).map_err(|error| asked(&self.at, "SET", &error))
    }
}
