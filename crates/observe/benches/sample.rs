//! What one sample of this machine costs, with the waking up for it: `cargo bench -p observe`. Its peer is the same
//! sample in the same rhythm with every file opened afresh, which is what keeping them open saves.
#![forbid(unsafe_code)]

use basics::Nanos;
use observe::Observer;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Much oftener than in use, so that a round is short.
const PERIOD: Duration = Duration::from_millis(2);
/// Samples in a round.
const SAMPLES: u32 = 500;

fn main() -> Result<(), observe::ObserveError> {
    let disks: Vec<String> = fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .filter_map(|disk| disk.ok()?.file_name().into_string().ok())
        .collect();
    let root = Path::new("/");
    println!("CPU time of one sample, {} disks, in µs", disks.len());
    for round in 1..=5 {
        let observer = Observer::start(root, disks.clone(), PERIOD.into(), |sample| drop(black_box(sample)))?;
        thread::sleep(PERIOD * SAMPLES);
        let cost = observer.stop();
        let kept_open = cost.cpu.us() / cost.samples as f64;

        let before = thread_cpu();
        for _ in 0..SAMPLES {
            black_box(observe::sample(root, &disks));
            thread::sleep(PERIOD);
        }
        let afresh = (thread_cpu() - before).us() / f64::from(SAMPLES);
        // Ten a second of as many microseconds are a thousandth of a per cent each.
        let share = kept_open / 1000.0;
        println!(
            "round {round}: kept open {kept_open:.0}, opened afresh {afresh:.0}; ten a second take {share:.3} % of a core"
        );
    }
    Ok(())
}

fn thread_cpu() -> Nanos {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Nanos::from_secs(spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9)
}
