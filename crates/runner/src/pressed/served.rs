//! A real runner of models under pressure: started in the cgroup, asked on loopback by this process, which stays outside, and
//! ended with all that it started. Its tokens are told as they come.

use super::Heard;
use super::ballast::Errand;
use super::lay;
use super::paged::Paging;
use super::toucher::{Listener, Touched, Trouble};
use super::watched::Watcher;
use crate::RunError;
use basics::curve::Watched;
use basics::decoding::{Server, Serving, Source};
use basics::pressure::Paged;
use basics::{Interval, Job, Nanos, Side, job};
use change::{Folder, Helper, Journal};
use engine::Ended;
use llm::{Blob, Client, Generation, LlmError, Prompt, Runner, Serves, Setup, Start};
use serde::{Deserialize, Serialize};
use std::io;
use std::num::NonZeroU32;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// Until it answers that it is there: its program may come from the slowest of cards.
const READY: Duration = Duration::from_secs(120);
/// The longest silence between two tokens: on a slow card one takes minutes.
const PATIENCE: Duration = Duration::from_secs(3600);
/// For a runner that is not ours to put its model away.
const GOODBYE: Duration = Duration::from_secs(5);
/// Looked at for what it wrote last before it ended.
const LOG: &str = "log";

/// What a process becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Become {
    command: llm::Command,
    /// The groups that it joins first.
    groups: Vec<PathBuf>,
}

/// Becomes it; returns only when that cannot be.
pub(super) fn become_it(this: &Become) -> io::Error {
    if let Err(error) = change::cgroup::join(&this.groups) {
        return error;
    }
    // Whoever is short of memory, this is what the kernel should end.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    this.command.to_std().env(change::cgroup::MARK, "1").exec()
}

/// What starting one needs.
pub(super) struct Needs<'a> {
    pub journal: &'a Journal,
    pub run: &'a str,
    pub program: &'a Path,
    pub groups: Vec<PathBuf>,
    /// It is watched for its memory curve.
    pub watched: bool,
    /// The pager is beside it.
    pub pager: bool,
}

/// What is heard from the thread that asks.
enum Event {
    /// It could take a prompt, after so long, where that was seen; the prompt is given.
    Loaded(Option<Nanos>),
    /// A token came, so long after that.
    Token(Nanos),
    /// It is over.
    Over(Box<Result<Generation, LlmError>>),
}

fn failed(what: impl std::fmt::Display) -> RunError {
    RunError::Load { what: what.to_string() }
}

/// Has it make its tokens.
pub(super) fn run(
    serving: &Serving,
    job: &Job,
    needs: &Needs<'_>,
    cancel: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Touched, Trouble> {
    let trouble = |error: RunError| Trouble::Failed(error);
    let mut process = Process::of(serving, needs, cancel).map_err(trouble)?;
    let enough = AtomicBool::new(false);
    let (sender, events) = channel();
    let (client, blob) = (process.client.clone(), process.blob.take());
    let mut seen = Seen::new(serving, job.interval);
    seen.paging = needs.pager.then(|| Paging::of(needs.program, process.pid));
    let result = std::thread::scope(|scope| {
        let (enough, loads) = (&enough, matches!(serving.server, Server::Ollama));
        let (pid, there) = (process.pid, process.started.is_none());
        scope.spawn(move || {
            let over = |result| drop(sender.send(Event::Over(Box::new(result))));
            let loaded = (|| {
                let mut alive = || lay::is_alive(pid);
                // llama-server answers once it has loaded, from a slow tier after minutes; Ollama at once.
                let patience = if loads { READY } else { PATIENCE / 2 };
                let ready = client.wait_until_ready(patience, enough, &mut alive)?;
                if let Some(blob) = &blob {
                    client.add_model(blob, enough)?;
                }
                if there {
                    // Loaded anew, as each row's is, and not with what others asked of it.
                    client.unload(enough)?;
                }
                let load = client.load(enough)?;
                Ok(if loads { load } else { (!there).then_some(ready) })
            })();
            match loaded {
                Err(error) => over(Err(error)),
                Ok(time) => {
                    let _ = sender.send(Event::Loaded(time));
                    let prompt = prompt(serving, job.seed);
                    over(client.generate(&prompt, enough, &mut |at| drop(sender.send(Event::Token(at)))));
                }
            }
        });
        loop {
            if seen.ended_early.is_none() && !cancel.load(Relaxed) {
                seen.ended_early = listener.enough();
            }
            if seen.ended_early.is_some() || cancel.load(Relaxed) {
                enough.store(true, Relaxed);
            }
            let time_is_up = job
                .stop
                .time
                .is_some_and(|time| seen.begun.is_some_and(|begun| begun.elapsed() >= Duration::from_nanos(time.0)));
            if time_is_up {
                enough.store(true, Relaxed);
            }
            seen.watch.look(process.pid);
            match events.recv_timeout(LOOK) {
                Ok(Event::Over(result)) => {
                    seen.watched = seen.watcher.take().map(Watcher::end);
                    seen.paged = seen.paging.take().map(Paging::end);
                    listener.done();
                    return *result;
                }
                Ok(event) => {
                    if needs.watched && matches!(event, Event::Loaded(_)) {
                        // It may have a child that holds the weights.
                        seen.watcher = Some(Watcher::of(lay::largest(process.pid)));
                    }
                    seen.hear(event);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(LlmError::Cancelled),
            }
            seen.interval(listener, false);
        }
    });
    seen.interval(listener, true);
    let log = process.log();
    let kept = seen.watch.most();
    if process.started.is_none() {
        // What it was told to keep is put away again; one that does not answer lets it go by itself.
        let _ = process.client.with_patience(GOODBYE).unload(&AtomicBool::new(false));
    }
    process.end(seen.ended_early.is_some() || cancel.load(Relaxed));
    match result {
        Ok(generation) => Ok(seen.touched(job, Some(generation), cancel)),
        // What was made until it was ended counts.
        Err(LlmError::Cancelled) if seen.tokens.len() > 1 => Ok(seen.touched(job, None, cancel)),
        Err(LlmError::Cancelled) => Err(Trouble::Failed(match seen.ended_early {
            Some(why) => RunError::Watchdog { why },
            None if cancel.load(Relaxed) => RunError::Interrupted,
            None => failed("not two tokens were made in the time; give --runtime more"),
        })),
        // Ended in the middle: by the kernel for want of memory, perhaps.
        Err(error @ (LlmError::Broke { .. } | LlmError::Gone { .. })) => {
            if listener.was_killed() {
                return Err(Trouble::Killed(kept));
            }
            Err(trouble(failed(with(error, &log))))
        }
        Err(error) if listener.was_killed() => {
            tracing::debug!("{error}");
            Err(Trouble::Killed(kept))
        }
        Err(error) => Err(trouble(failed(with(error, &log)))),
    }
}

/// Has the page cache let go of a file.
fn forget(path: &Path) {
    if let Ok(file) = std::fs::File::open(path) {
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
}

/// What it wrote last says more than that it ended: its last line of an error, or its last.
fn with(error: LlmError, log: &str) -> String {
    let written = || log.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    match written().find(|line| line.contains("rror")).or_else(|| written().next()) {
        Some(line) => format!("{error}; it wrote: {line}"),
        None => error.to_string(),
    }
}

fn prompt(serving: &Serving, seed: u64) -> Prompt {
    Prompt {
        text: serving.prompt.clone(),
        tokens: NonZeroU32::new(serving.tokens).unwrap_or(NonZeroU32::MIN),
        seed: seed as u32,
        varied: serving.random,
    }
}

/// A runner.
struct Process {
    pid: u32,
    client: Client,
    blob: Option<Blob>,
    /// Where it is ours.
    started: Option<Started>,
}

/// What is left of one that was started, until it is ended.
struct Started {
    child: Child,
    helper: Option<Helper>,
    folder: Folder,
}

impl Process {
    fn of(serving: &Serving, needs: &Needs<'_>, cancel: &AtomicBool) -> Result<Self, RunError> {
        let setup = Setup { context: serving.context, threads: serving.threads, mmap: serving.mapped };
        let runner = match serving.server {
            Server::Ollama => Runner::Ollama,
            Server::LlamaServer => Runner::LlamaServer,
        };
        let Source::Running { addr, name } = &serving.source else {
            return Process::start(serving, (runner, setup), needs, cancel);
        };
        let nobody =
            || failed(format!("no process of this machine is seen to listen at {addr}; start the runner there"));
        let pid = observe::listener(*addr).ok_or_else(nobody)?;
        let client = Client::new(runner, *addr, name, setup, PATIENCE).map_err(failed)?;
        Ok(Process { pid, client, blob: None, started: None })
    }

    fn start(
        serving: &Serving,
        (runner, setup): (Runner, Setup),
        needs: &Needs<'_>,
        cancel: &AtomicBool,
    ) -> Result<Self, RunError> {
        let beside = match &serving.source {
            Source::File(file) => file.parent().map(Path::to_owned),
            Source::Folder { .. } | Source::Running { .. } => None,
        };
        // Beside the model, so that its file need not be copied; where that cannot be, where there is room for what is for a while.
        let beside = beside.and_then(|dir| Folder::make(needs.journal, needs.run, &dir).ok());
        let folder = match beside {
            Some(folder) => folder,
            // Not /tmp, which is RAM on many a machine: a copy of the model there would be outside of the limit.
            None => Folder::make(needs.journal, needs.run, Path::new("/var/tmp"))?,
        };
        let (serves, name, blob) = match (runner, &serving.source) {
            (Runner::Ollama, Source::File(file)) => {
                let models = folder.path().join("models");
                std::fs::create_dir(&models).map_err(failed)?;
                let blob = Blob::place(&models, file, cancel).map_err(|error| match error {
                    LlmError::Cancelled => RunError::Interrupted,
                    error => failed(error),
                })?;
                // What was read of it here would be found there without the limit's leave.
                forget(&blob.path);
                (Serves::Ollama { models }, "tiermark".to_owned(), Some(blob))
            }
            (Runner::Ollama, Source::Folder { models, name }) => {
                (Serves::Ollama { models: models.clone() }, name.clone(), None)
            }
            (Runner::LlamaServer, Source::File(file)) => {
                (Serves::LlamaServer { model: file.clone() }, serving.model.clone(), None)
            }
            (Runner::LlamaServer, Source::Folder { .. }) => {
                return Err(failed("llama-server knows no models by name; give a GGUF's path"));
            }
            (_, Source::Running { .. }) => return Err(failed("a runner that runs already is not started")),
        };
        let port = llm::free_port().map_err(failed)?;
        let program = serving.program.clone().ok_or_else(|| failed(format!("{runner}'s program is not said")))?;
        let what = program.to_string_lossy().into_owned();
        let start = Start { program, port, home: folder.path().to_owned(), serves, setup };
        let addr = start.addr();
        let client = Client::new(runner, addr, &name, setup, PATIENCE).map_err(failed)?;
        let this = Become { command: start.command().map_err(failed)?, groups: needs.groups.clone() };
        let words = serde_json::to_string(&Errand::Become(Box::new(this))).map_err(failed)?;
        let log = std::fs::File::create(folder.path().join(LOG)).map_err(failed)?;
        let mut command = Command::new(needs.program);
        command.args(["load", "errand", &words]).stdin(Stdio::null());
        command.env(change::cgroup::MARK, "1");
        command.stdout(log.try_clone().map_err(failed)?).stderr(log);
        // Ctrl-C at a terminal is for the measuring process alone, which then ends this one.
        command.process_group(0);
        // Asked, not killed: it has a child of its own to end.
        sys::child::dies_with_us(&mut command, rustix::process::Signal::TERM);
        let child = command.spawn().map_err(|error| failed(format!("{runner} cannot be started: {error}")))?;
        let pid = child.id();
        // From here on a return drops it, and so ends it.
        let mut process = Process { pid, client, blob, started: Some(Started { child, helper: None, folder }) };
        let helper = Helper::of(needs.journal, needs.run, pid, &what)?;
        if let Some(started) = &mut process.started {
            started.helper = Some(helper);
        }
        Ok(process)
    }

    /// What it wrote, the end of it; nothing of one that was not started here.
    fn log(&self) -> String {
        let path = self.started.as_ref().map(|started| started.folder.path().join(LOG));
        path.and_then(|path| std::fs::read(path).ok()).map_or_else(String::new, |bytes| {
            String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(64 << 10)..]).into_owned()
        })
    }

    /// With its group, which is its own: what it started is there too.
    fn end(&mut self, at_once: bool) {
        let Some(Started { mut child, helper, folder }) = self.started.take() else { return };
        // Asked first, so that it ends what it started, unless it cannot be waited for.
        let helper = helper.filter(|_| at_once);
        if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = child.wait();
        drop((helper, folder));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end(false);
    }
}

/// What was seen until now.
struct Seen {
    touched: u64,
    load: Option<Nanos>,
    begun: Option<Instant>,
    tokens: Vec<Nanos>,
    told: usize,
    open: Interval,
    width: Nanos,
    all: Side,
    watch: lay::Watch,
    watcher: Option<Watcher>,
    paging: Option<Paging>,
    paged: Option<Paged>,
    watched: Option<Watched>,
    ended_early: Option<String>,
}

impl Seen {
    fn new(serving: &Serving, width: Nanos) -> Self {
        Seen {
            touched: serving.touched.map_or(0, |bytes| bytes.0),
            load: None,
            begun: None,
            tokens: Vec::new(),
            told: 0,
            open: Interval::default(),
            width,
            all: Side::default(),
            watch: lay::Watch::default(),
            watcher: None,
            paging: None,
            paged: None,
            watched: None,
            ended_early: None,
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Loaded(time) => {
                (self.load, self.begun) = (time, Some(Instant::now()));
                self.watch.begin();
            }
            Event::Token(at) => self.tokens.push(at),
            Event::Over(_) => {}
        }
    }

    /// Tells what came since the last time, once that is long enough.
    fn interval(&mut self, listener: &mut dyn Listener, last: bool) {
        let Some(begun) = self.begun else { return };
        let now = Nanos::from(begun.elapsed());
        if !last && now - self.open.start < self.width {
            return;
        }
        for index in self.told..self.tokens.len() {
            let before = index.checked_sub(1).map_or(Nanos(0), |before| self.tokens[before]);
            self.open.read.latency.record(Nanos(self.tokens[index].0.saturating_sub(before.0)));
            self.open.read.bytes += self.touched;
        }
        self.told = self.tokens.len();
        self.open.end = now;
        self.all.merge(&self.open.read);
        listener.heard(Heard::Interval(&self.open));
        self.open = Interval { start: now, ..Interval::default() };
    }

    fn touched(self, job: &Job, generation: Option<Generation>, cancel: &AtomicBool) -> Touched {
        let mut notes = Vec::new();
        if let Some(ended) = generation.as_ref().map(|all| all.ended).filter(|ended| *ended != llm::Ended::Asked) {
            let why = match ended {
                llm::Ended::OwnEnd => "the model ended its text",
                llm::Ended::Repeats => "the runner ended a text of equal tokens",
                _ => "the runner ended without a word",
            };
            notes.push(format!("{why} after {} of {} tokens", self.tokens.len(), job.stop.operations.unwrap_or(0)));
        }
        let account = generation.as_ref().and_then(|all| all.account);
        if let Some(account) = account.filter(|account| account.tokens > self.tokens.len() as u64 + 1) {
            let (counted, came) = (account.tokens, self.tokens.len());
            notes.push(format!(
                "the runner counts {counted} tokens, of which {came} came as text: the rate is of those"
            ));
        }
        let ended = match &generation {
            Some(_) => Ended::Operations,
            None if cancel.load(Relaxed) => Ended::Cancelled,
            None => Ended::Time,
        };
        let engine = (job::Engine::Served, "a runner of models makes the tokens");
        let outcome = super::program::outcome(job, engine, (ended, self.open.start), self.all, notes);
        let prompt = account.map(|account| (account.prompt_tokens as u32, account.prompt_time));
        Touched {
            prompt,
            outcome,
            filled: self.load,
            tokens: self.tokens,
            busy: None,
            lay: self.watch.seen,
            paged: self.paged,
            watched: self.watched,
            ended_early: self.ended_early,
            browsed: None,
            built: None,
        }
    }
}
