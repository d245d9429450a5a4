//! The published table of decoding under memory pressure beside what is predicted for its rows: how far predictions from
//! published figures can be trusted. The table itself is data of the crate `profile`.

use super::{Board, Need, Predicted, PublishedRun, SYSTEM, Tier, Usage, contradictions, predict};
use basics::units::GIB;
use basics::{Bytes, Known};
use profile::articles::pi5_optane;
use serde::{Deserialize, Serialize};

/// Less I/O wait than this, per cent, and the row's model fits: its rate is that of memory.
const FITS: f64 = 10.0;
/// Cores of a Raspberry Pi 5, all of which Ollama decodes with.
const THREADS: u32 = 4;

/// A published row and what is predicted for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideBySide {
    /// The row as published.
    pub run: PublishedRun,
    /// From the figures of its board and devices alone.
    pub predicted: Predicted,
    /// Whether the published rate lies within the interval.
    pub contained: bool,
    /// What the row says against itself.
    pub contradiction: Option<String>,
}

/// The rows of the article's table.
pub fn article_runs() -> Vec<PublishedRun> {
    let llm = &pi5_optane().llm;
    let rows = llm.models.iter().flat_map(|model| (0..llm.tiers.len()).map(move |tier| (model, tier)));
    let run = |(model, tier): (&profile::articles::LlmModel, usize)| PublishedRun {
        model: model.name.clone(),
        tier: llm.tiers[tier].clone(),
        total_s: model.total_s[tier],
        tps: model.tps[tier],
        cpu_percent: Some(model.cpu_percent[tier]),
        iowait_percent: Some(model.iowait_percent[tier]),
    };
    rows.map(run).collect()
}

/// A Raspberry Pi 5 with so much RAM. Its memory's rate is that at which the published model that fits ran: bytes touched,
/// and weights, times tokens a second.
pub fn pi5(ram: Bytes) -> Board {
    let article = pi5_optane();
    let rates = |run: &PublishedRun| {
        let need = Need::named(&run.model, Usage::default()).ok()?;
        run.iowait_percent.filter(|percent| *percent < FITS)?;
        Some((need.touched().0 as f64 / 1e6 * run.tps, need.multiplied as f64 * run.tps))
    };
    let best = article_runs().iter().filter_map(rates).max_by(|a, b| a.0.total_cmp(&b.0));
    let known = |rate: Option<f64>| rate.map_or_else(|| Known::not_measured("no published row fits"), Known::Is);
    Board {
        name: article.machine.model.clone(),
        ram,
        page: Bytes(article.machine.page_size_b.unwrap_or(4096)),
        threads: THREADS,
        memory_mbps: known(best.map(|(mbps, _)| mbps)),
        weights_per_s: known(best.map(|(_, weights)| weights)),
        system: SYSTEM,
        source: article.source.clone(),
    }
}

/// The article's "USB array": its SATA SSD on one port, four NVMe behind a hub on the other, at equal priority. The one NVMe that
/// it has figures of stands for all four.
pub fn usb_array(page: Bytes) -> Option<Tier> {
    let (sata, nvme) = (profile::find("sata-usb3-pi5").ok()?, profile::find("nvme-usb3-pi5").ok()?);
    Some(Tier::array(&pi5_optane().llm.tiers[0], &[sata, nvme, nvme, nvme, nvme], page))
}

/// The article's table and the predictions for it, row by row.
pub fn article() -> Vec<SideBySide> {
    let article = pi5_optane();
    // Sold as 4 GB, memory comes in powers of two.
    let ram = Bytes((article.machine.ram_gb.unwrap_or(0.0) * GIB as f64) as u64);
    let board = pi5(ram);
    let optane = profile::find("optane-pi5").ok().map(|profile| Tier::of(profile, board.page));
    let tiers = [usb_array(board.page), optane];
    let locked = Bytes((article.llm.locked_gb * 1e9) as u64);
    let (runs, mut rows) = (article_runs(), Vec::new());
    let against = contradictions(&runs);
    for run in runs {
        let place = article.llm.tiers.iter().position(|tier| *tier == run.tier);
        let tier = place.and_then(|place| tiers[place].as_ref());
        let need = Need::named(&run.model, Usage::default());
        let (Some(tier), Ok(need)) = (tier, need) else { continue };
        let predicted = predict(&need, tier, &board, locked);
        let said = against.iter().find(|one| one.model == run.model && one.tier.as_ref() == Some(&run.tier));
        let contradiction = said.map(|one| one.why.clone());
        rows.push(SideBySide { contained: predicted.contains(run.tps), predicted, contradiction, run });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_of_six_pressured_rows_are_within_and_the_sixth_contradicts_itself() {
        let rows = article();
        assert_eq!(rows.len(), 8);
        let mut table = String::new();
        for SideBySide { run, predicted, contained, .. } in &rows {
            let [low, high] = [&predicted.tps_low, &predicted.tps_high].map(|end| *end.get().unwrap());
            table += &format!("{} on {}: {} in {low:.4} to {high:.4}: {contained}\n", run.model, run.tier, run.tps);
            // An interval that says everything says nothing.
            assert!(high / low < 4.0, "{table}");
        }
        let pressured = rows.iter().filter(|row| row.run.iowait_percent.unwrap() > FITS);
        for row in pressured.clone() {
            assert_eq!(row.contained, row.contradiction.is_none(), "{table}");
            assert!(row.predicted.why.starts_with("thrash: every token reads"), "{}", row.predicted.why);
        }
        assert_eq!(pressured.filter(|row| row.contained).count(), 5, "{table}");
        // Those that fit: the board's rate was taken from one of them.
        for row in rows.iter().filter(|row| row.run.iowait_percent.unwrap() < FITS) {
            assert!(row.predicted.why.starts_with("fits"), "{}", row.predicted.why);
            assert!(row.contained, "{table}");
            assert!((row.predicted.tps.get().unwrap() / row.run.tps - 1.0).abs() < 0.02, "{table}");
        }
    }

    /// A run of which nothing was used here: "Squeezing performance out of a Raspberry Pi 5 with an Intel Optane for LLM usage", by
    /// the same author on the same board, run A: Optane on PCIe Gen 2, 2.4 GHz, qwen2.5 of 7B at 0.10 tokens/s.
    #[test]
    fn the_articles_sequel_is_within() {
        let board = pi5(Bytes(4 * GIB));
        let tier = Tier::of(profile::find("optane-pi5").unwrap(), board.page);
        let found = predict(&Need::named("qwen2.5:7b", Usage::default()).unwrap(), &tier, &board, Bytes(0));
        assert!(found.contains(0.10), "{found:?}");
    }

    #[test]
    fn memory_is_as_fast_as_the_row_that_fits_says() {
        let board = pi5(Bytes(4 * GIB));
        let mbps = *board.memory_mbps.get().unwrap();
        assert!((8_100.0..8_400.0).contains(&mbps), "{mbps}");
        assert_eq!((board.page, board.threads), (Bytes(16_384), 4));
    }
}
