//! What an emulated disk costs the machine: the emulator's CPU time for a request, by block size and depth, of a disk as fast
//! as the way lets and of one whose answers wait for their time: `cargo bench -p tiermark --bench emulate`, as root.
//! fio asks, past the page cache; the jobs take turns, and medians are shown, with half of what lies between the extremes.
#![forbid(unsafe_code)]

use serde_json::Value;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Turns that each job has.
const ROUNDS: usize = 3;
/// Its name, and what a read and a write take, µs.
const DISKS: [(&str, u32); 2] = [("at-once", 1), ("half-a-ms", 500)];
const BLOCKS: [(&str, &str); 3] = [("4 KiB", "4k"), ("16 KiB", "16k"), ("1 MiB", "1M")];
const DEPTHS: [u32; 3] = [1, 4, 16];

fn main() -> io::Result<()> {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        println!("skipped: emulated disks need root and FUSE");
        return Ok(());
    }
    let home = tempfile::tempdir()?;
    let tiermark = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiermark"));
        command.args(words).current_dir(home.path()).env("XDG_DATA_HOME", home.path());
        output(command)
    };
    let mut disks = Vec::new();
    let mut measured = Ok(Vec::new());
    for (name, us) in DISKS {
        let file = format!("{name}.toml");
        let text = format!("name = \"{name}\"\n[read]\nlatency_us = {us}\n[write]\nlatency_us = {us}\n");
        std::fs::write(home.path().join(&file), text)?;
        let about = tiermark(&["emulate", &format!("./{file}"), "--size", "256MiB", "--detach", "--json"]);
        match about.and_then(|about| text_at(&about, "device")) {
            Ok(device) => disks.push((name, device)),
            Err(error) => measured = Err(error),
        }
    }
    if measured.is_ok() {
        measured = rounds(&disks, &|name| account(&tiermark(&["emulate", "show", name, "--json"])?));
    }
    // Whatever happened, no disk stays.
    let stopped = disks.iter().map(|(name, _)| tiermark(&["emulate", "stop", name])).collect::<Vec<_>>();
    let measured = measured.and_then(|rows| stopped.into_iter().collect::<io::Result<Vec<_>>>().map(|_| rows));
    println!("| a request takes | block | depth | read, CPU µs | ± | write, CPU µs | ± |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for Row { disk, block, depth, costs } in measured? {
        let us = DISKS.iter().find(|(name, _)| *name == disk).map_or(0, |(_, us)| *us);
        let [read, write] = costs.map(|mut costs| {
            costs.sort_by(f64::total_cmp);
            let at = |part: usize| costs[(costs.len() - 1) * part / 4];
            format!("{:.1} | {:.1}", at(2), (at(4) - at(0)) / 2.0)
        });
        println!("| {us} µs | {block} | {depth} | {read} | {write} |");
    }
    Ok(())
}

struct Row<'a> {
    disk: &'a str,
    block: &'a str,
    depth: u32,
    /// Of a read and of a write in each round, µs.
    costs: [Vec<f64>; 2],
}

/// All jobs in turns. `account` gives the requests of a disk and the CPU µs that they cost, since its start.
fn rounds<'a>(
    disks: &[(&'a str, String)],
    account: &dyn Fn(&str) -> io::Result<(f64, f64)>,
) -> io::Result<Vec<Row<'a>>> {
    let mut rows = Vec::new();
    for (disk, _) in disks {
        for (block, _) in BLOCKS {
            rows.extend(DEPTHS.map(|depth| Row { disk, block, depth, costs: [vec![], vec![]] }));
        }
    }
    for (_, device) in disks {
        // Reads of holes would cost less.
        fio(device, "--rw=write --bs=1M --iodepth=4 --size=256M")?;
    }
    for _ in 0..ROUNDS {
        for row in &mut rows {
            let Some((name, device)) = disks.iter().find(|(name, _)| *name == row.disk) else { continue };
            let bytes = BLOCKS.iter().find(|(block, _)| *block == row.block).map_or("4k", |(_, bytes)| bytes);
            for (rw, costs) in ["randread", "randwrite"].iter().zip(&mut row.costs) {
                let before = account(name)?;
                fio(device, &format!("--rw={rw} --bs={bytes} --iodepth={} --runtime=1 --time_based", row.depth))?;
                let after = account(name)?;
                costs.push((after.1 - before.1) / (after.0 - before.0));
            }
        }
    }
    Ok(rows)
}

fn account(shown: &Value) -> io::Result<(f64, f64)> {
    let figure = |key: &str| {
        let missing = || io::Error::other(format!("the emulated disk says nothing of {key}"));
        shown["figures"][key].as_f64().ok_or_else(missing)
    };
    let requests = figure("reads")? + figure("writes")? + figure("flushes")? + figure("trims")?;
    Ok((requests, figure("cpu_us_per_request")? * requests))
}

fn fio(device: &str, job: &str) -> io::Result<()> {
    let mut command = Command::new("fio");
    command.args(["--name=x", "--ioengine=libaio", "--direct=1", "--filename", device]).args(job.split(' '));
    run(command).map(drop)
}

fn text_at(document: &Value, key: &str) -> io::Result<String> {
    let missing = || io::Error::other(format!("no {key} in {document}"));
    document[key].as_str().map(str::to_owned).ok_or_else(missing)
}

/// What a command prints as a document; nothing when it prints no document.
fn output(command: Command) -> io::Result<Value> {
    Ok(serde_json::from_slice(&run(command)?).unwrap_or(Value::Null))
}

fn run(mut command: Command) -> io::Result<Vec<u8>> {
    let name = Path::new(command.get_program()).display().to_string();
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
    let output = command.stdin(Stdio::null()).output().map_err(named)?;
    let told = || io::Error::other(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
    if output.status.success() { Ok(output.stdout) } else { Err(told()) }
}
