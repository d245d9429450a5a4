//! A server as a cache of vectors, used as an application uses one: asked for a vector, and where it has it not the vector is fetched
//! from where all of them are, and given to the server. Its memory holds as many as the plan says, and it forgets by itself.

use super::own::Beside;
use super::{Cell, Site, failed};
use crate::RunError;
use crate::pressed::Heard;
use crate::ready::Targets;
use basics::job::Order;
use basics::plan::step_seed;
use basics::redis::{Link, Mode, Server};
use basics::vectors::{Cache, Cached, Cold, Format, Refill, Source};
use basics::{Bytes, EngineUse, Interval, Job, Latencies, Nanos, Side};
use engine::{Ended, Outcome};
use redisd::{Address, Far, Store};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use sys::tracepoints::monotonic;
use vectors::{Coder, Popularity, Vectors};

/// Vectors that are set at a time.
const BATCH: usize = 500;
/// And where the server's memory is not to be taken for the request itself.
const FEW: usize = 16;
/// By so many it is found out what one takes.
const PROBE: u64 = 2000;
/// Draws for each vector that there is room for, until the server holds what it would hold after a long time.
const DRAWS: u64 = 10;
/// Beyond what is kept: buffers of the clients that fill it.
const SLACK: u64 = 1 << 20;
/// It holds what it is to hold to within this part of it, and so often is tried.
const ENOUGH: f64 = 0.02;
const TRIMS: usize = 30;
/// Vectors that are prefetched at a time: so many lie within what a request may wait.
const TOGETHER: usize = 32;
/// Requests of which a share of hits is told.
const WINDOW: usize = 200;
/// A model's hits are back once they are so much of what they were.
const BACK: f64 = 0.9;
/// How often what came is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Vectors of the run, and what their formats find.
#[derive(Default)]
pub(crate) struct Stock {
    vectors: HashMap<Source, Arc<Vectors>>,
    recall: HashMap<(Source, Format), Option<f64>>,
}

impl Stock {
    fn of(&mut self, cache: &Cache) -> Result<(Arc<Vectors>, Coder, Option<f64>), RunError> {
        let vectors = match self.vectors.get(&cache.source) {
            Some(vectors) => vectors.clone(),
            None => {
                let made = Arc::new(Vectors::of(&cache.source).map_err(failed)?);
                self.vectors.insert(cache.source.clone(), made.clone());
                made
            }
        };
        let coder = Coder::new(cache.format, &vectors);
        let of = (cache.source.clone(), cache.format);
        let recall = *self.recall.entry(of).or_insert_with(|| vectors::recall(&vectors, &coder));
        Ok((vectors, coder, recall))
    }
}

/// Where all vectors are.
enum Place {
    /// Each so long.
    File {
        file: File,
        each: usize,
    },
    Remote {
        second: Box<Beside>,
        way: Far,
    },
}

/// A cache that is filled.
pub(crate) struct Stored {
    /// Connected before it was filled, as the server counts what it has for them; the last one is nobody's yet.
    clients: Vec<Store>,
    place: Place,
    cached: Cached,
    theta: f64,
}

impl Stored {
    /// What was seen of it.
    pub fn cached(&self) -> Cached {
        self.cached.clone()
    }

    /// Takes away what is not the server's own.
    pub fn end(self) -> Vec<RunError> {
        match self.place {
            Place::File { .. } => Vec::new(),
            Place::Remote { second, way } => {
                drop(way);
                second.end()
            }
        }
    }
}

/// One way to the place.
enum Fetch<'a> {
    File(&'a File, usize),
    Remote(Store),
}

impl Place {
    fn open(&self) -> Result<Fetch<'_>, RunError> {
        Ok(match self {
            Place::File { file, each } => Fetch::File(file, *each),
            Place::Remote { way, .. } => {
                Fetch::Remote(Store::open(&Address::Tcp(way.address()), None, None).map_err(failed)?)
            }
        })
    }
}

impl Fetch<'_> {
    fn get(&mut self, id: u64) -> Result<Vec<u8>, RunError> {
        match self {
            Fetch::File(file, each) => {
                let (mut vector, at) = (vec![0; *each], id * *each as u64);
                file.read_exact_at(&mut vector, at).map_err(failed)?;
                // The next one who wants it reads the medium again, as of a file that is many times RAM. Only whole pages go.
                let page = rustix::param::page_size() as u64;
                let (from, end) = (at / page * page, (at + *each as u64).next_multiple_of(page));
                let length = std::num::NonZeroU64::new(end - from);
                let _ = rustix::fs::fadvise(file, from, length, rustix::fs::Advice::DontNeed);
                Ok(vector)
            }
            Fetch::Remote(store) => store.get(&name(1, id)).map_err(failed)?.ok_or_else(lost),
        }
    }
}

impl Fetch<'_> {
    /// Several, where a server far away is asked for all of them at once.
    fn get_all(&mut self, ids: &[u64]) -> Result<Vec<Vec<u8>>, RunError> {
        match self {
            Fetch::File(..) => ids.iter().map(|id| self.get(*id)).collect(),
            Fetch::Remote(store) => {
                let names: Vec<String> = ids.iter().map(|id| name(1, *id)).collect();
                let found = store.get_all(&names).map_err(failed)?;
                found.into_iter().map(|one| one.ok_or_else(lost)).collect()
            }
        }
    }
}

fn lost() -> RunError {
    failed("the server far away has lost a vector")
}

/// Of a version of the model.
fn name(version: u32, id: u64) -> String {
    format!("vector:{version}:{id}")
}

/// A request that was answered.
struct Answer {
    /// When, since the beginning.
    at: Nanos,
    took: Nanos,
    /// What fetching took, where it was not there.
    fetched: Option<Nanos>,
}

/// What clients share.
struct Shared<'a> {
    version: AtomicU32,
    wanted: Vec<AtomicU32>,
    over: AtomicBool,
    began: Instant,
    count: u64,
    theta: f64,
    place: &'a Place,
}

impl Cell<'_> {
    /// Puts all vectors where they are to be, and as many into the server as there is room for: those that it would hold after long use.
    pub fn store(
        &mut self,
        cache: &Cache,
        job: &Job,
        targets: &mut Targets<'_>,
        program: &Path,
        interrupted: &AtomicBool,
    ) -> Result<Stored, RunError> {
        let (vectors, coder, recall) = targets.stock().of(cache)?;
        let site = targets.site(program);
        let theta = match job.order {
            Order::Zipf { theta } => theta,
            _ => 0.0,
        };
        let coded = |id: u64| coder.encode(&vectors.row(id as usize).to_vec());
        let dir = &self.own().ok_or_else(|| failed("a cache is a server that tiermark starts"))?.dir;
        let place = place(cache, self.server, &coded, dir, site, interrupted)?;
        let mut clients = (0..=job.threads.max(1)).map(|_| self.client()).collect::<Result<Vec<_>, _>>()?;
        for client in &mut clients {
            client.get(&name(1, 0)).map_err(failed)?;
        }
        let mut store = self.client()?;
        let empty = self.number("used_memory")?;
        let probe = PROBE.min(cache.source.count());
        set(&mut store, (0..probe).map(|id| (name(1, id), coded(id))), BATCH)?;
        let each = self.number("used_memory")?.saturating_sub(empty) as f64 / probe as f64;
        self.control.order("FLUSHALL").map_err(failed)?;
        let mut popularity = Popularity::new(cache.source.count(), theta, step_seed(job.seed, 1));
        let mut draw = |store: &mut Store, count: u64, batch: usize| {
            if interrupted.load(Relaxed) {
                return Err(RunError::Interrupted);
            }
            set(store, (0..count).map(|_| popularity.draw()).map(|id| (name(1, id), coded(id))), batch)
        };
        // Something more than there is room for, and then less until it is as much.
        let room = self.number("used_memory")? + (1.5 * each * cache.hot as f64) as u64 + SLACK;
        self.control.order(&format!("CONFIG SET maxmemory {room}")).map_err(failed)?;
        for _ in 0..(DRAWS * cache.hot).div_ceil(BATCH as u64) {
            draw(&mut store, BATCH as u64, BATCH)?;
        }
        // What the server had for its large requests is free again.
        drop(store);
        let store = &mut clients[0];
        for _ in 0..TRIMS {
            let (kept, used) = (self.kept()?, self.number("used_memory")?);
            let (over, under) = (kept.saturating_sub(cache.hot), cache.hot.saturating_sub(kept));
            if (over + under) as f64 <= ENOUGH * cache.hot as f64 {
                break;
            }
            let bytes = |vectors: u64| (each * vectors as f64) as u64;
            let room = (used + bytes(under)).saturating_sub(bytes(over));
            self.control.order(&format!("CONFIG SET maxmemory {room}")).map_err(failed)?;
            draw(store, cache.hot.div_ceil(20) + DRAWS * under, FEW)?;
        }
        let cached = Cached { plan: Some(cache.clone()), per_vector: Some(each), recall, ..Cached::default() };
        Ok(Stored { clients, place, cached, theta })
    }

    /// A figure of its own account.
    fn number(&mut self, name: &str) -> Result<u64, RunError> {
        let info = self.control.info().map_err(failed)?;
        info.number(name).ok_or_else(|| failed(format!("the server does not tell its {name}")))
    }

    /// Vectors that it holds.
    fn kept(&mut self) -> Result<u64, RunError> {
        Ok(self.control.info().map_err(failed)?.get("db0").map_or(0, keys_of))
    }

    fn client(&self) -> Result<Store, RunError> {
        let expires = self.server.expires.map(|time| Duration::from_nanos(time.0));
        Store::open(&self.address, self.server.password(), expires).map_err(failed)
    }

    /// Has it asked by as many clients as the job has threads.
    pub fn run_cached(
        &mut self,
        cache: &Cache,
        stored: &mut Stored,
        job: &Job,
        interrupted: &AtomicBool,
        sink: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Outcome, RunError> {
        let mut clients = std::mem::take(&mut stored.clients);
        let (mut spare, count) = (clients.pop(), cache.source.count());
        let began = Instant::now();
        let shared = Shared {
            version: AtomicU32::new(1),
            wanted: (0..count).map(|_| AtomicU32::new(0)).collect(),
            over: AtomicBool::new(false),
            began,
            count,
            theta: stored.theta,
            place: &stored.place,
        };
        let began_ns = monotonic();
        let shared = &shared;
        let mut tally = Tally::new(job, cache.refill.is_some());
        let ended = std::thread::scope(|scope| -> Result<Ended, RunError> {
            let (answers, come) = channel();
            let clients: Vec<_> = clients
                .into_iter()
                .zip(2..)
                .map(|(client, nth)| {
                    let answers = answers.clone();
                    scope.spawn(move || ask(client, shared, step_seed(job.seed, nth), &answers))
                })
                .collect();
            drop(answers);
            let ended = tally.listen(&come, shared, interrupted, sink, &mut || {
                if cache.refill == Some(Refill::Prefetch) {
                    let hot = cache.hot;
                    let fetch = shared.place.open()?;
                    if let Some(spare) = spare.take() {
                        scope.spawn(move || prefetch(spare, fetch, shared, hot));
                    }
                }
                Ok(())
            });
            shared.over.store(true, Relaxed);
            for client in clients {
                client.join().map_err(|_| failed("a client's thread panicked"))??;
            }
            ended
        })?;
        tally.rest(sink);
        stored.cached.kept = self.kept()?;
        tally.account(&mut stored.cached);
        let each = cache.format.bytes(cache.source.dim());
        Ok(tally.outcome(ended, began_ns, each, job))
    }
}

/// `keys=5,expires=0`.
fn keys_of(db: &str) -> u64 {
    db.split(',').find_map(|part| part.strip_prefix("keys=")?.parse().ok()).unwrap_or(0)
}

/// Puts them all where they are to be.
fn place(
    cache: &Cache,
    server: &Server,
    coded: &dyn Fn(u64) -> Vec<u8>,
    dir: &Path,
    site: Site<'_>,
    interrupted: &AtomicBool,
) -> Result<Place, RunError> {
    let all = 0..cache.source.count();
    match cache.cold {
        Cold::File => {
            let path = dir.join("vectors");
            let mut out = BufWriter::new(File::create_new(&path).map_err(failed)?);
            for id in all {
                out.write_all(&coded(id)).map_err(failed)?;
                if id % 1024 == 0 && interrupted.load(Relaxed) {
                    return Err(RunError::Interrupted);
                }
            }
            out.into_inner().map_err(|error| failed(error.error()))?.sync_all().map_err(failed)?;
            let file = File::open(&path).map_err(failed)?;
            // One vector is wanted, not those behind it.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random);
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
            Ok(Place::File { file, each: cache.format.bytes(cache.source.dim()).0 as usize })
        }
        Cold::Remote(delay) => {
            let second = Server {
                mode: Mode::MemoryOnly,
                link: Link::Tcp,
                settings: [("maxmemory".to_owned(), "0".to_owned())].into(),
                ..server.clone()
            };
            let second = Beside::start(&second, site)?;
            let mut store = Store::open(&second.address, None, None).map_err(failed)?;
            set(&mut store, all.map(|id| (name(1, id), coded(id))), BATCH)?;
            let Address::Tcp(at) = &second.address else { return Err(failed("a server far away listens on TCP")) };
            let way = Far::to(*at, Duration::from_nanos(delay.0)).map_err(failed)?;
            Ok(Place::Remote { second: Box::new(second), way })
        }
    }
}

fn set(store: &mut Store, all: impl Iterator<Item = (String, Vec<u8>)>, batch: usize) -> Result<(), RunError> {
    let mut some = Vec::with_capacity(batch);
    for one in all {
        some.push(one);
        if some.len() == batch {
            store.set(&some).map_err(failed)?;
            some.clear();
        }
    }
    if some.is_empty() { Ok(()) } else { store.set(&some).map_err(failed) }
}

/// A client: the next request once the one before is answered.
fn ask(mut client: Store, shared: &Shared<'_>, seed: u64, answers: &Sender<Answer>) -> Result<(), RunError> {
    let mut popularity = Popularity::new(shared.count, shared.theta, seed);
    let mut fetch = shared.place.open()?;
    while !shared.over.load(Relaxed) {
        let id = popularity.draw();
        shared.wanted[id as usize].fetch_add(1, Relaxed);
        let sent = Instant::now();
        let key = name(shared.version.load(Relaxed), id);
        let fetched = match client.get(&key).map_err(failed)? {
            Some(_) => None,
            None => {
                let from = Instant::now();
                let vector = fetch.get(id)?;
                let took = from.elapsed();
                client.set(&[(key, vector)]).map_err(failed)?;
                Some(took.into())
            }
        };
        let (took, at) = (sent.elapsed().into(), shared.began.elapsed().into());
        if answers.send(Answer { at, took, fetched }).is_err() {
            break;
        }
    }
    Ok(())
}

/// Fetches those that were wanted most, of the new model.
fn prefetch(mut store: Store, mut fetch: Fetch<'_>, shared: &Shared<'_>, hot: u64) {
    let mut wanted: Vec<(u32, u64)> = shared.wanted.iter().map(|n| n.load(Relaxed)).zip(0..).collect();
    wanted.sort_unstable_by(|a, b| b.cmp(a));
    let version = shared.version.load(Relaxed);
    let wanted: Vec<u64> = wanted.into_iter().take(hot as usize).filter(|(n, _)| *n > 0).map(|(_, id)| id).collect();
    for some in wanted.chunks(TOGETHER) {
        let done = fetch.get_all(some).and_then(|vectors| {
            let named: Vec<_> = some.iter().map(|id| name(version, *id)).zip(vectors).collect();
            store.set(&named).map_err(failed)
        });
        if let Err(error) = done {
            return tracing::debug!("prefetching: {error}");
        }
        if shared.over.load(Relaxed) {
            return;
        }
    }
}

/// What came, in order.
struct Tally {
    width: Nanos,
    time: Option<Nanos>,
    most: Option<u64>,
    replaces: bool,
    answers: Vec<Answer>,
    /// When the model was replaced.
    replaced: Option<Nanos>,
    /// The interval that goes on, and when it began.
    now: (Nanos, Latencies),
}

impl Tally {
    fn new(job: &Job, replaces: bool) -> Self {
        let now = (Nanos(0), Latencies::new());
        let (time, most) = (job.stop.time, job.stop.operations);
        Tally { width: job.interval, time, most, replaces, answers: Vec::new(), replaced: None, now }
    }

    /// Until there are enough.
    fn listen(
        &mut self,
        come: &Receiver<Answer>,
        shared: &Shared<'_>,
        interrupted: &AtomicBool,
        sink: &mut dyn FnMut(Heard<'_>),
        replaced: &mut dyn FnMut() -> Result<(), RunError>,
    ) -> Result<Ended, RunError> {
        loop {
            match come.recv_timeout(LOOK) {
                Ok(answer) => self.take(answer, sink),
                Err(RecvTimeoutError::Timeout) => {}
                // The clients ended by themselves: each says why.
                Err(RecvTimeoutError::Disconnected) => return Ok(Ended::Operations),
            }
            let (done, elapsed) = (self.answers.len() as u64, Nanos::from(shared.began.elapsed()));
            if interrupted.load(Relaxed) {
                return Ok(Ended::Cancelled);
            }
            if self.most.is_some_and(|most| done >= most) {
                return Ok(Ended::Operations);
            }
            if self.time.is_some_and(|time| elapsed >= time) {
                return Ok(Ended::Time);
            }
            let half =
                self.most.is_some_and(|most| done >= most / 2) || self.time.is_some_and(|time| elapsed.0 >= time.0 / 2);
            if self.replaces && self.replaced.is_none() && half {
                self.replaced = Some(elapsed);
                shared.version.store(2, Relaxed);
                replaced()?;
            }
        }
    }

    fn take(&mut self, answer: Answer, sink: &mut dyn FnMut(Heard<'_>)) {
        while answer.at.0 >= self.now.0.0 + self.width.0 {
            self.close(Nanos(self.now.0.0 + self.width.0), sink);
        }
        self.now.1.record(answer.took);
        self.answers.push(answer);
    }

    fn close(&mut self, end: Nanos, sink: &mut dyn FnMut(Heard<'_>)) {
        let start = std::mem::replace(&mut self.now.0, end);
        let latency = std::mem::replace(&mut self.now.1, Latencies::new());
        let read = Side { latency, ..Side::default() };
        sink(Heard::Interval(&Interval { start, end, read, ..Interval::default() }));
    }

    /// The interval that the end cut short.
    fn rest(&mut self, sink: &mut dyn FnMut(Heard<'_>)) {
        if let Some(last) = self.answers.iter().map(|answer| answer.at).max().filter(|last| *last > self.now.0) {
            self.close(last, sink);
        }
    }

    fn account(&mut self, cached: &mut Cached) {
        self.answers.sort_by_key(|answer| answer.at);
        let until = self.replaced.unwrap_or(Nanos(u64::MAX));
        for answer in self.answers.iter().filter(|answer| answer.at < until) {
            match answer.fetched {
                None => cached.hits.record(answer.took),
                Some(fetched) => {
                    cached.misses.record(answer.took);
                    cached.fetched.record(fetched);
                }
            }
        }
        let Some(replaced) = self.replaced else { return };
        let split = self.answers.partition_point(|answer| answer.at < replaced);
        let (before, after) = self.answers.split_at(split);
        let hits = |some: &[Answer]| {
            some.iter().filter(|answer| answer.fetched.is_none()).count() as f64 / some.len().max(1) as f64
        };
        let was = hits(before);
        cached.before = Some(100.0 * was);
        let back = after.windows(WINDOW).step_by(WINDOW / 4).find(|some| hits(some) >= BACK * was);
        cached.back = back.and_then(|some| Some(some.last()?.at - replaced));
        let mut second = Latencies::new();
        let end = replaced + Nanos::from_millis(1000);
        after.iter().filter(|answer| answer.at < end).for_each(|answer| second.record(answer.took));
        cached.after = second.percentile(50.0).zip(second.percentile(95.0));
    }

    fn outcome(self, ended: Ended, began: u64, each: Bytes, job: &Job) -> Outcome {
        let mut latency = Latencies::new();
        self.answers.iter().for_each(|answer| latency.record(answer.took));
        let fetched = self.answers.iter().filter(|answer| answer.fetched.is_some()).count() as u64;
        let elapsed = self.answers.iter().map(|answer| answer.at).max().unwrap_or_default();
        let bytes = |count: u64| each.0 * count;
        Outcome {
            engine: EngineUse { asked: job.engine, used: job.engine, why: String::new(), dropped: Vec::new() },
            ended,
            elapsed,
            read: Side { bytes: bytes(latency.count()), latency, ..Side::default() },
            write: Side { bytes: bytes(fetched), ..Side::default() },
            faults: Latencies::new(),
            cpu_user: Nanos(0),
            cpu_system: Nanos(0),
            each: Vec::new(),
            slowest: Vec::new(),
            commands: Vec::new(),
            began,
            notes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_until_hits_are_back_is_found() {
        let job = Job { interval: Nanos::from_millis(100), ..Job::default() };
        let mut tally = Tally::new(&job, true);
        let mut widths = Vec::new();
        // A request each millisecond, of which eight of ten hit; none for a second after 2 s.
        for ms in 0..4000 {
            let hit = ms % 10 < 8 && !(2000..3000).contains(&ms);
            let (at, took) = (Nanos::from_millis(ms), Nanos(if hit { 50_000 } else { 900_000 }));
            let answer = Answer { at, took, fetched: (!hit).then_some(Nanos(700_000)) };
            tally.take(answer, &mut |heard| {
                if let Heard::Interval(interval) = heard {
                    widths.push(interval.end.0 - interval.start.0);
                }
            });
        }
        tally.replaced = Some(Nanos::from_millis(2000));
        let mut cached = Cached::default();
        tally.account(&mut cached);
        assert_eq!((cached.before, cached.hits.count(), cached.misses.count()), (Some(80.0), 1600, 400));
        let back = cached.back.unwrap();
        assert!(back >= Nanos::from_millis(1100) && back <= Nanos::from_millis(1250), "{back}");
        let (p50, _) = cached.after.unwrap();
        assert!(p50.us() > 890.0 && p50.us() < 910.0, "{p50}");
        assert!(widths.len() == 39 && widths.iter().all(|width| *width == 100_000_000), "{widths:?}");
        assert_eq!(keys_of("keys=512,expires=3"), 512);
    }
}
