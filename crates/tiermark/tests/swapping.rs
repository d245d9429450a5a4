//! Swap on an emulated SD card while a limited cgroup swaps hard: nothing hangs, nothing leaks, and what is read back is what
//! was written. Needs root, FUSE, loop devices and a memory cgroup of either version.
#![forbid(unsafe_code)]

mod common;

use common::group::Group;
use common::{Emulated, Place, Random, Undo, emulation, full, in_kib, sh};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Set for the process in the cgroup, which is this test once more: `MEBIBYTES SECONDS`.
const TOUCH: &str = "TIERMARK_TEST_TOUCH";
const TEST: &str = "a_cgroup_swaps_hard_on_an_emulated_card";
const THREADS: u64 = 4;
/// Words of a page.
const WORDS: usize = 512;
/// Without a single page touched for so long it hangs; the card's own worst is a tenth of a second.
const HANGS: Duration = Duration::from_secs(20);

/// Holds pages and touches them at random, each looked at as a whole and every third written anew; in the end all once more.
/// Says on the way how many it has touched.
fn touch(mebibytes: u64, seconds: u64) {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut memory = vec![0u64; (mebibytes as usize) << 17];
    let (touched, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let share = memory.len() / THREADS as usize;
    std::thread::scope(|scope| {
        let touched = &touched;
        let touchers = memory
            .chunks_mut(share)
            .zip(1..)
            .map(|(part, seed)| scope.spawn(move || pages(part, seed, until, touched)));
        let touchers: Vec<_> = touchers.collect();
        scope.spawn(|| {
            while !over.load(Relaxed) {
                println!("touched {}", touched.load(Relaxed));
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let fine = touchers.into_iter().all(|toucher| toucher.join().is_ok());
        over.store(true, Relaxed);
        assert!(fine, "a page is not what was written");
    });
    println!("touched {}", touched.into_inner());
}

fn pages(memory: &mut [u64], seed: u64, until: Instant, touched: &AtomicU64) {
    // What a page holds follows from who wrote it, where and when.
    let fill = |page: &mut [u64], number: usize, version: u32| {
        let mut words = Random(seed << 56 | (number as u64) << 32 | u64::from(version));
        page.fill_with(|| words.next());
    };
    let check = |page: &[u64], number: usize, version: u32| {
        let mut words = Random(seed << 56 | (number as u64) << 32 | u64::from(version));
        assert!(page.iter().all(|word| *word == words.next()), "page {number} of {seed}, written {version} times");
    };
    let count = memory.len() / WORDS;
    let mut versions = vec![0u32; count];
    for (number, page) in memory.chunks_mut(WORDS).enumerate() {
        fill(page, number, 0);
        touched.fetch_add(1, Relaxed);
    }
    let mut random = Random(seed);
    while Instant::now() < until {
        let number = random.below(count as u64) as usize;
        let page = &mut memory[number * WORDS..][..WORDS];
        check(page, number, versions[number]);
        if random.below(3) == 0 {
            versions[number] += 1;
            fill(page, number, versions[number]);
        }
        touched.fetch_add(1, Relaxed);
    }
    for (number, page) in memory.chunks(WORDS).enumerate() {
        check(page, number, versions[number]);
        touched.fetch_add(1, Relaxed);
    }
}

/// Where each thread of these processes stands in the kernel.
fn stacks(processes: &[u32]) -> String {
    let mut told = String::new();
    for process in processes {
        for task in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            told += &format!("{} {}{}\n", task.path().display(), read("comm"), read("stack"));
        }
    }
    told
}

/// Waits for the process as long as it goes on; one that hangs is told with where it hangs, the card killed under it, so that
/// it can end. Meanwhile the group's statistics are read, which makes the kernel add them up: it reclaims by them, adds them up by
/// itself every two seconds only, and kills for want of memory with the swap half empty where they are stale.
fn watch(child: &mut Child, progress: &Receiver<u64>, disk: &Emulated, group: &Group, what: &str) -> u64 {
    let (mut last, mut moved) = (0, Instant::now());
    loop {
        let _ = fs::read(group.0.join("memory.stat"));
        match progress.recv_timeout(Duration::from_millis(50)) {
            Ok(now) if now != last => (last, moved) = (now, Instant::now()),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if moved.elapsed() > HANGS {
            let told = stacks(&[child.id(), disk.id()]);
            disk.kill();
            let _ = child.kill();
            panic!("{what} hangs after {last}:\n{told}");
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success(), "{what} ended with {status}");
    last
}

/// Starts a command whose lines `touched N` are its progress.
fn started(command: &mut Command) -> (Child, Receiver<u64>) {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let (send, progress) = channel();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = line.strip_prefix("touched ").and_then(|n| n.parse().ok()).map(|n| send.send(n));
        }
    });
    (child, progress)
}

/// Bytes in use of this swap area; nothing when it is none.
fn swapped(device: &str) -> Option<u64> {
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    let line = swaps.lines().find(|line| line.split_whitespace().next() == Some(device))?;
    line.split_whitespace().nth(3)?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// One round; false where there is no cgroup to do it in.
fn swap_hard(disk: &Emulated, mebibytes: u64, limit: &str, seconds: u64) -> bool {
    let Some(group) = Group::new(limit) else { return false };
    // Before the machine's own swap, if it has one: nobody else swaps to it, having no need to.
    sh(&format!("mkswap {0} && swapon -p 32000 {0}", disk.device));
    let off = Undo(format!("swapoff {}", disk.device));
    let began = Instant::now();
    let mut shell = Command::new("sh");
    let enter = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", group.0.display());
    shell.args(["-c", &enter]).arg(std::env::current_exe().unwrap()).args(["--exact", TEST, "--nocapture"]);
    let (mut toucher, progress) = started(shell.env(TOUCH, format!("{mebibytes} {seconds}")));
    let before = (disk.figure("read_B"), disk.figure("written_B"));
    let touched = watch(&mut toucher, &progress, disk, &group, "the toucher");
    let mb = |key, before| (disk.figure(key) - before) as f64 / 1e6;
    let (read, written) = (mb("read_B", before.0), mb("written_B", before.1));
    let took = began.elapsed().as_secs_f64();
    let held = swapped(&disk.device);
    let mut off_now = Command::new("swapoff");
    let (mut swapoff, progress) = started(off_now.arg(&disk.device));
    watch(&mut swapoff, &progress, disk, &group, "swapoff");
    assert_eq!(swapped(&disk.device), None);
    drop(off);
    group.remove();
    println!(
        "{took:.1} s: {touched} pages touched, {read:.1} MB swapped in, {written:.1} MB out, {held:?} B in swap after, \
         emulator {} KiB",
        in_kib(disk.id(), "VmRSS")
    );
    let beyond = (mebibytes << 20) as f64 / 1e6 / 3.0;
    assert!(read > beyond && written > beyond, "it hardly swapped");
    true
}

/// Five times a minute with 512 MiB in 256: `TIERMARK_TEST_FULL=1 cargo test -p tiermark --test swapping -- --nocapture`.
#[test]
fn a_cgroup_swaps_hard_on_an_emulated_card() {
    if let Ok(wanted) = std::env::var(TOUCH) {
        let (mebibytes, seconds) = wanted.split_once(' ').unwrap();
        return touch(mebibytes.parse().unwrap(), seconds.parse().unwrap());
    }
    if !emulation(TEST, &["mkswap", "swapon", "swapoff"]) {
        return;
    }
    let (mebibytes, limit, seconds, rounds) = if full() { (512, "256M", 60, 5) } else { (48, "24M", 5, 1) };
    let place = Place::new();
    let disk = place.start_as("sd-evo-pi5", &["--size", &format!("{}MiB", mebibytes * 3 / 2)]);
    // What it takes beside the bytes that it holds.
    let beside = || in_kib(disk.id(), "VmRSS").saturating_sub(disk.figure("taken_B") >> 10);
    let mut first = None;
    for _ in 0..rounds {
        if !swap_hard(&disk, mebibytes, limit, seconds) {
            println!("SKIP {TEST}: needs a memory cgroup");
            break;
        }
        let now = beside();
        let first = *first.get_or_insert(now);
        assert!(now < first + (8 << 10), "it takes {now} KiB beside its bytes, and took {first} after the first round");
    }
    disk.stop();
    place.assert_clean();
}
