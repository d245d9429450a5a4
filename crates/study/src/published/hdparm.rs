//! `hdparm -T` and `-t`: mebibytes moved over the time that it took, in hdparm's own two lines.

use crate::model::{RunView, StepView};
use basics::units::MIB;
use serde::Serialize;

/// Both rates, MiB/s (hdparm prints them as "MB/sec").
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hdparm {
    /// `-T`: from the page cache.
    #[serde(rename = "cached_MiBps", skip_serializing_if = "Option::is_none")]
    pub cached_mibps: Option<f64>,
    /// `-t`: from the disk.
    #[serde(rename = "disk_MiBps", skip_serializing_if = "Option::is_none")]
    pub disk_mibps: Option<f64>,
    /// MiB and seconds behind each.
    #[serde(skip)]
    behind: [Option<(f64, f64)>; 2],
}

pub(super) fn figures(run: &RunView<'_>) -> Hdparm {
    let step = |name: &str| run.steps.iter().find(|step| step.name == name && step.is_whole()).map(moved);
    let behind = [step("cached"), step("disk")];
    let [cached_mibps, disk_mibps] = behind.map(|of| of.map(|(mib, seconds)| mib / seconds));
    Hdparm { cached_mibps, disk_mibps, behind }
}

/// MiB and seconds.
fn moved(step: &StepView<'_>) -> (f64, f64) {
    (step.read.bytes as f64 / MIB as f64, step.elapsed.secs())
}

impl Hdparm {
    pub(super) fn lines(&self) -> Vec<String> {
        let words = ["Timing cached reads:  ", "Timing buffered disk reads:"];
        let line = |(word, behind): (&str, Option<(f64, f64)>)| {
            let (mib, seconds) = behind?;
            Some(format!("{word} {mib:.0} MiB in {seconds:5.2} seconds = {:.2} MiB/s", mib / seconds))
        };
        words.into_iter().zip(self.behind).filter_map(line).collect()
    }
}
