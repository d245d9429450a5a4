//! What `move` takes.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What `move` takes.
#[derive(Debug, Args)]
pub struct MoveArgs {
    /// The disk or the image that the system goes to.
    #[arg(long, value_name = "DISK|FILE", required_unless_present_any = ["finish", "undo"])]
    pub to: Option<PathBuf>,
    /// The image, or the disk that nothing is mounted of, with the system; the one that runs when not given.
    #[arg(long, value_name = "FILE|DISK")]
    pub from: Option<PathBuf>,
    /// Length of an image that is to be made.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Whether the old boot partition goes on to start the system, or one on the new disk does.
    #[arg(long, value_enum, default_value_t = BootPlace::Stay)]
    pub boot: BootPlace,
    /// A partition for swap, with zswap before it; the old swap file is left behind.
    #[arg(long, value_name = "SIZE")]
    pub swap: Option<String>,
    /// The root's file system.
    #[arg(long, value_enum, default_value_t = RootFs::Ext4)]
    pub fs: RootFs,
    /// How btrfs compresses: zstd:1, lzo, zlib, …; as the article has it, zstd:1, when not given. `none`: not at all.
    #[arg(long, value_name = "HOW")]
    pub compress: Option<String>,
    /// How the partition table is written; what the firmware needs when not given: an MBR where the boot partition of a
    /// Raspberry Pi moves, else GPT.
    #[arg(long, value_enum)]
    pub table: Option<TableStyle>,
    /// Write over all of this disk or image, named once more in full.
    #[arg(long, value_name = "DISK|FILE")]
    pub destroy: Option<String>,
    /// Say what would be done, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long, short)]
    pub yes: bool,
    /// The new system stays: take away what leads back to the old one.
    #[arg(long, conflicts_with_all = ["to", "undo"])]
    pub finish: bool,
    /// Let the old system start again.
    #[arg(long, conflicts_with = "to")]
    pub undo: bool,
    /// Show the progress.
    #[arg(long, value_enum, default_value_t = crate::cli::When::Auto)]
    pub progress: crate::cli::When,
}

/// Where the system is started from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BootPlace {
    /// The old boot partition stays; one line of it changes.
    Stay,
    /// A boot partition on the new disk.
    Move,
}

/// A root's file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RootFs {
    /// ext4.
    Ext4,
    /// btrfs.
    Btrfs,
}

/// How a partition table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableStyle {
    /// UEFI's.
    Gpt,
    /// The older one.
    Mbr,
}
