//! `load vectors`: a real server as a cache of embeddings. A cell is a way to store them with a place for those that the cache has
//! not; the steps visit all cells in turns.

use crate::WorkloadError;
use basics::job::{Block, Direction, Engine, Order, Stop};
use basics::plan::{Step, Target, step_seed};
use basics::redis::{Link, Medium, Mode, Server};
use basics::vectors::{Cache, Cold, Format, Refill, Source};
use basics::{Bytes, Job, Nanos, Plan};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The server's program.
    pub program: PathBuf,
    /// The vectors.
    pub source: Source,
    /// Ways to store them.
    pub formats: Vec<Format>,
    /// Media for a file of all of them.
    pub media: Vec<Medium>,
    /// How far off servers are, each way, that have all of them instead.
    pub remotes: Vec<Nanos>,
    /// How many there is room for, of a hundred that are stored as floats: the same memory holds more of shorter ones.
    pub hot_percent: f64,
    /// How uneven they are asked for.
    pub theta: f64,
    /// One is gone so long after it was given to the server.
    pub expires: Option<Nanos>,
    /// The model is replaced in the middle of each visit.
    pub refill: Option<Refill>,
    /// What computing a vector takes.
    pub compute: Option<Nanos>,
    /// Settings of redis.conf.
    pub settings: BTreeMap<String, String>,
    /// Clients.
    pub clients: u32,
    /// Requests of a visit.
    pub operations: Option<u64>,
    /// The longest that one takes.
    pub time: Option<Nanos>,
    /// Visits of each cell.
    pub repeat: u32,
    /// Of every random choice.
    pub seed: u64,
}

/// What a server needs for a vector beside its bytes, about: it is measured before it is filled.
const BESIDE: u64 = 100;
/// The smallest cache.
const LEAST: Bytes = Bytes(512 << 10);

impl Request {
    /// The plan: a target for each cell, a step for each visit.
    ///
    /// # Errors
    /// When the options make no sense together.
    pub fn plan(&self) -> Result<Plan, WorkloadError> {
        let refused = |sentence: String| Err(WorkloadError::Size(sentence));
        let (count, dim) = (self.source.count(), self.source.dim());
        if count < 1000 {
            return refused(format!("{count} vectors are too few for a cache of them; take 1000 or more"));
        }
        if !(0.1..=100.0).contains(&self.hot_percent) {
            return refused(format!("--hot {}: between 0.1 and 100 % of the vectors", self.hot_percent));
        }
        let cache =
            Bytes(((Format::F32.bytes(dim).0 + BESIDE) as f64 * count as f64 * self.hot_percent / 100.0) as u64);
        if cache < LEAST {
            return refused(format!(
                "a cache of {cache} is no larger than what the server has for its clients; take {LEAST} or more with --hot or --vectors"
            ));
        }
        let memory = Format::F32.bytes(dim).0.saturating_mul(count);
        if memory > 8 << 30 {
            let all = Bytes(memory);
            return refused(format!(
                "{count} vectors of {dim} numbers take {all} here while they are made; take fewer"
            ));
        }
        let places = self.media.iter().map(|medium| (medium.name(), medium.clone(), Cold::File));
        let far = self.remotes.iter().map(|delay| {
            let beside = Medium::Directory(std::env::temp_dir());
            (format!("{delay} away"), beside, Cold::Remote(*delay))
        });
        let mut plan = Plan {
            method: "load-vectors".to_owned(),
            parameters: self.parameters(),
            seed: self.seed,
            ..Plan::default()
        };
        let mut cells = Vec::new();
        for (place, medium, cold) in places.chain(far) {
            for format in &self.formats {
                cells.push((plan.targets.len(), place.clone(), *format));
                plan.targets.push(Target::Redis(Box::new(self.server(medium.clone(), cold, *format))));
            }
        }
        for _ in 0..self.repeat.max(1) {
            for (target, place, format) in &cells {
                let job = Job {
                    direction: Direction::Read,
                    order: if self.theta > 0.0 { Order::Zipf { theta: self.theta } } else { Order::Uniform },
                    block: Block::Fixed(format.bytes(dim)),
                    depth: 1,
                    threads: self.clients,
                    direct: false,
                    stop: Stop { operations: self.operations, time: self.time, ..Stop::default() },
                    engine: Engine::Resp,
                    seed: step_seed(self.seed, plan.steps.len()),
                    ..Job::default()
                };
                let (name, tier) = (format!("vectors {format}"), Some(place.clone()));
                plan.steps.push(Step { name, tier, target: *target, job, may_fail: true, before: Vec::new() });
            }
        }
        Ok(plan)
    }

    fn server(&self, medium: Medium, cold: Cold, format: Format) -> Server {
        let (count, dim) = (self.source.count(), self.source.dim());
        let each = |format: Format| (format.bytes(dim).0 + BESIDE) as f64;
        let hot = (count as f64 * self.hot_percent / 100.0) * each(Format::F32) / each(format);
        let mut settings: BTreeMap<String, String> = [("maxmemory-policy".to_owned(), "allkeys-lru".to_owned())].into();
        settings.extend(self.settings.clone());
        Server {
            program: self.program.clone(),
            mode: Mode::MemoryOnly,
            medium,
            settings,
            link: Link::Tcp,
            connections: self.clients,
            pipeline: 1,
            keys: count,
            expires: self.expires,
            log: None,
            lose: None,
            commands: Default::default(),
            delay: None,
            every: None,
            cache: Some(Box::new(Cache {
                source: self.source.clone(),
                format,
                hot: (hot as u64).clamp(1, count),
                cold,
                refill: self.refill,
                compute: self.compute,
            })),
        }
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        let mut add = |key: &str, value: String| drop(all.insert(key.to_owned(), value));
        add(
            "vectors",
            match &self.source {
                Source::MadeUp { count, dim, groups, spread, .. } => {
                    format!("{count} made up of {dim} numbers in {groups} groups, spread {spread} %")
                }
                Source::File { path, count, dim } => format!("{count} of {dim} numbers from {}", path.display()),
            },
        );
        add("hot_percent", self.hot_percent.to_string());
        add("theta", self.theta.to_string());
        add("clients", self.clients.to_string());
        if let Some(refill) = self.refill {
            add("replaced", refill.name().to_owned());
        }
        self.settings.iter().for_each(|(name, value)| add(&format!("config.{name}"), value.clone()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            program: "/usr/bin/redis-server".into(),
            source: Source::MadeUp { count: 10_000, dim: 384, groups: 100, spread: 60, seed: 1 },
            formats: Format::ALL.to_vec(),
            media: vec![Medium::Directory("/var/tmp".into())],
            remotes: vec![Nanos::from_millis(20)],
            hot_percent: 10.0,
            theta: 1.0,
            expires: None,
            refill: None,
            compute: None,
            settings: BTreeMap::new(),
            clients: 4,
            operations: Some(1000),
            time: None,
            repeat: 2,
            seed: 42,
        }
    }

    #[test]
    fn the_same_memory_holds_more_of_shorter_ones() {
        let plan = request().plan().unwrap();
        assert_eq!((plan.targets.len(), plan.steps.len()), (6, 12));
        let hot = |at: usize| match &plan.targets[at] {
            Target::Redis(server) => server.cache.as_ref().unwrap().hot,
            other => panic!("{other:?}"),
        };
        assert_eq!((hot(0), hot(1), hot(2)), (1000, 3380, 5602));
        assert_eq!((plan.steps[4].name.as_str(), plan.steps[4].tier.as_deref()), ("vectors int8", Some("20 ms away")));
        plan.steps.iter().for_each(|step| step.job.check().unwrap());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let said = |request: Request| request.plan().unwrap_err().to_string();
        assert!(said(Request { hot_percent: 0.0, ..request() }).contains("--hot"));
        let few = Source::MadeUp { count: 10, dim: 384, groups: 1, spread: 60, seed: 1 };
        assert!(said(Request { source: few, ..request() }).contains("too few"));
        let many = Source::MadeUp { count: 10_000_000, dim: 4096, groups: 1, spread: 60, seed: 1 };
        assert!(said(Request { source: many, ..request() }).contains("take fewer"));
    }
}
