//! Starts a real runner on loopback, has it continue a text twice, and prints what it says of itself. The model is a GGUF, or
//! made up from its measures. `cargo run --release -p llm --example tell -- ollama layers=4,embd=512,vocab=4096` may be followed
//! by the number of tokens, that of threads, and `mmap` or `read`.
#![forbid(unsafe_code)]

mod shape;

use llm::{Blob, Client, Prompt, Runner, Serves, Setup, Start, free_port};
use std::error::Error;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(600);

/// Ended when it goes out of sight; Ollama ends its children only when it is asked.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = std::process::Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or("which program: ollama, llama-server or a path?")?;
    let what = arguments.next().ok_or("which model: a GGUF, or layers=4,embd=512?")?;
    let tokens = NonZeroU32::new(arguments.next().map_or(Ok(64), |n| n.parse())?).ok_or("0 tokens?")?;
    let threads = arguments.next().map(|n| n.parse()).transpose()?;
    let mmap = arguments.next().map(|word| word == "mmap");
    let setup = Setup { context: 1024, threads, mmap };
    let go_on = AtomicBool::new(false);
    let runner = if program.contains("llama-server") { Runner::LlamaServer } else { Runner::Ollama };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = if program.contains('/') { PathBuf::from(program) } else { runner.find(&path)? };
    let folder = std::env::temp_dir().join(format!("tell-{}", std::process::id()));
    let models = folder.join("models");
    std::fs::create_dir_all(&models)?;

    let began = Instant::now();
    let (file, text) = if what.contains('=') {
        let (model, file) = (shape::made_up(&what)?, folder.join("m.gguf"));
        println!("written: {} in {:?}", model.write(&file, &go_on)?, began.elapsed());
        (file, model.prompt(32))
    } else {
        (PathBuf::from(&what), "Once upon a time there was a small house in a wood. In it lived".to_owned())
    };
    let varied = what.contains('=');
    let result = tell(runner, &program, &folder, &file, &Prompt { text, tokens, seed: 1, varied }, setup);
    std::fs::remove_dir_all(&folder)?;
    result
}

fn tell(
    runner: Runner,
    program: &Path,
    folder: &Path,
    file: &Path,
    prompt: &Prompt,
    setup: Setup,
) -> Result<(), Box<dyn Error>> {
    let go_on = AtomicBool::new(false);
    let models = folder.join("models");
    let began = Instant::now();
    let (blob, serves) = match runner {
        Runner::Ollama => (Some(Blob::place(&models, file, &go_on)?), Serves::Ollama { models }),
        Runner::LlamaServer => (None, Serves::LlamaServer { model: file.to_owned() }),
    };
    println!("placed: {blob:?} in {:?}", began.elapsed());
    let start = Start { program: program.to_owned(), port: free_port()?, home: folder.to_owned(), serves, setup };
    let log = std::fs::File::create(folder.join("log"))?;
    let mut command = start.command()?.to_std();
    let mut child = Ended(command.stdout(log.try_clone()?).stderr(log).spawn()?);
    let client = Client::new(runner, start.addr(), "random", setup, PATIENCE)?;
    let ready = client.wait_until_ready(PATIENCE, &go_on, &mut || child.0.try_wait().is_ok_and(|gone| gone.is_none()));
    if ready.is_err() {
        println!("{}", std::fs::read_to_string(folder.join("log"))?);
    }
    println!("ready in {}, version {}", ready?, client.version(&go_on)?);
    if let Some(blob) = &blob {
        let began = Instant::now();
        client.add_model(blob, &go_on)?;
        println!("created in {:?}: {:?}", began.elapsed(), client.models(&go_on)?);
    }
    println!("loaded in {:?}", client.load(&go_on)?);
    for _ in 0..2 {
        let said = client.generate(prompt, &go_on, &mut |_| {})?;
        println!(
            "{} tokens, {} instants, {:?}/s, total {}",
            said.tokens(),
            said.instants.len(),
            said.rate(),
            said.total
        );
        println!("{:?} {:?} first at {:?}", said.ended, said.account, said.instants.first());
        println!("{:?}", said.text.chars().take(300).collect::<String>());
        client.forget(&go_on)?;
    }
    if std::env::var_os("TELL_WAIT").is_some() {
        std::thread::sleep(Duration::from_secs(20));
    }
    let began = Instant::now();
    client.unload(&go_on)?;
    println!("unloaded in {:?}", began.elapsed());
    Ok(())
}
