//! The desktop article's checks for people.

use super::Style;
use super::lay::Tone;
use crate::desktop_check::DesktopCheck;
use crate::view::view;
use basics::Known;
use basics::units::significant;
use record::Record;

/// All of them, in the article's order.
pub fn desktop_check(check: &DesktopCheck, style: &Style) -> String {
    let mut out = style.paragraph("", &format!("The desktop's checks, in {}", check.dir.display()), Tone::Strong);
    let mut part = |title: &str, lines: Vec<String>| {
        out.push('\n');
        out.push_str(&style.paragraph("  ", title, Tone::Strong));
        for line in lines {
            out.push_str(&style.paragraph("    ", &line, Tone::Plain));
        }
    };
    part(&format!("iozone, run {}", check.iozone.run.id), figures(&check.iozone));
    if let Some(before) = &check.before {
        let tier = before.steps.first().and_then(|step| step.tier.clone()).unwrap_or_default();
        part(&format!("iozone before, on {tier}, run {}", before.run.id), figures(before));
    }
    part(&format!("zeros, run {}", check.zeros.run.id), figures(&check.zeros));
    let files = match &check.files {
        Known::Unknown(why) => vec![why.to_string()],
        Known::Is(compsize) => compsize
            .types
            .iter()
            .map(|row| {
                let gb = |bytes: u64| significant(bytes as f64 / 1e9);
                let of = format!("{} of {} GB", gb(row.disk_b), gb(row.uncompressed_b));
                format!("{}: {} %, {of}", row.kind, significant(row.percent))
            })
            .collect(),
    };
    part("btrfs, what files take", files);
    let zswap = match &check.zswap {
        Known::Unknown(why) => why.to_string(),
        Known::Is(zswap) => {
            let most =
                zswap.max_pool_percent.map_or_else(String::new, |most| format!(", at most {most} % of the memory"));
            let pool = zswap.pool.zip(zswap.stored).map_or_else(
                || "what it holds this kernel does not tell".to_owned(),
                |(pool, stored)| format!("{stored} of pages in {pool}"),
            );
            let ratio = zswap.ratio().map_or_else(String::new, |ratio| format!(", 1/{}", significant(ratio)));
            format!("{}{most}: {pool}{ratio}", zswap.compressor)
        }
    };
    part("zswap", vec![zswap]);
    let rows = study::build_rows(&view(&check.build));
    let build = study::build_headline(&rows).into_iter().chain(rows.first().map(|row| row.why.clone()));
    part(&format!("a compilation, run {}", check.build.run.id), build.collect());
    out
}

fn figures(record: &Record) -> Vec<String> {
    match study::published::figures(&view(record)) {
        Some(figures) => figures.lines(),
        None => vec![format!("no figures; `tiermark show {}` says why", record.run.id)],
    }
}
