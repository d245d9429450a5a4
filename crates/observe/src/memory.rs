//! How memory is taken up at one moment: RAM, swap, what zswap and zram hold and what that costs. Read now and then for whoever
//! looks on; a record has it where a workload asked for it.

use basics::Bytes;
use procfs_core::{FromRead, Meminfo};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::Path;

/// What the kernel says of memory. A figure that this kernel lacks is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// `MemTotal`.
    pub total: Option<Bytes>,
    /// `MemAvailable`: what programs can still have without swapping.
    pub available: Option<Bytes>,
    /// `Dirty` and `Writeback`: what still has to be written.
    pub dirty: Option<Bytes>,
    /// `SwapTotal`.
    pub swap_total: Option<Bytes>,
    /// `SwapTotal` less `SwapFree`.
    pub swap_used: Option<Bytes>,
    /// zswap: bytes that it holds, and the RAM that those take (`Zswapped`, `Zswap`; Linux 5.19 and later).
    pub zswap: Option<Compressed>,
    /// Each zram device that is in use.
    pub zram: Vec<(String, Compressed)>,
}

/// Bytes, and the RAM that they take compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Compressed {
    /// As their owners have them.
    pub held: Bytes,
    /// As they lie in RAM, with what managing them takes.
    pub ram: Bytes,
}

/// Memory below `root`, now.
pub fn memory(root: &Path) -> Memory {
    let mut memory = Memory { zram: zram(root), ..Memory::default() };
    let Some(told) = File::open(root.join("proc/meminfo")).ok().and_then(|file| Meminfo::from_read(file).ok()) else {
        return memory;
    };
    memory.total = Some(Bytes(told.mem_total));
    memory.available = told.mem_available.map(Bytes);
    memory.dirty = Some(Bytes(told.dirty + told.writeback));
    memory.swap_total = Some(Bytes(told.swap_total));
    memory.swap_used = Some(Bytes(told.swap_total.saturating_sub(told.swap_free)));
    memory.zswap = told.z_swapped.zip(told.z_swap).map(|(held, ram)| Compressed { held: Bytes(held), ram: Bytes(ram) });
    memory
}

/// The first and the third figure of `mm_stat`: `orig_data_size`, `mem_used_total` (Documentation/admin-guide/blockdev/zram.rst).
fn zram(root: &Path) -> Vec<(String, Compressed)> {
    let devices = fs::read_dir(root.join("sys/block")).into_iter().flatten().flatten();
    let mut found: Vec<(String, Compressed)> = devices
        .filter_map(|device| {
            let name = device.file_name().into_string().ok().filter(|name| name.starts_with("zram"))?;
            let text = fs::read_to_string(device.path().join("mm_stat")).ok()?;
            let figures: Vec<u64> = text.split_whitespace().map_while(|figure| figure.parse().ok()).collect();
            let [held, _, ram, ..] = figures[..] else { return None };
            (held > 0).then_some((name, Compressed { held: Bytes(held), ram: Bytes(ram) }))
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_below_a_root() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(memory(root.path()), Memory::default());
        write("sys/block/zram0/mm_stat", "  4096000  1000000  1048576 0 1048576 0 0 0 0\n");
        write("sys/block/zram1/mm_stat", "0 0 0 0 0 0 0 0 0\n");
        let zram = vec![("zram0".to_owned(), Compressed { held: Bytes(4_096_000), ram: Bytes(1_048_576) })];
        assert_eq!(memory(root.path()).zram, zram);
        let live = memory(Path::new("/"));
        assert!(live.total.is_some_and(|total| live.available.is_some_and(|available| available <= total)), "{live:?}");
        assert!(live.swap_used <= live.swap_total, "{live:?}");
    }
}
