//! What the way through FUSE and the loop device costs on this machine now: requests that take a constant time, through the
//! loop device itself; what they take beyond that is the way, and beyond the kernel's account the part of it outside.

use crate::disk::Disk;
use crate::way::{Account, MOST_OUTSIDE_PER_BYTE, MOST_SCATTER, Sum, Way, agree};
use basics::Nanos;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};
use sys::memory::{Buffer, Pages};

/// What each request of the probe takes: long enough to sleep for, as real ones are.
const DELAY: Nanos = Nanos(200_000);
/// Time for the small requests, and for the large ones and the flushes.
const SMALL: Duration = Duration::from_millis(300);
const LARGE: Duration = Duration::from_millis(100);
/// Requests under way at a time, when there are several: the depth of the published swap tables.
pub(crate) const CROWD: usize = 4;
/// Sizes of both.
const SIZES: [usize; 2] = [4096, 512 << 10];

/// Measures with reads alone: what a write costs by its size is taken to be the same, because the same bytes are copied.
pub(crate) fn way(disk: &Disk, device: &Path, account: Option<&Account>) -> io::Result<Way> {
    let direct = i32::try_from(OFlags::DIRECT.bits()).map_err(io::Error::other)?;
    let file = File::options().read(true).custom_flags(direct).open(device)?;
    disk.probe(Some(DELAY));
    let measured = measure(&file, disk.size, account);
    disk.probe(None);
    measured
}

/// Of what small and large requests take beyond the delay, what a quarter does not exceed: the middle of the quiet half, so
/// that another program's burst at the start is not taken for the way.
fn measure(file: &File, size: u64, account: Option<&Account>) -> io::Result<Way> {
    let beyond = |took: &mut [f64]| {
        took.sort_by(f64::total_cmp);
        (took[took.len() / 4] - DELAY.0 as f64).max(0.0)
    };
    let [small_len, large_len] = SIZES;
    let (mut alone, alone_outside) = together(1, small_len, SMALL, file, size, account)?;
    let (mut crowd, crowd_outside) = together(CROWD, small_len, SMALL, file, size, account)?;
    let (mut large, large_outside) = together(1, large_len, LARGE, file, size, account)?;
    let (small, large) = (beyond(&mut alone), beyond(&mut large));
    let each_byte = |beyond: f64| (beyond / (large_len - small_len) as f64).max(0.0);
    let per_byte = each_byte(large - small);
    let mut way = Way::new((small - small_len as f64 * per_byte).max(0.0), per_byte, [alone_outside, crowd_outside]);
    // What is outside is a part of the way: no more than all of it, whatever other programs did meanwhile.
    way.outside_per_byte = each_byte(large_outside - alone_outside).min(per_byte).min(MOST_OUTSIDE_PER_BYTE);
    way.scatter = [scatter(&mut alone), scatter(&mut crowd)];
    let flushed = std::thread::scope(|scope| scope.spawn(|| flushes(file)).join());
    way.flush = beyond(&mut flushed.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?);
    Ok(way)
}

/// Standard deviation as the middle four fifths have it: what is beyond may be another program's doing.
fn scatter(took: &mut [f64]) -> f64 {
    took.sort_by(f64::total_cmp);
    // Of a normal law: 1.2816 deviations to either side.
    let inside = took[(took.len() - 1) * 9 / 10] - took[took.len() / 10];
    (inside / (2.0 * 1.2816)).min(MOST_SCATTER)
}

/// This thread asks as a program would that uses the disk: it has inherited the emulator's place, first in line for the CPU.
fn as_a_program() {
    let _ = rustix::process::setpriority_process(None, 0);
}

/// How long flushes take, one after the other.
fn flushes(file: &File) -> io::Result<Vec<f64>> {
    as_a_program();
    let began = Instant::now();
    let mut took = Vec::with_capacity(1024);
    while began.elapsed() < LARGE || took.len() < 16 {
        let sent = Instant::now();
        file.sync_data()?;
        took.push(sent.elapsed().as_nanos() as f64);
    }
    Ok(took)
}

/// The times of requests of `len` bytes when so many are under way, and what they take on average beyond the kernel's account.
fn together(
    n: usize,
    len: usize,
    time: Duration,
    file: &File,
    size: u64,
    account: Option<&Account>,
) -> io::Result<(Vec<f64>, f64)> {
    let reads = || account.and_then(|account| account.read().ok()).map(|[reads, _]| reads);
    let before = reads();
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n).map(|_| scope.spawn(|| took(file, size, len, time))).collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())));
        joined.collect::<io::Result<Vec<_>>>()
    })?
    .concat();
    let here = Sum { requests: times.len() as u64, nanos: times.iter().sum(), bytes: 0 };
    let outside = match (before, reads()) {
        (Some(before), Some(after)) if agree(after.since(before).requests, here.requests) => {
            (here.mean() - after.since(before).mean()).max(0.0)
        }
        _ => 0.0,
    };
    Ok((times, outside))
}

/// How long reads of `len` bytes take, one after the other.
fn took(file: &File, size: u64, len: usize, time: Duration) -> io::Result<Vec<f64>> {
    as_a_program();
    let len = len.min((size / 4096 * 4096) as usize);
    let mut buffer = Buffer::new(len, Pages::Usual)?;
    let began = Instant::now();
    let mut took = Vec::with_capacity(4096);
    let mut at = 0;
    while began.elapsed() < time || took.len() < 16 {
        let sent = Instant::now();
        file.read_exact_at(buffer.as_mut_slice(), at)?;
        took.push(sent.elapsed().as_nanos() as f64);
        // Wander, as a program would.
        at = (at + 7 * len as u64) % (size - size.min(len as u64) + 1) / 4096 * 4096;
    }
    Ok(took)
}
