//! The questions, each with a device made for it.

use super::lab::Lab;
use super::table::Row;
use profile::{Latency, Profile};
use serde_json::Value;

/// Every question that is about time, asked here.
pub fn ask(lab: &Lab) -> Vec<Row> {
    let all = [latency, channels, ceiling, cliff, stall, zones, flush];
    all.iter().flat_map(|question| question(lab)).collect()
}

fn mean(latency: Option<&Latency>) -> Option<f64> {
    latency.map(Latency::mean_us)
}

/// The latency of a run's only step.
fn lat(run: &Value, side: &str, which: &str) -> Option<f64> {
    run["steps"][0][side]["lat_us"][which].as_f64()
}

fn latency(lab: &Lab) -> Vec<Row> {
    const WHAT: &str = "base latency";
    let device = lab.device(
        "latency",
        "size = \"256MiB\"\n[write]\nlatency_us = 700\n\
         [read]\nlatency_us = [[0, 300], [50, 400], [98, 500], [98.5, 3000], [100, 3000]]",
    );
    let read = device.job("rw=randread runtime=2s");
    let write = device.job("rw=randwrite runtime=1s");
    vec![
        Row::new(WHAT, "median of reads, µs", 400.0, lat(&read, "read", "p50")),
        Row::new(WHAT, "p99 of reads, µs", 3000.0, lat(&read, "read", "p99")),
        Row::new(WHAT, "mean of writes, µs", 700.0, lat(&write, "write", "mean")),
    ]
}

fn channels(lab: &Lab) -> Vec<Row> {
    const WHAT: &str = "channels";
    let device = lab.device("channels", "size = \"1GiB\"\nchannels = 4\n[read]\nlatency_us = 400\nbandwidth_MBps = 60");
    let found = device.fit(&[
        "rw=randread runtime=800ms",
        "rw=randread bs=256k runtime=800ms",
        "rw=randread depth=32 runtime=800ms",
        "rw=randread bs=256k depth=16 runtime=800ms",
    ]);
    let read = found.read.unwrap_or_default().random;
    vec![
        Row::exact(WHAT, "how many", 4.0, found.channels.map(f64::from)),
        Row::new(WHAT, "latency of one, µs", 400.0, mean(read.latency_us.as_ref())),
        Row::new(WHAT, "bandwidth of one, MB/s", 60.0, read.bandwidth_mbps),
    ]
}

/// The fit must say of its own accord that it is the bus that limits, not the channels.
fn ceiling(lab: &Lab) -> Vec<Row> {
    const WHAT: &str = "bandwidth cap";
    let device = lab.device(
        "ceiling",
        "size = \"1GiB\"\n[link]\nbandwidth_MBps = 120\n[read]\nlatency_us = 400\nbandwidth_MBps = 200",
    );
    let found = device.fit(&[
        "rw=randread runtime=800ms",
        "rw=randread bs=256k runtime=800ms",
        "rw=randread depth=8 runtime=800ms",
        "rw=randread bs=64k depth=16 runtime=800ms",
        "rw=randread bs=256k depth=16 runtime=800ms",
    ]);
    let link = found.link.unwrap_or_default();
    vec![Row::new(WHAT, "of the link, MB/s", 120.0, link.bandwidth_mbps)]
}

fn cliff(lab: &Lab) -> Vec<Row> {
    const WHAT: &str = "write cliff";
    let device = lab.device(
        "cliff",
        "size = \"2GiB\"\nchannels = 1\n[read]\nlatency_us = 100\n[write]\nlatency_us = 100\nbandwidth_MBps = 300\n\
         [cache]\nsize = \"300MB\"\ndrain_MBps = 60",
    );
    let cache = device.fit(&["rw=write bs=1m depth=4 runtime=4s interval=20ms"]).cache;
    vec![
        Row::new(WHAT, "size of the cache, MB", 300.0, cache.map(|cache| cache.size.0 as f64 / 1e6)),
        Row::new(WHAT, "rate when it is full, MB/s", 60.0, cache.map(|cache| cache.drain_mbps)),
    ]
}

fn stall(lab: &Lab) -> Vec<Row> {
    const WHAT: &str = "stall";
    let device =
        lab.device("stall", "size = \"256MiB\"\n[read]\nlatency_us = 300\n[[stall]]\nperiod_ms = 500\nlength_ms = 40");
    let found = device.fit(&["rw=randread runtime=5s interval=10ms"]).stalls;
    vec![
        Row::new(WHAT, "period, ms", 500.0, found.first().map(|stall| stall.period_ms)),
        Row::new(WHAT, "length, ms", 40.0, found.first().map(|stall| stall.length_ms)),
    ]
}

fn zones(lab: &Lab) -> Vec<Row> {
    const WHAT: &str = "slow zones";
    let device = lab.device(
        "zones",
        "size = \"1GiB\"\nchannels = 1\n[read]\nlatency_us = 300\nbandwidth_MBps = 200\n\
         [[zone]]\nfrom = 0\nto = 0.13\nfactor = 2\n[[zone]]\nfrom = 0.62\nto = 0.8\nfactor = 3",
    );
    let found = device.profile("writes=0 runtime=10s");
    let Profile { zones, stalls, cache, slowdown, .. } = found;
    let other = stalls.len() + usize::from(cache.is_some()) + usize::from(slowdown.is_some());
    let (first, second) = (zones.first(), zones.get(1));
    vec![
        Row::exact(WHAT, "how many", 2.0, Some(zones.len() as f64)),
        Row::place(WHAT, "end of the first, part of the device", 0.13, first.map(|zone| zone.to)),
        Row::new(WHAT, "times as slow there", 2.0, first.map(|zone| zone.factor)),
        Row::place(WHAT, "begin of the second", 0.62, second.map(|zone| zone.from)),
        Row::place(WHAT, "end of the second", 0.8, second.map(|zone| zone.to)),
        Row::new(WHAT, "times as slow there", 3.0, second.map(|zone| zone.factor)),
        Row::exact(WHAT, "stalls, caches, heat that are not there", 0.0, Some(other as f64)),
    ]
}

fn flush(lab: &Lab) -> Vec<Row> {
    const WHAT: &str = "slow flush";
    let device = lab.device(
        "flush",
        "size = \"256MiB\"\n[read]\nlatency_us = 100\n[write]\nlatency_us = 300\n[flush]\nlatency_us = 6000",
    );
    let found = device.fit(&["rw=randwrite runtime=1s", "rw=randwrite fsync=1 runtime=2s"]).flush;
    vec![Row::new(WHAT, "its time, µs", 6000.0, mean(found.and_then(|flush| flush.latency_us).as_ref()))]
}

/// About bytes, which a profile in virtual time has none of.
pub fn capacity(lab: &Lab) -> Vec<Row> {
    const WHAT: &str = "fake capacity";
    let quick = "size = \"512MiB\"\n[read]\nlatency_us = 100\n[write]\nlatency_us = 100";
    let fake = lab.device("fake", &format!("real_size = \"203MiB\"\n{quick}")).capacity().real_size;
    let honest = lab.device("honest", quick).capacity().real_size;
    vec![
        Row::exact(WHAT, "what it holds, MiB", 203.0, fake.map(|size| size.0 as f64 / (1 << 20) as f64)),
        Row::exact(WHAT, "honest disks that are called fakes", 0.0, Some(f64::from(u8::from(honest.is_some())))),
    ]
}
