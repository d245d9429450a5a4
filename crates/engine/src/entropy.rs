//! The bytes that are written, made so cheaply that they are never the limit: buffers are filled once, before the first
//! operation, and each operation only stamps every sector of its part with a number that no other sector carries. So no
//! block repeats, nothing compresses that should not, and an operation of 4 KiB costs eight stores.

use basics::job::Entropy;

/// What deduplication and compression work on, at the least.
const SECTOR: usize = 512;
/// The unit of [`Entropy::Compressible`] and [`Entropy::Deduplicable`].
const PAGE: usize = 4096;
/// 2^64 divided by the golden ratio: the increment of splitmix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Fills and stamps the buffers of one thread.
#[derive(Debug)]
pub(crate) struct Filler {
    entropy: Entropy,
    state: u64,
    stream: u64,
    /// Of tags; the same in all threads of a job.
    key: u64,
}

/// Of the tags of all jobs with this seed.
fn key(seed: u64) -> u64 {
    mixed(seed ^ GOLDEN)
}

/// Writes into each sector where it lies, and a number that only this place under this key has.
fn tag(key: u64, part: &mut [u8], offset: u64) {
    for (sector, at) in part.chunks_exact_mut(SECTOR).zip((offset..).step_by(SECTOR)) {
        sector[..8].copy_from_slice(&at.to_le_bytes());
        sector[8..16].copy_from_slice(&mixed(key ^ at).to_le_bytes());
    }
}

/// The first sector of what was read at `offset` that was not written there under this seed, and where it was written if
/// it says so.
pub(crate) fn astray(seed: u64, part: &[u8], offset: u64) -> Option<(u64, Option<u64>)> {
    let key = key(seed);
    let word =
        |sector: &[u8], at: usize| sector[at..at + 8].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    part.chunks_exact(SECTOR).zip((offset..).step_by(SECTOR)).find_map(|(sector, at)| {
        let (says, proof) = (word(sector, 0), word(sector, 8));
        let holds = (proof == mixed(key ^ says)).then_some(says);
        (holds != Some(at)).then_some((at, holds))
    })
}

/// The output step of splitmix64 (Steele, Lea & Flood, *Fast Splittable Pseudorandom Number Generators*, 2014).
#[inline]
fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Filler {
    /// Threads of one job differ by `thread`, jobs by `seed`.
    pub(crate) fn new(entropy: Entropy, seed: u64, thread: u64) -> Self {
        let stream = mixed(seed.wrapping_add(mixed(thread.wrapping_add(1).wrapping_mul(GOLDEN))));
        Filler { entropy, state: stream, stream, key: key(seed) }
    }
    #[inline]
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mixed(self.state)
    }
    fn random(&mut self, into: &mut [u8]) {
        for word in into.chunks_mut(8) {
            word.copy_from_slice(&self.next().to_le_bytes()[..word.len()]);
        }
    }
    /// Fills a whole buffer, once.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) {
        match self.entropy {
            Entropy::Zeros | Entropy::Stamps => buffer.fill(0),
            Entropy::Incompressible | Entropy::Tagged => self.random(buffer),
            Entropy::Compressible => {
                for page in buffer.chunks_mut(PAGE) {
                    let half = page.len().div_ceil(2);
                    self.random(&mut page[..half]);
                    page[half..].fill(0);
                }
            }
            Entropy::Deduplicable => {
                // The same block in all threads.
                self.state = 0;
                let mut block = [0; PAGE];
                self.random(&mut block);
                buffer.chunks_mut(PAGE).for_each(|page| page.copy_from_slice(&block[..page.len()]));
            }
        }
    }
    /// Makes the part of a filled buffer that is written at `offset` unlike everything written before.
    #[inline]
    pub(crate) fn stamp(&mut self, part: &mut [u8], offset: u64) {
        let random = match self.entropy {
            Entropy::Zeros | Entropy::Deduplicable => return,
            Entropy::Tagged => return tag(self.key, part, offset),
            Entropy::Incompressible => PAGE,
            Entropy::Compressible => PAGE / 2,
            Entropy::Stamps => SECTOR,
        };
        for page in part.chunks_mut(PAGE) {
            let half = random.min(page.len().div_ceil(PAGE / random));
            for sector in page[..half].chunks_mut(SECTOR) {
                // A counter through a bijection: no value comes twice in 2^64.
                self.stream = self.stream.wrapping_add(GOLDEN);
                let stamp = mixed(self.stream).to_le_bytes();
                let len = sector.len().min(8);
                sector[..len].copy_from_slice(&stamp[..len]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// What a thread writes in `operations` of `len` bytes when its pool has `parts` parts, in file order.
    fn written(entropy: Entropy, len: usize, parts: usize, operations: usize) -> Vec<u8> {
        let mut filler = Filler::new(entropy, 42, 0);
        let mut pool = vec![0; len * parts];
        filler.fill(&mut pool);
        let mut out = Vec::new();
        for i in 0..operations {
            let part = &mut pool[(i % parts) * len..][..len];
            filler.stamp(part, (i * len) as u64);
            out.extend_from_slice(part);
        }
        out
    }

    /// Deflated size over size, extent by extent of 128 KiB, as btrfs compresses.
    fn ratio(data: &[u8]) -> f64 {
        let packed: usize =
            data.chunks(128 << 10).map(|extent| miniz_oxide::deflate::compress_to_vec(extent, 6).len()).sum();
        packed as f64 / data.len() as f64
    }

    fn distinct_pages(data: &[u8]) -> f64 {
        data.chunks(PAGE).collect::<HashSet<_>>().len() as f64 / (data.len() / PAGE) as f64
    }

    /// Three times round a pool of 256 blocks: what was written before comes again only under new stamps.
    #[test]
    fn each_entropy_compresses_and_repeats_as_it_says() {
        let cases = [
            (Entropy::Zeros, 0.0..0.01, 0.0..0.01),
            (Entropy::Stamps, 0.0..0.02, 1.0..1.01),
            (Entropy::Compressible, 0.48..0.56, 1.0..1.01),
            (Entropy::Incompressible, 0.99..1.01, 1.0..1.01),
            (Entropy::Deduplicable, 0.0..0.1, 0.0..0.01),
        ];
        for (entropy, compressed, distinct) in cases {
            let data = written(entropy, 4096, 256, 768);
            assert!(compressed.contains(&ratio(&data)), "{entropy:?} compresses to {}", ratio(&data));
            assert!(distinct.contains(&distinct_pages(&data)), "{entropy:?}: {} distinct", distinct_pages(&data));
        }
        let block: Vec<u8> = written(Entropy::Deduplicable, 4096, 1, 1);
        assert!(ratio(&block) > 0.99, "one block alone is random");
    }

    #[test]
    fn every_sector_is_unlike_every_other() {
        let data = written(Entropy::Incompressible, 16384, 2, 100);
        assert_eq!(data.chunks(SECTOR).collect::<HashSet<_>>().len(), data.len() / SECTOR);
        let mut other = Filler::new(Entropy::Incompressible, 42, 1);
        let mut block = [0; 512];
        other.fill(&mut block);
        assert!(!data.chunks(512).any(|sector| sector == block), "threads differ");
    }

    #[test]
    fn a_tagged_sector_says_where_it_belongs() {
        let mut disk = written(Entropy::Tagged, 4096, 1, 4);
        assert_eq!(astray(42, &disk, 0), None);
        assert_eq!(astray(42, &disk, 8192), Some((8192, Some(0))), "a disk that begins again at 8 KiB");
        assert_eq!(astray(43, &disk, 0), Some((0, None)), "another run's");
        disk[4096 + 512..][..512].fill(0);
        assert_eq!(astray(42, &disk, 0), Some((4608, None)), "lost");
    }

    #[test]
    fn odd_lengths_are_filled_to_their_end() {
        let data = written(Entropy::Incompressible, 1000, 1, 1);
        assert!(data[990..].iter().any(|&b| b != 0));
        assert_eq!(written(Entropy::Compressible, 13, 1, 2).len(), 26);
    }
}
