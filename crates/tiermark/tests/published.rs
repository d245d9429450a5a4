//! Published methods give their published figures on the published devices, in virtual time; on a real place they do what
//! their letter says and leave nothing.
#![forbid(unsafe_code)]

mod common;

use common::Home;
use serde_json::Value;

fn figures(home: &Home, words: &[&str]) -> Value {
    let run = home.json(&[&["run"], words].concat());
    assert_eq!(run["state"], "done", "{run}");
    run["method"]["figures"].clone()
}

/// The iozone matrix of the desktop article, all 36 cells, KiB/s.
#[test]
fn iozone_gives_the_matrix_of_the_article() {
    let home = Home::new();
    let columns = ["write", "rewrite", "read", "reread", "random_read", "random_write"];
    let mut off = String::new();
    for device in profile::articles::pi3desk().devices.iter() {
        let found = figures(&home, &["iozone", "--on", &format!("profile:{}", device.name)]);
        for (row, published) in found["rows"].as_array().unwrap().iter().zip(&device.iozone) {
            let published = [
                published.write,
                published.rewrite,
                published.read,
                published.reread,
                published.random_read,
                published.random_write,
            ];
            for (column, published) in columns.iter().zip(published) {
                let found = row[column].as_f64().unwrap();
                if (found / published - 1.0).abs() > 0.07 {
                    off += &format!("{} {} KiB {column}: {found:.0}, {published:.0}\n", device.name, row["record_KiB"]);
                }
            }
        }
        assert_eq!(found["rows"].as_array().unwrap().len(), 3);
    }
    assert!(off.is_empty(), "{off}");
}

/// The two devices of the last article: rates within 3 %, the access time within 5 %, and what is stable.
#[test]
fn gnome_disks_tells_the_stable_disk_from_the_other() {
    let home = Home::new();
    let near = |value: &Value, truth: f64, percent: f64| {
        let value = value.as_f64().unwrap();
        assert!((value / truth - 1.0).abs() <= percent / 100.0, "{value}, {truth}");
    };
    let usb = figures(&home, &["gnome-disks", "--as-published", "--on", "profile:ssd-usb-pi"]);
    near(&usb["read_MBps"], 34.8, 3.0);
    near(&usb["write_MBps"], 35.6, 3.0);
    near(&usb["access_ms"], 0.46, 5.0);
    assert_eq!((&usb["stable"], &usb["slow_zones"]), (&true.into(), &Value::Array(vec![])));
    let card = figures(&home, &["gnome-disks", "--on", "profile:microsd-u3"]);
    near(&card["read_MBps"], 21.0, 3.0);
    near(&card["write_MBps"], 17.2, 3.0);
    assert_eq!(card["stable"], false);
    let ends = |rw: &str| -> Vec<(f64, f64)> {
        let zones = card["slow_zones"].as_array().unwrap().iter().filter(|zone| zone["rw"] == rw);
        zones.map(|zone| (zone["from"].as_f64().unwrap(), zone["to"].as_f64().unwrap())).collect()
    };
    for rw in ["read", "write"] {
        let [(first, _), (_, last)] = ends(rw).try_into().unwrap();
        assert_eq!((first, last), (0.0, 1.0), "{rw}");
    }
}

/// A sample is read, written back and read again: no byte of a file changes, nothing is left in the directory.
#[test]
fn they_run_on_a_real_place_and_leave_nothing() {
    let home = Home::new();
    let place = home.work();
    let on = place.to_str().unwrap();
    let disks = figures(&home, &["gnome-disks", "--on", on, "--set", "size=32MiB", "--set", "sample=1MiB"]);
    assert!(disks["read_MBps"].as_f64().unwrap() > 0.0 && disks["write_MBps"].as_f64().unwrap() > 0.0);
    let matrix = figures(&home, &["iozone", "--on", on, "--set", "size=8MiB", "--set", "records=64k,1M"]);
    let rows = matrix["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row.as_object().unwrap().len()).collect::<Vec<_>>(), [7, 7]);
    let zeros = figures(&home, &["zeros", "--on", on, "--set", "size=8MiB"]);
    assert_eq!(zeros.as_object().unwrap().len(), 3);
    home.assert_clean(&place);
}
