//! The method `fake-capacity`: does a device hold what it claims? Blocks that say where they belong are written all over it,
//! then its beginning is filled with such blocks, then the first ones are read again. On a device that is smaller than it
//! claims, addresses beyond its end begin again at 0, or lead nowhere: the first block there has gone, and what has taken
//! its place says how far from the beginning that is. (The idea is that of f3probe, with an exact answer.)

use crate::settings::{Default as Usually, Parameter, bad};
use crate::site::Where;
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Engine, Entropy, Stop};
use basics::plan::Step;
use basics::units::MIB;
use basics::{Bytes, Job, Plan};

/// Does a device hold what it claims?
#[derive(Debug)]
pub struct FakeCapacity;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "probes",
        aliases: &[],
        default: Usually::Is("64"),
        help: "blocks all over the device; so many times smaller is the beginning that is filled",
    },
    Parameter { key: "seed", aliases: &["randseed"], default: Usually::Is("42"), help: "of what is written" },
];

/// Length of a probe.
const BLOCK: u64 = 4096;

impl Method for FakeCapacity {
    fn name(&self) -> &'static str {
        "fake-capacity"
    }
    fn summary(&self) -> &'static str {
        "whether a device holds what it claims: blocks that say where they belong are written all over it and read again"
    }
    fn cost(&self) -> &'static str {
        "writes over the beginning of a device (1/64 of it) and 64 blocks of the rest; needs --destroy"
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        let unusable =
            |path: &std::path::Path, why: &str| MethodError::Unusable { path: path.to_owned(), why: why.to_owned() };
        let (path, length) = match &site.at {
            Where::Device { path, destroy: Some(_) } => (path, request.length()?),
            Where::Device { path, .. } => {
                return Err(unusable(path, "this writes over the device; allow it with --destroy and the full name"));
            }
            _ => return Err(unusable("the target".as_ref(), "only a block device can be smaller than it claims")),
        };
        let length = length.ok_or_else(|| unusable(path, "its size is not known"))?;
        let probes: u64 = settings.value("probes")?;
        if !(2..=1024).contains(&probes) {
            return Err(bad("probes", &probes.to_string(), "from 2 to 1024"));
        }
        let seed = settings.value("seed")?;
        let apart = (length.0 / probes / MIB).max(1) * MIB;
        if length.0 < 2 * apart {
            return Err(unusable(path, "too small to be told from its own beginning"));
        }
        let job = |direction, offset: u64, size: u64, block: u64| Job {
            direction,
            block: Block::Fixed(Bytes(block)),
            offset: Bytes(offset),
            size: Some(Bytes(size)),
            entropy: Entropy::Tagged,
            // Equal seeds, equal tags: what one step writes another looks for.
            seed,
            stop: Stop { bytes: Some(Bytes(size)), ..Stop::default() },
            engine: Engine::Psync,
            end_fsync: direction == Direction::Write,
            ..Job::default()
        };
        let last = (length.0 / BLOCK - 1) * BLOCK;
        let places: Vec<u64> = (1..).map(|k| k * apart).take_while(|place| *place < last).chain([last]).collect();
        let each = |what: &str, direction| {
            let step = |place: &u64| (format!("{what}-{}", Bytes(*place)), job(direction, *place, BLOCK, BLOCK));
            places.iter().map(step).collect::<Vec<_>>()
        };
        // In this order: the beginning takes the place of those blocks that lead back to it.
        let fill = ("fill".to_owned(), job(Direction::Write, 0, apart, MIB));
        let steps = [each("write", Direction::Write), vec![fill], each("read", Direction::Read)].concat();
        let step = |(name, job)| Step { name, tier: site.tier.clone(), target: 0, job, may_fail: true, before: vec![] };
        let steps: Vec<Step> = steps.into_iter().map(step).collect();
        for step in &steps {
            step.job.check()?;
        }
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&[]),
            as_published: false,
            seed,
            targets: vec![site.target(length, Entropy::Tagged, true)],
            steps,
            left_out: Vec::new(),
            ..Plan::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, Site};
    use basics::Known;
    use machine::{Machine, Tier, TierKind};

    fn plan(at: Where, words: &[&str]) -> Result<Plan, MethodError> {
        let site = Site { tier: None, at, room: Known::default(), compresses: false };
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let settings = Settings::parse("fake-capacity", PARAMETERS, &words).unwrap();
        let size = Known::Is(Bytes(1000 * MIB + 512));
        let tier = Tier {
            name: "x".into(),
            kind: TierKind::Usb,
            path: Some("/dev/x".into()),
            model: Known::default(),
            size,
            hops: vec![],
            ceiling: Known::default(),
            block: None,
            partitions: vec![],
            mounts: vec![],
            swaps: vec![],
            below: vec![],
            warnings: vec![],
        };
        let machine = Machine { tiers: vec![tier], ..Machine::default() };
        FakeCapacity.plan(&Request { site: &site, settings: &settings, as_published: false, machine: &machine })
    }

    fn device(destroy: Option<&str>) -> Where {
        Where::Device { path: "/dev/x".into(), destroy: destroy.map(str::to_owned) }
    }

    /// Whatever a device really holds, the first block beyond that leads back into what is filled.
    #[test]
    fn blocks_stand_no_further_apart_than_the_beginning_is_filled() {
        let made = plan(device(Some("/dev/x")), &["probes=10"]).unwrap();
        let of = |what: &str| made.steps.iter().filter(|step| step.name.starts_with(what)).collect::<Vec<_>>();
        let (written, fill, read) = (of("write"), of("fill"), of("read"));
        let places: Vec<u64> = read.iter().map(|step| step.job.offset.0).collect();
        assert_eq!(places, written.iter().map(|step| step.job.offset.0).collect::<Vec<_>>());
        assert_eq!((places.len(), places[0], places[9]), (10, 100 * MIB, 1000 * MIB - BLOCK));
        assert!(places.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= fill[0].job.size.unwrap().0));
        assert!(made.steps.iter().all(|step| step.job.seed == made.seed && step.job.entropy == Entropy::Tagged));
        let order = |name: &str| made.steps.iter().position(|step| step.name == name).unwrap();
        assert!(order("write-100 MiB") < order("fill") && order("fill") < order("read-100 MiB"));
    }

    #[test]
    fn it_writes_only_where_it_may() {
        assert!(plan(device(None), &[]).unwrap_err().to_string().contains("--destroy"));
        assert!(plan(Where::Directory("/tmp".into()), &[]).unwrap_err().to_string().contains("block device"));
        assert!(plan(device(Some("/dev/x")), &["probes=1"]).is_err());
    }
}
