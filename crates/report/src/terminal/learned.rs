//! What was learned of a server that serves somebody, for people, and the command that makes such a load.

use super::Style;
use super::lay::Tone;
use basics::Known;
use basics::units::{grouped, significant};
use study::Learned;

/// All of it.
pub fn learned(learned: &Learned, style: &Style) -> String {
    let head = format!(
        "{}: {} keys, {}, {} requests/s while it was looked at",
        learned.version,
        grouped(learned.keys as i64),
        learned.memory,
        significant(learned.ops_per_s)
    );
    let mut out = style.paragraph("", &head, Tone::Strong);
    out.push('\n');
    let mut line = |name: &str, text: String| {
        out.push_str(&style.paragraph(&format!("  {name:<12}"), &text, Tone::Plain));
    };
    let percent = |share: &f64| format!("{} %", significant(100.0 * share));
    line("values", told(&learned.lengths, ToString::to_string));
    line("reads", told(&learned.reads, |reads| format!("{reads} % of what is done to strings")));
    let ttl = told(&learned.with_ttl, |share| format!("{} of the keys have one", percent(share)));
    let lives = learned.expires.map_or_else(String::new, |time| format!(", {time} from when they are set"));
    line("TTL", format!("{ttl}{lives}; {} keys/s expire", significant(learned.expired_per_s)));
    line("hits", told(&learned.hit_rate, |share| format!("{} of the reads, since it started", percent(share))));
    let theta = learned.theta.get().map_or_else(String::new, |theta| format!(", as by a Zipf law of {theta:.2}"));
    let hot = |share: &f64| format!("the hottest hundredth of the keys has {} of the uses{theta}", percent(share));
    line("hot keys", told(&learned.hottest, hot));
    line("content", told(&learned.compressed_to, |left| format!("compresses to {}", percent(left))));
    let commands: Vec<String> =
        learned.commands.iter().take(8).map(|(name, share, _)| format!("{name} {}", percent(share))).collect();
    line("commands", if commands.is_empty() { "none that serve anybody".to_owned() } else { commands.join(", ") });
    for note in &learned.notes {
        out.push_str(&style.paragraph("  note        ", note, Tone::Faint));
    }
    out.push('\n');
    let command = format!("tiermark load redis --on DIR {}", learned.words().join(" "));
    out.push_str(&style.paragraph("  a load like it  ", &command, Tone::Plain));
    out
}

fn told<T>(value: &Known<T>, show: impl FnOnce(&T) -> String) -> String {
    match value {
        Known::Is(value) => show(value),
        Known::Unknown(why) => format!("unknown: {why}"),
    }
}
