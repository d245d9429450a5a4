//! The tiers of a machine and the hops to them with their ceilings, nothing measured.

use super::Style;
use super::lay::{Align, Grid, Tone};
use crate::words;
use basics::Known;
use basics::units::significant;
use machine::{Hop, Machine, Tier};
use std::collections::BTreeSet;

/// One table for all tiers: a line for the tier, a line for each hop from the CPU to the medium; the hop that sets the
/// ceiling is marked. Below it what stands in the way.
pub fn tiers(machine: &Machine, style: &Style) -> String {
    let mut out = style.paragraph("", &words::machine(machine), Tone::Strong);
    out.push('\n');
    if machine.tiers.is_empty() {
        out.push_str(&style.paragraph("  ", "No tier was found below this root.", Tone::Plain));
    } else {
        let mut grid = Grid::new(
            style,
            &[
                ("tier and its hops", Align::Left),
                ("signal\nGbit/s", Align::Right),
                ("raw\nMB/s", Align::Right),
                ("line code\n", Align::Left),
                ("encoded\nMB/s", Align::Right),
                ("practical\nMB/s", Align::Right),
                ("transit\nµs", Align::Right),
            ],
        );
        for tier in &machine.tiers {
            grid.heading(&head(tier));
            for hop in &tier.hops {
                grid.row(row(hop, sets_the_ceiling(hop, tier), style));
            }
        }
        grid.fit(&[(0, 18)]);
        out.push_str(&grid.render());
    }
    if machine.tiers.iter().any(|tier| !tier.ceiling.is_unknown()) {
        let legend = "the narrowest hop sets the tier's ceiling. Raw is the signal over 8 bits; encoded is what the line \
                      code leaves of it, practical what the protocol leaves of that.";
        let lead = format!("  {} ", style.mark("◂", "<"));
        out.push('\n');
        out.push_str(&style.paragraph(&lead, legend, Tone::Faint));
    }
    out.push_str(&warnings(machine, style));
    out
}

/// A tier in a line: what it is, how large, where it is used.
pub(super) fn head(tier: &Tier) -> String {
    let mut parts = Vec::new();
    parts.extend(tier.model.get().cloned());
    parts.extend(tier.block.as_ref().and_then(|block| block.compression.clone()));
    if let Known::Is(size) = &tier.size {
        let ram = tier.kind == machine::TierKind::Ram || tier.kind == machine::TierKind::Zram;
        parts.push(if ram { size.to_string() } else { words::disk_size(*size) });
    }
    for mount in &tier.mounts {
        let compression = mount.compression.as_ref().map(|how| format!(" {how}")).unwrap_or_default();
        parts.push(format!("{} ({}{compression})", mount.at.display(), mount.fs));
    }
    if !tier.swaps.is_empty() {
        parts.push("swap".to_owned());
    }
    if parts.is_empty() { tier.name.clone() } else { format!("{}  {}", tier.name, parts.join(", ")) }
}

/// True for the first hop of the chain with the ceiling's name and figures.
pub(crate) fn sets_the_ceiling(hop: &Hop, tier: &Tier) -> bool {
    tier.ceiling.get().is_some_and(|ceiling| {
        let is = |hop: &Hop| hop.name == ceiling.hop && hop.practical_mbps.is_none_or(|p| p == ceiling.practical_mbps);
        tier.hops.iter().find(|hop| is(hop)).is_some_and(|first| std::ptr::eq(first, hop))
    })
}

fn row(hop: &Hop, narrowest: bool, style: &Style) -> Vec<(String, Tone)> {
    let number = |value: Option<f64>| (value.map_or_else(|| style.dash().to_owned(), significant), Tone::Plain);
    let mut name = format!("  {}", hop.name);
    if narrowest {
        name.push_str(" ◂");
    }
    if let Some(detail) = &hop.detail {
        name.push_str(&format!("  {detail}"));
    }
    let tone = if narrowest { Tone::Fair } else { Tone::Plain };
    if hop.signal_gbps.or(hop.raw_mbps).or(hop.encoded_mbps).or(hop.transit_us).is_none()
        && hop.practical_mbps.is_none()
    {
        let mut row = vec![(name, tone)];
        row.resize(7, (String::new(), Tone::Plain));
        return row;
    }
    vec![
        (name, tone),
        number(hop.signal_gbps),
        number(hop.raw_mbps),
        (hop.encoding.clone().unwrap_or_else(|| style.dash().to_owned()), Tone::Plain),
        number(hop.encoded_mbps),
        (hop.practical_mbps.map_or_else(|| style.dash().to_owned(), words::range), Tone::Plain),
        number(hop.transit_us),
    ]
}

/// What was noticed about tiers and machine; a link that could be better is told where no warning tells it already.
fn warnings(machine: &Machine, style: &Style) -> String {
    let mut texts: Vec<String> = machine.notices.iter().map(|notice| notice.text.clone()).collect();
    for tier in &machine.tiers {
        let named =
            |text: &str| if text.contains(&tier.name) { text.to_owned() } else { format!("{}: {text}", tier.name) };
        texts.extend(tier.warnings.iter().map(|warning| named(&warning.text)));
        let better = tier.hops.iter().filter(|_| tier.warnings.is_empty());
        texts
            .extend(better.filter_map(|hop| Some(named(&format!("{} could be {}", hop.name, hop.could_be.as_ref()?)))));
    }
    texts.extend(machine.warnings.iter().cloned());
    // What is said of several tiers at once stands with each of them.
    let mut said = BTreeSet::new();
    texts.retain(|text| said.insert(text.clone()));
    let lines: String = texts.iter().map(|text| style.paragraph("  !  ", text, Tone::Plain)).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}
