//! The address space of a process, as far as its memory can be brought in and sent out.

use std::io;
use std::os::unix::fs::FileTypeExt;
use sys::peer::Range;

/// A mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Map {
    /// Its first byte.
    pub from: u64,
    /// Behind its last.
    pub to: u64,
    /// Of a file: what is not in the page table is read from there.
    pub file: bool,
    /// Where in it the first byte lies.
    pub offset: u64,
}

/// All of a process, in the order of addresses.
#[derive(Debug, Default)]
pub struct Maps(Vec<Map>);

impl Maps {
    /// Of this process.
    ///
    /// # Errors
    /// When it has ended or may not be looked at.
    pub fn read(pid: u32) -> io::Result<Self> {
        let path = format!("/proc/{pid}/maps");
        let text = std::fs::read_to_string(&path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
        Ok(Maps(text.lines().filter_map(parsed).collect()))
    }

    /// The mappings within a range, cut to it.
    pub fn within(&self, at: u64, len: u64) -> impl Iterator<Item = (Range, bool)> + '_ {
        let first = self.0.partition_point(|map| map.to <= at);
        self.0[first..].iter().take_while(move |map| map.from < at + len).map(move |map| {
            let (from, to) = (map.from.max(at), map.to.min(at + len));
            (Range { at: from, len: to - from }, map.file)
        })
    }

    /// The mapping of this address.
    pub fn at(&self, address: u64) -> Option<Map> {
        let first = self.0.partition_point(|map| map.to <= address);
        self.0.get(first).copied().filter(|map| map.from <= address)
    }

    /// Whether there is anything at this address.
    pub fn has(&self, address: u64) -> bool {
        self.at(address).is_some()
    }
}

/// None for what is no memory of its own.
fn parsed(line: &str) -> Option<Map> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let offset = words.next()?;
    let inode = words.nth(1)?;
    let name = words.next().unwrap_or_default();
    // Memory under the names of files: a file in it, and what is shared and of no file.
    let shared = name == "/dev/zero" && permissions.ends_with('s');
    let device = name.starts_with("/dev/") && !name.starts_with("/dev/shm/") && !shared;
    // What a disk holds comes and goes as a file's pages do; what other devices map is theirs.
    let disk = || std::fs::metadata(name).is_ok_and(|data| data.file_type().is_block_device());
    let kernels = name.starts_with("[v") || device && !disk();
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let map = Map { from: hex(from)?, to: hex(to)?, file: inode != "0", offset: hex(offset)? };
    (!kernels && permissions.starts_with('r')).then_some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_may_lie_in_several() {
        let text = "00010000-00013000 rw-p 00000000 00:00 0 \n\
                    00021000-00043000 r--s 00007000 fd:01 77 /models/a b.gguf\n\
                    00043000-00048000 ---p 00000000 00:00 0 \n\
                    00050000-00051000 rw-s 00000000 00:01 77 /dev/zero (deleted)\n\
                    00060000-00061000 rw-s 00000000 00:05 78 /dev/mem\n\
                    7ffd0000-7ffd2000 r-xp 00000000 00:00 0 [vdso]\n";
        let maps = Maps(text.lines().filter_map(parsed).collect());
        let within: Vec<_> = maps.within(0x12000, 0x20000).collect();
        let range = |at, len| Range { at, len };
        assert_eq!(within, [(range(0x12000, 0x1000), false), (range(0x21000, 0x11000), true)]);
        assert!(maps.has(0x42fff) && !maps.has(0x43000) && !maps.has(0x7ffd_0000) && !maps.has(0));
        assert_eq!(maps.at(0x22000), Some(Map { from: 0x21000, to: 0x43000, file: true, offset: 0x7000 }));
        assert!(maps.has(0x50000) && !maps.has(0x60000));
    }
}
