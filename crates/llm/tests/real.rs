//! A real Ollama with a model of random weights: made, placed, created, loaded, decoded, put away. Skipped where there is
//! none: its program is what `TIERMARK_OLLAMA` names, or else `ollama` in `PATH`.
#![forbid(unsafe_code)]

use basics::Nanos;
use llm::{Blob, Client, Ended, LlmError, MadeUp, Prompt, Quant, Runner, Serves, Setup, Start, free_port};
use std::fs::File;
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Other tests share the cores, and the runner's threads wait for each other.
const PATIENCE: Duration = Duration::from_secs(300);
static GO_ON: AtomicBool = AtomicBool::new(false);

const MODEL: MadeUp = MadeUp {
    layers: 4,
    embd: 512,
    ffn: 1536,
    heads: 8,
    kv_heads: 4,
    vocab: 4096,
    context: 2048,
    quant: Quant::Q8_0,
    seed: 7,
};

fn program() -> Option<PathBuf> {
    match std::env::var_os("TIERMARK_OLLAMA") {
        Some(program) => Some(program.into()),
        None => Runner::Ollama.find(&std::env::var_os("PATH")?).ok(),
    }
}

/// Asked to end when it goes out of sight: killed, it would leave the process of its model behind.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// The processes whose parent is `parent`.
fn children(parent: u32) -> Vec<u32> {
    let pids =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let of = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        after_name.split_whitespace().nth(1) == Some(parent.to_string().as_str())
    };
    pids.filter(of).collect()
}

#[test]
fn ollama_decodes_random_weights() {
    const NAME: &str = "ollama_decodes_random_weights";
    let Some(program) = program() else { return println!("SKIP {NAME}: no ollama, and TIERMARK_OLLAMA names none") };
    let dir = tempfile::tempdir().unwrap();
    let (models, home, log) = (dir.path().join("models"), dir.path().join("home"), dir.path().join("log"));
    std::fs::create_dir(&home).unwrap();

    for quant in [Quant::Q8_0, Quant::Q4_0] {
        let model = MadeUp { quant, ..MODEL };
        let file = dir.path().join(format!("{quant:?}.gguf"));
        model.write(&file, &GO_ON).unwrap();
        let blob = Blob::place(&models, &file, &GO_ON).unwrap();

        let setup = Setup { context: 1024, threads: Some(1), mmap: None };
        let serves = Serves::Ollama { models: models.clone() };
        let start = Start { program: program.clone(), port: free_port().unwrap(), home: home.clone(), serves, setup };
        let log = File::create(&log).unwrap();
        let mut command = start.command().unwrap().to_std();
        let mut server = Server(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
        let client = Client::new(Runner::Ollama, start.addr(), "random", setup, PATIENCE).unwrap();
        client.wait_until_ready(PATIENCE, &GO_ON, &mut || server.0.try_wait().unwrap().is_none()).unwrap();
        assert!(!client.version(&GO_ON).unwrap().is_empty());
        client.add_model(&blob, &GO_ON).unwrap();
        assert_eq!(client.models(&GO_ON).unwrap(), ["random:latest"]);
        assert_eq!(blob.path.metadata().unwrap().nlink(), 2, "the weights were copied");
        let took = client.load(&GO_ON).unwrap().unwrap();
        let [child] = children(server.0.id())[..] else { panic!("one process has the model") };

        // Many enough that a loop would show.
        let (text, tokens) = (model.prompt(32), NonZeroU32::new(200).unwrap());
        let prompt = Prompt { text, tokens, seed: 1, varied: true };
        let mut heard = 0;
        let said = client.generate(&prompt, &GO_ON, &mut |_| heard += 1).unwrap();
        let account = said.account.unwrap();
        println!("{quant:?}: loaded in {took}, {:?} tokens/s, {account:?}", said.rate());
        assert_eq!(
            (said.ended, said.tokens(), said.instants.len(), heard),
            (Ended::Asked, 200, 200, 200),
            "{}",
            said.text
        );
        assert_eq!(account.prompt_tokens, 32);
        assert!(account.total.unwrap() <= said.total && said.rate().is_some_and(|rate| rate > 0.0));
        assert!(said.instants.is_sorted() && said.instants[0] >= account.prompt_time);

        // The same again: the prompt is known, unless it was forgotten, and the words are the same.
        let known = client.generate(&prompt, &GO_ON, &mut |_| {}).unwrap();
        client.forget(&GO_ON).unwrap();
        let forgotten = client.generate(&prompt, &GO_ON, &mut |_| {}).unwrap();
        let time = |account: Option<llm::Account>| account.map(|account| account.prompt_time).unwrap();
        println!(
            "prompt: {:?}, known {:?}, forgotten {:?}",
            account.prompt_time,
            time(known.account),
            time(forgotten.account)
        );
        assert!(known.text == said.text || quant == Quant::Q4_0, "{}", known.text);
        assert_eq!(forgotten.text, said.text);

        // Interrupted, it is free for the next.
        let cancel = AtomicBool::new(false);
        let mut stop = |_: Nanos| cancel.store(true, Ordering::Relaxed);
        let began = Instant::now();
        assert!(matches!(client.generate(&prompt, &cancel, &mut stop), Err(LlmError::Cancelled)));
        println!("let go in {:?}", began.elapsed());

        client.unload(&GO_ON).unwrap();
        assert!(!PathBuf::from(format!("/proc/{child}")).exists(), "the model's process is still there");
        drop(server);
    }
}
