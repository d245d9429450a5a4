//! The method `hdparm`: `hdparm -T` and `-t`, which forum answers are full of. 2 MiB at a time in sequence, one byte in every
//! 512 looked at, from the page cache for 2 s and from the disk for 3 s, after a `sync` and a rest.

use crate::settings::{Default as Usually, Parameter};
use crate::site::Where;
use crate::{Method, MethodError, Request};
use basics::job::{Block, Engine, Entropy, Figure, Order, Stop, Until};
use basics::plan::{Act, Step};
use basics::units::{GIB, MIB};
use basics::{Bytes, Job, Nanos, Plan};

/// hdparm's two timings.
#[derive(Debug)]
pub struct Hdparm;

const PARAMETERS: &[Parameter] = &[
    Parameter { key: "cached", aliases: &["T"], default: Usually::Is("true"), help: "the cached reads of `-T` too" },
    Parameter {
        key: "direct",
        aliases: &[],
        default: Usually::Is("false"),
        help: "past the page cache, as `--direct`",
    },
    Parameter { key: "offset", aliases: &[], default: Usually::Is("0"), help: "where the disk is read from" },
    Parameter { key: "seed", aliases: &[], default: Usually::Is("42"), help: "of a test file's content" },
];

/// hdparm's buffer (`TIMING_BUF_MB` of its hdparm.c).
const BUFFER: Bytes = Bytes(2 * MIB);
/// hdparm waits so long after its `sync`.
const REST: Nanos = Nanos::from_millis(3000);

impl Method for Hdparm {
    fn name(&self) -> &'static str {
        "hdparm"
    }
    fn summary(&self) -> &'static str {
        "sequential reads as `hdparm -T` and `-t` time them: from the page cache and from the disk, MiB/s"
    }
    fn cost(&self) -> &'static str {
        "about 10 s; reads only, in a directory a test file of 1 GiB is written first"
    }
    fn source(&self) -> Option<&'static str> {
        Some("hdparm(8), as in: Playing with an Intel Optane on a Raspberry Pi 5, phase 2")
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        let (direct, seed) = (settings.flag("direct")?, settings.value("seed")?);
        let offset: Bytes = settings.value("offset")?;
        // The default form ends when the rate is known to 2 %; to the letter the clock alone does.
        let until = |at_least| {
            (!request.as_published).then_some(Until {
                figure: Figure::Iops,
                percent: 2.0,
                at_least: Nanos::from_secs(at_least),
            })
        };
        let job = |seconds, until| Job {
            block: Block::Fixed(BUFFER),
            order: Order::Sequential,
            engine: Engine::Psync,
            direct,
            touch: Some(Bytes(512)),
            stop: Stop { time: Some(Nanos::from_secs(seconds)), until, ..Stop::default() },
            seed,
            ..Job::default()
        };
        let step = |name: &str, job: Job, before| Step { before, ..site.step(name, job, false) };
        let mut steps = Vec::new();
        if settings.flag("cached")? {
            // The same 2 MiB over and over: what is timed is the way from the cache.
            let again = Job { size: Some(BUFFER), warmup: Nanos::from_millis(100), ..job(2.0, until(0.5)) };
            steps.push(step(
                "cached",
                again,
                vec![Act::Sync, Act::Rest(REST), Act::Drop, Act::Rest(Nanos::from_secs(1.0))],
            ));
        }
        let whole = request.length()?;
        // hdparm ends at the device's end and does not begin again.
        let left = whole.map(|whole| Bytes((whole.0.saturating_sub(offset.0) / BUFFER.0 * BUFFER.0).max(BUFFER.0)));
        let mut disk = Job { offset, invalidate: !direct, ..job(3.0, until(1.0)) };
        disk.stop.bytes = left;
        steps.push(step("disk", disk, vec![Act::Sync, Act::Rest(REST), Act::Drop]));
        for step in &steps {
            step.job.check()?;
        }
        let size = if matches!(site.at, Where::Directory(_)) { Bytes(GIB) } else { whole.unwrap_or_default() };
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&[]),
            as_published: request.as_published,
            seed,
            targets: vec![site.target(size, Entropy::Incompressible, false)],
            steps,
            left_out: Vec::new(),
            ..Plan::default()
        })
    }
}
