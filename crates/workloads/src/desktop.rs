//! `load desktop`: a real browser with heavy pages under the memory of a small board, on one set-up of its disk after the other. What is
//! done is the same on each, act for act, so that the acts can be held against one another.

use crate::WorkloadError;
use crate::tier::Lookup;
use basics::desktop::Browsing;
use basics::job::{Block, Direction, Engine, Stop};
use basics::plan::{Step, Target, step_seed};
use basics::pressure::{Area, Files, Pressed, Pressure, Swap, Work, Zswap};
use basics::units::MIB;
use basics::{Bytes, Job, Nanos, Plan};
use std::collections::BTreeMap;

/// A disk with its file system and swap, as people write it: `stock`, `moved`, or `PROFILE,fs=ext4,compress=zstd:1,swap=1G,zswap=20`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// As it was written: the name of its row.
    pub name: String,
    profile: (String, String),
    fs: String,
    options: Option<String>,
    swap: Bytes,
    /// Per cent of the board's memory for the compressed cache.
    zswap: Option<u8>,
}

/// What Raspberry Pi OS comes with on a Raspberry Pi 3: everything on the card, and dphys-swapfile's 100 MB.
pub const STOCK: &str = "sd-pi3,fs=ext4,swap=100M";
/// What the desktop article makes of it: btrfs that compresses on a USB SSD, a swap partition, zswap with 20 % of the memory.
pub const MOVED: &str = "ssd-usb2-pi3,fs=btrfs,compress=zstd:1,swap=1G,zswap=20";

impl Setup {
    /// Reads one.
    ///
    /// # Errors
    /// A sentence that says what it may be.
    pub fn parse(text: &str, profiles: &Lookup<'_>) -> Result<Self, WorkloadError> {
        let bad = |why: String| WorkloadError::Size(format!("{text:?} is no set-up: {why}"));
        let spelled = match text {
            "stock" => STOCK,
            "moved" => MOVED,
            other => other,
        };
        let mut parts = spelled.split(',');
        let name = parts.next().unwrap_or_default();
        let profile = profiles(name.strip_prefix("profile:").unwrap_or(name)).map_err(|why| {
            bad(format!("give stock, moved, or PROFILE,fs=ext4,swap=1G[,compress=zstd:1][,zswap[=PERCENT]] ({why})"))
        })?;
        let mut setup = Setup {
            name: text.to_owned(),
            profile,
            fs: "ext4".to_owned(),
            options: None,
            swap: Bytes(100 * MIB),
            zswap: None,
        };
        for part in parts {
            match part.split_once('=').unwrap_or((part, "")) {
                ("fs", fs @ ("ext4" | "btrfs" | "f2fs")) => fs.clone_into(&mut setup.fs),
                ("compress", algorithm) if !algorithm.is_empty() => {
                    setup.options = Some(format!("compress={algorithm}"));
                }
                ("swap", size) => setup.swap = size.parse().map_err(|why| bad(format!("swap={size}: {why}")))?,
                ("zswap", "") => setup.zswap = Some(20),
                ("zswap", percent) => {
                    let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent));
                    setup.zswap = Some(percent.ok_or_else(|| bad("zswap=PERCENT takes 1 to 100".to_owned()))?);
                }
                _ => return Err(bad(format!("{part:?} is none of fs=ext4|btrfs|f2fs, compress=, swap=, zswap="))),
            }
        }
        if setup.options.is_some() && setup.fs != "btrfs" {
            return Err(bad(format!("{} does not compress; take fs=btrfs", setup.fs)));
        }
        if setup.swap.0 < MIB {
            return Err(bad("swap takes 1 MiB or more".to_owned()));
        }
        Ok(setup)
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The browser.
    pub browsing: Browsing,
    /// Set-ups, a row each.
    pub setups: Vec<Setup>,
    /// What the board has for all of it.
    pub memory: Bytes,
    /// This machine's own memory, of which zswap's share is counted.
    pub machine: Option<Bytes>,
    /// Tabs gone to, once all pages are open.
    pub switches: u64,
    /// The longest that they take.
    pub time: Option<Nanos>,
    /// Visits of each.
    pub repeat: u32,
    /// Of every random choice.
    pub seed: u64,
}

/// For the browser's program, its profile and caches.
const FILES: Bytes = Bytes(2048 * MIB);

impl Request {
    /// The plan: a target for each set-up, a step for each visit, with the same acts in each of a round.
    ///
    /// # Errors
    /// When the options make no sense together.
    pub fn plan(&self) -> Result<Plan, WorkloadError> {
        if self.memory.0 < 128 * MIB {
            return Err(WorkloadError::Size(format!("--memory {}: no browser starts in so little", self.memory)));
        }
        if self.browsing.weight.0 < MIB {
            return Err(WorkloadError::Size("--weight takes 1 MiB or more".to_owned()));
        }
        let mut plan = Plan {
            method: "load-desktop".to_owned(),
            parameters: self.parameters(),
            seed: self.seed,
            ..Plan::default()
        };
        for setup in &self.setups {
            let files = Files { fs: setup.fs.clone(), options: setup.options.clone(), size: FILES };
            let (name, toml) = setup.profile.clone();
            let areas = vec![Area::Emulated { name, toml, size: setup.swap, files: Some(files) }];
            let zswap =
                setup.zswap.map(|percent| Zswap { compressor: None, max_pool_percent: Some(self.share(percent)) });
            plan.targets.push(Target::Pressed(Pressed {
                // What the pages keep, and as much again for what a browser makes of each, and itself.
                size: Bytes(u64::from(self.browsing.pages) * self.browsing.weight.0 * 2 + 400 * MIB),
                pressure: Pressure { memory: Some(self.memory), ..Pressure::default() },
                swap: Swap { areas, zswap, ..Swap::default() },
                work: Work::Browse(Box::new(self.browsing.clone())),
                curve: None,
                pager: false,
            }));
        }
        for round in 0..self.repeat.max(1) {
            for (target, setup) in self.setups.iter().enumerate() {
                let stop = Stop { time: self.time, operations: Some(self.switches), ..Stop::default() };
                let job = Job {
                    direction: Direction::Read,
                    block: Block::Fixed(Bytes(4096)),
                    direct: false,
                    engine: Engine::Browsed,
                    stop,
                    seed: step_seed(self.seed, round as usize),
                    ..Job::default()
                };
                let (name, tier) = ("desktop".to_owned(), Some(setup.name.clone()));
                plan.steps.push(Step { name, tier, target, job, may_fail: true, before: Vec::new() });
            }
        }
        Ok(plan)
    }

    /// zswap counts its share of all memory of the machine, and here it is to be one of the board's.
    fn share(&self, percent: u8) -> u8 {
        let machine = self.machine.unwrap_or(self.memory).0.max(1);
        let wanted = f64::from(percent) * self.memory.0 as f64 / machine as f64;
        (wanted.round() as u8).clamp(1, 100)
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        let names: Vec<&str> = self.setups.iter().map(|setup| setup.name.as_str()).collect();
        let browsing = &self.browsing;
        [
            ("setups", names.join(" ")),
            ("browser", browsing.program.display().to_string()),
            ("program_on_disk", browsing.copied.to_string()),
            ("pages", browsing.pages.to_string()),
            ("weight", browsing.weight.to_string()),
            ("memory", self.memory.to_string()),
            ("switches", self.switches.to_string()),
            ("patience", browsing.patience.to_string()),
            ("repeat", self.repeat.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn parse(text: &str) -> Result<Setup, WorkloadError> {
        Setup::parse(text, &|name| match name {
            "sd-pi3" | "ssd-usb2-pi3" => Ok((name.to_owned(), "toml".to_owned())),
            _ => Err(format!("no profile {name}")),
        })
    }

    #[test]
    fn setups_are_read() {
        let (stock, moved) = (parse("stock").unwrap(), parse("moved").unwrap());
        assert_eq!((stock.fs.as_str(), stock.swap, stock.zswap), ("ext4", Bytes(100 * MIB), None));
        assert_eq!((moved.options.as_deref(), moved.zswap), (Some("compress=zstd:1"), Some(20)));
        assert_eq!(parse("sd-pi3,swap=2G,zswap").unwrap().swap, Bytes(2048 * MIB));
        for (text, says) in [
            ("floppy", "no profile floppy"),
            ("sd-pi3,fs=ntfs", "none of fs="),
            ("sd-pi3,compress=zstd", "does not compress"),
            ("sd-pi3,zswap=200", "1 to 100"),
            ("sd-pi3,swap=0", "1 MiB"),
            ("sd-pi3,swap=much", "swap=much"),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
    }

    #[test]
    fn each_round_does_the_same_on_each_setup() {
        let browsing = Browsing {
            program: PathBuf::from("/usr/lib/chromium/chromium"),
            copied: true,
            pages: 3,
            weight: Bytes(40 * MIB),
            patience: Nanos::from_secs(60.0),
        };
        let setups = vec![parse("stock").unwrap(), parse("moved").unwrap()];
        let (memory, machine) = (Bytes(900 * MIB), Some(Bytes(24 << 30)));
        let request = Request { browsing, setups, memory, machine, switches: 9, time: None, repeat: 2, seed: 7 };
        let plan = request.plan().unwrap();
        assert_eq!((plan.targets.len(), plan.steps.len()), (2, 4));
        assert_eq!(plan.steps[0].job.seed, plan.steps[1].job.seed);
        assert_ne!(plan.steps[1].job.seed, plan.steps[2].job.seed);
        let Target::Pressed(moved) = &plan.targets[1] else { panic!("no target under pressure") };
        // A fifth of the board is less than a hundredth of this machine.
        assert_eq!(moved.swap.zswap.as_ref().unwrap().max_pool_percent, Some(1));
        assert_eq!(moved.swap.describe(), "zswap over emulated ssd-usb2-pi3 with btrfs (compress=zstd:1)");
        assert!(Request { memory: Bytes(MIB), ..request }.plan().is_err());
    }
}
