//! Prediction: figures at depth 1 and one saturated figure give the row at depth 16, with an interval that holds the truth.

use crate::support::{Ran, fit, profile, run_job};
use basics::job::{Block, Direction, Order, Stop};
use basics::{Bytes, Job, Nanos};
use profile::Profile;

fn job(direction: Direction, size: u64, depth: u32, seed: u64) -> Job {
    let stop = Stop { time: Some(Nanos::from_millis(60_000)), operations: Some(8000), ..Stop::default() };
    Job { direction, order: Order::Permuted, block: Block::Fixed(Bytes(size)), depth, stop, seed, ..Job::default() }
}

/// Numbers that look like chance, from splitmix64.
struct Chance(u64);
impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Evenly over the logarithm.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.next())
    }
    fn of(&mut self, n: usize) -> usize {
        (self.next() * n as f64) as usize
    }
}

/// A device as they are: channels 1 to 64 or a link as the bottleneck, or both, 10 µs to 2 ms, narrow or widely spread.
fn device(chance: &mut Chance) -> (String, Profile) {
    let read = chance.between(10.0, 2000.0);
    let write = chance.between(10.0, 2000.0);
    let sigma = chance.between(0.05, 0.9);
    let rate = chance.between(60.0, 1500.0);
    let channels = chance.between(1.0, 64.99) as u32;
    let command = read.min(write) * chance.between(0.03, 0.8);
    let bandwidth = rate * chance.between(1.0, 8.0);
    let (what, limits) = match chance.of(5) {
        0 | 1 => ("channels", format!("channels = {channels}\n")),
        2 => ("command", format!("[link]\ncommand_us = {command}\n")),
        3 => ("link rate", format!("[link]\nbandwidth_MBps = {bandwidth}\n")),
        _ => (
            "channels and link",
            format!("channels = {channels}\n[link]\ncommand_us = {command}\nbandwidth_MBps = {bandwidth}\n"),
        ),
    };
    let toml = format!(
        "{limits}[read]\nlatency_us = {{ mean = {read}, sigma = {sigma} }}\nbandwidth_MBps = {rate}\n\
         [write]\nlatency_us = {{ mean = {write}, sigma = {sigma} }}\nbandwidth_MBps = {rate}\n"
    );
    (format!("{what}: {}", limits.replace('\n', " ")), profile(&toml))
}

/// What the fitted profile says of a job: its own figure, and the span over its ends.
fn predict(found: &Profile, job: &Job) -> (f64, [f64; 2]) {
    let own = run_job(found, "own", job).iops();
    let ends = found.ends();
    let all = ends.iter().map(|end| run_job(end, "end", job).iops());
    let span = all.fold([own, own], |[low, high], iops| [low.min(iops), high.max(iops)]);
    // What chance does to 8000 operations.
    (own, [span[0] * 0.98, span[1] * 1.02])
}

/// How a way of fitting did on made-up devices.
struct Judged {
    tried: u32,
    /// Within 25 %, and with the truth in the interval.
    near: u32,
    held: u32,
    /// Median width of the intervals, per cent.
    width: f64,
    table: String,
}

/// Figures at depth 1 and one at depth 32 to 128 of the device of each seed, fitted and asked for the row at depth 16.
fn judge(seeds: std::ops::Range<u64>, fit: impl Fn(&[Ran]) -> Profile) -> Judged {
    let mut judged = Judged { tried: 0, near: 0, held: 0, width: 0.0, table: String::new() };
    let (mut wide, mut works) = (Vec::new(), 0u64);
    for seed in seeds {
        let mut chance = Chance(seed);
        let (what, truth) = device(&mut chance);
        let direction = [Direction::Read, Direction::Write, Direction::Mixed { read_percent: 70 }][chance.of(3)];
        let size = [4096, 16384, 65536][chance.of(3)];
        let deep = [32, 64, 128][chance.of(3)];
        let mut run = |direction, size, depth| -> Ran {
            works += 1;
            run_job(&truth, &format!("{direction:?} {size} {depth}"), &job(direction, size, depth, seed * 100 + works))
        };
        // At depth 1 one size, or several.
        let mut steps = vec![run(Direction::Read, size, 1), run(Direction::Write, size, 1)];
        if chance.of(2) == 0 {
            steps.extend([run(Direction::Read, 131_072, 1), run(Direction::Write, 131_072, 1)]);
        }
        steps.push(run(direction, size, deep));
        let row = run(direction, size, 16);
        let found = fit(&steps);
        let (predicted, [low, high]) = predict(&found, &job(direction, size, 16, 1));
        let off = predicted / row.iops() - 1.0;
        let holds = (low..=high).contains(&row.iops());
        judged.tried += 1;
        judged.near += u32::from(off.abs() <= 0.25);
        judged.held += u32::from(holds);
        wide.push(high / low - 1.0);
        judged.table.push_str(&format!(
            "{seed:3} {:6.1} % {} [{low:.0} {high:.0}] truth {:.0} {direction:?} {size} B from depth {deep}: {what}\n",
            100.0 * off,
            if holds { "in " } else { "OUT" },
            row.iops()
        ));
    }
    judged.width = 100.0 * basics::stats::median(&wide).unwrap();
    let Judged { tried, near, held, width, .. } = &judged;
    println!("within 25 %: {near} of {tried}; in the interval: {held}; its width in the median {width:.0} %");
    judged
}

impl Judged {
    #[track_caller]
    fn is_right(&self) {
        let most = 0.95 * f64::from(self.tried);
        assert!(f64::from(self.near) >= most && f64::from(self.held) >= most, "{}", self.table);
        assert!(self.width < 40.0, "an interval that wide says nothing\n{}", self.table);
    }
}

/// Seeds on which no threshold was ever set.
fn fresh() -> std::ops::Range<u64> {
    if std::env::var_os("TIERMARK_TEST_FULL").is_some() { 5000..5160 } else { 5000..5020 }
}

#[test]
fn depth_1_and_one_saturated_figure_predict_depth_16() {
    let of_steps = |steps: &[Ran]| fit(steps).profile;
    judge(0..80, of_steps).is_right();
    judge(fresh(), of_steps).is_right();
}

/// Rates and means are all that is known, as of a device in a review: no percentile, no series, three digits.
#[test]
fn figures_without_a_run_predict_depth_16() {
    let of_means = |steps: &[Ran]| {
        let mut text = "name = \"quoted\"\nsource = \"made up\"\n".to_owned();
        for ran in steps {
            let Direction::Mixed { .. } = ran.job.direction else {
                let (rw, word, side) = match ran.job.direction {
                    Direction::Read => ("randread", "read", &ran.read),
                    _ => ("randwrite", "write", &ran.write),
                };
                text += &row(rw, &ran.job, &[(word, side)], ran);
                continue;
            };
            text += &row("randrw", &ran.job, &[("read", &ran.read), ("write", &ran.write)], ran);
        }
        study::fit::of_figures(&profile::Figures::parse(&text).unwrap()).unwrap().profile
    };
    judge(fresh(), of_means).is_right();
}

/// A row as a review prints it.
fn row(rw: &str, job: &Job, sides: &[(&str, &basics::Side)], ran: &Ran) -> String {
    let mut out = format!("[[row]]\nrw = \"{rw}\"\nbs = \"{}B\"\ndepth = {}\n", job.block.largest().0, job.depth);
    let digits = |value: f64| {
        let scale = 10f64.powi(2 - value.log10().floor() as i32);
        (value * scale).round() / scale
    };
    for (word, side) in sides {
        let iops = side.operations() as f64 / ran.elapsed.secs();
        let mean = side.latency.mean().unwrap().us();
        out += &format!("{word}_iops = {}\n{word}_lat_us = {}\n", digits(iops), digits(mean));
    }
    out
}
