//! Which published devices a tier is like: distance over all figures that both have.

use crate::figures::TierSteps;
use crate::model::{Likeness, TierFigures};
use basics::Known;
use machine::TierKind;
use profile::{Figure, PublishedDevice};

/// Fewest figures in common for a likeness: one alone is chance.
const FEWEST: usize = 2;
/// How many are kept.
const NEAREST: usize = 3;

/// The nearest published devices, the most alike first.
///
/// Distance is the root mean square of ln(here / there) over the common figures, so that twice and half weigh the same.
/// RAM is like no device: its bandwidth is not that of a block device.
pub(crate) fn likenesses(steps: &TierSteps<'_, '_>, figures: &TierFigures) -> Vec<Likeness> {
    if steps.tier.is_some_and(|tier| tier.kind == TierKind::Ram) || !figures.load_ns.is_unknown() {
        return Vec::new();
    }
    let here = measured(steps, figures);
    let mut all: Vec<Likeness> = profile::published().iter().filter_map(|device| likeness(&here, device)).collect();
    all.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    all.truncate(NEAREST);
    all
}

/// Likeness over few figures is easily had: the distance grows by one part in n, n being the figures in common.
fn rank(likeness: &Likeness) -> f64 {
    likeness.distance * (1.0 + 1.0 / likeness.table.len() as f64)
}

fn likeness(here: &[(Figure, f64)], device: &PublishedDevice) -> Option<Likeness> {
    let common: Vec<(Figure, f64, f64)> = here
        .iter()
        .filter_map(|(figure, here)| Some((*figure, *here, device.comparable(*figure)?)))
        .filter(|(_, here, there)| *here > 0.0 && *there > 0.0)
        .collect();
    if common.len() < FEWEST {
        return None;
    }
    let squares: f64 = common.iter().map(|(_, here, there)| (here / there).ln().powi(2)).sum();
    Some(Likeness {
        name: device.name.clone(),
        source: device.source.clone(),
        distance: (squares / common.len() as f64).sqrt(),
        table: common.into_iter().map(|(figure, here, there)| (figure.label().to_owned(), here, there)).collect(),
    })
}

/// The tier's figures under the names of published ones. The swap simulation counts only at the published block size.
fn measured(steps: &TierSteps<'_, '_>, figures: &TierFigures) -> Vec<(Figure, f64)> {
    let published_block = profile::articles::pi5_optane().swap_simulation.block_b;
    let same_block = steps.measured("swap-sim").is_some_and(|step| step.job.block.largest().0 == published_block);
    let swap = |side: &Known<crate::SideSummary>, figure: fn(&crate::SideSummary) -> Option<f64>| {
        side.get().filter(|_| same_block).and_then(figure)
    };
    let iops = |side: &crate::SideSummary| Some(side.iops);
    let mean = |side: &crate::SideSummary| side.lat.mean.get().map(|mean| mean.us());
    let p99 = |side: &crate::SideSummary| side.lat.percentile(99.0).map(|p99| p99.us());
    [
        (Figure::SeqRead, figures.seq_read_mbps.get().copied()),
        (Figure::SeqWrite, figures.seq_write_mbps.get().copied()),
        (Figure::SwapReadIops, swap(&figures.swap_sim_read, iops)),
        (Figure::SwapWriteIops, swap(&figures.swap_sim_write, iops)),
        (Figure::SwapReadMean, swap(&figures.swap_sim_read, mean)),
        (Figure::SwapReadP99, swap(&figures.swap_sim_read, p99)),
        (Figure::SwapWriteMean, swap(&figures.swap_sim_write, mean)),
        (Figure::SwapWriteP99, swap(&figures.swap_sim_write, p99)),
        (Figure::RandRead4kMean, figures.rand_read_4k_qd1_us.get().copied()),
        (Figure::PageReadMean, figures.page_read_qd1.get().and_then(|page| page.mean.get()).map(|mean| mean.us())),
    ]
    .into_iter()
    .filter_map(|(figure, value)| Some((figure, value?)))
    .collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::{Run, Step};
    use crate::{explain, model::TierStudy};
    use basics::Nanos;

    fn study(run: &Run) -> TierStudy {
        explain(&run.view()).tiers.remove(0)
    }

    /// The Optane's own row, give or take a few per cent, is the Optane.
    #[test]
    fn a_device_is_like_its_own_row() {
        let run = Run::default().steps([
            Step::seq_read("nvme0n1", 425.0),
            Step::swap_sim("nvme0n1").reads(&[1150; 20], Nanos(220_000)).writes(&[510; 20], Nanos(280_000)),
        ]);
        let tier = study(&run);
        assert_eq!(tier.resembles[0].name, "optane-pi5");
        assert_eq!(tier.resembles.len(), 3);
        assert_eq!(tier.resembles[0].table.len(), 7);
        assert!(tier.resembles[0].distance < 0.4 && tier.resembles[0].distance < tier.resembles[1].distance);
        // RMS of the logarithms, by hand, over sequential read and the two IOPS alone, is a few per cent.
        let (label, here, there) = &tier.resembles[0].table[0];
        assert_eq!(label, "sequential read MB/s");
        assert!((here / there - 425.0 / 430.147).abs() < 0.01);
    }

    #[test]
    fn one_figure_or_another_block_size_is_no_likeness() {
        let one = Run::default().steps([Step::seq_read("nvme0n1", 425.0)]);
        assert!(study(&one).resembles.is_empty());
        let mut small = Step::swap_sim("nvme0n1").block(4096);
        small = small.reads(&[1150; 20], Nanos(220_000)).writes(&[510; 20], Nanos(280_000));
        let other_block = Run::default().steps([Step::seq_read("nvme0n1", 425.0), small]);
        assert!(study(&other_block).resembles.is_empty());
    }
}
