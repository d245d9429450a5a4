//! SD cards and eMMC: the bus mode that host and card agreed on, and what the card says of itself.
//!
//! The mode stands in debugfs only (`/sys/kernel/debug/mmc0/ios`), which root alone may read. Without it the device tree still
//! tells the host's best mode, which bounds the rate from above; the hop's name then says "at most".

use super::Connection;
use super::chain::Node;
use crate::block::Disk;
use crate::ceiling::{self, CARD_BUSES, CardBus, unrated};
use crate::model::{Hop, TierKind, Warning};
use crate::root::Root;
use basics::Known;
use std::path::{Path, PathBuf};

/// Index into [`CARD_BUSES`], which is the kernel's number of the mode.
const SDR104: usize = 6;
/// UHS-II: `SPEED_A`, `SPEED_A_HD`, `SPEED_B`, `SPEED_B_HD` (kernel 6.13).
const UHS2: std::ops::RangeInclusive<usize> = 13..=16;

/// Adds the card's hop, its model and class, and what slows it down.
pub(super) fn add(root: &Root, disk: &Disk, card: &Node, host: Option<&Node>, found: &mut Connection) {
    let kind = card.word(root, "type").unwrap_or_default();
    found.kind = if kind == "MMC" { TierKind::Emmc } else { TierKind::Sd };
    found.model = model(root, card, found.kind);
    let status = card.word(root, "ssr").and_then(|text| Status::parse(&text));
    found.card = about(root, card, status.as_ref());
    let best = host.and_then(|host| host_best(root, host, found.kind));
    let ios = host.and_then(|host| Ios::read(root, host));
    let mut hop = match (&ios, &best) {
        (Some(ios), _) => ios.hop(),
        (None, Some((bus, bits))) => {
            let mut hop = ceiling::card(*bus, *bits, None);
            hop.name = format!("at most {}", hop.name);
            hop.source =
                hop.source.map(|source| format!("the host's best mode, the one in use is for root only; {source}"));
            hop
        }
        (None, None) if found.kind == TierKind::Emmc => unrated("eMMC", "emmc"),
        (None, None) => unrated("SD", "sd"),
    };
    hop.kind = if found.kind == TierKind::Emmc { "emmc" } else { "sd" }.to_owned();
    hop.detail = host.map(|host| host.name.clone());
    if let Some(ios) = &ios {
        found.warnings.extend(slow(disk, card, ios, status.as_ref(), best, &mut hop));
    }
    found.hops.push(hop);
}

/// `/sys/kernel/debug/mmcN/ios`.
struct Ios {
    path: PathBuf,
    timing: usize,
    bits: u32,
    mhz: Option<f64>,
}

impl Ios {
    /// From debugfs, or from beside the host where a tree keeps it there.
    fn read(root: &Root, host: &Node) -> Option<Ios> {
        let debugfs = Path::new("/sys/kernel/debug").join(&host.name).join("ios");
        let places = [debugfs].into_iter().chain(host.dirs.iter().map(|dir| dir.join("ios")));
        let (path, text) = places.into_iter().find_map(|path| Some((path.clone(), root.word(&path)?)))?;
        let value = |name: &str| crate::facts::field(&text, name);
        let number = |name: &str| value(name).and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
        let by_name = || {
            let timing = value("timing spec")?;
            CARD_BUSES.iter().position(|bus| bus.name.rsplit(' ').next().is_some_and(|mode| timing.ends_with(mode)))
        };
        let timing = number("timing spec").and_then(|number| usize::try_from(number).ok()).or_else(by_name)?;
        // The width is printed as its logarithm: 0, 2 and 3 for 1, 4 and 8 lines.
        let bits = number("bus width").filter(|log| *log <= 3).map_or(4, |log| 1 << log);
        let hz = number("actual clock").filter(|hz| *hz > 0).or_else(|| number("clock"));
        Some(Ios { path, timing, bits, mhz: hz.map(|hz| hz as f64 / 1e6) })
    }

    fn bus(&self) -> Option<CardBus> {
        CARD_BUSES.get(self.timing).copied()
    }

    fn hop(&self) -> Hop {
        match self.bus() {
            Some(bus) => {
                let mut hop = ceiling::card(bus, self.bits, self.mhz);
                if self.timing == 0 {
                    hop.name = "SD default speed".to_owned();
                }
                hop
            }
            None if UHS2.contains(&self.timing) => ceiling::uhs2(self.timing >= 15, self.timing.is_multiple_of(2)),
            None => unrated("SD", "sd"),
        }
    }
}

/// The best mode of the host that the device tree allows (Documentation/devicetree/bindings/mmc/mmc-controller.yaml).
fn host_best(root: &Root, host: &Node, kind: TierKind) -> Option<(CardBus, u32)> {
    let sd: [(&str, usize); 5] = [
        ("sd-uhs-sdr104", SDR104),
        ("sd-uhs-sdr50", 5),
        ("sd-uhs-ddr50", 7),
        ("sd-uhs-sdr25", 4),
        ("cap-sd-highspeed", 2),
    ];
    let emmc: [(&str, usize); 5] = [
        ("mmc-hs400-1_8v", 10),
        ("mmc-hs200-1_8v", 9),
        ("mmc-ddr-1_8v", 8),
        ("mmc-ddr-3_3v", 8),
        ("cap-mmc-highspeed", 1),
    ];
    let modes = if kind == TierKind::Emmc { emmc } else { sd };
    let node = host
        .dirs
        .iter()
        .flat_map(|dir| [dir.join("device/of_node"), dir.join("../../of_node")])
        .find(|node| root.exists(node))?;
    let (_, mode) = modes.iter().find(|(property, _)| root.exists(node.join(property)))?;
    let width =
        root.bytes(node.join("bus-width"), 4).ok().and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let bits = width.filter(|bits| matches!(bits, 1 | 4 | 8)).unwrap_or(if kind == TierKind::Emmc { 8 } else { 4 });
    Some((CARD_BUSES[*mode], bits))
}

/// What the SD Status register says (SD Physical Layer specification, table 4-44); the kernel prints its 64 bytes in hex.
#[derive(Debug, PartialEq)]
struct Status {
    class: u8,
    uhs: u8,
    video: u8,
    application: u8,
    queue: bool,
}

impl Status {
    fn parse(text: &str) -> Option<Status> {
        let byte = |at: usize| text.get(2 * at..2 * at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let class = match byte(8)? {
            0 => 0,
            1 => 2,
            2 => 4,
            3 => 6,
            4 => 10,
            _ => return None,
        };
        Some(Status {
            class,
            uhs: byte(14)? >> 4,
            video: byte(15)?,
            application: byte(21)? & 0x0f,
            // Depth less one; zero: no queue.
            queue: byte(22)? >> 3 != 0,
        })
    }
}

/// `A1, U1, V10, command queue on`.
fn about(root: &Root, card: &Node, status: Option<&Status>) -> Option<String> {
    let mut words = Vec::new();
    if let Some(status) = status {
        let mut add = |value: u8, letter: &str| {
            if value > 0 {
                words.push(format!("{letter}{value}"));
            }
        };
        add(status.application, "A");
        add(status.uhs, "U");
        add(status.video, "V");
        add(status.class, "class ");
    }
    match card.word(root, "cmdq_en").as_deref() {
        Some("1") => words.push("command queue on".to_owned()),
        Some("0") => words.push("command queue off".to_owned()),
        _ if status.is_some_and(|status| status.queue) => words.push("card offers a command queue".to_owned()),
        _ => {}
    }
    (!words.is_empty()).then(|| words.join(", "))
}

/// Maker and name of the card's identity register; makers as the cards' own registers and the kernel's quirks name them.
fn model(root: &Root, card: &Node, kind: TierKind) -> Known<String> {
    let maker = match (kind, card.word(root, "manfid").as_deref()) {
        (TierKind::Emmc, Some("0x000015")) | (_, Some("0x00001b")) => Some("Samsung"),
        (_, Some("0x000003")) | (TierKind::Emmc, Some("0x000045")) => Some("SanDisk"),
        (TierKind::Emmc, Some("0x000013" | "0x0000fe")) => Some("Micron"),
        (TierKind::Emmc, Some("0x000090")) => Some("SK Hynix"),
        (TierKind::Emmc, Some("0x000011")) | (_, Some("0x000002")) => Some("Toshiba/Kioxia"),
        (TierKind::Emmc, Some("0x000070")) | (_, Some("0x000041" | "0x00009f")) => Some("Kingston"),
        (_, Some("0x000074")) => Some("Transcend"),
        (_, Some("0x000028")) => Some("Lexar"),
        (_, Some("0x000027")) => Some("Phison"),
        _ => None,
    };
    match (maker, card.word(root, "name")) {
        (Some(maker), Some(name)) => Known::Is(format!("{maker} {name}")),
        (maker, name) => Known::or_not_reported(name.or_else(|| maker.map(str::to_owned))),
    }
}

/// The finding: a UHS card in a mode below UHS, or a host that could do more than what was agreed on.
fn slow(
    disk: &Disk,
    card: &Node,
    ios: &Ios,
    status: Option<&Status>,
    best: Option<(CardBus, u32)>,
    hop: &mut Hop,
) -> Option<Warning> {
    let now = hop.raw_mbps?;
    let of_host = best.map(|(bus, bits)| ceiling::card(bus, bits, None));
    let host_can =
        of_host.as_ref().and_then(|host| Some((host.name.clone(), host.raw_mbps?))).filter(|(_, raw)| *raw > now * 1.2);
    let uhs_card = status.filter(|status| status.uhs > 0 && now <= 25.0);
    // A host that can do more is a finding when the card can too: every eMMC, an SD card that says UHS.
    let reason = match (uhs_card, &host_can) {
        (Some(status), Some((mode, _))) => format!("the card is UHS-I (U{}) and the host can do {mode}", status.uhs),
        (Some(status), None) => format!("the card is UHS-I (U{}), the host does not offer it a UHS mode", status.uhs),
        (None, Some((mode, _))) if hop.kind == "emmc" => format!("the host can do {mode}"),
        _ => return None,
    };
    hop.could_be = Some(host_can.map_or_else(|| "SD UHS-I".to_owned(), |(mode, _)| mode));
    Some(Warning {
        id: "sd-slow-mode".to_owned(),
        text: format!("{} works in mode {}, {now} MB/s on the bus: {reason}.", disk.name, hop.name),
        evidence: format!("{}: timing spec {}; {}/ssr", ios.path.display(), ios.timing, card.path()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_register_of_a_card() {
        // Samsung EVO Plus 64 GB: class 10, U1, A1 (bytes 8, 14, 21).
        let mut bytes = [0u8; 64];
        bytes[0] = 0x80;
        bytes[8] = 4;
        bytes[14] = 0x19;
        bytes[15] = 10;
        bytes[21] = 1;
        let text: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let status = Status::parse(&text).unwrap();
        assert_eq!(status, Status { class: 10, uhs: 1, video: 10, application: 1, queue: false });
        assert_eq!(Status::parse(&text[..40]), None);
        assert_eq!(Status::parse("µµµµµµµµµµµµµµµµ"), None);
    }
}
