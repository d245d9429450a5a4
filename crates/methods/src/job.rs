//! The method `job`: one job, spelled out with `--set`, on one target. Keys and meanings are fio's where fio has one.

use crate::settings::Default::{self as Usually, Depends, Is, Nothing};
use crate::settings::{Parameter, Settings, bad};
use crate::{Method, MethodError, Request, Where};
use basics::job::{Block, Direction, Engine, Entropy, Figure, Order, Pacing, Stop, Sync, Until};
use basics::plan::Step;
use basics::units::{GIB, KIB, MIB};
use basics::{Bytes, Job, Nanos, Plan};

/// One job, spelled out.
#[derive(Debug)]
pub struct JobMethod;

const fn parameter(
    key: &'static str,
    aliases: &'static [&'static str],
    default: Usually,
    help: &'static str,
) -> Parameter {
    Parameter { key, aliases, default, help }
}

const BS: &str = "4k; none with bssplit";
const SIZE: &str = "256MiB of memory, 1GiB in a directory, else to the target's end";
const RUNTIME: &str = "5s; none with bytes or operations";

const PARAMETERS: &[Parameter] = &[
    parameter("rw", &["readwrite"], Is("read"), "read, write, randread, randwrite, rw (mixed, sequential) or randrw"),
    parameter("rwmixread", &[], Is("50"), "share of reads of rw and randrw, per cent"),
    parameter("bs", &["blocksize"], Depends(BS), "length of an operation"),
    parameter("bssplit", &[], Nothing, "sizes with weights: 4k/70:64k/30"),
    parameter("depth", &["iodepth"], Is("1"), "operations in flight for each thread"),
    parameter("threads", &["numjobs"], Is("1"), "threads"),
    parameter("regions", &[], Is("separate"), "separate: each thread in its own part; shared: all in the whole"),
    parameter("offset", &[], Is("0"), "where the region starts in the target"),
    parameter("size", &["filesize"], Depends(SIZE), "length of the region, and of a test file"),
    parameter("runtime", &["time"], Depends(RUNTIME), "measured time; 0 for none"),
    parameter("bytes", &["io_size"], Nothing, "end after so many bytes"),
    parameter("operations", &["number_ios"], Nothing, "end after so many operations"),
    parameter("until", &[], Nothing, "end when the figure's 95 % confidence interval is within so many per cent"),
    parameter("figure", &[], Is("iops"), "what `until` watches: iops or latency"),
    parameter("warmup", &["ramp_time"], Is("0s"), "run but not counted, first"),
    parameter("direct", &[], Is("true"), "past the page cache (O_DIRECT)"),
    parameter("huge_pages", &[], Is("false"), "buffers in huge pages: in one piece for the disk, wherever RAM is free"),
    parameter("invalidate", &[], Is("false"), "with direct=false: drop the target's cached pages first"),
    parameter("sync", &[], Is("none"), "none or dsync: every write durable (O_DSYNC)"),
    parameter("fsync", &[], Nothing, "an fsync after every so many writes"),
    parameter("fdatasync", &[], Nothing, "an fdatasync after every so many writes"),
    parameter("end_fsync", &[], Is("false"), "one fsync at the end, inside the measured time"),
    parameter("rate", &["rate_iops"], Nothing, "open loop: operations a second, latency from the intended time"),
    parameter("rate_process", &[], Is("linear"), "linear (fixed interval) or poisson"),
    parameter(
        "random",
        &["random_distribution"],
        Is("permuted"),
        "permuted (each block once a pass), uniform, zipf:1.2",
    ),
    parameter(
        "entropy",
        &[],
        Is("incompressible"),
        "what is written: zeros, stamps (8 B of each 4 KiB), compressible (2:1), incompressible, dedup; tagged: with its place, which reads look for",
    ),
    parameter("engine", &["ioengine"], Is("auto"), "auto, psync, io_uring, mmap or memory"),
    parameter("interval", &["log_avg_msec"], Is("100ms"), "width of an interval of the series"),
    parameter("seed", &["randseed"], Is("42"), "seed of every random choice"),
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
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let settings = request.settings;
        let usual = match request.site.at {
            Where::Memory => Some(Bytes(256 * MIB)),
            Where::Directory(_) => Some(Bytes(GIB)),
            Where::Null { .. } | Where::File(_) | Where::Device { .. } | Where::Profile { .. } => None,
        };
        let mut job = job(settings)?;
        job.size = settings.get("size")?.or(usual);
        job.check()?;
        let size = job.size.unwrap_or_default();
        let bs = match job.block {
            Block::Fixed(size) => Some(size.0.to_string()),
            Block::Split(_) => None,
        };
        let decided = [
            ("bs", bs),
            ("size", job.size.map(|size| size.0.to_string())),
            ("runtime", Some(job.stop.time.map_or_else(|| "0".to_owned(), |time| format!("{}ns", time.0)))),
        ];
        // A test file reaches to the region's end; elsewhere the region is what was asked, or the whole.
        let whole = job.offset + size;
        // As the runner sees it: one thread that leaves no gap behind it.
        let in_order = job.direction == Direction::Write && job.order == Order::Sequential && job.offset.0 == 0;
        let fills_itself = in_order && job.threads == 1;
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&decided),
            as_published: false,
            seed: job.seed,
            targets: vec![request.site.target(whole, job.entropy, fills_itself)],
            steps: vec![Step {
                name: settings.word("rw")?.to_owned(),
                tier: request.site.tier.clone(),
                target: 0,
                job,
                may_fail: false,
                before: vec![],
            }],
            left_out: Vec::new(),
            ..Plan::default()
        })
    }
}

/// The job that the settings spell out.
fn job(settings: &Settings) -> Result<Job, MethodError> {
    let mix = settings.value("rwmixread")?;
    let rw = settings.word("rw")?;
    let (direction, random) = match rw {
        "read" => (Direction::Read, false),
        "write" => (Direction::Write, false),
        "randread" => (Direction::Read, true),
        "randwrite" => (Direction::Write, true),
        "rw" | "readwrite" => (Direction::Mixed { read_percent: mix }, false),
        "randrw" => (Direction::Mixed { read_percent: mix }, true),
        _ => return Err(bad("rw", rw, "say read, write, randread, randwrite, rw or randrw")),
    };
    // Looked at in any case, so that what makes no sense is told even where it would not matter.
    let scattered = order(settings)?;
    Job { direction: Direction::Mixed { read_percent: mix }, order: scattered, ..Job::default() }.check()?;
    let engine = match settings.word("engine")? {
        "auto" => Engine::Auto,
        "psync" | "sync" | "pvsync" | "pvsync2" => Engine::Psync,
        "io_uring" => Engine::IoUring,
        "mmap" => Engine::Mmap,
        "memory" => Engine::Memory,
        other => return Err(bad("engine", other, "say auto, psync, io_uring, mmap or memory")),
    };
    let entropy = match settings.word("entropy")? {
        "zeros" => Entropy::Zeros,
        "compressible" => Entropy::Compressible,
        "incompressible" => Entropy::Incompressible,
        "dedup" | "deduplicable" => Entropy::Deduplicable,
        "stamps" => Entropy::Stamps,
        "tagged" => Entropy::Tagged,
        other => return Err(bad("entropy", other, "say zeros, stamps, compressible, incompressible, dedup or tagged")),
    };
    Ok(Job {
        direction,
        order: if random { scattered } else { Order::Sequential },
        block: block(settings)?,
        depth: settings.value("depth")?,
        threads: settings.value("threads")?,
        separate_regions: match settings.word("regions")? {
            "separate" => true,
            "shared" => false,
            other => return Err(bad("regions", other, "say separate or shared")),
        },
        offset: settings.value("offset")?,
        size: settings.get("size")?,
        direct: settings.flag("direct")?,
        huge_pages: settings.flag("huge_pages")?,
        invalidate: settings.flag("invalidate")?,
        sync: sync(settings)?,
        end_fsync: settings.flag("end_fsync")?,
        pacing: pacing(settings)?,
        entropy,
        stop: stop(settings)?,
        warmup: settings.value("warmup")?,
        engine,
        interval: settings.value("interval")?,
        seed: settings.value("seed")?,
        ..Job::default()
    })
}

fn order(settings: &Settings) -> Result<Order, MethodError> {
    match settings.word("random")? {
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
        return Ok(Block::Fixed(settings.get("bs")?.unwrap_or(Bytes(4 * KIB))));
    };
    let parts = split.split(':').map(|part| {
        let (size, weight) = part.split_once('/')?;
        Some((size.parse().ok()?, weight.parse().ok()?))
    });
    let parts: Option<Vec<(Bytes, u32)>> = parts.collect();
    parts.map(Block::Split).ok_or_else(|| bad("bssplit", split, "write sizes with weights, as 4k/70:64k/30"))
}

fn sync(settings: &Settings) -> Result<Sync, MethodError> {
    let every_write = settings.word("sync")?;
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
    let poisson = match settings.word("rate_process")? {
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
        None => Some(Nanos::from_millis(5000)),
    };
    let figure = match settings.word("figure")? {
        "iops" => Figure::Iops,
        "latency" => Figure::MeanLatency,
        other => return Err(bad("figure", other, "say iops or latency")),
    };
    let until = settings.get("until")?.map(|percent| Until { figure, percent, at_least: Nanos::from_millis(1000) });
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
        plan_at(words, Where::Directory("/mnt".into()), false)
    }

    fn plan_at(words: &[&str], at: Where, as_published: bool) -> Result<Plan, MethodError> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let settings = Settings::parse("job", PARAMETERS, &words)?;
        let site = Site { tier: Some("sda".into()), at, room: Known::default(), compresses: false };
        let machine = Machine::default();
        JobMethod.plan(&Request { site: &site, settings: &settings, as_published, machine: &machine })
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
        for word in [
            "rw=sideways",
            "bs=big",
            "bssplit=4k",
            "random=fair",
            "sync=maybe",
            "engine=libaio",
            "until=-1",
            "zz=1",
            "until=nan",
            "until=inf",
            "bssplit=4k/0:64k/0",
            "operations=0",
            "bytes=0",
        ] {
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

    /// What the table says in words about the defaults that depend on more, held against what the plan does.
    #[test]
    fn the_table_says_what_is_done() {
        let default = |key| PARAMETERS.iter().find(|parameter| parameter.key == key).unwrap().default.text();
        let first = |text: &str| -> Bytes { text.split([' ', ';']).next().unwrap().parse().unwrap() };
        let size = |at| plan_at(&[], at, false).unwrap().steps[0].job.size;
        let [memory, directory, rest] = default("size").split(", ").collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((memory, directory), ("256MiB of memory", "1GiB in a directory"));
        assert_eq!(size(Where::Memory), Some(first(memory)));
        assert_eq!(size(Where::Directory("/mnt".into())), Some(first(directory)));
        assert_eq!((size(Where::File("/mnt/file".into())), rest), (None, "else to the target's end"));

        assert_eq!(default("bs"), "4k; none with bssplit");
        assert_eq!(plan(&[]).unwrap().steps[0].job.block, Block::Fixed(first(default("bs"))));
        assert!(!plan(&["bssplit=4k/1:8k/1"]).unwrap().parameters.contains_key("bs"));

        assert_eq!(default("runtime"), "5s; none with bytes or operations");
        let time = |words: &[&str]| plan(words).unwrap().steps[0].job.stop.time;
        assert_eq!(time(&[]), Some("5s".parse().unwrap()));
        assert_eq!((time(&["bytes=1M"]), time(&["operations=9"])), (None, None));
    }

    #[test]
    fn without_settings_it_is_the_default_job() {
        let plan = plan_at(&[], Where::File("/mnt/file".into()), false).unwrap();
        assert_eq!(plan.steps[0].job, Job::default());
        assert_eq!(plan.parameters["depth"], "1");
    }

    #[test]
    fn the_parameters_of_a_plan_make_it_again() {
        let odd = ["rw=randrw", "bssplit=4k/70:64k/30", "bytes=1M", "until=2", "fsync=3", "rate=100", "random=zipf"];
        for words in
            [&[][..], &odd[..], &["rw=write", "size=512M", "runtime=1.5s", "sync=dsync", "seed=7", "direct=no"][..]]
        {
            for at in [Where::Memory, Where::Directory("/mnt".into()), Where::File("/mnt/file".into())] {
                let first = plan_at(words, at.clone(), false).unwrap();
                let again: Vec<String> = first.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let again: Vec<&str> = again.iter().map(String::as_str).collect();
                assert_eq!(plan_at(&again, at, false).unwrap(), first);
            }
        }
    }

    #[test]
    fn what_was_never_published_cannot_be_done_to_the_letter() {
        let error = plan_at(&[], Where::Memory, true).unwrap_err();
        assert!(matches!(error, MethodError::NotPublished("job")), "{error}");
    }

    /// Whatever is typed: a plan whose job can be run, or a sentence.
    #[test]
    fn words_at_random_make_a_plan_or_a_sentence() {
        use proptest::prelude::*;
        let cases = if std::env::var_os("TIERMARK_TEST_FULL").is_some() { 200_000 } else { 1000 };
        let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        let keys: Vec<&str> =
            PARAMETERS.iter().flat_map(|p| std::iter::once(&p.key).chain(p.aliases)).copied().collect();
        let value = prop_oneof![
            "[0-9.]{1,22}(ns|ms|s|h|k|K|MiB|GB|T|%|)",
            "[0-9]{1,3}k/[0-9]{1,3}(:[0-9]{1,3}[kM]/[0-9]{1,12}){0,4}",
            "(nan|inf|-inf|1e308|-0|zipf:[0-9.e]{1,6}|randrw|randwrite|true|no|mmap|poisson)",
            "\\PC{0,12}",
        ];
        let words = prop::collection::vec((prop::sample::select(keys), value), 0..6);
        let tried = proptest::test_runner::TestRunner::new(config).run(&words, |words| {
            let words: Vec<String> = words.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            match plan(&words) {
                Ok(plan) => prop_assert_eq!(plan.steps[0].job.check(), Ok(())),
                Err(error) => prop_assert!(error.to_string().len() > 10),
            }
            Ok(())
        });
        tried.unwrap();
    }
}
