//! What stands between a job and the disk, on a file system that compresses and on a disk whose rate is known: whatever measured
//! the compressor or the page cache says so.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Place, Undo, emulation, sh};
use serde_json::Value;
use study::Finding;

/// 30 MB/s for all that is under way together.
const SLOW: &str =
    "name = \"slow\"\n[link]\nbandwidth_MBps = 30\n[read]\nlatency_us = 100\n[write]\nlatency_us = 100\n";

/// What a study of the last run finds, with the remarks about single tiers.
fn findings(home: &Home) -> Vec<Finding> {
    let record = home.last();
    study::explain(&report::view(&record)).each_finding().into_iter().cloned().collect()
}

/// The finding of this name about the disk.
fn finding(home: &Home, id: &str, disk: &str) -> Option<Finding> {
    findings(home).into_iter().find(|finding| finding.id == id && finding.tier.as_deref() == Some(disk))
}

fn figure(run: &Value, name: &str) -> f64 {
    run["method"]["figures"][name].as_f64().unwrap_or_else(|| panic!("no {name}: {run}"))
}

/// Whether this kernel takes direct writes to files with checksums through the page cache.
fn buffers_direct_writes() -> bool {
    machine::read(&machine::Root::live()).kernel_version() >= Some((6, 14))
}

#[test]
fn compression_on_a_slow_disk_is_said() {
    let test = "compression_on_a_slow_disk_is_said";
    if !emulation(test, &["mkfs.btrfs"]) {
        return;
    }
    let place = Place::new();
    let home = &place.home;
    std::fs::write(home.path().join("slow.toml"), SLOW).unwrap();
    let disk = place.start_as("./slow.toml", &["--size", "1GiB"]);
    let name = disk.device.strip_prefix("/dev/").unwrap();
    sh(&format!("mkfs.btrfs -q -f -K {}", disk.device));
    let at = place.mount_point();
    sh(&format!("mount -o compress-force=zstd:1 {} {}", disk.device, at.display()));
    let mounted = Undo(format!("umount {}", at.display()));
    let on = at.to_str().unwrap();

    let zeros = home.json(&["run", "zeros", "--on", on, "--set", "size=96MiB"]);
    let (empty, half, solid) =
        (figure(&zeros, "zeros_MBps"), figure(&zeros, "compressible_MBps"), figure(&zeros, "incompressible_MBps"));
    println!("zeros {empty:.1}, compressible {half:.1}, incompressible {solid:.1} MB/s");
    assert!((24.0..=30.5).contains(&solid), "the disk does 30 MB/s: {zeros}");
    assert!(empty > 3.0 * solid && half > 1.5 * solid, "{zeros}");
    let found = finding(home, "compression", name).unwrap();
    assert!(found.text.contains("btrfs (zstd:1) compresses: zeros ") && found.weight >= 30, "{found:?}");

    // What iozone writes unless told otherwise compresses; what we write instead does not.
    let iozone = |fill: &str, size: &str| {
        let (fill, size) = (format!("fill={fill}"), format!("size={size}"));
        home.json(&["run", "iozone", "--on", on, "--set", &size, "--set", "records=1M", "--set", &fill])
    };
    // So much that it takes several of the observer's tenths of a second.
    let flattered = iozone("published", "256MiB");
    let found = finding(home, "compression", name).unwrap();
    assert!(found.weight >= 90 && found.text.contains("passed the disk"), "{found:?}");
    let shown = home.run(&["show", "last"]).code(0).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("for they compress: the rate is not the disk's"), "{shown}");
    let buffered = finding(home, "direct-writes-buffered", name);
    assert_eq!(buffered.is_some(), buffers_direct_writes(), "{buffered:?}");
    for step in flattered["steps"].as_array().unwrap() {
        let noted = step["notes"].to_string().contains("the direct writes were buffered ones");
        let writes = step["job"]["rw"].as_str().unwrap().contains("write");
        assert_eq!(noted, writes && buffers_direct_writes(), "{step}");
    }
    let honest = iozone("honest", "16MiB");
    let found = finding(home, "compression", name).unwrap();
    assert!(found.weight < 30 && found.text.contains("data that do not compress"), "{found:?}");
    let write = |run: &Value| run["method"]["figures"]["rows"][0]["write"].as_f64().unwrap();
    println!("iozone write, KiB/s: published {}, honest {}", write(&flattered), write(&honest));
    assert!(write(&honest) < 30.5e6 / 1024.0 && write(&flattered) > 2.0 * write(&honest), "{flattered} {honest}");

    let check = home.json(&["check", "--quick", "--in", on]);
    let tiers: Vec<_> = check["tiers"].as_array().unwrap().iter().filter(|tier| tier["place"] == on).collect();
    let [tier] = tiers.as_slice() else { panic!("not measured once: {check}") };
    let said = |id: &str| tier["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id).cloned();
    let text = said("compression").unwrap_or_else(|| panic!("{tier}"))["text"].as_str().unwrap().to_owned();
    println!("check: {text}");
    assert!(text.contains("compresses: zeros "), "{text}");
    assert_eq!(said("direct-writes-buffered").is_some(), buffers_direct_writes(), "{tier}");
    assert!(tier["seq_write_MBps"].as_f64().unwrap() < 31.0, "{tier}");

    drop(mounted);
    // Without checksums a direct write is one.
    sh(&format!("mount -o nodatasum {} {}", disk.device, at.display()));
    let mounted = Undo(format!("umount {}", at.display()));
    let plain = home.json(&["run", "iozone", "--on", on, "--set", "size=8MiB", "--set", "records=1M"]);
    assert!(!plain["steps"].to_string().contains("buffered ones"), "{plain}");
    assert!(finding(home, "direct-writes-buffered", name).is_none());
    drop(mounted);
    disk.stop();
    place.assert_clean();
}
