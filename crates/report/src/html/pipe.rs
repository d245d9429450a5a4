//! The pipe: a tier's hops from the CPU to the medium, each as wide as its ceiling, the measured rate flowing through. The
//! drawing stretches with the page, so it holds no text; captions stand below it in as many columns as there are hops.

use crate::terminal::sets_the_ceiling;
use crate::words;
use basics::units::significant;
use machine::{Hop, Tier};
use serde::Serialize;
use std::fmt::Write;

/// One tier's pipe.
#[derive(Serialize)]
pub struct Pipe {
    tier: String,
    color: usize,
    /// The drawing.
    svg: String,
    hops: Vec<Caption>,
    /// `410 of 430 MB/s`.
    measured: String,
    /// What the drawing shows, for those who do not see it.
    alt: String,
}

#[derive(Serialize)]
struct Caption {
    name: String,
    detail: Option<String>,
    /// `625 → 500 → 430–450 MB/s`.
    figures: Option<String>,
    /// `5 Gbit/s ÷ 8, 8b/10b, protocol`.
    steps: Option<String>,
    transit: Option<String>,
    could_be: Option<String>,
    source: Option<String>,
    narrowest: bool,
}

/// Width of a hop and height of the widest one, in the drawing's own units.
const HOP: f64 = 100.0;
const HEIGHT: f64 = 64.0;
/// Half of the length over which one width goes over into the next.
const BEND: f64 = 9.0;

/// The pipe of a tier, under the name `label`, whose best measured rate is `rate` (10^6 B/s); none when no hop has a ceiling.
pub fn pipe(tier: &Tier, label: String, rate: Option<f64>, color: usize) -> Option<Pipe> {
    let ceiling = tier.ceiling.get()?;
    let widest = tier.hops.iter().filter_map(width).fold(0.0, f64::max);
    if widest <= 0.0 {
        return None;
    }
    // A hop without a ceiling of its own lets everything through that came so far.
    let heights: Vec<f64> =
        tier.hops.iter().map(|hop| width(hop).map_or(HEIGHT, |w| (HEIGHT * w / widest).max(5.0))).collect();
    let hops: Vec<Caption> = tier.hops.iter().map(|hop| caption(hop, sets_the_ceiling(hop, tier))).collect();
    let of = words::range(ceiling.practical_mbps);
    let measured = match rate {
        Some(rate) => format!("{} of {of} MB/s", significant(rate)),
        None => format!("not measured, ceiling {of} MB/s"),
    };
    let alt = format!(
        "From the CPU to {label}: {}. {measured}.",
        tier.hops
            .iter()
            .map(|hop| format!("{} {}", hop.name, words::bus_mathematics(hop, "→")))
            .collect::<Vec<_>>()
            .join(", then ")
    );
    let fill = rate.map(|rate| HEIGHT * rate / widest);
    let svg = drawing(tier, &heights, fill, hops.iter().position(|hop| hop.narrowest));
    Some(Pipe { tier: label, color, svg, hops, measured, alt })
}

fn width(hop: &Hop) -> Option<f64> {
    hop.practical_mbps.map(|(_, high)| high).or(hop.encoded_mbps)
}

fn caption(hop: &Hop, narrowest: bool) -> Caption {
    let mut figures = Vec::new();
    let mut steps = Vec::new();
    if let Some(raw) = hop.raw_mbps {
        figures.push(significant(raw));
        steps.extend(hop.signal_gbps.map(|gbps| format!("{} Gbit/s ÷ 8", significant(gbps))));
    }
    if let Some(encoded) = hop.encoded_mbps {
        if hop.raw_mbps.is_none_or(|raw| significant(raw) != significant(encoded)) {
            figures.push(significant(encoded));
        }
        steps.extend(hop.encoding.clone().filter(|code| code != "none"));
    }
    if let Some(practical) = hop.practical_mbps {
        figures.push(words::range(practical));
        steps.push("protocol".to_owned());
    }
    Caption {
        name: hop.name.clone(),
        detail: hop.detail.clone(),
        figures: (!figures.is_empty()).then(|| format!("{} MB/s", figures.join(" → "))),
        steps: (steps.len() > 1).then(|| steps.join(", ")),
        transit: hop.transit_us.map(|us| format!("{} µs to cross", significant(us))),
        could_be: hop.could_be.clone(),
        source: hop.source.clone(),
        narrowest,
    }
}

/// An outline from left to right that takes each hop's height in its column.
fn outline(heights: &[f64]) -> String {
    let (mut top, mut bottom) = (String::new(), String::new());
    let mid = HEIGHT / 2.0 + 2.0;
    for (i, height) in heights.iter().enumerate() {
        let (left, right) = (i as f64 * HOP, (i + 1) as f64 * HOP);
        let half = height / 2.0;
        let start = if i == 0 { left } else { left + BEND };
        let end = if i + 1 == heights.len() { right } else { right - BEND };
        if i == 0 {
            let _ = write!(top, "M{start:.1} {:.2}", mid - half);
        }
        let _ = write!(top, " L{end:.1} {:.2}", mid - half);
        if let Some(next) = heights.get(i + 1) {
            let _ = write!(
                top,
                " C{right:.1} {:.2} {right:.1} {:.2} {:.1} {:.2}",
                mid - half,
                mid - next / 2.0,
                right + BEND,
                mid - next / 2.0
            );
        }
        // The bottom runs back, so it is put together from its end.
        let mut piece = format!(" L{start:.1} {:.2}", mid + half);
        if i + 1 == heights.len() {
            piece = format!(" L{end:.1} {:.2}{piece}", mid + half);
        }
        if let Some(previous) = i.checked_sub(1).and_then(|i| heights.get(i)) {
            let _ = write!(
                piece,
                " C{left:.1} {:.2} {left:.1} {:.2} {:.1} {:.2}",
                mid + half,
                mid + previous / 2.0,
                left - BEND,
                mid + previous / 2.0
            );
        }
        bottom = format!("{piece}{bottom}");
    }
    format!("{top}{bottom} Z")
}

fn drawing(tier: &Tier, heights: &[f64], fill: Option<f64>, narrowest: Option<usize>) -> String {
    let length = heights.len() as f64 * HOP;
    let height = HEIGHT + 4.0;
    let mut out = format!("<svg viewBox=\"0 0 {length} {height}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    let pipe = outline(heights);
    let _ = write!(out, "<path class=\"wall\" d=\"{pipe}\"/>");
    if let Some(fill) = fill {
        // As wide as the rate in every hop, and never wider than the hop.
        let flow: Vec<f64> = heights.iter().map(|height| fill.clamp(1.5, *height)).collect();
        let _ = write!(out, "<path class=\"flow\" d=\"{}\"/>", outline(&flow));
    }
    for (i, hop) in tier.hops.iter().enumerate() {
        if width(hop).is_none() {
            let _ = write!(
                out,
                "<rect class=\"open\" x=\"{}\" y=\"0\" width=\"{HOP}\" height=\"{height}\"/>",
                i as f64 * HOP
            );
        }
    }
    if let (Some(i), Some(height)) = (narrowest, narrowest.and_then(|i| heights.get(i))) {
        // Along the straight part: a bend only where another hop follows.
        let left = if i == 0 { 0.0 } else { i as f64 * HOP + BEND };
        let right = if i + 1 == heights.len() { length } else { (i + 1) as f64 * HOP - BEND };
        for y in [HEIGHT / 2.0 + 2.0 - height / 2.0, HEIGHT / 2.0 + 2.0 + height / 2.0] {
            let _ = write!(out, "<path class=\"narrow\" d=\"M{left:.1} {y:.2} L{right:.1} {y:.2}\"/>");
        }
    }
    out.push_str("</svg>");
    out
}
