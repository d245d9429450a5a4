//! `load llm`: what its options ask for.

use super::{parsed, pressure, tiers};
use crate::cli::{LlmArgs, Server as Which};
use crate::exit::{Missing, Usage};
use crate::verbs::models;
use anyhow::Result;
use basics::decoding::{Server, Serving, Source};
use basics::{Bytes, Nanos, Plan};
use llm::Runner;
use machine::Machine;
use std::path::PathBuf;
use workloads::llm::Request;

/// What is to be done.
pub fn plan(args: &LlmArgs, machine: &Machine) -> Result<Plan> {
    let (server, runner) = match args.runner {
        Which::Ollama => (Server::Ollama, Runner::Ollama),
        Which::LlamaServer => (Server::LlamaServer, Runner::LlamaServer),
    };
    let program = match &args.program {
        Some(program) => std::fs::canonicalize(program)
            .map_err(|error| Missing(format!("--program {}: {error}", program.display())))?,
        None => runner
            .find(&std::env::var_os("PATH").unwrap_or_default())
            .map_err(|error| Missing(format!("{error}; --program FILE does that")))?,
    };
    let models = args.model.iter().map(|model| serving(args, model, server, program.clone()));
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
        tiers: tiers(pressed, |_| true)?,
        time: parsed::<Nanos>("--runtime", &args.runtime)?,
        repeat: pressed.repeat,
        page_cluster: pressed.page_cluster,
        swappiness: pressed.swappiness,
        as_published: args.as_published,
        seed: pressed.seed,
        page: Bytes(rustix::param::page_size() as u64),
    };
    Ok(request.plan()?)
}

fn serving(args: &LlmArgs, model: &str, server: Server, program: PathBuf) -> Result<Serving> {
    // A rough guess of a prompt's tokens: what it says exactly, it says when it runs.
    let given = (args.prompt.len() / 4 + 1) as u32;
    let mut serving = Serving {
        server,
        program,
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
    };
    let path = match &args.models {
        None => std::fs::canonicalize(model).map_err(|error| {
            Missing(format!("the model {model}: {error}; give a GGUF, or --models DIR for Ollama's names"))
        })?,
        Some(folder) => {
            let models = std::fs::canonicalize(folder)
                .map_err(|error| Missing(format!("--models {}: {error}", folder.display())))?;
            let blob = llm::model_file(&models, model).map_err(|error| Missing(error.to_string()))?;
            serving.source = Source::Folder { models, name: model.to_owned() };
            blob
        }
    };
    let about = std::fs::metadata(&path).map_err(|error| Missing(format!("the model {}: {error}", path.display())))?;
    serving.size = Bytes(about.len());
    let (name, header) = models::file(&path)?;
    if args.models.is_none() {
        serving.model = name;
        serving.source = Source::File(path);
    }
    // A runner may know what we do not: it is told to try.
    if let Ok(decoding) = workloads::decode::decoding(&serving.model, &header, given, args.tokens) {
        serving.touched = Some(decoding.touched());
        serving.cache = Some(decoding.cache());
    }
    Ok(serving)
}
