//! What `move` would do, and did.

use super::Style;
use super::lay::Tone;
use mover::{Moved, Planned, Request};

/// What would be done.
pub fn move_planned(planned: &Planned, request: &Request, style: &Style) -> String {
    let mut out = String::new();
    let to = &request.to;
    let text = format!("{}, {} of files", planned.from, planned.used);
    out.push_str(&style.paragraph("from      ", &text, Tone::Strong));
    out.push_str(&style.paragraph(
        "to        ",
        &format!("{}, all of which is written over", to.path.display()),
        Tone::Strong,
    ));
    for (what, start, len) in &planned.parts {
        let fs = match what.as_str() {
            "root" => match &to.compress {
                Some(compress) => format!(" {} compress={compress}", to.fs.as_str()),
                None => format!(" {}", to.fs.as_str()),
            },
            _ => String::new(),
        };
        out.push_str(&style.paragraph("  part    ", &format!("{what}{fs}: {len} from {start} on"), Tone::Plain));
    }
    for file in &planned.without {
        out.push_str(&style.paragraph("  without ", &format!("/{}, a swap file", file.display()), Tone::Plain));
    }
    match &planned.command_line {
        Some(line) => out.push_str(&style.paragraph("  starts  ", line.trim_end(), Tone::Faint)),
        None => {
            out.push_str(&style.paragraph("  starts  ", "it is not known how: there is no cmdline.txt", Tone::Fair))
        }
    }
    out
}

/// What was done.
pub fn moved(moved: &Moved, style: &Style) -> String {
    let there = if moved.there > 0 { format!(", {} of them there already", moved.there) } else { String::new() };
    let text =
        format!("{} files{there}, {} written, all read again and the same", moved.files, basics::Bytes(moved.bytes));
    let mut out = style.paragraph("moved     ", &text, Tone::Good);
    for (what, partuuid, len) in &moved.parts {
        out.push_str(&style.paragraph("  part    ", &format!("{what}: {len}, PARTUUID={partuuid}"), Tone::Plain));
    }
    for checked in &moved.checked {
        out.push_str(&style.paragraph("  checked ", checked, Tone::Plain));
    }
    if let (Some(line), Some(boot)) = (&moved.command_line, &moved.boot) {
        out.push_str(&style.paragraph("  starts  ", &format!("{} ({boot})", line.trim_end()), Tone::Strong));
    }
    for note in &moved.notes {
        out.push_str(&style.paragraph("  note    ", note, Tone::Fair));
    }
    out
}
