//! The list of profiles: what each device is, and what its profile knows of reads and writes.

use super::Style;
use super::lay::{Align, Grid, Tone};
use basics::units::significant;
use profile::Profile;
use profile::format::{Direction, Pattern};

/// One line a profile, in the order given.
pub fn profiles(all: &[Profile], style: &Style) -> String {
    let heads = [("profile", Align::Left), ("read", Align::Left), ("write", Align::Left), ("device", Align::Left)];
    let mut grid = Grid::new(style, &heads).indent(0);
    for profile in all {
        grid.row(vec![
            (profile.name.clone(), Tone::Strong),
            (side(profile.read.as_ref()), Tone::Plain),
            (side(profile.write.as_ref()), Tone::Plain),
            (profile.title.clone(), Tone::Faint),
        ]);
    }
    grid.fit(&[(3, 16)]);
    let mut out = grid.render();
    let off: Vec<&str> = all.iter().filter(|p| !p.inconsistent.is_empty()).map(|p| p.name.as_str()).collect();
    if !off.is_empty() {
        let text = format!("{}: their figures contradict each other, and their profiles say how.", off.join(", "));
        out.push_str(&style.paragraph("inconsistent  ", &text, Tone::Fair));
    }
    out.push_str(&style.paragraph(
        "",
        "Latencies are means on the medium at random places, without the bus and without waiting. `tiermark profiles NAME` \
         prints one as TOML, a form to write your own; `tiermark run METHOD --on profile:NAME` runs a method on one.",
        Tone::Faint,
    ));
    out
}

fn side(direction: Option<&Direction>) -> String {
    direction.map_or_else(|| "unknown".to_owned(), |direction| pattern(&direction.random))
}

fn pattern(pattern: &Pattern) -> String {
    let latency = pattern.latency_us.as_ref().map(|latency| format!("{} µs", significant(latency.mean_us())));
    let rate = pattern.bandwidth_mbps.map(|rate| format!("{} MB/s", significant(rate)));
    let table = pattern.size_us.iter().find(|(size, _)| size.as_str() == "4KiB");
    let table = table.map(|(size, us)| format!("{} µs for {size}", significant(*us)));
    let parts: Vec<String> = [latency, table, rate].into_iter().flatten().collect();
    if parts.is_empty() { "known".to_owned() } else { parts.join(", ") }
}
