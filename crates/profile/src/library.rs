//! The profiles that come with the program, each a TOML file of its own with the published figures that it was made from.

use crate::format::{Profile, ProfileError};
use std::sync::LazyLock;

/// In the order of the articles.
const FILES: [&str; 14] = [
    include_str!("../data/profiles/sd-evo-pi5.toml"),
    include_str!("../data/profiles/nvme-usb3-pi5.toml"),
    include_str!("../data/profiles/sata-usb3-pi5.toml"),
    include_str!("../data/profiles/optane-pi5.toml"),
    include_str!("../data/profiles/ram-pi5.toml"),
    include_str!("../data/profiles/zram-pi5.toml"),
    include_str!("../data/profiles/sd-pi3.toml"),
    include_str!("../data/profiles/ssd-usb2-pi3.toml"),
    include_str!("../data/profiles/microsd-u3.toml"),
    include_str!("../data/profiles/ssd-usb-pi.toml"),
    include_str!("../data/profiles/p4800x.toml"),
    include_str!("../data/profiles/p3700.toml"),
    include_str!("../data/profiles/micron-9100.toml"),
    include_str!("../data/profiles/disk-425.toml"),
];

/// All profiles that are shipped.
pub fn shipped() -> &'static [Profile] {
    static ALL: LazyLock<Vec<Profile>> = LazyLock::new(|| {
        // A test reads each of them, so none is left out.
        FILES.iter().filter_map(|text| Profile::parse(text).ok()).collect()
    });
    &ALL
}

/// The shipped profile of this name.
///
/// # Errors
/// [`ProfileError::Unknown`].
pub fn find(name: &str) -> Result<&'static Profile, ProfileError> {
    shipped().iter().find(|profile| profile.name == name).ok_or_else(|| ProfileError::Unknown(name.to_owned()))
}

/// The file of a shipped profile as it is, with its comments.
pub fn text(name: &str) -> Option<&'static str> {
    let index = shipped().iter().position(|profile| profile.name == name)?;
    FILES.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::articles;
    use crate::device::{Device, Request};
    use basics::{Bytes, Nanos};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    #[test]
    fn every_file_is_read() {
        for text in FILES {
            Profile::parse(text).unwrap();
        }
        assert_eq!(shipped().len(), FILES.len());
        assert!(text("p3700").unwrap().contains("name = \"p3700\""));
        assert!(find("optane-pi5").is_ok());
        assert!(find("optane").unwrap_err().to_string().contains("lists them"));
    }

    struct Figures {
        iops: [f64; 2],
        mean: [f64; 2],
        p99: [f64; 2],
    }

    /// A closed loop of `depth` random operations over 512 MiB for a simulated minute or so.
    fn swap_simulation(name: &str, depth: usize) -> Figures {
        let mut device = Device::new(find(name).unwrap(), Bytes(512 << 20), 1);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut due: BinaryHeap<Reverse<u64>> = (0..depth).map(|_| Reverse(0)).collect();
        let mut latencies = [Vec::new(), Vec::new()];
        let mut now = 0;
        while latencies[0].len() < 40_000 {
            now = due.pop().unwrap().0;
            let offset = rng.next_u64() % (32 << 10) * 16384;
            let read = rng.next_u64() % 100 < 70;
            let request =
                if read { Request::Read { offset, len: 16384 } } else { Request::Write { offset, len: 16384 } };
            let done = device.submit(Nanos(now), request).unwrap();
            latencies[usize::from(!read)].push((done.0 - now) as f64 / 1e3);
            due.push(Reverse(done.0));
        }
        let seconds = now as f64 / 1e9;
        latencies.iter_mut().for_each(|all| all.sort_by(f64::total_cmp));
        let [reads, writes] = &latencies;
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        let p99 = |all: &[f64]| all[all.len() * 99 / 100];
        Figures {
            iops: [reads.len() as f64 / seconds, writes.len() as f64 / seconds],
            mean: [mean(reads), mean(writes)],
            p99: [p99(reads), p99(writes)],
        }
    }

    /// The rows of the swap table come out again: IOPS at the depth of 4, latencies at the depth to which, by Little's
    /// law, they belong. The SD card's write p99 stands on the cliff of its tail and is not held to.
    #[test]
    fn the_swap_table_is_reproduced() {
        let mut failures = String::new();
        let mut check = |what: String, found: f64, published: f64, percent: f64| {
            if (found / published - 1.0).abs() > percent / 100.0 {
                failures += &format!("{what}: {found:.4}, published {published}\n");
            }
        };
        for (name, depth) in [
            ("sata-usb3-pi5", 4),
            ("optane-pi5", 4),
            ("nvme-usb3-pi5", 3),
            ("sd-evo-pi5", 3),
            ("ram-pi5", 1),
            ("zram-pi5", 3),
        ] {
            let article = articles::pi5_optane();
            let row = &article.devices.iter().find(|device| device.name == name).unwrap().swap;
            let deep = swap_simulation(name, 4);
            check(format!("{name} read IOPS"), deep.iops[0], row.read_iops, 4.0);
            check(format!("{name} write IOPS"), deep.iops[1], row.write_iops, 4.0);
            let own = swap_simulation(name, depth);
            let sides = [row.read_lat_us.or(row.lat_us).unwrap(), row.write_lat_us.or(row.lat_us).unwrap()];
            for (side, published) in sides.iter().enumerate() {
                let which = ["read", "write"][side];
                check(format!("{name} {which} mean"), own.mean[side], published.mean, 7.0);
                if (name, side) != ("sd-evo-pi5", 1) {
                    check(format!("{name} {which} p99"), own.p99[side], published.p99, 20.0);
                }
            }
        }
        assert!(failures.is_empty(), "{failures}");
    }

    /// `hdparm -t` in operations of 2 MiB.
    #[test]
    fn sequential_rates_are_reproduced() {
        for device in &articles::pi5_optane().devices {
            let mut model = Device::new(find(&device.name).unwrap(), Bytes(1 << 30), 1);
            let mut now = Nanos(0);
            for i in 0..100u64 {
                now = model.submit(now, Request::Read { offset: i << 21, len: 2 << 20 }).unwrap();
            }
            let (found, published) = (200.0 / now.secs(), device.hdparm.disk_mibps);
            assert!((found / published - 1.0).abs() < 0.02, "{}: {found}, published {published}", device.name);
        }
    }
}
