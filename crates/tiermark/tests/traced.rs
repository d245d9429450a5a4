//! What a method really asks of the kernel, by a trace of its system calls: a letter is kept by what reaches the disk, not by
//! what a plan says.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Need, possible};
use std::process::Command;

/// A call on the test file.
#[derive(Debug, Clone, PartialEq)]
enum Call {
    /// Opened anew (true) or again, and whether past the page cache.
    Open {
        anew: bool,
        direct: bool,
    },
    Close,
    Read(u64),
    Write(u64),
    Fsync,
    Unlink,
}

/// The calls on files named `.tiermark-…`, in order, out of strace's lines: `PID CALL(ARGUMENTS) = RESULT`.
fn calls(trace: &str) -> Vec<Call> {
    let (mut calls, mut open) = (Vec::new(), Vec::new());
    for line in trace.lines() {
        let Some((_, line)) = line.split_once(' ') else { continue };
        let Some((call, rest)) = line.trim_start().split_once('(') else { continue };
        // Short calls are filled up with blanks.
        let Some((arguments, result)) = rest.rsplit_once(" = ") else { continue };
        let Some(arguments) = arguments.trim_end().strip_suffix(')') else { continue };
        let ours = arguments.contains("/.tiermark-");
        let of = arguments.split(',').next().unwrap_or_default();
        let last = || arguments.rsplit(", ").next().unwrap().parse::<u64>().unwrap();
        match call {
            "open" | "openat" if ours => {
                open.push(result.to_owned());
                let (anew, direct) = (arguments.contains("O_EXCL"), arguments.contains("O_DIRECT"));
                calls.push(Call::Open { anew, direct });
            }
            "unlink" | "unlinkat" if ours => calls.push(Call::Unlink),
            _ if !open.iter().any(|fd| fd == of) => {}
            "close" => {
                open.retain(|fd| fd != of);
                calls.push(Call::Close);
            }
            "pread64" => calls.push(Call::Read(last())),
            "pwrite64" => calls.push(Call::Write(last())),
            "fsync" => calls.push(Call::Fsync),
            _ => {}
        }
    }
    calls
}

/// METHODS: in order write, rewrite, read, reread, random read, random write; the file made anew for the first, opened anew for
/// every one; an fsync before the time starts and one inside it; both random passes in the same order, each record once.
#[test]
fn iozone_asks_of_the_kernel_what_its_letter_says() {
    if !possible("iozone_asks_of_the_kernel_what_its_letter_says", &[Need::Tool("strace")]) {
        return;
    }
    const RECORDS: u64 = 16;
    const RECORD: u64 = 64 << 10;
    let home = Home::new();
    let (log, work) = (home.path().join("trace"), home.work());
    let on = work.to_str().unwrap();
    let command = ["run", "iozone", "--as-published", "--set", "size=1MiB", "--set", "records=64k", "--on", on];
    let program = home.command(&command);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=open,openat,close,unlink,unlinkat,fsync,pread64,pwrite64", "-o"]).arg(&log);
    strace.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    let output = strace.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let calls = calls(&std::fs::read_to_string(&log).unwrap());

    // A pass begins where the file is opened past the page cache; what stands before the first makes the file.
    let begins: Vec<usize> =
        (0..calls.len()).filter(|at| matches!(calls[*at], Call::Open { direct: true, .. })).collect();
    assert_eq!(begins.len(), 6, "{calls:?}");
    let before = &calls[..begins[0]];
    let anew = [Call::Unlink, Call::Open { anew: true, direct: false }];
    assert!(before.windows(2).any(|pair| pair == anew), "the first pass has a file of its own: {before:?}");
    assert!(!before.iter().any(|call| matches!(call, Call::Write(_))), "its allocation is in its time: {before:?}");

    let whole: Vec<u64> = (0..RECORDS).map(|record| record * RECORD).collect();
    let mut shuffled = Vec::new();
    for (pass, at) in begins.iter().enumerate() {
        let quiet = calls[..*at].iter().rev().take_while(|call| !matches!(call, Call::Read(_) | Call::Write(_)));
        let since: Vec<&Call> = quiet.collect();
        let fsyncs = since.iter().filter(|call| ***call == Call::Fsync).count();
        assert!(
            fsyncs > usize::from(pass > 0),
            "pass {pass}: one ends the last pass, one comes before this: {since:?}"
        );
        let done = &calls[at + 1..][..RECORDS as usize + 2];
        let offsets = |of: fn(&Call) -> Option<u64>| done.iter().filter_map(of).collect::<Vec<_>>();
        let read = offsets(|call| if let Call::Read(at) = call { Some(*at) } else { None });
        let written = offsets(|call| if let Call::Write(at) = call { Some(*at) } else { None });
        let (offsets, other) = if matches!(pass, 2..=4) { (read, written) } else { (written, read) };
        assert!(other.is_empty(), "pass {pass}: {done:?}");
        assert_eq!(
            done[RECORDS as usize..],
            [Call::Fsync, Call::Close],
            "pass {pass}: the fsync is in its time: {done:?}"
        );
        match pass {
            0..=3 => assert_eq!(offsets, whole, "pass {pass}"),
            4 => {
                assert_ne!(offsets, whole);
                shuffled = offsets.clone();
                let mut sorted = offsets;
                sorted.sort_unstable();
                assert_eq!(sorted, whole, "each record once");
            }
            _ => assert_eq!(offsets, shuffled, "written in the order in which they were read"),
        }
    }
    home.assert_clean(&work);
}
