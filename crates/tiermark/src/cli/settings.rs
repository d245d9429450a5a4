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

impl GoalArgs {
    /// This machine, whatever it is for.
    pub fn of_anything() -> Self {
        let (job, root) = ("any".to_owned(), PathBuf::from("/"));
        GoalArgs { job, p95: None, loss: None, memory: None, payload: None, on: None, root }
    }
}

/// What `advise` takes.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    #[command(flatten)]
    pub goals: GoalArgs,
    /// Measure nothing, also where a rule would need a number of this machine that no record has. Of another --root nothing is measured.
    #[arg(long)]
    pub no_run: bool,
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

/// What `prove` takes.
#[derive(Debug, Args)]
pub struct ProveArgs {
    /// What is tried: rules by their names, as they would be applied, or what is applied, by its number in `status`.
    #[arg(value_name = "RULE|ID")]
    pub what: Vec<String>,
    /// A kernel setting that is tried: vm.page-cluster=0, or a file below /sys. Repeatable.
    #[arg(long, value_name = "SETTING=VALUE")]
    pub set: Vec<String>,
    /// What it is without the change; what it is now when not given. Repeatable.
    #[arg(long, value_name = "SETTING=VALUE", requires = "set")]
    pub against: Vec<String>,
    /// The work by which it is judged, as `run` or `load` take it: "load swap --size 400M --memory 200M --swap sd-evo-pi5",
    /// "hdparm --on /mnt". Without it, what was proven so far is shown.
    #[arg(long, value_name = "METHOD|WORKLOAD")]
    pub with: Option<String>,
    /// Pairs of turns, each once with the change and once without it; of what takes a reboot, turns before and after it.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub pairs: u32,
    /// Draws the order of the turns; a new one each time when not given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub goals: GoalArgs,
    /// Show what would be switched and run, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask whether what hurt is to be taken back: leave it.
    #[arg(long, short)]
    pub yes: bool,
    /// Show the progress.
    #[arg(long, value_enum, default_value_t = crate::cli::When::Auto)]
    pub progress: crate::cli::When,
}

/// What `status` takes.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The machine below this folder.
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true)]
    pub root: PathBuf,
}
