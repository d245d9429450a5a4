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
use std::time::Instant;

/// Progress on standard error.
pub struct Bar {
    bar: ProgressBar,
    allowed: Vec<Nanos>,
    began: Option<Instant>,
    step_began: Instant,
    /// Allowance of the steps that are over, and what they took.
    over: (f64, f64),
    quiet: bool,
}

impl Bar {
    /// A bar that is drawn when `when` says so.
    pub fn new(when: When) -> Self {
        let shown = match when {
            When::Auto => std::io::stderr().is_terminal(),
            When::Always => true,
            When::Never => false,
        };
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        // The template is a constant; if it ever were wrong the plain bar does as well.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {prefix:>9}  {wide_msg}") {
            bar.set_style(style);
        }
        Bar { bar, allowed: vec![], began: None, step_began: Instant::now(), over: (0.0, 0.0), quiet: !shown }
    }

    /// Seconds left after `current` of the step `index` are over.
    fn left(&self, index: usize, current: f64) -> f64 {
        let allowed = |steps: &[Nanos]| steps.iter().map(|time| time.secs()).sum::<f64>();
        let pace = if self.over.0 > 0.0 { (self.over.1 / self.over.0).clamp(0.1, 3.0) } else { 1.0 };
        let here = self.allowed.get(index).map_or(0.0, |time| (time.secs() - current).max(0.0));
        here + pace * allowed(self.allowed.get(index + 1..).unwrap_or_default())
    }

    fn draw(&mut self, index: usize, current: f64, message: String) {
        let spent = self.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
        let left = self.left(index, current);
        self.bar.set_position((1000.0 * spent / (spent + left).max(0.001)) as u64);
        self.bar.set_prefix(format!("{left:.0} s left"));
        self.bar.set_message(message);
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
        self.allowed = plan.steps.iter().map(|step| step.job.warmup + step.job.stop.time.unwrap_or_default()).collect();
        self.began = Some(Instant::now());
        self.step_began = Instant::now();
    }

    fn filling(&mut self, step: &Step, done: Bytes, of: Bytes) {
        self.draw(0, 0.0, format!("{}  writing the test file, {done} of {of}", title(step)));
    }

    fn measuring(&mut self, index: usize, step: &Step, elapsed: Nanos, interval: &Interval) {
        let length = interval.end - interval.start;
        let bytes = Bytes(interval.read.bytes + interval.write.bytes);
        let operations = interval.read.operations() + interval.write.operations();
        let iops = operations as f64 / length.secs().max(1e-9);
        let rate = format!("{} IOPS  {} MB/s", significant(iops), significant(bytes.mbps(length)));
        self.draw(index, elapsed.secs(), format!("{}  {rate}", title(step)));
    }

    fn finished(&mut self, index: usize, _record: &StepRecord) {
        self.over.0 += self.allowed.get(index).map_or(0.0, |time| time.secs());
        self.over.1 += self.step_began.elapsed().as_secs_f64();
        self.step_began = Instant::now();
    }

    fn note(&mut self, text: &str) {
        if self.quiet {
            out::say(text);
        } else {
            self.bar.suspend(|| out::say(text));
        }
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}
