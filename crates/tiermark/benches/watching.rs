//! What it costs to have a program look on once a second, beside iostat, dool and btop: `cargo bench -p tiermark --bench watching`. Each has
//! the machine for twenty seconds, in turns; processor time in per cent of a core and the most memory, as `/proc` tells them.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);
const ROUNDS: usize = 3;
/// Clock ticks of `/proc/PID/stat` a second (USER_HZ; 100 on every Linux that has one of these programs).
const TICKS: f64 = 100.0;

/// A program, how it is started, and the name of the process that does the work.
struct Looker {
    name: &'static str,
    program: PathBuf,
    line: String,
    process: &'static str,
}

fn main() -> io::Result<()> {
    let home = tempfile::tempdir()?;
    let own = PathBuf::from(env!("CARGO_BIN_EXE_tiermark"));
    let mut lookers = vec![
        // On a terminal of 80 by 24, as somebody sees it; `script` is that terminal.
        Looker {
            name: "tiermark watch",
            line: terminal(&format!("{} watch", own.display())),
            program: own.clone(),
            process: "tiermark",
        },
        Looker {
            name: "tiermark watch, lines",
            line: format!("{} watch", own.display()),
            program: own,
            process: "tiermark",
        },
    ];
    let peers = [
        ("iostat -x 1", "iostat -x 1".to_owned(), "iostat"),
        ("dool 1", terminal("dool 1"), "dool"),
        ("btop", terminal("btop -lc --utf-force"), "btop"),
    ];
    for (name, line, process) in peers {
        match found(process) {
            Some(program) => lookers.push(Looker { name, program, line, process }),
            None => println!("without {process}: it is not here"),
        }
    }
    // It looks every two seconds unless told otherwise, and is told so by this file only.
    fs::create_dir_all(home.path().join(".config/btop"))?;
    fs::write(home.path().join(".config/btop/btop.conf"), "update_ms = 1000\n")?;
    let mut seen = vec![Vec::new(); lookers.len()];
    for _ in 0..ROUNDS {
        for (looker, seen) in lookers.iter().zip(&mut seen) {
            seen.push(looked(looker, home.path())?);
        }
    }
    println!("| program | CPU, % of a core | memory, MB | program, MB |\n| --- | --- | --- | --- |");
    for (looker, seen) in lookers.iter().zip(&mut seen) {
        seen.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (cpu, memory) = seen[seen.len() / 2];
        let size = fs::metadata(&looker.program)?.len() as f64 / 1e6;
        println!(
            "| `{}` | {cpu:.2} ({:.2} to {:.2}) | {memory:.1} | {size:.1} |",
            looker.name,
            seen[0].0,
            seen[seen.len() - 1].0
        );
    }
    Ok(())
}

/// The line on a terminal of its own.
fn terminal(line: &str) -> String {
    format!("script -qfc 'stty cols 80 rows 24; exec {line}' /dev/null")
}

fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Per cent of a core, and MB.
fn looked(looker: &Looker, home: &Path) -> io::Result<(f64, f64)> {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("exec {}", looker.line)])
        .env("HOME", home)
        .env("XDG_DATA_HOME", home)
        .env("TERM", "xterm-256color")
        .env("LANG", "C.UTF-8");
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let child = Ended(child);
    std::thread::sleep(Duration::from_secs(2));
    let pid =
        below(child.0.id(), looker.process).ok_or_else(|| io::Error::other(format!("{} does not run", looker.name)))?;
    let (began, before) = (Instant::now(), ticks(pid)?);
    std::thread::sleep(LONG);
    let cpu = (ticks(pid)? - before) / TICKS / began.elapsed().as_secs_f64() * 100.0;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let most =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    Ok((cpu, most.unwrap_or(0.0) * 1024.0 / 1e6))
}

fn ticks(pid: u32) -> io::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
    Ok(fields[11..13].iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum())
}

/// The process of that name: this one, or one that it started.
fn below(pid: u32, name: &str) -> Option<u32> {
    if fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim() == name {
        return Some(pid);
    }
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().filter_map(|child| below(child.parse().ok()?, name)).next()
}

/// Ends it, and what it started by the terminal that it no longer has.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}
