//! The curves of sweeps for the page's script, published points on the same axes, and which curves are not drawn and why.
//! What is a curve, and whether it may be drawn, `study` says.

use super::Entry;
use super::charts::latency;
use super::page::Page;
use crate::words;
use basics::units::{KIB, MIB};
use profile::articles;
use record::Origin;
use serde_json::{Value, json};
use study::{Axis, Sweep};

/// Every curve of a run that may be drawn.
pub fn curves(entry: &Entry<'_>, page: &Page) -> Vec<Value> {
    let run = &entry.record.run;
    let one = |sweep: &Sweep<'_, '_>| {
        let first = sweep.points.first()?;
        let subject = first.step.tier.unwrap_or(first.step.target);
        let points = sweep.points.iter().map(|point| {
            let side = &point.side;
            json!({"at": point.at, "step": point.step.index, "mbps": side.mbps, "iops": side.iops,
                "ci": side.ci95_percent.get(), "lat": latency(&side.lat)})
        });
        Some(json!({
            "axis": sweep.axis.word(),
            "way": if sweep.reads { "read" } else { "write" },
            "title": sweep.title(),
            "subject": page.label(&run.id, subject),
            "color": page.color(&run.id, subject),
            "measured": run.origin == Origin::Measured,
            "points": points.collect::<Vec<_>>(),
        }))
    };
    let all = study::sweeps(&entry.view);
    all.iter().filter(|sweep| sweep.erratic().is_none()).filter_map(one).collect()
}

/// Curves that are left out, each with its reason: too erratic, or not in the plan.
pub fn not_drawn(entries: &[Entry<'_>]) -> Vec<String> {
    let mut out = Vec::new();
    for entry in entries {
        let run = &entry.record.run;
        let all = study::sweeps(&entry.view);
        for sweep in &all {
            if let Some(why) = sweep.erratic() {
                out.push(format!("{}, {}: too erratic, {why}", run.target, sweep.title()));
            }
        }
        if all.is_empty() && entries.len() == 1 {
            continue;
        }
        out.extend(words::left_out(&run.plan).iter().map(|what| format!("{}, {what}", run.target)));
    }
    out
}

/// Points of curves that others published: of the review, and iozone's rows.
pub fn published() -> Vec<Value> {
    let mut out = Vec::new();
    let mut point = |name: &str, source: &str, axis: Axis, title: &str, (at, bytes): (u64, u64), mbps: f64| {
        out.push(json!({"name": name, "source": source, "axis": axis.word(), "title": title, "at": at, "mbps": mbps,
            "iops": mbps * 1e6 / bytes as f64}));
    };
    let review = articles::review();
    for device in &review.devices {
        let (name, source) = (device.title.as_str(), review.source.as_str());
        let block = u64::from(review.method.depth_sweep_block_kib) * KIB;
        let (by_depth, by_size) = ("sequential reads of 128 KiB", "sequential reads at depth 1");
        let read = &device.read;
        if let Some(gbps) = read.qd1_128k_gbps {
            point(name, source, Axis::Depth, by_depth, (1, block), gbps * 1e3);
        }
        if let Some(gbps) = read.saturated_gbps {
            point(name, source, Axis::Depth, by_depth, (u64::from(read.saturates_at_depth), block), gbps * 1e3);
        }
        if let Some(gbps) = read.qd1_128k_by_size_at_least_gbps {
            point(name, source, Axis::Size, by_size, (block, block), gbps * 1e3);
        }
        if let Some(gbps) = read.largest_transfer_qd1_gbps {
            point(name, source, Axis::Size, by_size, (MIB, MIB), gbps * 1e3);
        }
        let (low, high) = device.write.largest_transfer_qd1_gbps;
        point(name, source, Axis::Size, "sequential writes at depth 1", (MIB, MIB), (low + high) / 2.0 * 1e3);
    }
    let pi3 = articles::pi3desk();
    for device in &pi3.devices {
        for row in &device.iozone {
            let bytes = (row.record_kib * 1024.0) as u64;
            for (title, kibps) in [
                ("sequential reads at depth 1", row.read),
                ("sequential writes at depth 1", row.write),
                ("random reads at depth 1", row.random_read),
                ("random writes at depth 1", row.random_write),
            ] {
                point(&device.title, &pi3.source, Axis::Size, title, (bytes, bytes), kibps * 1.024e-3);
            }
        }
    }
    out
}
