//! The method `job`: one job, spelled out with `--set`, on one target. Keys and meanings are fio's where fio has one.

use crate::settings::{Parameter, Settings, bad};
use crate::{Method, MethodError, Request, Where};
use basics::job::{Block, Direction, Engine, Entropy, Figure, Order, Pacing, Stop, Sync, Until};
use basics::plan::Step;
use basics::units::{GIB, MIB};
use basics::{Bytes, Job, Nanos, Plan};

/// One job, spelled out.
#[derive(Debug)]
pub struct JobMethod;

const fn parameter(
    key: &'static str,
    aliases: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> Parameter {
    Parameter { key, aliases, default, help }
}

const PARAMETERS: &[Parameter] = &[
    parameter("rw", &["readwrite"], "read", "read, write, randread, randwrite, rw (mixed, sequential) or randrw"),
    parameter("rwmixread", &[], "50", "share of reads of rw and randrw, per cent"),
    parameter("bs", &["blocksize"], "4k", "length of an operation; bssplit makes a mix of it"),
    parameter("bssplit", &[], "", "sizes with weights: 4k/70:64k/30"),
    parameter("depth", &["iodepth"], "1", "operations in flight for each thread"),
    parameter("threads", &["numjobs"], "1", "threads"),
    parameter("regions", &[], "separate", "separate: each thread in its own part; shared: all in the whole"),
    parameter("offset", &[], "0", "where the region starts in the target"),
    parameter("size", &["filesize"], "1GiB in a directory, else the whole", "length of the region, and of a test file"),
    parameter("runtime", &["time"], "5s", "measured time; 0 for none (then bytes or operations end it)"),
    parameter("bytes", &["io_size"], "", "end after so many bytes"),
    parameter("operations", &["number_ios"], "", "end after so many operations"),
    parameter("until", &[], "", "end when the figure's 95 % confidence interval is within so many per cent"),
    parameter("figure", &[], "iops", "what `until` watches: iops or latency"),
    parameter("warmup", &["ramp_time"], "0s", "run but not counted, first"),
    parameter("direct", &[], "true", "past the page cache (O_DIRECT)"),
    parameter("invalidate", &[], "false", "with direct=false: drop the target's cached pages first"),
    parameter("sync", &[], "none", "none or dsync: every write durable (O_DSYNC)"),
    parameter("fsync", &[], "", "an fsync after every so many writes"),
    parameter("fdatasync", &[], "", "an fdatasync after every so many writes"),
    parameter("end_fsync", &[], "false", "one fsync at the end, inside the measured time"),
    parameter("rate", &["rate_iops"], "", "open loop: operations a second, latency from the intended time"),
    parameter("rate_process", &[], "linear", "linear (fixed interval) or poisson"),
    parameter("random", &["random_distribution"], "permuted", "permuted (each block once a pass), uniform, zipf:1.2"),
    parameter("entropy", &[], "incompressible", "what is written: zeros, compressible (2:1), incompressible, dedup"),
    parameter("engine", &["ioengine"], "auto", "auto, psync, io_uring, mmap or memory"),
    parameter("interval", &["log_avg_msec"], "100ms", "width of an interval of the series"),
    parameter("seed", &["randseed"], "42", "seed of every random choice"),
];

impl Method for JobMethod {
    fn name(&self) -> &'static str {
        "job"
    }
    fn summary(&self) -> &'static str {
        "one I/O pattern, spelled out: direction, order, block size, depth, threads, rate, stop rule"
    }
    fn cost(&self) -> &'static str {
        "as long as you say (5 s); in a directory a test file of `size` is written first and removed afterwards"
    }
    fn source(&self) -> Option<&'static str> {
        None
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn plan(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let settings = request.settings;
        let job = job(settings)?;
        job.check()?;
        let size = settings.get("size")?.unwrap_or(match request.site.at {
            Where::Memory => Bytes(256 * MIB),
            _ => Bytes(GIB),
        });
        // A test file reaches to the region's end; elsewhere the region is what was asked, or the whole.
        let whole = job.offset + size;
        let fills_itself = job.direction == Direction::Write && job.order == Order::Sequential && job.offset.0 == 0;
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.to_map(),
            as_published: false,
            seed: job.seed,
            targets: vec![request.site.target(whole, job.entropy, fills_itself)],
            steps: vec![Step {
                name: settings.text("rw").unwrap_or("read").to_owned(),
                tier: request.site.tier.clone(),
                target: 0,
                job,
                may_fail: false,
            }],
            left_out: Vec::new(),
        })
    }
}

/// The job that the settings spell out.
fn job(settings: &Settings) -> Result<Job, MethodError> {
    let default = Job::default();
    let mix = settings.get("rwmixread")?.unwrap_or(50);
    let rw = settings.text("rw").unwrap_or("read");
    let (direction, random) = match rw {
        "read" => (Direction::Read, false),
        "write" => (Direction::Write, false),
        "randread" => (Direction::Read, true),
        "randwrite" => (Direction::Write, true),
        "rw" | "readwrite" => (Direction::Mixed { read_percent: mix }, false),
        "randrw" => (Direction::Mixed { read_percent: mix }, true),
        _ => return Err(bad("rw", rw, "say read, write, randread, randwrite, rw or randrw")),
    };
    // Read in any case, so that a wrong word is told even where it would not matter.
    let scattered = order(settings)?;
    let engine = match settings.text("engine").unwrap_or("auto") {
        "auto" => Engine::Auto,
        "psync" | "sync" | "pvsync" | "pvsync2" => Engine::Psync,
        "io_uring" => Engine::IoUring,
        "mmap" => Engine::Mmap,
        "memory" => Engine::Memory,
        other => return Err(bad("engine", other, "say auto, psync, io_uring, mmap or memory")),
    };
    let entropy = match settings.text("entropy").unwrap_or("incompressible") {
        "zeros" => Entropy::Zeros,
        "compressible" => Entropy::Compressible,
        "incompressible" => Entropy::Incompressible,
        "dedup" | "deduplicable" => Entropy::Deduplicable,
        other => return Err(bad("entropy", other, "say zeros, compressible, incompressible or dedup")),
    };
    Ok(Job {
        direction,
        order: if random { scattered } else { Order::Sequential },
        block: block(settings)?,
        depth: settings.get("depth")?.unwrap_or(default.depth),
        threads: settings.get("threads")?.unwrap_or(default.threads),
        separate_regions: match settings.text("regions").unwrap_or("separate") {
            "separate" => true,
            "shared" => false,
            other => return Err(bad("regions", other, "say separate or shared")),
        },
        offset: settings.get("offset")?.unwrap_or_default(),
        size: settings.get("size")?,
        direct: settings.flag("direct")?.unwrap_or(true),
        invalidate: settings.flag("invalidate")?.unwrap_or(default.invalidate),
        sync: sync(settings)?,
        end_fsync: settings.flag("end_fsync")?.unwrap_or(false),
        pacing: pacing(settings)?,
        entropy,
        stop: stop(settings)?,
        warmup: settings.get("warmup")?.unwrap_or_default(),
        engine,
        interval: settings.get("interval")?.unwrap_or(default.interval),
        seed: settings.get("seed")?.unwrap_or(default.seed),
    })
}

fn order(settings: &Settings) -> Result<Order, MethodError> {
    match settings.text("random").unwrap_or("permuted") {
        "permuted" => Ok(Order::Permuted),
        "uniform" | "random" => Ok(Order::Uniform),
        "zipf" => Ok(Order::Zipf { theta: 1.2 }),
        other => match other.strip_prefix("zipf:").map(str::parse) {
            Some(Ok(theta)) => Ok(Order::Zipf { theta }),
            _ => Err(bad("random", other, "say permuted, uniform or zipf:EXPONENT")),
        },
    }
}

fn block(settings: &Settings) -> Result<Block, MethodError> {
    let Some(split) = settings.text("bssplit") else {
        return Ok(Block::Fixed(settings.get("bs")?.unwrap_or(Bytes(4096))));
    };
    let parts = split.split(':').map(|part| {
        let (size, weight) = part.split_once('/')?;
        Some((size.parse().ok()?, weight.parse().ok()?))
    });
    let parts: Option<Vec<(Bytes, u32)>> = parts.collect();
    parts.map(Block::Split).ok_or_else(|| bad("bssplit", split, "write sizes with weights, as 4k/70:64k/30"))
}

fn sync(settings: &Settings) -> Result<Sync, MethodError> {
    let every_write = settings.text("sync").unwrap_or("none");
    match (every_write, settings.get("fsync")?, settings.get("fdatasync")?) {
        ("none" | "0", None | Some(0), None | Some(0)) => Ok(Sync::None),
        ("none" | "0", Some(every), None | Some(0)) => Ok(Sync::Fsync { every }),
        ("none" | "0", None | Some(0), Some(every)) => Ok(Sync::Fdatasync { every }),
        ("dsync" | "1", None, None) => Ok(Sync::Dsync),
        ("none" | "0" | "dsync" | "1", ..) => Err(bad("sync", every_write, "set one of sync, fsync, fdatasync")),
        _ => Err(bad("sync", every_write, "say none or dsync")),
    }
}

fn pacing(settings: &Settings) -> Result<Pacing, MethodError> {
    let poisson = match settings.text("rate_process").unwrap_or("linear") {
        "linear" => false,
        "poisson" => true,
        other => return Err(bad("rate_process", other, "say linear or poisson")),
    };
    Ok(match settings.get("rate")? {
        None => Pacing::Closed,
        Some(iops) if poisson => Pacing::Poisson { iops },
        Some(iops) => Pacing::Fixed { iops },
    })
}

fn stop(settings: &Settings) -> Result<Stop, MethodError> {
    let bytes = settings.get("bytes")?;
    let operations = settings.get("operations")?;
    // Bytes or operations alone end a job; only when nothing else does, five seconds do.
    let time: Option<Nanos> = match settings.get("runtime")? {
        Some(Nanos(0)) => None,
        Some(time) => Some(time),
        None if bytes.is_some() || operations.is_some() => None,
        None => Job::default().stop.time,
    };
    let figure = match settings.text("figure").unwrap_or("iops") {
        "iops" => Figure::Iops,
        "latency" => Figure::MeanLatency,
        other => return Err(bad("figure", other, "say iops or latency")),
    };
    let until = match settings.get::<f64>("until")? {
        Some(percent) if percent > 0.0 => Some(Until { figure, percent, at_least: Nanos::from_millis(1000) }),
        Some(percent) => return Err(bad("until", &percent.to_string(), "must be above 0 per cent")),
        None => None,
    };
    Ok(Stop { time, bytes, operations, until })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;
    use basics::Known;
    use basics::plan::Target;
    use machine::Machine;

    fn plan(words: &[&str]) -> Result<Plan, MethodError> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let settings = Settings::parse("job", PARAMETERS, &words)?;
        let at = Where::Directory("/mnt".into());
        let site = Site { tier: Some("sda".into()), at, room: Known::default(), compresses: false };
        let machine = Machine::default();
        JobMethod.plan(&Request { site: &site, settings: &settings, as_published: false, machine: &machine })
    }

    #[test]
    fn the_command_of_the_readme() {
        let words = ["rw=randread", "bs=4k", "depth=32", "size=512MiB", "runtime=5s", "direct=true", "engine=io_uring"];
        let plan = plan(&words).unwrap();
        let job = &plan.steps[0].job;
        assert_eq!((job.depth, job.engine, job.order), (32, Engine::IoUring, Order::Permuted));
        let Target::TestFile { size, first_step_fills, .. } = &plan.targets[0] else { panic!("{plan:?}") };
        assert_eq!((*size, *first_step_fills), (Bytes(512 * MIB), false));
    }

    #[test]
    fn bytes_alone_end_a_job() {
        assert_eq!(plan(&["bytes=1M"]).unwrap().steps[0].job.stop.time, None);
        assert_eq!(plan(&[]).unwrap().steps[0].job.stop.time, Some(Nanos::from_millis(5000)));
        assert!(matches!(plan(&["runtime=0"]), Err(MethodError::Job(_))));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for word in
            ["rw=sideways", "bs=big", "bssplit=4k", "random=fair", "sync=maybe", "engine=libaio", "until=-1", "zz=1"]
        {
            let error = plan(&[word]).unwrap_err().to_string();
            assert!(error.contains(word.split('=').next().unwrap()), "{word}: {error}");
        }
        assert!(plan(&["fsync=1", "fdatasync=1"]).is_err());
        assert!(plan(&["depth=0"]).is_err());
    }

    #[test]
    fn a_mix_of_sizes() {
        let plan = plan(&["rw=randrw", "rwmixread=70", "bssplit=4k/70:64k/30"]).unwrap();
        assert_eq!(plan.steps[0].job.block, Block::Split(vec![(Bytes(4096), 70), (Bytes(65536), 30)]));
        assert_eq!(plan.steps[0].job.direction, Direction::Mixed { read_percent: 70 });
    }
}
