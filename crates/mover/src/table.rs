//! Partition tables: what is on a disk or an image, and what a target gets. GPT, or MBR where a firmware boots from that alone.

use crate::error::MoveError;
use basics::Bytes;
use basics::units::MIB;
use gptman::{GPT, GPTPartitionEntry};
use mbrman::{BOOT_ACTIVE, BOOT_INACTIVE, CHS, MBR, MBRPartitionEntry};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Partitions begin at multiples of it: what flash erases at once divides it, and tools take it for granted.
const ALIGNED: u64 = 4 * MIB;
/// Of both tables.
const SECTOR: u64 = 512;
/// Beyond it an MBR of 512-byte sectors counts no further.
const MBR_ENDS: u64 = (u32::MAX as u64) * SECTOR;

/// Lengths of a page: 16 KiB on a Raspberry Pi 5.
const PAGES: [u64; 4] = [4096, 8192, 16_384, 65_536];

/// How the table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// UEFI's.
    Gpt,
    /// The older one.
    Mbr,
}

/// What a partition of a target is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What the firmware reads: FAT.
    Boot,
    /// The system.
    Root,
    /// Swap.
    Swap,
}

/// What each partition is for, where it begins, and its length.
pub type Layout = Vec<(Role, Bytes, Bytes)>;

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    pub number: u32,
    /// Where it begins.
    pub start: Bytes,
    /// Its length.
    pub len: Bytes,
    /// As the kernel names it in `root=PARTUUID=`.
    pub partuuid: String,
}

/// What a file system or an area says that it is in its first blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// ext2, ext3, ext4.
    Ext4,
    /// btrfs.
    Btrfs,
    /// f2fs.
    F2fs,
    /// xfs.
    Xfs,
    /// FAT of any width.
    Fat,
    /// A swap area.
    Swap,
    /// Something else, or nothing.
    Unknown,
}

impl Holds {
    /// As mount(2) takes it.
    pub fn kernel_name(self) -> Option<&'static std::ffi::CStr> {
        match self {
            Holds::Ext4 => Some(c"ext4"),
            Holds::Btrfs => Some(c"btrfs"),
            Holds::F2fs => Some(c"f2fs"),
            Holds::Xfs => Some(c"xfs"),
            Holds::Fat | Holds::Swap | Holds::Unknown => None,
        }
    }
}

/// The partitions of a disk or an image, in order; empty where it has no table.
pub fn read(file: &mut File) -> Vec<Part> {
    if let Ok(gpt) = GPT::find_from(file) {
        let sector = gpt.sector_size;
        let used = gpt.iter().filter(|(_, part)| part.is_used());
        return used
            .map(|(number, part)| Part {
                number,
                start: Bytes(part.starting_lba * sector),
                len: Bytes((part.ending_lba + 1).saturating_sub(part.starting_lba) * sector),
                partuuid: guid(&part.unique_partition_guid),
            })
            .collect();
    }
    let Ok(mbr) = MBR::read_from(file, SECTOR as u32) else { return Vec::new() };
    let signature = u32::from_le_bytes(mbr.header.disk_signature);
    let used = mbr.iter().filter(|(_, part)| part.is_used());
    used.map(|(number, part)| Part {
        number: number as u32,
        start: Bytes(u64::from(part.starting_lba) * SECTOR),
        len: Bytes(u64::from(part.sectors) * SECTOR),
        partuuid: format!("{signature:08x}-{number:02x}"),
    })
    .collect()
}

/// What is there, by its magic numbers.
pub fn holds(file: &File, start: Bytes) -> Holds {
    let says = |at: u64, magic: &[u8]| {
        let mut bytes = vec![0; magic.len()];
        file.read_exact_at(&mut bytes, start.0 + at).is_ok() && bytes == magic
    };
    match () {
        () if says(0x438, &[0x53, 0xEF]) => Holds::Ext4,
        () if says(0x1_0040, b"_BHRfS_M") => Holds::Btrfs,
        () if says(0x400, &0xF2F5_2010_u32.to_le_bytes()) => Holds::F2fs,
        () if says(0, b"XFSB") => Holds::Xfs,
        () if says(0x52, b"FAT32   ") || says(0x36, b"FAT1") || says(0x36, b"FAT ") => Holds::Fat,
        // At the end of the first page, whose length is that of the kernel that made it.
        () if PAGES.iter().any(|page| says(page - 10, b"SWAPSPACE2")) => Holds::Swap,
        () => Holds::Unknown,
    }
}

/// Where each partition goes: the boot partition first, swap last, the system between.
///
/// # Errors
/// [`MoveError::Usage`] where it does not fit.
pub fn layout(size: Bytes, style: Style, boot: Option<Bytes>, swap: Option<Bytes>) -> Result<Layout, MoveError> {
    let up = |bytes: u64| bytes.div_ceil(ALIGNED) * ALIGNED;
    // The second table of a GPT lies at the end.
    let end = size.0.saturating_sub(ALIGNED) / ALIGNED * ALIGNED;
    if style == Style::Mbr && end > MBR_ENDS {
        return Err(MoveError::Usage(format!("{size} are beyond what an MBR counts (2 TiB)")));
    }
    let boot = boot.map(|len| (Role::Boot, Bytes(ALIGNED), Bytes(up(len.0))));
    let from = boot.map_or(ALIGNED, |(_, start, len)| start.0 + len.0);
    let swap = swap.map(|len| Bytes(up(len.0)));
    let to = end.saturating_sub(swap.map_or(0, |len| len.0));
    if to < from + ALIGNED {
        return Err(MoveError::Usage(format!("{size} are too small for it")));
    }
    let root = Some((Role::Root, Bytes(from), Bytes(to - from)));
    let swap = swap.map(|len| (Role::Swap, Bytes(to), len));
    Ok([boot, root, swap].into_iter().flatten().collect())
}

/// Writes a new table, all that was there before forgotten.
///
/// # Errors
/// The kernel's.
pub fn write(
    file: &mut File,
    path: &Path,
    style: Style,
    layout: &[(Role, Bytes, Bytes)],
) -> Result<Vec<Part>, MoveError> {
    let fail = |error: &dyn std::fmt::Display| MoveError::Io {
        action: "write the partition table of",
        path: path.to_owned(),
        source: io::Error::other(error.to_string()),
    };
    let lba = |bytes: Bytes| bytes.0 / SECTOR;
    match style {
        Style::Gpt => {
            let mut gpt = GPT::new_from(file, SECTOR, random()?).map_err(|error| fail(&error))?;
            for (index, (role, start, len)) in (1..).zip(layout) {
                gpt[index] = GPTPartitionEntry {
                    partition_type_guid: role.guid(),
                    unique_partition_guid: random()?,
                    starting_lba: lba(*start),
                    ending_lba: lba(Bytes(start.0 + len.0)) - 1,
                    attribute_bits: 0,
                    partition_name: role.name().into(),
                };
            }
            GPT::write_protective_mbr_into(file, SECTOR).map_err(|error| fail(&error))?;
            gpt.write_into(file).map_err(|error| fail(&error))?;
        }
        Style::Mbr => {
            // A GPT that was there would be found before it.
            for at in [SECTOR, file.seek(SeekFrom::End(0)).map_err(|error| fail(&error))?.saturating_sub(SECTOR)] {
                file.write_all_at(&[0; SECTOR as usize], at).map_err(|error| fail(&error))?;
            }
            let signature: [u8; 4] = random::<4>()?;
            let mut mbr = MBR::new_from(file, SECTOR as u32, signature).map_err(|error| fail(&error))?;
            for (index, (role, start, len)) in (1..).zip(layout) {
                mbr[index] = MBRPartitionEntry {
                    boot: if *role == Role::Boot { BOOT_ACTIVE } else { BOOT_INACTIVE },
                    first_chs: CHS::empty(),
                    sys: role.byte(),
                    last_chs: CHS::empty(),
                    starting_lba: lba(*start) as u32,
                    sectors: lba(*len) as u32,
                };
            }
            mbr.write_into(file).map_err(|error| fail(&error))?;
        }
    }
    file.sync_all().map_err(|error| fail(&error))?;
    Ok(read(file))
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Boot => "boot",
            Role::Root => "root",
            Role::Swap => "swap",
        }
    }

    /// The partition type's GUID as it is stored: EFI system, Linux file system data, Linux swap (UEFI 2.10, and the Discoverable
    /// Partitions Specification).
    fn guid(self) -> [u8; 16] {
        let text = match self {
            Role::Boot => "c12a7328-f81f-11d2-ba4b-00a0c93ec93b",
            Role::Root => "0fc63daf-8483-4772-8e79-3d69d8477de4",
            Role::Swap => "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f",
        };
        stored(text)
    }

    /// The type in an MBR: FAT32 with LBA, Linux, Linux swap.
    fn byte(self) -> u8 {
        match self {
            Role::Boot => 0x0c,
            Role::Root => 0x83,
            Role::Swap => 0x82,
        }
    }
}

/// A GUID as it is written; its first three groups are stored with the lowest byte first.
fn guid(bytes: &[u8; 16]) -> String {
    let b = bytes;
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].map(|at| b[at]);
    hyphenated(&order)
}

fn stored(text: &str) -> [u8; 16] {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap_or(0);
    [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].map(byte)
}

fn hyphenated(b: &[u8; 16]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    [&b[..4], &b[4..6], &b[6..8], &b[8..10], &b[10..]].map(hex).join("-")
}

/// A UUID of random bits (RFC 9562, version 4).
///
/// # Errors
/// The kernel's.
pub fn uuid() -> Result<String, MoveError> {
    let mut bytes: [u8; 16] = random()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(hyphenated(&bytes))
}

fn random<const N: usize>() -> Result<[u8; N], MoveError> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0; N];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(MoveError::io("read", path))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(1 << 30).unwrap();
        assert_eq!(read(&mut file), []);
        for style in [Style::Gpt, Style::Mbr, Style::Gpt] {
            let layout = layout(Bytes(1 << 30), style, Some(Bytes(100 << 20)), Some(Bytes(64 << 20))).unwrap();
            let parts = write(&mut file, &path, style, &layout).unwrap();
            assert_eq!(parts.len(), 3);
            for (part, (_, start, len)) in parts.iter().zip(&layout) {
                assert_eq!((part.start, part.len), (*start, *len));
                assert_eq!(start.0 % ALIGNED, 0);
            }
            let lengths = if style == Style::Gpt { 36 } else { 11 };
            assert!(parts.iter().all(|part| part.partuuid.len() == lengths), "{parts:?}");
            // The kernel's own reader, by sfdisk's.
            if let Ok(said) = std::process::Command::new("sfdisk").arg("--json").arg(&path).output() {
                let said = String::from_utf8_lossy(&said.stdout).to_lowercase();
                let label = if style == Style::Gpt { "gpt" } else { "dos" };
                assert!(
                    said.contains(&format!("\"label\": \"{label}\"")) && said.matches("\"start\"").count() == 3,
                    "{said}"
                );
                assert!(style == Style::Mbr || said.contains(&parts[1].partuuid), "{said}");
            }
        }
        assert!(layout(Bytes(64 << 20), Style::Gpt, None, Some(Bytes(64 << 20))).is_err());
        assert_eq!(guid(&stored("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")), "c12a7328-f81f-11d2-ba4b-00a0c93ec93b");
        assert_eq!(uuid().unwrap().len(), 36);
    }

    #[test]
    fn swap_is_known_by_pages_of_any_length() {
        for page in PAGES {
            let file = tempfile::tempfile().unwrap();
            file.set_len(1 << 20).unwrap();
            assert_eq!(holds(&file, Bytes(0)), Holds::Unknown);
            file.write_all_at(b"SWAPSPACE2", page - 10).unwrap();
            assert_eq!(holds(&file, Bytes(0)), Holds::Swap);
        }
    }
}
