//! What happens now, on a terminal of 80 by 24, as lines and as JSON; and that the terminal is given back.
#![forbid(unsafe_code)]

mod common;

use common::Home;
use serde_json::Value;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

#[test]
fn what_happens_is_told_line_by_line() {
    let home = Home::new();
    let told = home.run(&["watch", "--json", "--count", "2", "--interval", "300ms"]).code(0);
    let looks: Vec<Value> = told.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(looks.len(), 2);
    for look in &looks {
        assert_eq!(look["schema"], "tiermark.watch/1");
        common::has_keys(look, "seconds cpu stalled_percent disks memory events");
        assert!(look["memory"]["total_B"].as_u64() >= look["memory"]["available_B"].as_u64(), "{look}");
        assert!(look["seconds"].as_f64().unwrap() >= 0.2, "{look}");
    }
    let lines = home.run(&["watch", "-n", "1", "-i", "300ms"]).code(0).out;
    assert!(lines.contains("CPU") && lines.contains("free"), "{lines}");
    assert!(home.run(&["watch", "-i", "1ms"]).code(2).sentence().contains("--interval"));
    assert!(home.run(&["watch", "-i", "soon"]).code(2).sentence().contains("--interval"));
}

/// A server of tmux that ends with the test.
struct Tmux(String);

impl Tmux {
    fn start(test: &str) -> Option<Tmux> {
        if Command::new("tmux").arg("-V").output().is_err() {
            println!("SKIP {test}: needs tmux");
            return None;
        }
        let tmux = Tmux(format!("tiermark-{test}-{}", std::process::id()));
        // What the shell prints before it is asked does not matter; its profile is left out.
        let shell = tmux.ask(&["new-session", "-d", "-x", "80", "-y", "24", "sh"]);
        assert!(shell.status.success(), "{shell:?}");
        Some(tmux)
    }

    fn ask(&self, words: &[&str]) -> Output {
        Command::new("tmux").args(["-L", &self.0, "-f", "/dev/null"]).args(words).output().unwrap()
    }

    fn types(&self, text: &str) {
        assert!(self.ask(&["send-keys", "-l", text]).status.success());
    }

    fn enter(&self) {
        assert!(self.ask(&["send-keys", "Enter"]).status.success());
    }

    fn screen(&self) -> String {
        String::from_utf8(self.ask(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// Looks until it is there; half a minute is for a machine with much else to do.
    fn until(&self, what: &str, there: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if there(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{what} never came:\n{screen}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.ask(&["kill-server"]);
    }
}

fn started(home: &Home, words: &str) -> String {
    let program = assert_cmd::cargo::cargo_bin!("tiermark");
    format!("XDG_DATA_HOME={} NO_COLOR=1 {} {words}", home.path().join("data").display(), program.display())
}

#[test]
fn the_screen_fits_80_by_24_and_is_given_back() {
    let Some(tmux) = Tmux::start("the_screen_fits_80_by_24_and_is_given_back") else { return };
    let home = Home::new();
    tmux.types("PS1='back again $ '; clear");
    tmux.enter();
    tmux.types(&started(&home, "watch"));
    tmux.enter();
    let screen = tmux.until("the screen", |screen| screen.contains("what happened"));
    for part in ["tiermark watch", "q ends", "CPU", "stalled", "memory", "swap", "disk", "read", "write"] {
        assert!(screen.contains(part), "{part} is not in\n{screen}");
    }
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    // What it costs is told by its own account, which other programs do not change: five looks, below 2 % of a
    // processor; with room for the ticks of others that a kernel counts as ours.
    let pid = pid_of("watch", home.path().to_str().unwrap());
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let after = stat.rsplit_once(')').unwrap().1;
        after.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(5));
    let spent = ticks() - before;
    assert!(spent <= 25, "{spent} ticks of 10 ms in 5 s");
    tmux.types("q");
    let after = tmux.until("the shell", |screen| screen.contains("back again"));
    assert!(!after.contains("what happened"), "{after}");
    tmux.types("echo it; echo still echoes");
    tmux.enter();
    tmux.until("an echo", |screen| screen.contains("still echoes\n"));
}

/// One that went on turned round for a quarter of an hour.
#[test]
fn it_ends_with_its_terminal() {
    let Some(tmux) = Tmux::start("it_ends_with_its_terminal") else { return };
    let home = Home::new();
    tmux.types(&started(&home, "watch"));
    tmux.enter();
    tmux.until("the screen", |screen| screen.contains("what happened"));
    let pid = pid_of("watch", home.path().to_str().unwrap());
    drop(tmux);
    let begun = Instant::now();
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "process {pid} goes on without its terminal");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_run_can_be_looked_at() {
    let Some(tmux) = Tmux::start("a_run_can_be_looked_at") else { return };
    let home = Home::new();
    tmux.types("PS1='back again $ '; clear");
    tmux.enter();
    let words = format!("run job --set rw=read --set size=16M --set runtime=20s --live --on {}", home.work().display());
    tmux.types(&started(&home, &words));
    tmux.enter();
    let screen = tmux.until("the step", |screen| screen.contains("1 of 1") && screen.contains("p99"));
    assert!(screen.contains("MB/s") && screen.contains("CPU"), "{screen}");
    // As at any terminal, Ctrl-C ends the run, with all undone and the record kept.
    assert!(tmux.ask(&["send-keys", "C-c"]).status.success());
    tmux.until("the run's end", |screen| screen.contains("interrupted"));
    assert_eq!(home.last().steps[0].ended_by, "interrupted");
    assert_eq!(home.journal(), [""; 0]);
}

/// The process of this home that was told `verb`.
fn pid_of(verb: &str, home: &str) -> u32 {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut found = processes.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let words = std::fs::read(entry.path().join("cmdline")).ok()?;
        let told = words.split(|byte| *byte == 0).nth(1)? == verb.as_bytes();
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        (told && environment.windows(home.len()).any(|part| part == home.as_bytes())).then_some(pid)
    });
    found.next().expect("the program runs")
}
