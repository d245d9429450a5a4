//! The memory of the program, through the kernel's faces: where units are, and two threads through which they are brought in
//! and sent out, so that neither waits for the other and nobody who watches waits for a disk.

use crate::hand::Hand;
use crate::maps::Maps;
use crate::units::{Id, Marked, UNIT, Units};
use crate::world::{Look, World};
use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::peer::{Advice, Lies, Peer, Range};

/// Batches that may wait for a thread.
const WAITING: usize = 256;
/// Mapped again since: looked at again at most so often, in ns.
const AGAIN: u64 = 500_000_000;
/// Of a mapping, the order goes through so many units at least, and through such a part, one in so many, where it is looked through for
/// others.
const FEW: usize = 16;
const PART: usize = 8;
/// Of the order's units that go out, one in so many takes one along of which nobody knows: much of that has to be written first. All of it
/// at once, and what was just used waits for it and the room is not there in time.
const ALONG: u32 = 4;
/// After so many more that is written, and only the swap cache has it, which the kernel empties once nothing is left.
const WRITTEN: usize = 32;

/// What is to be done ahead of the program.
#[derive(Debug, Clone, Copy)]
enum Ask {
    Bring(Range),
    There(There),
}

/// What is to be done with what is there.
#[derive(Debug, Clone, Copy)]
enum There {
    /// Of a unit, unless that has gone again.
    Map(Range, Id),
    /// Mapped, too, and then sent out: advice reaches what is in a page table alone.
    Release(Range),
}

/// What a thread does with each batch; in a box, so that there is one kind of thread and not four.
type Give<T> = Box<dyn FnMut(&[T]) -> io::Result<()> + Send>;

/// A thread that does one kind of thing.
#[derive(Debug)]
struct Adviser<T> {
    send: Option<SyncSender<Vec<T>>>,
    thread: Option<JoinHandle<()>>,
    batch: Vec<T>,
    /// What still waits is not worth its time.
    over: Arc<AtomicBool>,
    /// What is handed on and not done: each in bytes of memory, or as one where it takes none.
    waiting: Arc<AtomicU64>,
    weight: fn(&T) -> u64,
    /// CPU time of its thread, in ns.
    took: Arc<AtomicU64>,
}

impl<T: Send + 'static> Adviser<T> {
    fn new(name: &str, refused: &Arc<AtomicU64>, weight: fn(&T) -> u64, mut give: Give<T>) -> io::Result<Self> {
        let (send, receive) = sync_channel::<Vec<T>>(WAITING);
        let refused = Arc::clone(refused);
        let over = Arc::new(AtomicBool::new(false));
        let waiting = Arc::new(AtomicU64::new(0));
        let took = Arc::new(AtomicU64::new(0));
        let (is_over, are_waiting, has_taken) = (Arc::clone(&over), Arc::clone(&waiting), Arc::clone(&took));
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(64 << 10).spawn(move || {
            for batch in receive {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                // One that has ended is noticed by its number.
                if let Err(error) = give(&batch) {
                    refused.fetch_add(u64::from(error.kind() != io::ErrorKind::NotFound), Ordering::Relaxed);
                }
                has_taken.store(sys::thread::cpu_time().as_nanos() as u64, Ordering::Relaxed);
                are_waiting.fetch_sub(batch.iter().map(weight).sum(), Ordering::Release);
            }
        })?;
        Ok(Adviser { send: Some(send), thread: Some(thread), batch: Vec::new(), over, waiting, weight, took })
    }

    /// What is to be done and is not, handed on or not yet.
    fn pending(&self) -> u64 {
        self.batch.iter().map(self.weight).sum::<u64>() + self.waiting.load(Ordering::Acquire)
    }

    fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        if let Some(send) = &self.send {
            let weight = self.batch.iter().map(self.weight).sum();
            self.waiting.fetch_add(weight, Ordering::Relaxed);
            // Advice that nobody has time for is forgotten: it is no more than that.
            if send.try_send(std::mem::take(&mut self.batch)).is_err() {
                self.waiting.fetch_sub(weight, Ordering::Relaxed);
            }
        }
    }
}

impl<T> Drop for Adviser<T> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        drop(self.send.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The memory of one program.
#[derive(Debug)]
pub struct Memory {
    pid: u32,
    peer: Arc<Peer>,
    maps: Maps,
    mapped: u64,
    /// Units of its address space.
    pub units: Units,
    ahead: Adviser<Ask>,
    /// What is to be put into the page table and is not, in bytes.
    mapping: Arc<AtomicU64>,
    /// Units that are to be put there and were not sent out since. The disk, or a program that is quicker, may leave that a window behind:
    /// whoever maps what has gone reads it again, and nobody sends that out.
    due: Arc<Marked>,
    /// Pages of files, where who asks for them is charged.
    files: Option<Adviser<Range>>,
    /// The number of who does.
    hand: Option<u32>,
    behind: Adviser<Range>,
    /// Where the search for units that nobody knows goes on; those that were found and are to go out; those that did of late; and units of
    /// the order that went out since one did.
    unknown: u64,
    leaving: VecDeque<Range>,
    gone: VecDeque<Range>,
    went: u32,
    lies: Vec<Lies>,
    refused: Arc<AtomicU64>,
}

impl Memory {
    /// Of this process.
    ///
    /// # Errors
    /// `NotFound`, `PermissionDenied` or `Unsupported`, with a sentence.
    pub fn of(pid: u32) -> io::Result<Self> {
        let peer = Arc::new(Peer::open(pid)?);
        // Nothing is asked for: whether it may be is known at once.
        let maps = Maps::read(pid)?;
        if let Some(map) = maps.within(0, u64::MAX).next() {
            peer.advise(&[Range { at: map.0.at, len: peer.page() }], Advice::WillNeed)?;
        }
        let refused = Arc::new(AtomicU64::new(0));
        let due = Arc::new(Marked::default());
        let (ahead, mapping) = bringing(&peer, &due, &refused)?;
        let own = Arc::clone(&peer);
        let send_out = move |ranges: &[Range]| own.advise(ranges, Advice::PageOut).map(|_| ());
        let behind = Adviser::new("pageout", &refused, |range| range.len, Box::new(send_out))?;
        let (units, lies) = (Units::default(), Vec::new());
        Ok(Memory {
            pid,
            peer,
            maps,
            mapped: 0,
            units,
            ahead,
            mapping,
            due,
            files: None,
            hand: None,
            behind,
            unknown: 0,
            leaving: VecDeque::new(),
            gone: VecDeque::new(),
            went: 0,
            lies,
            refused,
        })
    }

    /// From now on pages of files are brought in by a process in this control group, and so charged to it.
    ///
    /// # Errors
    /// When there can be none; they are brought in as before, then.
    pub fn charge(&mut self, group: &Path, program: &Path) -> io::Result<()> {
        let mut hand = Hand::of(self.pid, group, program)?;
        self.hand = Some(hand.pid());
        let peer = Arc::clone(&self.peer);
        let bring = move |ranges: &[Range]| {
            // Who ends it has a reason: its group is to be empty.
            hand.bring(ranges).or_else(|_| peer.advise(ranges, Advice::WillNeed).map(|_| ()))
        };
        self.files = Some(Adviser::new("files", &self.refused, |range| range.len, Box::new(bring))?);
        Ok(())
    }

    /// From now on this process does it again; the CPU time that it took.
    pub fn uncharge(&mut self) -> Duration {
        let took = self.hand_cpu();
        (self.files, self.hand) = (None, None);
        took
    }

    /// Whether they are.
    pub fn is_charged(&self) -> bool {
        self.files.is_some()
    }

    /// CPU time that it took.
    pub fn hand_cpu(&self) -> Duration {
        self.hand.and_then(sys::process::cpu_time_of).unwrap_or_default()
    }

    /// Hands on what was asked for since the last time.
    pub fn flush(&mut self) {
        self.ahead.flush();
        if let Some(files) = &mut self.files {
            files.flush();
        }
        self.behind.flush();
    }

    /// CPU time that bringing in took, in ns; not the hand's, which brings in pages of files.
    pub fn bringing_took(&self) -> u64 {
        self.ahead.took.load(Ordering::Relaxed)
    }

    /// Calls that the kernel refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The process may have mapped something since.
    pub fn renew(&mut self, now: u64) {
        if now.saturating_sub(self.mapped) > AGAIN {
            self.mapped = now;
            if let Ok(maps) = Maps::read(self.pid) {
                self.maps = maps;
            }
        }
    }

    /// Whether this address lies in memory that can be paged.
    pub fn has(&self, address: u64) -> bool {
        self.maps.has(address)
    }

    /// Whether a unit is of a file.
    pub fn is_file(&self, unit: Id) -> bool {
        self.maps.within(self.units.address(unit), UNIT).any(|(_, file)| file)
    }

    /// Length of a page.
    pub fn page(&self) -> u64 {
        self.peer.page()
    }

    /// Sends out what else is there of the files that consist of these units for the most part: it came with them, as read-ahead or the
    /// rest of a folio. Should it be used after all, it will turn up.
    pub fn send_out_read_ahead(&mut self, order: &HashSet<Id>) {
        for (map, _) in self.maps.within(0, u64::MAX).filter(|(_, file)| *file) {
            let beside: Vec<Range> = self.beside(map, order).collect();
            if 2 * beside.len() <= units_of(map).count() {
                self.behind.batch.extend(beside);
            }
        }
    }

    /// Has so many units go out, little by little, that are there and are not of the order, of mappings a part of which it goes through;
    /// none while some still are to. While a program had more room than it has now the kernel had no reason to take them, and now that
    /// what is left is not used up it has none. One that is used all the same turns up, and is known then; so as not to miss many at once,
    /// the next call goes on where this one ends. They, and whether all were looked at.
    pub fn send_out_unknown(&mut self, order: &HashSet<Id>, most: usize) -> (Vec<Id>, bool) {
        if !self.leaving.is_empty() {
            return (Vec::new(), false);
        }
        let maps = self.maps.within(0, u64::MAX).filter(|(_, file)| !file).map(|(map, _)| map);
        let maps: Vec<Range> = maps.filter(|map| map.at + map.len > self.unknown).collect();
        let mut sent = Vec::new();
        for map in maps {
            // Address space that is only reserved, or where the order hardly goes, is not worth a look at all of it.
            if units_of(map).count() > PART * order.len() {
                continue;
            }
            let beside: Vec<Range> = self.beside(map, order).collect();
            let known = units_of(map).count() - beside.len();
            if known < FEW || PART * known < beside.len() {
                continue;
            }
            let from = self.unknown;
            for range in beside.into_iter().filter(|range| range.at >= from) {
                if self.peer.look(range, &mut self.lies).is_ok() && self.lies.contains(&Lies::Present) {
                    self.leaving.push_back(range);
                    sent.extend(self.units.at(range.at));
                }
                if sent.len() == most {
                    self.unknown = range.at + range.len;
                    return (sent, false);
                }
            }
        }
        self.unknown = 0;
        (sent, true)
    }

    /// Sends out the next of them, and has one that was written meanwhile leave the swap cache, unless it is used again.
    fn one_along(&mut self) {
        let next = self.leaving.pop_front();
        self.behind.batch.extend(next);
        self.gone.extend(next);
        if (self.gone.len() > WRITTEN || next.is_none())
            && let Some(written) = self.gone.pop_front()
            && self.peer.look(written, &mut self.lies).is_ok()
            && !self.lies.contains(&Lies::Present)
        {
            self.ahead.batch.push(Ask::There(There::Release(written)));
        }
    }

    /// What was to go out and is not of an order stays: there is another order now.
    pub fn keep_unknown(&mut self) {
        self.leaving.clear();
        self.gone.clear();
    }

    /// Sends out all that it has of its own.
    pub fn send_out_all(&mut self) {
        let maps = self.maps.within(0, u64::MAX).filter(|(_, file)| !file);
        self.behind.batch.extend(maps.map(|(map, _)| map));
        self.behind.flush();
    }

    /// The units of a mapping, cut to it, that are not of the order.
    fn beside<'a>(&'a self, map: Range, order: &'a HashSet<Id>) -> impl Iterator<Item = Range> + 'a {
        let is_known = |at: u64| self.units.known(at).is_some_and(|unit| order.contains(&unit));
        units_of(map).filter(move |at| !is_known(*at)).map(move |at| {
            let (from, to) = (at.max(map.at), (at + UNIT).min(map.at + map.len));
            Range { at: from, len: to - from }
        })
    }

    /// Whether all of a range of a file is in memory. Nobody can say before Linux 6.5, or without CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN,
    /// one of which `map_files` wants (proc(5)); and of others' files not without CAP_FOWNER.
    fn is_cached(&self, range: Range) -> Option<bool> {
        let map = self.maps.at(range.at)?;
        // Opened each time, so that nobody who wants to unmount it finds it in use.
        let file = File::open(format!("/proc/{}/map_files/{:x}-{:x}", self.pid, map.from, map.to)).ok()?;
        let pages = sys::file::pages_in_cache(file, map.offset + range.at - map.from, range.len).ok()?;
        Some(pages * self.peer.page() >= range.len)
    }

    /// Runs of pages of a unit, and whether each is of a file.
    fn runs(&mut self, unit: Id, pages: u64, mut each: impl FnMut(Range, bool, &mut Memory)) {
        let (at, page) = (self.units.address(unit), self.peer.page());
        let pages = pages & (u64::MAX >> (u64::from(u64::BITS) - (UNIT / page).clamp(1, 64)));
        let mut from = pages.trailing_zeros();
        while from < u64::BITS {
            let mut to = from;
            while to < u64::BITS && pages >> to & 1 != 0 {
                to += 1;
            }
            let len = u64::from(to - from) * page;
            let ranges: Vec<_> = self.maps.within(at + u64::from(from) * page, len).collect();
            ranges.into_iter().for_each(|(range, file)| each(range, file, self));
            let rest = pages.checked_shr(to).unwrap_or(0);
            from = if rest == 0 { u64::BITS } else { to + rest.trailing_zeros() };
        }
    }
}

/// Where the units begin that lie in a mapping.
fn units_of(map: Range) -> impl Iterator<Item = u64> {
    (map.at / UNIT..(map.at + map.len).div_ceil(UNIT)).map(|place| place * UNIT)
}

/// One thread brings in and does not wait for the disk; another, behind it, waits for each page and maps it.
fn bringing(
    peer: &Arc<Peer>,
    due: &Arc<Marked>,
    refused: &Arc<AtomicU64>,
) -> io::Result<(Adviser<Ask>, Arc<AtomicU64>)> {
    let (own, due) = (Arc::clone(peer), Arc::clone(due));
    let map = move |all: &[There]| {
        for there in all {
            match there {
                There::Map(range, unit) if due.has(*unit) => own.map(*range),
                There::Map(..) => {}
                There::Release(range) => {
                    own.map(*range);
                    own.advise(&[*range], Advice::PageOut)?;
                }
            }
        }
        Ok(())
    };
    let weight = |there: &There| match there {
        There::Map(range, _) => range.len,
        There::Release(_) => 1,
    };
    let mut mapper = Adviser::new("map", refused, weight, Box::new(map))?;
    let mapping = Arc::clone(&mapper.waiting);
    let (own, mut ranges) = (Arc::clone(peer), Vec::new());
    let bring = move |asks: &[Ask]| {
        ranges.clear();
        for ask in asks {
            match ask {
                Ask::Bring(range) => ranges.push(*range),
                Ask::There(there) => mapper.batch.push(*there),
            }
        }
        let done = own.advise(&ranges, Advice::WillNeed);
        mapper.flush();
        done.map(|_| ())
    };
    let weight = |ask: &Ask| match ask {
        Ask::Bring(range) => range.len,
        Ask::There(_) => 1,
    };
    Ok((Adviser::new("willneed", refused, weight, Box::new(bring))?, mapping))
}

impl World for Memory {
    fn look(&mut self, unit: Id) -> Look {
        let (at, page) = (self.units.address(unit), self.peer.page());
        let mut look = Look { page: page as u32, ..Look::default() };
        for (range, file) in self.maps.within(at, UNIT) {
            if self.peer.look(range, &mut self.lies).is_err() {
                break;
            }
            let first = (range.at - at) / page;
            for (nth, lies) in self.lies.iter().enumerate() {
                let bit = 1 << (first + nth as u64);
                match lies {
                    Lies::Present => look.present |= bit,
                    Lies::Swapped => look.absent |= bit,
                    Lies::Nowhere if file => look.absent |= bit,
                    Lies::Nowhere => {}
                }
            }
        }
        look
    }

    fn cached(&mut self, unit: Id, pages: u64) -> u64 {
        let (at, page, mut cached) = (self.units.address(unit), self.peer.page(), 0);
        self.runs(unit, pages, |range, file, memory| {
            if file && memory.is_cached(range) == Some(true) {
                let (first, count) = ((range.at - at) / page, range.len / page);
                cached |= u64::MAX >> (u64::from(u64::BITS) - count) << first;
            }
        });
        cached
    }

    fn ahead(&mut self, unit: Id, pages: u64) {
        self.runs(unit, pages, |range, file, memory| match &mut memory.files {
            Some(files) if file => files.batch.push(range),
            _ => memory.ahead.batch.push(Ask::Bring(range)),
        });
    }

    fn map(&mut self, unit: Id, pages: u64) {
        self.due.set(unit, true);
        // Of a file many are mapped by one fault anyway.
        self.runs(unit, pages, |range, file, memory| {
            if !file {
                memory.ahead.batch.push(Ask::There(There::Map(range, unit)));
            }
        });
    }

    fn coming(&mut self) -> u64 {
        let waiting = self.ahead.waiting.load(Ordering::Acquire);
        waiting + self.files.as_ref().map_or(0, |files| files.waiting.load(Ordering::Acquire))
    }

    fn under_way(&mut self) -> u64 {
        self.ahead.pending() + self.mapping.load(Ordering::Acquire)
    }

    fn going(&mut self) -> u64 {
        self.behind.pending()
    }

    fn release(&mut self, unit: Id, pages: u64) {
        self.due.set(unit, false);
        self.runs(unit, pages, |range, _, memory| memory.ahead.batch.push(Ask::There(There::Release(range))));
    }

    fn behind(&mut self, unit: Id) {
        self.due.set(unit, false);
        let at = self.units.address(unit);
        self.behind.batch.extend(self.maps.within(at, UNIT).map(|(range, _)| range));
        self.went += 1;
        if self.went >= ALONG {
            self.went = 0;
            self.one_along();
        }
    }

    fn is_at_work(&mut self, thread: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/task/{thread}/stat", self.pid)).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['R', 'D']))
    }

    fn is_written(&mut self, unit: Id, pages: u64) -> bool {
        let (at, page) = (self.units.address(unit), self.peer.page());
        // All of a unit that a program writes to is written: its ends are enough.
        [pages.trailing_zeros(), 63 - pages.leading_zeros()]
            .into_iter()
            .all(|nth| self.peer.costs_a_write(at + u64::from(nth) * page) == Some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_gone_meanwhile_is_not_mapped() {
        let mut memory = match Memory::of(std::process::id()) {
            Ok(memory) => memory,
            Err(error) => return println!("SKIP what_has_gone_meanwhile_is_not_mapped: {error}"),
        };
        let untouched = Vec::<u8>::with_capacity(8 * UNIT as usize);
        memory.maps = Maps::read(std::process::id()).unwrap();
        let first = (untouched.as_ptr() as u64).next_multiple_of(UNIT);
        let [stays, goes] = [1, 2].map(|nth| memory.units.at(first + nth * UNIT).unwrap());
        [stays, goes].into_iter().for_each(|unit| memory.map(unit, 0b11));
        memory.behind(goes);
        memory.behind.batch.clear();
        memory.flush();
        while memory.under_way() > 0 {
            std::thread::yield_now();
        }
        assert_eq!((memory.look(stays).present, memory.look(goes).present), (0b11, 0));
    }

    #[test]
    fn what_nobody_knows_goes_some_at_a_time_and_what_is_known_stays() {
        let mut memory = match Memory::of(std::process::id()) {
            Ok(memory) => memory,
            Err(error) => return println!("SKIP what_nobody_knows_goes_some_at_a_time: {error}"),
        };
        let touched = vec![1u8; 64 * UNIT as usize];
        memory.maps = Maps::read(std::process::id()).unwrap();
        let first = (touched.as_ptr() as u64).next_multiple_of(UNIT);
        let units: Vec<Id> = (0..63).map(|nth| memory.units.at(first + nth * UNIT).unwrap()).collect();
        // The end of the mapping has none that is known.
        let order: HashSet<Id> = units[..40].iter().copied().collect();
        let (mut sent, mut all) = (Vec::new(), false);
        while !all {
            let (some, done) = memory.send_out_unknown(&order, 10);
            assert!(some.len() <= 10 && (done || some.len() == 10));
            if !some.is_empty() {
                assert_eq!(memory.send_out_unknown(&order, 10), (Vec::new(), false), "these go first");
            }
            (0..ALONG as usize * some.len()).for_each(|_| memory.behind(units[0]));
            sent.extend(some);
            all = done;
        }
        assert!(units[40..].iter().all(|unit| sent.contains(unit)) && !sent.iter().any(|unit| order.contains(unit)));
        assert!(sent.iter().collect::<HashSet<_>>().len() == sent.len(), "each once");
        assert_eq!(memory.behind.batch.len(), (1 + ALONG as usize) * sent.len());
        let mut hardly = units[..8].iter().copied().collect();
        assert!(memory.send_out_unknown(&hardly, 10) == (Vec::new(), true), "it hardly goes there");
        hardly.clear();
        assert!(memory.send_out_unknown(&hardly, 10).0.is_empty());
        memory.behind.batch.clear();
        drop(touched);
    }
}
