//! The most that a link lets through: signalling rate → bytes → after the line code → after the protocol. Every practical
//! range names where it comes from; where nobody has published one, there is none. Rates are in MB/s of 10^6 bytes.
//!
//! The two rows that an article computes are kept as it has them: USB 3 at 5 Gbit/s 625 → 500 → 430–450 MB/s and 20 µs,
//! PCIe Gen2 x1 500 → 400–430 MB/s and 1.5 µs ("Playing with an Intel Optane on a Raspberry Pi 5"). The other rows
//! follow from them or from the protocol's own framing by the formulas below, rounded to two significant digits, for no
//! practical ceiling is known better than that.

use crate::model::{Ceiling, Hop};

/// The article whose bus mathematics this module repeats.
const OPTANE_ARTICLE: &str = "\"Playing with an Intel Optane on a Raspberry Pi 5\"";

/// How a link turns bytes into symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineCode {
    /// Ten bits for eight (PCIe Gen1–2, USB 5 Gbit/s, SATA, UHS-II).
    Bits8Of10,
    /// PCIe Gen3–5.
    Bits128Of130,
    /// USB 10 and 20 Gbit/s.
    Bits128Of132,
    /// PCIe Gen6: flits of 256 bytes with 6 bytes of parity, 8 of check sum and 6 of link layer.
    Flit236Of256,
    /// Bytes as they are (SD, eMMC), or bit stuffing only (USB 1 and 2).
    None,
}

impl LineCode {
    fn name(self) -> &'static str {
        match self {
            LineCode::Bits8Of10 => "8b/10b",
            LineCode::Bits128Of130 => "128b/130b",
            LineCode::Bits128Of132 => "128b/132b",
            LineCode::Flit236Of256 => "236B/256B flit",
            LineCode::None => "none",
        }
    }

    /// Rate that is left of `raw`.
    fn applied(self, raw: f64) -> f64 {
        match self {
            LineCode::Bits8Of10 => raw * 8.0 / 10.0,
            LineCode::Bits128Of130 => raw * 128.0 / 130.0,
            LineCode::Bits128Of132 => raw * 128.0 / 132.0,
            LineCode::Flit236Of256 => raw * 236.0 / 256.0,
            LineCode::None => raw,
        }
    }
}

/// A link with its rates and no protocol figure yet.
fn link(name: String, kind: &str, signal_gbps: f64, code: LineCode) -> Hop {
    let raw = signal_gbps * 1000.0 / 8.0;
    Hop {
        name,
        kind: kind.to_owned(),
        signal_gbps: Some(signal_gbps),
        encoding: Some(code.name().to_owned()),
        raw_mbps: Some(raw),
        encoded_mbps: Some(code.applied(raw)),
        ..Hop::default()
    }
}

/// A link that has no rate of its own: software, or hardware that does not say.
pub(crate) fn unrated(name: impl Into<String>, kind: &str) -> Hop {
    Hop { name: name.into(), kind: kind.to_owned(), ..Hop::default() }
}

/// To two significant digits.
fn two_digits(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let step = 10f64.powf(value.log10().floor() - 1.0);
    // The division by a power of ten below one is inexact; what is printed should not be.
    ((value / step).round() * step * 1e6).round() / 1e6
}

/// A share of the encoded rate as the practical range.
fn practical(hop: &mut Hop, low: f64, high: f64, source: String) {
    if let Some(encoded) = hop.encoded_mbps {
        hop.practical_mbps = Some((two_digits(encoded * low), two_digits(encoded * high)));
        hop.source = Some(source);
    }
}

/// A PCIe link's generation, from its rate in GT/s as sysfs prints it (`5.0 GT/s PCIe`, `8 GT/s`).
pub(crate) fn pcie_generation(speed: &str) -> Option<u32> {
    let rate: f64 = speed.split_whitespace().next()?.parse().ok()?;
    [(2.5, 1), (5.0, 2), (8.0, 3), (16.0, 4), (32.0, 5), (64.0, 6)]
        .into_iter()
        .find_map(|(of, generation)| ((rate - of).abs() < 0.1).then_some(generation))
}

/// The payload that every PCIe device supports, in bytes (PCI Express Base Specification, Device Control Register).
const PCIE_LEAST_PAYLOAD: u32 = 128;
/// µs to cross PCIe once, as the article gives it.
const PCIE_TRANSIT_US: f64 = 1.5;

/// A PCIe link of `generation` 1…6 with `lanes`; `payload` is the negotiated maximum in bytes, when it could be read.
///
/// A packet of `p` bytes carries 20 to 24 bytes of framing, sequence number, header (3 or 4 double words) and CRC, and
/// acknowledgements and flow control take up to 5 % more: `p/(p+24) × 0.95` to `p/(p+20)` of the encoded rate. With
/// the 128 bytes that every device supports this is 0.80 to 0.86, the article's 400–430 of 500 MB/s. Where the payload
/// could not be read, the range of Gen3 and later ends at 256 bytes, which most of them negotiate.
pub fn pcie(generation: u32, lanes: u32, payload: Option<u32>) -> Hop {
    let (gigatransfers, code) = match generation {
        1 => (2.5, LineCode::Bits8Of10),
        2 => (5.0, LineCode::Bits8Of10),
        3 => (8.0, LineCode::Bits128Of130),
        4 => (16.0, LineCode::Bits128Of130),
        5 => (32.0, LineCode::Bits128Of130),
        _ => (64.0, LineCode::Flit236Of256),
    };
    let mut hop = link(pcie_name(generation, lanes), "pcie", gigatransfers * f64::from(lanes), code);
    let (least, most, payload) = match payload {
        Some(read) => (read, read, format!("{read}-byte payload as negotiated")),
        None if generation < 3 => (PCIE_LEAST_PAYLOAD, PCIE_LEAST_PAYLOAD, "128-byte payload assumed".to_owned()),
        None => (PCIE_LEAST_PAYLOAD, 256, "payload of 128 to 256 bytes assumed".to_owned()),
    };
    let (least, most) = (f64::from(least), f64::from(most));
    let source = format!("PCIe framing, {payload}; 400–430 MB/s and 1.5 µs on Gen2 x1: {OPTANE_ARTICLE}");
    practical(&mut hop, least / (least + 24.0) * 0.95, most / (most + 20.0), source);
    hop.transit_us = Some(PCIE_TRANSIT_US);
    hop
}

/// `PCIe Gen2 x1`.
pub(crate) fn pcie_name(generation: u32, lanes: u32) -> String {
    format!("PCIe Gen{generation} x{lanes}")
}

/// A USB link at `mbit` Mbit/s as sysfs's `speed` says; `lanes` tells 2 × 5 from 1 × 10 Gbit/s. None for a rate that USB
/// does not have.
pub fn usb(mbit: f64, lanes: u32) -> Option<Hop> {
    let name = usb_name(mbit)?;
    let code = match (mbit as u32, lanes) {
        (5000, _) | (10000, 2) => LineCode::Bits8Of10,
        (10000.., _) => LineCode::Bits128Of132,
        _ => LineCode::None,
    };
    let mut hop = link(name, "usb", mbit / 1000.0, code);
    match mbit as u32 {
        5000 => {
            hop.practical_mbps = Some((430.0, 450.0));
            hop.transit_us = Some(20.0);
            hop.source = Some(OPTANE_ARTICLE.to_owned());
        }
        10000.. => {
            let source = format!("the share of USB 3 5 Gbit/s, 430–450 of 500 MB/s: {OPTANE_ARTICLE}");
            practical(&mut hop, 430.0 / 500.0, 450.0 / 500.0, source);
        }
        480 => {
            hop.practical_mbps = Some((30.0, 40.0));
            hop.source = Some(
                "30 MB/s measured and 40 usable: \"Project Pi3Desk\"; 34.8 measured: \"Raspberry PI Storage Performance: Part 1\""
                    .to_owned(),
            );
        }
        12 => {
            // 19 packets of 64 bytes fit a frame of 1 ms when nothing else is on the bus (USB 2.0, table 5-9).
            hop.practical_mbps = Some((1.0, 1.2));
            hop.source = Some(
                "at most 19 bulk packets of 64 bytes a frame of 1 ms: USB 2.0 specification, table 5-9".to_owned(),
            );
        }
        _ => {}
    }
    Some(hop)
}

/// `USB 3 5 Gbit/s`.
pub(crate) fn usb_name(mbit: f64) -> Option<String> {
    let name = match mbit as u32 {
        1 if mbit > 1.4 => "USB 1 1.5 Mbit/s",
        12 => "USB 1 12 Mbit/s",
        480 => "USB 2 480 Mbit/s",
        5000 => "USB 3 5 Gbit/s",
        10000 => "USB 3.2 10 Gbit/s",
        20000 => "USB 3.2 20 Gbit/s",
        40000 => "USB4 40 Gbit/s",
        _ => return None,
    };
    Some(name.to_owned())
}

/// The USB link of this name, as in [`Hop::could_be`]; on one lane.
pub fn usb_named(name: &str) -> Option<Hop> {
    let rates = [1.5, 12.0, 480.0, 5000.0, 10_000.0, 20_000.0, 40_000.0];
    rates.into_iter().find(|mbit| usb_name(*mbit).as_deref() == Some(name)).and_then(|mbit| usb(mbit, 1))
}

/// A SATA link of 1.5, 3 or 6 Gbit/s.
pub(crate) fn sata(gbps: f64) -> Hop {
    let mut hop = link(format!("SATA {gbps} Gbit/s"), "sata", gbps, LineCode::Bits8Of10);
    let source = "550–560 of 600 MB/s, the sequential reads that 6 Gbit/s SSDs are specified with".to_owned();
    practical(&mut hop, 550.0 / 600.0, 560.0 / 600.0, source);
    hop
}

/// An SD or eMMC bus mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CardBus {
    /// `SD SDR104`, `eMMC HS400`.
    pub(crate) name: &'static str,
    /// Clock at which the mode is defined, in MHz.
    pub(crate) mhz: f64,
    /// Two transfers a clock.
    pub(crate) double: bool,
}

/// Modes by the number that the kernel gives them (`MMC_TIMING_*` in include/linux/mmc/host.h), with nominal clocks of the SD
/// Physical Layer and JESD84-B51.
pub(crate) const CARD_BUSES: [CardBus; 11] = [
    CardBus { name: "default speed", mhz: 25.0, double: false },
    CardBus { name: "eMMC HS", mhz: 52.0, double: false },
    CardBus { name: "SD HS", mhz: 50.0, double: false },
    CardBus { name: "SD SDR12", mhz: 25.0, double: false },
    CardBus { name: "SD SDR25", mhz: 50.0, double: false },
    CardBus { name: "SD SDR50", mhz: 100.0, double: false },
    CardBus { name: "SD SDR104", mhz: 208.0, double: false },
    CardBus { name: "SD DDR50", mhz: 50.0, double: true },
    CardBus { name: "eMMC DDR52", mhz: 52.0, double: true },
    CardBus { name: "eMMC HS200", mhz: 200.0, double: false },
    CardBus { name: "eMMC HS400", mhz: 200.0, double: true },
];

/// What is left of a card bus after commands, CRC and gaps: 0.88 to 0.95.
const CARD_SHARE: (f64, f64) = (0.88, 0.95);
const CARD_SOURCE: &str = "92.4 MB/s of 104 on SDR104: \"Playing with an Intel Optane on a Raspberry Pi 5\"; 23.5 of 25 on HS: \"Project Pi3Desk\"";

/// A card bus with `bits` data lines; the real clock in MHz counts when it is known and below the mode's own.
pub(crate) fn card(bus: CardBus, bits: u32, mhz: Option<f64>) -> Hop {
    let clock = mhz.filter(|mhz| *mhz > 0.0).map_or(bus.mhz, |mhz| mhz.min(bus.mhz));
    let transfers = if bus.double { 2.0 } else { 1.0 };
    let kind = if bus.name.starts_with("eMMC") { "emmc" } else { "sd" };
    let mut hop = link(bus.name.to_owned(), kind, clock * transfers * f64::from(bits) / 1000.0, LineCode::None);
    practical(&mut hop, CARD_SHARE.0, CARD_SHARE.1, CARD_SOURCE.to_owned());
    hop
}

/// UHS-II in speed range A or B, lanes of up to 0.78 or 1.56 Gbit/s: one for each direction, or at half duplex both for one
/// (SD UHS-II Addendum: FD156 and HD312 are range B).
pub(crate) fn uhs2(range_b: bool, half_duplex: bool) -> Hop {
    let (name, gbps) = match (range_b, half_duplex) {
        (false, false) => ("SD UHS-II FD78", 0.78),
        (false, true) => ("SD UHS-II HD156", 1.56),
        (true, false) => ("SD UHS-II FD156", 1.56),
        (true, true) => ("SD UHS-II HD312", 3.12),
    };
    let mut hop = link(name.to_owned(), "sd", gbps, LineCode::Bits8Of10);
    practical(&mut hop, CARD_SHARE.0, CARD_SHARE.1, CARD_SOURCE.to_owned());
    hop
}

/// The lowest hop of a chain by its practical range, of equal ones the one next to the medium.
pub(crate) fn lowest(hops: &[Hop]) -> Option<Ceiling> {
    let rated = hops.iter().filter_map(|hop| Some((hop, hop.practical_mbps?, hop.encoded_mbps?)));
    let least = rated.rev().min_by(|a, b| a.1.1.total_cmp(&b.1.1).then(a.1.0.total_cmp(&b.1.0)))?;
    Some(Ceiling { encoded_mbps: least.2, practical_mbps: least.1, hop: least.0.name.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(hop: &Hop) -> (f64, f64, (f64, f64)) {
        (hop.raw_mbps.unwrap(), hop.encoded_mbps.unwrap(), hop.practical_mbps.unwrap())
    }

    #[test]
    fn the_articles_bus_mathematics() {
        let usb3 = usb(5000.0, 1).unwrap();
        assert_eq!(figures(&usb3), (625.0, 500.0, (430.0, 450.0)));
        assert_eq!((usb3.name.as_str(), usb3.transit_us), ("USB 3 5 Gbit/s", Some(20.0)));
        let gen2 = pcie(2, 1, None);
        assert_eq!(figures(&gen2), (625.0, 500.0, (400.0, 430.0)));
        assert_eq!((gen2.name.as_str(), gen2.transit_us), ("PCIe Gen2 x1", Some(1.5)));
    }

    #[test]
    fn pcie_by_generation_lanes_and_payload() {
        let rounded = |hop: Hop| {
            let (raw, encoded, practical) = figures(&hop);
            (raw.round(), encoded.round(), practical)
        };
        assert_eq!(rounded(pcie(1, 1, None)), (313.0, 250.0, (200.0, 220.0)));
        assert_eq!(rounded(pcie(3, 1, None)), (1000.0, 985.0, (790.0, 910.0)));
        assert_eq!(rounded(pcie(3, 1, Some(128))), (1000.0, 985.0, (790.0, 850.0)));
        assert_eq!(rounded(pcie(3, 1, Some(256))), (1000.0, 985.0, (860.0, 910.0)));
        assert_eq!(rounded(pcie(4, 4, Some(256))), (8000.0, 7877.0, (6800.0, 7300.0)));
        assert_eq!(rounded(pcie(5, 4, Some(512))), (16000.0, 15754.0, (14000.0, 15000.0)));
        for (text, generation) in [("2.5 GT/s PCIe", 1), ("5 GT/s", 2), ("8.0 GT/s PCIe", 3), ("64.0 GT/s PCIe", 6)] {
            assert_eq!(pcie_generation(text), Some(generation), "{text}");
        }
        assert_eq!(pcie_generation("Unknown"), None);
    }

    #[test]
    fn usb_rates() {
        assert_eq!(figures(&usb(480.0, 1).unwrap()), (60.0, 60.0, (30.0, 40.0)));
        assert_eq!(figures(&usb(12.0, 1).unwrap()), (1.5, 1.5, (1.0, 1.2)));
        let gen2 = usb(10000.0, 1).unwrap();
        assert_eq!((gen2.raw_mbps, gen2.encoded_mbps.unwrap().round()), (Some(1250.0), 1212.0));
        assert_eq!(gen2.transit_us, None, "nobody has published one");
        assert_eq!(usb(10000.0, 2).unwrap().encoded_mbps, Some(1000.0), "two lanes of 5 Gbit/s keep 8b/10b");
        assert_eq!(usb(20000.0, 2).unwrap().encoded_mbps.unwrap().round(), 2424.0);
        assert!(usb(1.5, 1).unwrap().practical_mbps.is_none());
        assert!(usb(7.0, 1).is_none());
        assert!(usb(f64::NAN, 1).is_none());
    }

    #[test]
    fn cards_and_sata() {
        let raw = |index: usize, bits| card(CARD_BUSES[index], bits, None).raw_mbps.unwrap();
        assert_eq!([raw(0, 4), raw(2, 4), raw(5, 4), raw(7, 4), raw(6, 4)], [12.5, 25.0, 50.0, 50.0, 104.0]);
        assert_eq!([raw(1, 8), raw(8, 8), raw(9, 8), raw(10, 8)], [52.0, 104.0, 200.0, 400.0]);
        assert_eq!(card(CARD_BUSES[6], 4, Some(200.0)).raw_mbps, Some(100.0), "the Pi 5 clocks SDR104 at 200 MHz");
        assert_eq!(figures(&uhs2(true, false)).1, 156.0);
        assert_eq!(figures(&uhs2(true, true)).1, 312.0);
        assert_eq!(figures(&sata(6.0)), (750.0, 600.0, (550.0, 560.0)));
        assert_eq!(figures(&sata(1.5)).1, 150.0);
    }

    #[test]
    fn the_lowest_hop_is_the_ceiling() {
        let chain = [pcie(2, 4, None), usb(5000.0, 1).unwrap(), unrated("dm-crypt", "dm-crypt")];
        assert_eq!(lowest(&chain).unwrap().hop, "USB 3 5 Gbit/s");
        let chain = [pcie(2, 1, None), usb(5000.0, 1).unwrap()];
        assert_eq!(lowest(&chain).unwrap().hop, "PCIe Gen2 x1", "a Pi 4's USB 3 hangs on one lane");
        assert_eq!(lowest(&[unrated("zram", "zram")]), None);
    }
}
