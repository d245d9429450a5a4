//! The desktop article's checks, put together from the runs that made them and from what stands.

use basics::{Bytes, Known};
use record::Record;
use std::path::PathBuf;

/// All of them.
#[derive(Debug, Clone)]
pub struct DesktopCheck {
    /// Where was measured.
    pub dir: PathBuf,
    /// iozone's matrix.
    pub iozone: Record,
    /// The one from before.
    pub before: Option<Record>,
    /// Zeros, and what is none.
    pub zeros: Record,
    /// The compilation.
    pub build: Record,
    /// What files take by type of compression.
    pub files: Known<quoted::Compsize>,
    /// zswap.
    pub zswap: Known<Zswapped>,
}

/// zswap as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zswapped {
    /// With what.
    pub compressor: String,
    /// The share of RAM that it may take.
    pub max_pool_percent: Option<u8>,
    /// What it takes.
    pub pool: Option<Bytes>,
    /// What is in it.
    pub stored: Option<Bytes>,
}

impl Zswapped {
    /// How many times smaller pages are in it; none while it is empty.
    pub fn ratio(&self) -> Option<f64> {
        let pool = self.pool.filter(|pool| pool.0 > 0)?;
        Some(self.stored?.0 as f64 / pool.0 as f64)
    }
}
