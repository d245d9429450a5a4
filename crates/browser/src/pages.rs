//! Heavy pages on loopback, as pages of applications are: a few thousand elements, pictures, and a script that builds what it works on
//! in many small tasks and some long ones, keeps it, and touches it when the tab is gone to. Equal numbers give equal pages.

use crate::error::BrowserError;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use tiny_http::{Header, Response, Server};

/// A page calls this function once it can be used: all is built, and its main thread keeps its time.
pub const INTERACTIVE: &str = "tiermarkInteractive";
/// Of a picture, in pixels.
const PICTURE: (u32, u32) = (512, 384);
const PAGE: &str = include_str!("page.html");

/// Serves until it is dropped.
pub struct Pages {
    http: Arc<Server>,
    thread: Option<JoinHandle<()>>,
    at: SocketAddr,
}

impl Pages {
    /// Pages whose scripts keep so many bytes.
    ///
    /// # Errors
    /// [`BrowserError::Serve`].
    pub fn serve(weight: u64) -> Result<Self, BrowserError> {
        let http = Server::http((Ipv4Addr::LOCALHOST, 0)).map_err(|why| BrowserError::Serve(why.to_string()))?;
        let at = http.server_addr().to_ip().ok_or_else(|| BrowserError::Serve("it has no address".to_owned()))?;
        let http = Arc::new(http);
        let asked = Arc::clone(&http);
        let answer = move || {
            // Ended by `unblock`.
            while let Ok(request) = asked.recv() {
                let (kind, body) = answer(request.url(), weight);
                // Whole, with its length.
                let mut response = Response::from_data(body).with_chunked_threshold(usize::MAX);
                for (name, value) in [("Content-Type", kind), ("Cache-Control", "max-age=3600")] {
                    if let Ok(header) = Header::from_bytes(name, value) {
                        response.add_header(header);
                    }
                }
                // Whoever does not wait for the answer misses it.
                let _ = request.respond(response);
            }
        };
        let spawned = std::thread::Builder::new().name("pages".to_owned()).spawn(answer);
        let thread = Some(spawned.map_err(|why| BrowserError::Serve(why.to_string()))?);
        Ok(Pages { http, thread, at })
    }

    /// Where a page is.
    pub fn url(&self, page: u32) -> String {
        format!("http://{}/page/{page}", self.at)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.http.unblock();
        // A panic of the thread has been printed by it.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn answer(url: &str, weight: u64) -> (&'static str, Vec<u8>) {
    let mut parts = url.trim_start_matches('/').split('/');
    let kind = parts.next();
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    match kind {
        Some("page") => {
            let page = PAGE.replace("{PAGE}", &number().to_string()).replace("{WEIGHT}", &weight.to_string());
            ("text/html; charset=utf-8", page.into_bytes())
        }
        Some("picture") => ("image/bmp", picture(number() * 64 + number())),
        _ => ("text/plain", Vec::new()),
    }
}

/// A picture that compresses as photographs from a camera do not and drawings do: half of it noise.
fn picture(seed: u32) -> Vec<u8> {
    let (width, height) = PICTURE;
    let body = width * height * 3;
    let mut all = Vec::with_capacity(54 + body as usize);
    // BITMAPFILEHEADER and BITMAPINFOHEADER.
    all.extend(b"BM");
    [54 + body, 0, 54, 40, width, height].iter().for_each(|word| all.extend(word.to_le_bytes()));
    all.extend([1, 0, 24, 0]);
    [0, body, 2835, 2835, 0, 0].iter().for_each(|word: &u32| all.extend(word.to_le_bytes()));
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    for at in 0..body {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let smooth = (at / 3 / width) as u8;
        all.push(if (at / 96) % 2 == 0 { smooth } else { state as u8 });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    #[test]
    fn pages_are_served_and_are_the_same_each_time() {
        let pages = Pages::serve(1 << 20).unwrap();
        let get = |path: &str| {
            let mut stream = TcpStream::connect(pages.at).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all
        };
        let page = String::from_utf8(get("/page/7")).unwrap();
        assert!(page.contains("const PAGE = 7") && page.contains("1048576") && page.contains(INTERACTIVE), "{page}");
        let body = |bytes: &[u8]| bytes.windows(2).position(|two| two == b"BM").map(|at| bytes[at..].to_vec()).unwrap();
        let picture = body(&get("/picture/7/1"));
        assert_eq!(picture.len() as u32, 54 + PICTURE.0 * PICTURE.1 * 3);
        assert_eq!(picture, body(&get("/picture/7/1")));
        assert_ne!(picture, body(&get("/picture/7/2")));
        assert!(pages.url(3).ends_with("/page/3"));
    }
}
