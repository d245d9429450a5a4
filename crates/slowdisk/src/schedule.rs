//! When answers leave that are not due at once: one thread owns them in a heap by due time, sleeps until shortly before the
//! next and spins the rest, because a sleep ends tens of microseconds late.

use basics::Nanos;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The clock of one disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub fn start() -> Self {
        Clock(Instant::now())
    }
    pub fn now(self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// Awake so long before an answer is due. A sleep ends 10 to 30 µs late; what is left of that is part of the way, which is
/// followed and taken off. Spinning for all of it took a fifth more CPU, of which the program under test has too little
/// on two cores.
const SPIN: u64 = 20_000;
/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// Something that is due.
#[derive(Debug)]
struct Due<T> {
    at: u64,
    number: u64,
    item: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<T> Eq for Due<T> {}
impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Due<T> {
    /// The earliest is the greatest; of equals the one that came first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

#[derive(Debug)]
struct Heap<T> {
    due: BinaryHeap<Due<T>>,
    pushed: u64,
    closed: bool,
}

/// What is due when.
#[derive(Debug)]
pub(crate) struct Schedule<T> {
    clock: Clock,
    heap: Mutex<Heap<T>>,
    /// The earliest due time; watched while spinning.
    next: AtomicU64,
    came: Condvar,
}

impl<T> Schedule<T> {
    pub fn new(clock: Clock) -> Self {
        let heap = Heap { due: BinaryHeap::with_capacity(256), pushed: 0, closed: false };
        Schedule { clock, heap: Mutex::new(heap), next: AtomicU64::new(NEVER), came: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Heap<T>> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, at: Nanos, item: T) {
        let mut heap = self.lock();
        let number = heap.pushed;
        heap.pushed += 1;
        heap.due.push(Due { at: at.0, number, item });
        if at.0 < self.next.load(SeqCst) {
            self.next.store(at.0, SeqCst);
            drop(heap);
            self.came.notify_one();
        }
    }

    /// Ends [`Schedule::run`]; what is still in the heap is dropped with it.
    pub fn close(&self) {
        self.lock().closed = true;
        self.next.store(0, SeqCst);
        self.came.notify_all();
    }

    /// Gives out what is due, with the time by which it is late, until closed.
    pub fn run(&self, mut answer: impl FnMut(T, Nanos)) {
        let mut heap = self.lock();
        loop {
            if heap.closed {
                heap.due.clear();
                return;
            }
            let now = self.clock.now().0;
            let next = heap.due.peek().map_or(NEVER, |due| due.at);
            self.next.store(next, SeqCst);
            if next <= now {
                let Some(due) = heap.due.pop() else { continue };
                drop(heap);
                answer(due.item, Nanos(now - due.at));
                heap = self.lock();
            } else if next == NEVER {
                heap = self.came.wait(heap).unwrap_or_else(PoisonError::into_inner);
            } else if next - now > SPIN {
                let sleep = Duration::from_nanos(next - now - SPIN);
                (heap, _) = self.came.wait_timeout(heap, sleep).unwrap_or_else(PoisonError::into_inner);
            } else {
                drop(heap);
                // Something earlier may come meanwhile.
                while self.clock.now().0 < self.next.load(SeqCst) {
                    std::hint::spin_loop();
                }
                heap = self.lock();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn answers_leave_in_order_and_not_early() {
        let clock = Clock::start();
        let schedule = Arc::new(Schedule::new(clock));
        let runs = Arc::clone(&schedule);
        let thread = std::thread::spawn(move || {
            let mut left = Vec::new();
            runs.run(|(at, item): (u64, u32), _| {
                assert!(clock.now().0 >= at);
                left.push(item);
                if left.len() == 5 {
                    runs.close();
                }
            });
            left
        });
        let base = clock.now().0 + 300_000_000;
        for (item, wait) in [(3, 3_000_000u64), (1, 0), (2, 1_000_000), (4, 3_000_000)] {
            schedule.push(Nanos(base + wait), (base + wait, item));
        }
        // Comes while the thread sleeps for later ones.
        std::thread::sleep(Duration::from_millis(1));
        schedule.push(Nanos(0), (0, 0));
        assert_eq!(thread.join().unwrap(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn closing_ends_a_sleep() {
        let schedule = Arc::new(Schedule::<()>::new(Clock::start()));
        let runs = Arc::clone(&schedule);
        let thread = std::thread::spawn(move || runs.run(|(), _| {}));
        schedule.push(Nanos(u64::MAX - 1), ());
        std::thread::sleep(Duration::from_millis(5));
        schedule.close();
        thread.join().unwrap();
    }
}
