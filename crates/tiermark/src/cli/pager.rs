//! What can be typed behind `pager`.

use super::When;
use clap::{Args, Subcommand};

/// What `pager` takes.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PagerArgs {
    /// A process that runs; those that it starts are helped with it.
    #[arg(long, value_name = "PID", conflicts_with = "name")]
    pub pid: Option<u32>,
    /// The process of this name; of several the oldest.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Tell every second how it stands, on standard output; with --json a document a line.
    #[arg(long)]
    pub live: bool,
    /// Serve what Prometheus reads, on loopback, meanwhile: http://ADDRESS/metrics. Port 0 is any that is free.
    #[arg(long, value_name = "127.0.0.1:PORT")]
    pub metrics: Option<String>,
    /// A program to start, and to help from its first page on; the exit status is its own.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["pid", "name"])]
    pub command: Vec<String>,
    /// Bring in pages of this process as standard input says: what the pager starts in a program's control group.
    #[arg(long, hide = true, value_name = "PID", conflicts_with_all = ["pid", "name", "command"])]
    pub hand: Option<u32>,
    /// Once standard input ends, have the counts of the processes named there renewed for a while: what the pager leaves behind.
    #[arg(long, hide = true, conflicts_with_all = ["pid", "name", "command", "hand"])]
    pub after: bool,
    /// Something else than to help.
    #[command(subcommand)]
    pub action: Option<PagerVerb>,
}

/// What else can be done.
#[derive(Debug, Subcommand)]
pub enum PagerVerb {
    /// Measure what it brings on this machine: a cyclic scan and a model's decoding, with the pager and without, in turns.
    Bench(PagerBenchArgs),
}

/// What `pager bench` takes.
#[derive(Debug, Args)]
pub struct PagerBenchArgs {
    /// The disk to swap to, a profile to emulate, or another tier as `load swap` takes it.
    #[arg(long, default_value = "disk-425", value_name = "PROFILE|TIER")]
    pub on: String,
    /// The cyclic scan alone, smaller and once: within 50 s on disk-425.
    #[arg(long)]
    pub quick: bool,
    /// Pairs of turns. Default: 5, with --quick 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    pub pairs: Option<u32>,
    /// When to show progress.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub progress: When,
}
