//! SATA: the speed of the link between controller and disk.

use super::Connection;
use super::chain::Node;
use crate::ceiling::{self, unrated};
use crate::root::Root;
use std::path::{Path, PathBuf};

/// Adds the link's hop.
pub(super) fn add(root: &Root, port: &Node, found: &mut Connection) {
    let number = port.name.trim_start_matches("ata");
    let mut links: Vec<PathBuf> = vec![Path::new("/sys/class/ata_link").join(format!("link{number}"))];
    for dir in &port.dirs {
        let below = root.names(dir).into_iter().filter(|name| name.starts_with("link"));
        links.extend(below.map(|link| dir.join(&link).join("ata_link").join(&link)));
    }
    let speed = links.iter().find_map(|link| gbps(&root.word(link.join("sata_spd"))?));
    let mut hop = speed.map_or_else(|| unrated("SATA", "sata"), ceiling::sata);
    hop.detail = Some(port.name.clone());
    found.hops.push(hop);
}

/// `6.0 Gbps`; `<unknown>` without a link.
fn gbps(text: &str) -> Option<f64> {
    let rate: f64 = text.split_whitespace().next()?.parse().ok()?;
    [1.5, 3.0, 6.0].into_iter().find(|known| (known - rate).abs() < 0.01)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_as_the_kernel_prints_them() {
        assert_eq!(gbps("6.0 Gbps"), Some(6.0));
        assert_eq!(gbps("1.5 Gbps"), Some(1.5));
        assert_eq!(gbps("<unknown>"), None);
        assert_eq!(gbps("7 Gbps"), None);
    }
}
