//! The bytes of a file, read in order through one small buffer: every number and text is checked against the bytes that are
//! left, what is passed over is sought past, and a bound on what is read at all holds for every file.

use crate::error::{GgufError, Place};
use std::io::{ErrorKind, Read, Seek, SeekFrom};

/// Bytes that are read of a header at most: several times the largest known (a quarter of a million tokens with their merges
/// take 16 MiB).
pub const MOST_READ: u64 = 64 << 20;

const BUFFER: usize = 64 << 10;

pub(crate) struct Source<R> {
    reader: R,
    /// Bytes of the file.
    len: u64,
    buffer: Vec<u8>,
    /// First byte of the buffer that was not taken yet.
    taken: usize,
    /// Where in the file that byte is.
    position: u64,
    /// Bytes that the reader gave.
    fetched: u64,
    /// What is being read, for the sentence that says what is wrong.
    pub place: Place,
    /// The order of bytes in numbers.
    pub big_endian: bool,
}

impl<R: Read + Seek> Source<R> {
    /// From the beginning of the file.
    pub fn new(mut reader: R, len: u64) -> Result<Self, GgufError> {
        reader.seek(SeekFrom::Start(0)).map_err(|source| GgufError::Io { at: 0, source })?;
        let buffer = Vec::with_capacity(BUFFER);
        Ok(Source { reader, len, buffer, taken: 0, position: 0, fetched: 0, place: Place::Start, big_endian: false })
    }

    /// Byte of the file that comes next.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the file that were not taken.
    pub fn left(&self) -> u64 {
        self.len.saturating_sub(self.position)
    }

    /// What was read at byte `at` is wrong.
    pub fn broken(&self, at: u64, why: impl Into<String>) -> GgufError {
        GgufError::Broken { at, place: self.place.clone(), why: why.into() }
    }

    /// What was read at byte `at` is more than is read.
    pub fn too_much(&self, at: u64, why: impl Into<String>) -> GgufError {
        GgufError::TooMuch { at, place: self.place.clone(), why: why.into() }
    }

    fn truncated(&self) -> GgufError {
        GgufError::Truncated { at: self.len, place: self.place.clone() }
    }

    fn refill(&mut self) -> Result<(), GgufError> {
        if self.fetched >= MOST_READ {
            let most = basics::Bytes(MOST_READ);
            return Err(
                self.too_much(self.position, format!("the header is longer than the {most} that are read of one"))
            );
        }
        let want = self.left().min(BUFFER as u64).min(MOST_READ - self.fetched);
        self.buffer.clear();
        self.taken = 0;
        loop {
            // Into the same memory each time, which `take` and `read_to_end` do not promise for other readers.
            self.buffer.resize(want as usize, 0);
            match self.reader.read(&mut self.buffer) {
                // Shorter than was said: it was cut while it is read.
                Ok(0) => {
                    self.len = self.position;
                    return Err(self.truncated());
                }
                Ok(read) => {
                    self.buffer.truncate(read);
                    self.fetched += read as u64;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(GgufError::Io { at: self.position, source }),
            }
        }
    }

    fn copy(&mut self, mut out: &mut [u8]) -> Result<(), GgufError> {
        if self.left() < out.len() as u64 {
            return Err(self.truncated());
        }
        while !out.is_empty() {
            if self.taken == self.buffer.len() {
                self.refill()?;
            }
            let some = out.len().min(self.buffer.len() - self.taken);
            out[..some].copy_from_slice(&self.buffer[self.taken..self.taken + some]);
            self.taken += some;
            self.position += some as u64;
            out = &mut out[some..];
        }
        Ok(())
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.copy(&mut bytes)?;
        // A machine's order of bytes is the other way round as a whole.
        if self.big_endian {
            bytes.reverse();
        }
        Ok(bytes)
    }

    pub fn u32(&mut self) -> Result<u32, GgufError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, GgufError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes that are text, as they are.
    pub fn bytes(&mut self, count: usize) -> Result<Vec<u8>, GgufError> {
        if self.left() < count as u64 {
            return Err(self.truncated());
        }
        let mut bytes = vec![0; count];
        self.copy(&mut bytes)?;
        Ok(bytes)
    }

    /// The length of a text, which is in the file as a whole.
    pub fn text_length(&mut self) -> Result<u64, GgufError> {
        let at = self.position;
        let length = self.u64()?;
        if length > self.left() {
            let left = self.left();
            return Err(self.broken(
                at,
                format!("a text of {length} bytes begins here, and {left} are left; the file is cut short or damaged: copy or download it again"),
            ));
        }
        Ok(length)
    }

    /// Passes over bytes that are there.
    pub fn skip(&mut self, count: u64) -> Result<(), GgufError> {
        if self.left() < count {
            return Err(self.truncated());
        }
        let buffered = (self.buffer.len() - self.taken) as u64;
        self.position += count;
        if count <= buffered {
            self.taken += count as usize;
            return Ok(());
        }
        self.buffer.clear();
        self.taken = 0;
        let position = self.position;
        self.reader.seek(SeekFrom::Start(position)).map_err(|source| GgufError::Io { at: position, source })?;
        Ok(())
    }
}
