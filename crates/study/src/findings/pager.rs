//! Where the pager (docs/pager.md) would pay: what does not fit is gone through in the same order again and again, and read by
//! faults, all of it, though a part could stay.

use super::{Draft, Jointly, Scene, at, finding};
use crate::load::load_rows;
use crate::model::StepView;
use crate::predict::round_s;
use crate::tokens::token_rows;
use basics::job::{Engine, Order};
use basics::pressure::Load;
use basics::units::significant;
use basics::{Bytes, Known};

/// The least of what it would make must be so many times what is made, before it is worth a sentence.
const PAYS: f64 = 1.5;
/// Of its memory a token must touch so much: where it takes some of many experts, they come in no order. The rest of other models are
/// embeddings and room for more tokens.
const MOST: f64 = 0.6;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let steps = |tier: &str, engine: Engine| {
        let tier = tier.to_owned();
        scene.run.steps.iter().rev().filter(move |step| step.tier == Some(&tier) && step.job.engine == engine)
    };
    let passes = load_rows(scene.run).into_iter().filter_map(|row| {
        let step = steps(&row.tier, Engine::Touch).find(|step| step.is_whole())?;
        let load = step.load.filter(|_| step.job.order == Order::Sequential)?;
        let round = Round { cycle: step.region?, left: load.left?, work_s: 0.0, now: *row.passes_per_s.get()? };
        round.with_pager(step, load, &row.disk_mbps, "passes")
    });
    let tokens = token_rows(scene.run).into_iter().filter_map(|row| {
        let served = steps(&row.tier, Engine::Served).filter(|step| step.name == row.model);
        let step = served.chain(steps(&row.tier, Engine::Decode)).find(|step| step.is_whole())?;
        let load = step.load?;
        let generated = load.generated.as_deref()?;
        let cycle = generated.touched?;
        // Of a model that is decoded here its size is known, of one that a runner has it is not.
        if step.job.engine == Engine::Decode && step.region.is_some_and(|all| MOST * all.0 as f64 > cycle.0 as f64) {
            return None;
        }
        // The weights are multiplied with each token of the prompt as well; page faults are the system's time.
        let times = f64::from(generated.prompt) + generated.tokens.len() as f64;
        let at_work = generated.busy.zip(step.cpu).map_or(0.0, |(busy, (_, system))| busy.secs() - system.secs());
        let work_s = at_work.max(0.0) / f64::from(generated.threads.max(1)) / times.max(1.0);
        let left = Bytes(load.left?.0.saturating_sub(generated.besides.unwrap_or_default().0));
        let round = Round { cycle, left, work_s, now: *row.tps.get()? };
        round.with_pager(step, load, &row.disk_mbps, "tokens")
    });
    passes.chain(tokens).collect()
}

/// What is gone through again and again.
struct Round {
    cycle: Bytes,
    /// Memory for it.
    left: Bytes,
    /// The processors' part of a round, as far as it is known.
    work_s: f64,
    /// Rounds a second as it is.
    now: f64,
}

impl Round {
    fn with_pager(&self, step: &StepView<'_>, load: &Load, disk_mbps: &Known<f64>, rounds: &str) -> Option<Draft> {
        let mbps = *disk_mbps.get()?;
        let compressed = load.areas.iter().any(|area| area.compressed.is_some())
            || load.settings.get("/sys/module/zswap/parameters/enabled").is_some_and(|is| is == "Y");
        if self.cycle <= self.left || load.paged.is_some() || compressed || self.now <= 0.0 {
            return None;
        }
        let [low, high] = round_s(self.cycle, (self.left, self.left), mbps, [self.work_s; 2]).map(f64::recip);
        if low < PAYS * self.now {
            return None;
        }
        let tier = step.tier?;
        let detail = format!(
            "{} to {} {rounds} a second instead of {}",
            significant(low),
            significant(high),
            significant(self.now)
        );
        let text =
            format!("What is read on {tier} comes in the same order again and again: the pager would make {detail}.");
        let evidence = vec![
            at(step, format_args!("{} in {}, {} {rounds} a second", self.cycle, self.left, significant(self.now))),
            format!("{tier} reads {} in sequence", super::mbps(mbps)),
        ];
        let mut found = finding("pager-pays", 65, Some(tier), text, evidence);
        found.advice = Some("keep its next pages ahead of it: sudo tiermark pager --name PROGRAM".to_owned());
        let sentence = |all: &[(String, String)]| {
            let each: Vec<String> = all.iter().map(|(tier, detail)| format!("on {tier} {detail}")).collect();
            let each = each.join("; ");
            format!("What is read comes in the same order again and again: the pager would make {each}.")
        };
        Some(Draft { finding: found, jointly: Some(Jointly { detail, sentence }) })
    }
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::said;
    use crate::testing::{Run, Step};
    use basics::job::{Block, Engine, Order};
    use basics::pressure::{AreaSeen, Load, Paged};
    use basics::units::MIB;
    use basics::{Bytes, Job, Nanos, Side};

    /// 400 MiB gone through twice in ten seconds with 320 MiB of memory, on a disk of 425 MB/s.
    fn scan(order: Order) -> Step {
        let block = Block::Fixed(Bytes(4096));
        let mut step =
            Step::new("touch", "card", Job { engine: Engine::Touch, block, order, direct: false, ..Job::default() });
        let second = Nanos(1_000_000_000);
        let area = AreaSeen { sequential: Some((Bytes(425_000_000), second)), ..AreaSeen::default() };
        step.load =
            Some(Load { page: Bytes(4096), left: Some(Bytes(320 * MIB)), areas: vec![area], ..Load::default() });
        step.region = Some(Bytes(400 * MIB));
        step.read = Side { bytes: 800 * MIB, ..Side::default() };
        step.read.latency.record_n(Nanos(1000), 204_800);
        step.elapsed = Nanos(10 * second.0);
        step
    }

    #[test]
    fn a_scan_that_reads_what_could_stay_is_told() {
        // 3.94 laps a second were made of it with the pager.
        let found = said(&Run::of("load-swap", &[]).steps([scan(Order::Sequential)]), "pager-pays");
        assert_eq!(
            found[0].text,
            "What is read on card comes in the same order again and again: the pager would make 3.26 to 4.52 passes a second instead of 0.200."
        );
        assert!(found[0].evidence[0].contains("400 MiB in 320 MiB"), "{found:?}");
    }

    #[test]
    fn what_has_no_order_or_fits_or_is_helped_is_not() {
        let random = scan(Order::Uniform);
        let mut fits = scan(Order::Sequential);
        fits.load.as_mut().unwrap().left = Some(Bytes(500 * MIB));
        let mut helped = scan(Order::Sequential);
        helped.load.as_mut().unwrap().paged = Some(Box::new(Paged::default()));
        let mut zswap = scan(Order::Sequential);
        zswap.load.as_mut().unwrap().settings.insert("/sys/module/zswap/parameters/enabled".to_owned(), "Y".to_owned());
        let mut unknown = scan(Order::Sequential);
        unknown.load.as_mut().unwrap().areas[0].sequential = None;
        for step in [random, fits, helped, zswap, unknown] {
            assert!(said(&Run::of("load-swap", &[]).steps([step]), "pager-pays").is_empty());
        }
    }
}
