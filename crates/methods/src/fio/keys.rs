//! The keys of one section to what they ask for. Each key of fio is honoured, or changes nothing of what is measured and
//! is listed as ignored, or is refused by its name and line; none is skipped in silence.

use super::parse::{Entry, Section, Surroundings};
use super::tables::{ALIASES, HONOURED, IGNORED, ONLY};
use crate::MethodError;
use basics::job::{Block, Direction, Engine, Entropy, Order, Pacing, Stop, Sync};
use basics::units::KIB;
use basics::{Bytes, Job, Nanos};
use std::collections::BTreeMap;

/// What a section asks for. Two sections that ask for the same can be one step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// The pattern; its threads, region and stop rule are still those of one of fio's processes.
    pub job: Job,
    /// So many processes.
    pub numjobs: u32,
    /// No operation reaches a device.
    pub null: bool,
    pub directory: Option<String>,
    pub filename: Option<String>,
    /// What a process moves in one loop, where that is not its region.
    pub amount: Option<Bytes>,
    pub loops: u64,
    /// Ends by time alone.
    pub time_based: bool,
    /// Where the regions of two processes on one file lie apart.
    pub increment: Bytes,
    /// The file is there, whole, before it is written.
    pub overwrite: bool,
    /// Not before so long after the others.
    pub delay: Nanos,
}

/// A section, read.
#[derive(Debug)]
pub(crate) struct Read {
    pub name: String,
    /// It waits for those before it.
    pub barrier: bool,
    pub asked: Asked,
    /// As it was written, for the plan's account of itself.
    pub options: Vec<String>,
    /// Keys that change nothing here.
    pub ignored: Vec<String>,
    /// Where our way is not fio's, each a sentence.
    pub notes: Vec<String>,
}

/// The entries that count, by canonical key.
struct Keys<'a> {
    section: &'a Section,
    entries: BTreeMap<&'a str, &'a Entry>,
    kb_base: u64,
}

fn canonical(key: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key, |(_, name)| name)
}

impl<'a> Keys<'a> {
    fn get(&self, key: &str) -> Option<&'a Entry> {
        self.entries.get(key).copied()
    }
    /// The entry's value, or what it is when nobody sets it.
    fn or<T>(
        &self,
        key: &str,
        usual: T,
        read: impl FnOnce(&Entry) -> Result<T, MethodError>,
    ) -> Result<T, MethodError> {
        self.get(key).map_or(Ok(usual), read)
    }
    /// That the value of this key makes no sense.
    fn bad(&self, key: &str, why: &str) -> MethodError {
        self.get(key).map_or_else(|| self.section.refused(why), |entry| entry.bad(why))
    }
    fn flag(&self, key: &str, usual: bool) -> Result<bool, MethodError> {
        self.or(key, usual, Entry::flag)
    }
    fn bytes(&self, key: &str) -> Result<Option<Bytes>, MethodError> {
        self.get(key).map(|entry| entry.bytes(self.kb_base)).transpose()
    }
    fn time(&self, key: &str) -> Result<Nanos, MethodError> {
        self.or(key, Nanos(0), |entry| entry.time(Nanos::from_millis(1000)))
    }
}

/// Reads a section.
///
/// # Errors
/// The first key in the way, with its line.
pub(crate) fn read(section: &Section, around: &dyn Surroundings) -> Result<Read, MethodError> {
    let mut entries: BTreeMap<&str, &Entry> = BTreeMap::new();
    for entry in &section.entries {
        entries.insert(canonical(&entry.key), entry);
    }
    let kb_base = match entries.get("kb_base") {
        None => 1024,
        Some(entry) => match entry.count()? {
            base @ (1000 | 1024) => base,
            _ => return Err(entry.bad("it is 1000 or 1024")),
        },
    };
    let keys = Keys { section, entries, kb_base };
    // An engine has keys of its own; that it is not here says more than that they are not.
    let (engine, null) = engine(&keys)?;
    let mut ignored = Vec::new();
    for entry in section.entries.iter().filter(|entry| keys.get(canonical(&entry.key)) == Some(entry)) {
        accept(entry, &mut ignored)?;
    }
    let (direction, random) = direction(&keys)?;
    let queued = engine == Engine::IoUring;
    let direct = keys.flag("direct", false).map(|said| said != typed(&keys, "direct", "buffered"))?;
    let job = Job {
        direction,
        order: order(&keys, random)?,
        block: block(&keys, direction)?,
        depth: if queued { keys.or("iodepth", 1, Entry::small)? } else { 1 },
        threads: 1,
        separate_regions: true,
        offset: keys.bytes("offset")?.unwrap_or_default(),
        size: keys.bytes("size")?.filter(|size| size.0 > 0),
        direct: direct && engine != Engine::Mmap,
        huge_pages: keys.or("mem", false, huge_pages)?,
        invalidate: !direct && keys.flag("invalidate", true)?,
        sync: if direction.writes() { sync(&keys)? } else { Sync::None },
        end_fsync: direction.writes() && keys.flag("end_fsync", false)?,
        pacing: Pacing::Closed,
        entropy: entropy(&keys)?,
        stop: Stop {
            time: Some(keys.time("runtime")?).filter(|time| time.0 > 0),
            operations: keys.get("number_ios").map(Entry::count).transpose()?.filter(|count| *count > 0),
            ..Stop::default()
        },
        warmup: keys.time("ramp_time")?,
        engine,
        interval: match keys.or("log_avg_msec", 0, Entry::count)? {
            0 => Job::default().interval,
            ms => Nanos(ms.saturating_mul(1_000_000)),
        },
        seed: match keys.get("randseed") {
            Some(entry) => entry.count()?,
            None if keys.flag("randrepeat", true)? => Job::default().seed,
            None => around.chance(),
        },
        ..Job::default()
    };
    let mut asked = Asked {
        numjobs: keys.or("numjobs", 1, Entry::small)?,
        null,
        directory: keys.get("directory").map(|entry| one_path(entry, "directory")).transpose()?,
        filename: keys.get("filename").map(|entry| one_path(entry, "file")).transpose()?,
        amount: None,
        loops: keys.or("loops", 1, Entry::count)?.max(1),
        time_based: job.stop.time.is_some() && keys.flag("time_based", false)?,
        increment: keys.bytes("offset_increment")?.unwrap_or_default(),
        overwrite: keys.flag("overwrite", false)?,
        delay: keys.time("startdelay")?,
        job,
    };
    region(&keys, &mut asked)?;
    asked.job.pacing = pacing(&keys, &asked)?;
    ignored.extend(idle(&keys, &asked, random));
    Ok(Read {
        name: keys.or("name", section.name.clone(), |entry| entry.text().map(str::to_owned))?,
        barrier: keys.flag("stonewall", false)?,
        notes: notes(&keys, &asked),
        options: keys.entries.values().map(|entry| entry.shown()).collect(),
        asked,
        ignored,
    })
}

/// Whether the entry was typed under its inverse name.
fn typed(keys: &Keys<'_>, key: &str, inverse: &str) -> bool {
    keys.get(key).is_some_and(|entry| entry.key == inverse)
}

/// Refuses what stands in no table.
fn accept(entry: &Entry, ignored: &mut Vec<String>) -> Result<(), MethodError> {
    let key = canonical(&entry.key);
    if HONOURED.contains(&key) {
        return Ok(());
    }
    if IGNORED.contains(&key) || key.starts_with("verify_") {
        ignored.push(entry.key.clone());
        return Ok(());
    }
    if let Some((_, harmless, why)) = ONLY.iter().find(|(only, _, _)| *only == key) {
        if harmless.contains(&entry.value.as_deref().unwrap_or("1")) {
            ignored.push(entry.key.clone());
            return Ok(());
        }
        return Err(entry.refused(format!("{} is not supported: {why}", entry.shown())));
    }
    Err(entry.refused(format!(
        "the key {} is not supported, and without it something else might be measured; take it out if it does not matter",
        entry.key
    )))
}

fn engine(keys: &Keys<'_>) -> Result<(Engine, bool), MethodError> {
    let Some(entry) = keys.get("ioengine") else { return Ok((Engine::Psync, false)) };
    Ok(match entry.text()? {
        "sync" | "psync" | "pvsync" | "pvsync2" => (Engine::Psync, false),
        "libaio" | "io_uring" => (Engine::IoUring, false),
        "mmap" => (Engine::Mmap, false),
        "null" => (Engine::Auto, true),
        other => {
            let why = "there are sync, psync, pvsync, pvsync2, libaio, io_uring, mmap and null";
            return Err(entry.refused(format!("the engine {other} is not supported; {why}")));
        }
    })
}

fn direction(keys: &Keys<'_>) -> Result<(Direction, bool), MethodError> {
    let Some(entry) = keys.get("rw") else { return Ok((Direction::Read, false)) };
    let share = || match keys.get("rwmixread") {
        None => Ok(50),
        Some(entry) => match (entry.count()?, entry.key == "rwmixwrite") {
            (101.., _) => Err(entry.bad("give 0 to 100 per cent")),
            (percent, false) => Ok(percent as u8),
            (percent, true) => Ok(100 - percent as u8),
        },
    };
    Ok(match entry.text()? {
        "read" => (Direction::Read, false),
        "write" => (Direction::Write, false),
        "randread" => (Direction::Read, true),
        "randwrite" => (Direction::Write, true),
        "rw" | "readwrite" => (Direction::Mixed { read_percent: share()? }, false),
        "randrw" => (Direction::Mixed { read_percent: share()? }, true),
        _ => {
            return Err(
                entry.bad("there are read, write, randread, randwrite, rw and randrw; nothing else is supported")
            );
        }
    })
}

fn order(keys: &Keys<'_>, random: bool) -> Result<Order, MethodError> {
    if !random {
        return Ok(Order::Sequential);
    }
    let covers = if keys.flag("norandommap", false)? { Order::Uniform } else { Order::Permuted };
    let Some(entry) = keys.get("random_distribution") else { return Ok(covers) };
    // 1.1 is fio's own exponent.
    match entry.text()?.split_once(':').unwrap_or((entry.text()?, "1.1")) {
        ("random", _) => Ok(covers),
        ("zipf", theta) => match theta.parse() {
            Ok(theta) => Ok(Order::Zipf { theta }),
            Err(_) => Err(entry.bad("write zipf:1.2, without a centre")),
        },
        _ => Err(entry.bad("there are random and zipf:EXPONENT; no other distribution is supported")),
    }
}

fn block(keys: &Keys<'_>, direction: Direction) -> Result<Block, MethodError> {
    let block = sizes(keys, direction)?;
    if let Some(entry) = keys.get("blockalign") {
        let align = entry.of_direction(entry.text()?, direction, "")?;
        if entry.size(align, keys.kb_base)? != block.smallest() {
            return Err(entry.bad("offsets are multiples of the smallest block, of nothing else"));
        }
    }
    Ok(block)
}

fn sizes(keys: &Keys<'_>, direction: Direction) -> Result<Block, MethodError> {
    if let Some(entry) = keys.get("bssplit") {
        let parts = entry.of_direction(entry.text()?, direction, "")?;
        return split(entry, parts, keys.kb_base);
    }
    if let Some(entry) = keys.get("bsrange") {
        let range = entry.of_direction(entry.text()?, direction, "4k-4k")?;
        let (low, high) = range.split_once(['-', ':']).unwrap_or((range, range));
        let size = entry.size(low.trim(), keys.kb_base)?;
        if size != entry.size(high.trim(), keys.kb_base)? {
            return Err(entry.bad("a range of sizes is not supported; bssplit names them with their weights"));
        }
        return Ok(Block::Fixed(size));
    }
    keys.or("bs", Block::Fixed(Bytes(4 * KIB)), |entry| {
        let size = entry.of_direction(entry.text()?, direction, "4k")?;
        Ok(Block::Fixed(entry.size(size, keys.kb_base)?))
    })
}

/// `4k/70:64k/30`; what has no weight shares what is left of 100.
fn split(entry: &Entry, text: &str, kb_base: u64) -> Result<Block, MethodError> {
    let mut parts = Vec::new();
    for part in text.split(':') {
        let (size, weight) = part.split_once('/').unwrap_or((part, ""));
        let weight: Option<u32> = match weight.trim() {
            "" => None,
            weight => Some(weight.parse().map_err(|_| entry.bad("a weight is a whole number of per cent"))?),
        };
        parts.push((entry.size(size.trim(), kb_base)?, weight));
    }
    let given = parts.iter().filter_map(|(_, weight)| *weight).fold(0u32, u32::saturating_add);
    let open = parts.iter().filter(|(_, weight)| weight.is_none()).count() as u32;
    if given > 100 || (open == 0 && given != 100) {
        return Err(entry.bad("the weights make 100 together"));
    }
    // Whole numbers that stand to each other as they should, whatever 100 leaves.
    let weighed = parts.into_iter().map(|(size, weight)| match weight {
        Some(weight) => (size, weight * open.max(1)),
        None => (size, 100 - given),
    });
    Ok(Block::Split(weighed.filter(|(_, weight)| *weight > 0).collect()))
}

fn sync(keys: &Keys<'_>) -> Result<Sync, MethodError> {
    let every = |key| keys.or(key, 0u32, Entry::small);
    let each = keys.or("sync", Sync::None, |entry| match entry.text()? {
        "0" | "none" => Ok(Sync::None),
        "1" | "sync" => Ok(Sync::OSync),
        "dsync" => Ok(Sync::Dsync),
        _ => Err(entry.bad("there are none, sync and dsync")),
    })?;
    match (each, every("fsync")?, every("fdatasync")?) {
        (each, 0, 0) => Ok(each),
        (Sync::None, every, 0) => Ok(Sync::Fsync { every }),
        (Sync::None, 0, every) => Ok(Sync::Fdatasync { every }),
        _ => {
            let key = if keys.get("fdatasync").is_some() { "fdatasync" } else { "fsync" };
            Err(keys.bad(key, "one of sync, fsync and fdatasync makes writes durable; leave the others out"))
        }
    }
}

fn entropy(keys: &Keys<'_>) -> Result<Entropy, MethodError> {
    if keys.flag("zero_buffers", false)? {
        return Ok(Entropy::Zeros);
    }
    let dedupe = keys.or("dedupe_percentage", 0, Entry::count)?;
    let packed = keys.or("buffer_compress_percentage", 0, Entry::count)?;
    match (dedupe, packed) {
        (0, 0) => Ok(Entropy::Incompressible),
        (0, 50) => Ok(Entropy::Compressible),
        (0, 100) => Ok(Entropy::Zeros),
        (100, 0) => Ok(Entropy::Deduplicable),
        (0, percent) => {
            let nearest = [0u64, 50, 100].into_iter().min_by_key(|have| have.abs_diff(percent)).unwrap_or(0);
            let why = format!("data compress by 0, 50 or 100 per cent; the nearest is {nearest}");
            Err(keys.bad("buffer_compress_percentage", &why))
        }
        _ => {
            let why = "all blocks are the same (100) or none is (0), and then they do not compress";
            Err(keys.bad("dedupe_percentage", why))
        }
    }
}

/// The region that a process works on and how much it moves there: `filesize` is the first and `size` the second where
/// both stand, `io_size` is the second in any case.
fn region(keys: &Keys<'_>, asked: &mut Asked) -> Result<(), MethodError> {
    let io_size = keys.bytes("io_size")?.filter(|size| size.0 > 0);
    if let Some(entry) = keys.get("filesize") {
        let text = entry.text()?;
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let whole = entry.size(low, keys.kb_base)?;
        if whole != entry.size(high, keys.kb_base)? {
            return Err(entry.bad("a range of sizes is not supported; give one"));
        }
        let Some(region) = whole.0.checked_sub(asked.job.offset.0).filter(|region| *region > 0) else {
            return Err(entry.bad("the offset lies behind the file's end"));
        };
        asked.amount = asked.job.size.map(|size| size.min(Bytes(region)));
        asked.job.size = Some(Bytes(region));
    }
    asked.amount = io_size.or(asked.amount);
    Ok(())
}

fn pacing(keys: &Keys<'_>, asked: &Asked) -> Result<Pacing, MethodError> {
    let pacing = pace(keys, asked)?;
    if let Some(entry) = keys.get("io_submit_mode")
        && entry.text()? != "inline"
        && (entry.text()? != "offload" || pacing == Pacing::Closed)
    {
        return Err(entry.bad("the thread that measures submits; offload is supported where a rate is kept anyway"));
    }
    Ok(pacing)
}

fn pace(keys: &Keys<'_>, asked: &Asked) -> Result<Pacing, MethodError> {
    let job = &asked.job;
    let poisson = keys.or("rate_process", false, |entry| match entry.text()? {
        "linear" => Ok(false),
        "poisson" => Ok(true),
        _ => Err(entry.bad("there are linear and poisson")),
    })?;
    let (entry, per_second) = match (keys.get("rate_iops"), keys.get("rate")) {
        (None, None) => return Ok(Pacing::Closed),
        (Some(entry), Some(_)) => return Err(entry.bad("rate sets a pace as well; leave one of them out")),
        (Some(entry), None) => {
            (entry, entry.size(entry.of_direction(entry.text()?, job.direction, "0")?, 1024)?.0 as f64)
        }
        (None, Some(entry)) => {
            let rate = entry.size(entry.of_direction(entry.text()?, job.direction, "0")?, keys.kb_base)?;
            let Block::Fixed(block) = job.block else {
                return Err(entry.bad("with bssplit give rate_iops"));
            };
            (entry, rate.0 as f64 / block.0.max(1) as f64)
        }
    };
    if per_second == 0.0 {
        return Ok(Pacing::Closed);
    }
    if job.direction.reads() && job.direction.writes() {
        return Err(entry.bad("fio paces reads and writes of a mix each by itself, which is not supported"));
    }
    // Each of fio's processes keeps the pace, ours is that of all together.
    let iops = per_second * f64::from(asked.numjobs);
    Ok(if poisson { Pacing::Poisson { iops } } else { Pacing::Fixed { iops } })
}

/// Whether the memory that fio is to take the buffers from is in huge pages.
fn huge_pages(entry: &Entry) -> Result<bool, MethodError> {
    let text = entry.text()?;
    match text.split_once(':').map_or(text, |(kind, _)| kind) {
        "malloc" | "shm" | "mmap" | "mmapshared" => Ok(false),
        "shmhuge" | "mmaphuge" => Ok(true),
        _ => Err(entry.bad("buffers are taken from malloc, shm, mmap, shmhuge or mmaphuge")),
    }
}

/// A name of one file; fio parts several with colons.
fn one_path(entry: &Entry, what: &str) -> Result<String, MethodError> {
    let text = entry.value.clone().unwrap_or_default().replace("\\:", "\0");
    if text.contains(':') {
        return Err(entry.bad(&format!("a job works on one {what}; make a job of each, with stonewall between them")));
    }
    if text == "-" {
        return Err(entry.bad("standard input and output are no targets"));
    }
    Ok(text.replace('\0', ":"))
}

/// Honoured keys that have nothing to work on in this job.
fn idle(keys: &Keys<'_>, asked: &Asked, random: bool) -> Vec<String> {
    let job = &asked.job;
    let mixed = job.direction.reads() && job.direction.writes();
    let cases = [
        ("iodepth", job.engine != Engine::IoUring, "a synchronous engine has one operation in flight"),
        ("rwmixread", !mixed, "nothing is mixed"),
        ("norandommap", !random, "nothing is random"),
        ("random_distribution", !random, "nothing is random"),
        ("randrepeat", keys.get("randseed").is_some(), "randseed says it"),
        ("invalidate", job.direct, "direct I/O meets no cache"),
        ("mem", asked.null || job.engine == Engine::Mmap, "no buffers are used"),
        ("fsync", !job.direction.writes(), "nothing is written"),
        ("fdatasync", !job.direction.writes(), "nothing is written"),
        ("end_fsync", !job.direction.writes(), "nothing is written"),
        ("sync", !job.direction.writes(), "nothing is written"),
        ("overwrite", !job.direction.writes(), "nothing is written"),
        ("rate_process", job.pacing == Pacing::Closed, "there is no rate"),
        ("startdelay", true, "a step begins when the one before has ended"),
    ];
    let idle = cases.into_iter().filter(|(_, idle, _)| *idle);
    idle.filter_map(|(key, _, why)| Some(format!("{} ({why})", keys.get(key)?.key))).collect()
}

fn notes(keys: &Keys<'_>, asked: &Asked) -> Vec<String> {
    let mut notes = Vec::new();
    if asked.job.pacing != Pacing::Closed {
        notes.push("latency counts from the time at which an operation was due; what fio gives is the service time");
    }
    let libaio = keys.get("ioengine").is_some_and(|entry| entry.value.as_deref() == Some("libaio"));
    if libaio && !asked.job.direct && asked.job.depth > 1 {
        notes.push("libaio waits for each buffered operation; here the queue is kept full");
    }
    if asked.numjobs > 1 && asked.filename.is_none() && !asked.null {
        notes.push("each thread has a part of one test file, where fio's processes have a file each");
    }
    notes.into_iter().map(str::to_owned).collect()
}
