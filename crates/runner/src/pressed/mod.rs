//! A process under pressure: its swap set up, its memory limited, the process started, watched and asked what it saw, and all
//! of it taken away again. Everything that changes the machine is a `change`, in the order in which it can be undone.

mod area;
mod ballast;
mod behind;
mod browsed;
mod built;
mod lay;
mod paged;
mod pool;
mod program;
mod served;
mod shared;
mod toucher;
mod watchdog;
mod watched;
mod weights;

pub use ballast::{Errand, Hold};
pub use toucher::Task;

use crate::RunError;
use area::Area;
use ballast::Ballast;
use basics::curve::Watched;
use basics::decoding::{Decoding, Generated, Server, Serving};
use basics::desktop::Browsed;
use basics::pressure::{Area as SpecArea, Load, Pressed, Work, Zswap};
use basics::{Bytes, Interval, Job, Nanos};
use change::{Cgroup, Journal, Limits, Value};
use engine::Outcome;
use machine::Machine;
use pool::ZswapWatch;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use toucher::{Listener, Touched, Trouble};
use watchdog::Watchdog;

/// Where the kernel has what zswap does (Documentation/admin-guide/mm/zswap.rst).
const ZSWAP: &str = "/sys/module/zswap/parameters";
const PAGE_CLUSTER: &str = "/proc/sys/vm/page-cluster";
const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
/// Of all areas of a run: above any that the machine has, and the same for each, so that they are used in turns.
const PRIORITY: u16 = 32767;

/// What is needed to set one up.
pub(crate) struct Needs<'a> {
    pub journal: &'a Journal,
    pub machine: &'a Machine,
    /// This program.
    pub program: &'a Path,
    pub run: &'a str,
    pub interrupted: &'a AtomicBool,
}

/// All that stands for one target. Dropped, it goes in the order of its fields: who uses something before what is used.
pub(crate) struct Pressing {
    spec: Pressed,
    program: PathBuf,
    journal: Journal,
    run: String,
    ballast: Option<Ballast>,
    cgroup: Option<Cgroup>,
    areas: Vec<Area>,
    values: Vec<Value>,
    notes: Vec<String>,
}

/// What is heard of a job while it is done.
pub(crate) enum Heard<'a> {
    /// So much of its memory is filled.
    Filling(Bytes),
    /// An interval has ended.
    Interval(&'a Interval),
}

/// Does what this program was started again for, and tells on `out`.
///
/// # Errors
/// When nobody listens any more.
pub fn run_errand(errand: &Errand, out: &mut (impl std::io::Write + Send)) -> std::io::Result<()> {
    match errand {
        Errand::Touch(task) => toucher::serve(task, out),
        Errand::Hold(hold) => ballast::hold(hold, out),
        Errand::Become(this) => Err(served::become_it(this)),
        Errand::Program(this) => Err(program::become_it(this)),
        Errand::Mix(this) => built::mix(this),
    }
}

/// What came of a job under pressure.
pub(crate) struct Seen {
    pub outcome: Outcome,
    pub load: Load,
    /// Why it was ended before its time.
    pub ended_early: Option<String>,
}

impl Pressing {
    /// Sets it up; what cannot be is undone again.
    pub fn set_up(spec: &Pressed, needs: &Needs<'_>) -> Result<Self, RunError> {
        let mut pressing = Pressing {
            spec: spec.clone(),
            program: needs.program.to_owned(),
            journal: needs.journal.clone(),
            run: needs.run.to_owned(),
            ballast: None,
            cgroup: None,
            areas: Vec::new(),
            values: Vec::new(),
            notes: Vec::new(),
        };
        let swap = &spec.swap;
        if swap.areas.is_empty() && spec.pressure.memory.is_none() && !needs.machine.swaps.is_empty() {
            let what = "without --memory the process would use this machine's own swap, and no swap at all is not to be had: \
                        give --memory SIZE, or take --swap own, or switch that off";
            return Err(RunError::Load { what: what.to_owned() });
        }
        fits_in_ram(spec)?;
        let own = swap.areas.contains(&SpecArea::Own);
        if !own {
            pressing.zswap(swap.zswap.as_ref(), needs)?;
        }
        if let Some(pages) = swap.page_cluster {
            pressing.set(needs, PAGE_CLUSTER, &pages.to_string())?;
        }
        if let Some(percent) = swap.swappiness {
            pressing.set(needs, SWAPPINESS, &percent.to_string())?;
        }
        pressing.areas = area::set_up(&swap.areas, needs)?;
        // Mapped weights are on it as a file is, and nothing is swapped.
        if !mapped(spec) {
            for area in &mut pressing.areas {
                area.swap_on(needs, PRIORITY)?;
            }
        }
        if let Some(memory) = spec.pressure.memory {
            // Without areas of its own it must not use those of the machine.
            let swappable = pressing.areas.iter().filter(|_| !mapped(spec));
            let total = swappable.map(|area| area.seen.size.0).sum::<u64>();
            let limits = Limits { memory, swap: (!own).then_some(Bytes(total)), swappiness: swap.swappiness };
            let cgroup = Cgroup::make(needs.journal, needs.run, needs.run, &limits)?;
            pressing.notes.extend_from_slice(cgroup.notes());
            pressing.cgroup = Some(cgroup);
        }
        if let Some(size) = spec.pressure.lock {
            let hold = Hold { size, groups: pressing.groups() };
            pressing.ballast = Some(Ballast::lock(needs.program, hold)?);
        }
        let of_group = pressing.cgroup.as_ref().and_then(Cgroup::pressure);
        let lacks = Watchdog::new(&spec.pressure, of_group).lacks();
        pressing.notes.extend(lacks.map(str::to_owned));
        Ok(pressing)
    }

    /// The groups that a process under pressure is in.
    fn groups(&self) -> Vec<PathBuf> {
        self.cgroup.as_ref().map_or_else(Vec::new, |cgroup| cgroup.groups().to_vec())
    }

    fn set(&mut self, needs: &Needs<'_>, path: &str, wanted: &str) -> Result<(), RunError> {
        self.values.push(Value::set(needs.journal, needs.run, Path::new(path), wanted)?);
        Ok(())
    }

    /// On with what is asked of it, or off: a tier is measured as it is, not behind a cache.
    fn zswap(&mut self, wanted: Option<&Zswap>, needs: &Needs<'_>) -> Result<(), RunError> {
        let parameter = |name: &str| format!("{ZSWAP}/{name}");
        let Some(wanted) = wanted else {
            let enabled = std::fs::read_to_string(parameter("enabled")).unwrap_or_default();
            return match enabled.trim() {
                "Y" | "1" => self.set(needs, &parameter("enabled"), "N"),
                _ => Ok(()),
            };
        };
        if let Some(compressor) = &wanted.compressor {
            self.set(needs, &parameter("compressor"), compressor)?;
        }
        if let Some(percent) = wanted.max_pool_percent {
            self.set(needs, &parameter("max_pool_percent"), &percent.to_string())?;
        }
        self.set(needs, &parameter("enabled"), "Y")
    }

    /// The disks that its swap moves, as `/proc/diskstats` names them.
    pub fn disks(&self) -> Vec<String> {
        let mut disks: Vec<String> = self.areas.iter().filter_map(|area| area.seen.disk.clone()).collect();
        disks.sort();
        disks.dedup();
        disks
    }

    /// What a reader of its figures must know.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How much memory there is.
    pub fn size(&self) -> Bytes {
        self.spec.size
    }

    /// Does the job under pressure.
    pub fn run(
        &self,
        job: &Job,
        cancel: &AtomicBool,
        sink: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Seen, (RunError, Box<Load>)> {
        let file = self.areas.first().filter(|_| mapped(&self.spec)).map(|area| area.path().to_owned());
        let work = self.spec.work.clone();
        let watched = self.spec.curve.is_some();
        let faults = self.cgroup.as_ref().and_then(Cgroup::major_faults);
        let (groups, pager) = (self.groups(), self.spec.pager);
        let task = Task { job: job.clone(), size: self.spec.size, groups, work, file, watched, pager };
        let of_group = self.cgroup.as_ref().and_then(Cgroup::pressure);
        let watchdog = Watchdog::new(&self.spec.pressure, of_group);
        let mut watch = Watch { sink, pressing: self, watchdog, load: None };
        let result = match &self.spec.work {
            Work::Touch | Work::Decode(_) => toucher::run(&self.program, &task, cancel, &mut watch),
            Work::Serve(serving) => {
                let needs = served::Needs {
                    journal: &self.journal,
                    run: &self.run,
                    program: &self.program,
                    groups: self.groups(),
                    watched,
                    pager,
                };
                served::run(serving, job, &needs, cancel, &mut watch)
            }
            Work::Browse(browsing) => {
                let (parent, folder) = (self.parent(), self.folder());
                let needs = browsed::Needs { parent, groups: self.groups(), folder };
                browsed::run(browsing, job, &needs, self.zswap_watch(), cancel, &mut watch)
            }
            Work::Build(building) => {
                let (parent, folder) = (self.parent(), self.folder());
                let needs = built::Needs { parent, groups: self.groups(), folder };
                built::run(building, job, &needs, cancel, &mut watch)
            }
        };
        let mut load = watch.load.unwrap_or_else(|| self.load());
        match result {
            Ok(Touched { outcome, filled, tokens, prompt, busy, lay, watched, paged, ended_early, browsed, built }) => {
                let (before, now) = (faults, self.cgroup.as_ref().and_then(Cgroup::major_faults));
                load.browsed = browsed.map(|browsed| {
                    let major_faults = now.zip(before).map(|(now, before)| now.saturating_sub(before));
                    Box::new(Browsed { major_faults, ..browsed })
                });
                load.built = built.map(Box::new);
                load.paged = paged.map(Box::new);
                load.watched = watched.map(|watched| Box::new(self.asked(watched)));
                load.faults = outcome.faults.clone();
                load.filled = filled.map(|time| (self.spec.size, time));
                let (prompt, prompt_time) = prompt.map_or((0, None), |(tokens, time)| (tokens, Some(time)));
                let load_time = filled.unwrap_or_default();
                let seen =
                    Generated { load: load_time, tokens, prompt, prompt_time, busy, lay, ..Generated::default() };
                load.generated = match &self.spec.work {
                    Work::Touch | Work::Browse(_) | Work::Build(_) => None,
                    Work::Decode(decoding) => Some(Box::new(of_model(decoding, job, seen))),
                    Work::Serve(serving) => Some(Box::new(of_runner(serving, seen))),
                };
                Ok(Seen { outcome, load, ended_early })
            }
            Err(Trouble::Failed(error)) => Err((error, Box::new(load))),
            Err(Trouble::Killed(filled)) => {
                load.filled = Some((filled, Nanos(0)));
                Err((self.killed(filled, &load), Box::new(load)))
            }
        }
    }

    fn parent(&self) -> program::Parent<'_> {
        program::Parent { journal: &self.journal, run: &self.run, own: &self.program }
    }

    /// Where files are kept on the disk under test.
    fn folder(&self) -> Option<&Path> {
        self.areas.iter().find_map(Area::folder)
    }

    fn zswap_watch(&self) -> ZswapWatch<'_> {
        ZswapWatch::of(self.spec.swap.zswap.is_some(), self.cgroup.as_ref().zip(self.spec.pressure.memory))
    }

    /// With what was asked of its curve.
    fn asked(&self, watched: Watched) -> Watched {
        Watched { limit: self.spec.pressure.memory, asked: self.spec.curve.clone().unwrap_or_default(), ..watched }
    }

    /// The process was killed: by the kernel for want of memory, or by somebody.
    fn killed(&self, filled: Bytes, load: &Load) -> RunError {
        let (size, pressure) = (self.spec.size, self.spec.pressure.describe());
        // The kernel counts what it kills for want of memory anywhere: full was the group only if it reached its limit.
        let full = self.spec.pressure.memory.zip(load.peak).is_some_and(|(limit, peak)| peak.0 >= limit.0 / 20 * 19);
        match load.oom_kills.filter(|_| full) {
            Some(1..) => RunError::DoesNotFit { size, pressure, swap: self.spec.swap.describe(), filled },
            _ => RunError::Load {
                what: "the process that touches memory was killed, by the kernel for want of RAM or by somebody"
                    .to_owned(),
            },
        }
    }

    /// What stands now.
    fn load(&self) -> Load {
        let page = Bytes(rustix::param::page_size() as u64);
        let areas = self.areas.iter().map(Area::now).collect();
        let cgroup = self.cgroup.as_ref();
        Load {
            areas,
            settings: settings(),
            left: cgroup.and_then(|_| self.spec.pressure.left()),
            cgroup: cgroup.and_then(|cgroup| Some(cgroup.groups().first()?.display().to_string())),
            peak: cgroup.and_then(Cgroup::peak),
            oom_kills: cgroup.and_then(Cgroup::oom_kills),
            page,
            ..Load::default()
        }
    }

    /// Takes it away, and tells what could not be: the next start tries again.
    pub fn take_down(self) -> Vec<RunError> {
        let Pressing { ballast, cgroup, areas, values, .. } = self;
        drop(ballast);
        let mut troubles: Vec<RunError> = Vec::new();
        troubles.extend(cgroup.and_then(|cgroup| cgroup.remove().err()).map(RunError::from));
        for area in areas.into_iter().rev() {
            troubles.extend(area.take_down());
        }
        troubles.extend(values.into_iter().rev().filter_map(|value| value.restore().err()).map(RunError::from));
        troubles
    }
}

/// Whether the areas hold a file's pages, not swap.
fn mapped(spec: &Pressed) -> bool {
    matches!(&spec.work, Work::Decode(decoding) if decoding.mapped)
}

/// With what is known of the model itself.
fn of_model(decoding: &Decoding, job: &Job, seen: Generated) -> Generated {
    Generated {
        model: decoding.model.clone(),
        prompt: decoding.prompt,
        prompt_time: seen.tokens.first().copied(),
        touched: Some(decoding.touched()),
        besides: Some(decoding.cache_in_use(Bytes(rustix::param::page_size() as u64))),
        room: decoding.cache(),
        mapped: decoding.mapped,
        threads: job.threads,
        ..seen
    }
}

/// With what is known of the model that a runner has.
fn of_runner(serving: &Serving, seen: Generated) -> Generated {
    // What it says of itself decides; where it says nothing, where the bytes were does.
    let file = seen.lay.iter().map(|lay| lay.file.0).max().unwrap_or(0);
    let own = seen.lay.iter().map(|lay| lay.anonymous.0 + lay.swap.0).max().unwrap_or(0);
    Generated {
        model: serving.model.clone(),
        touched: serving.touched,
        besides: serving.cache,
        room: serving.room,
        // llama-server maps its file unless it is told not to, and may hold a copy of what it repacked beside.
        mapped: serving.mapped.unwrap_or(serving.server == Server::LlamaServer || file > own),
        threads: serving.threads.unwrap_or(0),
        ..seen
    }
}

/// Emulated disks and zram hold in RAM what is swapped to them, beside the limit.
fn fits_in_ram(spec: &Pressed) -> Result<(), RunError> {
    /// For everything else that runs.
    const SPARE: u64 = 256 << 20;
    let of = |area: &SpecArea| match area {
        SpecArea::Emulated { files: None, .. } => 1.0,
        // All that it holds is in RAM, whatever of it is used.
        SpecArea::Emulated { size, files: Some(files), .. } => {
            (size.0 + files.size.0) as f64 / spec.size.0.max(1) as f64
        }
        // Half of it is what most pages compress to, and weights do not; what of touched memory does not is the user's choice.
        SpecArea::Zram { .. } => {
            if matches!(spec.work, Work::Touch | Work::Browse(_) | Work::Build(_)) {
                0.5
            } else {
                1.0
            }
        }
        SpecArea::File { .. } | SpecArea::Device { .. } | SpecArea::Own => 0.0,
    };
    let areas = &spec.swap.areas;
    let share = areas.iter().map(of).sum::<f64>() / areas.len().max(1) as f64;
    // Without a limit all of it may be swapped, and what is locked is gone for both.
    let beside = match spec.pressure.memory {
        Some(memory) => memory.min(spec.size),
        None => spec.pressure.lock.unwrap_or_default(),
    };
    let needed = Bytes((share * spec.size.0 as f64) as u64 + beside.0);
    match sys::memory::available() {
        Some(available) if share > 0.0 && needed.0 + SPARE > available => {
            let (what, available) = (spec.swap.describe(), Bytes(available));
            let what = format!(
                "{what} would hold pages in RAM, {needed} with what must be there besides, and only {available} are available; \
                 take a smaller --size, or a disk"
            );
            Err(RunError::Load { what })
        }
        _ => Ok(()),
    }
}

/// The settings that decide what a fault costs, as they stand.
fn settings() -> std::collections::BTreeMap<String, String> {
    let zswap = ["enabled", "compressor", "max_pool_percent"].map(|name| format!("{ZSWAP}/{name}"));
    let rest =
        [PAGE_CLUSTER, SWAPPINESS, "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/lru_gen/enabled"];
    let paths = rest.into_iter().map(str::to_owned).chain(zswap);
    paths.filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?.trim().to_owned()))).collect()
}

struct Watch<'a> {
    sink: &'a mut dyn FnMut(Heard<'_>),
    pressing: &'a Pressing,
    watchdog: Watchdog,
    /// As all stood when the process was done and its memory still there.
    load: Option<Load>,
}

impl Listener for Watch<'_> {
    fn heard(&mut self, heard: Heard<'_>) {
        (self.sink)(heard);
    }
    fn done(&mut self) {
        self.load = Some(self.pressing.load());
    }
    fn enough(&mut self) -> Option<String> {
        if let Some(cgroup) = &self.pressing.cgroup {
            cgroup.refresh();
        }
        self.watchdog.looks()
    }
    fn was_killed(&self) -> bool {
        self.pressing.cgroup.as_ref().and_then(Cgroup::oom_kills).is_some_and(|kills| kills > 0)
    }
}
