//! Which pages a running process touches, by a sample: units of its memory chosen by a hash of their address are sent out
//! again after each touch, so that the next touch meets a fault and is seen with its time. It hands on raw touches; what
//! they say about other amounts of memory is for `study`.
//!
//! **Why pages are sent out.** Under a limit only what was not kept faults. That tells of reuse over more than what is kept, and
//! nothing about less memory; and where all fits, nothing faults at all. A sampled unit that goes out after each touch is
//! seen at each, whatever is kept. Choosing by a hash of the address rather than by chance, as SHARDS does (Waldspurger et al.,
//! FAST '15), sees every touch of the chosen units, which is what a reuse distance needs.
//!
//! **What a unit is.** The kernel keeps and drops anonymous memory by pages, and so one page is the unit there: larger ones would make a
//! program that touches a page here and there look as if it needed all between them. Pages of files come sixteen at a time
//! by one fault (fault-around), which hides touches of its neighbours: there an aligned block of sixteen pages is the unit.
//!
//! **What it costs the process.** A touch of a unit that was sent out costs a fault that would not have been. Each is paid from a
//! share of the process's time (3 % if not said otherwise): when units wait too long for their turn, half of them are let go. A
//! unit waits a while after its touch before it goes out again, and longer when it is touched soon again and again: hot
//! pages, which no amount of memory that is asked about would drop, cost little. The wait stays an eighth of the time in
//! which the process turns over its memory, so that what it hides are reuses that are hits in any case. Being told of
//! faults costs under a microsecond each, and is paid from the same share up to its half; all is told ([`Account::overhead`]).
//!
//! **What it does not see**: pages that are locked or shared with other processes (they stay where they are; counted). Huge pages
//! are taken apart where they are sampled. What the kernel itself touches for the process without a fault in its name
//! is found by looking into the page table four times a second, with that much less of an idea of the time.

mod cost;
mod maps;
mod units;

use basics::{Bytes, Nanos};
use cost::{Cost, Purse};
use maps::Maps;
use std::io;
use sys::faults::{Fault, Faults};
use sys::peer::{Advice, Lies, Peer, Range};
use units::{State, Units};

/// How often it wants to be polled. The time of a touch is exact all the same.
pub const PERIOD: Nanos = Nanos::from_millis(5);
/// How often the page table is looked at for touches without a fault of the process's own.
const SWEEP: Nanos = Nanos::from_millis(250);
/// Between two looks at how much is resident and how fast memory is turned over.
const SURVEY: Nanos = Nanos::from_millis(500);
/// Faults are timed for the first part of each round.
const TIMED: Nanos = Nanos::from_millis(100);
const ROUND: Nanos = Nanos::from_millis(1000);
/// Shortest wait between a touch and going out again; also how near in time two touches can be told apart.
const SHORTEST: Nanos = Nanos::from_millis(20);
const LONGEST: Nanos = Nanos::from_millis(1000);
/// Waits as a part of the time in which as much is touched as is resident.
const PART: f64 = 0.125;
/// Units that have waited so long for their first turn, and are more than a quarter of all, are too many.
const LATE: Nanos = Nanos::from_millis(1000);
/// And those that wait so long for another turn, or twice as long as they are left in: touches that they hide meanwhile are no
/// longer hits in any case.
const LATE_AGAIN: Nanos = Nanos::from_millis(40);
/// After the sample became smaller, until it may again.
const THINNED: Nanos = Nanos::from_millis(250);
/// Watching has begun when all units but this part are watched.
const REST: f64 = 0.03;
/// Units looked at in one poll before they go out.
const LOOKS: usize = 512;

/// How much may be asked of the process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Part of its time that faults which would not have been may take.
    pub share: f64,
    /// Sampled units, at most.
    pub units: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { share: 0.03, units: 4096 }
    }
}

/// What was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seen {
    /// Nearly all of the sample is watched now, and in time: what came before says little about how often anything is touched.
    /// Told again after a sample that was too large became smaller.
    Ready {
        /// Since watching began.
        at: Nanos,
    },
    /// From now on the touches of this unit are seen.
    Entered {
        /// Which: a hash of its address, one to one.
        key: u64,
    },
    /// A unit was touched.
    Touched {
        /// Since watching began.
        at: Nanos,
        /// Which.
        key: u64,
        /// Its length.
        bytes: Bytes,
    },
    /// Only units whose key is below this are sampled any more.
    Thinned {
        /// A hash, as those of the units are.
        below: u64,
        /// Part of all units that is sampled now, as counted.
        ratio: f64,
    },
}

/// What came of watching so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Account {
    /// How long.
    pub elapsed: Nanos,
    /// All that the process has: resident and swapped, in bytes.
    pub whole: Bytes,
    /// What of it was in RAM, mean.
    pub resident: Bytes,
    /// Faults of pages that were not sent out by us, minor and major.
    pub minor: u64,
    /// Those that had to read the page.
    pub major: u64,
    /// Of the minor ones, pages that are new to the process, from how much it has grown.
    pub fresh: u64,
    /// Faults that were met because a page had been sent out by us.
    pub induced: u64,
    /// Part of the time of the threads that met faults which the faults took, without the induced ones; None until timed.
    pub stalled: Option<f64>,
    /// What a fault takes, mean, induced ones not counted.
    pub fault: Option<Nanos>,
    /// What an induced one takes, mean; a guess of 50 µs weighs as four of them.
    pub induced_fault: Nanos,
    /// Part of the process's time that watching took: induced faults, and being told of faults.
    pub overhead: f64,
    /// CPU time of this thread since watching began.
    pub own_cpu: Nanos,
    /// Units that are sampled.
    pub units: usize,
    /// Touches found in the page table alone, their time unknown by up to 250 ms.
    pub late: u64,
    /// Faults of which the kernel's ring had no room to tell.
    pub lost: u64,
    /// What of it does not go out: locked, or, estimated from the sample, shared with others.
    pub held: Bytes,
    /// Part of all units that is sampled.
    pub ratio: f64,
    /// The kernel's part was not seen, for lack of rights.
    pub user_only: bool,
}

impl Account {
    /// What the process has that can be in RAM or not.
    pub fn movable(&self) -> Bytes {
        Bytes(self.whole.0.saturating_sub(self.held.0))
    }
}

/// Watches a process until dropped. Nothing is left behind then: pages that are out come back when they are touched.
#[derive(Debug)]
pub struct Accesses {
    pid: u32,
    peer: Peer,
    faults: Faults,
    timed: Faults,
    maps: Maps,
    units: Units,
    purse: Purse,
    cost: Cost,
    account: Account,
    begun: Nanos,
    cpu: Nanos,
    swept: Nanos,
    surveyed: Nanos,
    /// Touched bytes at the last survey.
    touched: u64,
    longest: Nanos,
    /// Resident bytes, summed over surveys, and surveys.
    resident: (u64, u64),
    first: Option<u64>,
    found: Vec<Fault>,
    lies: Vec<Lies>,
    ready: bool,
    ended: bool,
}

impl Accesses {
    /// Begins to watch the process `pid`. What it has in memory is sent out unit by unit as the share of its time allows.
    ///
    /// # Errors
    /// `NotFound` without such a process, `PermissionDenied` or `Unsupported` with what is missing.
    pub fn open(pid: u32, options: Options) -> io::Result<Self> {
        let peer = Peer::open(pid)?;
        let mut faults = Faults::open(pid, 1)?;
        let mut timed = Faults::timed(pid)?;
        faults.know(&mut timed);
        let maps = Maps::read(pid, peer.page())?;
        let mut units = Units::default();
        units.choose(&peer, &maps, options.units)?;
        let begun = now();
        let mut accesses = Accesses {
            pid,
            peer,
            timed,
            maps,
            purse: Purse::new(options.share),
            cost: Cost::default(),
            account: Account { user_only: faults.user_only(), ..Account::default() },
            faults,
            units,
            begun,
            cpu: crate::observer::thread_cpu(),
            swept: begun,
            surveyed: begun,
            touched: 0,
            longest: SHORTEST,
            resident: (0, 0),
            first: None,
            found: Vec::new(),
            lies: Vec::new(),
            ready: false,
            ended: false,
        };
        accesses.survey(begun);
        Ok(accesses)
    }

    /// Tells what was seen since the last poll and sends out what is due; to be called every [`PERIOD`] or so. False when the
    /// process has ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn poll(&mut self, each: &mut impl FnMut(Seen)) -> io::Result<bool> {
        let now = now();
        self.listen(now)?;
        self.drain(each);
        if now - self.swept >= SWEEP {
            self.swept = now;
            self.sweep(now, each)?;
        }
        if now - self.surveyed >= SURVEY {
            self.survey(now);
        }
        self.purse.earn(now);
        self.send_out(now, each)?;
        Ok(!self.ended)
    }

    /// What came of it.
    pub fn account(&self) -> Account {
        let elapsed = now() - self.begun;
        let mean = |(sum, count): (u64, u64)| Bytes(sum.checked_div(count).unwrap_or(0));
        Account {
            elapsed,
            resident: mean(self.resident),
            stalled: self.cost.stalled(),
            fault: self.cost.natural(),
            induced_fault: self.cost.induced(),
            overhead: self.purse.spent(self.account.induced, self.cost.induced(), elapsed),
            own_cpu: crate::observer::thread_cpu() - self.cpu,
            units: self.units.len(),
            held: Bytes(self.maps.locked() + self.units.held()),
            lost: self.faults.lost(),
            ratio: self.units.ratio,
            ..self.account
        }
    }

    /// Listens to how long faults take for a part of the time.
    fn listen(&mut self, at: Nanos) -> io::Result<()> {
        let wanted = (at - self.begun).0 % ROUND.0 < TIMED.0;
        if wanted && !self.cost.listening() {
            self.timed.listen(true)?;
            self.cost.begin(now(), &cost::waited(self.pid));
        } else if !wanted && self.cost.listening() {
            self.cost.end(now(), &cost::waited(self.pid));
            self.timed.listen(false)?;
        }
        Ok(())
    }

    /// Reads what faults have come: first what they took, while it is still known which units were out.
    fn drain(&mut self, each: &mut impl FnMut(Seen)) {
        let (cost, units, maps, purse) = (&mut self.cost, &self.units, &self.maps, &mut self.purse);
        self.timed.poll(&mut |fault| {
            let unit = maps.unit(fault.addr).and_then(|range| units.get(range.at));
            cost.fault(&fault, unit.is_some_and(|unit| matches!(unit.state, State::Out { ours: true, .. })));
            // Its beginning, and its end once more.
            purse.told(2);
        });
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.faults.poll(&mut |fault| found.push(fault));
        self.purse.told(found.len() as u64);
        for fault in &found {
            self.fault(*fault, each);
        }
        self.found = found;
    }

    fn fault(&mut self, fault: Fault, each: &mut impl FnMut(Seen)) {
        let page = self.peer.page();
        let range = self.maps.unit(fault.addr).or_else(|| {
            self.maps.renew(self.pid, fault.addr, Nanos(fault.at));
            self.maps.unit(fault.addr)
        });
        let unit =
            range.filter(|range| self.units.sampled(*range, page)).map(|range| self.units.get_or_add(range, page));
        let sent = unit.and_then(|at| match self.units.all[at].state {
            State::Out { since, ours } => Some((since, ours)),
            _ => None,
        });
        if sent.is_some_and(|(_, ours)| ours) {
            self.account.induced += 1;
        } else if fault.major {
            self.account.major += 1;
        } else {
            self.account.minor += 1;
        }
        if let Some(at) = unit {
            self.seen(at, Nanos(fault.at), each);
        }
    }

    /// A unit was touched, and is in memory.
    fn seen(&mut self, at: usize, when: Nanos, each: &mut impl FnMut(Seen)) {
        let longest = self.longest;
        let unit = &mut self.units.all[at];
        if let State::Out { since, .. } = unit.state {
            // What is touched again at once will be so again.
            unit.wait = if when - since < unit.wait { (unit.wait + unit.wait).min(longest) } else { SHORTEST };
            unit.back(when + unit.wait);
        }
        self.touched += unit.range.len;
        each(Seen::Touched { at: when - self.begun, key: unit.key, bytes: Bytes(unit.range.len) });
    }

    fn present(&mut self, range: Range) -> io::Result<Option<bool>> {
        self.peer.look(range, &mut self.lies)?;
        Ok((!self.lies.is_empty()).then(|| self.lies.contains(&Lies::Present)))
    }

    /// Finds touches that were not told.
    fn sweep(&mut self, now: Nanos, each: &mut impl FnMut(Seen)) -> io::Result<()> {
        let mut present = Vec::new();
        for (at, unit) in self.units.all.iter().enumerate() {
            if matches!(unit.state, State::Out { .. }) {
                self.peer.look(unit.range, &mut self.lies)?;
                present.extend(self.lies.contains(&Lies::Present).then_some(at));
            }
        }
        // Most have been told meanwhile.
        self.drain(each);
        for at in present {
            // `drain` may add units, and moves none.
            if matches!(self.units.all[at].state, State::Out { since, .. } if since < now) {
                self.account.late += 1;
                self.seen(at, now, each);
            }
        }
        Ok(())
    }

    fn survey(&mut self, now: Nanos) {
        let Some((resident, swapped)) = maps::held(self.pid) else {
            // Its memory has gone before it.
            self.ended = true;
            return;
        };
        self.resident = (self.resident.0 + resident, self.resident.1 + 1);
        self.account.whole = Bytes(resident + swapped);
        let first = *self.first.get_or_insert(resident + swapped);
        self.account.fresh = (resident + swapped).saturating_sub(first) / self.peer.page();
        let time = (now - self.surveyed).secs();
        if time > 0.0 {
            let speed = self.touched as f64 / self.units.ratio / time;
            let turn = Nanos::from_secs(if speed > 0.0 { PART * resident as f64 / speed } else { f64::from(u16::MAX) });
            self.longest = turn.clamp(SHORTEST, LONGEST);
        }
        (self.surveyed, self.touched) = (now, 0);
    }

    /// Sends out what has waited long enough, as far as the purse allows.
    fn send_out(&mut self, at: Nanos, each: &mut impl FnMut(Seen)) -> io::Result<()> {
        let mut due = self.units.due(at);
        due.sort_unstable();
        let again = (self.longest + self.longest).clamp(LATE_AGAIN, LATE);
        let patience = |unit: usize| if self.units.all[unit].entered { again } else { LATE };
        let late = due.iter().filter(|(until, unit)| at - (*until).max(self.begun) > patience(*unit)).count();
        let mut chosen = Vec::new();
        for (_, unit) in due.into_iter().take(LOOKS) {
            match self.present(self.units.all[unit].range)? {
                // Gone from the address space.
                None => self.units.all[unit].state = State::Held,
                Some(false) => self.out(unit, at, false, each),
                Some(true) if self.purse.pay(self.cost.induced()) => chosen.push(unit),
                Some(true) => break,
            }
        }
        let ranges: Vec<Range> = chosen.iter().map(|unit| self.units.all[*unit].range).collect();
        if let Err(error) = self.peer.advise(&ranges, Advice::PageOut) {
            self.ended = error.kind() == io::ErrorKind::NotFound;
            return if self.ended { Ok(()) } else { Err(error) };
        }
        let mut back = Vec::new();
        let done = now();
        for unit in chosen {
            self.out(unit, done, true, each);
            back.extend((self.present(self.units.all[unit].range)? != Some(false)).then_some(unit));
        }
        if !back.is_empty() {
            // Either it was touched at once, which is told, or it never went.
            self.drain(each);
            for unit in back {
                if matches!(self.units.all[unit].state, State::Out { .. }) {
                    self.purse.give_back(self.cost.induced());
                    self.units.all[unit].refused(done);
                }
            }
        }
        if late > self.units.len() / 4 && self.purse.late(at, THINNED) && self.units.thin() {
            each(Seen::Thinned { below: self.units.below, ratio: self.units.ratio });
            self.ready = false;
        }
        if !self.ready && late <= self.units.len() / 4 && self.units.waiting() as f64 <= REST * self.units.len() as f64
        {
            self.ready = true;
            each(Seen::Ready { at: at - self.begun });
        }
        Ok(())
    }

    fn out(&mut self, unit: usize, since: Nanos, ours: bool, each: &mut impl FnMut(Seen)) {
        let unit = &mut self.units.all[unit];
        unit.state = State::Out { since, ours };
        if !std::mem::replace(&mut unit.entered, true) {
            each(Seen::Entered { key: unit.key });
        }
    }
}

/// CLOCK_MONOTONIC, as the faults' times are.
fn now() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}
