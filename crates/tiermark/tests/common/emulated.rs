//! Emulated disks for tests: started below a home, used as any program would, killed and cleared by that home's name when a
//! test ends, however it ends.

use super::{Home, Need, Undo, possible, sh};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// As fast as the way lets.
pub const QUICK: &str = "name = \"quick\"\n[read]\nlatency_us = 1\n[write]\nlatency_us = 1\n";

/// A home with disks in it; those that still run when a test ends are killed and cleared.
pub struct Place {
    pub home: Home,
}

impl Place {
    pub fn new() -> Self {
        let home = Home::new();
        std::fs::write(home.path().join("quick.toml"), QUICK).unwrap();
        Place { home }
    }

    /// A disk as fast as the way lets.
    pub fn start(&self, args: &[&str]) -> Emulated<'_> {
        self.start_as("./quick.toml", args)
    }

    /// A disk of this profile.
    pub fn start_as(&self, profile: &str, args: &[&str]) -> Emulated<'_> {
        let mut all = vec!["emulate", profile, "--detach"];
        all.extend(args);
        let about = self.home.json(&all);
        Emulated {
            name: about["name"].as_str().unwrap().to_owned(),
            device: about["device"].as_str().unwrap().to_owned(),
            about,
            place: self,
        }
    }

    pub fn mount_point(&self) -> PathBuf {
        let at = self.home.path().join("mnt");
        std::fs::create_dir_all(&at).unwrap();
        at
    }

    /// Nothing is left: no loop device, no swap area, no mount, no folder, no journal entry.
    pub fn assert_clean(&self) {
        assert_eq!(self.loops(), [""; 0]);
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(self.home.path().to_str().unwrap()), "{mounts}");
        assert_eq!(self.home.journal(), [""; 0]);
        let folder = self.home.path().join("data/tiermark/emulate");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    }

    /// Loop devices over files below this home.
    pub fn loops(&self) -> Vec<String> {
        let below = |entry: &std::fs::DirEntry| {
            let backing = std::fs::read_to_string(entry.path().join("loop/backing_file"));
            backing.is_ok_and(|backing| backing.starts_with(self.home.path().to_str().unwrap()))
        };
        let entries = std::fs::read_dir("/sys/block").unwrap().map(Result::unwrap).filter(below);
        entries.map(|entry| format!("/dev/{}", entry.file_name().to_str().unwrap())).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for device in self.loops() {
            let _ = std::process::Command::new("sh").args(["-c", &format!("swapoff {device} 2>/dev/null")]).status();
        }
        drop(Undo(format!("umount {}", self.home.path().join("mnt").display())));
        let list = self.home.run(&["emulate", "list", "--json"]);
        let Ok(list) = serde_json::from_str::<Value>(&list.out) else { return };
        for disk in list["disks"].as_array().into_iter().flatten() {
            let pid = disk["pid"].as_i64().and_then(|pid| Pid::from_raw(pid as i32));
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
        std::thread::sleep(Duration::from_millis(50));
        self.home.run(&["emulate", "list"]);
    }
}

/// A disk that runs.
pub struct Emulated<'a> {
    pub name: String,
    pub device: String,
    /// What `--detach --json` printed.
    pub about: Value,
    place: &'a Place,
}

impl Emulated<'_> {
    pub fn figures(&self) -> Value {
        self.place.home.json(&["emulate", "show", &self.name])["figures"].clone()
    }
    pub fn figure(&self, key: &str) -> u64 {
        self.figures()[key].as_u64().unwrap()
    }
    pub fn fault(&self, spec: &str) {
        self.place.home.run(&["emulate", "fault", &self.name, spec]).code(0);
    }
    pub fn stop(&self) {
        self.place.home.run(&["emulate", "stop", &self.name]).code(0);
    }
    pub fn id(&self) -> u32 {
        self.about["pid"].as_u64().unwrap() as u32
    }
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.id() as i32).unwrap()
    }
    pub fn kill(&self) {
        kill_process(self.pid(), Signal::KILL).unwrap();
        let stat = format!("/proc/{}/stat", self.id());
        patiently("it is dead", || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
    }
    pub fn mkfs(&self) {
        sh(&format!("mkfs.ext4 -q -F -E lazy_itable_init=0,nodiscard {}", self.device));
    }
    pub fn mount(&self) -> (PathBuf, Undo) {
        let at = self.place.mount_point();
        sh(&format!("mount {} {}", self.device, at.display()));
        let undo = Undo(format!("umount {}", at.display()));
        (at, undo)
    }
    pub fn open(&self) -> File {
        File::options().read(true).write(true).open(&self.device).unwrap()
    }
    /// A read past the page cache.
    pub fn read_direct(&self, offset: u64) -> Result<Vec<u8>, std::io::Error> {
        let skip = offset / 4096;
        let of = format!("if={} bs=4096 count=1 skip={skip} iflag=direct status=none", self.device);
        let output = std::process::Command::new("dd").args(of.split(' ')).output().unwrap();
        if output.status.success() { Ok(output.stdout) } else { Err(std::io::ErrorKind::Other.into()) }
    }
}

/// A figure of a process' memory from its `status`, KiB.
pub fn in_kib(process: u32, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

pub fn patiently(what: &str, mut happened: impl FnMut() -> bool) {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn emulation(test: &str, tools: &[&'static str]) -> bool {
    if !Path::new("/dev/fuse").exists() {
        println!("SKIP {test}: needs FUSE");
        return false;
    }
    let mut needs = vec![Need::Root, Need::Loops];
    needs.extend(tools.iter().map(|tool| Need::Tool(tool)));
    possible(test, &needs)
}

pub fn write_durably(path: &Path, byte: u8, len: usize) {
    let mut file = File::create(path).unwrap();
    file.write_all(&vec![byte; len]).unwrap();
    file.sync_all().unwrap();
    File::open(path.parent().unwrap()).unwrap().sync_all().unwrap();
}
