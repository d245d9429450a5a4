//! `tiermark pager`: the next pages of a program, kept ahead of it; and its bench, against the plain kernel.

mod bench;

use crate::cli::{PagerArgs, PagerVerb};
use crate::context::{self, Context};
use crate::exit::{self, Missing, Usage};
use crate::out;
use anyhow::Result;
use exposition::Server;
use exposition::text::{Family, write};
use pager::{Mode, Pager, Standing};
use serde_json::{Value, json};
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const SCHEMA: &str = "tiermark.pager/1";
/// Between two lines.
const LINES: Duration = Duration::from_millis(1000);

/// Helps a program until it ends, or measures what that brings.
pub fn pager(context: &Context, args: &PagerArgs) -> Result<ExitCode> {
    if let Some(PagerVerb::Bench(args)) = &args.action {
        return bench::bench(context, args);
    }
    if let Some(pid) = args.hand {
        pager::serve(pid, std::io::stdin().lock())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.after {
        pager::after(std::io::stdin().lock())?;
        return Ok(ExitCode::SUCCESS);
    }
    let interrupted = context::interrupted()?;
    // Before a program is started: what cannot be served is told then.
    let metrics = args.metrics.as_deref().map(Metrics::serve).transpose()?;
    let mut child = None;
    let pid = match (&args.pid, &args.name, args.command.split_first()) {
        (Some(pid), None, None) => *pid,
        (None, Some(name), None) => named(name)?,
        (None, None, Some((program, words))) => {
            let started = Command::new(program).args(words).spawn();
            let started = started.map_err(|error| Missing(format!("{program} cannot be started: {error}")))?;
            child.insert(started).id()
        }
        _ => return Err(Usage("which program? give --pid P, --name NAME, or -- COMMAND…".to_owned()).into()),
    };
    let begun = Instant::now();
    let mut pager = match Pager::of(pid, std::env::current_exe().ok()) {
        Ok(pager) => pager,
        Err(error) => {
            let sentence = match error.kind() {
                ErrorKind::NotFound => format!("there is no process {pid} that has memory of its own"),
                _ => format!("process {pid} cannot be helped: {error}"),
            };
            let Some(mut child) = child else { return Err(Missing(sentence).into()) };
            // It runs, and is none the worse for that.
            if !matches!(child.try_wait(), Ok(Some(_))) {
                out::say(&sentence);
            }
            return wait(&mut child, &interrupted);
        }
    };
    prepare();
    let mut live = args.live || context.json;
    let mut terminal = std::io::stderr().is_terminal() && !context.json && !args.live;
    let mut told = Instant::now();
    while !interrupted.load(Relaxed) {
        let Some(wait) = pager.step() else { break };
        if told.elapsed() >= LINES && (live || terminal || metrics.is_some()) {
            told = Instant::now();
            metrics.iter().for_each(|metrics| metrics.renew(&pager));
            if (live || terminal)
                && let Err(error) = tell(context, &pager, begun, terminal)
            {
                // Nobody reads it any more: the program goes on, and is helped on.
                if child.is_none() {
                    return Err(error);
                }
                (live, terminal) = (false, false);
            }
        }
        // One that has ended is no more than its status.
        if child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_)))) {
            break;
        }
        std::thread::sleep(wait);
    }
    if terminal {
        out::live("");
    }
    let Some(mut child) = child else {
        tell(context, &pager, begun, false)?;
        return Ok(if interrupted.load(Relaxed) { exit::interrupted() } else { ExitCode::SUCCESS });
    };
    let ended = wait(&mut child, &interrupted);
    // Its status counts, whoever reads this.
    let _ = tell(context, &pager, begun, false);
    ended
}

/// The page of its figures, which are made new when a line would be.
struct Metrics {
    families: Arc<Mutex<Vec<Family>>>,
    _server: Server,
}

impl Metrics {
    fn serve(at: &str) -> Result<Self> {
        let families = Arc::new(Mutex::new(exposition::pager::families(&[], 0.0)));
        let shown = Arc::clone(&families);
        let page = move |format| write(shown.lock().unwrap_or_else(PoisonError::into_inner).clone(), format);
        let server = Server::start(exposition::address(at)?, page)?;
        out::say(&format!("metrics at {}", server.url()));
        Ok(Metrics { families, _server: server })
    }

    fn renew(&self, pager: &Pager) {
        let now = exposition::pager::families(&pager.standings(), pager.cpu_time().as_secs_f64());
        *self.families.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

/// Its own memory is short last of all, and its turn comes first.
fn prepare() {
    use rustix::mm::{MlockAllFlags, mlockall};
    // Refused, it is no more than slower.
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
    let _ = rustix::process::nice(-15);
    sys::thread::sharpen_timers();
}

/// Waits for the program that was started and gives its status; told to end, tells it, and waits all the same.
fn wait(child: &mut Child, interrupted: &AtomicBool) -> Result<ExitCode> {
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            if interrupted.load(Relaxed) {
                return Ok(exit::interrupted());
            }
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
            return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
        }
        if interrupted.load(Relaxed) && !told {
            told = true;
            let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The process of this name: the oldest, whose children are helped with it.
fn named(name: &str) -> Result<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|word| word.parse::<u32>().ok()) else { continue };
        let comm = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        // The kernel keeps fifteen letters of it.
        if pid != std::process::id() && comm.trim_end().as_bytes() == &name.as_bytes()[..name.len().min(15)] {
            found.extend(sys::process::Identity::of(pid).ok().map(|identity| (identity.start_ticks, pid)));
        }
    }
    let oldest = found.into_iter().min();
    Ok(oldest.map(|(_, pid)| pid).ok_or_else(|| Missing(format!("no process is called {name:?}")))?)
}

fn document(pager: &Pager, begun: Instant) -> Value {
    json!({
        "schema": SCHEMA,
        "elapsed_s": begun.elapsed().as_secs_f64(),
        "cpu_s": pager.cpu_time().as_secs_f64(),
        "trouble": pager.trouble(),
        "processes": pager.standings(),
    })
}

fn tell(context: &Context, pager: &Pager, begun: Instant, over: bool) -> Result<()> {
    if context.json {
        return out::print_line(&document(pager, begun));
    }
    let line = match pager.standings().first() {
        Some(standing) => line(standing, pager.cpu_time(), begun),
        None => "it has ended".to_owned(),
    };
    if over {
        out::live(&line)
    } else {
        out::print(&format!("{line}\n"))?
    }
    Ok(())
}

fn line(standing: &Standing, cpu: Duration, begun: Instant) -> String {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let cpu = cpu.as_secs_f64() / begun.elapsed().as_secs_f64().max(1e-3) * 100.0;
    let what = match standing.mode {
        Mode::Watching => "it hardly waits for pages: watching".to_owned(),
        Mode::Learning => "learning its order".to_owned(),
        Mode::Resting => "no order in its faults: left alone".to_owned(),
        Mode::Following => format!(
            "at {:.0} % of {:.0} MB, {:.0} MB kept, {} units ahead, {:.2} s a lap (before: {:.2} s; {:.0} % of what the disk allows)",
            100.0 * standing.cursor,
            mb(standing.cycle_bytes),
            mb(standing.kept_bytes),
            standing.ahead_units,
            standing.lap_s,
            standing.lap_before_s,
            100.0 * standing.share_of_bound,
        ),
    };
    let faults = standing.faults_expected + standing.faults_unexpected;
    format!(
        "process {}: {what}; {:.0} of {:.0} MB/s brought in, {:.0} MB in all, {faults} faults left of {}, {cpu:.1} % CPU",
        standing.pid,
        standing.ahead_bytes_per_s / 1e6,
        standing.fastest_bytes_per_s / 1e6,
        mb(standing.ahead_bytes),
        faults + standing.faults_avoided,
    )
}
