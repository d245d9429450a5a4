//! `load llm`: what its options ask for.

use super::{curve, page, parsed, pressure, tiers};
use crate::cli::{LlmArgs, Server as Which};
use crate::exit::{Missing, Usage};
use crate::verbs::models;
use anyhow::Result;
use basics::decoding::{Server, Serving, Source};
use basics::{Bytes, Nanos, Plan};
use llm::{Client, Runner, Setup};
use machine::Machine;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use workloads::llm::Request;

/// What is to be done.
pub fn plan(args: &LlmArgs, machine: &Machine) -> Result<Plan> {
    let (server, runner) = match args.runner {
        Which::Ollama => (Server::Ollama, Runner::Ollama),
        Which::LlamaServer => (Server::LlamaServer, Runner::LlamaServer),
    };
    let at = match args.server {
        Some(addr) => Place::Running(addr),
        None => Place::Program(program(args, runner)?),
    };
    let models = args.model.iter().map(|model| serving(args, model, (server, runner), &at));
    let models = models.collect::<Result<Vec<_>>>()?;
    let pressed = &args.pressed;
    if args.as_published && pressed.lock.is_none() && pressed.leave.is_none() {
        let sentence = "the article locked 2.8 GB of 4: with --as-published say what is locked with --lock SIZE, and with --memory SIZE \
                        what machine stands for the board";
        return Err(Usage(sentence.to_owned()).into());
    }
    let request = Request {
        models,
        pressure: pressure(pressed, machine, |bytes| bytes)?,
        tiers: match args.server {
            // It is there, and so is what it is swapped to.
            Some(_) if pressed.swap.is_empty() && !pressed.ladder => vec![super::tier("own")?],
            _ => tiers(pressed, |_| true)?,
        },
        time: parsed::<Nanos>("--runtime", &args.runtime)?,
        repeat: pressed.repeat,
        page_cluster: pressed.page_cluster,
        swappiness: pressed.swappiness,
        as_published: args.as_published,
        curve: curve(pressed, |bytes| bytes)?,
        seed: pressed.seed,
        page: page(),
    };
    Ok(request.plan()?)
}

/// Where the runner comes from.
enum Place {
    Program(PathBuf),
    Running(SocketAddr),
}

fn program(args: &LlmArgs, runner: Runner) -> Result<PathBuf> {
    match &args.program {
        Some(program) => Ok(std::fs::canonicalize(program)
            .map_err(|error| Missing(format!("--program {}: {error}", program.display())))?),
        None => Ok(runner
            .find(&std::env::var_os("PATH").unwrap_or_default())
            .map_err(|error| Missing(format!("{error}; --program FILE does that")))?),
    }
}

fn serving(args: &LlmArgs, model: &str, (server, runner): (Server, Runner), at: &Place) -> Result<Serving> {
    // A rough guess of a prompt's tokens: what it says exactly, it says when it runs.
    let given = (args.prompt.len() / 4 + 1) as u32;
    let mut serving = Serving {
        server,
        program: None,
        model: model.to_owned(),
        source: Source::File(PathBuf::from(model)),
        prompt: args.prompt.clone(),
        tokens: args.tokens,
        context: args.context,
        threads: args.threads,
        mapped: args.mapped.then_some(true),
        random: args.random_weights,
        size: Bytes(0),
        touched: None,
        cache: None,
        room: Bytes(0),
    };
    let path = match at {
        Place::Running(addr) => {
            serving.source = Source::Running { addr: *addr, name: model.to_owned() };
            shown(runner, *addr, model)?
        }
        Place::Program(program) => {
            serving.program = Some(program.clone());
            Some(match &args.models {
                None => {
                    let path = std::fs::canonicalize(model).map_err(|error| {
                        Missing(format!("the model {model}: {error}; give a GGUF, or --models DIR for Ollama's names"))
                    })?;
                    serving.source = Source::File(path.clone());
                    path
                }
                Some(folder) => {
                    let models = std::fs::canonicalize(folder)
                        .map_err(|error| Missing(format!("--models {}: {error}", folder.display())))?;
                    let blob = llm::model_file(&models, model).map_err(|error| Missing(error.to_string()))?;
                    serving.source = Source::Folder { models, name: model.to_owned() };
                    blob
                }
            })
        }
    };
    // A runner that runs may keep its models where nobody else can read them.
    let Some(path) = path else { return Ok(serving) };
    let about = std::fs::metadata(&path).map_err(|error| Missing(format!("the model {}: {error}", path.display())))?;
    serving.size = Bytes(about.len());
    let (name, header) = models::file(&path)?;
    if matches!(serving.source, Source::File(_)) {
        serving.model = name;
    }
    // llama-server may have flash attention, with which values do not lie across the room.
    let room = if server == Server::Ollama { args.context } else { 0 };
    // A runner may know what we do not: it is told to try.
    if let Ok(decoding) = workloads::decode::decoding(&serving.model, &header, given, args.tokens, room) {
        serving.touched = Some(decoding.touched());
        serving.cache = Some(decoding.cache_in_use(page()));
        serving.room = decoding.cache();
    }
    Ok(serving)
}

/// The file of a model that a runner has, where it says so and it can be read.
fn shown(runner: Runner, addr: SocketAddr, model: &str) -> Result<Option<PathBuf>> {
    /// Until it has answered.
    const PATIENCE: Duration = Duration::from_secs(10);
    let setup = Setup { context: 0, threads: None, mmap: None };
    let client = Client::new(runner, addr, model, setup, PATIENCE);
    let client = client.map_err(|error| Usage(format!("--server: {error}")))?;
    let path = client.model_file(&AtomicBool::new(false)).map_err(|error| Missing(error.to_string()))?;
    Ok(path.filter(|path| path.is_file()))
}
