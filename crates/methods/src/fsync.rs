//! The method `fsync`: what it takes until a write is durable, at the sizes in which databases write. Each write is followed
//! by `fsync` or `fdatasync`, whose time is part of it, and overwrites what is already there, as a log that is reused does.

use crate::settings::{Default as Usually, Parameter, bad};
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Engine, Entropy, Figure, Order, Stop, Sync, Until};
use basics::plan::step_seed;
use basics::units::MIB;
use basics::{Bytes, Job, Nanos, Plan};

/// Latency of durable writes.
#[derive(Debug)]
pub struct Fsync;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "sizes",
        aliases: &["bs"],
        default: Usually::Is("4KiB,8KiB,16KiB,64KiB"),
        help: "lengths of the writes; SQLite and ext4 use 4 KiB, PostgreSQL 8, InnoDB 16",
    },
    Parameter {
        key: "direct",
        aliases: &[],
        default: Usually::Is("false"),
        help: "past the page cache; databases mostly write through it",
    },
    Parameter { key: "runtime", aliases: &[], default: Usually::Is("10s"), help: "measured time of a step at most" },
    Parameter {
        key: "until",
        aliases: &[],
        default: Usually::Is("2"),
        help: "end a step when the mean is known to so many per cent",
    },
    Parameter { key: "size", aliases: &[], default: Usually::Is("64MiB"), help: "length of what is written over" },
    Parameter { key: "seed", aliases: &["randseed"], default: Usually::Is("42"), help: "of what is written" },
];

/// Lengths of writes from a list such as `4k,8k`.
fn sizes(typed: &str) -> Result<Vec<Bytes>, MethodError> {
    typed.split(',').map(|one| one.parse().map_err(|error| bad("sizes", typed, format!("{error}")))).collect()
}

impl Method for Fsync {
    fn name(&self) -> &'static str {
        "fsync"
    }
    fn summary(&self) -> &'static str {
        "how long a write takes to be durable: write + fsync and write + fdatasync at the sizes that databases use"
    }
    fn cost(&self) -> &'static str {
        "up to 80 s; writes 64 MiB, then as much as is made durable in that time"
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        let (size, seed): (Bytes, u64) = (settings.value("size")?, settings.value("seed")?);
        let until = Until {
            figure: Figure::MeanLatency,
            percent: settings.value("until")?,
            at_least: Nanos::from_millis(1000),
        };
        let stop = Stop { time: Some(settings.value("runtime")?), until: Some(until), ..Stop::default() };
        let mut steps = Vec::new();
        for block in sizes(settings.word("sizes")?)? {
            for (call, sync) in [("fsync", Sync::Fsync { every: 1 }), ("fdatasync", Sync::Fdatasync { every: 1 })] {
                let job = Job {
                    direction: Direction::Write,
                    order: Order::Sequential,
                    block: Block::Fixed(block),
                    sync,
                    size: Some(size),
                    direct: settings.flag("direct")?,
                    engine: Engine::Psync,
                    seed: step_seed(seed, steps.len()),
                    stop,
                    ..Job::default()
                };
                job.check()?;
                steps.push(site.step(format!("{call}-{}", block.to_string().replace(' ', "")), job, false));
            }
        }
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&[]),
            as_published: false,
            seed,
            targets: vec![site.target(Bytes(size.0.max(MIB)), Entropy::Incompressible, false)],
            steps,
            left_out: Vec::new(),
            ..Plan::default()
        })
    }
}
