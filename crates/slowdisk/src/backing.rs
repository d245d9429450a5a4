//! Where an emulated disk's bytes are: in memory or in a file, both with holes where nothing was written. Memory is taken
//! by the page on the first write; the file is read and written past the page cache where its file system allows it.

use rustix::fs::{FallocateFlags, OFlags};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use sys::memory::{Buffer, Pages};

/// What addresses are taken in: most requests lie in one, and are answered from there without a copy. Memory comes and goes by
/// the page; where there are few addresses they are not to run out before it.
const PIECE: u64 = if cfg!(target_pointer_width = "64") { 4 << 20 } else { 256 << 10 };
/// When less than this is available to other programs, no more memory is taken and a write fails with ENOSPC.
const SPARE: u64 = 96 << 20;
/// Memory left is asked for once for so many new pages.
const LOOK_EVERY: usize = 1024;
/// Direct I/O on the file is aligned to this.
const PAGE: u64 = 4096;

/// The bytes of a disk.
#[derive(Debug)]
pub enum Backing {
    /// In memory.
    Ram(Ram),
    /// In a file.
    File(FileBacking),
}

/// Memory with holes.
#[derive(Debug, Default)]
pub struct Ram {
    pieces: HashMap<u64, Piece>,
    until_look: usize,
}

/// A piece, and a bit for each of its pages that was written: to read one that was not would have the kernel map its page of
/// zeros, and take it back on the first write.
#[derive(Debug)]
struct Piece {
    bytes: Buffer,
    written: [u64; (PIECE / PAGE / 64) as usize],
}

impl Piece {
    fn new() -> io::Result<Self> {
        Ok(Piece { bytes: Buffer::untouched(PIECE as usize)?, written: Default::default() })
    }
    /// The pages that hold a part.
    fn pages(within: usize, part: usize) -> Range<usize> {
        within / PAGE as usize..(within + part).div_ceil(PAGE as usize)
    }
    fn has(&self, page: usize) -> bool {
        self.written[page / 64] >> (page % 64) & 1 == 1
    }
    fn is_hole(&self, within: usize, part: usize) -> bool {
        Piece::pages(within, part).all(|page| !self.has(page))
    }
    /// The bytes of a part, when all of its pages were written.
    fn whole(&self, within: usize, part: usize) -> Option<&[u8]> {
        let is_whole = Piece::pages(within, part).all(|page| self.has(page));
        is_whole.then(|| &self.bytes.as_slice()[within..within + part])
    }
    fn read(&self, within: usize, into: &mut [u8]) {
        if let Some(bytes) = self.whole(within, into.len()) {
            return into.copy_from_slice(bytes);
        }
        let (mut at, mut rest) = (within, into);
        while !rest.is_empty() {
            let part = (PAGE as usize - at % PAGE as usize).min(rest.len());
            let (here, later) = rest.split_at_mut(part);
            match self.whole(at, part) {
                Some(bytes) => here.copy_from_slice(bytes),
                None => here.fill(0),
            }
            (at, rest) = (at + part, later);
        }
    }
    fn write(&mut self, within: usize, from: &[u8]) {
        self.bytes.as_mut_slice()[within..within + from.len()].copy_from_slice(from);
        for page in Piece::pages(within, from.len()) {
            self.written[page / 64] |= 1 << (page % 64);
        }
    }
    /// Zeros; pages never written are zeros already.
    fn zero(&mut self, within: usize, part: usize) {
        if self.is_hole(within, part) {
            return;
        }
        self.bytes.forget(within..within + part);
        for page in within.div_ceil(PAGE as usize)..(within + part) / PAGE as usize {
            self.written[page / 64] &= !(1 << (page % 64));
        }
    }
    fn taken(&self) -> u64 {
        self.written.iter().map(|bits| u64::from(bits.count_ones())).sum::<u64>() * PAGE
    }
}

/// A file with holes.
#[derive(Debug)]
pub struct FileBacking {
    file: File,
    /// For direct I/O, which wants aligned memory; nothing where it is not possible.
    aligned: Option<Mutex<Buffer>>,
}

impl Backing {
    /// In memory.
    pub fn ram() -> Self {
        Backing::Ram(Ram::default())
    }

    /// In this file, opened for reading and writing, as long as the disk.
    pub fn file(file: File) -> io::Result<Self> {
        // On tmpfs the page cache is the storage itself; older kernels refuse the flag there.
        let direct = rustix::fs::fcntl_getfl(&file)
            .and_then(|flags| rustix::fs::fcntl_setfl(&file, flags | OFlags::DIRECT))
            .is_ok();
        let aligned =
            if direct { Some(Mutex::new(Buffer::new((1 << 20) + 2 * PAGE as usize, Pages::Usual)?)) } else { None };
        Ok(Backing::File(FileBacking { file, aligned }))
    }

    /// Fills `into` from `offset` on; zeros from holes.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            Backing::Ram(ram) => {
                ram.read(offset, into);
                Ok(())
            }
            Backing::File(file) => file.read(offset, into),
        }
    }

    /// What [`Backing::read`] would copy, where it lies in memory one after the other.
    pub fn lend(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let Backing::Ram(ram) = self else { return None };
        let within = (offset % PIECE) as usize;
        let piece = ram.pieces.get(&(offset / PIECE)).filter(|_| within + len <= PIECE as usize)?;
        piece.whole(within, len)
    }

    /// Writes all of `from`.
    pub fn write(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        match self {
            Backing::Ram(ram) => ram.write(offset, from),
            Backing::File(file) => file.write(offset, from),
        }
    }

    /// Makes a hole; what was there reads as zeros.
    pub fn punch(&mut self, offset: u64, len: u64) -> io::Result<()> {
        match self {
            Backing::Ram(ram) => {
                ram.punch(offset, len);
                Ok(())
            }
            Backing::File(file) => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                match rustix::fs::fallocate(&file.file, flags, offset, len) {
                    Ok(()) => Ok(()),
                    // A file system without holes.
                    Err(_) => file.zero(offset, len),
                }
            }
        }
    }

    /// Whether this range is known to be a hole.
    pub fn is_hole(&self, offset: u64, len: u64) -> bool {
        match self {
            Backing::Ram(ram) => pieces(offset, len)
                .all(|(piece, within, part)| ram.pieces.get(&piece).is_none_or(|piece| piece.is_hole(within, part))),
            Backing::File(_) => false,
        }
    }

    /// Bytes that are really taken.
    pub fn taken(&self) -> u64 {
        match self {
            Backing::Ram(ram) => ram.pieces.values().map(Piece::taken).sum(),
            Backing::File(file) => {
                use std::os::unix::fs::MetadataExt;
                file.file.metadata().map_or(0, |metadata| metadata.blocks() * 512)
            }
        }
    }
}

/// The parts of a range by piece: which, from where in it, how long.
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (piece, within) = (at / PIECE, at % PIECE);
        let part = (PIECE - within).min(end - at);
        at += part;
        Some((piece, within as usize, part as usize))
    })
}

impl Ram {
    fn read(&self, offset: u64, into: &mut [u8]) {
        let mut rest = into;
        for (piece, within, part) in pieces(offset, rest.len() as u64) {
            let (here, later) = rest.split_at_mut(part);
            match self.pieces.get(&piece) {
                Some(piece) => piece.read(within, here),
                None => here.fill(0),
            }
            rest = later;
        }
    }

    fn write(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        let mut rest = from;
        for (piece, within, part) in pieces(offset, from.len() as u64) {
            let (here, later) = rest.split_at(part);
            let there = self.pieces.get(&piece);
            let fresh = Piece::pages(within, part).filter(|page| there.is_none_or(|piece| !piece.has(*page))).count();
            self.look(fresh)?;
            let piece = match self.pieces.entry(piece) {
                Entry::Occupied(there) => there.into_mut(),
                Entry::Vacant(hole) => hole.insert(Piece::new()?),
            };
            piece.write(within, here);
            rest = later;
        }
        Ok(())
    }

    /// Refuses to take the machine's last memory, of which so many pages are wanted.
    fn look(&mut self, fresh: usize) -> io::Result<()> {
        if fresh > self.until_look {
            if sys::memory::available().is_some_and(|left| left < SPARE) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.until_look = LOOK_EVERY;
        }
        self.until_look = self.until_look.saturating_sub(fresh);
        Ok(())
    }

    fn punch(&mut self, offset: u64, len: u64) {
        if len / PIECE > self.pieces.len() as u64 {
            // The whole disk at once, as mkfs does it: by what is there, not by what could be.
            let (whole, end) = (offset.div_ceil(PIECE), (offset + len) / PIECE);
            self.pieces.retain(|piece, _| !(whole..end).contains(piece));
            for edge in [offset / PIECE, end] {
                let (from, to) = (offset.max(edge * PIECE), (offset + len).min((edge + 1) * PIECE));
                if from < to {
                    self.zero(edge, (from % PIECE) as usize, (to - from) as usize);
                }
            }
            return;
        }
        for (piece, within, part) in pieces(offset, len) {
            self.zero(piece, within, part);
        }
    }

    fn zero(&mut self, piece: u64, within: usize, part: usize) {
        if let Entry::Occupied(mut there) = self.pieces.entry(piece) {
            there.get_mut().zero(within, part);
            if there.get().is_hole(0, PIECE as usize) {
                there.remove();
            }
        }
    }
}

impl FileBacking {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let Some(aligned) = &self.aligned else { return self.file.read_exact_at(into, offset) };
        let mut buffer = aligned.lock().map_err(|_| io::ErrorKind::Other)?;
        let room = buffer.as_slice().len() as u64 - 2 * PAGE;
        for (at, part) in parts(offset, into.len() as u64, room) {
            let (from, to) = bounds(at, part);
            let whole = &mut buffer.as_mut_slice()[..(to - from) as usize];
            self.file.read_exact_at(whole, from)?;
            into[(at - offset) as usize..][..part as usize]
                .copy_from_slice(&whole[(at - from) as usize..][..part as usize]);
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let Some(aligned) = &self.aligned else { return self.file.write_all_at(bytes, offset) };
        let mut buffer = aligned.lock().map_err(|_| io::ErrorKind::Other)?;
        let room = buffer.as_slice().len() as u64 - 2 * PAGE;
        for (at, part) in parts(offset, bytes.len() as u64, room) {
            let (from, to) = bounds(at, part);
            let whole = &mut buffer.as_mut_slice()[..(to - from) as usize];
            if from != at {
                self.file.read_exact_at(&mut whole[..PAGE as usize], from)?;
            }
            if to != at + part {
                let last = whole.len() - PAGE as usize;
                self.file.read_exact_at(&mut whole[last..], to - PAGE)?;
            }
            whole[(at - from) as usize..][..part as usize]
                .copy_from_slice(&bytes[(at - offset) as usize..][..part as usize]);
            self.file.write_all_at(whole, from)?;
        }
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        let zeros = vec![0; 256 << 10];
        parts(offset, len, zeros.len() as u64).try_for_each(|(at, part)| self.write(at, &zeros[..part as usize]))
    }
}

/// A range in parts of at most `room`.
fn parts(offset: u64, len: u64, room: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..len.div_ceil(room)).map(move |i| (offset + i * room, room.min(len - i * room)))
}

/// The pages around a range.
fn bounds(offset: u64, len: u64) -> (u64, u64) {
    (offset / PAGE * PAGE, (offset + len).div_ceil(PAGE) * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: usize = 512 << 10;
    /// In the middle of it one piece ends.
    const AT: u64 = PIECE - (SIZE / 2) as u64;

    #[derive(Debug, Clone)]
    enum Step {
        Write(usize, usize, u8),
        Punch(usize, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = (0..SIZE / 512, 1..300usize).prop_map(|(at, len)| (at * 512, (len * 512).min(SIZE - at * 512)));
        prop_oneof![
            (range.clone(), 1..255u8).prop_map(|((at, len), byte)| Step::Write(at, len, byte)),
            range.prop_map(|(at, len)| Step::Punch(at, len)),
            Just(Step::Punch(0, SIZE)),
        ]
    }

    /// Against a plain vector of bytes.
    fn holds_what_was_written(backing: &mut Backing, steps: &[Step]) {
        let mut truth = vec![0u8; SIZE];
        for step in steps {
            match *step {
                Step::Write(at, len, byte) => {
                    truth[at..at + len].fill(byte);
                    backing.write(AT + at as u64, &truth[at..at + len]).unwrap();
                }
                Step::Punch(at, len) => {
                    truth[at..at + len].fill(0);
                    backing.punch(AT + at as u64, len as u64).unwrap();
                }
            }
        }
        let mut found = vec![1; SIZE];
        backing.read(AT, &mut found).unwrap();
        assert!(found == truth);
        let (from, to) = (SIZE / 3 / 512 * 512, SIZE / 2 + 512);
        let mut part = vec![1; to - from];
        backing.read(AT + from as u64, &mut part).unwrap();
        assert!(part == truth[from..to]);
        for (at, bytes) in truth.chunks(96 << 10).enumerate() {
            assert!(backing.lend(AT + (at * (96 << 10)) as u64, bytes.len()).is_none_or(|lent| lent == bytes));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn memory_and_file_hold_what_was_written(steps in proptest::collection::vec(step(), 1..24)) {
            holds_what_was_written(&mut Backing::ram(), &steps);
            let file = tempfile::tempfile().unwrap();
            file.set_len(AT + SIZE as u64).unwrap();
            holds_what_was_written(&mut Backing::file(file).unwrap(), &steps);
        }
    }

    #[test]
    fn holes_take_nothing() {
        let mut ram = Backing::ram();
        let mut byte = [1];
        ram.read(1 << 40, &mut byte).unwrap();
        assert_eq!((byte[0], ram.taken()), (0, 0));
        ram.write(1 << 40, &[7; 100]).unwrap();
        assert_eq!(ram.taken(), PAGE);
        assert!(ram.is_hole(0, 4096) && !ram.is_hole(1 << 40, 4096));
        ram.punch(0, 2 << 40).unwrap();
        assert_eq!(ram.taken(), 0);
        ram.write(4096, &[7; 8192]).unwrap();
        ram.punch(4096, 4096).unwrap();
        assert_eq!(ram.taken(), PAGE);
        ram.punch(8192, 4096).unwrap();
        assert_eq!(ram.taken(), 0);
        for piece in 1..4 {
            ram.write(piece * PIECE, &[7; 8192]).unwrap();
        }
        ram.punch(PIECE + 4096, 1 << 40).unwrap();
        assert_eq!((ram.taken(), ram.lend(PIECE, 4096).is_some()), (PAGE, true));
    }

    #[test]
    fn what_was_written_in_one_piece_is_lent() {
        let mut ram = Backing::ram();
        ram.write(PIECE - 8192, &[7; 16 << 10]).unwrap();
        assert_eq!(ram.lend(PIECE - 8192, 8192), Some(&[7; 8192][..]));
        assert_eq!(ram.lend(PIECE + 512, 1024), Some(&[7; 1024][..]));
        assert_eq!(ram.lend(PIECE - 4096, 8192), None, "it lies in two");
        assert_eq!(ram.lend(PIECE + 4096, 8192), None, "a part was never written");
        assert_eq!(ram.lend(5 * PIECE, 512), None);
    }
}
