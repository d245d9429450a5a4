//! The method `ping`: single requests, one after the other with a rest between them, as ioping sends them. What a device
//! answers that has nothing else to do, each request by itself: sleep states and stalls show, that a full queue hides.

use crate::settings::{Default as Usually, Parameter, bad};
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Engine, Entropy, Order, Pacing, Stop};
use basics::{Bytes, Job, Nanos, Plan};

/// Latency of single requests over time.
#[derive(Debug)]
pub struct Ping;

const PARAMETERS: &[Parameter] = &[
    Parameter { key: "count", aliases: &[], default: Usually::Is("10"), help: "requests, at most 4096" },
    Parameter {
        key: "every",
        aliases: &["interval"],
        default: Usually::Is("1s"),
        help: "from one request to the next; 0: at once",
    },
    Parameter { key: "rw", aliases: &[], default: Usually::Is("read"), help: "read or write" },
    Parameter { key: "bs", aliases: &["blocksize"], default: Usually::Is("4KiB"), help: "length of a request" },
    Parameter { key: "direct", aliases: &[], default: Usually::Is("true"), help: "past the page cache" },
    Parameter { key: "size", aliases: &[], default: Usually::Is("64MiB"), help: "length of a test file" },
    Parameter { key: "seed", aliases: &["randseed"], default: Usually::Is("42"), help: "of the places" },
];

impl Method for Ping {
    fn name(&self) -> &'static str {
        "ping"
    }
    fn summary(&self) -> &'static str {
        "latency of single requests at random places, one a second: each by itself, with a histogram"
    }
    fn cost(&self) -> &'static str {
        "10 s; reads only, in a directory a test file of 64 MiB is written first"
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        let direction = match settings.word("rw")? {
            "read" => Direction::Read,
            "write" => Direction::Write,
            other => return Err(bad("rw", other, "say read or write")),
        };
        let (every, size): (Nanos, Bytes) = (settings.value("every")?, settings.value("size")?);
        let pacing = if every == Nanos(0) { Pacing::Closed } else { Pacing::Fixed { iops: 1.0 / every.secs() } };
        let job = Job {
            direction,
            order: Order::Uniform,
            block: Block::Fixed(settings.value("bs")?),
            direct: settings.flag("direct")?,
            each: true,
            pacing,
            engine: Engine::Psync,
            stop: Stop { operations: Some(settings.value("count")?), ..Stop::default() },
            seed: settings.value("seed")?,
            ..Job::default()
        };
        job.check()?;
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&[]),
            as_published: false,
            seed: job.seed,
            targets: vec![site.target(size, Entropy::Incompressible, false)],
            steps: vec![site.step("ping", job, false)],
            left_out: Vec::new(),
            ..Plan::default()
        })
    }
}
