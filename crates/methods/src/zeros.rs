//! The method `zeros`: `dd` of 1 GiB of zeros with one fsync at the end, as the desktop article shows what compression adds; and
//! beside it the same with data that compress 2:1 and with data that do not, so that nobody takes the first for the disk's rate.

use crate::settings::{Default as Usually, Parameter};
use crate::site::Where;
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Engine, Entropy, Stop};
use basics::plan::{Act, Step};
use basics::units::MIB;
use basics::{Bytes, Job, Plan};

/// dd of zeros, and of what is no zeros.
#[derive(Debug)]
pub struct Zeros;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "size",
        aliases: &[],
        default: Usually::Depends("256MiB; 1GiB with --as-published"),
        help: "what is written each time",
    },
    Parameter { key: "seed", aliases: &[], default: Usually::Is("42"), help: "of what is written" },
];

impl Method for Zeros {
    fn name(&self) -> &'static str {
        "zeros"
    }
    fn summary(&self) -> &'static str {
        "buffered writes of zeros, of data that compress 2:1 and of data that do not, each with one fsync at its end"
    }
    fn cost(&self) -> &'static str {
        "three times 256 MiB are written"
    }
    fn source(&self) -> Option<&'static str> {
        Some("Project Pi3Desk: Building an awesome Pi3 desktop with btrfs, USB SSD, zswap (dd)")
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        if let Where::File(path) | Where::Device { path, destroy: None } = &site.at {
            let why = "zeros only writes; give a directory, or a device with --destroy and its full name".to_owned();
            return Err(MethodError::Unusable { path: path.clone(), why });
        }
        let usual = Bytes(if request.as_published { 1024 } else { 256 } * MIB);
        let size = settings.get("size")?.unwrap_or(usual);
        let seed = settings.value("seed")?;
        let of: [(&str, Entropy); 3] = [
            ("zeros", Entropy::Zeros),
            ("compressible", Entropy::Compressible),
            ("incompressible", Entropy::Incompressible),
        ];
        // What the article wrote is only the first.
        let wanted = if request.as_published { 1 } else { of.len() };
        let job = |entropy| Job {
            direction: Direction::Write,
            block: Block::Fixed(Bytes(MIB)),
            direct: false,
            engine: Engine::Psync,
            end_fsync: true,
            entropy,
            size: Some(size),
            stop: Stop { bytes: Some(size), ..Stop::default() },
            seed,
            ..Job::default()
        };
        let step =
            |(name, entropy)| Step { before: vec![Act::Renew, Act::Sync], ..site.step(name, job(entropy), false) };
        let steps: Vec<Step> = of.into_iter().take(wanted).map(step).collect();
        for step in &steps {
            step.job.check()?;
        }
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&[("size", Some(size.0.to_string()))]),
            as_published: request.as_published,
            seed,
            targets: vec![site.target(size, Entropy::Zeros, true)],
            steps,
            left_out: Vec::new(),
            ..Plan::default()
        })
    }
}
