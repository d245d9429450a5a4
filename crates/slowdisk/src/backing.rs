//! Where an emulated disk's bytes are: in memory or in a file, both with holes where nothing was written. Memory is taken
//! in pieces on the first write; the file is read and written past the page cache where its file system allows it.

use rustix::fs::{FallocateFlags, OFlags};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use sys::memory::{Buffer, Pages};

/// What memory is taken and given back in.
const PIECE: u64 = 64 << 10;
/// When less than this is available to other programs, no more memory is taken and a write fails with ENOSPC.
const SPARE: u64 = 96 << 20;
/// Memory left is asked for once for so many new pieces.
const LOOK_EVERY: usize = 64;
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

/// What memory is taken in, and a bit for each of its pages that was written: to read one that was not would have the
/// kernel map its page of zeros, and take it back on the first write.
#[derive(Debug)]
struct Piece {
    bytes: Box<[u8]>,
    written: u16,
}

impl Piece {
    fn new() -> Self {
        Piece { bytes: vec![0; PIECE as usize].into_boxed_slice(), written: 0 }
    }
    /// The bits of the pages that hold a part.
    fn pages(within: usize, part: usize) -> u16 {
        let (first, end) = (within / PAGE as usize, (within + part).div_ceil(PAGE as usize));
        ((1u32 << end) - (1 << first)) as u16
    }
    fn is_hole(&self, within: usize, part: usize) -> bool {
        self.written & Piece::pages(within, part) == 0
    }
    /// Zeros; pages never written are zeros already.
    fn zero(&mut self, within: usize, part: usize) {
        if !self.is_hole(within, part) {
            self.bytes[within..within + part].fill(0);
        }
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
            Backing::Ram(ram) => ram.pieces.len() as u64 * PIECE,
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
                Some(piece) if !piece.is_hole(within, part) => {
                    here.copy_from_slice(&piece.bytes[within..within + part]);
                }
                _ => here.fill(0),
            }
            rest = later;
        }
    }

    fn write(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        let mut rest = from;
        for (piece, within, part) in pieces(offset, from.len() as u64) {
            let (here, later) = rest.split_at(part);
            if !self.pieces.contains_key(&piece) {
                self.look()?;
            }
            let piece = self.pieces.entry(piece).or_insert_with(Piece::new);
            piece.bytes[within..within + part].copy_from_slice(here);
            piece.written |= Piece::pages(within, part);
            rest = later;
        }
        Ok(())
    }

    /// Refuses to take the machine's last memory.
    fn look(&mut self) -> io::Result<()> {
        if self.until_look == 0 {
            if sys::memory::available().is_some_and(|left| left < SPARE) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.until_look = LOOK_EVERY;
        }
        self.until_look -= 1;
        Ok(())
    }

    fn punch(&mut self, offset: u64, len: u64) {
        if len / PIECE > self.pieces.len() as u64 {
            // The whole disk at once, as mkfs does it: by what is there, not by what could be.
            let (whole, end) = (offset.div_ceil(PIECE), (offset + len) / PIECE);
            self.pieces.retain(|piece, _| !(whole..end).contains(piece));
            for edge in [offset / PIECE, end] {
                let (from, to) = (offset.max(edge * PIECE), (offset + len).min((edge + 1) * PIECE));
                if let Some(piece) = self.pieces.get_mut(&edge).filter(|_| from < to) {
                    piece.zero((from % PIECE) as usize, (to - from) as usize);
                }
            }
            return;
        }
        for (piece, within, part) in pieces(offset, len) {
            if part as u64 == PIECE {
                self.pieces.remove(&piece);
            } else if let Some(piece) = self.pieces.get_mut(&piece) {
                piece.zero(within, part);
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
                    backing.write(at as u64, &truth[at..at + len]).unwrap();
                }
                Step::Punch(at, len) => {
                    truth[at..at + len].fill(0);
                    backing.punch(at as u64, len as u64).unwrap();
                }
            }
        }
        let mut found = vec![1; SIZE];
        backing.read(0, &mut found).unwrap();
        assert!(found == truth);
        let (from, to) = (SIZE / 3 / 512 * 512, SIZE / 2 + 512);
        let mut part = vec![1; to - from];
        backing.read(from as u64, &mut part).unwrap();
        assert!(part == truth[from..to]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn memory_and_file_hold_what_was_written(steps in proptest::collection::vec(step(), 1..24)) {
            holds_what_was_written(&mut Backing::ram(), &steps);
            let file = tempfile::tempfile().unwrap();
            file.set_len(SIZE as u64).unwrap();
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
        assert_eq!(ram.taken(), PIECE);
        assert!(ram.is_hole(0, 4096) && !ram.is_hole(1 << 40, 4096));
        ram.punch(0, 2 << 40).unwrap();
        assert_eq!(ram.taken(), 0);
    }
}
