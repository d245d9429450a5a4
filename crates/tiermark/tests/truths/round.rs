//! A profile becomes a device, the device is measured, and what is fitted is held against the profile.

use super::lab::{Device, Lab};
use super::table::Row;
use profile::Profile;

/// A drive as it is while nothing disturbs it.
const DRIVE: &str = "size = \"4GiB\"\nchannels = 4\n[read]\nlatency_us = { mean = 300, sigma = 0.2 }\nbandwidth_MBps = 120\n\
                     [write]\nlatency_us = { mean = 200, sigma = 0.2 }\nbandwidth_MBps = 80\n";
/// Of its stall, ms.
const PERIOD: f64 = 600.0;
const LENGTH: f64 = 40.0;

/// With a cache and a stall, as a cheap drive has.
fn truth() -> String {
    let stall = format!("[[stall]]\nperiod_ms = {PERIOD}\nlength_ms = {LENGTH}");
    format!("{DRIVE}[cache]\nsize = \"700MB\"\ndrain_MBps = 80\n{stall}")
}

/// What one operation alone takes beside its bytes, µs, and the rate of its bytes, MB/s. Which part of it is the link's
/// is another question: where nothing fills either, nobody can tell.
fn alone(profile: &Profile, read: bool) -> Option<(f64, f64)> {
    let pattern = &profile.direction(read).ok()?.random;
    let link = profile.link.unwrap_or_default();
    let latency = pattern.latency_us.as_ref()?.mean_us() + link.command_us.unwrap_or(0.0);
    let per_byte = [pattern.bandwidth_mbps, link.bandwidth_mbps].into_iter().flatten().map(|rate| 1.0 / rate);
    Some((latency, 1.0 / per_byte.fold(0.0, f64::max)))
}

/// Operations a second with many under way.
fn deep(drive: &Device<'_>, rw: &str) -> Option<f64> {
    drive.job(&format!("rw=rand{rw} depth=16 runtime=2s"))["steps"][0][rw]["iops"].as_f64()
}

pub fn trip(lab: &Lab) -> Vec<Row> {
    const WHAT: &str = "round trip";
    let found = lab.device("round", &truth()).profile("runtime=60s");
    let (reads, writes) = (alone(&found, true), alone(&found, false));
    let (cache, stall) = (found.cache, found.stalls.first().copied());
    let other = found.zones.len() + usize::from(found.slowdown.is_some());
    let again = Profile { cache: None, stalls: Vec::new(), name: String::new(), ..found };
    let again = again.to_toml().unwrap().replacen("name = \"\"\n", "", 1);
    let (drive, again) = (lab.device("drive", DRIVE), lab.device("again", &again));
    let rate = |rw| (deep(&drive, rw).unwrap(), deep(&again, rw));
    let ((read, read_again), (write, write_again)) = (rate("read"), rate("write"));
    vec![
        Row::new(WHAT, "latency of reads, µs", 300.0, reads.map(|alone| alone.0)),
        Row::new(WHAT, "bandwidth of reads, MB/s", 120.0, reads.map(|alone| alone.1)),
        Row::new(WHAT, "latency of writes, µs", 200.0, writes.map(|alone| alone.0)),
        Row::new(WHAT, "bandwidth of writes, MB/s", 80.0, writes.map(|alone| alone.1)),
        Row::new(WHAT, "IOPS of reads at depth 16", read, read_again),
        Row::new(WHAT, "IOPS of writes at depth 16", write, write_again),
        Row::new(WHAT, "size of the cache, MB", 700.0, cache.map(|cache| cache.size.0 as f64 / 1e6)),
        Row::new(WHAT, "rate when it is full, MB/s", 80.0, cache.map(|cache| cache.drain_mbps)),
        Row::new(WHAT, "period of the stall, ms", PERIOD, stall.map(|stall| stall.period_ms)),
        Row::new(WHAT, "length of the stall, ms", LENGTH, stall.map(|stall| stall.length_ms)),
        Row::exact(WHAT, "zones and heat that are not there", 0.0, Some(other as f64)),
    ]
}
