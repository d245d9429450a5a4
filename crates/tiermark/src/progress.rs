//! The progress bar: one line a step, what is being measured, a bar, the time left. Where that is not known the step's number
//! stands in its place. With `--live` the whole terminal shows what the machine does meanwhile ([`Meanwhile`]).

use crate::cli::When;
use crate::meanwhile::Meanwhile;
use crate::out;
use crate::remaining::{Left, Remaining};
use basics::job::Engine;
use basics::plan::{Step, Target};
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
    steps: usize,
    /// Of a run in virtual time nothing is said: its clock is not ours.
    remaining: Option<Remaining>,
    began: Option<Instant>,
    step_began: Instant,
    shown: Shown,
    /// What was said last.
    noted: String,
}

/// How progress is shown.
enum Shown {
    /// Not at all.
    Nowhere,
    /// As a bar that is drawn over and over.
    Bar,
    /// With what the machine does, on the whole terminal.
    Whole(Meanwhile),
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
            (When::Live, _) if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() => {
                Shown::Whole(Meanwhile::default())
            }
            (When::Auto | When::Always | When::Live, true) => Shown::Bar,
            (When::Always | When::Live, false) => Shown::Lines { latest: None },
            (When::Auto, false) | (When::Never, _) => Shown::Nowhere,
        };
        let drawn = matches!(shown, Shown::Bar);
        let target = if drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        // The template is a constant; if it ever were wrong the plain bar does as well.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {prefix:>9}  {wide_msg}") {
            bar.set_style(style);
        }
        Bar { bar, steps: 0, remaining: None, began: None, step_began: Instant::now(), shown, noted: String::new() }
    }

    fn draw(&mut self, index: usize, work: Work, message: String) {
        let left = self.remaining.as_ref().and_then(Remaining::left);
        if let Shown::Lines { latest } = &mut self.shown {
            if latest.is_none_or(|(step, was, at)| (step, was) != (index, work) || at.elapsed() >= LINE_EVERY) {
                *latest = Some((index, work, Instant::now()));
                let left = left.map_or(String::new(), |left| format!(", {}", in_words(left)));
                out::say(&format!("step {} of {}{left}: {message}", index + 1, self.steps));
            }
            return;
        }
        if let Shown::Whole(meanwhile) = &self.shown {
            let message = out::visible(&message, out::Keep::Nothing);
            return meanwhile.step(format!("{} of {}: {message}", index + 1, self.steps), left.map(in_words));
        }
        match left {
            Some(left) => {
                let spent = self.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
                self.bar.set_position((1000.0 * spent / (spent + left.secs).max(0.001)) as u64);
                self.bar.set_prefix(in_words(left));
            }
            None => {
                self.bar.set_position((1000 * index / self.steps.max(1)) as u64);
                self.bar.set_prefix(format!("step {} of {}", index + 1, self.steps));
            }
        }
        self.bar.set_message(out::visible(&message, out::Keep::Nothing).into_owned());
    }
}

fn in_words(left: Left) -> String {
    format!("{}{:.0} s left", if left.at_most { "at most " } else { "" }, left.secs)
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
        let is_virtual = plan.targets.iter().any(|target| matches!(target, Target::Profile { .. }));
        self.remaining = (!is_virtual).then(|| Remaining::new(plan));
        self.steps = plan.steps.len();
        self.began = Some(Instant::now());
        self.step_began = Instant::now();
        if let Shown::Whole(meanwhile) = &mut self.shown {
            meanwhile.start();
        }
    }

    fn filling(&mut self, index: usize, step: &Step, done: Bytes, of: Bytes) {
        if let Some(remaining) = &mut self.remaining {
            remaining.filling(index, done, self.step_began.elapsed().as_secs_f64());
        }
        let what = match step.job.engine {
            Engine::Touch | Engine::Decode | Engine::Served => "filling memory",
            Engine::Browsed => "copying the browser",
            _ => "writing the test file",
        };
        self.draw(index, Work::Filling, format!("{}  {what}, {done} of {of}", title(step)));
    }

    fn measuring(&mut self, index: usize, step: &Step, elapsed: Nanos, interval: &Interval) {
        let length = interval.end - interval.start;
        let bytes = Bytes(interval.read.bytes + interval.write.bytes);
        let operations = interval.read.operations() + interval.write.operations();
        let iops = operations as f64 / length.secs().max(1e-9);
        let rate = format!("{} IOPS  {} MB/s", significant(iops), significant(bytes.mbps(length)));
        if let Some(remaining) = &mut self.remaining {
            remaining.measuring(index, elapsed, bytes.0, operations);
        }
        if let Shown::Whole(meanwhile) = &self.shown {
            meanwhile.interval(interval);
            return self.draw(index, Work::Measuring, title(step));
        }
        self.draw(index, Work::Measuring, format!("{}  {rate}", title(step)));
    }

    fn finished(&mut self, index: usize, record: &StepRecord) {
        if let Some(remaining) = &mut self.remaining {
            remaining.finished(index, record.elapsed, self.step_began.elapsed().as_secs_f64());
        }
        self.step_began = Instant::now();
    }

    fn note(&mut self, text: &str) {
        // What each step of a run has to say, a program that is no server for example, is said once.
        if self.noted == text {
            return;
        }
        text.clone_into(&mut self.noted);
        match self.shown {
            Shown::Bar => self.bar.suspend(|| out::say(text)),
            Shown::Whole(ref meanwhile) => meanwhile.say(&out::visible(text, out::Keep::Nothing)),
            Shown::Nowhere | Shown::Lines { .. } => out::say(text),
        }
    }

    fn end(&mut self) {
        if let Shown::Whole(meanwhile) = &mut self.shown {
            meanwhile.end();
        }
        self.bar.finish_and_clear();
    }
}
