//! A browser and a compilation as JSON: a row for each set-up, and what one is against another.

use super::{Object, number};
use serde_json::{Value, json};
use study::{BuildRow, DesktopRow, DesktopVerdict};

/// A set-up under a browser.
pub(super) fn row(row: &DesktopRow) -> Value {
    let two =
        |names: [&'static str; 2]| move |both: &(f64, f64)| json!({names[0]: number(both.0), names[1]: number(both.1)});
    Object::default()
        .with("setup", row.setup.as_str())
        .known("wait_s", &row.wait_s, |v| number(*v))
        .known("start_s", &row.start_s, |v| number(*v))
        .known("interactive_s", &row.interactive_s, two(["median", "longest"]))
        .known("switch_s", &row.switch_s, two(["p50", "p95"]))
        .known("longest_freeze_s", &row.longest_freeze_s, |v| number(*v))
        .known("answer_p99_ms", &row.answer_p99_ms, |v| number(*v))
        .known("pages", &row.pages, |(opened, alive, crashed)| {
            json!({"opened": number(*opened), "alive": number(*alive), "crashed": number(*crashed)})
        })
        .known("swap_MB", &row.swap_mb, two(["in", "out"]))
        .known("disk_MB", &row.disk_mb, two(["read", "written"]))
        .known("major_faults", &row.major_faults, |v| number(*v))
        .known("memory_percent", &row.memory_percent, two(["some", "full"]))
        .known("io_percent", &row.io_percent, two(["some", "full"]))
        .known("cpu_percent", &row.cpu_percent, |v| number(*v))
        .known("zswap", &row.zswap, two(["ratio", "most_MB"]))
        .known("files_ratio", &row.files_ratio, |v| number(*v))
        .with("visits", row.visits)
        .with("why", row.why.as_str())
        .build()
}

/// One set-up against the first.
pub(super) fn verdict(verdict: &DesktopVerdict) -> Value {
    let effect = verdict
        .effect
        .percent
        .map(|(low, mid, high)| json!({"low": number(low), "mid": number(mid), "high": number(high)}));
    Object::default()
        .with("from", verdict.from.as_str())
        .with("to", verdict.to.as_str())
        .with("verdict", verdict.effect.verdict.as_str())
        .maybe("effect_percent", effect)
        .with("acts", verdict.acts)
        .with("visits", verdict.visits)
        .with("sentence", verdict.sentence.as_str())
        .build()
}

/// A compilation.
pub(super) fn built(row: &BuildRow) -> Value {
    Object::default()
        .with("tier", row.tier.as_str())
        .known("build_s", &row.build_s, |v| number(*v))
        .known("files_per_minute", &row.per_minute, |v| number(*v))
        .known("slower_percent", &row.slower_percent, |v| number(*v))
        .known("minutes_to_throttling", &row.minutes_to_throttling, |v| number(*v))
        .known("frequency_lost_percent", &row.frequency_lost_percent, |v| number(*v))
        .known("MHz", &row.mhz, |(top, last)| json!({"highest": number(*top), "last_quarter": number(*last)}))
        .known(
            "temperature_C",
            &row.temperature_c,
            |(begin, top)| json!({"begin": number(*begin), "highest": number(*top)}),
        )
        .known("cpu_percent", &row.cpu_percent, |v| number(*v))
        .with("visits", row.visits)
        .with("why", row.why.as_str())
        .build()
}
