//! A way to a server as if it were far away: a port of loopback on which each byte arrives a fixed time after it was sent, in both
//! directions. It has no rate of its own; what is on its way when one side ends still arrives at the other, unless the way is cut.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What is read at a time.
const PIECE: usize = 64 << 10;
/// Pieces on their way in a direction; beyond that the sender waits, as for a full window.
const PIECES: usize = 1024;

/// The way. It ends when it is dropped.
#[derive(Debug)]
pub struct Far {
    at: SocketAddr,
    over: Arc<AtomicBool>,
    cut: Knife,
    door: Option<JoinHandle<()>>,
}

/// Cuts a way: what is on it arrives nowhere.
#[derive(Debug, Clone, Default)]
pub struct Knife(Arc<AtomicBool>);

impl Knife {
    /// Cuts it, for good.
    pub fn cut(&self) {
        self.0.store(true, Relaxed);
    }

    fn is_cut(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl Far {
    /// To a server, `delay` away in each direction.
    ///
    /// # Errors
    /// The system's, where no port is free.
    pub fn to(server: SocketAddr, delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let at = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let cut = Knife::default();
        let knife = cut.clone();
        let door = std::thread::Builder::new().name("far".to_owned()).spawn(move || {
            for near in listener.incoming() {
                if told.load(Relaxed) {
                    return;
                }
                // Who cannot be connected sees it closed.
                if let Err(error) = near.and_then(|near| join(&near, server, delay, &knife)) {
                    tracing::debug!("the way to {server}: {error}");
                }
            }
        })?;
        Ok(Far { at, over, cut, door: Some(door) })
    }

    /// Where it begins.
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// What cuts it.
    pub fn knife(&self) -> Knife {
        self.cut.clone()
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // Wakes who waits at the door.
        let woken = TcpStream::connect(self.at).is_ok();
        if let Some(door) = self.door.take().filter(|_| woken) {
            let _ = door.join();
        }
    }
}

/// Joins a connection to one of its own to the server.
fn join(near: &TcpStream, server: SocketAddr, delay: Duration, knife: &Knife) -> io::Result<()> {
    let far = TcpStream::connect(server)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    carry(near.try_clone()?, far.try_clone()?, delay, knife.clone())?;
    carry(far, near.try_clone()?, delay, knife.clone())
}

/// Carries what comes, until it ends.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration, knife: Knife) -> io::Result<()> {
    let (sends, arrives): (SyncSender<(Instant, Vec<u8>)>, Receiver<_>) = sync_channel(PIECES);
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    thread("far-in").spawn(move || {
        let mut piece = vec![0; PIECE];
        while let Ok(bytes @ 1..) = from.read(&mut piece) {
            if sends.send((Instant::now() + delay, piece[..bytes].to_vec())).is_err() {
                break;
            }
        }
    })?;
    thread("far-out").spawn(move || {
        for (due, piece) in arrives {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if knife.is_cut() || to.write_all(&piece).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each byte with the next one, and ends at the first connection's end.
    fn server() -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut byte = [0];
            while matches!(stream.read(&mut byte), Ok(1)) {
                if stream.write_all(&[byte[0] + 1]).is_err() {
                    break;
                }
            }
        });
        (at, thread)
    }

    #[test]
    fn an_answer_takes_the_way_there_and_back() {
        let (at, served) = server();
        let delay = Duration::from_millis(40);
        let far = Far::to(at, delay).unwrap();
        let mut near = TcpStream::connect(far.address()).unwrap();
        let mut byte = [0];
        let quickest = (1..5u8)
            .map(|sent| {
                let begun = Instant::now();
                near.write_all(&[sent]).unwrap();
                near.read_exact(&mut byte).unwrap();
                assert_eq!(byte, [sent + 1]);
                begun.elapsed()
            })
            .min()
            .unwrap();
        // Never sooner; how much later is the machine's affair.
        assert!(quickest >= 2 * delay, "{quickest:?}");
        drop(near);
        served.join().unwrap();
        drop(far);
    }

    #[test]
    fn what_is_on_a_way_that_is_cut_arrives_nowhere() {
        let (at, served) = server();
        let far = Far::to(at, Duration::from_millis(30)).unwrap();
        let mut near = TcpStream::connect(far.address()).unwrap();
        near.write_all(&[1]).unwrap();
        far.knife().cut();
        // Closed, not answered.
        assert_eq!(near.read(&mut [0]).unwrap_or(0), 0);
        served.join().unwrap();
    }

    /// Bytes are not held up by those before them: a hundred arrive in little more than the delay of one.
    #[test]
    fn what_is_on_its_way_is_so_at_once() {
        let (at, served) = server();
        let far = Far::to(at, Duration::from_millis(50)).unwrap();
        let mut near = TcpStream::connect(far.address()).unwrap();
        let begun = Instant::now();
        for sent in 0..100u8 {
            near.write_all(&[sent]).unwrap();
        }
        let mut all = [0; 100];
        near.read_exact(&mut all).unwrap();
        assert_eq!(all.to_vec(), (1..=100).collect::<Vec<u8>>());
        assert!(begun.elapsed() < Duration::from_millis(50 * 50), "{:?}", begun.elapsed());
        drop(near);
        served.join().unwrap();
    }
}
