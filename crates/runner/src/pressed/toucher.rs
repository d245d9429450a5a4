//! The process whose memory is short: it joins its cgroups before it takes any memory, fills its region, touches it as the job
//! says, and tells what it sees, a line of JSON at a time, on its standard output. It is this program again, so that the
//! measuring process itself stays outside of the limit. It ends when its standard input does.

use super::ballast::Errand;
use super::paged::Paging;
use super::watched::Watcher;
use super::{Heard, lay, weights};
use crate::RunError;
use basics::curve::Watched;
use basics::decoding::Lay;
use basics::desktop::{Browsed, Built};
use basics::pressure::{Paged, Work};
use basics::{Bytes, EngineUse, Interval, Job, Latencies, Nanos, Side};
use engine::{Control, Ended, Outcome};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::region::Region;

/// How often the starting process looks whether it is interrupted.
const LOOK: Duration = Duration::from_millis(50);
/// A process that waits for a slow disk ends when its page has come; after so long it is ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// What such a process is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// How its memory is touched, and for how long.
    pub job: Job,
    /// How much of it there is.
    pub size: Bytes,
    /// The groups that it joins first.
    pub groups: Vec<PathBuf>,
    /// What it does with its memory.
    #[serde(default)]
    pub work: Work,
    /// Where mapped weights are.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// It is watched for its memory curve.
    #[serde(default)]
    pub watched: bool,
    /// The pager is beside it.
    #[serde(default)]
    pub pager: bool,
}

/// What it tells.
#[derive(Debug, Serialize, Deserialize)]
enum Told {
    /// So much is filled.
    Filling(Bytes),
    /// All is filled, after so long.
    Filled(Nanos),
    /// An interval of the measurement.
    Interval(Box<Interval>),
    /// All is done.
    Done(Box<Account>),
    /// It could not be done.
    Failed(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct Account {
    engine: EngineUse,
    ended: Why,
    elapsed: Nanos,
    read: Side,
    write: Side,
    faults: Latencies,
    cpu_user: Nanos,
    cpu_system: Nanos,
    notes: Vec<String>,
    /// When each token was there.
    #[serde(default)]
    tokens: Vec<Nanos>,
    /// CPU time that its threads spent on weights.
    #[serde(default)]
    busy: Option<Nanos>,
}

/// What ends the touching of memory.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Why {
    Time,
    Bytes,
    Operations,
    Confidence,
    Cancelled,
}

/// Does the task, in the process that was started for it. What is wrong with the task itself is told to who listens.
pub(super) fn serve(task: &Task, out: &mut (impl Write + Send)) -> io::Result<()> {
    let out = Mutex::new(out);
    let tell = |told: &Told| -> io::Result<()> {
        let mut line = serde_json::to_vec(told)?;
        line.push(b'\n');
        let mut out = out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        out.write_all(&line)?;
        out.flush()
    };
    let cancel = Arc::new(AtomicBool::new(false));
    let listener = Arc::clone(&cancel);
    let end = std::thread::spawn(move || {
        let _ = io::stdin().read(&mut [0]);
        listener.store(true, Relaxed);
    });
    match perform(task, &cancel, &tell, end) {
        Ok(()) => Ok(()),
        Err(sentence) => tell(&Told::Failed(sentence)),
    }
}

fn perform(
    task: &Task,
    cancel: &AtomicBool,
    tell: &dyn Fn(&Told) -> io::Result<()>,
    end: JoinHandle<()>,
) -> Result<(), String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    change::cgroup::join(&task.groups).map_err(|error| format!("the memory cgroup cannot be joined: {error}"))?;
    // Whoever is short of memory, this process is what the kernel should end.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let locked = sys::region::lock_everything_else();
    let begun = Instant::now();
    let filling = |done| drop(tell(&Told::Filling(done)));
    let filled = || tell(&Told::Filled(begun.elapsed().into())).map_err(|error| said(&error));
    let mut sink = |interval: &Interval| drop(tell(&Told::Interval(Box::new(interval.clone()))));
    // Until the end: where its pages lie is looked at when all is done.
    let (touched, weights, cache);
    let mut account = match &task.work {
        Work::Touch => {
            touched = region(task.size)?;
            let again = !task.job.direction.writes();
            if !engine::fill(&task.job, &touched, again, cancel, filling).map_err(|error| said(&error))? {
                return tell(&Told::Done(Box::new(Account::cancelled()))).map_err(|error| said(&error));
            }
            filled()?;
            let target = engine::Target::Touched { region: &touched };
            let outcome = engine::run(&task.job, target, &Control::new(cancel), &mut sink);
            Account::of(outcome.map_err(|error| said(&error))?)?
        }
        Work::Serve(_) | Work::Browse(_) | Work::Build(_) => {
            return Err("another program's work is another errand".to_owned());
        }
        Work::Decode(decoding) => {
            let cancelled = || tell(&Told::Done(Box::new(Account::cancelled()))).map_err(|error| said(&error));
            let Some(made) = weights::make(decoding, task, cancel, filling)? else { return cancelled() };
            let Some(room) = weights::cache(decoding, cancel)? else { return cancelled() };
            (weights, cache) = (made, room);
            filled()?;
            let decoded = engine::decode(decoding, &task.job, (&weights, &cache), &Control::new(cancel), &mut sink);
            let decoded = decoded.map_err(|error| said(&error))?;
            Account { tokens: decoded.tokens, busy: Some(decoded.busy), ..Account::of(decoded.outcome)? }
        }
    };
    if !locked {
        let sentence = "the measuring process's own memory could not be locked, so some faults may be its own";
        account.notes.push(sentence.to_owned());
    }
    tell(&Told::Done(Box::new(account))).map_err(|error| said(&error))?;
    // Its memory stays until it was seen where it lies.
    let _ = end.join();
    Ok(())
}

/// So much memory, untouched.
pub(super) fn region(size: Bytes) -> Result<Region, String> {
    let bytes = usize::try_from(size.0).map_err(|_| format!("{size} do not fit this machine's addresses"))?;
    Region::new(bytes).map_err(|error| format!("{size} of memory cannot be had: {error}"))
}

impl Account {
    fn of(outcome: Outcome) -> Result<Self, String> {
        let Outcome { engine, elapsed, read, write, faults, cpu_user, cpu_system, notes, .. } = outcome;
        let ended = match outcome.ended {
            Ended::Time => Why::Time,
            Ended::Bytes => Why::Bytes,
            Ended::Operations => Why::Operations,
            Ended::Confidence => Why::Confidence,
            Ended::Cancelled => Why::Cancelled,
            Ended::Failed { what, .. } => return Err(format!("{what} of memory failed")),
            Ended::Refused { said } => return Err(said),
            Ended::Astray { .. } => return Err("memory held something else than what was stored".to_owned()),
        };
        Ok(Account {
            engine,
            ended,
            elapsed,
            read,
            write,
            faults,
            cpu_user,
            cpu_system,
            notes,
            tokens: Vec::new(),
            busy: None,
        })
    }

    fn cancelled() -> Self {
        let engine = EngineUse {
            asked: basics::job::Engine::Touch,
            used: basics::job::Engine::Touch,
            why: String::new(),
            dropped: Vec::new(),
        };
        let (read, write, faults) = (Side::default(), Side::default(), Latencies::lazy());
        let zero = Nanos(0);
        let (elapsed, cpu_user, cpu_system) = (zero, zero, zero);
        Account {
            engine,
            ended: Why::Cancelled,
            elapsed,
            read,
            write,
            faults,
            cpu_user,
            cpu_system,
            notes: Vec::new(),
            tokens: Vec::new(),
            busy: None,
        }
    }

    fn outcome(self) -> Outcome {
        let Account { engine, elapsed, read, write, faults, cpu_user, cpu_system, notes, .. } = self;
        let ended = match self.ended {
            Why::Time => Ended::Time,
            Why::Bytes => Ended::Bytes,
            Why::Operations => Ended::Operations,
            Why::Confidence => Ended::Confidence,
            Why::Cancelled => Ended::Cancelled,
        };
        let (each, slowest, began) = (Vec::new(), Vec::new(), 0);
        Outcome {
            engine,
            ended,
            elapsed,
            read,
            write,
            faults,
            cpu_user,
            cpu_system,
            each,
            slowest,
            commands: Vec::new(),
            began,
            notes,
        }
    }
}

/// Whoever is told while a task is done.
pub(crate) trait Listener {
    /// Something was done.
    fn heard(&mut self, heard: Heard<'_>);
    /// It is done, and its memory is still there.
    fn done(&mut self);
    /// A reason to end it before its time, asked for every 50 ms.
    fn enough(&mut self) -> Option<String>;
    /// Whether the kernel killed for want of memory meanwhile.
    fn was_killed(&self) -> bool;
}

/// What came of a task.
pub(crate) struct Touched {
    pub outcome: Outcome,
    /// How long filling took.
    pub filled: Option<Nanos>,
    /// Of a model: when each token was there.
    pub tokens: Vec<Nanos>,
    /// Tokens of the prompt and the time that they took, as a runner says.
    pub prompt: Option<(u32, Nanos)>,
    /// CPU time that its threads spent on weights.
    pub busy: Option<Nanos>,
    /// Where its bytes were, once they were filled.
    pub lay: Vec<Lay>,
    /// What the pager did for it.
    pub paged: Option<Paged>,
    /// What its memory curve stands on, where it was watched for it.
    pub watched: Option<Watched>,
    /// Why it was ended before its time.
    pub ended_early: Option<String>,
    /// Of a browser.
    pub browsed: Option<Browsed>,
    /// Of a compilation.
    pub built: Option<Built>,
}

/// How a task went wrong.
pub(crate) enum Trouble {
    /// It was killed, with so much of its memory filled.
    Killed(Bytes),
    /// Anything else.
    Failed(RunError),
}

/// Has the task done by `program` and listens until its end, or until `cancel` is set.
pub(crate) fn run(
    program: &Path,
    task: &Task,
    cancel: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Touched, Trouble> {
    let failed = |what: String| Trouble::Failed(RunError::Load { what });
    let words =
        serde_json::to_string(&Errand::Touch(Box::new(task.clone()))).map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(["load", "errand", &words]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command.env(change::cgroup::MARK, "1");
    // Ctrl-C at a terminal is for the measuring process alone, which then ends this one.
    command.process_group(0);
    sys::child::dies_with_us(&mut command, rustix::process::Signal::KILL);
    let mut child =
        command.spawn().map_err(|error| failed(format!("{} cannot be started: {error}", program.display())))?;
    let lines = listen(&mut child);
    let mut end = End { input: child.stdin.take(), since: None };
    let (mut filled, mut filling, mut ended_early) = (None, Bytes(0), None);
    let mut watch = lay::Watch::default();
    let mut watcher = None;
    let mut paging = None;
    loop {
        watch.look(child.id());
        if ended_early.is_none() && !cancel.load(Relaxed) {
            ended_early = listener.enough();
        }
        if ended_early.is_some() || cancel.load(Relaxed) {
            end.ask(&mut child);
        }
        let told = match lines.recv_timeout(LOOK) {
            Ok(told) => told,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                let status = wait(&mut child);
                if let Some(why) = ended_early {
                    return Err(Trouble::Failed(RunError::Watchdog { why }));
                }
                if cancel.load(Relaxed) {
                    return Err(Trouble::Failed(RunError::Interrupted));
                }
                return Err(match status {
                    Some(status) if is_killed(&status) => Trouble::Killed(filling),
                    status => failed(format!(
                        "the process that touches memory ended without a word ({})",
                        status.map_or_else(|| "unknown".to_owned(), |status| status.to_string())
                    )),
                });
            }
        };
        match told {
            Told::Filling(done) => {
                filling = done;
                listener.heard(Heard::Filling(done));
            }
            Told::Filled(time) => {
                filled = Some(time);
                watch.begin();
                watcher = task.watched.then(|| Watcher::of(child.id()));
                paging = task.pager.then(|| Paging::of(program, child.id()));
            }
            Told::Interval(interval) => listener.heard(Heard::Interval(&interval)),
            Told::Done(account) => {
                let watched = watcher.map(Watcher::end);
                let paged = paging.map(Paging::end);
                listener.done();
                let (tokens, busy) = (account.tokens.clone(), account.busy);
                end.ask(&mut child);
                wait(&mut child);
                let (outcome, lay) = (account.outcome(), watch.seen);
                return Ok(Touched {
                    outcome,
                    filled,
                    tokens,
                    prompt: None,
                    busy,
                    lay,
                    watched,
                    paged,
                    ended_early,
                    browsed: None,
                    built: None,
                });
            }
            Told::Failed(what) => {
                wait(&mut child);
                return Err(failed(what));
            }
        }
    }
}

/// The lines of the child, parsed, from a thread of their own.
fn listen(child: &mut Child) -> Receiver<Told> {
    let (sender, lines) = channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Whoever does not listen any more, or says something else, has ended.
                let Ok(told) = serde_json::from_str(&line) else { return };
                if sender.send(told).is_err() {
                    return;
                }
            }
        });
    }
    lines
}

/// Asks the child to end, and ends it when it does not.
struct End {
    input: Option<ChildStdin>,
    since: Option<Instant>,
}

impl End {
    fn ask(&mut self, child: &mut Child) {
        drop(self.input.take());
        if self.since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            let _ = child.kill();
        }
    }
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    child.wait().ok()
}

fn is_killed(status: &ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(rustix::process::Signal::KILL.as_raw())
}
