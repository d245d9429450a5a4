//! The method `gnome-disks`: the benchmark of GNOME Disks. So many samples of 10 MiB at equal distances over the device, each
//! after an untimed read of one page; writes put back what was just read, with an fsync, so that the data survive; then the
//! access time of random single pages.

use crate::settings::{Default as Usually, Parameter, bad};
use crate::site::Where;
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Engine, Entropy, Figure, Lead, MOST_EACH, Order, Stop, Sync, Until};
use basics::plan::LeftOut;
use basics::units::{GIB, MIB};
use basics::{Bytes, Job, Nanos, Plan, Why};

/// The benchmark of GNOME Disks.
#[derive(Debug)]
pub struct GnomeDisks;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "samples",
        aliases: &[],
        default: Usually::Depends("100; 1000 with --as-published, as in the article"),
        help: "places at which a sample is read and written",
    },
    Parameter { key: "sample", aliases: &[], default: Usually::Is("10MiB"), help: "length of a sample" },
    Parameter { key: "access", aliases: &[], default: Usually::Is("1000"), help: "single pages for the access time" },
    Parameter { key: "page", aliases: &[], default: Usually::Depends("the kernel's page"), help: "length of a page" },
    Parameter {
        key: "size",
        aliases: &[],
        default: Usually::Depends("the device; 1GiB of test file"),
        help: "what is measured",
    },
    Parameter { key: "seed", aliases: &[], default: Usually::Is("42"), help: "of the places of the access time" },
];

impl Method for GnomeDisks {
    fn name(&self) -> &'static str {
        "gnome-disks"
    }
    fn summary(&self) -> &'static str {
        "read rate, write rate and access time over a whole device, and whether they are stable, as GNOME Disks shows them"
    }
    fn cost(&self) -> &'static str {
        "reads 1 GB, half an hour to the letter on a card; writes as much with --destroy, putting back what was there"
    }
    fn source(&self) -> Option<&'static str> {
        Some("Raspberry PI Storage Performance: Part 1 USB vs SD Card (gnome-disks)")
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        let samples = settings.get("samples")?.unwrap_or(if request.as_published { 1000u32 } else { 100 });
        let access: u64 = settings.value("access")?;
        let length: Bytes = settings.value("sample")?;
        let page: Bytes = settings.get("page")?.unwrap_or(request.page_size());
        let seed = settings.value("seed")?;
        if samples == 0 || u64::from(samples) > MOST_EACH {
            return Err(bad("samples", &samples.to_string(), "from 1 to 4096"));
        }
        let asked: Option<Bytes> = settings.get("size")?;
        let whole = match (asked, &site.at) {
            (Some(size), _) => Some(size),
            (None, Where::Directory(_)) => Some(Bytes(GIB)),
            (None, _) => request.length()?,
        };
        let job = |direction, order, block, operations| Job {
            direction,
            order,
            block: Block::Fixed(block),
            size: asked,
            engine: Engine::Psync,
            each: true,
            stop: Stop { operations: Some(operations), ..Stop::default() },
            seed,
            ..Job::default()
        };
        let places = Order::Strided { places: samples, align: page };
        let read = Job { lead: Some(Lead::Page(page)), ..job(Direction::Read, places, length, samples.into()) };
        let write = Job {
            lead: Some(Lead::Same(page)),
            sync: Sync::Fsync { every: 1 },
            ..job(Direction::Write, places, length, samples.into())
        };
        let mut single = job(Direction::Read, Order::Uniform, page, access);
        if !request.as_published {
            single.stop.until =
                Some(Until { figure: Figure::MeanLatency, percent: 2.0, at_least: Nanos::from_millis(1000) });
        }
        let writes = site.may_write();
        let step = |name: &str, job| site.step(name, job, false);
        let mut steps = vec![step("read", read)];
        steps.extend(writes.then(|| step("write", write)));
        steps.push(step("access", single));
        for step in &steps {
            step.job.check()?;
        }
        if whole.is_some_and(|whole| whole.0 < length.0.max(MIB)) {
            return Err(bad("sample", &length.to_string(), "no longer than what is measured"));
        }
        let left_out = LeftOut {
            tier: site.tier.clone().unwrap_or_default(),
            step: "write".to_owned(),
            why: Why::NotMeasured("nothing may be written there; a device needs --destroy".to_owned()),
        };
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings
                .resolved(&[("samples", Some(samples.to_string())), ("page", Some(page.0.to_string()))]),
            as_published: request.as_published,
            seed,
            targets: vec![site.target(whole.unwrap_or_default(), Entropy::Incompressible, false)],
            steps,
            left_out: if writes { vec![] } else { vec![left_out] },
            ..Plan::default()
        })
    }
}
