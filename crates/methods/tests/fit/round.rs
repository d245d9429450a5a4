//! Round trips: what a device is comes out of its measurements again, and nothing that it is not.

use crate::support::{fit, profile, run_method, run_on_one};
use profile::Profile;
use profile::format::{Direction, Pattern};

/// Time that an operation of so many bytes takes on the medium and the link, µs.
fn alone(profile: &Profile, pattern: &Pattern, size: f64) -> f64 {
    let link = profile.link.unwrap_or_default();
    let rate = |rate: Option<f64>| rate.map_or(0.0, |rate| size / rate);
    pattern.latency_us.as_ref().map_or(0.0, profile::distribution::Latency::mean_us)
        + link.command_us.unwrap_or(0.0)
        + rate(pattern.bandwidth_mbps).max(rate(link.bandwidth_mbps))
}

/// One line for a figure that is off by more than `percent`.
fn off(what: &str, found: f64, truth: f64, percent: f64) -> String {
    let error = 100.0 * (found / truth - 1.0);
    if error.abs() <= percent {
        String::new()
    } else {
        format!("{what}: {found:.4}, truth {truth:.4}: {error:+.1} %\n")
    }
}

fn compare(name: &str, truth: &Profile, found: &Profile) -> String {
    let mut out = String::new();
    for (side, was, is) in [("read", &truth.read, &found.read), ("write", &truth.write, &found.write)] {
        let Some(was) = was else { continue };
        let Some(is) = is else {
            out.push_str(&format!("{name} {side}: not found\n"));
            continue;
        };
        let sequential = |d: &Direction| d.sequential.clone().unwrap_or_else(|| d.random.clone());
        let patterns =
            [("random", was.random.clone(), is.random.clone()), ("sequential", sequential(was), sequential(is))];
        for (order, was, is) in patterns {
            for size in [4096.0, 131_072.0] {
                let (t, f) = (alone(truth, &was, size), alone(found, &is, size));
                out.push_str(&off(&format!("{name} {side} {order} {size} B"), f, t, 10.0));
            }
            let rate = |profile: &Profile, pattern: &Pattern| {
                1e6 / (alone(profile, pattern, 2e6) - alone(profile, pattern, 1e6)).max(1e-9)
            };
            let (t, f) = (rate(truth, &was), rate(found, &is));
            if t < 1e5 {
                out.push_str(&off(&format!("{name} {side} {order} MB/s"), f, t, 10.0));
            }
        }
    }
    out
}

const PLAIN: &str = "channels = 8\n[read]\nlatency_us = { mean = 90, sigma = 0.2 }\nbandwidth_MBps = 300\n\
                     [write]\nlatency_us = { mean = 30, sigma = 0.3 }\nbandwidth_MBps = 200\n";

#[test]
fn what_a_device_is_comes_out_again() {
    let made_up = [
        ("channels", PLAIN.to_owned()),
        (
            "link",
            "[link]\ncommand_us = 12\nbandwidth_MBps = 500\n[read]\nlatency_us = { mean = 80, sigma = 0.3 }\n\
                  [write]\nlatency_us = 40"
                .to_owned(),
        ),
        (
            "card",
            "channels = 1\n[read]\nlatency_us = 400\nbandwidth_MBps = 90\n[write]\nlatency_us = { mean = 2000, \
                  sigma = 0.3 }\nbandwidth_MBps = 30"
                .to_owned(),
        ),
    ];
    let shipped = ["sata-usb3-pi5", "optane-pi5", "nvme-usb3-pi5", "p4800x"];
    let all = made_up
        .iter()
        .map(|(name, toml)| ((*name).to_owned(), profile(toml)))
        .chain(shipped.iter().map(|name| ((*name).to_owned(), profile::find(name).unwrap().clone())));
    let mut failures = String::new();
    for (name, truth) in all {
        let found = fit(&run_method(&truth, &["runtime=24s"])).profile;
        let told = compare(&name, &truth, &found);
        if !told.is_empty() {
            failures.push_str(&told);
            failures.push_str(&found.to_toml().unwrap());
        }
        for (what, is) in [
            ("cache", found.cache.is_some()),
            ("stall", !found.stalls.is_empty()),
            ("zone", !found.zones.is_empty()),
            ("slowdown", found.slowdown.is_some()),
            ("mixed", found.mixed.is_some()),
            ("flush", found.flush.is_some()),
        ] {
            if is {
                failures.push_str(&format!("{name}: a {what} that is not there: {}\n", found.to_toml().unwrap()));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Bug: the writes of a review meet a cache that is full already, and the rate at which it empties was taken for the medium's.
#[test]
fn what_a_review_writes_into_a_full_cache_is_not_the_mediums_rate() {
    let truth = profile(
        "channels = 4\n[read]\nlatency_us = { mean = 900, sigma = 0.2 }\nbandwidth_MBps = 60\n\
         [write]\nlatency_us = { mean = 400, sigma = 0.2 }\nbandwidth_MBps = 40\n\
         [cache]\nsize = \"100MB\"\ndrain_MBps = 10",
    );
    let found = fit(&run_on_one("ssd-review", &truth, &[])).profile;
    let cache = found.cache.unwrap_or_else(|| panic!("a cache is found: {}", found.to_toml().unwrap()));
    let mut told = off("cache size", cache.size.0 as f64 / 1e6, 100.0, 10.0);
    told += &off("cache drain", cache.drain_mbps, 10.0, 10.0);
    let stream = found.write.as_ref().and_then(|write| write.sequential.as_ref()).expect("writes in sequence");
    told += &off("rate of writes in sequence", stream.bandwidth_mbps.unwrap_or_default(), 40.0, 10.0);
    assert!(told.is_empty(), "{told}{}", found.to_toml().unwrap());
}

/// Each of what a device may have beside latency and bandwidth is found, with its size, and the others stay away.
#[test]
fn what_is_special_is_found_and_nothing_else() {
    let mut failures = String::new();
    let mut found = |name: &str, toml: &str, words: &[&str]| -> Profile {
        let found = fit(&run_method(&profile(&format!("{PLAIN}{toml}")), words)).profile;
        let seen = [
            ("cache", found.cache.is_some()),
            ("stall", !found.stalls.is_empty()),
            ("zone", !found.zones.is_empty()),
            ("slowdown", found.slowdown.is_some()),
            ("flush", found.flush.is_some()),
            ("mixed", found.mixed.is_some()),
        ];
        let seen: Vec<&str> = seen.iter().filter(|(_, is)| *is).map(|(what, _)| *what).collect();
        if seen != [name.split(' ').next().unwrap()] {
            failures.push_str(&format!("{name}: found {seen:?}\n{}\n", found.to_toml().unwrap()));
        }
        found
    };
    let mut told = String::new();
    for (size, drain) in [(600.0, 40.0), (1500.0, 90.0), (250.0, 10.0)] {
        let toml = format!("[cache]\nsize = \"{size}MB\"\ndrain_MBps = {drain}");
        if let Some(cache) = found(&format!("cache {size}"), &toml, &["runtime=50s"]).cache {
            told += &off("cache size", cache.size.0 as f64 / 1e6, size, 10.0);
            told += &off("cache drain", cache.drain_mbps, drain, 10.0);
        }
    }
    for (period, length, spread) in [(1000.0, 60.0, 0.0), (400.0, 30.0, 0.3), (2500.0, 200.0, 0.0)] {
        let toml = format!("[[stall]]\nperiod_ms = {period}\nlength_ms = {length}\nspread = {spread}");
        if let Some(stall) = found(&format!("stall {period}"), &toml, &["runtime=50s"]).stalls.first() {
            told += &off("stall period", stall.period_ms, period, 10.0);
            told += &off("stall length", stall.length_ms, length, 10.0);
        }
    }
    let zones = "[[zone]]\nfrom = 0\nto = 0.1\nfactor = 2\n[[zone]]\nfrom = 0.9\nto = 1\nfactor = 3";
    if let [first, last] = found("zone", zones, &["runtime=24s"]).zones.as_slice() {
        told += &off("zone to", first.to, 0.1, 10.0);
        told += &off("zone from", last.from, 0.9, 10.0);
        told += &off("zone factor", first.factor, 2.0, 10.0);
        told += &off("zone factor", last.factor, 3.0, 10.0);
    }
    let flush = "[flush]\nlatency_us = 900\ndirty_us_per_MB = 4000";
    if let Some(flush) = found("flush", flush, &["runtime=24s"]).flush {
        told += &off("flush", flush.latency_us.unwrap().mean_us(), 900.0, 10.0);
        told += &off("flush dirty", flush.dirty_us_per_mb.unwrap_or(0.0), 4000.0, 10.0);
    }
    let mixed = "[mixed]\nread_factor = 2.5\nwrite_factor = 1.5";
    if let Some(mixed) = found("mixed", mixed, &["runtime=24s"]).mixed {
        told += &off("mixed read", mixed.read_factor, 2.5, 12.0);
        told += &off("mixed write", mixed.write_factor, 1.5, 12.0);
    }
    let slowdown = "[slowdown]\nafter_s = 1.5\nfactor = 2";
    if let Some(slowdown) = found("slowdown", slowdown, &["runtime=50s"]).slowdown {
        told += &off("slowdown after", slowdown.after_s, 1.5, 10.0);
    }
    assert!(failures.is_empty() && told.is_empty(), "{failures}{told}");
}

/// Slow operations that come by chance are no stalls, and a device without a fault has none with any seed.
#[test]
fn chance_is_not_taken_for_a_fault() {
    let tails = "channels = 1\n[read]\nlatency_us = { mean = 500, sigma = 0.5, tail = { share = 0.01, median = 40000, sigma = 0.1 } }\n\
                 [write]\nlatency_us = { mean = 900, sigma = 1.1, tail = { share = 0.01, median = 70000, sigma = 0.1 } }\nbandwidth_MBps = 90";
    let wide = "channels = 4\n[read]\nlatency_us = { mean = 500, sigma = 1.3 }\n[write]\nlatency_us = { mean = 900, sigma = 1.3 }\nbandwidth_MBps = 90";
    let mut failures = String::new();
    for (name, toml) in [("tails", tails), ("wide", wide), ("plain", PLAIN)] {
        for seed in 0..8 {
            let found = fit(&run_method(&profile(toml), &["runtime=20s", &format!("seed={seed}")])).profile;
            let flush = found.flush.is_some();
            let is = found.cache.is_some() || !found.stalls.is_empty() || !found.zones.is_empty();
            if is || found.slowdown.is_some() || found.mixed.is_some() || flush {
                let Profile { cache, stalls, zones, slowdown, mixed, flush, .. } = found;
                failures.push_str(&format!(
                    "{name} {seed}: {cache:?} {stalls:?} {zones:?} {slowdown:?} {mixed:?} {flush:?}\n"
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
