//! The address space of a process, as far as its memory can go out and come back.

use basics::Nanos;
use std::io;
use sys::peer::Range;

/// Pages of a file that come by one fault (`fault_around_bytes` is 64 KiB where nobody changed it).
const AROUND: u64 = 16;
/// Read again at most so often: the kernel walks through all of the process's pages for it.
const AGAIN: Nanos = Nanos::from_millis(1000);

/// A mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Map {
    pub from: u64,
    pub to: u64,
    /// Of a file, or shared memory.
    file: bool,
    /// Locked: what of it is in RAM stays there.
    locked: bool,
    /// Bytes in RAM when this was read.
    resident: u64,
}

impl Map {
    /// The unit in which an address lies.
    pub fn unit(&self, address: u64, page: u64) -> Range {
        let len = if self.file { AROUND * page } else { page };
        let at = (address - address % len).max(self.from);
        let end = (address - address % len + len).min(self.to);
        Range { at, len: end - at }
    }
}

#[derive(Debug)]
pub(super) struct Maps {
    all: Vec<Map>,
    page: u64,
    read: Nanos,
}

impl Maps {
    pub fn read(pid: u32, page: u64) -> io::Result<Self> {
        let path = format!("/proc/{pid}/smaps");
        let text = std::fs::read_to_string(&path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
        Ok(Maps { all: parse(&text), page, read: Nanos(0) })
    }

    /// Those that can go out.
    pub fn all(&self) -> impl Iterator<Item = &Map> {
        self.all.iter().filter(|map| !map.locked)
    }

    /// Bytes in RAM that are locked there.
    pub fn locked(&self) -> u64 {
        self.all.iter().filter(|map| map.locked).map(|map| map.resident).sum()
    }

    fn map(&self, address: u64) -> Option<&Map> {
        let at = self.all.partition_point(|map| map.to <= address);
        self.all.get(at).filter(|map| map.from <= address)
    }

    /// Where nothing is locked.
    pub fn unit(&self, address: u64) -> Option<Range> {
        self.map(address).filter(|map| !map.locked).map(|map| map.unit(address, self.page))
    }

    /// For an address that was in none: the process has mapped something since.
    pub fn renew(&mut self, pid: u32, address: u64, now: Nanos) {
        if now - self.read >= AGAIN && self.map(address).is_none() {
            if let Ok(maps) = Maps::read(pid, self.page) {
                self.all = maps.all;
            }
            self.read = now;
        }
    }
}

/// The mappings of `/proc/PID/smaps` that are memory of the process's own.
fn parse(text: &str) -> Vec<Map> {
    let mut all = Vec::new();
    let mut current: Option<Map> = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), &mut current) {
            (Some("Rss:"), Some(map)) => {
                map.resident = words.next().and_then(|kib| kib.parse().ok()).unwrap_or(0) * 1024;
            }
            (Some("VmFlags:"), Some(map)) => map.locked = words.any(|flag| flag == "lo"),
            (Some(word), _) if !word.ends_with(':') => all.extend(std::mem::replace(&mut current, heading(line))),
            _ => {}
        }
    }
    all.extend(current);
    all
}

/// A mapping's first line; none for what is no memory of its own.
fn heading(line: &str) -> Option<Map> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let inode = words.nth(2)?;
    let name = words.next().unwrap_or_default();
    let kernels = name.starts_with("[v") || name.starts_with("/dev/") && !name.starts_with("/dev/shm/");
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (from, to, file) = (hex(from)?, hex(to)?, inode != "0");
    (!kernels && !permissions.starts_with("---")).then_some(Map { from, to, file, locked: false, resident: 0 })
}

/// Bytes of the process that are in RAM, and in swap; None when it has ended.
pub(super) fn held(pid: u32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let of = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    Some((of("VmRSS:")?, of("VmSwap:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lie_in_pages_or_in_blocks_of_a_file() {
        let text = "00010000-00013000 rw-p 00000000 00:00 0 \n\
                    Size:                 12 kB\nRss:                   8 kB\nVmFlags: rd wr mr mw me ac\n\
                    00021000-00043000 r--s 00000000 fd:01 77 /models/a b.gguf\n\
                    00048000-0004a000 rw-p 00000000 00:00 0 [heap]\n\
                    Rss:                   4 kB\nVmFlags: rd wr mr mw me lo ac\n\
                    00050000-00060000 ---p 00000000 00:00 0 \nRss:                  64 kB\nVmFlags: lo\n\
                    7ffd0000-7ffd2000 r-xp 00000000 00:00 0 [vdso]\nRss:                   4 kB\nVmFlags: lo\n";
        let maps = Maps { all: parse(text), page: 4096, read: Nanos(0) };
        assert_eq!((maps.all().count(), maps.locked(), maps.unit(0x49000)), (2, 4096, None));
        assert_eq!(maps.unit(0x12345), Some(Range { at: 0x12000, len: 0x1000 }));
        assert_eq!(maps.unit(0x13000), None);
        assert_eq!(maps.unit(0x21000), Some(Range { at: 0x21000, len: 0xf000 }));
        assert_eq!(maps.unit(0x35abc), Some(Range { at: 0x30000, len: 0x10000 }));
        assert_eq!(maps.unit(0x42fff), Some(Range { at: 0x40000, len: 0x3000 }));
        assert_eq!((maps.unit(0x51000), maps.unit(0x7ffd_0000)), (None, None));
    }

    #[test]
    fn this_process_holds_something() {
        assert!(held(std::process::id()).unwrap().0 > 0);
        assert_eq!(held(u32::MAX >> 1), None);
    }
}
