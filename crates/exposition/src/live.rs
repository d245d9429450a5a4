//! The figures of a run as they stand: counted in by the runner's own thread at the end of each interval, asked of the server and
//! of the kernel once a second by threads of their own. No thread that makes load takes a lock or waits for any of this.

use crate::kernel::{self, Ticks};
use crate::load::{self, Cell, Requests};
use crate::redis;
use crate::text::{Family, Format, Kind, write};
use basics::plan::{Step, Target};
use basics::redis::Server;
use basics::{Bytes, Interval, Nanos, Plan};
use observe::{Observer, Sample};
use record::StepRecord;
use redisd::{Address, Control, Info, Spike};
use runner::Progress;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Between two questions.
const EVERY: Duration = Duration::from_secs(1);
/// An answer that is older says nothing of now: redis_exporter's patience is not much longer.
const FRESH: Duration = Duration::from_secs(5);

/// What is known now.
#[derive(Default)]
struct State {
    /// Of every cell that was loaded.
    cells: Vec<Requests>,
    /// The one whose turn it is.
    now: Option<Cell>,
    /// Visits so far, this one among them.
    visits: u64,
    /// Where its server answers.
    at: Option<Address>,
    server: Option<Server>,
    /// What it said last, and when.
    answer: Option<(Instant, Info, Vec<Spike>)>,
    kernel: Option<(Sample, Vec<Ticks>)>,
    cost: Cost,
}

/// CPU time that these figures take.
#[derive(Default)]
struct Cost {
    server: f64,
    kernel: f64,
    /// Of the kernel's threads that have ended.
    kernel_before: f64,
    page: f64,
}

/// The figures of a run, shared by who counts and who reads.
#[derive(Clone, Default)]
pub struct Live(Arc<Mutex<State>>);

impl Live {
    /// None yet.
    pub fn new() -> Self {
        Live::default()
    }

    /// As it stands between two changes, each of which is whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them as text.
    pub fn page(&self, format: Format) -> String {
        let begun = thread_cpu();
        let families = self.families();
        let text = write(families, format);
        self.state().cost.page += thread_cpu() - begun;
        text
    }

    fn families(&self) -> Vec<Family> {
        // What is copied under the lock is small; the text is written outside of it.
        let state = self.state();
        let (cells, now, visits) = (state.cells.clone(), state.now.clone(), state.visits);
        let answer = state.answer.as_ref().filter(|(when, ..)| when.elapsed() < FRESH);
        let answer = answer.map(|(_, info, spikes)| (info.clone(), spikes.clone()));
        let kernel = state.kernel.clone();
        let cost = [("redis", state.cost.server), ("kernel", state.cost.kernel), ("page", state.cost.page)];
        drop(state);
        let mut all = vec![redis::up(answer.is_some())];
        all.extend(answer.iter().flat_map(|(info, spikes)| redis::families(info, spikes)));
        if let Some((sample, ticks)) = &kernel {
            let named = ticks.iter().enumerate().map(|(cpu, ticks)| (cpu.to_string(), *ticks)).collect::<Vec<_>>();
            all.extend(kernel::families(sample, &named, rustix::param::clock_ticks_per_second() as f64));
        }
        all.extend(load::families(&cells));
        let mut cell = Family::new(Kind::Gauge, "tiermark_cell_info", "The cell whose server is loaded now.");
        cell = now.iter().fold(cell, |cell, now| cell.with(now.labels(&[]), 1.0));
        let visited = Family::new(Kind::Counter, "tiermark_visits_total", "Visits to cells, this one among them.");
        let mut spent =
            Family::new(Kind::Counter, "tiermark_metrics_cpu_seconds_total", "CPU time that these figures took.");
        for (by, seconds) in cost {
            spent = spent.with(vec![("of", by.to_owned())], seconds);
        }
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        let built = Family::new(Kind::Gauge, "tiermark_build_info", "Which tiermark it is.").with(version, 1.0);
        all.extend([cell, visited.with(vec![], visits as f64), spent, built]);
        all
    }
}

/// Asks the server while there is one, until nobody wants to know.
fn ask(state: &Weak<Mutex<State>>) {
    let mut open: Option<(Address, Control)> = None;
    while let Some(live) = state.upgrade().map(Live) {
        let at = live.state().at.clone();
        if open.as_ref().map(|(at, _)| at) != at.as_ref() {
            let server = live.state().server.clone();
            open = at.zip(server).and_then(|(at, server)| Some((at.clone(), Control::of(&server, &at).ok()?)));
        }
        if let Some((at, control)) = &mut open {
            // It may be long in coming: nothing is held meanwhile.
            let answer = control.info().map(|info| (info, control.latest().unwrap_or_default()));
            let mut state = live.state();
            // Of a server that is gone by now nothing is kept.
            if state.at.as_ref() == Some(at) {
                state.answer = answer.ok().map(|(info, spikes)| (Instant::now(), info, spikes));
            }
            let broken = state.answer.is_none();
            state.cost.server = thread_cpu();
            drop(state);
            if broken {
                open = None;
            }
        }
        drop(live);
        thread::park_timeout(EVERY);
    }
}

/// Watches the kernel and these disks.
fn watch(live: &Live, disks: &[String]) -> Option<Observer> {
    let weak = Arc::downgrade(&live.0);
    let stat = File::open("/proc/stat").ok();
    let observed = move |sample: Sample| {
        let Some(live) = weak.upgrade().map(Live) else { return };
        // A new reader begins at the file's start, where the last one did not leave it.
        let again = stat.as_ref().and_then(|mut file| std::io::Seek::rewind(&mut file).ok().map(|()| file));
        let ticks = again.map_or_else(Vec::new, |file| kernel::processors(BufReader::new(file)));
        let mut state = live.state();
        state.kernel = Some((sample, ticks));
        state.cost.kernel = state.cost.kernel_before + thread_cpu();
    };
    Observer::start(Path::new("/"), disks.to_vec(), Nanos::from(EVERY), observed).ok()
}

/// CPU time of the calling thread, in seconds.
fn thread_cpu() -> f64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Counts what a run tells, and hands it on.
pub struct Watched<'a> {
    live: Live,
    inner: &'a mut dyn Progress,
    /// The cell of each step.
    cells: Vec<Option<Cell>>,
    servers: Vec<Option<Server>>,
    /// Who asks the server.
    asker: Option<Thread>,
    observer: Option<Observer>,
}

impl<'a> Watched<'a> {
    /// Figures for `live` of the run that tells `inner`.
    pub fn new(live: Live, inner: &'a mut dyn Progress) -> Self {
        let weak = Arc::downgrade(&live.0);
        // It ends by itself when nobody holds the state any more. Without it there are no figures of the server.
        let asker = thread::Builder::new().name("metrics-ask".to_owned()).spawn(move || ask(&weak));
        let observer = watch(&live, &[]);
        let (cells, servers) = (Vec::new(), Vec::new());
        Watched { asker: asker.ok().map(|asker| asker.thread().clone()), live, inner, cells, servers, observer }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.live.state().at = None;
    }
}

impl Progress for Watched<'_> {
    fn begin(&mut self, plan: &Plan) {
        let cell = |step: &Step| match plan.targets.get(step.target) {
            Some(Target::Redis(server)) => Some(Cell {
                mode: server.mode.name().to_owned(),
                medium: server.medium.name(),
                payload: step.job.block.mean().0,
            }),
            _ => None,
        };
        self.cells = plan.steps.iter().map(cell).collect();
        let server = |step: &Step| match plan.targets.get(step.target) {
            Some(Target::Redis(server)) => Some((**server).clone()),
            _ => None,
        };
        self.servers = plan.steps.iter().map(server).collect();
        self.inner.begin(plan);
    }

    fn serving(&mut self, index: usize, step: &Step, at: &Address, disks: &[String]) {
        // The one before ends first, so that its last sample does not come after the new one's.
        drop(self.observer.take());
        let mut state = self.live.state();
        state.at = Some(at.clone());
        state.server = self.servers.get(index).cloned().flatten();
        state.answer = None;
        state.now = self.cells.get(index).cloned().flatten();
        state.visits += 1;
        state.cost.kernel_before = state.cost.kernel;
        drop(state);
        self.observer = watch(&self.live, disks);
        self.asker.iter().for_each(Thread::unpark);
        self.inner.serving(index, step, at, disks);
    }

    fn filling(&mut self, index: usize, step: &Step, done: Bytes, of: Bytes) {
        self.inner.filling(index, step, done, of);
    }

    fn measuring(&mut self, index: usize, step: &Step, elapsed: Nanos, interval: &Interval) {
        if let Some(cell) = self.cells.get(index).and_then(Option::as_ref) {
            let mut state = self.live.state();
            let known = state.cells.iter().position(|requests| requests.cell() == cell);
            let place = known.unwrap_or_else(|| {
                state.cells.push(Requests::of(cell.clone()));
                state.cells.len() - 1
            });
            state.cells[place].add(interval);
        }
        self.inner.measuring(index, step, elapsed, interval);
    }

    fn finished(&mut self, index: usize, record: &StepRecord) {
        let mut state = self.live.state();
        (state.at, state.answer, state.now) = (None, None, None);
        drop(state);
        self.inner.finished(index, record);
    }

    fn note(&mut self, text: &str) {
        self.inner.note(text);
    }

    fn end(&mut self) {
        self.inner.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::Job;
    use basics::job::Block;
    use basics::redis::{Link, Medium, Mode, Server};
    use runner::Silent;

    fn plan() -> Plan {
        let server = |mode| {
            Target::Redis(Box::new(Server {
                program: "/usr/bin/redis-server".into(),
                mode,
                medium: Medium::Directory("/mnt".into()),
                settings: std::collections::BTreeMap::new(),
                link: Link::Unix,
                connections: 1,
                pipeline: 1,
                keys: 1,
                expires: None,
                log: None,
                lose: None,
                commands: Default::default(),
                delay: None,
                every: None,
                cache: None,
            }))
        };
        let job = Job { block: Block::Fixed(Bytes(64)), ..Job::default() };
        let step = |target| Step {
            name: "s".to_owned(),
            tier: None,
            target,
            job: job.clone(),
            may_fail: true,
            before: vec![],
        };
        Plan {
            targets: vec![server(Mode::Rdb), server(Mode::AofAlways)],
            steps: vec![step(0), step(1), step(0)],
            ..Plan::default()
        }
    }

    #[test]
    fn visits_to_a_cell_add_up_and_cells_stand_apart() {
        let (live, plan) = (Live::new(), plan());
        let mut silent = Silent;
        let mut watched = Watched::new(live.clone(), &mut silent);
        watched.begin(&plan);
        let mut interval = Interval::default();
        interval.read.latency.record(Nanos(1000));
        let nowhere = Address::Unix("/nowhere/socket".into());
        for (index, step) in plan.steps.iter().enumerate() {
            watched.serving(index, step, &nowhere, &[]);
            watched.measuring(index, step, Nanos(1), &interval);
        }
        let page = live.page(Format::OpenMetrics);
        let total = |mode: &str| {
            let labels = format!("{{mode=\"{mode}\",medium=\"/mnt\",payload=\"64\",command=\"get\"}}");
            let line = page.lines().find_map(|line| line.strip_prefix(&format!("tiermark_requests_total{labels} ")));
            line.unwrap_or_else(|| panic!("{mode}: {page}")).to_owned()
        };
        assert_eq!((total("rdb").as_str(), total("aof-always").as_str()), ("2", "1"));
        assert!(page.contains("tiermark_cell_info{mode=\"rdb\""), "{page}");
        assert!(page.contains("tiermark_visits_total 3\n"), "{page}");
        // Nobody answers there, and that is all that is known of it.
        assert!(page.contains("redis_up 0\n") && !page.contains("redis_connected_clients"), "{page}");
        // This machine's processors, each by its number.
        assert!(page.contains("node_cpu_seconds_total{cpu=\"0\",mode=\"steal\"}"), "{page}");
        drop(watched);
        assert!(page.ends_with("# EOF\n"));
    }

    #[test]
    fn who_asks_ends_with_who_wants_to_know() {
        let live = Live::new();
        let weak = Arc::downgrade(&live.0);
        let asker = thread::spawn(move || ask(&weak));
        drop(live);
        asker.thread().unpark();
        asker.join().unwrap();
    }
}
