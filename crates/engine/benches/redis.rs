//! What does asking a Redis server cost? GET and SET 1:1 of 64 B, the server on core 0, the client on core 1: this engine against
//! redis-benchmark, against a loop that does nothing but send and receive, and against memtier_benchmark if MEMTIER names its binary, in
//! turns. Operations for a second of the client's CPU time, and operations a second; prints Markdown. `cargo bench -p engine --bench
//! redis`; ROUNDS (7), OPERATIONS (200000), words after `--` choose cases by name.
#![forbid(unsafe_code)]

mod common;

use basics::job::{Block, Direction, Order, Stop};
use basics::{Bytes, Interval, Job, stats};
use common::bare::{self, Batches};
use common::{Result, is_wanted, setting};
use engine::{Control, Endpoint, Keys, Target};
use rustix::fd::OwnedFd;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const PORT: u16 = 16_379;
/// Different keys.
const KEYS: u64 = 100_000;
const PAYLOAD: usize = 64;

struct Case {
    name: &'static str,
    unix: bool,
    connections: u32,
    pipeline: u32,
    /// So many times the operations, for those that are over too soon.
    times: u64,
}

const CASES: &[Case] = &[
    Case { name: "TCP, 50 connections", unix: false, connections: 50, pipeline: 1, times: 1 },
    Case { name: "TCP, 200 connections", unix: false, connections: 200, pipeline: 1, times: 1 },
    Case { name: "TCP, 50, pipeline 16", unix: false, connections: 50, pipeline: 16, times: 8 },
    Case { name: "Unix socket, 50", unix: true, connections: 50, pipeline: 1, times: 1 },
    Case { name: "Unix socket, 50, pipeline 16", unix: true, connections: 50, pipeline: 16, times: 8 },
];

/// A server that ends with this.
struct Server {
    child: Child,
    dir: PathBuf,
}

impl Server {
    fn start() -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("tiermark-bench-{}", std::process::id()));
        std::fs::create_dir(&dir)?;
        let mut command = Command::new("taskset");
        command.args(["-c", "0", "redis-server", "--save", "", "--port", &PORT.to_string(), "--bind", "127.0.0.1"]);
        command.arg("--unixsocket").arg(dir.join("redis")).stdout(Stdio::null());
        let server = Server { child: command.current_dir(&dir).spawn()?, dir };
        let begun = Instant::now();
        while UnixStream::connect(server.socket()).is_err() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err("redis-server does not answer".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        server.set_all()?;
        Ok(server)
    }

    /// A GET of the loop finds what it counts on.
    fn set_all(&self) -> Result<()> {
        let mut stream = UnixStream::connect(self.socket())?;
        let (value, mut answers) = ("x".repeat(PAYLOAD), vec![0; 5 * 1000]);
        for from in (0..KEYS).step_by(1000) {
            let set = |key| format!("*3\r\n$3\r\nSET\r\n$16\r\n{}\r\n${PAYLOAD}\r\n{value}\r\n", engine::key_name(key));
            let sets: String = (from..from + 1000).map(set).collect();
            stream.write_all(sets.as_bytes())?;
            stream.read_exact(&mut answers)?;
        }
        Ok(())
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("redis")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Operations a second, and for a second of CPU time.
struct Seen {
    rate: f64,
    each_cpu: f64,
}

fn ours(case: &Case, socket: &Path, operations: u64) -> Result<Seen> {
    let at = match case.unix {
        true => Endpoint::Unix(socket),
        false => Endpoint::Tcp(SocketAddr::from(([127, 0, 0, 1], PORT))),
    };
    let keys = Keys {
        at,
        greeting: b"",
        connections: 0,
        pipeline: case.pipeline,
        count: KEYS,
        expires: None,
        commands: &[],
        slowest: 0,
        prefix: "",
        names: None,
    };
    let job = Job {
        direction: Direction::Mixed { read_percent: 50 },
        order: Order::Uniform,
        block: Block::Fixed(Bytes(PAYLOAD as u64)),
        depth: case.connections * case.pipeline,
        separate_regions: false,
        stop: Stop { operations: Some(operations), ..Stop::default() },
        ..Job::default()
    };
    let cancel = AtomicBool::new(false);
    let outcome = engine::run(&job, Target::Keys(keys), &Control::new(&cancel), &mut |_: &Interval| {})?;
    let done = (outcome.read.operations() + outcome.write.operations()) as f64;
    if done as u64 != operations {
        return Err(format!("{done} of {operations} operations: {:?}", outcome.ended).into());
    }
    let cpu = (outcome.cpu_user + outcome.cpu_system).secs();
    Ok(Seen { rate: done / outcome.elapsed.secs(), each_cpu: done / cpu })
}

fn nothing_else(case: &Case, socket: &Path, operations: u64) -> Result<Seen> {
    let connect = |_| -> Result<OwnedFd> {
        if case.unix {
            return Ok(UnixStream::connect(socket)?.into());
        }
        let stream = TcpStream::connect(("127.0.0.1", PORT))?;
        stream.set_nodelay(true)?;
        Ok(stream.into())
    };
    let sockets = (0..case.connections).map(connect).collect::<Result<Vec<_>>>()?;
    let batches = Batches::new(case.pipeline, KEYS, PAYLOAD);
    let took = bare::run(&sockets, &batches, operations / u64::from(case.pipeline))?;
    let operations = operations as f64;
    Ok(Seen { rate: operations / took.seconds, each_cpu: operations / took.cpu_seconds })
}

/// CPU time of all children that have ended, s (proc_pid_stat(5), in hundredths).
fn of_children() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let words: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok()).ok_or("/proc/self/stat is short");
    Ok((ticks(13)? + ticks(14)?) / 100.0)
}

fn another(mut command: Command, operations: u64) -> Result<Seen> {
    let (before, begun) = (of_children()?, Instant::now());
    let output = command.stderr(Stdio::null()).output()?;
    let seconds = begun.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status).into());
    }
    let operations = operations as f64;
    Ok(Seen { rate: operations / seconds, each_cpu: operations / (of_children()? - before) })
}

fn redis_benchmark(case: &Case, socket: &Path, operations: u64) -> Result<Seen> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1", "redis-benchmark", "-q", "-d", "64", "-t", "set,get"]);
    // Half of them SET, half GET.
    command.args(["-n", &(operations / 2).to_string(), "-r", &KEYS.to_string()]);
    command.args(["-c", &case.connections.to_string(), "-P", &case.pipeline.to_string()]);
    if case.unix {
        command.arg("-s").arg(socket);
    } else {
        command.args(["-p", &PORT.to_string()]);
    }
    another(command, operations)
}

fn memtier(binary: &str, case: &Case, socket: &Path, operations: u64) -> Result<Seen> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1", binary, "-t", "1", "--ratio", "1:1", "-d", "64", "--hide-histogram"]);
    command.args(["--distinct-client-seed", "--key-maximum", &KEYS.to_string()]);
    command.args(["-n", &(operations / u64::from(case.connections)).to_string()]);
    command.args(["-c", &case.connections.to_string(), "--pipeline", &case.pipeline.to_string()]);
    if case.unix {
        command.arg("-S").arg(socket);
    } else {
        command.args(["-p", &PORT.to_string()]);
    }
    another(command, operations)
}

fn median(values: &[f64]) -> f64 {
    stats::median(values).unwrap_or(f64::NAN)
}

/// Least to most.
fn spread(values: &[f64]) -> String {
    let (least, most) = values.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), value| (a.min(*value), b.max(*value)));
    format!("{least:.0} to {most:.0}")
}

fn main() -> Result<()> {
    let rounds = setting("ROUNDS", 7);
    let operations = setting("OPERATIONS", 200_000);
    let binary = std::env::var("MEMTIER").ok();
    let server = Server::start()?;
    let mut core = CpuSet::new();
    core.set(1);
    // The threads of the engine are there, too.
    sched_setaffinity(None, &core)?;
    println!(
        "| case | client | k operations per CPU second | spread | ours to it | k operations a second | ours to it |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for case in CASES.iter().filter(|case| is_wanted(case.name)) {
        let all = operations * case.times;
        let mut seen: [Vec<Seen>; 4] = Default::default();
        for _ in 0..rounds {
            seen[0].push(ours(case, &server.socket(), all)?);
            seen[1].push(redis_benchmark(case, &server.socket(), all)?);
            seen[2].push(nothing_else(case, &server.socket(), all)?);
            if let Some(binary) = &binary {
                seen[3].push(memtier(binary, case, &server.socket(), all)?);
            }
        }
        let each_cpu = |seen: &[Seen]| seen.iter().map(|seen| seen.each_cpu / 1e3).collect::<Vec<_>>();
        let rate = |seen: &[Seen]| seen.iter().map(|seen| seen.rate / 1e3).collect::<Vec<_>>();
        let (first, fast) = (median(&each_cpu(&seen[0])), median(&rate(&seen[0])));
        for (client, seen) in ["tiermark", "redis-benchmark", "send and recv alone", "memtier"].iter().zip(&seen) {
            if seen.is_empty() {
                continue;
            }
            let (cpu, rates) = (each_cpu(seen), rate(seen));
            println!(
                "| {} | {client} | {:.0} | {} | {:.2} | {:.0} | {:.2} |",
                case.name,
                median(&cpu),
                spread(&cpu),
                first / median(&cpu),
                median(&rates),
                fast / median(&rates)
            );
        }
    }
    Ok(())
}
