//! What becomes of a request: when its answer is due by the profile's model, whether a fault strikes, and what is read,
//! written, made durable or lost. Knows nothing of FUSE.

use crate::faults::{Act, Fault, Kind};
use crate::figures::{Counters, FaultFigures, Figures};
use crate::schedule::Clock;
use crate::store::Store;
use crate::way::{Sum, Way};
use basics::{Bytes, Nanos};
use profile::{Device, Profile, Request};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use sys::errno::{EIO, ENOSPC};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Verdict {
    /// When its answer leaves.
    pub due: Nanos,
    /// How long it takes by the profile.
    pub time: Nanos,
    /// Whether it reads or writes data, and how long that should take over all, when it does.
    pub owed: Option<(bool, Nanos)>,
    /// The error number that it fails with.
    pub outcome: Result<(), i32>,
    /// A byte's place on the disk and the bit of it that turns over.
    pub flip: Option<(u64, u8)>,
    /// A flush that does nothing.
    pub lie: bool,
    /// The profile is faster than the way: the answer leaves at once.
    pub floor: bool,
    /// The disk's life that it belongs to: it does not outlive a cut.
    pub epoch: u64,
}

/// Without power or connection.
#[derive(Debug, Clone, Copy)]
struct Off {
    since: Nanos,
    until: Option<Nanos>,
    /// Comes back when nobody uses it any more.
    when_free: bool,
}

/// Shortest absence of a disk that comes back when it is free: what was under way must have failed first.
const LEAST_AWAY: Nanos = Nanos(300_000_000);

#[derive(Debug)]
struct Model {
    device: Device,
    faults: Vec<Fault>,
    counters: Counters,
    way: Way,
    /// While the way itself is measured: every request takes so long.
    probe: Option<Nanos>,
    off: Option<Off>,
    stalled_until: Nanos,
    /// When the last answer leaves that is known of.
    last_due: Nanos,
    ready_at: Nanos,
    /// CPU time until it was ready.
    made_with: Duration,
}

/// The emulated disk.
#[derive(Debug)]
pub(crate) struct Disk {
    pub clock: Clock,
    pub size: u64,
    real: Option<u64>,
    model: Mutex<Model>,
    store: RwLock<Store>,
    epoch: AtomicU64,
}

impl Disk {
    pub fn new(profile: &Profile, size: Bytes, seed: u64, store: Store, clock: Clock) -> Self {
        let model = Model {
            device: Device::new(profile, size, seed).behind_a_kernel(),
            faults: Vec::new(),
            counters: Counters::new(),
            way: Way::default(),
            probe: None,
            off: None,
            stalled_until: Nanos(0),
            last_due: Nanos(0),
            ready_at: clock.now(),
            made_with: Duration::ZERO,
        };
        let real = profile.real_size.map(|real| real.0).filter(|real| *real < size.0);
        let disk = Disk {
            clock,
            size: size.0,
            real,
            model: Mutex::new(model),
            store: RwLock::new(store),
            epoch: AtomicU64::new(0),
        };
        disk.storage_mut().wrap(real);
        disk
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn storage(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }
    fn storage_mut(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request comes. What it does to the bytes is another call, when the verdict says that it succeeds.
    pub fn arrive(&self, now: Nanos, act: Act, offset: u64, len: u64) -> Verdict {
        let mut model = self.model();
        let epoch = self.epoch.load(SeqCst);
        let mut verdict = Verdict {
            due: now,
            time: Nanos(0),
            owed: None,
            outcome: Ok(()),
            flip: None,
            lie: false,
            floor: false,
            epoch,
        };
        if let Some(delay) = model.probe {
            verdict.due = now + delay;
            return verdict;
        }
        if !model.is_on(now) {
            model.counters.figures.failed += 1;
            verdict.outcome = Err(EIO);
            return verdict;
        }
        let (before, after) = model.way.halves(act, len);
        let issued = now.0 as f64 - before;
        let request = match act {
            Act::Read => Some(Request::Read { offset, len }),
            Act::Write => Some(Request::Write { offset, len }),
            Act::Flush => Some(Request::Flush),
            // Nothing was ever published of what a trim costs.
            Act::Trim => None,
        };
        let issued_at = Nanos(issued.max(0.0) as u64);
        if now >= model.last_due && model.way.is_one_at_a_time() {
            // The way is taken off as it is on average: after a short one a request would wait for the one before it, whose
            // answer the program has seen. In a queue an answer that has left says nothing of what else the device has to do.
            model.device.rest(issued_at);
        }
        let mut time = 0.0;
        // What the profile does not describe takes no longer than the way: a disk that failed all reads could hold no file
        // system, and a time would be made up.
        if let Some(Ok(done)) = request.map(|request| model.device.submit(issued_at, request)) {
            time = done.0.saturating_sub(issued_at.0) as f64;
        }
        let slower = self.strike(&mut model, &mut verdict, now, act, offset, len);
        time *= slower;
        verdict.time = Nanos(time as u64);
        let wanted = issued + time - after;
        if act != Act::Trim && wanted < now.0 as f64 {
            model.counters.figures.floor_reached += 1;
            verdict.floor = true;
        }
        verdict.due = Nanos(wanted.max(now.0 as f64) as u64).max(model.stalled_until);
        model.last_due = model.last_due.max(verdict.due);
        if let Act::Read | Act::Write = act {
            let held_up = (verdict.due.0 as f64 - wanted).max(0.0);
            verdict.owed = Some((act == Act::Read, Nanos((time + held_up) as u64)));
        }
        match act {
            Act::Read => model.counters.transfer(true, len, verdict.time),
            Act::Write => model.counters.transfer(false, len, verdict.time),
            Act::Flush => model.counters.figures.flushes += 1,
            Act::Trim => model.counters.figures.trims += 1,
        }
        if verdict.outcome.is_err() {
            model.counters.figures.failed += 1;
        }
        verdict
    }

    /// Lets the faults have their say; gives the factor on the request's time.
    fn strike(&self, model: &mut Model, verdict: &mut Verdict, now: Nanos, act: Act, offset: u64, len: u64) -> f64 {
        let mut slower = 1.0;
        let mut gone = None;
        let (mut stalled_until, mut struck) = (model.stalled_until, Vec::new());
        for fault in &mut model.faults {
            if fault.strikes(act, offset, len) {
                struck.push((fault.kind, fault.seed, fault.bit(offset, len.max(1))));
            }
        }
        for (kind, seed, bit) in struck {
            match kind {
                Kind::Eio => verdict.outcome = Err(EIO),
                Kind::Enospc => verdict.outcome = Err(ENOSPC),
                Kind::Corrupt => verdict.flip = Some(bit),
                Kind::Stall(time) => stalled_until = stalled_until.max(now + time),
                Kind::Slow(factor) => slower *= factor,
                Kind::LyingFlush => verdict.lie = true,
                Kind::Disconnect(_) | Kind::PowerCut(_) => gone = Some((kind, seed)),
                Kind::Wrap(_) | Kind::Return | Kind::Clear => {}
            }
        }
        model.stalled_until = stalled_until;
        if let Some((kind, seed)) = gone {
            self.go(model, kind, seed, now);
            verdict.outcome = Err(EIO);
        }
        slower
    }

    /// The power or the connection goes.
    fn go(&self, model: &mut Model, kind: Kind, seed: u64, now: Nanos) {
        let (cut, lasts) = match kind {
            Kind::PowerCut(lasts) => (true, lasts),
            Kind::Disconnect(lasts) => (false, lasts),
            _ => return,
        };
        // Whoever writes looks at the epoch with the storage locked: nothing gets in after the cut.
        let mut store = self.storage_mut();
        self.epoch.fetch_add(1, SeqCst);
        if cut {
            match store.cut(seed) {
                Ok(lost) => model.counters.figures.sectors_lost += lost,
                Err(error) => tracing::warn!("after the power cut not everything could be taken back: {error}"),
            }
        }
        let until = lasts.map(|lasts| now + lasts);
        model.off = Some(Off { since: now, until, when_free: cut && lasts.is_none() });
    }

    /// Puts a fault to work, or does at once what it asks for.
    pub fn fault(&self, fault: Fault) {
        let now = self.clock.now();
        let mut model = self.model();
        match fault.kind {
            Kind::Return => model.off = None,
            Kind::Clear => {
                model.off = None;
                model.faults.clear();
                model.stalled_until = Nanos(0);
                self.storage_mut().wrap(self.real);
            }
            Kind::Wrap(size) => {
                self.storage_mut().wrap(Some(size.0));
                model.faults.push(fault);
            }
            kind @ (Kind::Disconnect(_) | Kind::PowerCut(_)) if fault.is_immediate() => {
                self.go(&mut model, kind, fault.seed, now);
            }
            _ => model.faults.push(fault),
        }
    }

    /// True when it is off until nobody uses it any more, and has been so for a moment.
    pub fn waits_for_peace(&self) -> bool {
        let now = self.clock.now();
        self.model().off.is_some_and(|off| off.when_free && now > off.since + LEAST_AWAY)
    }

    /// It is there again.
    pub fn come_back(&self) {
        self.model().off = None;
    }

    /// Whether what was admitted may still be answered: the disk has not gone meanwhile.
    pub fn stands(&self, verdict: &Verdict) -> bool {
        self.epoch.load(SeqCst) == verdict.epoch
    }

    /// Reads, with a bit turned over if the verdict says so.
    pub fn read(&self, verdict: &Verdict, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.storage().read(offset, into)?;
        if let Some((at, bit)) = verdict.flip
            && let Some(byte) = at.checked_sub(offset).and_then(|at| into.get_mut(at as usize))
        {
            *byte ^= 1 << bit;
        }
        Ok(())
    }

    /// What [`Disk::read`] would copy, for `with` to look at: not where it lies apart in memory or a bit of it turns over.
    pub fn lend<T>(&self, verdict: &Verdict, offset: u64, len: usize, with: impl FnOnce(Option<&[u8]>) -> T) -> T {
        let storage = self.storage();
        with(storage.lend(offset, len).filter(|_| verdict.flip.is_none()))
    }

    /// Writes, and turns a bit over where it is stored if the verdict says so.
    pub fn write(&self, verdict: &Verdict, offset: u64, from: &[u8]) -> io::Result<()> {
        let mut store = self.storage_mut();
        if !self.stands(verdict) {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        store.write(offset, from)?;
        verdict.flip.map_or(Ok(()), |(at, bit)| store.flip(at, bit))
    }

    /// Zeros.
    pub fn zero(&self, verdict: &Verdict, offset: u64, len: u64) -> io::Result<()> {
        let mut store = self.storage_mut();
        if self.stands(verdict) { store.zero(offset, len) } else { Err(io::Error::from_raw_os_error(EIO)) }
    }

    /// Holes.
    pub fn trim(&self, verdict: &Verdict, offset: u64, len: u64) -> io::Result<()> {
        let mut store = self.storage_mut();
        if self.stands(verdict) { store.trim(offset, len) } else { Err(io::Error::from_raw_os_error(EIO)) }
    }

    /// Makes everything durable that has been written, unless the flush lies. Done when the flush comes: a disk may have
    /// written it back earlier, and promises nothing before the answer.
    pub fn flush(&self, verdict: &Verdict) {
        let mut store = self.storage_mut();
        if self.stands(verdict) && !verdict.lie {
            store.flush();
        }
    }

    /// An answer leaves.
    pub fn answered(&self, verdict: &Verdict, late: Nanos) {
        let mut model = self.model();
        // Of a trim nothing is known that could be kept, and a disk that is off answers as soon as it can.
        if model.probe.is_none() && verdict.time > Nanos(0) {
            model.counters.answered(late, verdict.time, verdict.floor);
        }
        if let Some((read, owed)) = verdict.owed {
            model.way.answered(read, owed, late);
        }
    }

    /// Every request takes so long, and nothing is counted; nothing: as the profile says.
    pub fn probe(&self, delay: Option<Nanos>) {
        self.model().probe = delay;
    }

    /// Makes the first `len` bytes a hole, as if nothing had ever been written.
    pub fn blank(&self, len: u64) -> io::Result<()> {
        let mut store = self.storage_mut();
        store.flush();
        store.trim(0, len)
    }

    /// Follows what the way costs by the kernel's account of the device, and by how much it scatters by itself.
    pub fn look(&self, kernel: [Sum; 2]) {
        let now = self.clock.now();
        let mut model = self.model();
        model.way.look(now, kernel);
        model.absorb();
    }

    /// The disk is ready: its way costs this, and the kernel has counted so much of those who measured it.
    pub fn ready(&self, way: Way, kernel: [Sum; 2]) {
        let mut model = self.model();
        model.way = way;
        model.way.begin(self.clock.now(), kernel);
        model.absorb();
        model.ready_at = self.clock.now();
        model.made_with = sys::process::cpu_time();
    }

    pub fn figures(&self) -> Figures {
        let (taken_bytes, unflushed_bytes) = self.storage().taken();
        let now = self.clock.now();
        let mut model = self.model();
        let online = model.is_on(now);
        let faults = model.faults.iter().map(|fault| FaultFigures { fault: fault.text.clone(), struck: fault.fired });
        let counted = model.counters.snapshot();
        let requests = counted.transfers() + counted.flushes + counted.trims;
        let cpu = sys::process::cpu_time().saturating_sub(model.made_with);
        Figures {
            cpu_us_per_request: if requests == 0 { 0.0 } else { cpu.as_secs_f64() * 1e6 / requests as f64 },
            uptime_s: Nanos(now.0.saturating_sub(model.ready_at.0)).secs(),
            taken_bytes,
            unflushed_bytes,
            online,
            faults: faults.collect(),
            way_read_us: tenths(model.way.base[0]),
            way_write_us: tenths(model.way.base[1]),
            way_outside_us: tenths(model.way.outside()),
            way_scatter_us: tenths(model.way.scatter()),
            ..counted
        }
    }
}

/// ns as µs, to a tenth.
fn tenths(ns: f64) -> f64 {
    (ns / 100.0).round() / 10.0
}

impl Model {
    /// The profile's scatter without the way's.
    fn absorb(&mut self) {
        self.device.absorb(self.way.scatter() / 1e3, self.way.under_way());
    }

    fn is_on(&mut self, now: Nanos) -> bool {
        if self.off.and_then(|off| off.until).is_some_and(|until| now >= until) {
            self.off = None;
        }
        self.off.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backing::Backing;

    fn disk(toml: &str) -> Disk {
        let profile = Profile::parse(&format!("name = \"x\"\n{toml}")).unwrap();
        let store = Store::new(Backing::ram(), 1 << 20, None);
        Disk::new(&profile, Bytes(16 << 20), 1, store, Clock::start())
    }
    const PLAIN: &str = "[read]\nlatency_us = 500\n[write]\nlatency_us = 500\n[flush]\nlatency_us = 1000";
    fn us(n: u64) -> Nanos {
        Nanos(n * 1000)
    }
    fn put(disk: &Disk, offset: u64, byte: u8) -> Result<(), i32> {
        let verdict = disk.arrive(disk.clock.now(), Act::Write, offset, 4096);
        verdict.outcome?;
        disk.write(&verdict, offset, &[byte; 4096]).map_err(|e| e.raw_os_error().unwrap())
    }
    fn get(disk: &Disk, offset: u64) -> Result<Vec<u8>, i32> {
        let verdict = disk.arrive(disk.clock.now(), Act::Read, offset, 4096);
        verdict.outcome?;
        let mut bytes = vec![0; 4096];
        disk.read(&verdict, offset, &mut bytes).unwrap();
        Ok(bytes)
    }
    fn flush(disk: &Disk) {
        let verdict = disk.arrive(disk.clock.now(), Act::Flush, 0, 0);
        disk.flush(&verdict);
    }

    #[test]
    fn answers_are_due_by_the_profile_less_the_way() {
        let disk = disk(PLAIN);
        assert_eq!(disk.arrive(us(1000), Act::Read, 0, 4096).due, us(1500));
        disk.ready(Way::new(60_000.0, 0.0, [0.0; 2]), [Sum::default(); 2]);
        let verdict = disk.arrive(us(10_000), Act::Read, 0, 4096);
        assert_eq!((verdict.due, verdict.time), (us(10_440), us(500)));
        assert_eq!(disk.arrive(us(20_000), Act::Flush, 0, 0).due, us(20_940));
        assert_eq!(disk.figures().floor_reached, 0);
        disk.ready(Way::new(600_000.0, 0.0, [0.0; 2]), [Sum::default(); 2]);
        assert_eq!(disk.arrive(us(30_000), Act::Write, 0, 4096).due, us(30_000));
        assert_eq!(disk.figures().floor_reached, 1);
        let verdict = disk.arrive(us(40_000), Act::Write, 0, 4096);
        disk.answered(&verdict, us(400));
        assert_eq!((disk.figures().late, disk.figures().floor_reached), (0, 2), "one or the other");
        let trim = disk.arrive(us(50_000), Act::Trim, 0, 4096);
        disk.answered(&trim, us(400));
        assert_eq!(disk.figures().late, 0);
    }

    /// A way of 100 µs with so many requests under way on average.
    fn under_way(n: f64) -> Way {
        let mut way = Way::new(100_000.0, 0.0, [0.0; 2]);
        let reads = Sum { requests: 1000, nanos: n * 1e9, bytes: 0 };
        way.look(Nanos(1_000_000_000), [reads, Sum::default()]);
        way
    }

    /// A device that is faster than the way still serves no more than it can.
    #[test]
    fn in_a_queue_the_device_is_not_taken_to_rest() {
        // 100 times 50 µs from 950 on, less half the way; or at once, the floor reached.
        for (n, last) in [(16.0, us(5900)), (1.0, us(1495))] {
            let disk = disk("channels = 1\n[read]\nlatency_us = 50");
            disk.ready(under_way(n), [Sum::default(); 2]);
            let dues = (0..100).map(|i| disk.arrive(us(1000 + 5 * i), Act::Read, i << 20, 4096).due);
            assert_eq!(dues.max(), Some(last), "{n} under way");
        }
    }

    /// One at a time nothing is waited for, however short the way of a request happens to be.
    #[test]
    fn what_was_answered_is_not_waited_for() {
        let disk = disk("channels = 1\n[read]\nlatency_us = 500");
        disk.ready(under_way(1.0), [Sum::default(); 2]);
        let first = disk.arrive(us(1000), Act::Read, 0, 4096);
        assert_eq!(first.due, us(1400));
        // 30 µs after the answer left; the way is 100.
        let second = disk.arrive(us(1430), Act::Read, 1 << 20, 4096);
        assert_eq!((second.due, second.time), (us(1830), us(500)));
        // What comes while another is under way waits for it: until 1880 by the model, and 500 more.
        let third = disk.arrive(us(1500), Act::Read, 2 << 20, 4096);
        assert_eq!((third.due, third.time), (us(2330), us(930)));
    }

    #[test]
    fn what_the_profile_does_not_know_is_as_fast_as_the_way() {
        let disk = disk("[read]\nlatency_us = 500");
        disk.ready(Way::new(60_000.0, 0.0, [0.0; 2]), [Sum::default(); 2]);
        let write = disk.arrive(us(1000), Act::Write, 0, 4096);
        assert_eq!((write.due, write.outcome, disk.figures().floor_reached), (us(1000), Ok(()), 1));
        assert_eq!(disk.arrive(us(1000), Act::Read, 0, 4096).due, us(1440));
    }

    #[test]
    fn faults_strike() {
        let disk = disk(PLAIN);
        for spec in
            ["eio:on=read,range=1MiB-2MiB", "enospc:on=write,range=2MiB-3MiB", "corrupt:on=write,range=3MiB-4MiB"]
        {
            disk.fault(spec.parse().unwrap());
        }
        assert_eq!(get(&disk, 1 << 20), Err(EIO));
        assert_eq!(put(&disk, 2 << 20, 1), Err(ENOSPC));
        put(&disk, 3 << 20, 0).unwrap();
        let ones: u32 = get(&disk, 3 << 20).unwrap().iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(ones, 1);
        assert_eq!(disk.figures().faults.iter().map(|fault| fault.struck).sum::<u64>(), 3);
        disk.fault("clear".parse().unwrap());
        assert!(get(&disk, 1 << 20).is_ok());
        disk.fault("slow:factor=3".parse().unwrap());
        disk.fault("stall:for=10ms,on=flush".parse().unwrap());
        assert_eq!(disk.arrive(us(1_000_000), Act::Read, 0, 4096).due, us(1_001_500));
        assert_eq!(disk.arrive(us(2_000_000), Act::Flush, 0, 0).due, us(2_010_000));
        assert_eq!(disk.arrive(us(2_000_000), Act::Read, 0, 4096).due, us(2_010_000), "nothing moves");
    }

    #[test]
    fn a_power_cut_keeps_what_was_flushed() {
        let disk = disk(PLAIN);
        (0..100).for_each(|i| put(&disk, i * 4096, 1).unwrap());
        flush(&disk);
        (0..100).for_each(|i| put(&disk, i * 4096, 2).unwrap());
        let under_way = disk.arrive(disk.clock.now(), Act::Write, 0, 4096);
        disk.fault("power-cut:seed=3".parse().unwrap());
        assert!(!disk.stands(&under_way) && disk.write(&under_way, 0, &[9; 4096]).is_err());
        assert_eq!(get(&disk, 0), Err(EIO));
        assert!(!disk.figures().online && disk.figures().sectors_lost > 300);
        disk.fault("return".parse().unwrap());
        let bytes: Vec<u8> = (0..100).flat_map(|i| get(&disk, i * 4096).unwrap()).collect();
        assert!(bytes.iter().all(|byte| [1, 2].contains(byte)) && bytes.contains(&1) && bytes.contains(&2));
    }

    #[test]
    fn a_lying_flush_loses_what_it_promised() {
        let disk = disk(PLAIN);
        disk.fault("lying-flush".parse().unwrap());
        (0..100).for_each(|i| put(&disk, i * 4096, 1).unwrap());
        flush(&disk);
        disk.fault("power-cut:for=0ms".parse().unwrap());
        assert!((0..100).any(|i| get(&disk, i * 4096).unwrap().contains(&0)));
    }

    #[test]
    fn a_disconnected_disk_forgets_nothing() {
        let disk = disk(PLAIN);
        put(&disk, 0, 1).unwrap();
        disk.fault("disconnect:on=write,after=1".parse().unwrap());
        put(&disk, 4096, 2).unwrap();
        assert_eq!(put(&disk, 8192, 3), Err(EIO));
        assert_eq!(get(&disk, 0), Err(EIO));
        assert!(!disk.waits_for_peace());
        disk.come_back();
        assert_eq!(get(&disk, 4096).unwrap(), [2; 4096]);
        put(&disk, 8192, 3).unwrap();
    }
}
