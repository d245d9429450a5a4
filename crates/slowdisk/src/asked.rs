//! What a program that uses the disk sees of it. A process of its own asks: a thread of the emulator would be woken sooner
//! than any other program, for it has the emulator's memory and the emulator's place in line for the CPU.

use crate::error::{SlowdiskError, io_at};
use crate::fuse::FILE;
use basics::job::{Block, Direction, Engine, Order, Stop};
use basics::{Bytes, Interval, Job, Latencies, Nanos};
use engine::{Control, Ended, EngineError, Outcome, Target};
use rustix::fs::{FileType, OFlags, fstat, major, minor, statfs};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Fewer answers say nothing.
const LEAST: u64 = 16;
/// Whoever has not given them by then gives none.
const MOST_TIME: Nanos = Nanos::from_millis(5000);

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Random reads.
    Read,
    /// Random writes.
    Write,
    /// Flushes, one after the other.
    Flush,
}

/// Requests of one size for some time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Which.
    pub what: What,
    /// How much of the device, from its start.
    #[serde(rename = "region_B")]
    pub region: u64,
    /// Bytes of each.
    #[serde(rename = "len_B")]
    pub len: u64,
    /// How many are under way.
    pub depth: u32,
    /// How long.
    pub time_ms: u64,
}

/// What came of it, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// How many were answered.
    pub requests: u64,
    /// In what time.
    pub elapsed_ns: f64,
    /// What they took on average.
    pub mean_ns: f64,
    /// What a tenth of them did not exceed.
    pub p10_ns: f64,
    /// And a quarter.
    pub p25_ns: f64,
    /// And nine tenths.
    pub p90_ns: f64,
}

/// Has what is asked of a device, opened for it, done by a process of its own: the program knows how to start itself.
pub type Program<'a> = dyn Fn(&Asked, File) -> Result<Seen, SlowdiskError> + 'a;

/// For `map_err`.
fn told(what: impl std::fmt::Display) -> SlowdiskError {
    SlowdiskError::Told(format!("the emulated disk cannot be measured: {what}"))
}

impl Asked {
    /// Opens the device for it.
    pub(crate) fn open(&self, device: &Path) -> Result<File, SlowdiskError> {
        let write = self.what == What::Write;
        let direct = OFlags::DIRECT.bits() as i32;
        File::options().read(!write).write(write).custom_flags(direct).open(device).map_err(io_at("open", device))
    }

    /// Asks, in this process.
    ///
    /// # Errors
    /// [`SlowdiskError::Refused`] when it is no emulated disk, or asked for by hand; [`SlowdiskError::Told`] when it fails or hardly answers.
    pub fn run(&self, device: &File) -> Result<Seen, SlowdiskError> {
        if !is_started_by_an_emulator() || !is_emulated(device).unwrap_or(false) {
            let sentence = "this asks emulated disks alone, and is started by `tiermark emulate PROFILE`";
            return Err(SlowdiskError::Refused(sentence.to_owned()));
        }
        as_any_program().map_err(told)?;
        let (elapsed, latencies) = match self.what {
            What::Flush => self.flushes(device).map_err(told)?,
            What::Read => self.transfers(device, true)?,
            What::Write => self.transfers(device, false)?,
        };
        if latencies.count() < LEAST {
            return Err(told(format!("{} answers in {} ms", latencies.count(), self.time_ms)));
        }
        let percentile = |percent| latencies.percentile(percent).unwrap_or_default().0 as f64;
        Ok(Seen {
            requests: latencies.count(),
            elapsed_ns: elapsed.0 as f64,
            mean_ns: latencies.mean().unwrap_or_default().0 as f64,
            p10_ns: percentile(10.0),
            p25_ns: percentile(25.0),
            p90_ns: percentile(90.0),
        })
    }

    /// Longer where a machine is too slow for the least number of answers in the time.
    fn transfers(&self, device: &File, read: bool) -> Result<(Nanos, Latencies), SlowdiskError> {
        let mut time = Nanos::from_millis(self.time_ms);
        loop {
            let outcome = self.ring(device, read, time)?;
            if let Ended::Failed { what, errno, .. } = outcome.ended {
                return Err(told(format!("{what} failed: {}", io::Error::from_raw_os_error(errno))));
            }
            let latencies = if read { outcome.read } else { outcome.write }.latency;
            if latencies.count() >= LEAST || time > MOST_TIME {
                return Ok((outcome.elapsed, latencies));
            }
            time = Nanos(time.0 * 4);
        }
    }

    /// By a ring, or by threads where there is none. The engine is named: one that is looked for asks on its own, and that
    /// stands in the kernel's account too.
    fn ring(&self, device: &File, read: bool, time: Nanos) -> Result<Outcome, SlowdiskError> {
        let job = |engine: Engine, depth: u32, threads: u32| Job {
            direction: if read { Direction::Read } else { Direction::Write },
            order: Order::Uniform,
            block: Block::Fixed(Bytes(self.len)),
            depth,
            threads,
            engine,
            separate_regions: false,
            size: Some(Bytes(self.region)),
            stop: Stop { time: Some(time), ..Stop::default() },
            ..Job::default()
        };
        let run = |job: &Job| {
            let target =
                Target::File { fd: device.as_fd(), len: Bytes(self.region), alignment: Bytes(4096), direct: true };
            let never = AtomicBool::new(false);
            engine::run(job, target, &Control::new(&never), &mut |_: &Interval| {})
        };
        if self.depth == 1 {
            return run(&job(Engine::Psync, 1, 1)).map_err(told);
        }
        match run(&job(Engine::IoUring, self.depth, 1)) {
            Err(EngineError::Unavailable { .. }) => run(&job(Engine::Psync, 1, self.depth)).map_err(told),
            other => other.map_err(told),
        }
    }

    fn flushes(&self, device: &File) -> io::Result<(Nanos, Latencies)> {
        let time = Duration::from_millis(self.time_ms);
        let began = Instant::now();
        let mut latencies = Latencies::new();
        while began.elapsed() < time || latencies.count() < LEAST {
            let sent = Instant::now();
            device.sync_data()?;
            latencies.record(Nanos(sent.elapsed().as_nanos() as u64));
        }
        Ok((Nanos(began.elapsed().as_nanos() as u64), latencies))
    }
}

impl Seen {
    /// Requests in a second.
    pub(crate) fn rate(self) -> f64 {
        self.requests as f64 * 1e9 / self.elapsed_ns.max(1.0)
    }
}

/// Whether whoever started this is the same program: by hand it would write over a disk that may be in use.
fn is_started_by_an_emulator() -> bool {
    let program =
        |process: &str| std::fs::metadata(format!("/proc/{process}/exe")).map(|file| (file.dev(), file.ino()));
    let parent = program(&std::os::unix::process::parent_id().to_string());
    matches!((program("self"), parent), (Ok(own), Ok(parents)) if own == parents)
}

/// Whether it is a loop device over an emulator's file.
fn is_emulated(device: &File) -> io::Result<bool> {
    /// Of loop devices (Documentation/admin-guide/devices.txt).
    const LOOP: u32 = 7;
    /// `FUSE_SUPER_MAGIC`, linux/magic.h.
    const FUSE: u64 = 0x6573_5546;
    let stat = fstat(device)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice || major(stat.st_rdev) != LOOP {
        return Ok(false);
    }
    let backing = format!("/sys/dev/block/{LOOP}:{}/loop/backing_file", minor(stat.st_rdev));
    let backing = PathBuf::from(std::fs::read_to_string(backing)?.trim_end());
    let folder = backing.parent().ok_or(io::ErrorKind::NotFound)?;
    Ok(backing.file_name().is_some_and(|name| name == FILE) && statfs(folder)?.f_type as u64 == FUSE)
}

/// It was started by the emulator and has what that took for itself.
fn as_any_program() -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::setpriority_process(None, 0)?;
    let _ = rustix::process::configure_io_flusher_behavior(false);
    Ok(())
}
