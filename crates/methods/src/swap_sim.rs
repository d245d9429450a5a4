//! The method `swap-sim`: what a swap area would have to do, as the first article simulates it with fio: 16 KiB random
//! blocks (the page of a Raspberry Pi 5; elsewhere the kernel's own), 70 % reads, depth 4, on a 512 MiB file, for 60 s.

use crate::settings::{Parameter, bad};
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Entropy, Figure, Order, Stop, Until};
use basics::plan::Step;
use basics::units::MIB;
use basics::{Bytes, Job, Nanos, Plan};

/// Random 70/30 reads and writes of a page.
#[derive(Debug)]
pub struct SwapSim;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "page",
        aliases: &["bs"],
        default: "the kernel's page",
        help: "length of an operation; 16k is that of the published table",
    },
    Parameter { key: "size", aliases: &[], default: "512MiB", help: "length of the test file" },
    Parameter { key: "runtime", aliases: &[], default: "60s", help: "measured time at most" },
    Parameter {
        key: "until",
        aliases: &[],
        default: "2",
        help: "end when the rate is known to so many per cent (not with --as-published)",
    },
];

/// The job at the heart of it; `check` uses the same.
pub(crate) fn swap_job(page: Bytes, seed: u64) -> Job {
    Job {
        direction: Direction::Mixed { read_percent: 70 },
        order: Order::Permuted,
        block: Block::Fixed(page),
        depth: 4,
        direct: true,
        seed,
        ..Job::default()
    }
}

impl Method for SwapSim {
    fn name(&self) -> &'static str {
        "swap-sim"
    }
    fn summary(&self) -> &'static str {
        "what this place would do as swap: random pages, 70 % reads, depth 4"
    }
    fn cost(&self) -> &'static str {
        "up to 60 s; a test file of 512 MiB is written, then about a third of the operations write"
    }
    fn source(&self) -> Option<&'static str> {
        Some("Playing with an Intel Optane on a Raspberry Pi 5, phase 2 (fio)")
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn plan(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let settings = request.settings;
        let page = settings.get("page")?.unwrap_or(request.page_size());
        let size = settings.get("size")?.unwrap_or(Bytes(512 * MIB));
        let percent: f64 = settings.get("until")?.unwrap_or(2.0);
        if percent <= 0.0 {
            return Err(bad("until", &percent.to_string(), "must be above 0 per cent"));
        }
        let until = Until { figure: Figure::Iops, percent, at_least: Nanos::from_millis(3000) };
        let mut job = swap_job(page, Job::default().seed);
        job.size = Some(size);
        job.stop = Stop {
            time: Some(settings.get("runtime")?.unwrap_or(Nanos::from_millis(60_000))),
            until: (!request.as_published).then_some(until),
            ..Stop::default()
        };
        job.check()?;
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.to_map(),
            as_published: request.as_published,
            seed: job.seed,
            targets: vec![request.site.target(size, Entropy::Incompressible, false)],
            steps: vec![Step {
                name: "swap-sim".to_owned(),
                tier: request.site.tier.clone(),
                target: 0,
                job,
                may_fail: false,
            }],
            left_out: Vec::new(),
        })
    }
}
