//! One thread, one operation at a time.

use crate::{Control, Ended, EngineError, Outcome, Sink, Target};
use basics::job::{Engine, Order};
use basics::{Bytes, EngineUse, Interval, Job, Nanos, Side};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

pub(crate) fn run(
    job: &Job,
    target: Target<'_>,
    control: &Control,
    sink: &mut dyn Sink,
) -> Result<Outcome, EngineError> {
    job.check()?;
    let block = job.block.largest().0;
    let len = match target {
        Target::File { len, .. } => len.0,
        Target::Memory { size } => size.0,
        Target::Null { .. } => 1 << 40,
    };
    let size = job.size.map_or(len.saturating_sub(job.offset.0), |s| s.0);
    if job.offset.0 + size > len || size < block {
        return Err(EngineError::Geometry(format!(
            "a region of {} at {} does not fit {}; choose a smaller size",
            Bytes(size),
            job.offset,
            Bytes(len)
        )));
    }
    let blocks = size / block;
    let mut buffer =
        sys::memory::Buffer::new(block as usize).map_err(|source| EngineError::System { what: "a buffer", source })?;
    let mut memory = match target {
        Target::Memory { size } => vec![1u8; size.0 as usize],
        _ => Vec::new(),
    };
    let start = Instant::now();
    let mut read = Side::default();
    let mut write = Side::default();
    let mut interval = Interval::default();
    let mut last = Duration::ZERO;
    let mut rng = job.seed | 1;
    let mut n = 0u64;
    let ended = loop {
        if control.cancel.load(Relaxed) {
            break Ended::Cancelled;
        }
        if job.stop.operations.is_some_and(|most| n >= most) {
            break Ended::Operations;
        }
        if job.stop.bytes.is_some_and(|most| n * block >= most.0) {
            break Ended::Bytes;
        }
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        let index = if job.order == Order::Sequential { n % blocks } else { rng % blocks };
        let offset = job.offset.0 + index * block;
        let reads = match job.direction {
            basics::job::Direction::Read => true,
            basics::job::Direction::Write => false,
            basics::job::Direction::Mixed { read_percent } => (rng >> 33) % 100 < u64::from(read_percent),
        };
        let begin = start.elapsed();
        let result = match target {
            Target::File { fd, .. } if reads => sys::file::read_at(fd, buffer.as_mut_slice(), offset),
            Target::File { fd, .. } => sys::file::write_at(fd, buffer.as_slice(), offset, false),
            Target::Memory { .. } => {
                let part = &mut memory[offset as usize..(offset + block) as usize];
                if reads {
                    buffer.as_mut_slice().copy_from_slice(part);
                } else {
                    part.copy_from_slice(buffer.as_slice());
                }
                Ok(block as usize)
            }
            Target::Null { service, .. } => {
                std::thread::sleep(service.into());
                Ok(block as usize)
            }
        };
        let end = start.elapsed();
        if let Err(error) = result {
            let what = if reads { "read" } else { "write" };
            break Ended::Failed { what, offset: Bytes(offset), errno: error.raw_os_error().unwrap_or(0) };
        }
        let side = if reads { &mut interval.read } else { &mut interval.write };
        side.latency.record((end - begin).into());
        side.bytes += block;
        interval.position = offset;
        n += 1;
        if end - last >= job.interval.into() {
            interval.start = last.into();
            interval.end = end.into();
            last = end;
            sink.interval(&interval);
            read.merge(&interval.read);
            write.merge(&interval.write);
            interval.read.clear();
            interval.write.clear();
        }
        if job.stop.time.is_some_and(|time| Nanos::from(end) >= time) {
            break Ended::Time;
        }
    };
    let elapsed = start.elapsed();
    interval.start = last.into();
    interval.end = elapsed.into();
    sink.interval(&interval);
    read.merge(&interval.read);
    write.merge(&interval.write);
    let used = if matches!(target, Target::Memory { .. }) { Engine::Memory } else { Engine::Psync };
    let engine = EngineUse { asked: job.engine, used, why: String::new(), dropped: Vec::new() };
    Ok(Outcome {
        engine,
        ended,
        elapsed: elapsed.into(),
        read,
        write,
        cpu_user: Nanos(0),
        cpu_system: Nanos(0),
        notes: Vec::new(),
    })
}
