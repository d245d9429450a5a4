//! What was gone after a server was lost in the middle of its load: the worst of all seeds is what a user has to reckon with.

use super::RedisCell;
use crate::model::StepView;
use basics::Nanos;
use basics::redis::{Lose, Lost, Mode};
use basics::units::grouped;

/// The loss of one cell, over all its visits.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// How the server was lost.
    pub how: Lose,
    /// Visits in which it was.
    pub seeds: usize,
    /// Acknowledged writes that were gone, at worst.
    pub acknowledged: u64,
    /// Of so many, in that visit.
    pub of: u64,
    /// Before the cut the oldest write that was gone in any visit had been acknowledged so long.
    pub oldest: Option<Nanos>,
    /// Visits in which something was gone.
    pub losing: usize,
    /// Visits in which all was gone.
    pub all_gone: usize,
    /// Visits after which the server did not start again.
    pub did_not_start: usize,
    /// What it said to that, the first time.
    pub why: Option<String>,
    /// The longest that its log took to be made durable, in all visits, where a thread of its own does that.
    pub longest_fsync: Option<Nanos>,
}

/// Of the visits to a cell; nothing where the server was not lost in any.
pub(super) fn of(steps: &[&StepView<'_>]) -> Option<Loss> {
    let visits: Vec<&Lost> = steps
        .iter()
        .filter(|step| step.is_whole())
        .filter_map(|step| step.load?.redis.as_ref()?.lost.as_ref())
        .collect();
    let worst = visits.iter().max_by_key(|lost| (lost.acknowledged, lost.of))?;
    let count = |which: &dyn Fn(&Lost) -> bool| visits.iter().filter(|lost| which(lost)).count();
    Some(Loss {
        how: worst.how,
        seeds: visits.len(),
        acknowledged: worst.acknowledged,
        of: worst.of,
        oldest: visits.iter().filter_map(|lost| lost.oldest).max(),
        losing: count(&|lost| lost.acknowledged > 0),
        all_gone: count(&|lost| lost.of > 0 && lost.acknowledged == lost.of),
        did_not_start: count(&|lost| lost.did_not_start.is_some()),
        why: visits.iter().find_map(|lost| lost.did_not_start.clone()),
        longest_fsync: visits.iter().filter_map(|lost| lost.longest_fsync).max(),
    })
}

impl Loss {
    /// The worst in a few words: `nothing`, `all`, `the last 1.20 s`.
    pub fn in_words(&self) -> String {
        match self.oldest {
            _ if self.losing == 0 => "nothing".to_owned(),
            _ if self.all_gone == self.seeds => "all".to_owned(),
            Some(oldest) if self.all_gone == 0 => format!("the last {oldest}"),
            _ => format!("all in {} of {} visits", self.all_gone, self.seeds),
        }
    }

    /// The worst in one: `nothing`, `some`, `all`.
    pub fn in_a_word(&self) -> &'static str {
        match (self.losing, self.all_gone) {
            (0, _) => "nothing",
            (_, 0) => "some",
            _ => "all",
        }
    }

    /// What there is to say beside the figures.
    pub(super) fn why(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if self.losing > 0 {
            parts.push(format!(
                "in {} of {} visits something was gone, at worst {} of {} acknowledged writes",
                self.losing,
                self.seeds,
                grouped(self.acknowledged as i64),
                grouped(self.of as i64)
            ));
        }
        if let Some(why) = &self.why {
            parts.push(format!(
                "in {} of {} visits the server did not start again: {why}",
                self.did_not_start, self.seeds
            ));
        }
        if let Some(time) = self.longest_fsync {
            parts.push(format!("the longest fsync of its log took {time}"));
        }
        parts
    }
}

/// The answer in a sentence: what each way to keep data loses on each medium.
pub(super) fn headline(cells: &[RedisCell]) -> Option<String> {
    let how = cells.iter().find_map(|cell| cell.lost.as_ref())?.how;
    // Of the shortest values, where all are in the table.
    let values = cells.iter().min_by_key(|cell| cell.payload)?.values();
    let mut said = Vec::new();
    for mode in Mode::ALL {
        let losses: Vec<String> = cells
            .iter()
            .filter(|cell| cell.mode == mode.name() && cell.values() == values)
            .filter_map(|cell| Some(format!("{} on {}", cell.lost.as_ref()?.in_words(), cell.medium)))
            .collect();
        if !losses.is_empty() {
            said.push(format!("{mode} loses {}", losses.join(", ")));
        }
    }
    Some(format!("{} in the middle of its load, at worst: {}.", capital(how.happened()), said.join("; ")))
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::{redis_cells, redis_headline};
    use crate::testing::{Run, Step};
    use basics::job::{Block, Engine};
    use basics::pressure::Load;
    use basics::redis::Served;
    use basics::{Bytes, Job, Side};

    fn visit(mode: Mode, gone: u64, of: u64, oldest_ms: u64) -> Step {
        let job = Job { engine: Engine::Resp, block: Block::Fixed(Bytes(64)), ..Job::default() };
        let mut step = Step::new(mode.name(), "sd", job);
        let mut write = Side { bytes: 64 * of, ..Side::default() };
        write.latency.record_n(Nanos::from_millis(1), of);
        (step.write, step.elapsed) = (write, Nanos::from_millis(1000));
        let lost = Lost {
            how: Lose::Power,
            at: Nanos::from_millis(900),
            of,
            acknowledged: gone,
            oldest: (gone > 0).then(|| Nanos::from_millis(oldest_ms)),
            did_not_start: (oldest_ms == 0).then(|| "Bad file format".to_owned()),
            longest_fsync: None,
        };
        let served = Served { lost: Some(lost), ..Served::default() };
        step.load = Some(Load { redis: Some(Box::new(served)), ..Load::default() });
        step
    }

    #[test]
    fn the_worst_of_all_seeds_is_told() {
        let steps = [
            visit(Mode::MemoryOnly, 900, 900, 900),
            visit(Mode::AofEverysec, 50, 900, 400),
            visit(Mode::AofAlways, 0, 90, 1),
            visit(Mode::MemoryOnly, 500, 500, 500),
            visit(Mode::AofEverysec, 20, 500, 1200),
            visit(Mode::AofAlways, 0, 80, 1),
        ];
        let cells = redis_cells(&Run::default().steps(steps).view());
        let lost: Vec<&Loss> = cells.iter().map(|cell| cell.lost.as_ref().unwrap()).collect();
        assert_eq!((lost[0].acknowledged, lost[0].of, lost[0].all_gone, lost[0].seeds), (900, 900, 2, 2));
        // The most writes of one visit, the greatest age of another.
        assert_eq!((lost[1].acknowledged, lost[1].of, lost[1].oldest), (50, 900, Some(Nanos::from_millis(1200))));
        assert_eq!((lost[2].acknowledged, lost[2].losing, lost[2].oldest), (0, 0, None));
        assert_eq!(
            redis_headline(&cells).unwrap(),
            "Cut off from power in the middle of its load, at worst: memory-only loses all on sd; aof-everysec loses the last 1.20 s on \
             sd; aof-always loses nothing on sd."
        );
        assert!(cells[1].why.contains("something was gone, at worst 50 of 900"), "{}", cells[1].why);
        assert!(cells[0].peak.get().is_none(), "nobody looked at a server that was gone");
    }

    #[test]
    fn a_server_that_did_not_start_is_told_with_its_words() {
        let steps = [visit(Mode::AofAlways, 70, 70, 0), visit(Mode::AofAlways, 3, 80, 20)];
        let cell = redis_cells(&Run::default().steps(steps).view()).remove(0);
        let lost = cell.lost.as_ref().unwrap();
        assert_eq!((lost.did_not_start, lost.losing, lost.all_gone), (1, 2, 1));
        assert!(cell.why.contains("did not start again: Bad file format"), "{}", cell.why);
        assert_eq!((lost.in_words().as_str(), lost.in_a_word()), ("all in 1 of 2 visits", "all"));
    }
}
