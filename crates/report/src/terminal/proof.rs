//! What a proof says: what differs, the work, both sides, the verdict.

use super::Style;
use super::lay::Tone;
use crate::proof::Proved;
use basics::units::significant;
use study::proof::Proven;

/// One after the other, the newest first.
pub fn proofs(all: &[Proved<'_>], style: &Style) -> String {
    if all.is_empty() {
        return "nothing was tried yet: `tiermark prove RULE --with METHOD|WORKLOAD`\n".to_owned();
    }
    all.iter().map(|proved| proof(proved, style)).collect::<Vec<_>>().join("\n")
}

/// One.
pub fn proof(proved: &Proved<'_>, style: &Style) -> String {
    let proof = proved.proof;
    let what = if proof.rules.is_empty() { "settings".to_owned() } else { proof.rules.join(", ") };
    let what = match &proof.applied {
        Some(id) => format!("{what}, applied as {id}"),
        None => what,
    };
    let mut out = style.paragraph(&format!("proof {}  ", proved.number), &what, Tone::Strong);
    for differs in &proof.differs {
        out.push_str(&style.paragraph("  differs  ", differs, Tone::Plain));
    }
    out.push_str(&style.paragraph("  with     ", &proof.with, Tone::Plain));
    let of = proved.of.as_deref().unwrap_or("nothing");
    for (name, values) in [("  before   ", &proved.before), ("  after    ", &proved.after)] {
        let median = basics::stats::median(values);
        let (least, most) = values.iter().fold((f64::MAX, 0.0_f64), |(a, b), value| (a.min(*value), b.max(*value)));
        let text = match median {
            Some(median) => {
                let [median, least, most] = [median, least, most].map(significant);
                format!("{median} {of} ({least} to {most} in {} turns)", values.len())
            }
            None => "not measured".to_owned(),
        };
        out.push_str(&style.paragraph(name, &text, Tone::Plain));
    }
    for note in &proved.notes {
        out.push_str(&style.paragraph("  note     ", note, Tone::Fair));
    }
    let how = if proof.interleaved { "in pairs of a drawn order" } else { "across a reboot" };
    let tone = match proved.effect.verdict {
        Proven::Helped => Tone::Good,
        Proven::Hurt => Tone::Bad,
        Proven::NoEffect | Proven::Unknown => Tone::Fair,
    };
    let verdict = format!("{} (99 % interval, {how})", proved.verdict());
    out.push_str(&style.paragraph("  verdict  ", &verdict, tone));
    out
}
