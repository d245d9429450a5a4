//! Numbers in memory that are only multiplied: what a language model does with its weights for each token. They are a
//! [`Region`] that nobody stores to any more, or pages of a file; each byte is one weight of eight bits or two of four.

use crate::region::Region;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munlock, munmap};
use std::fs::File;
use std::io;
use std::ptr::NonNull;

/// Weights that are multiplied with the same numbers again and again: a row of a model's is as long or longer.
const BLOCK: usize = 256;

/// Memory that is only read.
#[derive(Debug)]
pub struct Weights(Kept);

#[derive(Debug)]
enum Kept {
    Own(Region),
    File { at: NonNull<u8>, len: usize },
}

// SAFETY: the mapping has no owner's thread.
unsafe impl Send for Weights {}
// SAFETY: its bytes are only read.
unsafe impl Sync for Weights {}

impl Weights {
    /// Of memory that was filled before: nobody can store there any more.
    pub fn of(region: Region) -> Self {
        Weights(Kept::Own(region))
    }

    /// The first `len` bytes of a file or a block device, mapped as llama.cpp maps a model: shared, with the hint that all of it
    /// is wanted.
    ///
    /// # Errors
    /// `EACCES` when it is not open for reading, `ENODEV` where it cannot be mapped, `EINVAL` when `len` is 0.
    pub fn map(file: &File, len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        let at = unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0) }?;
        let at = NonNull::new(at).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: our own mapping. Where all of the process is to be locked, this is not.
        let _ = unsafe { munlock(at.as_ptr(), len) };
        // SAFETY: our own mapping, and a hint that changes no byte of it.
        let _ = unsafe { madvise(at.as_ptr(), len, Advice::WillNeed) };
        Ok(Weights(Kept::File { at: at.cast(), len }))
    }

    /// Their length in bytes.
    pub fn size(&self) -> usize {
        match &self.0 {
            Kept::Own(region) => region.size(),
            Kept::File { len, .. } => *len,
        }
    }

    /// The sum of the products of the weights in `len` bytes from `at` on with numbers that are always the same, whole blocks
    /// of 256 bytes of them. `packed` is 2 where each byte holds two weights of four bits. What comes out means nothing, and cannot
    /// be had without reading every byte.
    ///
    /// # Panics
    /// When the range is not inside.
    #[inline]
    pub fn multiply(&self, at: usize, len: usize, packed: u8) -> i32 {
        assert!(at <= self.size() && len <= self.size() - at);
        let start = match &self.0 {
            Kept::Own(region) => region.start(),
            Kept::File { at, .. } => at.as_ptr(),
        };
        // SAFETY: inside the mapping, by the assertion. Nobody stores to a region that was given up for this, and a file that
        // somebody else changes meanwhile gives another sum, which is of no use either way.
        let weights = unsafe { std::slice::from_raw_parts(start.add(at), len) };
        if packed > 1 { products(weights, pairs, pairs_wide) } else { products(weights, singles, singles_wide) }
    }
}

impl Drop for Weights {
    fn drop(&mut self) {
        if let Kept::File { at, len } = self.0 {
            // SAFETY: our own mapping, which nobody borrows any more.
            let _ = unsafe { munmap(at.as_ptr().cast(), len) };
        }
    }
}

type Sum = fn(&[u8; BLOCK], &[i16; 2 * BLOCK]) -> i32;

/// The numbers that weights are multiplied with: small ones of both signs.
static ACTIVATIONS: [i16; 2 * BLOCK] = {
    let mut all = [0; 2 * BLOCK];
    let mut i = 0;
    while i < all.len() {
        all[i] = ((i * 37) % 127) as i16 - 63;
        i += 1;
    }
    all
};

#[inline(always)]
fn blocks(weights: &[u8], sum: impl Fn(&[u8; BLOCK], &[i16; 2 * BLOCK]) -> i32) -> i32 {
    weights.as_chunks::<BLOCK>().0.iter().fold(0_i32, |all, block| all.wrapping_add(sum(block, &ACTIVATIONS)))
}

#[inline(always)]
fn singles(block: &[u8; BLOCK], by: &[i16; 2 * BLOCK]) -> i32 {
    let mut sum = 0;
    for i in 0..BLOCK {
        sum += i32::from(i16::from(block[i] as i8)) * i32::from(by[i]);
    }
    sum
}

#[inline(always)]
fn pairs(block: &[u8; BLOCK], by: &[i16; 2 * BLOCK]) -> i32 {
    // Both halves apart: compilers make one instruction of products of 16 bits that are summed in pairs.
    let (mut low, mut high) = (0, 0);
    for i in 0..BLOCK {
        low += i32::from(i16::from(block[i] & 15)) * i32::from(by[i]);
    }
    for i in 0..BLOCK {
        high += i32::from(i16::from(block[i] >> 4)) * i32::from(by[BLOCK + i]);
    }
    low + high
}

/// By the widest registers that this CPU has: the compiler's own are those of the oldest CPU that this program runs on.
#[inline]
fn products(weights: &[u8], sum: Sum, wide: Wide) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has what the function was compiled for.
        return unsafe { wide(weights) };
    }
    let _ = wide;
    blocks(weights, sum)
}

type Wide = unsafe fn(&[u8]) -> i32;

/// # Safety
/// On x86-64 the CPU must have AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
unsafe fn singles_wide(weights: &[u8]) -> i32 {
    blocks(weights, singles)
}

/// # Safety
/// On x86-64 the CPU must have AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
unsafe fn pairs_wide(weights: &[u8]) -> i32 {
    blocks(weights, pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of which each byte differs.
    fn filled(len: usize) -> (Region, Vec<u8>) {
        let region = Region::new(len).unwrap();
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
        region.fill(0, &bytes);
        (region, bytes)
    }

    #[test]
    fn a_sum_of_products_is_one() {
        let (region, bytes) = filled(8192);
        let weights = Weights::of(region);
        let by = |i: usize| i32::from(ACTIVATIONS[i]);
        let eight = |at: usize| (0..2048).map(|i| i32::from(bytes[at + i] as i8) * by(i % BLOCK)).sum::<i32>();
        assert_eq!(weights.multiply(4096, 2048, 1), eight(4096));
        let low = |i: usize| i32::from(bytes[i] & 15) * by(i % BLOCK);
        let high = |i: usize| i32::from(bytes[i] >> 4) * by(BLOCK + i % BLOCK);
        assert_eq!(weights.multiply(0, 2048, 2), (0..2048).map(|i| low(i) + high(i)).sum::<i32>());
        // With the narrow registers, too.
        assert_eq!(blocks(&bytes[..2048], pairs), weights.multiply(0, 2048, 2));
        assert_eq!(blocks(&bytes[..2048], singles), weights.multiply(0, 2048, 1));
    }

    #[test]
    fn a_file_is_as_good() {
        let (region, bytes) = filled(8192);
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let mapped = Weights::map(&file, 8192).unwrap();
        assert_eq!(mapped.size(), 8192);
        assert_eq!(mapped.multiply(512, 4096, 2), Weights::of(region).multiply(512, 4096, 2));
        assert!(Weights::map(&file, 0).is_err());
    }

    #[test]
    #[should_panic(expected = "at <= self.size()")]
    fn beyond_the_end_there_is_nothing() {
        Weights::of(Region::new(4096).unwrap()).multiply(4096, 1, 1);
    }
}
