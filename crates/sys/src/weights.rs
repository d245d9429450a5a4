//! Numbers in memory that are only multiplied: what a language model does with its weights for each token. They are a
//! [`Region`] that nobody stores to any more, or pages of a file; each byte is one weight of eight bits or two of four. Weights of
//! eight bits lie in blocks with a scale, as ggml's `Q8_0`, and are multiplied as ggml does: where memory is quick, that is what
//! takes the time.

use crate::region::Region;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munlock, munmap};
use std::fs::File;
use std::io;
use std::ptr::NonNull;

/// Weights that are multiplied with the same numbers again and again: a row of a model's is as long or longer.
const BLOCK: usize = 256;

/// Weights with one scale, and the bytes that they take with it (`block_q8_0` in ggml-common.h).
const SCALED: usize = 34;
/// Blocks of what they are multiplied with: a row of 2048.
const ROW: usize = 64;

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
    /// of them (34 bytes with a scale, or 256 where `packed` is 2: each byte holds two weights of four bits). What comes out means
    /// nothing, and cannot be had without reading every byte.
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
        if packed > 1 { packed_products(weights) } else { scaled_products(weights) }
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
fn packed_products(weights: &[u8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has what the function was compiled for.
        return unsafe { pairs_wide(weights) };
    }
    blocks(weights, pairs)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pairs_wide(weights: &[u8]) -> i32 {
    blocks(weights, pairs)
}

/// A row that weights with scales are multiplied with, as it lies in memory: scales and small numbers of both signs.
static SCALED_BY: [[u8; SCALED]; ROW] = {
    let mut all = [[0; SCALED]; ROW];
    let mut i = 0;
    while i < ROW * SCALED {
        all[i / SCALED][i % SCALED] = (((i * 37) % 127) as i8 - 63) as u8;
        i += 1;
    }
    all
};

/// Of a scale's bits, those in which the scales of one tensor differ: two octaves of numbers of 16 bits.
const SCALE: u16 = 0x7ff;
/// What each scale stands for: looked up, as ggml does (`ggml_table_f32_f16`). Normal numbers: others take some processors a hundred
/// times as long.
static SCALES: [f32; SCALE as usize + 1] = {
    let mut all = [1.0; SCALE as usize + 1];
    let mut at = 0;
    while at < all.len() {
        all[at] += at as f32 / 1024.0;
        at += 1;
    }
    all
};

#[inline(always)]
fn scale(block: &[u8; SCALED]) -> f32 {
    SCALES[usize::from(u16::from_le_bytes([block[0], block[1]]) & SCALE)]
}

fn scaled_products(weights: &[u8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the CPU has what the function was compiled for.
        return unsafe { scaled_wide(weights) } as i32;
    }
    scaled(weights) as i32
}

/// Eight sums side by side, each of every eighth weight of a block: compilers make wide instructions of that.
fn scaled(weights: &[u8]) -> f32 {
    let mut sums = [0.0_f32; 8];
    for (block, by) in weights.as_chunks::<SCALED>().0.iter().zip(SCALED_BY.iter().cycle()) {
        let factor = scale(block) * scale(by);
        let mut eight = [0_i32; 8];
        for (weights, by) in block[2..].as_chunks::<8>().0.iter().zip(by[2..].as_chunks::<8>().0) {
            for i in 0..8 {
                eight[i] += i32::from(i16::from(weights[i] as i8) * i16::from(by[i] as i8));
            }
        }
        for i in 0..8 {
            sums[i] += factor * eight[i] as f32;
        }
    }
    sums.iter().sum()
}

/// The same, in the instructions that ggml has for it (`ggml_vec_dot_q8_0_q8_0` for AVX2): a processor has so many reads under way at
/// once as fit between those.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn scaled_wide(weights: &[u8]) -> f32 {
    use std::arch::x86_64::*;
    // SAFETY: 32 of the block's 34 bytes.
    let numbers = |block: &[u8; SCALED]| unsafe { _mm256_loadu_si256(block.as_ptr().add(2).cast()) };
    let ones = _mm256_set1_epi16(1);
    let mut sums = _mm256_setzero_ps();
    for row in weights.as_chunks::<SCALED>().0.chunks(ROW) {
        for (block, by) in row.iter().zip(&SCALED_BY) {
            let factor = _mm256_set1_ps(scale(block) * scale(by));
            let (weights, by) = (numbers(block), numbers(by));
            let pairs = _mm256_maddubs_epi16(_mm256_sign_epi8(weights, weights), _mm256_sign_epi8(by, weights));
            sums = _mm256_fmadd_ps(factor, _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, ones)), sums);
        }
    }
    let mut lanes = [0.0_f32; 8];
    // SAFETY: eight numbers have room there.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sums) };
    lanes.iter().sum()
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
        let low = |i: usize| i32::from(bytes[i] & 15) * by(i % BLOCK);
        let high = |i: usize| i32::from(bytes[i] >> 4) * by(BLOCK + i % BLOCK);
        assert_eq!(weights.multiply(0, 2048, 2), (0..2048).map(|i| low(i) + high(i)).sum::<i32>());
        // With the narrow registers, too.
        assert_eq!(blocks(&bytes[..2048], pairs), weights.multiply(0, 2048, 2));
        let (narrow, wide) = (scaled(&bytes[..2176]), weights.multiply(0, 2176, 1));
        assert!((f64::from(narrow) - f64::from(wide)).abs() < 1e-3 * f64::from(narrow).abs() + 2.0, "{narrow} {wide}");
        let one: i32 = (2..34).map(|i| i32::from(bytes[i] as i8) * i32::from(SCALED_BY[0][i] as i8)).sum();
        let scales = scale(bytes.first_chunk().unwrap()) * scale(&SCALED_BY[0]);
        assert_eq!(weights.multiply(0, 34, 1), (one as f32 * scales) as i32);
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
