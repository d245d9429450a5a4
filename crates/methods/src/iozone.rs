//! The method `iozone`: `iozone -e -I -a -s 100M -r 4k -r 512k -r 16M -i 0 -i 1 -i 2`, a matrix of record sizes against write,
//! rewrite, read, reread, random read and random write. One thread, direct, one operation at a time, the file opened anew for
//! every pass, an fsync before and at the end of each, the latter inside its time where it writes.

use crate::settings::{Default as Usually, Parameter, bad};
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Engine, Entropy, Order, Stop};
use basics::plan::{Act, LeftOut, Step};
use basics::units::MIB;
use basics::{Bytes, Job, Plan, Why};

/// iozone's matrix.
#[derive(Debug)]
pub struct Iozone;

const PARAMETERS: &[Parameter] = &[
    Parameter { key: "size", aliases: &["s"], default: Usually::Is("100MiB"), help: "length of the file" },
    Parameter {
        key: "records",
        aliases: &["r"],
        default: Usually::Is("4k,512k,16M"),
        help: "record sizes, with commas",
    },
    Parameter {
        key: "fill",
        aliases: &[],
        default: Usually::Depends("honest; published with --as-published"),
        help: "published: 8 B of each page and zeros, which compress; honest: nothing compresses",
    },
    Parameter { key: "seed", aliases: &[], default: Usually::Is("42"), help: "of the random order" },
];

impl Method for Iozone {
    fn name(&self) -> &'static str {
        "iozone"
    }
    fn summary(&self) -> &'static str {
        "write, rewrite, read, reread, random read and write by record size, as iozone -e -I prints them, in KiB/s"
    }
    fn cost(&self) -> &'static str {
        "six passes over 100 MiB for each of three record sizes; a minute or two on a card"
    }
    fn source(&self) -> Option<&'static str> {
        Some("Project Pi3Desk: Building an awesome Pi3 desktop with btrfs, USB SSD, zswap (iozone)")
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        let size: Bytes = settings.value("size")?;
        let seed = settings.value("seed")?;
        let fill = match (settings.text("fill"), request.as_published) {
            (None, true) | (Some("published"), _) => ("published", Entropy::Stamps),
            (None, false) | (Some("honest"), _) => ("honest", Entropy::Incompressible),
            (Some(other), _) => return Err(bad("fill", other, "say published or honest")),
        };
        let list = settings.word("records")?;
        let records: Result<Vec<Bytes>, _> = list.split(',').map(|word| word.trim().parse::<Bytes>()).collect();
        let records = records.map_err(|error| bad("records", list, error.to_string()))?;
        if let Some(record) = records.iter().find(|record| record.0 == 0 || **record > size) {
            return Err(bad("records", &record.to_string(), format!("from 1 B to the file's size, {size}")));
        }
        let writes = site.may_write();
        let mut steps = Vec::new();
        for record in &records {
            steps.extend(
                passes(*record, size, seed, fill.1)
                    .into_iter()
                    .filter(|(job, ..)| writes || !job.direction.writes())
                    .map(|(job, name, before)| Step {
                        before,
                        ..site.step(format!("{name}-{}", short(*record)), job, false)
                    }),
            );
        }
        for step in &steps {
            step.job.check()?;
        }
        let left_out = LeftOut {
            tier: site.tier.clone().unwrap_or_default(),
            step: "write".to_owned(),
            why: Why::NotMeasured("nothing may be written there".to_owned()),
        };
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&[("fill", Some(fill.0.to_owned()))]),
            as_published: request.as_published,
            seed,
            targets: vec![site.target(size, fill.1, writes)],
            steps,
            left_out: if writes { vec![] } else { vec![left_out] },
            ..Plan::default()
        })
    }
}

/// `4k`, `16M`: as iozone's users say it, and as the steps are named.
fn short(size: Bytes) -> String {
    match size.0 {
        bytes if bytes % MIB == 0 => format!("{}M", bytes / MIB),
        bytes if bytes % 1024 == 0 => format!("{}k", bytes / 1024),
        bytes => bytes.to_string(),
    }
}

/// A pass: what it does, its name, what is done before it.
type Pass = (Job, &'static str, Vec<Act>);

/// The six passes of a record size, in iozone's order. The random passes have one seed: both go the same way through the file,
/// each record once.
fn passes(record: Bytes, size: Bytes, seed: u64, entropy: Entropy) -> [Pass; 6] {
    let whole = Bytes(size.0 / record.0 * record.0);
    let job = |direction, order| Job {
        direction,
        order,
        block: Block::Fixed(record),
        size: Some(whole),
        engine: Engine::Psync,
        end_fsync: true,
        entropy,
        stop: Stop { bytes: Some(whole), ..Stop::default() },
        seed,
        ..Job::default()
    };
    let pass = |direction, order, name| (job(direction, order), name, vec![Act::Fsync]);
    [
        (job(Direction::Write, Order::Sequential), "write", vec![Act::Renew, Act::Fsync]),
        pass(Direction::Write, Order::Sequential, "rewrite"),
        pass(Direction::Read, Order::Sequential, "read"),
        pass(Direction::Read, Order::Sequential, "reread"),
        pass(Direction::Read, Order::Permuted, "random-read"),
        pass(Direction::Write, Order::Permuted, "random-write"),
    ]
}
