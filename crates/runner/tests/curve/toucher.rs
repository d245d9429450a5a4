//! A process that touches its memory in a known order, as fast as it can, and says when asked how many pages it has touched.

use change::cgroup;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sys::region::Region;

/// Set for a process that is to touch: the order, the pages, what it does between two touches, the groups.
pub const ORDERS: &str = "TIERMARK_CURVE_TOUCHER";

/// In which order pages are touched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    Cyclic,
    Uniform,
    /// The exponent.
    Zipf(f64),
}

impl Order {
    fn word(self) -> String {
        match self {
            Order::Cyclic => "cyclic".to_owned(),
            Order::Uniform => "uniform".to_owned(),
            Order::Zipf(theta) => theta.to_string(),
        }
    }

    fn read(word: &str) -> Self {
        match word {
            "cyclic" => Order::Cyclic,
            "uniform" => Order::Uniform,
            theta => Order::Zipf(theta.parse().unwrap()),
        }
    }

    /// The page that is touched as the `nth`; `pages` is a power of two.
    fn page(self, nth: u64, pages: u64, state: &mut u64) -> u64 {
        if self == Order::Cyclic {
            return nth & (pages - 1);
        }
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let chance = ((*state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let n = pages as f64;
        let rank = match self {
            Order::Zipf(theta) if (theta - 1.0).abs() < 1e-9 => n.powf(chance),
            Order::Zipf(theta) => ((n.powf(1.0 - theta) - 1.0) * chance + 1.0).powf(1.0 / (1.0 - theta)),
            _ => chance * n,
        };
        // The favourites are scattered: an odd factor is a permutation.
        (rank as u64).wrapping_mul(0x9e37_79b1) & (pages - 1)
    }
}

/// Touches until its standard input ends.
pub fn serve(orders: &str) {
    let mut words = orders.split(':');
    let order = Order::read(words.next().unwrap());
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (pages, loads) = (number(), number());
    cgroup::join(&words.map(PathBuf::from).collect::<Vec<_>>()).unwrap();
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    // So that the region alone is what comes and goes.
    sys::region::lock_everything_else();
    let page = rustix::param::page_size();
    let region = Region::new(pages as usize * page).unwrap();
    let mut state = 7u64;
    let mut content = vec![0u8; page];
    for at in 0..pages as usize {
        // Half of it random: 2:1 for what compresses.
        for word in content[..page / 2].chunks_exact_mut(8) {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            word.copy_from_slice(&state.to_le_bytes());
        }
        region.fill(at * page, &content);
    }
    let touched = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&touched);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(_) = line else { break };
            let mut out = std::io::stdout().lock();
            writeln!(out, "touched {}", told.load(Relaxed)).unwrap();
            out.flush().unwrap();
        }
        std::process::exit(0);
    });
    for nth in 0.. {
        let at = order.page(nth, pages, &mut state) as usize * page;
        for _ in 0..loads {
            std::hint::black_box(region.load(at, page));
        }
        touched.store(nth + 1, Relaxed);
    }
}

/// Such a process, killed when dropped.
pub struct Toucher {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Toucher {
    pub fn start(test: &str, order: Order, pages: u64, loads: u64, groups: &[PathBuf]) -> Self {
        let groups = groups.iter().map(|dir| format!(":{}", dir.display())).collect::<String>();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(ORDERS, format!("{}:{pages}:{loads}{groups}", order.word()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Toucher { child, stdin, stdout }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Pages touched so far; waits until it has its memory. None when the kernel has ended it.
    pub fn touched(&mut self) -> Option<u64> {
        writeln!(self.stdin).ok()?;
        let mut line = String::new();
        loop {
            line.clear();
            // What the test harness prints stands before it.
            match self.stdout.read_line(&mut line) {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
            if let Some((_, number)) = line.split_once("touched ") {
                return number.trim().parse().ok();
            }
        }
    }

    /// Its faults so far.
    pub fn faults(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let mut fields = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace();
        let minor: u64 = fields.nth(7).unwrap().parse().unwrap();
        minor + fields.nth(1).unwrap().parse::<u64>().unwrap()
    }

    /// Seconds that its busiest thread has waited for a processor.
    pub fn waited(&self) -> f64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |entry: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(entry.unwrap().path().join("schedstat")).unwrap();
            let mut fields = text.split(' ').map(|field| field.parse::<u64>().unwrap_or(0));
            (fields.next().unwrap(), fields.next().unwrap())
        };
        threads.map(of).max().unwrap().1 as f64 / 1e9
    }
}

impl Drop for Toucher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
