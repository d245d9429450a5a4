//! Numbers in memory that are only multiplied: what a language model does with its weights for each token. They are a
//! [`Region`] that nobody stores to any more, or pages of a file. They lie in blocks with a scale, as ggml's `Q8_0` or `Q4_0`, and are
//! multiplied as ggml does: where memory is quick, that is what takes the time.

use crate::region::Region;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munlock, munmap};
use std::fs::File;
use std::io;
use std::ptr::NonNull;

/// Bytes of 32 weights with their scale: of eight bits (`block_q8_0` in ggml-common.h), of four (`block_q4_0`).
const EIGHTS: usize = 34;
const FOURS: usize = 18;
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
    /// of them (34 bytes, or 18 where `packed` is 2: each byte holds two weights of four bits). What comes out means
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
        products(weights, packed > 1) as i32
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

/// A row that weights are multiplied with, as it lies in memory: scales and small numbers of both signs.
static BY: [[u8; EIGHTS]; ROW] = {
    let mut all = [[0; EIGHTS]; ROW];
    let mut i = 0;
    while i < ROW * EIGHTS {
        all[i / EIGHTS][i % EIGHTS] = (((i * 37) % 127) as i8 - 63) as u8;
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
fn scale<const LEN: usize>(block: &[u8; LEN]) -> f32 {
    SCALES[usize::from(u16::from_le_bytes([block[0], block[1]]) & SCALE)]
}

/// By the widest registers that this CPU has: the compiler's own are those of the oldest CPU that this program runs on.
#[inline]
fn products(weights: &[u8], packed: bool) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the CPU has what the functions were compiled for.
        return unsafe { if packed { wide::<FOURS>(weights) } else { wide::<EIGHTS>(weights) } };
    }
    if packed { narrow(weights, fours) } else { narrow(weights, eights) }
}

/// Eight sums side by side, each of every eighth weight of a block: compilers make wide instructions of that.
#[inline(always)]
fn narrow<const LEN: usize>(weights: &[u8], products: impl Fn(&[u8; LEN], &[u8; EIGHTS]) -> [i32; 8]) -> f32 {
    let mut sums = [0.0_f32; 8];
    for (block, by) in weights.as_chunks::<LEN>().0.iter().zip(BY.iter().cycle()) {
        let factor = scale(block) * scale(by);
        let eight = products(block, by);
        for i in 0..8 {
            sums[i] += factor * eight[i] as f32;
        }
    }
    sums.iter().sum()
}

#[inline(always)]
fn eights(block: &[u8; EIGHTS], by: &[u8; EIGHTS]) -> [i32; 8] {
    let mut sums = [0; 8];
    for (weights, by) in block[2..].as_chunks::<8>().0.iter().zip(by[2..].as_chunks::<8>().0) {
        for i in 0..8 {
            sums[i] += i32::from(i16::from(weights[i] as i8) * i16::from(by[i] as i8));
        }
    }
    sums
}

/// The first sixteen weights of a block are the lower halves of its bytes, and all are 8 too large.
#[inline(always)]
fn fours(block: &[u8; FOURS], by: &[u8; EIGHTS]) -> [i32; 8] {
    let mut sums = [0; 8];
    let (low, high) = by[2..].split_at(16);
    let by = low.as_chunks::<8>().0.iter().zip(high.as_chunks::<8>().0);
    for (weights, (low, high)) in block[2..].as_chunks::<8>().0.iter().zip(by) {
        for i in 0..8 {
            sums[i] += i32::from((i16::from(weights[i] & 15) - 8) * i16::from(low[i] as i8));
            sums[i] += i32::from((i16::from(weights[i] >> 4) - 8) * i16::from(high[i] as i8));
        }
    }
    sums
}

/// The same, in the instructions that ggml has for it (`ggml_vec_dot_q8_0_q8_0` and `ggml_vec_dot_q4_0_q8_0` for AVX2): a processor
/// has so many reads under way at once as fit between those.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn wide<const LEN: usize>(weights: &[u8]) -> f32 {
    use std::arch::x86_64::*;
    // SAFETY: 32 of the block's 34 bytes.
    let eights = |block: &[u8]| unsafe { _mm256_loadu_si256(block[2..EIGHTS].as_ptr().cast()) };
    let ones = _mm256_set1_epi16(1);
    let mut sums = _mm256_setzero_ps();
    for row in weights.as_chunks::<LEN>().0.chunks(ROW) {
        for (block, by) in row.iter().zip(&BY) {
            let factor = _mm256_set1_ps(scale(block) * scale(by));
            let weights = if LEN == FOURS {
                // SAFETY: 16 of the block's 18 bytes.
                let packed = unsafe { _mm_loadu_si128(block[2..FOURS].as_ptr().cast()) };
                let halves = _mm256_set_m128i(_mm_srli_epi16::<4>(packed), packed);
                _mm256_sub_epi8(_mm256_and_si256(halves, _mm256_set1_epi8(15)), _mm256_set1_epi8(8))
            } else {
                eights(block)
            };
            let by = eights(by);
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
        let by = |i: usize| i32::from(BY[0][2 + i] as i8);
        let scales = scale(bytes.first_chunk::<2>().unwrap()) * scale(&BY[0]);
        let one: i32 = (0..32).map(|i| i32::from(bytes[2 + i] as i8) * by(i)).sum();
        assert_eq!(weights.multiply(0, 34, 1), (one as f32 * scales) as i32);
        let four = |i: usize| i32::from(if i < 16 { bytes[2 + i] & 15 } else { bytes[i - 14] >> 4 }) - 8;
        let one: i32 = (0..32).map(|i| four(i) * by(i)).sum();
        assert_eq!(weights.multiply(0, 18, 2), (one as f32 * scales) as i32);
        // With the narrow registers, too.
        let near = |narrow: f32, wide: i32| {
            assert!(
                (f64::from(narrow) - f64::from(wide)).abs() < 1e-3 * f64::from(narrow).abs() + 2.0,
                "{narrow} {wide}"
            );
        };
        near(narrow(&bytes[..2176], eights), weights.multiply(0, 2176, 1));
        near(narrow(&bytes[..2304], fours), weights.multiply(0, 2304, 2));
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
