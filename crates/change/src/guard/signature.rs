//! What a block device holds, by the magic numbers that file systems, containers and partition tables put there. It has to
//! say that something of value may be there, and what people call it. Offsets and bytes are those of the kernel's
//! headers (`linux/magic.h` and each file system's own), of the UEFI specification (GPT) and of libblkid's superblocks.

use rustix::fs::{SeekFrom, seek};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What was found, at least one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content(Vec<&'static str>);

impl fmt::Display for Content {
    /// With articles: `an iso9660 file system and an MBR partition table`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" and "))
    }
}

/// Offset, bytes there, what they mean.
type Magic = (u64, &'static [u8], &'static str);

const LUKS: &str = "a LUKS encrypted volume";
const LVM: &str = "an LVM physical volume";
const MD: &str = "a RAID member (md)";
const VFAT: &str = "a vfat file system";
const HFS: &str = "an hfsplus file system";
const SWAP: &str = "a swap area";
const HIBERNATED: &str = "a hibernated system";
const GPT: &str = "a GUID partition table";

const MAGICS: [Magic; 28] = [
    (0, b"LUKS\xba\xbe", LUKS),
    (0x4000, b"SKUL\xba\xbe", LUKS),
    (24, b"LVM2 001", LVM),
    (512 + 24, b"LVM2 001", LVM),
    (1024 + 24, b"LVM2 001", LVM),
    (1536 + 24, b"LVM2 001", LVM),
    (0, b"\xfc\x4e\x2b\xa9", MD),
    (4096, b"\xfc\x4e\x2b\xa9", MD),
    (4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", "a bcache"),
    (4096 + 24, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", "a bcachefs file system"),
    (3, b"-FVE-FS-", "a BitLocker volume"),
    (0x1_0040, b"_BHRfS_M", "a btrfs file system"),
    (0, b"XFSB", "an xfs file system"),
    (1024, b"\x10\x20\xf5\xf2", "an f2fs file system"),
    (3, b"EXFAT   ", "an exfat file system"),
    (3, b"NTFS    ", "an ntfs file system"),
    (0x52, b"FAT32   ", VFAT),
    (0x36, b"FAT16   ", VFAT),
    (0x36, b"FAT12   ", VFAT),
    (32769, b"CD001", "an iso9660 file system"),
    (32769, b"NSR0", "a udf file system"),
    (0, b"hsqs", "a squashfs file system"),
    (1024, b"\xe2\xe1\xf5\xe0", "an erofs file system"),
    (1024, b"H+\x00\x04", HFS),
    (1024, b"HX\x00\x05", HFS),
    (32, b"NXSB", "an apfs file system"),
    (0x1_0034, b"ReIsEr", "a reiserfs file system"),
    (32768, b"JFS1", "a jfs file system"),
];

/// What a swap area's mark may be: made by `mkswap` now or long ago, or holding a hibernated system, of which the kernel
/// (kernel/power/swap.c), uswsusp and TuxOnIce each have a mark.
const SWAP_MARKS: [(&[u8], &str); 6] = [
    (b"SWAPSPACE2", SWAP),
    (b"SWAP-SPACE", SWAP),
    (b"S1SUSPEND", HIBERNATED),
    (b"S2SUSPEND", HIBERNATED),
    (b"ULSUSPEND", HIBERNATED),
    (b"LINHIB0001", HIBERNATED),
];
/// Page sizes for which `mkswap` may have made an area: its mark is the end of the first page.
const SWAP_PAGES: [u64; 5] = [4096, 8192, 16384, 32768, 65536];
/// Sector sizes that devices have.
const SECTORS: [u64; 2] = [512, 4096];
/// All the beginnings above lie within this many bytes; so do the first of the two ZFS labels at the front (its
/// uberblocks fill its second half).
const FRONT: u64 = 256 << 10;
/// Where the superblocks of md 0.90 and 1.0 and the second GUID table lie, counted from the end.
const BACK: u64 = 128 << 10;

/// What the device holds, if anything known.
///
/// # Errors
/// When it cannot be read.
pub fn find(device: &File) -> io::Result<Option<Content>> {
    let size = seek(device, SeekFrom::End(0))?;
    let mut found: Vec<&'static str> = front(&read(device, 0, FRONT.min(size))?);
    let start = size.saturating_sub(BACK) & !0xFFFF;
    found.extend(back(&read(device, start, size - start)?, size, start));
    found.dedup();
    Ok((!found.is_empty()).then_some(Content(found)))
}

fn read(device: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    device.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// What the first bytes of a device say.
fn front(bytes: &[u8]) -> Vec<&'static str> {
    let mut found: Vec<&str> =
        MAGICS.iter().filter(|(offset, magic, _)| stands(bytes, *offset, magic)).map(|(_, _, what)| *what).collect();
    found.extend(ext(bytes));
    let swap = |mark: &[u8]| SWAP_PAGES.iter().any(|page| stands(bytes, page - 10, mark));
    found.extend(SWAP_MARKS.iter().filter(|(mark, _)| swap(mark)).map(|(_, what)| *what));
    let uberblock = |offset: u64| {
        stands(bytes, offset, b"\x0c\xb1\xba\0\0\0\0\0") || stands(bytes, offset, b"\0\0\0\0\0\xba\xb1\x0c")
    };
    if (128..256).any(|kib| uberblock(kib << 10)) {
        found.push("a zfs member");
    }
    if SECTORS.iter().any(|sector| stands(bytes, *sector, b"EFI PART")) {
        found.push(GPT);
    } else if found.is_empty() && mbr(bytes) {
        found.push("an MBR partition table");
    }
    found
}

/// What the last bytes of a device of `size` say; they begin at `start`.
fn back(bytes: &[u8], size: u64, start: u64) -> Vec<&'static str> {
    let at = |offset: Option<u64>| offset.and_then(|offset| offset.checked_sub(start));
    let mut found = Vec::new();
    // md 0.90: the last 64 KiB but one, aligned; 1.0: 8 KiB from the end, aligned to 4 KiB.
    let md_0 = at((size & !0xFFFF).checked_sub(0x1_0000));
    let md_1 = at(size.checked_sub(8192).map(|offset| offset & !0xFFF));
    if [md_0, md_1].into_iter().flatten().any(|offset| stands(bytes, offset, b"\xfc\x4e\x2b\xa9")) {
        found.push(MD);
    }
    if SECTORS.iter().any(|sector| at(size.checked_sub(*sector)).is_some_and(|at| stands(bytes, at, b"EFI PART"))) {
        found.push(GPT);
    }
    found
}

fn stands(bytes: &[u8], offset: u64, magic: &[u8]) -> bool {
    bytes.get(offset as usize..).is_some_and(|rest| rest.starts_with(magic))
}

/// The three generations share one magic number and differ in their features (fs/ext4/ext4.h).
fn ext(bytes: &[u8]) -> Option<&'static str> {
    const SUPERBLOCK: u64 = 1024;
    const HAS_JOURNAL: u32 = 0x4;
    /// Incompatible features that ext3 has: filetype, recover, journal device, meta_bg.
    const EXT3_INCOMPATIBLE: u32 = 0x2 | 0x4 | 0x8 | 0x10;
    if !stands(bytes, SUPERBLOCK + 56, b"\x53\xef") {
        return None;
    }
    let word = |at: u64| {
        let at = (SUPERBLOCK + at) as usize;
        bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes)
    };
    Some(if word(96) & !EXT3_INCOMPATIBLE != 0 {
        "an ext4 file system"
    } else if word(92) & HAS_JOURNAL != 0 {
        "an ext3 file system"
    } else {
        "an ext2 file system"
    })
}

/// A boot mark, four entries that may be entries, and one that is used. A FAT boot sector bears the mark too, with code
/// where the entries would be.
fn mbr(bytes: &[u8]) -> bool {
    let Some(entries) = bytes.get(446..510) else { return false };
    stands(bytes, 510, b"\x55\xaa")
        && entries.chunks(16).all(|entry| entry[0] & 0x7F == 0)
        && entries.chunks(16).any(|entry| entry[4] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn held(pieces: &[(u64, &[u8])], size: u64) -> Option<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        for (offset, bytes) in pieces {
            file.write_all_at(bytes, *offset).unwrap();
        }
        file.flush().unwrap();
        find(&file).unwrap().map(|content| content.to_string())
    }

    #[test]
    fn each_magic_is_found_and_nothing_is_found_in_nothing() {
        for (offset, bytes, what) in MAGICS {
            assert_eq!(held(&[(offset, bytes)], 1 << 20).as_deref(), Some(what));
        }
        for size in [0, 1, 511, 512, 4095, 65536, 1 << 20] {
            assert_eq!(held(&[], size), None, "{size}");
        }
    }

    #[test]
    fn swap_of_a_kernel_with_large_pages() {
        assert_eq!(held(&[(16384 - 10, b"SWAPSPACE2")], 1 << 20).as_deref(), Some(SWAP));
        assert_eq!(held(&[(4096 - 10, b"S1SUSPEND\0")], 1 << 20).as_deref(), Some(HIBERNATED));
    }

    #[test]
    fn partition_tables() {
        let entry = [&[0x80, 0, 0, 0, 0x83][..], &[0; 11], &[0; 48], b"\x55\xaa"].concat();
        assert_eq!(held(&[(446, &entry)], 1 << 20).as_deref(), Some("an MBR partition table"));
        assert_eq!(held(&[(512, b"EFI PART"), (446, &entry)], 1 << 20).as_deref(), Some(GPT));
        assert_eq!(held(&[((1 << 20) - 512, b"EFI PART")], 1 << 20).as_deref(), Some(GPT), "the second, alone");
        assert_eq!(held(&[(510, b"\x55\xaa")], 1 << 20), None, "a boot mark alone is no table");
    }

    #[test]
    fn raid_superblocks_at_the_end() {
        let size = (1 << 20) + 12345 * 512;
        let md = b"\xfc\x4e\x2b\xa9";
        assert_eq!(held(&[((size & !0xFFFF) - 0x1_0000, md)], size).as_deref(), Some(MD));
        assert_eq!(held(&[((size - 8192) & !0xFFF, md)], size).as_deref(), Some(MD));
    }
}
