//! When and why the main thread of a server stood still, and when the threads that load it did: by the kernel's tracepoints, heard on
//! all processors, of this server and these threads alone. System calls are not traced: that would cost the server a tenth of its
//! speed even where nothing is told.

mod follow;

use basics::spikes::Cause;
use follow::{Follow, Previous, Syncs, Turns};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use sys::tracepoints::{Met, TraceFs, Tracepoints, monotonic};

/// Between two looks into the rings.
const EVERY: Duration = Duration::from_millis(10);
/// The kernel's clock tick of /proc/stat, ns (USER_HZ is 100 on all of Linux's architectures but alpha and ia64).
const TICK: u64 = 10_000_000;
/// The longest of each kind of stall that are kept.
const MOST: usize = 4096;

/// A time in which a thread did not go on. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stood {
    /// Of the load: which thread. None of the server's main thread.
    pub thread: Option<u32>,
    /// Why.
    pub cause: Cause,
    /// From then; of a fork, whose length the kernel does not tell, the same as its end.
    pub from: u64,
    /// To then.
    pub until: u64,
    /// When it first had nothing to do after it.
    pub idle: Option<u64>,
    /// The program that had the processor.
    pub who: String,
}

/// All that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Longer than 100 µs, in order; the longest of the main thread, and of the load.
    pub stood: Vec<Stood>,
    /// What could not be looked at, each a sentence.
    pub lacks: Vec<String>,
    /// Events that were not heard.
    pub lost: u64,
}

/// Listens until ended or dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Seen>>,
}

/// Which tracepoint is which.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Point {
    Switch,
    Waking,
    Fork,
    SyncEnter,
    SyncExit,
}

impl Watch {
    /// Listens to the server whose process is `server`, and to the threads of this process named `PREFIX-N`.
    ///
    /// # Errors
    /// Those of [`TraceFs::open`] and [`Tracepoints::open`].
    pub fn begin(server: u32, prefix: &str) -> io::Result<Self> {
        let fs = TraceFs::open()?;
        let mut lacks = Vec::new();
        // What a thread meets by itself is told all the same: forks, syncs, leaving the processor, and coming back after another
        // thread. A wait that ends on an idle processor has no end then, and none is made up for it.
        let deaf = fs.deaf()?.first().copied();
        lacks.extend(deaf.map(|cpu| {
            format!("this kernel does not tell what it does while its processor {cpu} idles, so waits for a disk that end then are not seen")
        }));
        let threads = threads(server);
        let any = threads.iter().map(|tid| format!("common_pid=={tid}")).collect::<Vec<_>>().join(" || ");
        let switch = format!(
            "prev_pid=={server} || next_pid=={server} || prev_comm ~ \"{prefix}-*\" || next_comm ~ \"{prefix}-*\""
        );
        let waking = format!("pid=={server} || comm ~ \"{prefix}-*\"");
        let fork = format!("parent_pid=={server}");
        let mut wanted = vec![
            (Point::Switch, "sched/sched_switch", switch.as_str()),
            (Point::Waking, "sched/sched_waking", waking.as_str()),
            (Point::Fork, "sched/sched_process_fork", fork.as_str()),
        ];
        for (kind, enter, exit) in [
            ("ext4", "ext4/ext4_sync_file_enter", "ext4/ext4_sync_file_exit"),
            ("f2fs", "f2fs/f2fs_sync_file_enter", "f2fs/f2fs_sync_file_exit"),
        ] {
            match Tracepoints::open(&fs, &[(enter, any.as_str()), (exit, any.as_str())]) {
                Ok(_) => {
                    wanted.extend([(Point::SyncEnter, enter, any.as_str()), (Point::SyncExit, exit, any.as_str())]);
                }
                // A kernel without that file system has no files on it.
                Err(error) => tracing_of(&mut lacks, kind, &error),
            }
        }
        let names: Vec<(&str, &str)> = wanted.iter().map(|(_, name, filter)| (*name, *filter)).collect();
        let kinds: Vec<Point> = wanted.iter().map(|(point, ..)| *point).collect();
        let points = Tracepoints::open(&fs, &names)?;
        let (stop, stopped) = mpsc::channel::<()>();
        let mut watcher = Watcher::new(server, prefix, lacks);
        watcher.deaf = deaf.is_some();
        let listen = move || {
            let mut points = points;
            // A machine that is busy is what this is for.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -10);
            loop {
                let last = stopped.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout);
                points.poll(&mut |met| watcher.met(kinds[met.which], met));
                watcher.look();
                if last {
                    return watcher.seen(points.lost());
                }
            }
        };
        let thread = Builder::new().name("stalls".to_owned()).spawn(listen)?;
        Ok(Watch { stop: Some(stop), thread: Some(thread) })
    }

    /// Ends it, and gives what was seen.
    pub fn end(mut self) -> Seen {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(seen)) => seen,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Seen::default(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn tracing_of(lacks: &mut Vec<String>, kind: &str, error: &io::Error) {
    if error.kind() != io::ErrorKind::NotFound {
        lacks.push(format!("syncs on {kind} are not seen: {error}"));
    }
}

fn threads(server: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{server}/task")).into_iter().flatten().flatten();
    let mut all: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    if all.is_empty() {
        all.push(server);
    }
    all
}

/// Puts what is met together.
#[derive(Debug)]
struct Watcher {
    server: u32,
    prefix: String,
    main: Follow,
    /// The load's threads, by their number in the kernel, each with its own.
    load: HashMap<u32, (u32, Follow)>,
    children: HashSet<u32>,
    /// Whether a thread is this program's.
    ours: HashMap<u32, bool>,
    syncs: Syncs,
    /// Of each processor.
    turns: HashMap<u32, Turns>,
    /// The processor that the main thread was on last.
    cpu: u32,
    stolen: Option<(u64, Vec<u64>)>,
    /// Coming back is not always told.
    deaf: bool,
    lacks: Vec<String>,
}

impl Watcher {
    fn new(server: u32, prefix: &str, lacks: Vec<String>) -> Self {
        Watcher {
            server,
            prefix: format!("{prefix}-"),
            main: Follow::default(),
            load: HashMap::new(),
            children: HashSet::new(),
            ours: HashMap::new(),
            syncs: Syncs::default(),
            turns: HashMap::new(),
            cpu: 0,
            stolen: None,
            deaf: false,
            lacks,
        }
    }

    fn met(&mut self, point: Point, met: &Met<'_>) {
        let number = |field: &str| met.number(field).unwrap_or(0) as u32;
        match point {
            Point::Switch => {
                let (from, to) = (number("prev_pid"), number("next_pid"));
                let state = met.number("prev_state").unwrap_or(0);
                if from == self.server {
                    self.cpu = met.cpu;
                    self.main.left(met.at, state);
                } else if let Some((_, load)) = self.load.get_mut(&from) {
                    load.left(met.at, state);
                } else if let Some(thread) = self.numbered(met, "prev_comm") {
                    self.load.entry(from).or_insert((thread, Follow::default())).1.left(met.at, state);
                }
                self.passed(met, from, to);
                let follow = match self.load.get_mut(&to) {
                    _ if to == self.server => {
                        self.cpu = met.cpu;
                        &mut self.main
                    }
                    Some((_, load)) => load,
                    None => return,
                };
                let mut previous = Previous { pid: from, comm: met.text("prev_comm").unwrap_or_default() };
                let (server, children, ours) = (self.server, &self.children, &mut self.ours);
                let mut mine = |pid: u32| pid == server || is_ours(ours, pid);
                // The last one before it may have had the processor for a moment only.
                if previous.pid != 0
                    && mine(previous.pid)
                    && let Some(since) = follow.waits_since()
                    && let Some(other) = self.turns.get(&met.cpu).and_then(|turns| turns.mostly_another(since, met.at))
                {
                    previous = other.clone();
                }
                follow.back(met.at, previous, |previous| match previous.pid {
                    0 => Cause::Steal,
                    pid if children.contains(&pid) => Cause::Child,
                    pid if mine(pid) => Cause::Load,
                    _ => Cause::Processor,
                });
            }
            Point::Waking => match number("pid") {
                pid if pid == self.server => self.main.woken(met.at),
                pid => {
                    if let Some((_, load)) = self.load.get_mut(&pid) {
                        load.woken(met.at);
                    }
                }
            },
            Point::Fork => {
                self.children.insert(number("child_pid"));
                self.main.stands(Cause::Fork, met.at, met.at, String::new());
            }
            Point::SyncEnter => self.syncs.enter(met.tid, met.at),
            Point::SyncExit => self.syncs.exit(met.tid, met.at),
        }
    }

    /// A processor went from one thread to another.
    fn passed(&mut self, met: &Met<'_>, from: u32, to: u32) {
        let other = |pid: u32, field: &str| {
            let comm = met.text(field).unwrap_or_default();
            (pid != self.server && !comm.starts_with(&self.prefix)).then_some(Previous { pid, comm })
        };
        let (from, to) = (other(from, "prev_comm"), other(to, "next_comm"));
        self.turns.entry(met.cpu).or_default().passed(met.at, from, to);
    }

    /// Its number, of a thread of the load.
    fn numbered(&self, met: &Met<'_>, field: &str) -> Option<u32> {
        met.text(field)?.strip_prefix(&self.prefix)?.parse().ok()
    }

    /// What the hypervisor took of the main thread's processor since the last look: a stall where it was most of the time.
    fn look(&mut self) {
        let now = monotonic();
        let stolen = stolen(&std::fs::read_to_string("/proc/stat").unwrap_or_default());
        if let Some((then, before)) = &self.stolen {
            let cpu = self.cpu as usize;
            if let (Some(before), Some(after)) = (before.get(cpu), stolen.get(cpu))
                && now - then >= TICK
            {
                // When within that time is not known.
                let stolen = after.saturating_sub(*before) * TICK;
                if 2 * stolen > now - then {
                    self.main.stands(Cause::Steal, now - stolen.min(now - then), now, String::new());
                }
            }
            if now - then < TICK {
                return;
            }
        }
        self.stolen = Some((now, stolen));
    }

    fn seen(mut self, lost: u64) -> Seen {
        let end = monotonic();
        if !self.deaf {
            self.main.end(end);
        }
        let mut stood = std::mem::take(&mut self.main.stood);
        self.syncs.explain(self.server, end, &mut stood);
        longest(&mut stood, |stood| if stood.cause == Cause::Fork { u64::MAX } else { stood.until - stood.from });
        let mut load = Vec::new();
        for (thread, follow) in self.load.into_values() {
            // What they wait for themselves is nobody's request.
            let waited = follow.stood.into_iter().filter(|stood| stood.cause != Cause::Disk);
            load.extend(waited.map(|stood| Stood { thread: Some(thread), ..stood }));
        }
        longest(&mut load, |stood| stood.until - stood.from);
        stood.append(&mut load);
        stood.sort_by_key(|stood| stood.from);
        Seen { stood, lacks: self.lacks, lost }
    }
}

/// This program's: the load itself, or a disk that it emulates. A number that the kernel gives again is rarely one of ours.
fn is_ours(known: &mut HashMap<u32, bool>, tid: u32) -> bool {
    let program = |process: &str| std::fs::read_link(format!("/proc/{process}/exe")).ok();
    *known.entry(tid).or_insert_with(|| program("self").is_some_and(|own| program(&tid.to_string()) == Some(own)))
}

fn longest<T>(all: &mut Vec<T>, length: impl Fn(&T) -> u64) {
    if all.len() > MOST {
        all.sort_by_key(|one| std::cmp::Reverse(length(one)));
        all.truncate(MOST);
    }
}

/// Ticks that the hypervisor took of each processor (proc_stat(5): the eighth number of each line).
fn stolen(stat: &str) -> Vec<u64> {
    let lines = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    lines.map(|line| line.split_ascii_whitespace().nth(8).and_then(|n| n.parse().ok()).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_stolen_is_read() {
        let stat = "cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 80 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        assert_eq!(stolen(stat), [80, 8]);
    }

    /// A real process that is stopped is seen to be stopped, for as long as it was.
    #[test]
    fn a_process_that_is_stopped_is_seen() {
        let name = "a_process_that_is_stopped_is_seen";
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        let mut busy = shell.spawn().unwrap();
        let watch = match Watch::begin(busy.id(), "tm-none") {
            Ok(watch) => watch,
            Err(error) => {
                let _ = busy.kill();
                let _ = busy.wait();
                return println!("SKIP {name}: {error}");
            }
        };
        let pid = rustix::process::Pid::from_child(&busy);
        std::thread::sleep(Duration::from_millis(50));
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(120));
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let seen = watch.end();
        busy.kill().unwrap();
        busy.wait().unwrap();
        let stopped: Vec<_> = seen.stood.iter().filter(|stood| stood.cause == Cause::Stopped).collect();
        assert_eq!(stopped.len(), 1, "{seen:?}");
        assert!(stopped[0].until - stopped[0].from >= 100_000_000, "{seen:?}");
    }
}
