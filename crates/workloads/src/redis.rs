//! `load redis`: a real server, each way to keep its data on each medium, with values of each length. A cell is one of these; the
//! steps visit all cells in turns.

use crate::WorkloadError;
use basics::job::{Block, Direction, Engine, Entropy, MOST_EACH_REQUEST, Order, Pacing, Stop};
use basics::plan::{Step, Target, step_seed};
use basics::redis::{Link, Lose, Medium, Mode, Server};
use basics::redis_commands::CommandMix;
use basics::units::MIB;
use basics::{Bytes, Job, Nanos, Plan};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The server's program.
    pub program: PathBuf,
    /// Ways to keep data.
    pub modes: Vec<Mode>,
    /// Where.
    pub media: Vec<Medium>,
    /// Lengths of values: one, or a mix.
    pub payloads: Vec<Block>,
    /// Settings of redis.conf beside those of the modes.
    pub settings: BTreeMap<String, String>,
    /// How clients reach it.
    pub link: Link,
    /// Clients, over all threads.
    pub connections: u32,
    /// Threads of clients.
    pub threads: u32,
    /// Requests on the way on each connection.
    pub pipeline: u32,
    /// What is asked, where it is more than GETs and SETs; then these say how many read.
    pub commands: CommandMix,
    /// GETs of a hundred requests.
    pub reads: u8,
    /// Different keys; as many as fit into [`DATA`], and no more than [`KEYS`], when not given.
    pub keys: Option<u64>,
    /// How keys are chosen.
    pub order: Order,
    /// How values compress.
    pub entropy: Entropy,
    /// A key is gone so long after it was set.
    pub expires: Option<Nanos>,
    /// A file that is made, with a line for each request; of one visit to one cell.
    pub log: Option<PathBuf>,
    /// When requests are due.
    pub pacing: Pacing,
    /// Requests of a visit.
    pub operations: Option<u64>,
    /// The longest that one takes.
    pub time: Option<Nanos>,
    /// Visits of each cell.
    pub repeat: u32,
    /// The server is lost in the middle of each visit.
    pub lose: Option<Lose>,
    /// How far off a replica is, each way; of those modes that have one.
    pub delay: Nanos,
    /// Between two snapshots, of the mode that orders them.
    pub every: Nanos,
    /// As the third article did it.
    pub as_published: bool,
    /// Of every random choice.
    pub seed: u64,
}

/// Keys that are set on a server that is none of ours end by themselves after so long, should nobody remove them.
pub const LEFT: Nanos = Nanos::from_millis(3_600_000);
/// Keys, when nobody says how many.
pub const KEYS: u64 = 100_000;
/// The time within which a server is lost, when nobody says so.
pub const LOST_WITHIN: Nanos = Nanos::from_millis(5000);
/// And the least that may be said.
const LEAST: Nanos = Nanos::from_millis(1000);
/// The most that all values take then.
pub const DATA: Bytes = Bytes(128 * MIB);

impl Request {
    /// The plan: a target for each way on each medium, a step for each visit.
    ///
    /// # Errors
    /// When the options make no sense together.
    pub fn plan(&self) -> Result<Plan, WorkloadError> {
        let refused = |sentence: String| Err(WorkloadError::Size(sentence));
        if self.connections < self.threads {
            return refused(format!(
                "{} connections are too few for {} threads; take fewer threads, or more connections",
                self.connections, self.threads
            ));
        }
        if self.payloads.iter().any(|payload| payload.smallest().0 == 0 || payload.largest().0 > 512 * MIB) {
            return refused("a value has between 1 B and 512 MiB; choose another --payload".to_owned());
        }
        if self.log.is_some() {
            let one = [self.modes.len(), self.media.len(), self.payloads.len(), self.repeat as usize];
            if one != [1; 4] {
                return refused(
                    "--log is of one visit to one cell: give one --mode, --on and --payload, and --repeat 1".to_owned(),
                );
            }
            if self.most_logged().is_none_or(|operations| operations > MOST_EACH_REQUEST) {
                let most = MOST_EACH_REQUEST;
                return refused(format!(
                    "--log holds {most} requests at most, so say how many there are with --operations, or a --rate and a --runtime"
                ));
            }
        }
        if !self.commands.is_empty() && self.lose.is_some() {
            return refused("--lose looks for SETs alone; leave --commands away".to_owned());
        }
        if self.modes.contains(&Mode::Replica) && self.link == Link::Unix {
            return refused(
                "a replica reaches its server over TCP; leave --link unix away, or --mode replica".to_owned(),
            );
        }
        self.may_lose()?;
        if self.only_reads() && self.reads != 100 {
            return refused("nothing is set on a server that runs already; say --writes to set keys of tiermark's own, or leave --reads away".to_owned());
        }
        let mut plan = Plan {
            method: "load-redis".to_owned(),
            parameters: self.parameters(),
            as_published: self.as_published,
            seed: self.seed,
            ..Plan::default()
        };
        let mut cells = Vec::new();
        for medium in &self.media {
            for payload in &self.payloads {
                for mode in &self.modes {
                    let keys = match self.lose {
                        None if self.only_reads() => self.keys.unwrap_or(KEYS),
                        None => self.keys.unwrap_or_else(|| (DATA.0 / payload.mean().0.max(1)).clamp(1, KEYS)),
                        // One for each request, and each thread has its own.
                        Some(_) => self.most_lost() + u64::from(self.threads),
                    };
                    cells.push((plan.targets.len(), medium.name(), *mode, payload));
                    plan.targets.push(Target::Redis(Box::new(Server {
                        program: self.program.clone(),
                        mode: *mode,
                        medium: medium.clone(),
                        settings: self.settings.clone(),
                        link: self.link,
                        connections: self.connections,
                        pipeline: self.pipeline,
                        keys,
                        expires: self.expires.or(matches!(medium, Medium::Running { .. }).then_some(LEFT)),
                        log: self.log.clone(),
                        lose: self.lose,
                        commands: self.commands.clone(),
                        delay: (*mode == Mode::Replica).then_some(self.delay),
                        every: (*mode == Mode::Checkpoint).then_some(self.every),
                        cache: None,
                    })));
                }
            }
        }
        for _ in 0..self.repeat.max(1) {
            for (target, medium, mode, payload) in &cells {
                let job = Job { seed: step_seed(self.seed, plan.steps.len()), ..self.job(payload) };
                let job = if self.lose.is_some() { self.fresh(job) } else { job };
                let (name, tier) = (mode.name().to_owned(), Some(medium.clone()));
                plan.steps.push(Step { name, tier, target: *target, job, may_fail: true, before: Vec::new() });
            }
        }
        Ok(plan)
    }

    /// Whether what is there already is read, and nothing is set.
    fn only_reads(&self) -> bool {
        self.media.iter().any(|medium| matches!(medium, Medium::Running { writes: false, .. }))
    }

    fn job(&self, payload: &Block) -> Job {
        Job {
            direction: match if self.commands.is_empty() { self.reads } else { self.commands.reads_percent() } {
                0 => Direction::Write,
                100 => Direction::Read,
                reads => Direction::Mixed { read_percent: reads },
            },
            order: self.order,
            block: payload.clone(),
            depth: self.connections.div_ceil(self.threads.max(1)) * self.pipeline,
            threads: self.threads,
            separate_regions: false,
            direct: false,
            pacing: self.pacing,
            entropy: self.entropy,
            stop: Stop {
                operations: self.log.as_ref().map_or(self.operations, |_| self.most_logged()),
                time: self.time,
                ..Stop::default()
            },
            each: self.log.is_some(),
            engine: Engine::Resp,
            ..Job::default()
        }
    }

    /// Requests of a visit of which each is kept: at a rate there are hardly more than it makes in the time.
    fn most_logged(&self) -> Option<u64> {
        let due = match self.pacing {
            Pacing::Fixed { iops } | Pacing::Poisson { iops } => self.time.map(|time| iops * time.secs()),
            _ => None,
        };
        self.operations.or(due.map(|due| (due + 10.0 * due.sqrt() + 10.0) as u64))
    }

    /// Requests of a visit in which the server is lost: all are kept until they have been looked for.
    fn most_lost(&self) -> u64 {
        self.operations.map_or(MOST_EACH_REQUEST, |operations| operations.min(MOST_EACH_REQUEST))
    }

    /// The same with writes alone, each to a key that was never set: what was acknowledged is what must be there.
    fn fresh(&self, job: Job) -> Job {
        Job {
            direction: Direction::Write,
            order: Order::Sequential,
            separate_regions: true,
            stop: Stop {
                operations: Some(self.most_lost()),
                time: Some(self.time.unwrap_or(LOST_WITHIN)),
                ..Stop::default()
            },
            each: true,
            ..job
        }
    }

    fn may_lose(&self) -> Result<(), WorkloadError> {
        let refused = |sentence: String| Err(WorkloadError::Size(sentence));
        let Some(lose) = self.lose else { return Ok(()) };
        if self.time.is_some_and(|time| time < LEAST) {
            return refused(format!("--lose needs a --runtime of {LEAST} or more, for the moment is within it"));
        }
        let plain = self.media.iter().find(|medium| matches!(medium, Medium::Directory(_)));
        match plain.filter(|_| lose == Lose::Power) {
            Some(medium) => refused(format!(
                "--lose power cuts off an emulated disk, and {} is on a disk of this machine; give a profile with --on, or --lose kill",
                medium.name()
            )),
            None => Ok(()),
        }
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        let mut add = |key: &str, value: String| drop(all.insert(key.to_owned(), value));
        add("connections", self.connections.to_string());
        add("threads", self.threads.to_string());
        add("pipeline", self.pipeline.to_string());
        add("link", if self.link == Link::Tcp { "tcp" } else { "unix" }.to_owned());
        if !self.commands.is_empty() {
            add("commands", self.commands.to_string());
        }
        if let Some(lose) = self.lose {
            add("lose", if lose == Lose::Kill { "kill" } else { "power" }.to_owned());
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
            modes: Mode::PUBLISHED.to_vec(),
            media: vec![Medium::Directory("/var/tmp".into()), Medium::Directory("/mnt".into())],
            payloads: [64, 512, 4096].map(|size| Block::Fixed(Bytes(size))).to_vec(),
            settings: BTreeMap::new(),
            link: Link::Tcp,
            connections: 50,
            threads: 4,
            pipeline: 1,
            commands: CommandMix::default(),
            reads: 50,
            keys: None,
            order: Order::Uniform,
            entropy: Entropy::Incompressible,
            expires: None,
            log: None,
            pacing: Pacing::Closed,
            operations: Some(100_000),
            time: None,
            repeat: 5,
            lose: None,
            delay: Nanos::from_millis(5),
            every: Nanos::from_millis(10_000),
            as_published: true,
            seed: 42,
        }
    }

    #[test]
    fn every_cell_is_visited_in_turns() {
        let plan = request().plan().unwrap();
        assert_eq!((plan.targets.len(), plan.steps.len()), (24, 120));
        assert_eq!(plan.steps[0].name, "memory-only");
        assert_eq!(plan.steps[24].target, plan.steps[0].target, "the second round");
        let Target::Redis(server) = &plan.targets[8] else { panic!("{:?}", plan.targets[8]) };
        assert_eq!((server.keys, server.connections), (32_768, 50), "values of 4 KiB");
        // 50 over 4 threads: 13 for a thread at most.
        assert_eq!(plan.steps[0].job.depth, 13);
        plan.steps.iter().for_each(|step| step.job.check().unwrap());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let few = Request { connections: 3, ..request() };
        assert!(few.plan().unwrap_err().to_string().contains("fewer threads"));
        let several = Request { log: Some("/tmp/log".into()), ..request() };
        assert!(several.plan().unwrap_err().to_string().contains("--repeat 1"));
        let nothing = Request { payloads: vec![Block::Fixed(Bytes(0))], ..request() };
        assert!(nothing.plan().unwrap_err().to_string().contains("--payload"));
    }

    #[test]
    fn of_a_server_that_runs_only_reads_are_asked_unless_writes_are_allowed() {
        let running = |writes| {
            let url = "redis://127.0.0.1:6379".to_owned();
            let media = vec![Medium::Running { url, secret: Default::default(), writes }];
            let payloads = vec![Block::Fixed(Bytes(64))];
            Request { modes: vec![Mode::AsItRuns], media, payloads, reads: 100, as_published: false, ..request() }
        };
        let plan = running(false).plan().unwrap();
        assert!(plan.steps.iter().all(|step| step.job.direction == Direction::Read));
        assert!(Request { reads: 50, ..running(false) }.plan().unwrap_err().to_string().contains("--writes"));
        let plan = Request { reads: 50, ..running(true) }.plan().unwrap();
        let Target::Redis(server) = &plan.targets[0] else { panic!("{:?}", plan.targets[0]) };
        assert_eq!((server.expires, server.mode), (Some(LEFT), Mode::AsItRuns));
    }

    #[test]
    fn what_is_to_be_lost_is_set_once_each() {
        let request = Request { lose: Some(Lose::Kill), operations: None, repeat: 2, as_published: false, ..request() };
        let plan = request.plan().unwrap();
        let job = &plan.steps[0].job;
        assert_eq!((job.direction, job.order, job.separate_regions), (Direction::Write, Order::Sequential, true));
        assert_eq!((job.stop.time, job.stop.operations), (Some(LOST_WITHIN), Some(MOST_EACH_REQUEST)));
        let Target::Redis(server) = &plan.targets[0] else { panic!("{:?}", plan.targets[0]) };
        assert!(server.keys >= MOST_EACH_REQUEST && server.lose == Some(Lose::Kill));
        assert_ne!(plan.steps[0].job.seed, plan.steps[24].job.seed, "each visit has a moment of its own");
        let refused = |request: Request| request.plan().unwrap_err().to_string();
        let power = refused(Request { lose: Some(Lose::Power), ..request.clone() });
        assert!(power.contains("/var/tmp is on a disk of this machine"), "{power}");
        assert!(refused(Request { time: Some(Nanos::from_millis(999)), ..request }).contains("--runtime"));
    }
}
