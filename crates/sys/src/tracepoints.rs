//! Tracepoints of the kernel as they are met, on all processors: perf_event_open(2) with a filter that the kernel applies, so that
//! what is not asked for costs next to nothing. Where their formats lie (tracefs) is found, or mounted where nobody else sees it.

use crate::perf::{
    self, Attr, Body, DISABLED, Found, IOC_ENABLE, IOC_SET_OUTPUT, Ring, SAMPLE_CPU, SAMPLE_IDENTIFIER, SAMPLE_RAW,
    SAMPLE_TID, SAMPLE_TIME, TYPE_TRACEPOINT, USE_CLOCKID, WATERMARK, control, id_of, online,
};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::collections::HashMap;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

/// Where distributions mount it.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Bytes of a processor's records: at 100,000 a second, of some 100 bytes, those of most of a second.
const ROOM: usize = 8 << 20;

/// The folder with the formats of all tracepoints.
#[derive(Debug)]
pub struct TraceFs(OwnedFd);

impl TraceFs {
    /// Where it is mounted, or else mounted for this process alone, at no place of the tree.
    ///
    /// # Errors
    /// `PermissionDenied` without root, `Unsupported` where the kernel has none.
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        for path in TRACEFS {
            if let Ok(dir) = rustix::fs::open(path, flags, Mode::empty())
                && rustix::fs::openat(&dir, "events", flags, Mode::empty()).is_ok()
            {
                return Ok(TraceFs(dir));
            }
        }
        let mounted = || {
            let fs = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            rustix::mount::fsconfig_create(&fs)?;
            rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)
        };
        mounted().map(TraceFs).map_err(|errno: rustix::io::Errno| {
            let error = io::Error::from(errno);
            match error.kind() {
                io::ErrorKind::PermissionDenied => error,
                kind => io::Error::new(
                    if errno == rustix::io::Errno::NODEV { io::ErrorKind::Unsupported } else { kind },
                    format!("this kernel's tracepoints (tracefs) cannot be looked at: {error}"),
                ),
            }
        })
    }

    /// The processors of which the kernel does not tell all: on some virtual machines all that is met while one idles is lost (the
    /// idle thread's count of perf events that it is in the midst of is never zero again). Found by sleeping on each, some ms.
    ///
    /// # Errors
    /// Those of [`Tracepoints::open`].
    pub fn deaf(&self) -> io::Result<Vec<i32>> {
        let mut deaf = Vec::new();
        for cpu in online()? {
            let wakes = std::thread::scope(|scope| {
                let sleeper = std::thread::Builder::new().spawn_scoped(scope, || self.wakes_are_told(cpu))?;
                sleeper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })?;
            if !wakes {
                deaf.push(cpu);
            }
        }
        Ok(deaf)
    }

    /// Whether the calling thread, pinned to it, is seen to come back as often as it is seen to leave: until one of both was told
    /// that left the processor idle. So too where it may not be pinned, or the processor was never idle.
    fn wakes_are_told(&self, cpu: i32) -> io::Result<bool> {
        if crate::thread::pin(cpu as usize).is_err() {
            return Ok(true);
        }
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let mut points =
            Tracepoints::open(self, &[("sched/sched_switch", &format!("prev_pid=={tid} || next_pid=={tid}"))])?;
        let (mut left, mut back, mut from_idle) = (0, 0, false);
        for _ in 0..200 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            points.poll(&mut |met| {
                if met.number("prev_pid") == Some(i64::from(tid)) {
                    left += 1;
                } else {
                    back += 1;
                    from_idle |= met.number("prev_pid") == Some(0);
                }
            });
            if points.lost() > 0 || left != back || from_idle {
                break;
            }
        }
        Ok(left == back || points.lost() > 0)
    }

    fn format(&self, name: &str) -> io::Result<Format> {
        let path = format!("events/{name}/format");
        let file =
            rustix::fs::openat(&self.0, &path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
                io::Error::new(io::Error::from(errno).kind(), format!("the tracepoint {name}: {errno}"))
            })?;
        let mut text = String::new();
        std::fs::File::from(file).read_to_string(&mut text)?;
        let nonsense =
            || io::Error::new(io::ErrorKind::InvalidData, format!("the tracepoint {name} has a format of its own"));
        Format::parse(&text).ok_or_else(nonsense)
    }
}

/// Of a tracepoint: its number, and where its fields lie.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Format {
    id: u64,
    /// Offset, length, whether it has a sign.
    fields: HashMap<String, (usize, usize, bool)>,
}

impl Format {
    /// Of the text of its file.
    fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let mut fields = HashMap::new();
        for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("field:")) {
            // `char prev_comm[16];	offset:8;	size:16;	signed:0;`
            let mut parts = line.split(';').map(str::trim);
            let declared = parts.next()?;
            let name = declared.split(['[', ']']).next()?.rsplit([' ', '*']).next()?;
            let mut of = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
            let (offset, size, signed) = (of("offset:")?, of("size:")?, of("signed:")?);
            fields.insert(name.to_owned(), (offset, size, signed == 1));
        }
        Some(Format { id, fields })
    }
}

/// A tracepoint that was met.
#[derive(Debug)]
pub struct Met<'a> {
    /// Which of those that were asked for.
    pub which: usize,
    /// ns of CLOCK_MONOTONIC.
    pub at: u64,
    /// The processor.
    pub cpu: u32,
    /// The thread that met it.
    pub tid: u32,
    bytes: &'a [u8],
    format: &'a Format,
}

impl Met<'_> {
    /// A field that is a number.
    pub fn number(&self, field: &str) -> Option<i64> {
        let &(offset, size, signed) = self.format.fields.get(field)?;
        let bytes = self.bytes.get(offset..offset + size)?;
        Some(match (size, signed) {
            (8, _) => i64::from_ne_bytes(bytes.try_into().ok()?),
            (4, true) => i64::from(i32::from_ne_bytes(bytes.try_into().ok()?)),
            (4, false) => i64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            (2, true) => i64::from(i16::from_ne_bytes(bytes.try_into().ok()?)),
            (2, false) => i64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            (1, true) => i64::from(i8::from_ne_bytes(bytes.try_into().ok()?)),
            (1, false) => i64::from(bytes[0]),
            _ => return None,
        })
    }

    /// A field that is a name of fixed length.
    pub fn text(&self, field: &str) -> Option<String> {
        let &(offset, size, _) = self.format.fields.get(field)?;
        let bytes = self.bytes.get(offset..offset + size)?;
        let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..len]).into_owned())
    }
}

#[derive(Debug)]
struct Held {
    at: u64,
    cpu: u32,
    tid: u32,
    which: usize,
    bytes: Vec<u8>,
}

/// Listens until dropped.
#[derive(Debug)]
pub struct Tracepoints {
    /// Dropped before the events whose memory they map.
    rings: Vec<Ring>,
    events: Vec<OwnedFd>,
    formats: Vec<Format>,
    /// By the kernel's number of an event.
    which: HashMap<u64, usize>,
    /// Met, and not told yet: a processor whose ring was read before may have met something sooner.
    held: Vec<Held>,
    lost: u64,
}

impl Tracepoints {
    /// Listens to these, each `sched/sched_switch` with what must be true of it. Call [`Tracepoints::poll`] every few milliseconds.
    ///
    /// # Errors
    /// `NotFound` with its name for a tracepoint that the kernel has not, `PermissionDenied` for who may not listen.
    pub fn open(fs: &TraceFs, wanted: &[(&str, &str)]) -> io::Result<Self> {
        let mut all = Tracepoints {
            rings: Vec::new(),
            events: Vec::new(),
            formats: Vec::new(),
            which: HashMap::new(),
            held: Vec::new(),
            lost: 0,
        };
        let cpus = online()?;
        for (which, (name, filter)) in wanted.iter().enumerate() {
            let format = fs.format(name)?;
            for (nth, cpu) in cpus.iter().enumerate() {
                let attr = Attr {
                    kind: TYPE_TRACEPOINT,
                    size: size_of::<Attr>() as u32,
                    config: format.id,
                    sample_period: 1,
                    sample_type: SAMPLE_IDENTIFIER | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_RAW,
                    flags: DISABLED | WATERMARK | USE_CLOCKID,
                    wakeup: u32::MAX >> 1,
                    clockid: libc::CLOCK_MONOTONIC,
                    ..Attr::default()
                };
                let event = perf::open(&attr, None, *cpu)
                    .map_err(|error| io::Error::new(error.kind(), format!("the tracepoint {name}: {error}")))?;
                perf::filter(&event, filter).map_err(|error| {
                    io::Error::new(error.kind(), format!("the tracepoint {name} where {filter}: {error}"))
                })?;
                match all.rings.get(nth) {
                    Some(ring) => control(&event, IOC_SET_OUTPUT, ring.event() as libc::c_ulong)?,
                    None => all.rings.push(Ring::new(&event, ROOM)?),
                }
                all.which.insert(id_of(&event)?, which);
                all.events.push(event);
            }
            all.formats.push(format);
        }
        all.events.iter().try_for_each(|event| control(event, IOC_ENABLE, 0))?;
        Ok(all)
    }

    /// Tells what was met until now, in the order of time, all processors together.
    pub fn poll(&mut self, each: &mut impl FnMut(&Met<'_>)) {
        let until = monotonic();
        let (which, held) = (&self.which, &mut self.held);
        for ring in &mut self.rings {
            self.lost += ring.drain(&mut |found| {
                // A switch is a record of its own only where it was asked for.
                let Found::Sample(body) = found else { return };
                held.extend(taken(&body, which));
            });
        }
        self.held.sort_by_key(|held| held.at);
        let told = self.held.partition_point(|held| held.at <= until);
        for held in self.held.drain(..told) {
            let format = &self.formats[held.which];
            each(&Met { which: held.which, at: held.at, cpu: held.cpu, tid: held.tid, bytes: &held.bytes, format });
        }
    }

    /// Those of which a ring had no room to tell, so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

fn taken(body: &Body<'_>, which: &HashMap<u64, usize>) -> Option<Held> {
    let which = *which.get(&body.word(0))?;
    let mut bytes = Vec::new();
    body.raw(4, &mut bytes);
    Some(Held { at: body.word(2), cpu: body.word(3) as u32, tid: (body.word(1) >> 32) as u32, which, bytes })
}

/// ns of CLOCK_MONOTONIC, which is what tracepoints are told by.
pub fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_read() {
        let text = "name: sched_switch\nID: 317\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                    \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n";
        let format = Format::parse(text).unwrap();
        assert_eq!(format.id, 317);
        assert_eq!(format.fields["prev_comm"], (8, 16, false));
        assert_eq!(format.fields["prev_pid"], (24, 4, true));
        assert_eq!(Format::parse("nothing"), None);
    }

    #[test]
    fn a_thread_that_waits_is_seen_to_leave_and_to_come_back() {
        let name = "a_thread_that_waits_is_seen_to_leave_and_to_come_back";
        let fs = match TraceFs::open() {
            Ok(fs) => fs,
            Err(error) => return println!("SKIP {name}: {error}"),
        };
        match fs.deaf() {
            Ok(deaf) if deaf.is_empty() => {}
            deaf => return println!("SKIP {name}: not all is told of the processors {deaf:?}"),
        }
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let filter = format!("prev_pid=={tid} || next_pid=={tid}");
        let mut points = match Tracepoints::open(&fs, &[("sched/sched_switch", &filter)]) {
            Ok(points) => points,
            Err(error) => return println!("SKIP {name}: {error}"),
        };
        let before = monotonic();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let after = monotonic();
        let mut seen = Vec::new();
        points.poll(&mut |met| {
            let left = met.number("prev_pid") == Some(i64::from(tid));
            seen.push((met.at, left, met.number("prev_state"), met.text(if left { "prev_comm" } else { "next_comm" })));
        });
        assert_eq!(points.lost(), 0);
        // S, TASK_INTERRUPTIBLE.
        let left = seen.iter().find(|(at, left, state, _)| *left && *at > before && *state == Some(1)).unwrap();
        let back = seen.iter().find(|(at, left_it, ..)| !left_it && *at > left.0).unwrap();
        assert!(back.0 <= after && back.0 - left.0 >= 4_000_000, "{seen:?}");
        let own = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
        assert_eq!(left.3.as_deref(), Some(own.trim_end()));
        let error = Tracepoints::open(&fs, &[("sched/no_such_thing", "")]).unwrap_err();
        assert!(error.kind() == io::ErrorKind::NotFound && error.to_string().contains("no_such_thing"), "{error}");
    }
}
