//! Writes a GGUF of random weights that Ollama and llama.cpp load, and prints a prompt in its language:
//! `cargo run --release -p llm --example random -- m.gguf layers=24,embd=2048,ffn=5632,heads=16,kv_heads=16,vocab=32000`.
#![forbid(unsafe_code)]

mod shape;

use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which file?")?;
    let model = shape::made_up(&arguments.next().ok_or("which measures: layers=4,embd=512?")?)?;
    let bytes = model.write(Path::new(&file), &AtomicBool::new(false))?;
    println!("{bytes} in {file}; a prompt of 16 tokens: {}", model.prompt(16));
    Ok(())
}
