//! Virtual time and an emulated disk are two readings of one profile: operations a second of both, by size and depth.

use super::lab::{Device, Lab};

/// One job on one profile, both ways.
#[derive(Debug)]
pub struct Point {
    work: String,
    /// Operations a second.
    simulated: f64,
    emulated: f64,
    /// The profile asks for less than the way to the disk takes.
    pub is_below_floor: bool,
}

impl Point {
    pub fn off_percent(&self) -> f64 {
        100.0 * (self.emulated / self.simulated - 1.0)
    }
}

/// A disk behind a slow bus, and a drive that works on four things at a time.
const PROFILES: [(&str, &str); 2] = [("usb-ssd", USB_SSD), ("made-up", MADE_UP)];
const USB_SSD: &str = "size = \"2GiB\"\nchannels = 1\n[read]\nlatency_us = 342\nbandwidth_MBps = 35.6\n\
                       [read.sequential]\nbandwidth_MBps = 34.8\n[write]\nbandwidth_MBps = 35.6";
const MADE_UP: &str = "size = \"2GiB\"\nchannels = 4\n[link]\ncommand_us = 25\nbandwidth_MBps = 300\n\
                       [read]\nlatency_us = { mean = 400, sigma = 0.3 }\nbandwidth_MBps = 120\n\
                       [write]\nlatency_us = { mean = 250, sigma = 0.3 }\nbandwidth_MBps = 100";

pub fn points(simulated: &Lab, emulated: &Lab) -> Vec<Point> {
    let mut out = Vec::new();
    for (name, toml) in PROFILES {
        let (model, disk) = (simulated.device(name, toml), emulated.device(name, toml));
        for (rw, size) in
            ["randread", "randwrite"].iter().flat_map(|rw| ["4k", "16k", "128k", "1m"].map(|size| (rw, size)))
        {
            for depth in [1, 4, 16] {
                let job = |seconds: u32| format!("rw={rw} bs={size} depth={depth} runtime={seconds}s");
                let alone_us = 1e6 / iops(&model, &format!("rw={rw} bs={size} runtime=5s"));
                out.push(Point {
                    work: format!("{name} | {rw} {size}, depth {depth}"),
                    // Virtual time costs nothing: long enough for chance not to matter there.
                    simulated: iops(&model, &job(20)),
                    emulated: iops(&disk, &job(2)),
                    is_below_floor: alone_us < disk.floor_us().unwrap(),
                });
            }
        }
    }
    out
}

fn iops(device: &Device<'_>, job: &str) -> f64 {
    let run = device.job(job);
    ["read", "write"].iter().filter_map(|side| run["steps"][0][side]["iops"].as_f64()).sum()
}

/// A Markdown table.
pub fn table(points: &[Point]) -> String {
    let head =
        "| profile | job | IOPS, virtual time | IOPS, emulated | difference |\n| --- | --- | ---: | ---: | ---: |\n";
    let row = |point: &Point| {
        let Point { work, simulated, emulated, .. } = point;
        let off =
            if point.is_below_floor { "below the floor".to_owned() } else { format!("{:+.1} %", point.off_percent()) };
        format!("| {work} | {simulated:.0} | {emulated:.0} | {off} |\n")
    };
    points.iter().map(row).fold(head.to_owned(), |all, row| all + &row)
}
