//! A language model's decoding without the model: weights that mean nothing, multiplied in the order in which one token needs
//! them. All threads work at one tensor at a time, take its rows a few at a time as llama.cpp's do, and wait for each other
//! before the next; so a page that is missing keeps one of them, and soon all, as it would there. All but one are new for each token.

use crate::token::{attend, choose, write_graph};
use crate::{Control, Ended, EngineError, Outcome, Sink};
use basics::decoding::{Decoding, Part, Piece};
use basics::{EngineUse, Interval, Job, Latencies, Nanos, Side, job};
use std::hint::black_box;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use sys::region::Region;
use sys::weights::Weights;

/// Rows that a thread takes at a time (`ggml_compute_forward_mul_mat` in ggml-cpu.c, one token: chunks of 64 rows).
const ROWS: u64 = 64;
/// How often all threads wait for each other after a product with weights, before the next. llama.cpp does after each of the 34
/// nodes of a layer of llama's, and once more in each of its 9 products (Ollama 0.6.8 tells 1026 nodes for 30 layers): 43 times
/// for 7 weights and their cache, which are 8 pieces here.
const WAITS: u32 = 4;
/// Between two looks at what was done.
const LOOK: Duration = Duration::from_millis(20);
/// Ollama is a Go program, whose runtime looks after its threads so often when they go into foreign code, as they do for each token,
/// and gives up after so many looks in vain (`sysmon` in runtime/proc.go). With the kernel's timer slack that is every 80 to 90 µs for
/// 4.5 ms, and each takes 8 to 10 of a processor that had something to do (`perf sched`): 5 % of a small model's time.
const WATCH: Duration = Duration::from_micros(20);
const WATCHES: u32 = 50;
/// Of each thread: what it calls is shallow.
const STACK: usize = 256 << 10;
/// A multiplication takes whole blocks of so many bytes.
const BLOCK: u64 = 256;

/// What decoding gave.
pub struct Decoded {
    /// As of any job: an operation is a token, its bytes are those that were touched.
    pub outcome: Outcome,
    /// When each token was there, since the prompt was given.
    pub tokens: Vec<Nanos>,
    /// CPU time of all threads at the weights, page faults included; what they waited for each other is left out.
    pub busy: Nanos,
}

/// Takes the prompt in and makes tokens, `job.threads` at a time at each tensor, until all are made, the job's time is over, or it
/// is cancelled. `cache` takes the keys and values.
///
/// # Errors
/// When the pieces do not lie within the weights, or no thread can be had.
pub fn decode(
    decoding: &Decoding,
    job: &Job,
    (weights, cache): (&Weights, &Region),
    control: &Control<'_>,
    sink: &mut dyn Sink,
) -> Result<Decoded, EngineError> {
    fits(decoding, weights.size() as u64, cache.size() as u64)?;
    let threads = job.threads.max(1) as usize;
    let work = Work {
        decoding,
        seed: job.seed,
        weights,
        cache,
        next: decoding.pieces.iter().map(|_| AtomicU64::new(0)).collect(),
        barrier: Barrier::new(threads),
        stop: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        over: AtomicBool::new(false),
        touched: AtomicU64::new(0),
        tokens: Mutex::new(Vec::new()),
        made: Condvar::new(),
        begun: Instant::now(),
    };
    let mut account = Account::new(job.interval);
    let spent = std::thread::scope(|scope| {
        let no_thread = |source| EngineError::System { what: "a thread that multiplies", source };
        let hand = std::thread::Builder::new().spawn_scoped(scope, || work.tokens(threads)).map_err(no_thread)?;
        let watch = std::thread::Builder::new().spawn_scoped(scope, || work.watch());
        watch.map_err(|source| {
            work.stop.store(true, Relaxed);
            EngineError::System { what: "a thread that looks after the others", source }
        })?;
        while !hand.is_finished() {
            std::thread::sleep(LOOK);
            let over = job.stop.time.is_some_and(|time| work.begun.elapsed() >= Duration::from_nanos(time.0));
            // One token is the least that can be said something about.
            if control.cancel.load(Relaxed) || over {
                work.stop.store(true, Relaxed);
            }
            account.look(&work, sink);
        }
        hand.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(no_thread)
    })?;
    account.close(&work, sink);
    let tokens = work.tokens.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ended = match tokens.len() == decoding.tokens as usize {
        true => Ended::Operations,
        false if control.cancel.load(Relaxed) => Ended::Cancelled,
        false => Ended::Time,
    };
    let outcome = Outcome {
        engine: EngineUse {
            asked: job.engine,
            used: job::Engine::Decode,
            why: "the target is a model's weights".to_owned(),
            dropped: Vec::new(),
        },
        ended,
        elapsed: account.end,
        read: account.all,
        write: Side::default(),
        faults: Latencies::lazy(),
        cpu_user: spent.user.into(),
        cpu_system: spent.system.into(),
        each: Vec::new(),
        slowest: Vec::new(),
        commands: Vec::new(),
        began: 0,
        notes: Vec::new(),
    };
    Ok(Decoded { outcome, tokens, busy: spent.busy.into() })
}

fn fits(decoding: &Decoding, weights: u64, cache: u64) -> Result<(), EngineError> {
    let context = decoding.context();
    for piece in &decoding.pieces {
        let (len, all) =
            if piece.part == Part::Cache { (piece.len.0 * context, cache) } else { (piece.len.0, weights) };
        let at = if piece.part == Part::Cache { piece.at.0 * context } else { piece.at.0 };
        if at.checked_add(len).is_none_or(|end| end > all) {
            let sentence = format!("a tensor at {} of {} lies beyond the weights' end", piece.at, piece.len);
            return Err(EngineError::Geometry(sentence));
        }
    }
    Ok(())
}

/// What all threads share.
struct Work<'a> {
    decoding: &'a Decoding,
    seed: u64,
    weights: &'a Weights,
    cache: &'a Region,
    /// Of each piece: the rows that the next thread takes.
    next: Vec<AtomicU64>,
    barrier: Barrier,
    /// Set from outside.
    stop: AtomicBool,
    /// Set at a barrier, so that all threads see it at the same place.
    stopped: AtomicBool,
    /// No more tokens are made.
    over: AtomicBool,
    touched: AtomicU64,
    tokens: Mutex<Vec<Nanos>>,
    /// Another token is there.
    made: Condvar,
    begun: Instant,
}

impl Work<'_> {
    /// Token after token. The other threads are new for each, as they are where nobody gave llama.cpp a pool of them
    /// (`ggml_graph_compute`): a processor that had nothing to do meanwhile has to be woken.
    fn tokens(&self, threads: usize) -> std::io::Result<Spent> {
        let _over = Over(self);
        let mut spent = Spent::default();
        for token in 0..self.decoding.tokens {
            std::thread::scope(|scope| {
                let other = || (self.graph(token), sys::thread::usage());
                let start = |_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, other);
                let others: std::io::Result<Vec<_>> = (1..threads).map(start).collect();
                if others.is_err() {
                    // Those that run wait for all, who will never be there.
                    self.barrier.abandoned.store(true, Relaxed);
                }
                spent.busy += self.graph(token);
                for other in others? {
                    let (busy, usage) = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    spent.busy += busy;
                    spent.add(&usage);
                }
                Ok::<_, std::io::Error>(())
            })?;
            if self.stopped.load(Relaxed) {
                break;
            }
            self.between(token);
            self.tokens.lock().unwrap_or_else(PoisonError::into_inner).push(self.begun.elapsed().into());
            self.made.notify_one();
        }
        spent.add(&sys::thread::usage());
        Ok(spent)
    }

    /// One thread's part of a token, or of the whole prompt, which gives the first one: the time that it was busy.
    fn graph(&self, token: u32) -> Duration {
        let _released = Released(self);
        let mut busy = Duration::ZERO;
        let elements = |piece: &Piece| piece.row.0 as usize * usize::from(piece.packed);
        let mut vector = vec![1.0; self.decoding.pieces.iter().map(elements).max().unwrap_or(0)];
        let times = if token == 0 { self.decoding.prompt.max(1) } else { 1 };
        let before = u64::from(self.decoding.prompt.max(1)) - 1 + u64::from(token);
        for (index, piece) in self.decoding.pieces.iter().enumerate() {
            let begun = sys::thread::cpu_time();
            self.piece(index, piece, token, times, before);
            busy += sys::thread::cpu_time() - begun;
            self.barrier.wait(|| {
                self.next[index].store(0, Relaxed);
                self.stopped.store(self.stop.load(Relaxed), Relaxed);
            });
            // Norms, rotations, sums and conversions have something to do, each by one thread while the others wait; as many
            // nodes are mere views.
            for wait in 0..WAITS {
                self.barrier.wait(|| {
                    if wait % 2 == 0 {
                        normalise(&mut vector[..elements(piece)]);
                    }
                });
            }
            if self.stopped.load(Relaxed) || self.barrier.abandoned.load(Relaxed) {
                break;
            }
        }
        busy
    }

    /// Looks after the threads at the beginning of each token, and does nothing.
    fn watch(&self) {
        let mut seen = None;
        while !self.over.load(Relaxed) {
            let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
            let next = self.made.wait_timeout_while(tokens, LOOK, |tokens| seen == Some(tokens.len()));
            let made = next.unwrap_or_else(PoisonError::into_inner).0.len();
            if seen.replace(made) != Some(made) {
                (0..WATCHES).for_each(|_| std::thread::sleep(WATCH));
            }
        }
    }

    /// The next token, while the other threads wait.
    fn between(&self, token: u32) {
        let pieces = &self.decoding.pieces;
        let output = pieces.iter().rev().find(|piece| piece.part == Part::Whole);
        choose(output.map_or(0, |piece| (piece.len.0 / piece.row.0.max(1)) as u32), token);
        write_graph(pieces.len() * WAITS as usize);
    }

    fn piece(&self, index: usize, piece: &Piece, token: u32, times: u32, before: u64) {
        match piece.part {
            Part::Whole => self.rows(index, piece.at.0, piece.len.0, piece, times),
            Part::Row => {
                if self.next[index].fetch_add(1, Relaxed) == 0 {
                    let rows = (piece.len.0 / piece.row.0.max(1)).max(1);
                    (0..times).for_each(|given| {
                        let row = chosen(self.seed, u64::from(token), u64::from(given)) % rows;
                        self.multiply(piece.at.0 + row * piece.row.0, piece.row.0.min(piece.len.0), piece.packed, 1);
                    });
                }
            }
            Part::Experts { used, of } => {
                let slice = piece.len.0 / u64::from(of.max(1));
                // A prompt of many tokens needs nearly all of them, each for its share of those tokens.
                let wanted = u64::from(used) * u64::from(times);
                let used = wanted.min(u64::from(of)) as u32;
                let times = wanted.div_ceil(u64::from(used.max(1))) as u32;
                let taken = self.next[index].fetch_add(1, Relaxed);
                if taken < u64::from(used) {
                    // Each thread its own experts, from one that another layer does not begin with.
                    let first = chosen(self.seed, u64::from(token), index as u64);
                    let mut mine = taken;
                    while mine < u64::from(used) {
                        let expert = (first + mine) % u64::from(of.max(1));
                        self.multiply(piece.at.0 + expert * slice, slice, piece.packed, times);
                        mine = self.next[index].fetch_add(1, Relaxed);
                    }
                }
            }
            Part::Cache => self.keys_and_values(index, piece, times, before),
        }
    }

    /// A few rows at a time, until there are none left.
    fn rows(&self, index: usize, at: u64, len: u64, piece: &Piece, times: u32) {
        let chunk = (piece.row.0 * ROWS).clamp(BLOCK, len.max(BLOCK));
        loop {
            let from = self.next[index].fetch_add(1, Relaxed) * chunk;
            if from >= len {
                return;
            }
            self.multiply(at + from, chunk.min(len - from), piece.packed, times);
        }
    }

    /// `times` is more than 1 for a prompt, whose tokens find the weights in the processor's caches.
    fn multiply(&self, at: u64, len: u64, packed: u8, times: u32) {
        for _ in 0..times {
            black_box(self.weights.multiply(at as usize, len as usize, packed));
        }
        self.touched.fetch_add(len, Relaxed);
    }

    /// What was given and made before is read, this token's own is written; each thread asks for some of the heads. Keys lie one after
    /// the other, values across the room for all of them, as llama.cpp has them without flash attention: a token's value goes to every
    /// page of that room, and comes from every page.
    fn keys_and_values(&self, index: usize, piece: &Piece, times: u32, before: u64) {
        let first = if times > 1 { 0 } else { before };
        let heads = (piece.len.0 / piece.row.0.max(1) * u64::from(piece.packed)).max(1);
        let context = self.decoding.context();
        let base = piece.at.0 * context;
        // Words that are stored; a key and a value are as long.
        let half = piece.len.0 / 2;
        let (values, rows, row) = (base + half * context, half / 2, 2 * context);
        let mut head = self.next[index].fetch_add(1, Relaxed);
        if head == 0 {
            for token in first..=before {
                let at = (base + token * half) / 8 * 8;
                self.cache.fill(at as usize, &KEYS[..(half as usize / 8 * 8).min(KEYS.len())]);
            }
            black_box(self.cache.load(base as usize, ((before + 1) * half) as usize));
            self.touched.fetch_add((before + 1) * piece.len.0, Relaxed);
        }
        // A long prompt asks the more the longer it is: it can be ended in mid-layer.
        let goes_on = || !self.stop.load(Relaxed);
        while head < heads && goes_on() {
            for at in (head * rows / heads..(head + 1) * rows / heads).map(|value| values + value * row) {
                let from = (at + 2 * first) / 8 * 8;
                let len = (at + 2 * (before + 1) - from).next_multiple_of(8) as usize;
                self.cache.fill(from as usize, &KEYS[..len.min(KEYS.len())]);
                black_box(self.cache.load(at as usize, 2 * (before + 1) as usize));
            }
            (first..=before).take_while(|_| goes_on()).for_each(|token| attend(piece.row.0 as usize, token));
            head = self.next[index].fetch_add(1, Relaxed);
        }
    }
}

/// One of the small operations, as long as most of them (`ggml_compute_forward_rms_norm`, which sums in f64 one after the other).
fn normalise(vector: &mut [f32]) {
    let squares: f64 = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
    let scale = (squares / vector.len().max(1) as f64 + 1e-6).sqrt().recip() as f32;
    vector.iter_mut().for_each(|value| *value *= scale);
    black_box(vector);
}

/// What is written as keys and values: any bytes, at most so many at a time.
static KEYS: [u8; 16 << 10] = [0x5a; 16 << 10];

/// A number that is another for each token and place (SplitMix64).
fn chosen(seed: u64, token: u64, place: u64) -> u64 {
    let mut z = seed.wrapping_add((token << 32 | place).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Where all threads wait for each other, by looking and never by sleeping, as `ggml_barrier` does (ggml-cpu.c, built without
/// OpenMP): while one thread waits for a page, the others keep their processors from whoever fetches it.
struct Barrier {
    threads: usize,
    here: AtomicUsize,
    round: AtomicUsize,
    /// Nobody waits any more.
    abandoned: AtomicBool,
}

impl Barrier {
    fn new(threads: usize) -> Self {
        let (here, round) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Barrier { threads, here, round, abandoned: AtomicBool::new(false) }
    }

    /// Returns once all are here; the last one does `then` before the others go on.
    fn wait(&self, then: impl FnOnce()) {
        let round = self.round.load(Acquire);
        if self.here.fetch_add(1, AcqRel) + 1 == self.threads {
            then();
            self.here.store(0, Relaxed);
            self.round.store(round.wrapping_add(1), Release);
            return;
        }
        while self.round.load(Acquire) == round && !self.abandoned.load(Relaxed) {
            std::hint::spin_loop();
        }
    }
}

/// CPU time of all threads, and what of it was at the weights.
#[derive(Default)]
struct Spent {
    user: Duration,
    system: Duration,
    busy: Duration,
}

impl Spent {
    fn add(&mut self, usage: &sys::thread::Usage) {
        self.user += usage.user;
        self.system += usage.system;
    }
}

/// Tells whoever looks on that there is an end.
struct Over<'a>(&'a Work<'a>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Relaxed);
    }
}

/// Lets the others go on when a thread comes to an end that nobody foresaw, for whom they would wait for ever.
struct Released<'a>(&'a Work<'a>);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.barrier.abandoned.store(true, Relaxed);
        }
    }
}

/// Turns what is done into intervals.
struct Account {
    width: Nanos,
    open: Interval,
    told: usize,
    bytes: u64,
    all: Side,
    end: Nanos,
}

impl Account {
    fn new(width: Nanos) -> Self {
        let (open, all) = (Interval::default(), Side::default());
        Account { width: width.max(Nanos::from_millis(10)), open, told: 0, bytes: 0, all, end: Nanos(0) }
    }

    fn look(&mut self, work: &Work<'_>, sink: &mut dyn Sink) {
        let now: Nanos = work.begun.elapsed().into();
        if now - self.open.start < self.width {
            return;
        }
        let bytes = work.touched.load(Relaxed);
        self.open.read.bytes = bytes - self.bytes;
        self.bytes = bytes;
        let tokens = work.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        for index in self.told..tokens.len() {
            let before = index.checked_sub(1).map_or(Nanos(0), |before| tokens[before]);
            self.open.read.latency.record(tokens[index] - before);
        }
        self.told = tokens.len();
        drop(tokens);
        self.open.end = now;
        self.end = now;
        self.all.merge(&self.open.read);
        sink.interval(&self.open);
        self.open = Interval { start: now, ..Interval::default() };
    }

    /// What is left of the last interval.
    fn close(&mut self, work: &Work<'_>, sink: &mut dyn Sink) {
        self.width = Nanos(0);
        self.look(work, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::Bytes;
    use basics::units::MIB;

    fn piece(at: u64, len: u64, part: Part) -> Piece {
        Piece { at: Bytes(at), len: Bytes(len), row: Bytes(4096), packed: 1, part }
    }

    fn decoding() -> Decoding {
        let pieces = vec![
            piece(0, MIB, Part::Row),
            piece(MIB, MIB, Part::Whole),
            piece(0, 1024, Part::Cache),
            piece(2 * MIB, 2 * MIB, Part::Experts { used: 2, of: 8 }),
        ];
        Decoding { model: "m".to_owned(), size: Bytes(4 * MIB), pieces, prompt: 5, tokens: 4, room: 0, mapped: false }
    }

    fn run(decoding: &Decoding, threads: u32, cancel: bool) -> Result<(Decoded, u64), EngineError> {
        let weights = Weights::of(Region::new(decoding.size.0 as usize).unwrap());
        let cache = Region::new(decoding.cache().0.max(4096) as usize).unwrap();
        let job = Job { threads, stop: job::Stop::default(), ..Job::default() };
        let (cancel, mut told) = (AtomicBool::new(cancel), 0);
        let mut sink = |interval: &Interval| told += interval.read.bytes;
        decode(decoding, &job, (&weights, &cache), &Control::new(&cancel), &mut sink).map(|decoded| (decoded, told))
    }

    #[test]
    fn every_token_touches_what_it_needs_whatever_the_threads() {
        let decoding = decoding();
        // The prompt: five rows, all experts but none twice, six tokens' keys; each of the others a row and two experts.
        let first = 5 * 4096 + MIB + 5 * 1024 + 2 * MIB;
        let others: u64 = (1..4).map(|token| 4096 + MIB + MIB / 2 + (5 + token) * 1024).sum();
        for threads in [1, 2, 5] {
            let (decoded, told) = run(&decoding, threads, false).unwrap();
            assert_eq!(decoded.tokens.len(), 4);
            assert!(decoded.tokens.is_sorted());
            assert_eq!(decoded.outcome.read.bytes, first + others);
            assert_eq!((told, decoded.outcome.read.operations()), (first + others, 4));
            assert_eq!(decoded.outcome.ended, Ended::Operations);
        }
    }

    #[test]
    fn it_ends_when_it_is_told_to() {
        let long = Decoding { tokens: 1_000_000, pieces: decoding().pieces[..2].to_vec(), ..decoding() };
        let (decoded, _) = run(&long, 2, true).unwrap();
        assert_eq!(decoded.outcome.ended, Ended::Cancelled);
        assert!(decoded.tokens.len() < 1_000_000);
    }

    #[test]
    fn what_lies_beyond_the_end_is_refused() {
        let beyond = Decoding { pieces: vec![piece(4 * MIB - 1, 2, Part::Whole)], ..decoding() };
        assert!(run(&beyond, 1, false).is_err_and(|error| error.to_string().contains("beyond")));
    }
}
