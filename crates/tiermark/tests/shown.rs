//! Every command that the documentation shows, run: what it names as somebody's (a disk, a server, a model, runs, files) is there for it,
//! and what would measure for minutes is ended by Ctrl-C once it has begun, which has to leave the machine as it was.
#![forbid(unsafe_code)]

mod common;

use common::docs::{mentioned, root};
use common::machine::{alone, machine};
use common::{Disk, Place, Server, emulation, finish};
use rustix::process::Signal;
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// After so long it has begun; what takes no longer runs to its end.
const BEGUN: Duration = Duration::from_millis(2500);
/// Ctrl-C in mid-run, as shells count.
const INTERRUPTED: i32 = 130;

/// Those that need what is not here, or a machine that may be changed for good: the command or what it begins with (its `--dry-run`
/// runs here), and the test that runs them.
const ELSEWHERE: [(&str, &str, &str); 12] = [
    ("move --to /dev/sda", "moving", "a_system_that_runs_moves_while_it_is_written_to"),
    ("move … --dry-run", "moving", "a_system_moves_with_all_that_belongs_to_it"),
    ("move --from old.img", "moving", "a_system_moves_with_all_that_belongs_to_it"),
    ("move --undo", "moving", "a_system_moves_with_all_that_belongs_to_it"),
    ("move --finish", "moving", "a_system_moves_with_all_that_belongs_to_it"),
    ("load llm --server", "models", "a_runner_that_runs_already_is_asked_and_stays"),
    ("load llm --model qwen2.5-3b-q4.gguf", "models", "a_real_runner_makes_tokens_and_leaves_nothing"),
    ("load desktop", "desktop", "a_browser_opens_pages_on_a_board_s_disk_and_leaves_nothing"),
    ("apply --for desktop", "settings", "what_is_recommended_is_shown_applied_looked_at_and_taken_back"),
    ("revert", "settings", "what_is_recommended_is_shown_applied_looked_at_and_taken_back"),
    ("prove page-cluster", "prove", "page_cluster_is_proven_on_an_emulated_disk"),
    ("prove RULE", "prove", "what_helps_is_told_from_what_hurts_and_kept"),
];

/// What commands name.
struct Stage {
    place: Place,
    open: Server,
    /// Kept for its life: it asks for a password, at `port`.
    #[allow(dead_code, reason = "only its life counts")]
    locked: Server,
    port: String,
    disk: Disk,
    runs: [String; 2],
    /// A program that runs, whose name is `ollama`.
    program: Child,
}

impl Stage {
    fn new() -> Self {
        let place = Place::new();
        let home = &place.home;
        let at = home.path();
        for _ in 0..2 {
            let words = ["run", "job", "--set", "size=8M", "--set", "runtime=200ms", "--on", "work"];
            home.run(&words).code(0);
        }
        let runs = home.json(&["runs"])["runs"].clone();
        let runs = [0, 1].map(|index| runs[index]["run"].as_str().unwrap().to_owned());
        // The file that a page shows, with the dots as somebody fills them in.
        let page = fs::read_to_string(root().join("docs/profiles.md")).unwrap();
        let figures = page.split("## From figures alone").nth(1).unwrap().lines().skip(2);
        let figures = figures.map_while(|line| line.strip_prefix("    ")).collect::<Vec<_>>().join("\n");
        fs::write(at.join("review.toml"), figures).unwrap();
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (40000, 64), }";
        let numbers: Vec<u8> =
            (0..40_000 * 64_u32).flat_map(|n| (f64::from(n * 37 % 1009) as f32).to_le_bytes()).collect();
        let npy = [&b"\x93NUMPY\x01\x00\x76\x00"[..], format!("{header:<117}\n").as_bytes(), &numbers].concat();
        fs::write(at.join("embeddings.npy"), npy).unwrap();
        let shape = llm::MadeUp {
            layers: 8,
            embd: 1024,
            ffn: 2816,
            heads: 16,
            kv_heads: 16,
            vocab: 4096,
            context: 256,
            quant: llm::Quant::Q8_0,
            seed: 1,
        };
        shape.write(&at.join("FILE.gguf"), &std::sync::atomic::AtomicBool::new(false)).unwrap();
        let folders = ["open", "locked"].map(|name| at.join(name));
        folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
        let open = Server::start(&folders[0], &[]);
        open.tell("SET one two\r\nSET three four\r\n");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let words = ["--bind", "127.0.0.1", "--port", &port, "--requirepass", "PASSWORD"];
        let locked = Server::start(&folders[1], &words);
        fs::copy("/bin/sleep", at.join("ollama")).unwrap();
        let program = Command::new(at.join("ollama")).arg("600").spawn().unwrap();
        Stage { place, open, locked, port, disk: Disk::new(256), runs, program }
    }

    /// The command as somebody would type it here.
    fn typed(&self, command: &str) -> Vec<String> {
        let at = self.place.home.path();
        let work = at.join("work").display().to_string();
        let mut command = command.to_owned();
        let names = [
            ("/mnt/card", work.as_str()),
            ("/mnt/nvme", &work),
            ("/mnt/ssd", &work),
            ("--on /mnt", &format!("--on {work}")),
            ("/dev/sdb", self.disk.name()),
            ("7c1e", &self.runs[0]),
            ("91ab", &self.runs[1]),
            ("redis://127.0.0.1:6379", &self.open.url()),
            ("unix:///run/redis/redis.sock", &self.open.url()),
            ("4711", &self.program.id().to_string()),
            ("PASSWORD@host", &format!("PASSWORD@127.0.0.1:{}", self.port)),
            ("./program …", "sleep 2"),
        ];
        for (name, own) in names {
            command = command.replace(name, own);
        }
        shlex::split(&command).unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn every_command_that_is_shown_runs() {
    let test = "every_command_that_is_shown_runs";
    if !emulation(test, &["redis-server", "redis-cli", "mkfs.ext4"]) {
        return;
    }
    let _alone = alone();
    let before = machine();
    let stage = Stage::new();
    let home = &stage.place.home;
    let (mut ran, mut elsewhere, mut failed) = (0, 0, Vec::new());
    for (page, command) in mentioned() {
        let is = |begin: &str| {
            let rest = command.strip_prefix(begin);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ') && !rest.contains("--dry-run"))
        };
        if let Some((_, file, name)) = ELSEWHERE.iter().find(|(begin, ..)| is(begin)) {
            let code = fs::read_to_string(root().join(format!("crates/tiermark/tests/{file}.rs"))).unwrap();
            assert!(code.contains(&format!("fn {name}(")), "{page}: tiermark {command}: {file}.rs has no {name}");
            elsewhere += 1;
            continue;
        }
        if command.contains("profile:./card.toml") {
            fs::write(home.path().join("card.toml"), home.run(&["profiles", "sd-pi3"]).code(0).out).unwrap();
        }
        let began = Instant::now();
        let mut running = home.start(&stage.typed(&command));
        while began.elapsed() < BEGUN && running.child().try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let ended = running.child().try_wait().unwrap().is_some();
        if !ended {
            running.signal(Signal::INT);
        }
        let told = finish(running);
        println!("{page}: tiermark {command}: {:?}, {:.1} s", told.status.code(), began.elapsed().as_secs_f64());
        // What one ends that runs until it is ended has done what it should.
        let fine: &[i32] = if ended { &[0] } else { &[0, INTERRUPTED] };
        // Ended by the signal itself where there is nothing to take back: a shell sees the same number.
        let code = told.status.code().or_else(|| told.status.signal().map(|signal| 128 + signal));
        // A fault that is set needs no words; all others tell something.
        let silent = ended && told.out.is_empty() && !command.starts_with("emulate fault");
        if silent || !code.is_some_and(|code| fine.contains(&code)) {
            failed.push(format!("{page}: tiermark {command}: {told:#?}"));
        }
        ran += 1;
    }
    drop(stage);
    assert_eq!(machine(), before);
    println!("{ran} ran, {elsewhere} elsewhere");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(ran > 45, "{ran}");
}
