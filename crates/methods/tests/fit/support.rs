//! Plans and jobs run in virtual time on a device that is known, and the views of what came of it.

use basics::plan::Step;
use basics::{EngineUse, Interval, Job, Known, Nanos, Side};
use machine::Machine;
use methods::{Request, Settings, Site, Where};
use profile::{Device, Profile};
use std::sync::atomic::AtomicBool;
use study::{Origin, RunView, State, StepView};

/// A step with everything that a view borrows.
pub struct Ran {
    name: String,
    pub job: Job,
    engine: EngineUse,
    pub elapsed: Nanos,
    pub read: Side,
    pub write: Side,
    intervals: Vec<Interval>,
}

impl Ran {
    /// Operations a second, both directions.
    pub fn iops(&self) -> f64 {
        (self.read.operations() + self.write.operations()) as f64 / self.elapsed.secs()
    }
}

pub fn profile(toml: &str) -> Profile {
    Profile::parse(&format!("name = \"truth\"\n{toml}")).unwrap()
}

pub fn run_job(profile: &Profile, name: &str, job: &Job) -> Ran {
    run_on(&mut Device::new(profile, profile.size(), job.seed), profile, name, job)
}

fn run_on(device: &mut Device, profile: &Profile, name: &str, job: &Job) -> Ran {
    let mut intervals = Vec::new();
    let never = AtomicBool::new(false);
    let sink = &mut |interval: &Interval| {
        let mut kept = interval.clone();
        for side in [&mut kept.read, &mut kept.write] {
            side.latency.pack();
        }
        intervals.push(kept);
    };
    let outcome = engine::simulate(job, device, profile.size(), &engine::Control::new(&never), sink).unwrap();
    let engine::Outcome { engine, elapsed, read, write, .. } = outcome;
    Ran { name: name.to_owned(), job: job.clone(), engine, elapsed, read, write, intervals }
}

/// The method `profile`, so many seconds of it, each step on a device that rested before.
pub fn run_method(profile: &Profile, words: &[&str]) -> Vec<Ran> {
    let steps = plan("profile", profile, words);
    steps.iter().map(|Step { name, job, .. }| run_job(profile, name, job)).collect()
}

/// A whole method on one device: what a step leaves behind, the next one finds.
pub fn run_on_one(method: &str, profile: &Profile, words: &[&str]) -> Vec<Ran> {
    let mut device = Device::new(profile, profile.size(), 1);
    let steps = plan(method, profile, words);
    let run = |Step { name, job, .. }: &Step| {
        let ran = run_on(&mut device, profile, name, job);
        device.pass(job.warmup + ran.elapsed);
        ran
    };
    steps.iter().map(run).collect()
}

fn plan(method: &str, profile: &Profile, words: &[&str]) -> Vec<Step> {
    let at = Where::Profile { name: profile.name.clone(), toml: profile.to_toml().unwrap() };
    let site = Site { tier: None, at, room: Known::default(), compresses: false };
    let method = methods::find(method).unwrap();
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let settings = Settings::parse(method.name(), method.parameters(), &words).unwrap();
    let machine = Machine::default();
    let request = Request { site: &site, settings: &settings, as_published: false, machine: &machine };
    method.plan(&request).unwrap().steps
}

pub fn fit(steps: &[Ran]) -> study::fit::Fitted {
    let machine = Machine::default();
    let views = steps
        .iter()
        .enumerate()
        .map(|(index, ran)| StepView {
            index: index as u32,
            name: &ran.name,
            tier: None,
            target: "profile:truth",
            job: &ran.job,
            region: None,
            engine: Some(&ran.engine),
            state: State::Done,
            elapsed: ran.elapsed,
            read: &ran.read,
            write: &ran.write,
            cpu: None,
            failed: None,
            each: &[],
            load: None,
            notes: &[],
            not_run: None,
            intervals: ran.intervals.iter().collect(),
            samples: Vec::new(),
            before: Vec::new(),
        })
        .collect();
    let view = RunView {
        id: "truth",
        state: State::Done,
        origin: Origin::Simulated("truth"),
        machine: &machine,
        harness_ns_per_op: None,
        method: "job",
        as_published: false,
        scale: None,
        rounds: None,
        parameters: const { &std::collections::BTreeMap::new() },
        steps: views,
        left_out: &[],
        quoted: None,
    };
    study::fit::fit("fit", &[view]).unwrap()
}
