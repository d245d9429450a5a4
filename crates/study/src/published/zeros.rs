//! Rates of zeros beside rates of data that compress less or not at all, in MB/s; the fsync is in the time.

use crate::model::RunView;
use basics::Bytes;
use serde::Serialize;

/// Written rates, MB/s (10^6).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Zeros {
    /// All zeros.
    #[serde(rename = "zeros_MBps", skip_serializing_if = "Option::is_none")]
    pub zeros_mbps: Option<f64>,
    /// 2:1.
    #[serde(rename = "compressible_MBps", skip_serializing_if = "Option::is_none")]
    pub compressible_mbps: Option<f64>,
    /// Nothing to gain.
    #[serde(rename = "incompressible_MBps", skip_serializing_if = "Option::is_none")]
    pub incompressible_mbps: Option<f64>,
}

pub(super) fn figures(run: &RunView<'_>) -> Zeros {
    let rate = |name: &str| {
        let step = run.steps.iter().find(|step| step.name == name && step.is_whole())?;
        Some(Bytes(step.write.bytes).mbps(step.elapsed))
    };
    Zeros {
        zeros_mbps: rate("zeros"),
        compressible_mbps: rate("compressible"),
        incompressible_mbps: rate("incompressible"),
    }
}

impl Zeros {
    pub(super) fn lines(&self) -> Vec<String> {
        let of = [
            ("zeros", self.zeros_mbps),
            ("compress 2:1", self.compressible_mbps),
            ("incompressible", self.incompressible_mbps),
        ];
        of.into_iter().filter_map(|(word, rate)| Some(format!("{word:<15}{:>8.1} MB/s", rate?))).collect()
    }
}
