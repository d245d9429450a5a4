//! Runs of figures that other programs printed, held against each other figure by figure where the names match and nothing
//! says that different work was done. Such figures carry no noise of their own: only the usual scatter between runs tells.

use crate::model::RunView;
use quoted::figures::Figure;

/// The parts of a distribution of latencies that are compared; the others follow them or are chance.
const TELLING: [&str; 5] = ["mean", "p50", "p99", "p99_9", "p99_99"];

/// Figures of one name on both sides, a value for each run.
pub struct Pair {
    /// The name, with its unit.
    pub name: String,
    /// False when less is better.
    pub more_is_better: bool,
    /// Of the runs before.
    pub before: Vec<f64>,
    /// Of the runs after.
    pub after: Vec<f64>,
}

/// The pairs, and what could not be paired, each a sentence.
pub fn pairs(before: &[RunView<'_>], after: &[RunView<'_>]) -> (Vec<Pair>, Vec<String>) {
    let quoted = |runs: &[RunView<'_>]| runs.iter().filter_map(|run| run.quoted).cloned().collect::<Vec<_>>();
    let (old, new) = (quoted(before), quoted(after));
    let (Some(first), Some(_)) = (old.first(), new.first()) else {
        let alone = |when: &str| format!("the quoted figures {when}: the other side was measured step by step");
        let sides = [(!old.is_empty(), "before"), (!new.is_empty(), "after")];
        return (Vec::new(), sides.into_iter().filter(|(is, _)| *is).map(|(_, when)| alone(when)).collect());
    };
    let known = first.asked();
    for other in old.iter().chain(&new).skip(1) {
        let asked = other.asked();
        let differs = |(name, value): &&(&str, String)| asked.iter().any(|(other, is)| other == name && is != value);
        if let Some((name, _)) = known.iter().find(differs) {
            return (Vec::new(), vec![format!("the quoted figures: {name} differs, so they cannot be compared")]);
        }
    }
    let lists = |side: &[quoted::Figures]| side.iter().map(quoted::Figures::list).collect::<Vec<_>>();
    let (old, new) = (lists(&old), lists(&new));
    let mut pairs: Vec<Pair> = Vec::new();
    let mut alone = Vec::new();
    for figure in old.iter().chain(&new).flatten().filter(|figure| tells(figure)) {
        let Some(more_is_better) = figure.more_is_better else { continue };
        let values = |side: &[Vec<Figure>]| {
            let same = side.iter().flatten().filter(|other| other.name == figure.name && other.value > 0.0);
            same.map(|figure| figure.value).collect::<Vec<_>>()
        };
        let (before, after) = (values(&old), values(&new));
        let sentence = match (before.is_empty(), after.is_empty()) {
            (false, false) => {
                if pairs.iter().all(|pair| pair.name != figure.name) {
                    pairs.push(Pair { name: figure.name.clone(), more_is_better, before, after });
                }
                continue;
            }
            (false, true) => format!("{}: only before", figure.name),
            (true, false) => format!("{}: only after", figure.name),
            (true, true) => format!("{}: zero on both sides", figure.name),
        };
        if !alone.contains(&sentence) {
            alone.push(sentence);
        }
    }
    (pairs, alone)
}

fn tells(figure: &Figure) -> bool {
    let latency = figure.name.contains("lat_us.");
    !latency || figure.name.rsplit('.').next().is_some_and(|part| TELLING.contains(&part))
}

#[cfg(test)]
mod tests {
    use crate::model::Verdict;
    use crate::testing::Run;

    fn runs(text: &str) -> Vec<Run> {
        let blocks = quoted::read(text).unwrap();
        blocks.into_iter().map(|block| Run { quoted: Some(block.figures), ..Run::default() }).collect()
    }

    fn compared(before: &str, after: &str) -> crate::Comparison {
        let (before, after) = (runs(before), runs(after));
        let [before, after] = [&before, &after].map(|runs| runs.iter().map(Run::view).collect::<Vec<_>>());
        crate::compare(&before, &after)
    }

    fn hdparm(cached: &str, disk: &str) -> String {
        let line = |what: &str, rate: &str| match rate {
            "" => String::new(),
            rate => format!("Timing {what} reads: 4 MB in 2.00 seconds = {rate} MB/sec\n"),
        };
        line("cached", cached) + &line("disk", disk)
    }

    #[test]
    fn figures_of_one_name_are_held_against_each_other() {
        let found = compared(&hdparm("400.00", "100.00"), &hdparm("404.00", "50.00"));
        let verdicts: Vec<_> =
            found.figures.iter().map(|f| (f.figure.as_str(), f.before, f.after, f.verdict)).collect();
        let wanted = [("cached_MiBps", 400.0, 404.0, Verdict::Same), ("disk_MiBps", 100.0, 50.0, Verdict::Worse)];
        assert_eq!(verdicts, wanted);
        let half = compared(&hdparm("400.00", ""), &hdparm("400.00", "50.00"));
        assert_eq!((half.figures.len(), half.unmatched), (1, vec!["disk_MiBps: only after".to_owned()]));
    }

    #[test]
    fn repeats_show_their_own_noise() {
        let three = |rates: [&str; 3]| rates.map(|rate| hdparm("", rate)).concat();
        let found = compared(&three(["100.00", "100.50", "99.50"]), &three(["105.00", "105.50", "104.50"]));
        assert_eq!(found.figures[0].verdict, Verdict::Better, "{found:?}");
    }

    #[test]
    fn figures_of_other_work_or_of_steps_are_left_out() {
        let other = hdparm("400.00", "100.00").replace("Timing", "Timing O_DIRECT");
        let found = compared(&hdparm("400.00", "100.00"), &other);
        assert!(found.figures.is_empty() && found.unmatched[0].contains("past the page cache differs"), "{found:?}");
        let measured = [Run::default()];
        let quoted = runs(&hdparm("", "50.00"));
        let [a, b] = [&measured[..], &quoted[..]].map(|runs| runs.iter().map(Run::view).collect::<Vec<_>>());
        assert_eq!(
            crate::compare(&a, &b).unmatched,
            ["the quoted figures after: the other side was measured step by step"]
        );
    }
}
