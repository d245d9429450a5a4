//! The page faults of another process, as they happen: perf_event_open(2), software events, one ring a processor. It needs
//! no tracefs, BPF or BTF, and costs the process a fraction of a microsecond a fault. What the faults mean is for the
//! caller.

use crate::perf::{
    self, Attr, CONTEXT_SWITCH, DISABLED, EXCLUDE_KERNEL, Found, INHERIT, IOC_DISABLE, IOC_ENABLE, IOC_SET_OUTPUT,
    Ring, SAMPLE_ADDR, SAMPLE_ID_ALL, SAMPLE_IDENTIFIER, SAMPLE_TID, SAMPLE_TIME, TYPE_SOFTWARE, USE_CLOCKID,
    WATERMARK, control, id_of, online,
};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;

/// linux/perf_event.h.
const SW_PAGE_FAULTS: u64 = 2;
const SW_PAGE_FAULTS_MIN: u64 = 5;
const SW_PAGE_FAULTS_MAJ: u64 = 6;

/// Bytes of a processor's records: a listener which gets no processor for a fifth of a second loses nothing.
const ROOM: usize = 1 << 20;

/// Threads that come while their process is being looked at are found in the next round; a process that starts so many is
/// taken as it is.
const ROUNDS: usize = 16;

/// What a record tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// An event of this number, at this address.
    Event { id: u64, addr: u64 },
    /// The thread lost the processor although it had something to do.
    Preempted,
    /// The thread got a processor, or gave it up to wait.
    Switched,
}

/// As the kernel wrote it down.
#[derive(Debug, Clone, Copy)]
struct Record {
    pid: u32,
    tid: u32,
    at: u64,
    what: What,
}

impl Record {
    fn of(found: &Found<'_>) -> Self {
        let who = |word: u64| (word as u32, (word >> 32) as u32);
        match found {
            Found::Sample(body) => {
                let (pid, tid) = who(body.word(1));
                Record { pid, tid, at: body.word(2), what: What::Event { id: body.word(0), addr: body.word(3) } }
            }
            Found::Switch { body, preempted } => {
                let (pid, tid) = who(body.word(0));
                let what = if *preempted { What::Preempted } else { What::Switched };
                Record { pid, tid, at: body.word(1), what }
            }
        }
    }
}

/// A page fault of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// When it was done: ns of CLOCK_MONOTONIC.
    pub at: u64,
    /// The thread that met it.
    pub tid: u32,
    /// The address that was touched.
    pub addr: u64,
    /// A page had to be read: from disk, from swap, or out of compressed memory. Else it was in RAM, or is new.
    pub major: bool,
    /// How long it held the thread up, in ns, without the time in which others had taken the processor from it; known to
    /// [`Faults::timed`] alone.
    pub took: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct UnderWay {
    addr: u64,
    since: u64,
    /// Without a processor since then, and before that for so long.
    off: Option<u64>,
    lost: u64,
}

/// Listens to the faults of one process until dropped.
#[derive(Debug)]
pub struct Faults {
    pid: u32,
    /// Dropped before the events whose memory they map.
    rings: Vec<Ring>,
    events: Vec<OwnedFd>,
    /// By the kernel's number of an event: those of beginnings, and those of major faults.
    begins: HashSet<u64>,
    majors: HashSet<u64>,
    /// By thread: the fault that it is in.
    under_way: HashMap<u32, UnderWay>,
    /// Of one poll, in order.
    records: Vec<Record>,
    lost: u64,
    user_only: bool,
}

impl Faults {
    /// Listens to all threads of the process `pid`, those that come later included, children excluded. Of all faults, minor
    /// and major counted apart, each `period`th (from 1 on) of a thread on a processor is told. Rings hold some 6,000 faults a
    /// processor, 25,000 for root: call [`Faults::poll`] often enough.
    ///
    /// # Errors
    /// `NotFound` when there is no such process, `PermissionDenied` when the kernel does not let this user look
    /// (`kernel.perf_event_paranoid`, another user's process, seccomp), `Unsupported` without perf events, each with what helps.
    pub fn open(pid: u32, period: u64) -> io::Result<Self> {
        Self::sampled(pid, period, period)
    }

    /// The same with a period of minor faults, none of which are told where it is 0, and another of major ones.
    ///
    /// # Errors
    /// As [`Faults::open`].
    pub fn sampled(pid: u32, minor: u64, major: u64) -> io::Result<Self> {
        match minor {
            0 => Self::with(pid, &[(SW_PAGE_FAULTS_MAJ, major)], false),
            _ => Self::with(pid, &[(SW_PAGE_FAULTS_MIN, minor), (SW_PAGE_FAULTS_MAJ, major)], false),
        }
    }

    /// The same for every fault, with how long each took; twice as costly, and therefore paused at first: see
    /// [`Faults::listen`].
    ///
    /// # Errors
    /// As [`Faults::open`].
    pub fn timed(pid: u32) -> io::Result<Self> {
        Self::with(pid, &[SW_PAGE_FAULTS, SW_PAGE_FAULTS_MIN, SW_PAGE_FAULTS_MAJ].map(|kind| (kind, 1)), true)
    }

    fn with(pid: u32, kinds: &[(u64, u64)], paused: bool) -> io::Result<Self> {
        let mut faults = Faults {
            pid,
            rings: Vec::new(),
            events: Vec::new(),
            begins: HashSet::new(),
            majors: HashSet::new(),
            under_way: HashMap::new(),
            records: Vec::new(),
            lost: 0,
            user_only: false,
        };
        let cpus = online()?;
        let mut known = HashSet::new();
        for _ in 0..ROUNDS {
            let fresh: Vec<u32> = threads(pid)?.into_iter().filter(|tid| known.insert(*tid)).collect();
            if fresh.is_empty() {
                break;
            }
            for tid in fresh {
                for (nth, cpu) in cpus.iter().enumerate() {
                    faults.add(tid, (nth, *cpu), kinds)?;
                }
            }
        }
        if faults.events.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("no thread of process {pid} is there any more"),
            ));
        }
        if !paused {
            faults.listen(true)?;
        }
        Ok(faults)
    }

    /// One thread on one processor; a thread that has ended meanwhile is left out.
    fn add(&mut self, tid: u32, (nth, cpu): (usize, i32), kinds: &[(u64, u64)]) -> io::Result<()> {
        for (kind, period) in kinds {
            let event = match self.event(tid, cpu, *kind, *period) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
                event => event.map_err(|error| explained(error, self.pid))?,
            };
            let id = id_of(&event)?;
            match *kind {
                SW_PAGE_FAULTS => drop(self.begins.insert(id)),
                SW_PAGE_FAULTS_MAJ => drop(self.majors.insert(id)),
                _ => {}
            }
            match self.rings.get(nth) {
                Some(ring) => control(&event, IOC_SET_OUTPUT, ring.event() as libc::c_ulong)?,
                None => self.rings.push(Ring::new(&event, ROOM).map_err(|error| explained(error, self.pid))?),
            }
            self.events.push(event);
        }
        Ok(())
    }

    fn event(&mut self, tid: u32, cpu: i32, config: u64, period: u64) -> io::Result<OwnedFd> {
        loop {
            // Inherited by the threads that this one starts; what children of the process do is left out in `poll`, as
            // kernels before 5.13 cannot be told to.
            let mut flags = DISABLED | INHERIT | WATERMARK | USE_CLOCKID;
            if self.user_only {
                flags |= EXCLUDE_KERNEL;
            }
            // A busy machine would make faults look long.
            if config == SW_PAGE_FAULTS {
                flags |= CONTEXT_SWITCH | SAMPLE_ID_ALL;
            }
            let attr = Attr {
                kind: TYPE_SOFTWARE,
                size: size_of::<Attr>() as u32,
                config,
                sample_period: period.max(1),
                sample_type: SAMPLE_IDENTIFIER | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR,
                flags,
                // Nobody waits for it: no wake-ups, as far as the kernel can be asked.
                wakeup: u32::MAX >> 1,
                clockid: libc::CLOCK_MONOTONIC,
                ..Attr::default()
            };
            let error = match perf::open(&attr, Some(tid), cpu) {
                Ok(event) => return Ok(event),
                Err(error) => error,
            };
            // Without rights over the kernel, what a program touches in user mode may still be seen.
            if error.raw_os_error() != Some(libc::EACCES) || self.user_only {
                return Err(error);
            }
            self.user_only = true;
        }
    }

    /// Tells this listener and another of the same process how to read each other's numbers. Kernels since 6.2 prepare what is
    /// told of a fault once for all events that it meets, so that one listener gets the number of the other's event:
    /// without this every major fault would look minor while both listen (seen on 6.18).
    pub fn know(&mut self, other: &mut Faults) {
        self.majors.extend(&other.majors);
        other.majors.extend(&self.majors);
    }

    /// Goes on, or pauses: what happens in a pause is not told, and costs the process nothing.
    ///
    /// # Errors
    /// The kernel's.
    pub fn listen(&mut self, on: bool) -> io::Result<()> {
        self.under_way.clear();
        let order = if on { IOC_ENABLE } else { IOC_DISABLE };
        self.events.iter().try_for_each(|event| control(event, order, 0))
    }

    /// Tells what has happened since the last poll, in the order of time within the poll.
    pub fn poll(&mut self, each: &mut impl FnMut(Fault)) {
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        for ring in &mut self.rings {
            self.lost += ring.drain(&mut |found| records.push(Record::of(&found)));
        }
        records.sort_by_key(|record| record.at);
        for &Record { tid, at, what, .. } in records.iter().filter(|record| record.pid == self.pid) {
            let (id, addr) = match what {
                What::Event { id, addr } => (id, addr),
                What::Preempted | What::Switched => {
                    if let Some(fault) = self.under_way.get_mut(&tid) {
                        fault.lost += fault.off.take().map_or(0, |off| at.saturating_sub(off));
                        fault.off = (what == What::Preempted).then_some(at);
                    }
                    continue;
                }
            };
            if self.begins.contains(&id) {
                self.under_way.insert(tid, UnderWay { addr, since: at, off: None, lost: 0 });
                continue;
            }
            let begun = self.under_way.remove(&tid).filter(|fault| fault.addr == addr);
            let took = begun.map(|fault| at.saturating_sub(fault.since + fault.lost));
            each(Fault { at, tid, addr, major: self.majors.contains(&id), took });
        }
        self.records = records;
    }

    /// Faults of which a ring had no room to tell, so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Only what is touched in user mode is seen: this user may not look into the kernel.
    pub fn user_only(&self) -> bool {
        self.user_only
    }
}

/// The threads of a process now.
fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let path = format!("/proc/{pid}/task");
    let entries = std::fs::read_dir(&path)
        .map_err(|e| io::Error::new(e.kind(), format!("there is no process {pid}: {path}: {e}")))?;
    let numbers = entries.map(|entry| Ok(entry?.file_name().to_str().and_then(|name| name.parse().ok())));
    Ok(numbers.collect::<io::Result<Vec<Option<u32>>>>()?.into_iter().flatten().collect())
}

fn explained(error: io::Error, pid: u32) -> io::Error {
    let (kind, what) = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => (
            io::ErrorKind::PermissionDenied,
            "the kernel does not let this user see it; be root, have CAP_PERFMON and CAP_SYS_PTRACE, or, for a process of \
             your own, set kernel.perf_event_paranoid to 2 or less (a container's seccomp profile may forbid it too)",
        ),
        Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => {
            (io::ErrorKind::Unsupported, "this kernel has no perf events (CONFIG_PERF_EVENTS)")
        }
        Some(libc::EMFILE) => (
            error.kind(),
            "it needs descriptors for each of its threads on each processor; raise the limit (ulimit -n)",
        ),
        _ => (error.kind(), "perf_event_open failed"),
    };
    io::Error::new(kind, format!("page faults of process {pid}: {what}: {error}"))
}

#[cfg(test)]
mod tests;
