//! From a block device's place in sysfs to the chain of links between CPU and medium. Each bus has its file; here stands
//! what holds them together.

use crate::block::Disk;
use crate::model::{Hop, TierKind, Warning};
use crate::root::Root;
use basics::Known;

/// What a device's connection is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Connection {
    pub(crate) kind: TierKind,
    pub(crate) hops: Vec<Hop>,
    pub(crate) model: Known<String>,
    pub(crate) warnings: Vec<Warning>,
}

/// The connection of one disk.
pub(crate) fn connection(_root: &Root, disk: &Disk) -> Connection {
    let kind = match disk.name.as_str() {
        name if name.starts_with("zram") => TierKind::Zram,
        name if name.starts_with("nvme") => TierKind::Nvme,
        name if name.starts_with("mmcblk") => TierKind::Sd,
        name if name.starts_with("loop") => TierKind::Loop,
        name if name.starts_with("dm-") => TierKind::Dm,
        name if name.starts_with("md") => TierKind::Md,
        name if name.starts_with("vd") => TierKind::Virtio,
        _ => TierKind::Block,
    };
    Connection { kind, hops: Vec::new(), model: Known::default(), warnings: Vec::new() }
}
