//! The memory curve of a workload: what it would be with other amounts of RAM, a row for each, and how much more it needs in
//! one sentence.

use super::Style;
use super::lay::{Align, Grid, Tone};
use basics::units::significant;
use study::curve::Memory;

/// A tier's curve, its speed counted in `unit`.
pub(super) fn section(called: &str, memory: &Memory, unit: &str, style: &Style) -> String {
    let mut out = style.paragraph(&format!("  memory, {called}  "), &memory.why, Tone::Plain);
    if memory.foreseen.is_empty() {
        return out;
    }
    let rate = format!("{unit}\n/s");
    let heads = [
        ("    memory\n", Align::Left),
        (rate.as_str(), Align::Right),
        ("times\ntoday", Align::Right),
        ("major\nfaults/s", Align::Right),
        ("\n", Align::Left),
    ];
    let mut grid = Grid::new(style, &heads);
    for one in &memory.foreseen {
        let seen = if one.known { "" } else { "not seen so far: a straight line" };
        grid.row(vec![
            (format!("    {}", one.memory), Tone::Strong),
            (significant(one.rate), Tone::Plain),
            (significant(one.speed), Tone::Plain),
            (significant(one.major_per_s), Tone::Plain),
            (seen.to_owned(), Tone::Faint),
        ]);
    }
    out += &grid.render();
    out
}
