//! What job files come to.

use super::parse::tests::World;
use super::*;
use basics::Known;
use basics::job::{Block, Entropy, Pacing, Stop, Sync};
use basics::units::{GIB, KIB, MIB};
use proptest::prelude::*;

const SECOND: Nanos = Nanos::from_millis(1000);

fn site(at: Where) -> Site {
    Site { tier: None, at, room: Known::default(), compresses: false }
}

fn planned(text: &str, on: Option<&Site>) -> Result<Plan, MethodError> {
    // A text of a test lives as long as the test.
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    let world = World { files: [("a.fio", text)].into(), ..World::default() };
    let (machine, root) = (Machine::default(), Root::live());
    plan(&Request { path: Path::new("a.fio"), on, destroy: None, machine: &machine, root: &root }, &world)
}

fn in_a_directory(text: &str) -> Result<Plan, MethodError> {
    planned(text, Some(&site(Where::Directory("/mnt".into()))))
}

fn one(keys: &str) -> Job {
    in_a_directory(&format!("[a]\nsize=1m\n{keys}\n")).unwrap().steps[0].job.clone()
}

fn refused(keys: &str) -> String {
    in_a_directory(&format!("[a]\nsize=1m\n{keys}\n")).unwrap_err().to_string()
}

/// The one that people post most.
#[test]
fn a_job_file_as_people_write_it() {
    let text = "[global]\nioengine=libaio\ndirect=1\nruntime=60\ntime_based\nsize=4g\ngroup_reporting\nramp_time=5\n\
                [rand-read]\nrw=randread\nbs=4k\niodepth=32\n\
                [seq-write]\nstonewall\nrw=write\nbs=1m\niodepth=8\nnumjobs=2\nend_fsync=1\n";
    let plan = in_a_directory(text).unwrap();
    let [read, write] = &plan.steps[..] else { panic!("{plan:?}") };
    assert_eq!((read.name.as_str(), write.name.as_str()), ("rand-read", "seq-write"));
    let stop = Stop { time: Some(Nanos::from_millis(60_000)), ..Stop::default() };
    let expected = Job {
        order: Order::Permuted,
        depth: 32,
        size: Some(Bytes(4 * GIB)),
        stop,
        warmup: Nanos::from_millis(5000),
        engine: Engine::IoUring,
        ..Job::default()
    };
    assert_eq!(read.job, expected);
    assert_eq!((write.job.threads, write.job.size, write.job.separate_regions), (2, Some(Bytes(8 * GIB)), true));
    assert_eq!((write.job.block.clone(), write.job.end_fsync), (Block::Fixed(Bytes(MIB)), true));
    assert_ne!(write.job.seed, read.job.seed);
    assert_eq!((read.target, write.target, plan.targets.len()), (0, 1, 2), "each has a file of its own");
    assert_eq!(plan.parameters["ignored"], "group_reporting");
    assert!(plan.parameters["job rand-read"].contains("iodepth=32; "), "{:?}", plan.parameters);
}

#[test]
fn a_job_ends_as_fios_does() {
    let stop = |keys| one(keys).stop;
    let bytes = |bytes| Stop { bytes: Some(Bytes(bytes)), ..Stop::default() };
    assert_eq!(stop(""), bytes(MIB));
    assert_eq!(stop("loops=3\nnumjobs=2"), bytes(6 * MIB));
    assert_eq!(stop("io_size=4m"), bytes(4 * MIB));
    assert_eq!(stop("filesize=8m"), bytes(MIB), "size is what is moved, filesize what it is moved in");
    assert_eq!(one("filesize=8m\noffset=1m").size, Some(Bytes(7 * MIB)));
    assert_eq!(stop("runtime=2"), Stop { time: Some(Nanos::from_millis(2000)), ..bytes(MIB) });
    assert_eq!(stop("time_based"), bytes(MIB), "without a runtime it says nothing");
    assert_eq!(stop("runtime=1s\ntime_based=1\nnumber_ios=7"), Stop { time: Some(SECOND), ..Stop::default() });
    assert_eq!(stop("number_ios=1k\nnumjobs=2").operations, Some(2048));
}

#[test]
fn buffers_lie_where_fios_do() {
    assert!(!one("").huge_pages && !one("mem=shm").huge_pages && !one("iomem=mmapshared").huge_pages);
    assert!(one("mem=mmaphuge").huge_pages && one("iomem=shmhuge").huge_pages);
}

#[test]
fn each_key_goes_where_it_belongs() {
    let plain = one("");
    assert_eq!((plain.direct, plain.invalidate, plain.engine, plain.depth), (false, true, Engine::Psync, 1));
    assert_eq!(one("rw=randrw\nrwmixwrite=30").direction, Direction::Mixed { read_percent: 70 });
    assert_eq!(one("rw=rw\nrwmixwrite=30\nrwmixread=40").direction, Direction::Mixed { read_percent: 40 });
    assert!(one("buffered=0").direct && !one("direct=1\nbuffered=1").direct);
    assert!(!one("direct=1\ninvalidate=1").invalidate && !one("invalidate=0").invalidate);
    assert_eq!(one("rw=randread\nnorandommap").order, Order::Uniform);
    assert_eq!(one("rw=randread\nrandom_distribution=zipf:1.2").order, Order::Zipf { theta: 1.2 });
    assert_eq!(one("norandommap").order, Order::Sequential);
    assert_eq!(one("rw=write\nfsync=8").sync, Sync::Fsync { every: 8 });
    assert_eq!(one("rw=write\nfdatasync=1").sync, Sync::Fdatasync { every: 1 });
    assert_eq!(one("rw=write\nsync=dsync").sync, Sync::Dsync);
    assert_eq!(one("rw=write\nsync=1").sync, Sync::OSync);
    assert_eq!(one("fsync=8\nend_fsync=1").sync, Sync::None, "what only reads is not synced");
    assert_eq!(one("rw=randread\nrate_iops=100\nnumjobs=3").pacing, Pacing::Fixed { iops: 300.0 });
    assert_eq!(one("rate=1m\nbs=64k\nrate_process=poisson").pacing, Pacing::Poisson { iops: 16.0 });
    assert_eq!(one("rw=write\nzero_buffers").entropy, Entropy::Zeros);
    assert_eq!(one("rw=write\nrefill_buffers\nbuffer_compress_percentage=50").entropy, Entropy::Compressible);
    assert_eq!(one("iodepth=8").depth, 1, "a synchronous engine has no queue");
    assert_eq!(one("randseed=9").seed, 9);
    assert_eq!((one("randrepeat=0").seed, one("randrepeat=1").seed), (7, Job::default().seed));
    assert_eq!(one("log_avg_msec=500").interval, Nanos::from_millis(500));
    assert_eq!(one("kb_base=1000\nbs=4ki").block, Block::Fixed(Bytes(4096)));
}

#[test]
fn sizes_of_blocks() {
    let fixed = |kib: u64| Block::Fixed(Bytes(kib * KIB));
    assert_eq!(one("bs=8k,8k").block, fixed(8));
    assert_eq!(one("bs=8k,16k").block, fixed(8));
    assert_eq!(one("rw=write\nbs=8k,16k").block, fixed(16));
    assert_eq!(one("rw=write\nbs=8k,").block, fixed(4));
    assert_eq!(one("bsrange=4k-4k").block, fixed(4));
    let split = |parts: &[(u64, u32)]| Block::Split(parts.iter().map(|(kib, w)| (Bytes(kib * KIB), *w)).collect());
    assert_eq!(one("bssplit=4k/70:64k/30").block, split(&[(4, 70), (64, 30)]));
    assert_eq!(one("bssplit=4k/50:8k/:16k/").block, split(&[(4, 100), (8, 50), (16, 50)]));
    assert_eq!(one("bssplit=4k/100:8k/0").block, split(&[(4, 100)]));
    assert!(refused("rw=rw\nbs=4k,8k").contains("line 4"));
}

/// By its name and its line, with the way out.
#[test]
fn what_is_not_honoured_is_refused() {
    for (keys, words) in [
        ("ioengine=rbd", "the engine rbd is not supported"),
        ("rw=trim", "rw=trim"),
        ("rw=randread:8", "rw=randread:8"),
        ("verify=crc32c", "verify=crc32c is not supported"),
        ("zonemode=zbd", "zonemode=zbd is not supported"),
        ("size=20%", "a share of a file or device is not supported"),
        ("cpus_allowed=1", "the key cpus_allowed is not supported"),
        ("hipri", "hipri is not supported"),
        ("nrfiles=4", "a job works on one file"),
        ("thinktime=2ms", "rate_iops gives it a pace"),
        ("bsrange=4k-64k", "bssplit"),
        ("random_distribution=pareto:0.9\nrw=randread", "random_distribution=pareto:0.9"),
        ("buffer_compress_percentage=30", "the nearest is 50"),
        ("rw=write\nsync=2", "none, sync and dsync"),
        ("rw=write\nfsync=1\nfdatasync=1", "leave the others out"),
        ("filename=a:b", "one file"),
        ("rw=randrw\nrate_iops=100", "each by itself"),
        ("bs=8k\nba=4k", "multiples of the smallest block"),
        ("io_submit_mode=offload", "where a rate is kept anyway"),
        ("ss=iops:1%", "end a job"),
        ("offset_increment=1g\nnumjobs=2", "offset_increment is supported where"),
        ("bs=", "bs needs a value"),
        ("iodepth=5000\nioengine=io_uring", "depth must be from 1 to 4096"),
        ("loops=99999999999\nio_size=9999999g", "more than there can be"),
        ("rwmixread=101\nrw=rw", "0 to 100"),
        ("bssplit=4k/70:8k/40", "100 together"),
    ] {
        let told = refused(keys);
        assert!(told.contains(words) && told.starts_with("a.fio, line "), "{keys}: {told}");
    }
    assert!(refused("bs=4k\nioengine=http\nhttp_host=x").contains("line 4: the engine http"));
    assert!(in_a_directory("[a]\nrw=read\n").unwrap_err().to_string().contains("size is needed"));
    assert!(in_a_directory("[global]\nrw=read\n").unwrap_err().to_string().contains("there is no job"));
}

#[test]
fn jobs_side_by_side_are_threads_of_one_step() {
    let same = "[global]\nsize=1m\nrw=randread\n[a]\n[b]\nnumjobs=2\n";
    assert!(in_a_directory(same).unwrap_err().to_string().contains("add stonewall"));
    let plan = in_a_directory(&same.replace("numjobs=2", "description=x")).unwrap();
    let step = &plan.steps[0];
    assert_eq!((plan.steps.len(), step.name.as_str(), step.job.threads), (1, "a+b", 2));
    assert!(step.job.separate_regions && step.job.size == Some(Bytes(2 * MIB)));
    let shared = in_a_directory(&same.replace("numjobs=2", "").replace("rw=", "filename=f\nrw=")).unwrap();
    let job = &shared.steps[0].job;
    assert!(!job.separate_regions && job.size == Some(Bytes(MIB)) && job.stop.bytes == Some(Bytes(2 * MIB)));
    let apart = one("filename=f\nnumjobs=4\noffset_increment=1m");
    assert!(apart.separate_regions && apart.size == Some(Bytes(4 * MIB)));
}

#[test]
fn a_file_is_whole_before_it_is_read() {
    let fills = |text: &str| match &in_a_directory(text).unwrap().targets[..] {
        [Target::TestFile { first_step_fills, size, .. }] => (*first_step_fills, size.0 / MIB),
        other => panic!("{other:?}"),
    };
    let jobs =
        |first: &str| format!("[global]\nfilename=f\nsize=8m\n[w]\nrw=write\n{first}\n[r]\nstonewall\nrw=read\n");
    assert_eq!(fills(&jobs("")), (true, 8));
    assert_eq!(fills(&jobs("runtime=1")), (false, 8), "it may not come to the end");
    assert_eq!(fills(&jobs("io_size=4m")), (false, 8));
    assert_eq!(fills(&jobs("size=4m")), (false, 8));
    assert_eq!(fills(&jobs("overwrite=1")), (false, 8));
    assert_eq!(fills("[w]\nrw=write\nsize=8m\nruntime=1"), (true, 8));
    assert_eq!(fills("[w]\nrw=randwrite\nsize=8m\noffset=8m"), (false, 16));
}

#[test]
fn without_a_target_the_file_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let text = |keys: &str| format!("[a]\nsize=1m\n{}\n", keys.replace("DIR", dir.path().to_str().unwrap()));
    let target = |keys: &str| planned(&text(keys), None).map(|plan| plan.targets[0].clone());
    let within = std::fs::canonicalize(dir.path()).unwrap();
    for keys in ["directory=DIR", "filename=DIR/new", "directory=DIR\nfilename=new"] {
        assert!(matches!(target(keys).unwrap(), Target::TestFile { dir, .. } if dir == within), "{keys}");
    }
    std::fs::write(dir.path().join("old"), "x").unwrap();
    assert_eq!(target("filename=DIR/old").unwrap(), Target::File { path: dir.path().join("old") });
    assert!(matches!(target("directory=DIR/none"), Err(MethodError::Missing { .. })));
    assert!(target("filename=DIR").unwrap_err().to_string().contains("write directory="));
    assert!(target("filename=${DISK}").unwrap_err().to_string().contains("DISK is not set"));
    assert!(in_a_directory(&text("filename=${DISK}")).is_ok(), "another target was named");
    assert_eq!(target("ioengine=null").unwrap(), Target::Null { service: Nanos(0), stall: None });
}

#[test]
fn what_is_there_needs_no_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old");
    std::fs::write(&path, vec![0; 1 << 20]).unwrap();
    let plan = planned("[a]\nrw=randread\nloops=2\n", Some(&site(Where::File(path)))).unwrap();
    assert_eq!((plan.steps[0].job.size, plan.steps[0].job.stop.bytes), (None, Some(Bytes(2 * MIB))));
}

/// No two tables say two things of a key, and every alias leads to a key that is known.
#[test]
fn the_tables_agree() {
    use super::tables::{ALIASES, HONOURED, IGNORED, ONLY};
    let mut all: Vec<&str> = HONOURED.iter().chain(IGNORED).copied().chain(ONLY.iter().map(|only| only.0)).collect();
    let known = all.clone();
    all.sort_unstable();
    let before = all.len();
    all.dedup();
    assert_eq!(before, all.len());
    for (alias, key) in ALIASES {
        assert!(known.contains(key) && !known.contains(alias), "{alias}");
    }
}

fn key() -> impl Strategy<Value = String> {
    use super::tables::{ALIASES, HONOURED, IGNORED, ONLY};
    let known: Vec<&str> = HONOURED.iter().chain(IGNORED).copied().collect();
    let known = known.into_iter().chain(ONLY.iter().map(|only| only.0)).chain(ALIASES.iter().map(|alias| alias.0));
    prop::sample::select(known.map(str::to_owned).collect::<Vec<_>>())
}

fn value() -> impl Strategy<Value = String> {
    let words =
        ["", "0", "1", "4k", "1g", "8k,16k", "randrw", "write", "randread", "libaio", "null", "zipf:", "zipf:nan"];
    let hard =
        ["18446744073709551615", "9223372036854775807", "8e", "99999p", "-1", "4k/50:8k/", "/", ":", "%", "${A}", "0x"];
    prop_oneof![
        prop::sample::select([&words[..], &hard[..]].concat()).prop_map(str::to_owned),
        "[0-9]{1,20}[kmgtpsu]?",
        ".*"
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Whatever the file, there is a plan or a sentence.
    #[test]
    fn no_file_is_too_strange(text in "(\\[|\\]|=|;|#|\\$\\{|include |[a-z]|\n| |.){0,200}") {
        let _ = in_a_directory(&text);
    }
    #[test]
    fn no_keys_are_too_strange(entries in prop::collection::vec((key(), value()), 1..12), whole in any::<bool>()) {
        let head = if whole { "[a]\nsize=64m\n" } else { "[a]\n" };
        let lines: Vec<String> = entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if let Ok(plan) = in_a_directory(&format!("{head}{}\n[b]\nstonewall\n", lines.join("\n"))) {
            // A plan that was made is one that can be run.
            prop_assert!(plan.steps.iter().all(|step| step.job.check().is_ok() && step.target < plan.targets.len()));
        }
    }
}
