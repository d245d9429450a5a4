//! What `advise`, `apply`, `revert` and `status` take.

use clap::Args;
use std::path::PathBuf;

/// What the machine is for.
#[derive(Debug, Args)]
pub struct GoalArgs {
    /// What the machine is for: desktop, llm, server, build, redis-cache, redis-store or redis-vectors; what helps in any case
    /// when not given.
    #[arg(long = "for", value_name = "JOB", default_value = "any", hide_default_value = true)]
    pub job: String,
    /// Redis: 19 of 20 requests are to be answered within it; 10ms when not given.
    #[arg(long, value_name = "TIME")]
    pub p95: Option<String>,
    /// Redis: acknowledged writes of the last so long may be lost by a power cut: a time, 0, or all; 2s for redis-store and all
    /// for the others when not given.
    #[arg(long, value_name = "TIME|0|all")]
    pub loss: Option<String>,
    /// Redis: what the server may take in all; three quarters of the machine's when not given.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Redis: length of a value: 64 for redis-cache and 512 for the others when not given.
    #[arg(long, value_name = "SIZE")]
    pub payload: Option<String>,
    /// Redis: where its files lie: a directory, or a profile's name for a disk that was emulated.
    #[arg(long, value_name = "DIR|PROFILE")]
    pub on: Option<String>,
    /// The machine whose /proc, /sys, /etc and /boot lie below this folder: a captured one, or a mounted image.
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true)]
    pub root: PathBuf,
}

/// What `advise` takes.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    #[command(flatten)]
    pub goals: GoalArgs,
    /// Write the files of a Redis server into this folder, too; none is replaced.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What `apply` takes.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// Only what these rules recommend; all that can be applied when not given.
    #[arg(value_name = "RULE")]
    pub rules: Vec<String>,
    #[command(flatten)]
    pub goals: GoalArgs,
    /// Show what each file would say, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long, short)]
    pub yes: bool,
}

/// What `revert` takes.
#[derive(Debug, Args)]
pub struct RevertArgs {
    /// What to take back, by its number in `status`; the latest when not given.
    #[arg(value_name = "ID", conflicts_with = "all")]
    pub id: Option<String>,
    /// All of it, the latest first.
    #[arg(long)]
    pub all: bool,
    /// The machine below this folder.
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true)]
    pub root: PathBuf,
    /// Do not ask.
    #[arg(long, short)]
    pub yes: bool,
}

/// What `status` takes.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The machine below this folder.
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true)]
    pub root: PathBuf,
}
