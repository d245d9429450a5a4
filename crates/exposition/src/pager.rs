//! How the pager stands with each process that it helps, and what it takes itself.

use crate::text::{Family, Kind, Kind::Counter, Kind::Gauge};
use pager::{Mode, Standing};

/// Behind `tiermark_pager_`: what it is, and its value.
type OfProcess = (&'static str, Kind, &'static str, fn(&Standing) -> f64);

const PROCESS: &[OfProcess] = &[
    ("cycle_bytes", Gauge, "Memory that the process goes through in a lap.", |one| one.cycle_bytes as f64),
    ("kept_bytes", Gauge, "What of it is meant to stay.", |one| one.kept_bytes as f64),
    ("room_bytes", Gauge, "Memory that there is for it.", |one| one.room_bytes as f64),
    ("window_bytes", Gauge, "Asked for ahead of the process at most.", |one| one.window_bytes as f64),
    ("cursor_ratio", Gauge, "Where in the lap the process is, 0 to 1.", |one| one.cursor),
    ("lap_seconds", Gauge, "The last lap.", |one| one.lap_s),
    ("lap_before_seconds", Gauge, "The lap before the process was helped.", |one| one.lap_before_s),
    ("laps_total", Counter, "Laps that were followed.", |one| one.laps as f64),
    ("ahead_bytes_total", Counter, "Brought in ahead.", |one| one.ahead_bytes as f64),
    ("ahead_bytes_per_second", Gauge, "The same, over the last second.", |one| one.ahead_bytes_per_s),
    (
        "fastest_bytes_per_second",
        Gauge,
        "The most of it in any second: the disk's sequential rate, as far as it was seen.",
        |one| one.fastest_bytes_per_s,
    ),
    (
        "share_of_bound_ratio",
        Gauge,
        "Of the speed that this rate allows for what is not kept, the part that the last lap had.",
        |one| one.share_of_bound,
    ),
    ("behind_bytes_total", Counter, "Sent out behind.", |one| one.behind_bytes as f64),
    ("lost_bytes_total", Counter, "Kept, and taken by the kernel all the same.", |one| one.lost_bytes as f64),
    (
        "faults_avoided_total",
        Counter,
        "Major faults of as many laps before it was helped, less those that were left.",
        |one| one.faults_avoided as f64,
    ),
    ("faults_untold_total", Counter, "Faults that were not told because nobody read in time.", |one| one.untold as f64),
    ("refused_total", Counter, "Calls that the kernel refused.", |one| one.refused as f64),
];

/// The families of all that are helped, by `pid` and `name`; `cpu_seconds` is the pager's own CPU time.
pub fn families(all: &[Standing], cpu_seconds: f64) -> Vec<Family> {
    let labels = |one: &Standing| vec![("pid", one.pid.to_string()), ("name", one.name.clone())];
    let mut families = Vec::new();
    for (name, kind, help, value) in PROCESS {
        let family = Family::new(*kind, &format!("tiermark_pager_{name}"), *help);
        families.push(all.iter().fold(family, |family, one| family.with(labels(one), value(one))));
    }
    let mut mode =
        Family::new(Gauge, "tiermark_pager_mode", "1 for what is being done about the process, 0 for the rest.");
    let mut faults =
        Family::new(Counter, "tiermark_pager_faults_total", "Faults that were left, where they were expected or not.");
    for one in all {
        for (name, is) in [
            ("watching", Mode::Watching),
            ("learning", Mode::Learning),
            ("resting", Mode::Resting),
            ("following", Mode::Following),
        ] {
            let labels = labels(one).into_iter().chain([("mode", name.to_owned())]).collect();
            mode = mode.with(labels, f64::from(u8::from(one.mode == is)));
        }
        for (name, count) in [("yes", one.faults_expected), ("no", one.faults_unexpected)] {
            let labels = labels(one).into_iter().chain([("expected", name.to_owned())]).collect();
            faults = faults.with(labels, count as f64);
        }
    }
    let cpu = Family::new(Counter, "tiermark_pager_cpu_seconds_total", "CPU time of the pager's own.");
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    let built = Family::new(Gauge, "tiermark_build_info", "Which tiermark it is.").with(version, 1.0);
    families.extend([mode, faults, cpu.with(vec![], cpu_seconds), built]);
    families
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, write};

    #[test]
    fn each_process_stands_by_itself() {
        let one = |pid, mode| Standing { pid, name: format!("p{pid}"), mode, laps: 3, ..Standing::default() };
        let all = [one(7, Mode::Following), one(8, Mode::Watching)];
        let page = write(families(&all, 0.5), Format::OpenMetrics);
        for line in [
            "tiermark_pager_laps_total{pid=\"7\",name=\"p7\"} 3",
            "tiermark_pager_mode{pid=\"7\",name=\"p7\",mode=\"following\"} 1",
            "tiermark_pager_mode{pid=\"8\",name=\"p8\",mode=\"following\"} 0",
            "tiermark_pager_faults_total{pid=\"8\",name=\"p8\",expected=\"no\"} 0",
            "tiermark_pager_cpu_seconds_total 0.5",
        ] {
            assert!(page.lines().any(|is| is == line), "{line}: {page}");
        }
        let nobody = write(families(&[], 0.0), Format::Plain);
        assert!(!nobody.contains("pid=") && nobody.contains("tiermark_pager_cpu_seconds_total 0"), "{nobody}");
    }
}
