//! Round trips: what a device is comes out of its measurements again, and nothing that it is not.

use crate::support::{fit, profile, run_method};
use profile::Profile;
use profile::format::{Direction, Pattern};

/// Time that an operation of so many bytes takes on the medium and the link, µs.
fn alone(profile: &Profile, pattern: &Pattern, size: f64) -> f64 {
    let link = profile.link.unwrap_or_default();
    let rate = |rate: Option<f64>| rate.map_or(0.0, |rate| size / rate);
    pattern.latency_us.as_ref().map_or(0.0, profile::distribution::Latency::mean_us)
        + rate(pattern.bandwidth_mbps)
        + link.command_us.unwrap_or(0.0)
        + rate(link.bandwidth_mbps)
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
