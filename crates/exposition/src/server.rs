//! The page on loopback. Whoever reads it costs the text's writing and nothing more: all figures are at hand.

use crate::error::ExpositionError;
use crate::text::Format;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tiny_http::{Header, Method, Request, Response, StatusCode};

/// Where the figures are.
const PATH: &str = "/metrics";

/// An address of loopback, as it was typed.
///
/// # Errors
/// [`ExpositionError::Address`], [`ExpositionError::NotLoopback`].
pub fn address(given: &str) -> Result<SocketAddr, ExpositionError> {
    let at: SocketAddr = given.parse().map_err(|_| ExpositionError::Address { given: given.to_owned() })?;
    if at.ip().is_loopback() { Ok(at) } else { Err(ExpositionError::NotLoopback { at }) }
}

/// Serves until it is dropped.
pub struct Server {
    http: Arc<tiny_http::Server>,
    thread: Option<JoinHandle<()>>,
    at: SocketAddr,
}

impl Server {
    /// Listens there, and answers with what `page` is when it is asked; nothing of a run has begun yet.
    ///
    /// # Errors
    /// [`ExpositionError::Listen`], [`ExpositionError::Serve`].
    pub fn start(at: SocketAddr, page: impl Fn(Format) -> String + Send + 'static) -> Result<Self, ExpositionError> {
        let listen = |why| ExpositionError::Listen { at, why };
        let listener = TcpListener::bind(at).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        let serve = |why: String| ExpositionError::Serve { at, why };
        let http = tiny_http::Server::from_listener(listener, None).map_err(|why| serve(why.to_string()))?;
        let http = Arc::new(http);
        let asked = Arc::clone(&http);
        let answer = move || {
            // Ended by `unblock`.
            while let Ok(request) = asked.recv() {
                // Whoever does not wait for the answer misses it.
                let _ = respond(request, &page);
            }
        };
        let spawned = thread::Builder::new().name("metrics".to_owned()).spawn(answer);
        let thread = Some(spawned.map_err(|why| serve(why.to_string()))?);
        Ok(Server { http, thread, at: bound })
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.at)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.http.unblock();
        // A panic of the thread has been printed by it.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn respond(request: Request, page: impl Fn(Format) -> String) -> std::io::Result<()> {
    let path = request.url().split('?').next().unwrap_or_default();
    if !matches!(request.method(), Method::Get | Method::Head) {
        return plain(request, 405, "this page is only read: GET /metrics\n");
    }
    if path != PATH {
        return plain(request, 404, "the figures are at /metrics\n");
    }
    let accept = request.headers().iter().find(|header| header.field.equiv("Accept"));
    let format = Format::accepted(accept.map_or("", |header| header.value.as_str()));
    let response = Response::from_string(page(format));
    let kind = Header::from_bytes("Content-Type", format.content_type());
    request.respond(kind.into_iter().fold(response, Response::with_header))
}

fn plain(request: Request, status: u16, text: &str) -> std::io::Result<()> {
    request.respond(Response::from_string(text).with_status_code(StatusCode(status)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Live;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    fn ask(at: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_page_is_read_and_nothing_else() {
        let page = |format| Live::new().page(format);
        let server = Server::start("127.0.0.1:0".parse().unwrap(), page).unwrap();
        let at = server.at;
        assert_eq!(server.url(), format!("http://{at}/metrics"));
        let get = |more: &str| ask(at, &format!("GET /metrics HTTP/1.1\nHost: x\nConnection: close\n{more}\n"));
        let answer = get("");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("text/plain; version=0.0.4"), "{answer}");
        assert!(answer.contains("redis_up 0"), "{answer}");
        let answer = get("Accept: application/openmetrics-text;version=1.0.0\n");
        assert!(answer.contains("application/openmetrics-text; version=1.0.0") && answer.contains("# EOF"), "{answer}");
        assert!(ask(at, "GET / HTTP/1.1\nHost: x\nConnection: close\n\n").starts_with("HTTP/1.1 404"));
        assert!(ask(at, "DELETE /metrics HTTP/1.1\nHost: x\nConnection: close\n\n").starts_with("HTTP/1.1 405"));
        let taken = Server::start(at, page).map(drop).unwrap_err();
        assert!(taken.to_string().contains(&at.to_string()) && !taken.is_usage(), "{taken}");
        drop(server);
        // Nobody listens any more, once the library's own thread has seen that.
        let until = Instant::now() + Duration::from_secs(10);
        while let Err(error) = Server::start(at, page).map(drop) {
            assert!(Instant::now() < until, "{error}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn only_loopback_is_served() {
        assert_eq!(address("[::1]:9121").unwrap().port(), 9121);
        for (given, word) in [("0.0.0.0:9121", "loopback"), ("192.0.2.1:1", "127.0.0.1:1"), ("9121", "127.0.0.1:9121")]
        {
            let error = address(given).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(word), "{error}");
        }
    }
}
