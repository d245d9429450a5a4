//! The DevTools protocol over a pipe: a command is a JSON object, an answer another, each ended by a zero byte. Whoever asks waits as
//! long as it likes; what comes meanwhile is kept in order.

use crate::error::BrowserError;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A browser that listens.
pub struct DevTools {
    to: Box<dyn Write + Send>,
    from: Receiver<Value>,
    last: u64,
}

/// What it says.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The answer to the command of this number: its result, or why there is none.
    Answer(u64, Result<Value, String>),
    /// A page of this session called the function of that name.
    Called(String, String),
    /// A page of this session crashed.
    Crashed(String),
    /// Something else.
    Other,
}

impl DevTools {
    /// Over its two ends; the second is read by a thread of its own until it ends.
    pub fn over(to: impl Write + Send + 'static, from: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut from = BufReader::with_capacity(1 << 16, from);
            let mut message = Vec::new();
            while matches!(from.read_until(0, &mut message), Ok(1..)) {
                message.pop();
                // What is no JSON is none of the protocol.
                if let Ok(value) = serde_json::from_slice(&message)
                    && sender.send(value).is_err()
                {
                    return;
                }
                message.clear();
            }
        });
        DevTools { to: Box::new(to), from: receiver, last: 0 }
    }

    /// Says a command, to the browser or to the page of a session, and gives its number.
    ///
    /// # Errors
    /// [`BrowserError::Gone`].
    pub fn say(&mut self, method: &str, parameters: Value, session: Option<&str>) -> Result<u64, BrowserError> {
        self.last += 1;
        let mut command = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).and_then(|()| self.to.flush()).map_err(|_| BrowserError::Gone)?;
        Ok(self.last)
    }

    /// What it says next, if it does within that time.
    ///
    /// # Errors
    /// [`BrowserError::Gone`].
    pub fn hear(&mut self, within: Duration) -> Result<Option<Event>, BrowserError> {
        match self.from.recv_timeout(within) {
            Ok(message) => Ok(Some(event(&message))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(BrowserError::Gone),
        }
    }
}

fn event(message: &Value) -> Event {
    if let Some(id) = message["id"].as_u64() {
        return Event::Answer(
            id,
            match message.get("error") {
                Some(error) => Err(error["message"].as_str().unwrap_or_default().to_owned()),
                None => Ok(message["result"].clone()),
            },
        );
    }
    let session = || message["sessionId"].as_str().unwrap_or_default().to_owned();
    match message["method"].as_str() {
        Some("Runtime.bindingCalled") => {
            Event::Called(session(), message["params"]["name"].as_str().unwrap_or_default().to_owned())
        }
        Some("Inspector.targetCrashed") => Event::Crashed(session()),
        _ => Event::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn what_it_says_is_understood() {
        let said = b"{\"id\":1,\"result\":{\"a\":2}}\0{\"method\":\"Inspector.targetCrashed\",\"sessionId\":\"S\"}\0nonsense\0\
            {\"method\":\"Runtime.bindingCalled\",\"sessionId\":\"S\",\"params\":{\"name\":\"f\"}}\0{\"id\":2,\"error\":{\"message\":\"no\"}}\0";
        let mut tools = DevTools::over(Vec::new(), Cursor::new(said.to_vec()));
        assert_eq!(tools.say("A.b", json!({}), None).unwrap(), 1);
        assert_eq!(tools.say("A.b", json!({}), Some("S")).unwrap(), 2);
        let mut heard = Vec::new();
        while let Ok(Some(event)) = tools.hear(Duration::from_secs(5)) {
            heard.push(event);
        }
        let session = || "S".to_owned();
        assert_eq!(
            heard,
            [
                Event::Answer(1, Ok(json!({"a": 2}))),
                Event::Crashed(session()),
                Event::Called(session(), "f".to_owned()),
                Event::Answer(2, Err("no".to_owned())),
            ]
        );
        assert!(matches!(tools.hear(Duration::from_secs(5)), Err(BrowserError::Gone)));
    }
}
