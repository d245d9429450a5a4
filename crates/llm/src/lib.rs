//! A real model runner on loopback, Ollama or llama.cpp's `llama-server`: what to start, what to tell it, and what it said,
//! with the instant of every token. It downloads nothing and starts nothing: into which cgroup the process goes, and what the
//! machine did meanwhile, is for others. [`MadeUp`] writes a model of random weights for when there is none to be had.
#![forbid(unsafe_code)]

mod blob;
mod client;
mod error;
mod generation;
mod http;
mod llama_server;
mod made_up;
mod manifest;
mod ollama;
mod start;

pub use blob::Blob;
pub use client::Client;
pub use error::{Asked, LlmError};
pub use generation::{Account, Ended, Generation, Prompt};
pub use made_up::{MadeUp, Quant};
pub use manifest::model_file;
pub use start::{Command, Runner, Serves, Setup, Start, free_port};
