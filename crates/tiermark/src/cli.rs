//! What can be typed. The same definitions make the parser, `--help`, the completions and the man pages.

mod load;
mod moving;
mod pager;
mod settings;

pub use load::{
    BuildArgs, Compiles, Content, DecodeArgs, DesktopArgs, LlmArgs, LoadVerb, Pattern, PressedArgs, RedisArgs,
    RedisLink, RedisLose, Replaced, Server, SwapArgs, VectorsArgs,
};
pub use moving::{BootPlace, MoveArgs, RootFs, TableStyle};
pub use pager::{PagerArgs, PagerBenchArgs, PagerVerb};
pub use settings::{AdviseArgs, ApplyArgs, GoalArgs, ProveArgs, RevertArgs, StatusArgs};

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  tiermark check                      look at this machine: what is here, how fast, why, what to do
  tiermark check --quick --in /mnt    in 15 seconds, and in /mnt
  tiermark tiers                      the tiers, the way to them, what that way lets through
  tiermark run swap-sim --on /mnt     what would /mnt do as swap?
  tiermark run job --set rw=randread --set bs=4k --set depth=32 --set runtime=5s --on /mnt
  tiermark run mine.fio --on /mnt     fio's job files are understood
  tiermark runs; tiermark show last   what was measured
  tiermark compare 7c1e 91ab          did it help?
  tiermark emulate sd-evo-pi5 --size 4GiB    a block device as slow as that card

Exit status: 0 done, 1 done and something failed or a requirement was not met, 2 bad usage,
3 refused for safety, 4 something needed is missing, 130 interrupted (everything undone, the partial record
kept).";

/// Measure, explain and compare the storage and memory tiers of this machine.
///
/// What should swap, an LLM, Redis, a desktop or files live on; why is it slow; what can be changed; did it help?
/// tiermark measures safely (a raw device is never written without --destroy, a test file is its own and is removed),
/// holds every figure against the bus it came over, and keeps a record of everything.
#[derive(Debug, Parser)]
#[command(name = "tiermark", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// The database of runs.
    ///
    /// Default: tiermark/tiermark.db in $XDG_DATA_HOME, or in ~/.local/share.
    #[arg(long, global = true, value_name = "FILE")]
    pub db: Option<PathBuf>,
    /// Print one JSON document instead of text; units stand in the names, unknown figures are absent.
    #[arg(long, global = true)]
    pub json: bool,
    /// While it measures, show on the whole terminal what the machine does, as `watch` does.
    #[arg(long, global = true)]
    pub live: bool,
    /// What to do; without it, what is here and what can be asked.
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Look at this machine, measure every tier safely, explain, advise, write a report.
    ///
    /// Makes a temporary file on each writable file system that has room (a tenth of it stays free), reads bare
    /// devices where that is allowed, and never changes anything else. Without root it does what it can and says what
    /// root would add. Takes about a minute; Ctrl-C keeps what there is.
    Check(CheckArgs),
    /// Show the tiers, the hops on the way to them and their ceilings; measures nothing.
    Tiers(TiersArgs),
    /// List the methods, or what one of them does, costs and takes.
    Methods {
        /// A method.
        name: Option<String>,
    },
    /// List the published devices that jobs can be run on in virtual time, or print one's profile as TOML.
    Profiles {
        /// A profile, or the path of a TOML file to check.
        name: Option<String>,
    },
    /// Fit a profile to runs, or to measurements made for it: what a device is like, and how well that is known.
    ///
    /// The profile goes to standard output or a file as TOML; what it says, between what bounds and from which steps, is
    /// told beside it. It can be run on (`--on profile:FILE.toml`), emulated and edited.
    Profile(ProfileArgs),
    /// Show what this machine does now: processors, memory, swap, each disk beside its ceiling, what is slow; q ends it.
    ///
    /// On a terminal a screen that suits 80 columns and a slow line; else a line a look, or with --json a document a line.
    Watch(WatchArgs),
    /// Run a method or a job file of fio's on a target.
    Run(RunArgs),
    /// List what was run.
    Runs,
    /// Show a run: steps, engines, rates, latencies.
    Show {
        /// A run: the first letters of its name, or `last`.
        run: String,
    },
    /// Hold two or more runs against each other: same, better or worse, as far as the noise allows to say.
    Compare {
        /// Two runs or more; the first is what the others are held against. Three repeats or more on each side show
        /// smaller differences: `compare 7c1e,80aa,8b1f 91ab,93d0,9f02`.
        #[arg(required = true, num_args = 2..)]
        runs: Vec<String>,
    },
    /// Write the report of one or more runs: one HTML file, offline, or Markdown for a post.
    Report {
        /// Runs; several stand side by side on one page.
        #[arg(required = true)]
        runs: Vec<String>,
        /// What kind of file; default: by the ending of FILE (`.md` is Markdown), else HTML.
        #[arg(long, value_enum)]
        format: Option<ReportFormat>,
        /// Where to; default: the reports folder beside the database. `-` is standard output.
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Write a run into one file, for `import` or for other programs.
    Export {
        /// A run.
        run: String,
        /// What kind of file.
        #[arg(long, value_enum, default_value_t = Format::Portable)]
        format: Format,
        /// Where to; default: RUN.tiermark here, or RUN with the ending of the format. `-` is standard output.
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Take runs from a file that `export` wrote, or from text that other programs printed.
    ///
    /// Lines of hdparm, fio's JSON or text, the tables of iozone and compsize, dd's last line and gnome-disks' figures by hand
    /// (`read_MBps = 34.8`, `write_MBps`, `access_ms`) are found wherever they stand in the text; a log of fio is told by
    /// its file's name. Each block becomes a run of quoted figures, which show, compare, report and profile take.
    Import {
        /// The file; `-` is standard input.
        file: PathBuf,
    },
    /// Make a block device that behaves like a published or measured one, and fails when told to.
    ///
    /// Any program can use it: mkfs, mount, swapon, fio, a database. It is paced by a profile, says in its figures where it
    /// could not keep the profile's word, and can lose its power: what was not flushed is lost then. Needs root, FUSE and
    /// loop devices. `tiermark emulate list`, `show NAME`, `fault NAME SPEC` and `stop NAME` are for those that run.
    Emulate(EmulateArgs),
    /// Put a workload's memory under pressure, and see what each kind of swap makes of it.
    ///
    /// Every tier is set up for the run and taken away after it, whatever ends it; what a kill leaves behind the next command
    /// removes. tiermark itself stays outside of the limit. Needs root.
    #[command(subcommand)]
    Load(LoadVerb),
    /// Say how many tokens a second a language model would make, without running it: on a disk that nobody has bought yet, from
    /// published figures, or on this machine, with a probe.
    Predict(Box<PredictArgs>),
    /// Keep an unmodified program's next pages ahead of it, where its memory does not fit.
    ///
    /// Learns from its page faults in which order it goes through its memory, has what comes next brought in at the disk's own rate,
    /// sends out what was just used, and keeps as much as fits. Where there is no order or no gain it does nothing. All of it is
    /// advice to the kernel: no byte changes, and nothing stays behind. Needs root, or CAP_SYS_NICE, CAP_SYS_PTRACE and CAP_PERFMON.
    Pager(PagerArgs),
    /// Say what should be set up differently on this machine for what it is for, and why.
    ///
    /// Prints recommendations, each with what it stands on (a run of this machine before anything published), what it costs, and
    /// the settings that follow; for a Redis server its redis.conf, too. Nothing is changed. `tiermark rules` lists by what
    /// rules, `tiermark apply` does it.
    Advise(AdviseArgs),
    /// Do what `advise` recommends: show what each file would say, ask, write, and keep what is needed to take it back.
    ///
    /// Settings go where the distribution has them, and hold after the next start, too; on the running machine kernel settings
    /// hold at once. All files are written or none, whatever happens in between. Needs root, or the right to write below --root.
    Apply(ApplyArgs),
    /// Take back what `apply` did, also weeks later: what others changed in the same files since stays.
    Revert(RevertArgs),
    /// Say what is applied, what of it was changed since, what waits for a reboot and what did not take.
    Status(StatusArgs),
    /// Prove that a change helped, or that it did not: the same work with it and without it, again and again.
    ///
    /// What the kernel takes at once is switched to and fro, in pairs of turns whose order is drawn, and is as it was afterwards. What
    /// takes a reboot is measured before it and, by the same command, after it. The verdict stands at the 1 % level: of a hundred
    /// changes that do nothing one is called an effect. Without --with, all proofs so far are shown.
    Prove(ProveArgs),
    /// Copy this system, or one in an image, to another disk, and start it from there.
    ///
    /// The disk gets partitions, file systems and swap; files go over with all that belongs to them, are read again on both sides,
    /// and only then the one line of the boot partition that names the root is changed. What is interrupted goes on by the same
    /// command. The old system stays as it is: `--undo` lets it start again, `--finish` takes the way back away.
    Move(MoveArgs),
    /// List the rules of `advise`: when each speaks, and where it comes from.
    Rules,
    /// Print the completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder.
    Man {
        /// The folder; it must exist.
        folder: PathBuf,
    },
}

/// What `check` takes.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// About 15 seconds in all.
    #[arg(long, conflicts_with = "thorough")]
    pub quick: bool,
    /// About five minutes in all.
    #[arg(long)]
    pub thorough: bool,
    /// What for: desktop has the article's checks made instead: iozone's matrix beside the one before a move, zeros, what compression makes of
    /// files of each type, zswap's pool, temperature and throttling while it compiles. With --quick in about two minutes.
    #[arg(long = "for", value_enum, value_name = "JOB", conflicts_with_all = ["thorough", "out"])]
    pub job: Option<CheckedFor>,
    /// Measure in this directory; may be given more than once.
    ///
    /// It takes the place of the directory or device that would have been chosen on the same tier. Further directories
    /// on that tier have a row each.
    #[arg(long = "in", value_name = "DIR")]
    pub within: Vec<PathBuf>,
    /// Where the report goes; default: the reports folder beside the database.
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What a machine is checked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckedFor {
    /// A desktop.
    Desktop,
}

/// A kind of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One page with charts, offline.
    Html,
    /// Findings and tables, for a forum or a blog.
    Markdown,
}

/// What `tiers` takes.
#[derive(Debug, Args)]
pub struct TiersArgs {
    /// Look at the machine whose /proc, /sys and /etc lie below this folder, or in a file that --capture wrote.
    #[arg(long, value_name = "DIR|FILE.tar", default_value = "/")]
    pub root: PathBuf,
    /// Write such a tree of this machine, without serial numbers, addresses and names, for others to look at.
    #[arg(long, value_name = "FILE.tar")]
    pub capture: Option<PathBuf>,
}

/// What `run` takes.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The method; `tiermark methods` lists them. Or a job file of fio's, whose name ends in .fio.
    #[arg(value_name = "METHOD|FILE.fio")]
    pub method: String,
    /// A directory (a test file is made there and removed), a file (read only), a block device, a tier's name,
    /// `memory`, `null` for the harness itself, or `profile:NAME` for a published device in virtual time. A job file
    /// may leave it to its `directory` and `filename`.
    #[arg(long, value_name = "TARGET")]
    pub on: Option<OsString>,
    /// A parameter of the method; `tiermark methods NAME` lists them.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// To the letter of the published procedure: its order, sizes and durations.
    #[arg(long)]
    pub as_published: bool,
    /// Shorten every duration of the plan to this part of it, such as 1/60; the run and its reports say so.
    #[arg(long, value_name = "PART")]
    pub scale: Option<basics::Scale>,
    /// Say what would be done, how long it takes and what it writes, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Allow writing over this device; it must repeat the full name of the target.
    #[arg(long, value_name = "DEVICE")]
    pub destroy: Option<String>,
    /// When to show progress.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub progress: When,
}

/// What `watch` takes.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Between two looks.
    #[arg(long, short, default_value = "1s", value_name = "TIME")]
    pub interval: String,
    /// End after so many looks; default: when told to.
    #[arg(long, short = 'n', value_name = "N")]
    pub count: Option<u64>,
}

/// What `emulate` takes.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct EmulateArgs {
    /// Ask or tell one that runs.
    #[command(subcommand)]
    pub action: Option<EmulateVerb>,
    /// A shipped profile, or the path of a TOML file.
    #[arg(required = true)]
    pub profile: Option<String>,
    /// What the device holds, for example 4GiB; default: what the profile says.
    #[arg(long)]
    pub size: Option<String>,
    /// Where its bytes are: `ram`, or a file that is made for it and removed with it.
    #[arg(long, value_name = "ram|FILE")]
    pub backing: Option<PathBuf>,
    /// Mount its FUSE file system on this empty directory; default: one of its own.
    #[arg(long, value_name = "DIR")]
    pub at: Option<PathBuf>,
    /// What it is called; default: after its profile.
    #[arg(long)]
    pub name: Option<String>,
    /// Where chance begins: equal seeds and equal requests, equal answers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Logical sector, 512 or 4096 bytes.
    #[arg(long, default_value_t = 512, value_name = "BYTES")]
    pub sector: u32,
    /// A fault at work from the start, such as eio:on=write,p=0.01; may be given more than once.
    #[arg(long, value_name = "SPEC")]
    pub fault: Vec<String>,
    /// Go into the background as soon as the device is there.
    #[arg(long)]
    pub detach: bool,
    /// It was started by `--detach`.
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// What can be done with emulated disks that run.
#[derive(Debug, Subcommand)]
pub enum EmulateVerb {
    /// List those that run.
    List,
    /// Show the figures of one: what it served, where it could not keep its profile's word.
    Show {
        /// Its name.
        name: String,
    },
    /// Use the emulated disk that standard input is, as any program does, and print what was seen of it; how an emulator
    /// measures itself.
    #[command(hide = true)]
    Ask {
        /// What to do, as JSON.
        asked: String,
    },
    /// Stop one; refused while a file system on it is mounted or swap is on.
    Stop {
        /// Its name.
        name: String,
    },
    /// Make something go wrong, such as eio:on=read, power-cut, return, clear.
    Fault {
        /// Its name.
        name: String,
        /// What: KIND[:KEY=VALUE,…].
        #[arg(required = true, value_name = "SPEC")]
        faults: Vec<String>,
    },
}

/// What `predict` takes.
#[derive(Debug, Args)]
pub struct PredictArgs {
    /// By which program: `decode` as `load decode` does it, `llm` a real runner, which needs some memory for itself.
    #[arg(value_enum)]
    pub workload: Predicted,
    /// The models.
    #[command(flatten)]
    pub models: ModelArgs,
    /// What swap would be on; may be given more than once, a row each: a profile's name or file, with a comma between them
    /// several at equal priority. With --probe as with `load --swap`.
    #[arg(long, value_name = "PROFILE", required = true)]
    pub on: Vec<String>,
    /// RAM of a board like a Raspberry Pi 5.
    #[arg(long, value_name = "SIZE", default_value = "4G", conflicts_with = "probe")]
    pub ram: String,
    /// What of it, or with --probe of --memory, is taken away.
    #[arg(long, value_name = "SIZE", default_value = "0")]
    pub lock: String,
    /// Weights that the board multiplies in a second when they are in memory, in MB; default: as published of a Raspberry Pi 5.
    #[arg(long, value_name = "MB/s", conflicts_with = "probe")]
    pub memory_speed: Option<f64>,
    /// Length of the board's pages.
    #[arg(long, value_name = "SIZE", conflicts_with = "probe")]
    pub page: Option<String>,
    /// Measure on this machine, in less than a minute for each tier, what its kernel keeps and how fast the rest comes back.
    #[arg(long, requires = "memory")]
    pub probe: bool,
    /// Say also what it would be with the pager beside it (`tiermark pager`).
    #[arg(long)]
    pub pager: bool,
    /// With --probe: the memory that the model would have here.
    #[arg(long, value_name = "SIZE", requires = "probe")]
    pub memory: Option<String>,
    /// With --probe: the weights are mapped from a file on the tier, not swapped.
    #[arg(long, requires = "probe")]
    pub mapped: bool,
    /// With --probe: tokens for which the runner makes room.
    #[arg(long, requires = "probe", default_value_t = 2048, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    pub context: u32,
    /// With --probe: threads that compute; default: as many as there are processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Tokens that are given.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub prompt: u32,
    /// Tokens that are made.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub tokens: u32,
    /// When to show progress.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub progress: When,
}

/// What is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Predicted {
    /// As `load decode`.
    Decode,
    /// A real runner.
    Llm,
}

/// Which model.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct ModelArgs {
    /// A model's file (GGUF), of which the header is read, or the name of a well-known one, such as gemma2:2b.
    #[arg(long, value_name = "FILE.gguf|NAME")]
    pub model: Vec<String>,
    /// A made-up model: layers=28,embd=3072,ffn=8192,heads=24,kv_heads=8,vocab=128256,quant=Q4_K,tied=yes; the first two must be
    /// there.
    #[arg(long, value_name = "KEY=N,…")]
    pub shape: Option<String>,
}

/// What `profile` takes.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// Runs of one device, by the first letters of their names, or `last`; their steps may be any jobs.
    #[arg(required_unless_present_any = ["on", "figures"], conflicts_with_all = ["on", "figures"])]
    pub runs: Vec<String>,
    /// Figures that somebody published, as a TOML file, instead of a run; the manual's page on profiles shows its form.
    #[arg(long, value_name = "FILE.toml", conflicts_with = "on")]
    pub figures: Option<PathBuf>,
    /// Measure this first, with the method `profile`: a directory, a file, a block device or `profile:NAME`.
    #[arg(long, value_name = "TARGET")]
    pub on: Option<String>,
    /// Allow writing over this device; it must repeat the full name of the target. Without it a device is only read.
    #[arg(long, value_name = "DEVICE", requires = "on")]
    pub destroy: Option<String>,
    /// A parameter of the method `profile`.
    #[arg(long, value_name = "KEY=VALUE", requires = "on")]
    pub set: Vec<String>,
    /// Name of the profile: lower-case letters, digits and hyphens; default: from the target.
    #[arg(long)]
    pub name: Option<String>,
    /// Where to; default: standard output.
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// When to show progress.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub progress: When,
}

/// What `export` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// All of it, for `import`.
    Portable,
    /// As `show --json` prints it.
    Json,
    /// As fio 3 prints its JSON, for scripts that read that.
    FioJson,
    /// A line for each direction of each step.
    Csv,
    /// OpenMetrics text.
    Openmetrics,
}

/// When to do something that depends on the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
    /// On the whole terminal, with what the machine does meanwhile.
    #[value(skip)]
    Live,
}

/// Reads the command line; help, version and mistakes are answered here as clap does, with its exit status 0 or 2.
pub fn parse() -> Result<Cli> {
    let cli = Cli::parse();
    if let Some(Verb::Run(args)) = &cli.verb {
        let mistake = match (args.job_file(), &args.on) {
            (None, None) => Some((ErrorKind::MissingRequiredArgument, "--on TARGET says where the method works")),
            (Some(_), _) if args.as_published || !args.set.is_empty() => {
                Some((ErrorKind::ArgumentConflict, "--set and --as-published are for methods; edit the job file"))
            }
            _ => None,
        };
        if let Some((kind, sentence)) = mistake {
            Cli::command().error(kind, sentence).exit();
        }
    }
    Ok(cli)
}

impl RunArgs {
    /// The job file, when it is one that is to be run.
    pub fn job_file(&self) -> Option<&Path> {
        self.method.ends_with(".fio").then(|| Path::new(&self.method))
    }
}

/// The definitions, for completions and man pages.
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definitions_hold_together() {
        super::command().debug_assert();
    }
}
