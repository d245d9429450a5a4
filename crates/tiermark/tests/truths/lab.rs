//! Where a question is asked: on a profile in virtual time, or on a disk that is emulated from it. Whatever is made goes
//! away with the lab, also when a test fails.

use crate::common::Home;
use profile::Profile;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// A home for runs and disks.
pub struct Lab {
    home: Home,
    emulated: bool,
}

/// A device of known behaviour under measurement; an emulated one is stopped when it is forgotten.
pub struct Device<'a> {
    lab: &'a Lab,
    /// For `--on`.
    target: String,
    disk: Option<String>,
    floor_us: Option<f64>,
}

impl Lab {
    pub fn in_virtual_time() -> Self {
        Lab { home: Home::new(), emulated: false }
    }

    pub fn emulated() -> Self {
        Lab { home: Home::new(), emulated: true }
    }

    /// A device that behaves as `toml` says.
    pub fn device(&self, name: &str, toml: &str) -> Device<'_> {
        let file = self.file(name, toml);
        if !self.emulated {
            return self.model(file);
        }
        let about = self.home.json(&["emulate", &file, "--detach"]);
        let word = |key: &str| about[key].as_str().unwrap().to_owned();
        Device { lab: self, target: word("device"), disk: Some(word("name")), floor_us: about["floor_us"].as_f64() }
    }

    fn model(&self, file: String) -> Device<'_> {
        Device { lab: self, target: format!("profile:{file}"), disk: None, floor_us: None }
    }

    fn file(&self, name: &str, toml: &str) -> String {
        let file = self.home.path().join(format!("{name}.toml"));
        std::fs::write(&file, format!("name = \"{name}\"\n{toml}")).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Nothing is left: no loop device, no mount, no folder, no journal entry.
    pub fn assert_clean(&self) {
        assert_eq!(self.loops(), [""; 0].map(PathBuf::from));
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(self.home.path().to_str().unwrap()), "{mounts}");
        self.home.assert_clean(&self.home.work());
    }

    /// Loop devices over files below this home.
    fn loops(&self) -> Vec<PathBuf> {
        let below = |entry: &std::fs::DirEntry| {
            let backing = std::fs::read_to_string(entry.path().join("loop/backing_file"));
            backing.is_ok_and(|backing| backing.starts_with(self.home.path().to_str().unwrap()))
        };
        let entries = std::fs::read_dir("/sys/block").unwrap().map(Result::unwrap);
        entries.filter(below).map(|entry| entry.path()).collect()
    }
}

impl Drop for Lab {
    /// What a failed test left running is killed, and cleared as after any kill: by the next command.
    fn drop(&mut self) {
        if !self.emulated {
            return;
        }
        let listed = self.home.run(&["emulate", "list", "--json"]);
        let Ok(listed) = serde_json::from_str::<Value>(&listed.out) else { return };
        for disk in listed["disks"].as_array().into_iter().flatten() {
            let pid = disk["pid"].as_i64().and_then(|pid| Pid::from_raw(pid as i32));
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
        std::thread::sleep(Duration::from_millis(50));
        self.home.run(&["emulate", "list"]);
    }
}

impl Device<'_> {
    /// Runs one job, spelled out as `rw=randread depth=4 …`; gives the document of the run.
    pub fn job(&self, settings: &str) -> Value {
        self.measure(&["run", "job"], settings)
    }

    /// What the way to an emulated disk takes at least.
    pub fn floor_us(&self) -> Option<f64> {
        self.floor_us
    }

    /// Measures what a profile needs, and gives the fitted profile.
    pub fn profile(&self, settings: &str) -> Profile {
        fitted(self.measure(&["profile", "--name", "found"], settings))
    }

    /// The profile that fits to several jobs.
    pub fn fit(&self, jobs: &[&str]) -> Profile {
        let runs: Vec<String> = jobs.iter().map(|job| self.job(job)["run"].as_str().unwrap().to_owned()).collect();
        let mut words = vec!["profile", "--name", "found"];
        words.extend(runs.iter().map(String::as_str));
        fitted(self.lab.home.json(&words))
    }

    /// Looks for what it really holds, and gives the profile that says so. A fake's exit status is that of a requirement
    /// that is not met.
    pub fn capacity(&self) -> Profile {
        let told = self.lab.home.run(&self.words(&["run", "fake-capacity", "--json"], ""));
        let (looked, read) = (told.json(), self.job("rw=randread runtime=300ms"));
        let [looked, read] = [&looked, &read].map(|run| run["run"].as_str().unwrap());
        let found = fitted(self.lab.home.json(&["profile", looked, read, "--name", "found"]));
        assert_eq!(told.status.code(), Some(i32::from(found.real_size.is_some())), "{told:?}");
        found
    }

    fn measure(&self, verb: &[&str], settings: &str) -> Value {
        self.lab.home.json(&self.words(verb, settings))
    }

    fn words<'w>(&'w self, verb: &[&'w str], settings: &'w str) -> Vec<&'w str> {
        let mut words = verb.to_vec();
        words.extend(["--on", &self.target]);
        if self.disk.is_some() {
            words.extend(["--destroy", &self.target]);
        }
        words.extend(settings.split_whitespace().flat_map(|setting| ["--set", setting]));
        words
    }
}

/// The document has the names of the TOML.
fn fitted(mut document: Value) -> Profile {
    document.as_object_mut().unwrap().remove("schema");
    serde_json::from_value(document).unwrap()
}

impl Drop for Device<'_> {
    fn drop(&mut self) {
        if let Some(disk) = &self.disk {
            let told = self.lab.home.run(&["emulate", "stop", disk]);
            assert!(std::thread::panicking() || told.status.success(), "{told:?}");
        }
    }
}
