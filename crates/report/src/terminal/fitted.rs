//! What a fit found: each field with its value, its 95 % interval and the steps that it comes from, then what was not seen.

use super::Style;
use super::lay::{Align, Grid, Tone};
use basics::Bytes;
use basics::units::significant;
use profile::Profile;
use profile::distribution::Latency;
use profile::format::Direction;
use study::fit::Fitted;

/// A line a field.
pub fn fitted(fitted: &Fitted, style: &Style) -> String {
    let profile = &fitted.profile;
    let heads = [("field", Align::Left), ("value", Align::Right), ("95 %", Align::Right), ("from", Align::Left)];
    let mut grid = Grid::new(style, &heads).indent(0);
    for (field, value) in values(profile) {
        let show = |value: f64| {
            if field.ends_with("size") { Bytes(value as u64).to_string() } else { significant(value) }
        };
        let interval = profile.confidence.get(&field).map_or_else(String::new, |ci| {
            // A channel count without a bound is as many as come.
            let high = if field == "channels" && ci.high >= 65_536.0 { "any".to_owned() } else { show(ci.high) };
            format!("{} {} {high}", show(ci.low), style.dash())
        });
        let from = fitted.sources.get(&field).cloned().unwrap_or_default();
        grid.row(vec![
            (field.clone(), Tone::Strong),
            (show(value), Tone::Plain),
            (interval, Tone::Faint),
            (from, Tone::Faint),
        ]);
    }
    grid.fit(&[(3, 16)]);
    let mut out = grid.render();
    for text in &profile.inconsistent {
        out.push_str(&style.paragraph("inconsistent  ", text, Tone::Fair));
    }
    for text in &profile.unseen {
        out.push_str(&style.paragraph("not seen  ", text, Tone::Faint));
    }
    out
}

/// The numbers of a profile by their dotted names; a latency by its mean.
fn values(profile: &Profile) -> Vec<(String, f64)> {
    let mut out: Vec<(String, Option<f64>)> = Vec::new();
    let mut add = |field: &str, value: Option<f64>| out.push((field.to_owned(), value));
    add("size", profile.size.map(|size| size.0 as f64));
    add("channels", profile.channels.map(f64::from));
    add("link.command_us", profile.link.and_then(|link| link.command_us));
    add("link.bandwidth_MBps", profile.link.and_then(|link| link.bandwidth_mbps));
    for (name, side) in [("read", &profile.read), ("write", &profile.write)] {
        let Some(Direction { random, sequential }) = side else { continue };
        let patterns = [(name.to_owned(), Some(random)), (format!("{name}.sequential"), sequential.as_ref())];
        for (name, pattern) in patterns {
            let Some(pattern) = pattern else { continue };
            add(&format!("{name}.latency_us"), pattern.latency_us.as_ref().map(Latency::mean_us));
            if let Some(Latency::LogNormal(law)) = &pattern.latency_us {
                add(&format!("{name}.latency_us.sigma"), Some(law.sigma));
            }
            add(&format!("{name}.bandwidth_MBps"), pattern.bandwidth_mbps);
            for (size, us) in &pattern.size_us {
                add(&format!("{name}.size_us.{size}"), Some(*us));
            }
        }
    }
    add("mixed.read_factor", profile.mixed.map(|mixed| mixed.read_factor));
    add("mixed.write_factor", profile.mixed.map(|mixed| mixed.write_factor));
    add("cache.size", profile.cache.map(|cache| cache.size.0 as f64));
    add("cache.drain_MBps", profile.cache.map(|cache| cache.drain_mbps));
    let flush = profile.flush.as_ref();
    add("flush.latency_us", flush.and_then(|f| f.latency_us.as_ref()).map(Latency::mean_us));
    add("flush.dirty_us_per_MB", flush.and_then(|f| f.dirty_us_per_mb));
    if let Some(stall) = profile.stalls.first() {
        add("stall.period_ms", Some(stall.period_ms));
        add("stall.length_ms", Some(stall.length_ms));
    }
    for (index, zone) in profile.zones.iter().enumerate() {
        add(&format!("zone.{index}.from"), Some(zone.from));
        add(&format!("zone.{index}.to"), Some(zone.to));
        add(&format!("zone.{index}.factor"), Some(zone.factor));
    }
    add("slowdown.after_s", profile.slowdown.map(|s| s.after_s));
    add("slowdown.factor", profile.slowdown.map(|s| s.factor));
    out.into_iter().filter_map(|(field, value)| Some((field, value?))).collect()
}
