//! A compilation under pressure or without: files of source made in a folder of its own, compiled by the compiler that is there, so many at
//! a time, over and over until the time is up. Where there is none, the same amount of computing and of files by this program. Each file
//! compiled is an operation, so that a processor that slows down is seen to.

use super::Heard;
use super::ballast::Errand;
use super::program::{Parent, Program, environment};
use super::toucher::{Listener, Touched, Trouble};
use crate::RunError;
use basics::desktop::{Building, Built, Compiler};
use basics::{Bytes, Interval, Job, Nanos, Side, job};
use change::Folder;
use engine::Ended;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Between two looks at the compilers.
const LOOK: Duration = Duration::from_millis(5);
/// And at everything else.
const SELDOM: Duration = Duration::from_millis(50);
/// Functions of a file, which take a compiler about a second on a small board.
const FUNCTIONS: u32 = 60;

/// A unit of the mix: read a source, compute, write an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mixed {
    source: PathBuf,
    object: PathBuf,
}

/// Does one: as many operations on text and tables as a compiler of a small file makes, and an object of some 100 KiB.
pub(super) fn mix(this: &Mixed) -> io::Result<()> {
    let text = std::fs::read(&this.source)?;
    let mut words = std::collections::BTreeMap::<&[u8], u64>::new();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for _ in 0..40 {
        for word in text.split(|byte| !byte.is_ascii_alphanumeric()) {
            for byte in word {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
            *words.entry(word).or_default() += hash & 7;
        }
    }
    let mut object = Vec::with_capacity(128 << 10);
    while object.len() < 100 << 10 {
        words.values().for_each(|count| object.extend(count.to_le_bytes()));
        object.extend(hash.to_le_bytes());
    }
    std::fs::write(&this.object, object)
}

/// Where it runs.
pub(super) struct Needs<'a> {
    pub parent: Parent<'a>,
    pub groups: Vec<PathBuf>,
    /// On the disk under test, where there is one for it.
    pub folder: Option<&'a Path>,
}

fn failed(what: impl std::fmt::Display) -> RunError {
    RunError::Load { what: what.to_string() }
}

/// Compilers under way, each with its begin. What is left is ended when this is dropped.
struct UnderWay(Vec<(Child, Instant)>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        for (child, _) in &mut self.0 {
            if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            let _ = child.wait();
        }
    }
}

/// Compiles until the time is up, or so many files.
pub(super) fn run(
    building: &Building,
    job: &Job,
    needs: &Needs<'_>,
    cancel: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Touched, Trouble> {
    let trouble = |error: RunError| Trouble::Failed(error);
    let parent = needs.folder.unwrap_or(Path::new("/var/tmp"));
    let home = Folder::make(needs.parent.journal, needs.parent.run, parent).map_err(|error| trouble(error.into()))?;
    let dir = home.path();
    for unit in 0..building.units {
        let (name, text) = source(building.compiler, unit);
        std::fs::write(dir.join(name), text).map_err(|error| trouble(failed(error)))?;
    }
    let version = building.program.as_deref().map_or_else(|| "tiermark's own mix".to_owned(), version);
    let mut seen = Built { version, units: building.units, jobs: building.jobs, ..Built::default() };
    let begun = Instant::now();
    let (mut all, mut open) = (Side::default(), Interval::default());
    let mut way = UnderWay(Vec::new());
    let (mut next, mut done, mut ended_early) = (0u64, 0u64, None);
    let (mut build_began, mut looked) = (begun, begun);
    let most = job.stop.operations.unwrap_or(u64::MAX);
    let time_is_up = || job.stop.time.is_some_and(|time| begun.elapsed() >= Duration::from_nanos(time.0));
    let ended = loop {
        if cancel.load(Relaxed) {
            return Err(trouble(RunError::Interrupted));
        }
        if looked.elapsed() >= SELDOM {
            looked = Instant::now();
            ended_early = listener.enough();
        }
        let over = if ended_early.is_some() || time_is_up() {
            Some(Ended::Time)
        } else {
            (done >= most).then_some(Ended::Operations)
        };
        if let Some(over) = over {
            break over;
        }
        while way.0.len() < building.jobs as usize && next < most {
            let unit = (next % u64::from(building.units)) as u32;
            // The next build begins once all of this one is there, as a linker would have it.
            if unit == 0 && next > 0 && done < next {
                break;
            }
            if unit == 0 {
                build_began = Instant::now();
            }
            way.0.push((start(building, unit, dir, needs).map_err(trouble)?, Instant::now()));
            next += 1;
        }
        let mut at = 0;
        while at < way.0.len() {
            let (child, since) = &mut way.0[at];
            match child.try_wait().map_err(|error| trouble(failed(error)))? {
                None => at += 1,
                Some(status) => {
                    let took = Nanos::from(since.elapsed());
                    way.0.swap_remove(at);
                    if !status.success() {
                        if listener.was_killed() {
                            return Err(Trouble::Killed(Bytes(0)));
                        }
                        return Err(trouble(failed(format!("the compiler failed ({status})"))));
                    }
                    open.read.latency.record(took);
                    done += 1;
                    if done.is_multiple_of(u64::from(building.units)) {
                        seen.builds.push(build_began.elapsed().into());
                    }
                }
            }
        }
        let now = Nanos::from(begun.elapsed());
        if now - open.start >= job.interval {
            tell(&mut open, now, &mut all, listener);
        }
        std::thread::sleep(LOOK);
    };
    let elapsed = Nanos::from(begun.elapsed());
    tell(&mut open, elapsed, &mut all, listener);
    listener.done();
    drop(way);
    let objects = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let objects = objects.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "o"));
    seen.objects = Bytes(objects.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum());
    let engine = (job::Engine::Built, "a compiler does the work");
    let outcome = super::program::outcome(job, engine, (ended, elapsed), all, Vec::new());
    Ok(Touched {
        outcome,
        filled: None,
        tokens: Vec::new(),
        prompt: None,
        busy: None,
        lay: Vec::new(),
        watched: None,
        paged: None,
        ended_early,
        browsed: None,
        built: Some(seen),
    })
}

fn tell(open: &mut Interval, now: Nanos, all: &mut Side, listener: &mut dyn Listener) {
    open.end = now;
    all.merge(&open.read);
    listener.heard(Heard::Interval(open));
    *open = Interval { start: now, ..Interval::default() };
}

/// One file's compilation, in the group.
fn start(building: &Building, unit: u32, dir: &Path, needs: &Needs<'_>) -> Result<Child, RunError> {
    let (name, _) = named(building.compiler, unit);
    let (source, object) = (dir.join(&name), dir.join(format!("unit{unit}.o")));
    let text = |path: &Path| path.display().to_string();
    let words = |errand: &Errand| serde_json::to_string(errand).map_err(failed);
    let arguments = match building.compiler {
        Compiler::C => vec!["-O2".to_owned(), "-c".to_owned(), text(&source), "-o".to_owned(), text(&object)],
        Compiler::Rust => {
            let fixed = ["--edition=2021", "--crate-type=lib", "-Copt-level=2", "-Ccodegen-units=1", "--emit=obj"];
            let mut all: Vec<String> = fixed.map(str::to_owned).into();
            all.extend([text(&source), "-o".to_owned(), text(&object)]);
            all
        }
        Compiler::Mix => {
            let mixed = Mixed { source, object };
            vec!["load".to_owned(), "errand".to_owned(), words(&Errand::Mix(Box::new(mixed)))?]
        }
    };
    let program = building.program.clone().unwrap_or_else(|| needs.parent.own.to_owned());
    let this = Program {
        program,
        arguments,
        environment: environment(dir),
        folder: dir.to_owned(),
        groups: needs.groups.clone(),
        on_three_and_four: false,
    };
    let mut command = Command::new(needs.parent.own);
    command.args(["load", "errand", &words(&Errand::Program(Box::new(this)))?]).env(change::cgroup::MARK, "1");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    sys::child::dies_with_us(&mut command, rustix::process::Signal::KILL);
    command.spawn().map_err(|error| failed(format!("the compiler cannot be started: {error}")))
}

/// What it calls itself.
fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("of unknown version").trim().to_owned()
}

fn named(compiler: Compiler, unit: u32) -> (String, u32) {
    let extension = if compiler == Compiler::Rust { "rs" } else { "c" };
    (format!("unit{unit}.{extension}"), unit)
}

/// A file's name and text: functions of loops, branches and tables, each a little different, as a kernel's are.
fn source(compiler: Compiler, unit: u32) -> (String, String) {
    let (name, _) = named(compiler, unit);
    let mut text = String::new();
    for function in 0..FUNCTIONS {
        let (a, b, c) = (unit % 13 + 3, function % 7 + 2, (unit * 31 + function * 17) % 251 + 1);
        // Writing to a string does not fail.
        let _ = match compiler {
            Compiler::Rust => write!(
                text,
                "pub fn f{unit}_{function}(data: &mut [u32], n: u32) -> u32 {{\n    let mut sum = {c}u32;\n    for i in 0..n.min(data.len() as u32) {{\n        \
                 let x = data[i as usize];\n        sum = match x % {a} {{ 0 => sum.wrapping_mul(x | 1), 1 => sum.rotate_left({b}), 2 => sum ^ (x << {b}), _ => sum.wrapping_add(x / {a}) }};\n        \
                 data[i as usize] = sum;\n        if sum > {c}000 {{ data.iter().step_by({b}).for_each(|v| sum = sum.wrapping_add(*v)) }}\n    }}\n    sum\n}}\n"
            ),
            _ => write!(
                text,
                "unsigned f{unit}_{function}(unsigned *data, unsigned n) {{\n  unsigned sum = {c}u, i, k;\n  for (i = 0; i < n; i++) {{\n    unsigned x = data[i];\n    \
                 switch (x % {a}) {{ case 0: sum *= x | 1; break; case 1: sum = (sum << {b}) | (sum >> (32 - {b})); break; case 2: sum ^= x << {b}; break; default: sum += x / {a}; }}\n    \
                 data[i] = sum;\n    if (sum > {c}000u) for (k = 0; k < n; k += {b}) sum += data[k];\n  }}\n  return sum;\n}}\n"
            ),
        };
    }
    (name, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_differ_and_a_mix_makes_an_object() {
        let texts = [Compiler::C, Compiler::Rust].map(|compiler| source(compiler, 1));
        assert_eq!([&*texts[0].0, &*texts[1].0], ["unit1.c", "unit1.rs"]);
        assert_ne!(source(Compiler::C, 1).1, source(Compiler::C, 2).1);
        let dir = tempfile::tempdir().unwrap();
        let this = Mixed { source: dir.path().join("a.c"), object: dir.path().join("a.o") };
        std::fs::write(&this.source, &texts[0].1).unwrap();
        mix(&this).unwrap();
        assert!(std::fs::metadata(&this.object).unwrap().len() >= 100 << 10);
    }
}
