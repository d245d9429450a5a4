//! A real redis-server as the target: what is asked is what it counts, a rate is held and what was late is told as late, and whatever
//! goes wrong is one sentence. Skipped where there is none.
#![forbid(unsafe_code)]

use basics::job::{Block, Direction, Engine, Order, Pacing, Stop};
use basics::{Bytes, Interval, Job, Nanos};
use engine::{Control, Ended, Endpoint, EngineError, Keys, Outcome, Target};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A server on a Unix socket, which ends with this.
struct Server {
    child: Child,
    dir: tempfile::TempDir,
}

impl Server {
    /// None, and said so, where there is no redis-server.
    fn start(test: &str, words: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--save", "", "--port", "0", "--unixsocket"]).arg(dir.path().join("redis")).args(words);
        command.current_dir(&dir).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            println!("SKIP {test}: redis-server is not installed");
            return None;
        };
        let server = Server { child, dir };
        let begun = Instant::now();
        while UnixStream::connect(server.socket()).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(server)
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("redis")
    }

    /// What it answers to one command.
    fn ask(&self, command: &str) -> String {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
        let mut answer = vec![0; 1 << 16];
        let length = stream.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn run(&self, job: &Job, pipeline: u32) -> Result<Outcome, EngineError> {
        let socket = self.socket();
        let keys = Keys {
            at: Endpoint::Unix(&socket),
            greeting: b"",
            connections: 0,
            pipeline,
            count: 1000,
            expires: None,
            commands: &[],
            slowest: 0,
            prefix: "",
            names: None,
        };
        let cancel = AtomicBool::new(false);
        engine::run(job, Target::Keys(keys), &Control::new(&cancel), &mut |_: &Interval| {})
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn half(operations: u64) -> Job {
    Job {
        direction: Direction::Mixed { read_percent: 50 },
        order: Order::Uniform,
        block: Block::Fixed(Bytes(64)),
        depth: 8,
        engine: Engine::Resp,
        separate_regions: false,
        stop: Stop { operations: Some(operations), ..Stop::default() },
        ..Job::default()
    }
}

/// As many GETs and SETs as asked, in the server's own account.
#[test]
fn what_is_asked_is_what_the_server_counts() {
    let Some(server) = Server::start("what_is_asked_is_what_the_server_counts", &[]) else { return };
    for (depth, pipeline, threads) in [(1, 1, 1), (50, 1, 2), (64, 16, 1)] {
        server.ask("CONFIG RESETSTAT");
        let job = Job { depth, threads, ..half(10_000) };
        let outcome = server.run(&job, pipeline).unwrap();
        assert_eq!(outcome.ended, Ended::Operations);
        assert_eq!((outcome.read.operations(), outcome.write.operations()), (5000, 5000));
        assert_eq!(outcome.engine.used, Engine::Resp);
        let stats = server.ask("INFO commandstats");
        assert!(stats.contains("cmdstat_get:calls=5000") && stats.contains("cmdstat_set:calls=5000"), "{stats}");
    }
    assert!(server.ask("DBSIZE").starts_with(":1000"), "every key was set");
    assert!(server.ask("STRLEN key:000000000999").starts_with(":64"));
    // Sizes by their weights, with an end.
    let block = Block::Split(vec![(Bytes(64), 1), (Bytes(4096), 1)]);
    let job = Job { block, direction: Direction::Write, ..half(4000) };
    let socket = server.socket();
    let expires = Some(Duration::from_secs(100));
    let keys = Keys {
        at: Endpoint::Unix(&socket),
        greeting: b"*1\r\n$4\r\nPING\r\n",
        connections: 0,
        pipeline: 1,
        count: 1000,
        expires,
        commands: &[],
        slowest: 0,
        prefix: "",
        names: None,
    };
    let cancel = AtomicBool::new(false);
    let outcome = engine::run(&job, Target::Keys(keys), &Control::new(&cancel), &mut |_: &Interval| {}).unwrap();
    let mean = outcome.write.bytes / outcome.write.operations();
    assert!((1900..2300).contains(&mean), "{mean}");
    assert!(server.ask("PTTL key:000000000001").trim_start_matches(':').trim().parse::<i64>().unwrap() > 0);
}

/// While the server stands still for half a second, requests are due all the same: late ones count from when they were meant, which
/// the time from sending does not show where the pipe is full.
#[test]
fn a_rate_goes_on_while_the_server_stands_still() {
    let Some(server) = Server::start("a_rate_goes_on_while_the_server_stands_still", &[]) else { return };
    let rate = 4000.0;
    let job = Job { pacing: Pacing::Poisson { iops: rate }, each: true, ..half(12_000) };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            server.signal(Signal::STOP);
            std::thread::sleep(Duration::from_millis(500));
            server.signal(Signal::CONT);
        });
        server.run(&job, 1).unwrap()
    });
    assert_eq!(outcome.ended, Ended::Operations);
    let mut all = outcome.read.latency.clone();
    all.merge(&outcome.write.latency);
    // 500 ms of 3 s: a request in six was late, by 250 ms in the middle.
    let late = all.percentile(95.0).unwrap();
    assert!(late > Nanos::from_millis(200) && late < Nanos::from_millis(2000), "{late}");
    // The same from the log of all requests, sorted.
    let mut log: Vec<Nanos> = outcome.each.iter().map(|each| each.latency).collect();
    assert_eq!(log.len(), 12_000);
    log.sort_unstable();
    for percent in [50.0, 95.0, 99.0, 99.9] {
        let at = ((percent / 100.0 * log.len() as f64).ceil() as usize).clamp(1, log.len()) - 1;
        let (told, sorted) = (all.percentile(percent).unwrap(), log[at]);
        assert!((told.us() / sorted.us() - 1.0).abs() < 0.005, "p{percent}: {told} told, {sorted} in the log");
    }
    // What others print: only the eight that were on the way waited for the server.
    let mut service = outcome.read.service.clone().unwrap();
    service.merge(outcome.write.service.as_ref().unwrap());
    assert!(service.percentile(95.0).unwrap() < late, "{:?}", service.percentile(95.0));
    assert!(service.max().unwrap() > Nanos::from_millis(300));
}

#[test]
fn what_the_server_refuses_it_says_itself() {
    let test = "what_the_server_refuses_it_says_itself";
    let Some(server) = Server::start(test, &["--maxmemory", "1600kb", "--maxmemory-policy", "noeviction"]) else {
        return;
    };
    let job = Job { block: Block::Fixed(Bytes(65_536)), ..half(100_000) };
    let outcome = server.run(&job, 1).unwrap();
    assert!(matches!(&outcome.ended, Ended::Refused { said } if said.contains("OOM")), "{:?}", outcome.ended);
    drop(server);
    let Some(server) = Server::start(test, &["--requirepass", "secret"]) else { return };
    let refused = server.run(&half(10), 1).unwrap();
    assert!(matches!(&refused.ended, Ended::Refused { said } if said.contains("NOAUTH")), "{:?}", refused.ended);
    let socket = server.socket();
    let greeting = b"*2\r\n$4\r\nAUTH\r\n$5\r\nwrong\r\n";
    let keys = Keys {
        at: Endpoint::Unix(&socket),
        greeting,
        connections: 0,
        pipeline: 1,
        count: 10,
        expires: None,
        commands: &[],
        slowest: 0,
        prefix: "",
        names: None,
    };
    let cancel = AtomicBool::new(false);
    let error = engine::run(&half(10), Target::Keys(keys), &Control::new(&cancel), &mut |_: &Interval| {}).unwrap_err();
    assert!(error.to_string().contains("WRONGPASS"), "{error}");
}

/// What was measured until then is kept.
#[test]
fn a_server_that_ends_is_told_and_one_that_hangs_can_be_left() {
    let test = "a_server_that_ends_is_told_and_one_that_hangs_can_be_left";
    let Some(server) = Server::start(test, &[]) else { return };
    let job = Job { stop: Stop { time: Some(Nanos::from_millis(60_000)), ..Stop::default() }, ..half(0) };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            server.signal(Signal::KILL);
        });
        server.run(&job, 1).unwrap()
    });
    assert!(matches!(outcome.ended, Ended::Failed { .. }), "{:?}", outcome.ended);
    assert!(outcome.read.operations() > 0);
    drop(server);
    let Some(server) = Server::start(test, &[]) else { return };
    let (socket, cancel) = (server.socket(), AtomicBool::new(false));
    let keys = Keys {
        at: Endpoint::Unix(&socket),
        greeting: b"",
        connections: 0,
        pipeline: 1,
        count: 10,
        expires: None,
        commands: &[],
        slowest: 0,
        prefix: "",
        names: None,
    };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            server.signal(Signal::STOP);
            std::thread::sleep(Duration::from_millis(300));
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        engine::run(&job, Target::Keys(keys), &Control::new(&cancel), &mut |_: &Interval| {}).unwrap()
    });
    assert_eq!(outcome.ended, Ended::Cancelled);
    server.signal(Signal::CONT);
    let nobody = server.dir.path().join("nobody");
    let keys = Keys { at: Endpoint::Unix(&nobody), ..keys };
    let error = engine::run(&job, Target::Keys(keys), &Control::new(&cancel), &mut |_: &Interval| {}).unwrap_err();
    assert!(error.to_string().contains("a connection to the server"), "{error}");
}

/// A server that answers so many requests on some connections, and is gone at once.
fn dying_server(path: &std::path::Path, connections: usize, answers: usize) -> std::thread::JoinHandle<()> {
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        let mut all: Vec<UnixStream> = (0..connections).map(|_| listener.accept().unwrap().0).collect();
        let (mut left, mut input) = (answers, vec![0; 1 << 16]);
        while left > 0 {
            for stream in &mut all {
                let bytes = stream.read(&mut input).unwrap();
                // Requests of a key and a value are as long as each other: *3 $3 SET $16 key:000000000042 $64 …
                let whole = bytes / "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000042\r\n$64\r\n".len().saturating_add(66);
                let now = whole.min(left);
                stream.write_all("+OK\r\n".repeat(now).as_bytes()).unwrap();
                left -= now;
                if left == 0 {
                    break;
                }
            }
        }
    })
}

/// What a server acknowledged before it was gone is acknowledged, on every connection, to the last request.
#[test]
fn what_was_answered_before_the_server_went_is_kept() {
    for (round, (connections, pipeline)) in [(1, 1), (8, 1), (8, 4), (16, 16)].into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("redis");
        let answers = 1000 + 37 * round;
        let server = dying_server(&socket, connections as usize, answers);
        let job = Job {
            direction: Direction::Write,
            order: Order::Sequential,
            depth: connections * pipeline,
            each: true,
            ..half(50_000)
        };
        let at = Endpoint::Unix(&socket);
        let keys = Keys {
            at,
            greeting: b"",
            connections,
            pipeline,
            count: 50_000,
            expires: None,
            commands: &[],
            slowest: 0,
            prefix: "",
            names: None,
        };
        let cancel = AtomicBool::new(false);
        let outcome = engine::run(&job, Target::Keys(keys), &Control::new(&cancel), &mut |_: &Interval| {}).unwrap();
        server.join().unwrap();
        assert!(matches!(outcome.ended, Ended::Failed { .. }), "{:?}", outcome.ended);
        assert_eq!(
            (outcome.each.len(), outcome.write.operations()),
            (answers, answers as u64),
            "{connections}, {pipeline}"
        );
        let mut set: Vec<u64> = outcome.each.iter().map(|each| each.offset.0 / 64).collect();
        set.sort_unstable();
        set.dedup();
        assert_eq!(set.len(), answers, "each key was set once");
    }
}
