//! The models that options name: files, well-known names, made-up shapes.

use crate::cli::ModelArgs;
use crate::exit::{Missing, Usage};
use anyhow::Result;
use gguf::{Header, Shape};
use std::fs::File;
use std::path::Path;

/// All of them: what each is called, and its header.
pub fn all(args: &ModelArgs) -> Result<Vec<(String, Header)>> {
    let mut all = Vec::with_capacity(args.model.len() + 1);
    for model in &args.model {
        all.push(named(model)?);
    }
    if let Some(text) = &args.shape {
        let shape = Shape::parse(text).map_err(|error| Usage(format!("--shape: {error}")))?;
        all.push((format!("{} layers of {}, {:?}", shape.layers, shape.embd, shape.quant), shape.header()));
    }
    Ok(all)
}

/// The only one.
pub fn one(args: &ModelArgs) -> Result<(String, Header)> {
    let mut all = all(args)?;
    match (all.pop(), all.len()) {
        (Some(one), 0) => Ok(one),
        _ => Err(Usage("give one model: --model FILE.gguf, --model NAME or --shape KEY=N,…".to_owned()).into()),
    }
}

/// A file where there is one; else a name.
fn named(text: &str) -> Result<(String, Header)> {
    let path = Path::new(text);
    let is_file = path.exists() || text.contains('/') || path.extension().is_some_and(|ending| ending == "gguf");
    if !is_file {
        let (model, mix) = gguf::models::find(text).map_err(|error| Usage(error.to_string()))?;
        return Ok((text.to_owned(), model.header(mix)));
    }
    file(path)
}

/// A model's file.
pub fn file(path: &Path) -> Result<(String, Header)> {
    let text = path.display();
    let wrong = |error: std::io::Error| Missing(format!("the model {text}: {error}"));
    let file = File::open(path).map_err(wrong)?;
    let about = file.metadata().map_err(wrong)?;
    if !about.is_file() {
        return Err(Usage(format!("{text} is no file; give a model's file (GGUF)")).into());
    }
    let header = gguf::read(file, about.len()).map_err(|error| Usage(format!("{text}: {error}")))?;
    let name =
        header.name.clone().unwrap_or_else(|| path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    Ok((name, header))
}
