//! What a program may do while the pager helps it, and what may be done to the pager: every byte is what was written, neighbours get
//! their memory, and nothing stays behind. Needs root, FUSE, loop devices, a memory cgroup of either version and Python.
#![forbid(unsafe_code)]

mod common;

use common::group::Group;
use common::machine::{alone, machine};
use common::{Emulated, Place, Undo, emulation, full, in_kib, patiently, sh};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Goes round through so many MiB, looks at each page's first byte, and does something else in between: MIB WHAT AFTER UNTIL, in
/// seconds; `0` is until standard input ends.
const WALKER: &str = r#"
import mmap, os, select, signal, sys, time
mib, what, after, until = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
begun, pieces = time.monotonic(), []
for nth in range(8):
    piece = mmap.mmap(-1, mib << 17, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, len(piece), 4096):
        piece[at:at + 64] = os.urandom(64)
        piece[at] = (31 * nth + (at >> 12)) % 251
    pieces.append((nth, piece))
def walk():
    for nth, piece in pieces:
        for at in range(0, len(piece), 4096):
            if piece[at] != (31 * nth + (at >> 12)) % 251:
                sys.exit("a byte is not what was written")
def over():
    return time.monotonic() - begun > until if until else bool(select.select([0], [], [], 0)[0])
child, passes = 0, 0
while not over():
    walk()
    passes += 1
    if what != "goes" and time.monotonic() - begun > after:
        if what == "exits":
            sys.exit(7)
        if what == "becomes":
            os.execv(sys.executable, [sys.executable, "-c", os.environ["WALKER"], str(mib), "goes", "0", str(until - after)])
        if what == "unmaps":
            pieces = pieces[::2]
        if what == "stops":
            os.kill(os.getpid(), signal.SIGSTOP)
        if what == "forks":
            child = os.fork()
            if child == 0:
                walk()
                os._exit(0)
        what = "goes"
if child and os.waitpid(child, 0)[1] != 0:
    sys.exit("the child saw something else")
print("fine", passes, flush=True)
"#;

/// Starts one that walks, and uses what it has itself only when it is told to.
const PARENT: &str = r#"
import os, signal, subprocess, sys
heap = bytearray(os.urandom(4 << 20))
was = sum(heap)
def look(number, frame):
    if sum(heap) != was:
        os._exit(3)
signal.signal(signal.SIGUSR1, look)
sys.exit(subprocess.Popen([sys.executable, "-c", os.environ["WALKER"], *sys.argv[1:]]).wait())
"#;

/// Memory that does not fit, and a disk to swap to. Programs in it are killed when a test fails.
struct Short<'a> {
    disk: Emulated<'a>,
    group: Group,
    off: Option<Undo>,
    over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl<'a> Short<'a> {
    /// None where there is no memory cgroup.
    fn of(place: &'a Place, limit: &str) -> Option<Self> {
        let group = Group::new(limit)?;
        let disk = place.start_as("disk-425", &["--size", "1536MiB"]);
        sh(&format!("mkswap {0} && swapon -p 32000 {0}", disk.device));
        let off = Undo(format!("swapoff {}", disk.device));
        let over = Arc::new(AtomicBool::new(false));
        // Statistics that nobody reads are stale, and the kernel kills for want of memory by them (`swapping.rs`).
        let (is_over, stat) = (Arc::clone(&over), group.0.join("memory.stat"));
        let reader = std::thread::spawn(move || {
            while !is_over.load(Relaxed) {
                let _ = fs::read(&stat);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        Some(Short { disk, group, off: Some(off), over, reader: Some(reader) })
    }

    fn start(&self, words: &str) -> Child {
        self.run(WALKER, words)
    }

    fn run(&self, script: &str, words: &str) -> Child {
        let enter = format!("echo $$ > {}/cgroup.procs && exec python3 -c \"$SCRIPT\" {words}", self.group.0.display());
        let mut command = Command::new("sh");
        command.args(["-c", &enter]).env("SCRIPT", script).env("WALKER", WALKER);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

impl Drop for Short<'_> {
    fn drop(&mut self) {
        for pid in fs::read_to_string(self.group.0.join("cgroup.procs")).unwrap_or_default().lines() {
            let pid = pid.parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        self.over.store(true, Relaxed);
        let _ = self.reader.take().unwrap().join();
        drop(self.off.take());
        if !std::thread::panicking() {
            self.group.remove();
            self.disk.stop();
        }
    }
}

/// The pager beside a process, and what it said last.
struct Helper {
    child: Child,
    said: Arc<Mutex<Value>>,
}

impl Helper {
    fn of(pid: u32) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiermark"));
        command.args(["--json", "pager", "--live", "--pid", &pid.to_string()]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Arc::new(Mutex::new(Value::Null));
        let (lines, last) = (BufReader::new(child.stdout.take().unwrap()).lines(), Arc::clone(&said));
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let now: Value = serde_json::from_str(&line).unwrap();
                // Once it has ended there is nobody left to tell of.
                if now["processes"][0].is_object() || !now["trouble"].is_null() {
                    *last.lock().unwrap() = now;
                }
            }
        });
        Helper { child, said }
    }

    fn laps(&self) -> u64 {
        self.said.lock().unwrap()["processes"][0]["laps"].as_u64().unwrap_or(0)
    }

    fn follows(&self) -> bool {
        self.said.lock().unwrap()["processes"][0]["mode"] == "following" && self.laps() > 1
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

fn is_stopped(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "))
}

/// How a walker ended.
fn ended(child: Child, what: &str) -> String {
    let output = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(if what == "exits" { 7 } else { 0 }), "{what}: {out} {err}");
    assert!(what == "exits" || out.starts_with("fine"), "{what}: {out} {err}");
    out.into_owned()
}

fn possible(test: &str) -> bool {
    emulation(test, &["mkswap", "swapon", "swapoff", "python3"])
}

#[test]
fn a_program_may_do_what_it_likes() {
    let test = "a_program_may_do_what_it_likes";
    if !possible(test) {
        return;
    }
    let _alone = alone();
    let (before, place) = (machine(), Place::new());
    // All at once: none of it may disturb another.
    let Some(short) = Short::of(&place, "320M") else { return println!("SKIP {test}: needs a memory cgroup") };
    let mut all = Vec::new();
    for what in ["goes", "unmaps", "forks", "becomes", "exits", "stops"] {
        let child = short.start(&format!("64 {what} 14 20"));
        all.push((what, Helper::of(child.id()), child));
    }
    let stopped = all.last().unwrap().2.id();
    patiently("it stops", || is_stopped(stopped));
    std::thread::sleep(Duration::from_secs(1));
    signal(stopped, rustix::process::Signal::CONT);
    let mut followed = 0;
    for (what, mut helper, child) in all {
        let told = ended(child, what);
        patiently("the pager ends with its program", || helper.child.try_wait().unwrap().is_some());
        let said = helper.said.lock().unwrap().clone();
        println!("{what}: {} laps, {}", helper.laps(), told.trim());
        assert!(helper.child.wait().unwrap().success() && said["trouble"].is_null(), "{what}: {said}");
        followed += usize::from(helper.laps() > 0);
    }
    assert!(followed > 0, "none was helped");
    drop(short);
    place.assert_clean();
    assert_eq!(machine(), before);
}

#[test]
fn who_waits_beside_it_does_without_what_it_does_not_use() {
    let test = "who_waits_beside_it_does_without_what_it_does_not_use";
    if !possible(test) {
        return;
    }
    let _alone = alone();
    let (before, place) = (machine(), Place::new());
    let Some(short) = Short::of(&place, "256M") else { return println!("SKIP {test}: needs a memory cgroup") };
    let mut parent = short.run(PARENT, "304 goes 0 0");
    let helper = Helper::of(parent.id());
    patiently("its child is followed", || helper.follows());
    // Beside the pager the kernel takes nothing: what is used once would stay.
    signal(parent.id(), rustix::process::Signal::USR1);
    patiently("it has its heap", || in_kib(parent.id(), "RssAnon") > 4 << 10);
    patiently("it goes out", || in_kib(parent.id(), "RssAnon") < 2 << 10);
    assert!(helper.follows());
    drop(parent.stdin.take());
    println!("{}", ended(parent, "goes").trim());
    drop(helper);
    drop(short);
    place.assert_clean();
    assert_eq!(machine(), before);
}

/// Of a pager's children the one that outlives it.
fn who_looks_after(pager: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pager}/task/{pager}/children")).unwrap_or_default();
    children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).find(|pid| is_after(*pid))
}

fn is_after(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"pager\0--after\0"))
}

/// Ten times killed: `TIERMARK_TEST_FULL=1`.
#[test]
fn a_neighbour_gets_its_memory_and_a_killed_pager_leaves_nothing_behind() {
    let test = "a_neighbour_gets_its_memory_and_a_killed_pager_leaves_nothing_behind";
    if !possible(test) {
        return;
    }
    let _alone = alone();
    let (before, place) = (machine(), Place::new());
    let Some(short) = Short::of(&place, "160M") else { return println!("SKIP {test}: needs a memory cgroup") };
    let mut walker = short.start("192 goes 0 0");
    let helper = Helper::of(walker.id());
    patiently("it follows", || helper.follows());
    let neighbour = short.start("48 goes 0 5");
    std::thread::sleep(Duration::from_secs(4));
    let has = in_kib(neighbour.id(), "VmRSS");
    let told = ended(neighbour, "goes");
    println!("of 48 MiB the neighbour had {has} KiB, {}", told.trim());
    assert!(has > 44 << 10, "of 48 MiB it had {has} KiB");
    drop(helper);
    let unlocked = || fs::read_to_string(short.group.0.join("memory.stat")).unwrap().contains("unevictable 0\n");
    let mut after = None;
    for _ in 1..if full() { 10 } else { 2 } {
        let helper = Helper::of(walker.id());
        patiently("it follows", || {
            after = who_looks_after(helper.child.id());
            helper.follows() && after.is_some()
        });
        drop(helper);
        assert!(walker.try_wait().unwrap().is_none(), "the program goes on");
        assert!(unlocked(), "nothing is locked");
    }
    let is_there = || after.is_some_and(is_after);
    assert!(is_there(), "its counts are renewed for a while");
    drop(walker.stdin.take());
    println!("{}", ended(walker, "goes").trim());
    patiently("that ends with the program", || !is_there());
    drop(short);
    place.assert_clean();
    assert_eq!(machine(), before);
}
