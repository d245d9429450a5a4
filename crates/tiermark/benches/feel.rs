//! How long the commands that only look take, from being typed to being over, beside fio's shortest: `cargo bench -p
//! tiermark --bench feel`. The programs take turns; medians of milliseconds, with half the distance of their quartiles.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Turns that each command has.
const ROUNDS: usize = 41;
const COMMANDS: [&[&str]; 4] = [&["--version"], &["tiers"], &["runs"], &["show", "last"]];

fn main() -> io::Result<()> {
    let home = tempfile::tempdir()?;
    let tiermark = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiermark"));
        command.args(words).env("XDG_DATA_HOME", home.path());
        command
    };
    // A run to be listed and shown.
    milliseconds(tiermark(&["run", "job", "--on", "null", "--set", "runtime=1s"]))?;
    let mut fio = Command::new("fio");
    fio.arg("--version");
    let with_fio = milliseconds(fio).inspect_err(|error| println!("without fio: {error}")).is_ok();
    let mut times = vec![Vec::new(); COMMANDS.len() + 1];
    for _ in 0..ROUNDS {
        for (words, times) in COMMANDS.iter().zip(&mut times) {
            times.push(milliseconds(tiermark(words))?);
        }
        if with_fio {
            let mut fio = Command::new("fio");
            fio.arg("--version");
            times[COMMANDS.len()].push(milliseconds(fio)?);
        }
    }
    println!("| command | ms, median | ± |\n| --- | --- | --- |");
    let names = COMMANDS.iter().map(|words| format!("tiermark {}", words.join(" ")));
    for (name, times) in
        names.chain(["fio --version".to_owned()]).zip(&mut times).filter(|(_, times)| !times.is_empty())
    {
        times.sort_by(f64::total_cmp);
        let at = |part: usize| times[times.len() * part / 4];
        println!("| `{name}` | {:.1} | {:.1} |", at(2), (at(3) - at(1)) / 2.0);
    }
    Ok(())
}

/// From starting a command to its end.
fn milliseconds(mut command: Command) -> io::Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let name = Path::new(command.get_program()).display().to_string();
    let began = Instant::now();
    let status = command.status().map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    let time = began.elapsed().as_secs_f64() * 1e3;
    if status.success() { Ok(time) } else { Err(io::Error::other(format!("{name} ended with {status}"))) }
}
