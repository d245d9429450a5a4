//! The progress bar: one line a step, what is being measured, a bar, the time left. The time left is what the plan
//! allows at most for the steps to come, scaled by how much of its allowance the finished steps really took.

use crate::cli::When;
use crate::out;
use basics::plan::Step;
use basics::units::significant;
use basics::{Bytes, Interval, Nanos, Plan};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use record::StepRecord;
use runner::Progress;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Progress on standard error.
pub struct Bar {
    bar: ProgressBar,
    /// Longest time of each step; unknown where bytes or operations end it.
    allowed: Vec<Option<Nanos>>,
    began: Option<Instant>,
    step_began: Instant,
    /// Of the present step, what writing its test file took, in seconds.
    filled: f64,
    /// Allowance of the steps that are over, and what they took.
    over: (f64, f64),
    shown: Shown,
}

/// How progress is shown.
enum Shown {
    /// Not at all.
    Nowhere,
    /// As a bar that is drawn over and over.
    Bar,
    /// As lines, where there is no terminal to draw on: at each step's start and every so often.
    Lines {
        /// The step and the work that the latest line is about, and when it was printed.
        latest: Option<(usize, Work, Instant)>,
    },
}

/// What a step is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Filling,
    Measuring,
}

/// Between two lines about the same.
const LINE_EVERY: Duration = Duration::from_secs(5);

impl Bar {
    /// A bar that is drawn when `when` says so.
    pub fn new(when: When) -> Self {
        let shown = match (when, std::io::stderr().is_terminal()) {
            (When::Auto | When::Always, true) => Shown::Bar,
            (When::Always, false) => Shown::Lines { latest: None },
            (When::Auto, false) | (When::Never, _) => Shown::Nowhere,
        };
        let drawn = matches!(shown, Shown::Bar);
        let target = if drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        // The template is a constant; if it ever were wrong the plain bar does as well.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {prefix:>9}  {wide_msg}") {
            bar.set_style(style);
        }
        Bar { bar, allowed: vec![], began: None, step_began: Instant::now(), filled: 0.0, over: (0.0, 0.0), shown }
    }

    /// Seconds left after `current` of the step `index` are over, when the steps to come say how long they take.
    fn left(&self, index: usize, current: f64) -> Option<f64> {
        let (here, later) = self.allowed.get(index..)?.split_first()?;
        let later = later.iter().try_fold(0.0, |sum, time| Some(sum + (*time)?.secs()))?;
        let pace = if self.over.0 > 0.0 { (self.over.1 / self.over.0).clamp(0.1, 3.0) } else { 1.0 };
        Some(((*here)?.secs() - current).max(0.0) + pace * later)
    }

    fn draw(&mut self, index: usize, work: Work, current: f64, message: String) {
        let left = self.left(index, current);
        if let Shown::Lines { latest } = &mut self.shown {
            if latest.is_none_or(|(step, was, at)| (step, was) != (index, work) || at.elapsed() >= LINE_EVERY) {
                *latest = Some((index, work, Instant::now()));
                let left = left.map_or(String::new(), |left| format!(", {left:.0} s left"));
                out::say(&format!("step {} of {}{left}: {message}", index + 1, self.allowed.len()));
            }
            return;
        }
        match left {
            Some(left) => {
                let spent = self.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
                self.bar.set_position((1000.0 * spent / (spent + left).max(0.001)) as u64);
                self.bar.set_prefix(format!("{left:.0} s left"));
            }
            None => {
                self.bar.set_position((1000 * index / self.allowed.len().max(1)) as u64);
                self.bar.set_prefix(format!("step {} of {}", index + 1, self.allowed.len()));
            }
        }
        self.bar.set_message(out::visible(&message, out::Keep::Nothing).into_owned());
    }
}

/// The tier and the step, as the first words of a line.
fn title(step: &Step) -> String {
    match &step.tier {
        Some(tier) => format!("{tier}  {}", step.name),
        None => step.name.clone(),
    }
}

impl Progress for Bar {
    fn begin(&mut self, plan: &Plan) {
        self.allowed = plan.steps.iter().map(|step| step.job.stop.time.map(|time| time + step.job.warmup)).collect();
        self.began = Some(Instant::now());
        self.step_began = Instant::now();
    }

    fn filling(&mut self, index: usize, step: &Step, done: Bytes, of: Bytes) {
        // Writing goes on as fast as it has gone so far, and is no part of the steps' allowance.
        let spent = self.step_began.elapsed().as_secs_f64();
        let to_write = spent * (of.0 as f64 / done.0.max(1) as f64 - 1.0);
        self.filled = spent;
        self.draw(index, Work::Filling, -to_write, format!("{}  writing the test file, {done} of {of}", title(step)));
    }

    fn measuring(&mut self, index: usize, step: &Step, elapsed: Nanos, interval: &Interval) {
        let length = interval.end - interval.start;
        let bytes = Bytes(interval.read.bytes + interval.write.bytes);
        let operations = interval.read.operations() + interval.write.operations();
        let iops = operations as f64 / length.secs().max(1e-9);
        let rate = format!("{} IOPS  {} MB/s", significant(iops), significant(bytes.mbps(length)));
        self.draw(index, Work::Measuring, elapsed.secs(), format!("{}  {rate}", title(step)));
    }

    fn finished(&mut self, index: usize, _record: &StepRecord) {
        self.over.0 += self.allowed.get(index).copied().flatten().map_or(0.0, Nanos::secs);
        self.over.1 += (self.step_began.elapsed().as_secs_f64() - self.filled).max(0.0);
        self.filled = 0.0;
        self.step_began = Instant::now();
    }

    fn note(&mut self, text: &str) {
        match self.shown {
            Shown::Bar => self.bar.suspend(|| out::say(text)),
            Shown::Nowhere | Shown::Lines { .. } => out::say(text),
        }
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}
