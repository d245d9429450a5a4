//! The desktop article's checks as JSON.

use super::{Object, number, rounded};
use crate::desktop_check::DesktopCheck;
use crate::view::view;
use basics::Known;
use record::Record;
use serde_json::{Value, json};

/// `check --for desktop --json`.
pub fn desktop_check(check: &DesktopCheck) -> Value {
    let types = |compsize: &quoted::Compsize| -> Value {
        let row = |row: &quoted::CompsizeRow| json!({"type": row.kind, "percent": number(row.percent), "disk_B": row.disk_b, "uncompressed_B": row.uncompressed_b});
        compsize.types.iter().map(row).collect()
    };
    let zswap = match &check.zswap {
        Known::Unknown(why) => json!({"why": why.to_string()}),
        Known::Is(zswap) => Object::default()
            .with("compressor", zswap.compressor.as_str())
            .maybe("max_pool_percent", zswap.max_pool_percent)
            .maybe("pool_B", zswap.pool.map(|pool| pool.0))
            .maybe("stored_B", zswap.stored.map(|stored| stored.0))
            .maybe("ratio", zswap.ratio().map(number))
            .build(),
    };
    let files = match &check.files {
        Known::Unknown(why) => json!({"why": why.to_string()}),
        Known::Is(compsize) => json!({"types": types(compsize)}),
    };
    let build: Vec<Value> = study::build_rows(&view(&check.build)).iter().map(super::desktop::built).collect();
    Object::default()
        .with("schema", "tiermark.check-desktop/1")
        .with("dir", check.dir.display().to_string())
        .with("iozone", run(&check.iozone))
        .maybe("iozone_before", check.before.as_ref().map(run))
        .with("zeros", run(&check.zeros))
        .with("compression", files)
        .with("zswap", zswap)
        .with("build", json!({"run": check.build.run.id.to_string(), "rows": build}))
        .build()
}

fn run(record: &Record) -> Value {
    let figures = study::published::figures(&view(record)).map(|figures| rounded(json!(figures)));
    Object::default()
        .with("run", record.run.id.to_string())
        .maybe("tier", record.steps.first().and_then(|step| step.tier.clone()))
        .maybe("figures", figures)
        .build()
}
