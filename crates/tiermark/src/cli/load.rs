//! What can be typed behind `load`: a workload, and what it takes.

use super::{ModelArgs, When};
use clap::{Args, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Workloads.
#[derive(Debug, Subcommand)]
pub enum LoadVerb {
    /// Touch memory that does not fit: how often it can be gone through on each tier, what a page fault costs there, and what
    /// of the disk's own rate arrives.
    Swap(Box<SwapArgs>),
    /// Decode as a language model does, without the model: how many tokens a second it would make on each tier, and what bounds
    /// them.
    Decode(Box<DecodeArgs>),
    /// Have a real runner (Ollama, llama-server) make tokens with a real model: how many a second on each tier, where the model's
    /// bytes are meanwhile, and what bounds them.
    Llm(Box<LlmArgs>),
    /// Load a real redis-server: what each way to keep its data costs on each medium, in requests a second and in latency.
    Redis(Box<RedisArgs>),
    /// Use a real redis-server as a cache of embeddings: how many fit and what is still found when they are stored in fewer bits, what a
    /// hit and a miss take on each medium, and from which share of hits on a cache pays.
    Vectors(Box<VectorsArgs>),
    /// Open heavy pages in a real Chromium under the memory of a small board, and go from one to the other: time until each can be used, the
    /// longest freeze, pages that live, swap traffic; on the SD card as it comes against the USB SSD with btrfs and zswap.
    Desktop(Box<DesktopArgs>),
    /// Compile until the machine is hot: duration, minutes to throttling, frequency lost, temperature.
    Build(Box<BuildArgs>),
    /// Be one of the processes that a workload is made of.
    #[command(hide = true)]
    Errand {
        /// What to do, as JSON.
        errand: String,
    },
}

/// What `load swap` takes.
#[derive(Debug, Args)]
pub struct SwapArgs {
    /// In which order the pages are touched.
    #[arg(long, value_enum, default_value_t = Pattern::Cyclic)]
    pub pattern: Pattern,
    /// How much memory is touched.
    #[arg(long, default_value = "1000M")]
    pub size: String,
    /// Change the pages instead of reading them.
    #[arg(long)]
    pub write: bool,
    /// What the pages hold, which matters to zram and zswap: half of each page is random, all of it, or nothing.
    #[arg(long, value_enum, default_value_t = Content::Half)]
    pub content: Content,
    /// Exponent of --pattern zipf.
    #[arg(long, default_value_t = 1.2)]
    pub theta: f64,
    /// Distance of --pattern stride.
    #[arg(long, default_value = "64KiB", value_name = "SIZE")]
    pub stride: String,
    /// Threads, each with its own part.
    #[arg(long, default_value_t = 1)]
    pub threads: u32,
    /// How long each row is measured, once its memory is filled; default 15s.
    #[arg(long, value_name = "TIME")]
    pub runtime: Option<String>,
    /// An eighth of all sizes and a tenth of the time.
    #[arg(long)]
    pub quick: bool,
    /// Memory, tiers and the like.
    #[command(flatten)]
    pub pressed: PressedArgs,
}

/// What every workload takes: the memory that it has, and where the rest goes.
#[derive(Debug, Args)]
pub struct PressedArgs {
    /// How much of it may stay in RAM: a memory cgroup with this limit is made for the run.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Lock so much RAM away, as the first article did: of --memory, or of the machine where there is no memory cgroup.
    #[arg(long, value_name = "SIZE", conflicts_with = "leave")]
    pub lock: Option<String>,
    /// Lock all that is available of the machine's RAM but so much.
    #[arg(long, value_name = "SIZE", conflicts_with = "memory")]
    pub leave: Option<String>,
    /// End a row once everything that wants to run has waited for memory or I/O for so many per cent of ten seconds (PSI);
    /// default: 95 without --memory, never with it.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub watchdog: Option<u8>,
    /// What to swap to; may be given more than once, a row each: none, own (this machine's swap as it stands), zram,
    /// zram:lz4, a directory (a file is made there), a block device that holds a swap area, a profile to emulate (optane-pi5); with a comma between them several at equal
    /// priority; zswap+TIER for a compressed cache in front, zram+TIER for zram with a disk behind it.
    #[arg(long, value_name = "TIER")]
    pub swap: Vec<String>,
    /// All rungs: none, zram, zswap over a file, a file, and emulated an Optane, two NVMe SSDs over USB at equal priority and
    /// an SD card. Also what is taken when --swap is not given.
    #[arg(long)]
    pub ladder: bool,
    /// Where the ladder's files are made.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub disk: Option<PathBuf>,
    /// Visit each tier so often, in turns.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// vm.page-cluster meanwhile: 2 to the power of it are the pages read at a time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub page_cluster: Option<u32>,
    /// vm.swappiness meanwhile.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=200))]
    pub swappiness: Option<u8>,
    /// Where chance begins.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Watch it meanwhile, and say how fast it would be with other amounts of memory: at these limits (as --memory, with commas
    /// between them), or at some that are worth asking for. Takes up to a tenth of its speed, which is told.
    #[arg(long, value_name = "LIMIT,…", num_args = 0..=1, default_missing_value = "")]
    pub curve: Option<String>,
    /// Have the pager keep its next pages ahead of it meanwhile (`tiermark pager`).
    #[arg(long)]
    pub pager: bool,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// When to show progress.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub progress: When,
}

/// What `load llm` takes.
#[derive(Debug, Args)]
pub struct LlmArgs {
    /// A model's file (GGUF), or with --models the name under which Ollama knows it; may be given more than once.
    #[arg(long, value_name = "FILE.gguf|NAME", required = true)]
    pub model: Vec<String>,
    /// Ollama's folder of models, such as ~/.ollama/models, whose models are named. Nothing is ever pulled.
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// The runner.
    #[arg(long, value_enum, default_value_t = Server::Ollama)]
    pub runner: Server,
    /// Its program; default: the one in PATH.
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// One that runs already, such as 127.0.0.1:11434, and knows the models by name. It stays as it is, in all memory that
    /// the machine has: take some away with --lock or --leave.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["program", "models", "memory", "mapped"])]
    pub server: Option<SocketAddr>,
    /// What is given.
    #[arg(long, default_value = "Once upon a time there was a small computer with little memory. Every day it")]
    pub prompt: String,
    /// Tokens that are made.
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub tokens: u32,
    /// Tokens for which it makes room.
    #[arg(long, default_value_t = 2048, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    pub context: u32,
    /// Threads that compute; default: the runner's own choice.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// The weights are mapped from their file; default: the runner's own choice, with Ollama read into memory.
    #[arg(long)]
    pub mapped: bool,
    /// The weights are random: what was said becomes less likely, so that the model does not say one token for ever.
    #[arg(long)]
    pub random_weights: bool,
    /// The table of the first article: its columns, memory taken away by locking it.
    #[arg(long)]
    pub as_published: bool,
    /// The longest that a row's tokens take; what was made until then counts.
    #[arg(long, value_name = "TIME", default_value = "3h")]
    pub runtime: String,
    /// Memory, tiers and the like.
    #[command(flatten)]
    pub pressed: PressedArgs,
}

/// What `load redis` takes.
#[derive(Debug, Clone, Args)]
pub struct RedisArgs {
    /// Where the server's files lie; may be given more than once, in turns: a directory (a folder is made there), or a profile to
    /// emulate, by its name (sd-evo-pi5) or its TOML file; with a fault behind it that strikes under load (sd-evo-pi5+lying-flush).
    #[arg(long, value_name = "DIR|PROFILE[+FAULT]", required_unless_present_any = ["dashboard", "learn", "url"])]
    pub on: Vec<String>,
    /// Load a server that runs already, and is none of tiermark's (redis://[user:password@]host[:port][/db], unix:///path): its own keys
    /// that hold strings are read, and nothing of it is changed.
    #[arg(long, value_name = "URL", conflicts_with_all = ["on", "mode", "lose", "commands", "config", "server", "link", "as_published",
        "learn", "size", "delay"])]
    pub url: Option<String>,
    /// With --url: set keys too, of tiermark's own (tiermark:RUN:…), which are removed at the end, and after an hour end by themselves.
    #[arg(long, requires = "url")]
    pub writes: bool,
    /// Look at a server that serves somebody (redis://[user:password@]host[:port][/db], unix:///path) without changing anything, and
    /// say what load is like its own; with --on make that load, as far as nothing else is said.
    #[arg(long, value_name = "URL", conflicts_with_all = ["as_published", "lose"])]
    pub learn: Option<String>,
    /// With --learn: listen to every command for so long, to see which keys are used. It costs that server up to half of its speed.
    #[arg(long, value_name = "TIME", requires = "learn")]
    pub monitor: Option<String>,
    /// Lose the server in the middle of each visit, at a moment that the seed chooses, start it again, and count the acknowledged
    /// writes that are gone. Each request sets a key of its own.
    #[arg(long, value_enum, conflicts_with_all = ["reads", "keys", "theta", "expires", "log", "repeat", "as_published"])]
    pub lose: Option<RedisLose>,
    /// With --lose: visits of each cell, each with a moment of its own. Default: 5.
    #[arg(long, value_name = "N", requires = "lose", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: Option<u32>,
    /// How it keeps its data; may be given more than once: memory-only, rdb (with a BGSAVE in the middle), checkpoint (a BGSAVE --every so often), aof-everysec, aof-always,
    /// aof-rewrite (everysec, rewritten in the middle), replica (nothing here, and each write sent to a second server). Default: memory-only, rdb,
    /// aof-everysec, aof-always.
    #[arg(long, value_name = "MODE")]
    pub mode: Vec<String>,
    /// Between two snapshots of --mode checkpoint.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub every: String,
    /// How far off the replica of --mode replica is, each way.
    #[arg(long, value_name = "TIME", default_value = "5ms")]
    pub delay: String,
    /// Length of a value, or several with their shares (64:70,512:25,4096:5); may be given more than once. Default: 64, 512 and 4096.
    #[arg(long, value_name = "BYTES[:SHARE,…]")]
    pub payload: Vec<String>,
    /// Visits of each cell, in turns; the median is told. Default: 3, as published 5.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: Option<u32>,
    /// Clients, over all threads.
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// Threads of the clients.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: u32,
    /// Requests on the way on each connection.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub pipeline: u32,
    /// What is asked, with weights: get=50,set=30,incr=10,hset=5,hget=3,zadd=1,xadd=1. Default: GETs and SETs as --reads says.
    #[arg(long, value_name = "COMMAND=WEIGHT,…", conflicts_with = "reads")]
    pub commands: Option<String>,
    /// GETs of a hundred requests; the others are SETs. Default: 50.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub reads: Option<u8>,
    /// Different keys, all set before. Default: 100,000, or as many as take 128 MiB.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub keys: Option<u64>,
    /// Some keys are asked for more than others, by a Zipf law of this exponent.
    #[arg(long, value_name = "EXPONENT")]
    pub theta: Option<f64>,
    /// A key is gone so long after it was set.
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
    /// What values hold: half of each random, all of it, or nothing. Default: half.
    #[arg(long, value_enum)]
    pub content: Option<Content>,
    /// Requests of a visit. Default: 100,000, or as many as the time allows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,
    /// The longest that a visit takes; with --lose the time within which the server is lost, default 5s.
    #[arg(long, value_name = "TIME")]
    pub runtime: Option<String>,
    /// So many requests a second, whether they are answered or not, at random moments; latency counts from the moment that was
    /// meant. Default: the next once one is answered.
    #[arg(long, value_name = "REQUESTS")]
    pub rate: Option<f64>,
    /// With --rate: at equal distances.
    #[arg(long, requires = "rate")]
    pub fixed_rate: bool,
    /// Make this file, with a line for each request of one visit to one cell: when it was meant, how long after that it was sent,
    /// and answered.
    #[arg(long, value_name = "FILE.csv")]
    pub log: Option<PathBuf>,
    /// How the clients reach it.
    #[arg(long, value_enum, default_value_t = RedisLink::Tcp)]
    pub link: RedisLink,
    /// The server's program; default: the redis-server or valkey-server in PATH.
    #[arg(long, value_name = "FILE")]
    pub server: Option<PathBuf>,
    /// A setting of redis.conf, which comes before the mode's; may be given more than once.
    #[arg(long, value_name = "NAME=VALUE")]
    pub config: Vec<String>,
    /// What an emulated disk holds.
    #[arg(long, default_value = "2GiB", value_name = "SIZE")]
    pub size: String,
    /// As the third article did it: the median of five.
    #[arg(long)]
    pub as_published: bool,
    /// Where chance begins.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Serve what Prometheus reads, on loopback, while it runs: http://ADDRESS/metrics. Port 0 is any that is free.
    #[arg(long, value_name = "127.0.0.1:PORT")]
    pub metrics: Option<String>,
    /// Print a dashboard for Grafana that shows what --metrics serves, and do nothing.
    #[arg(long, exclusive = true)]
    pub dashboard: bool,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// When to show progress.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub progress: When,
}

/// What `load vectors` takes.
#[derive(Debug, Clone, Args)]
pub struct VectorsArgs {
    /// Where a file with all vectors lies; may be given more than once, in turns: a directory, or a profile to emulate.
    #[arg(long, value_name = "DIR|PROFILE", required_unless_present = "away")]
    pub on: Vec<String>,
    /// All vectors are in a second server instead, so far off each way (20ms); may be given more than once.
    #[arg(long, value_name = "TIME")]
    pub away: Vec<String>,
    /// How they are stored; may be given more than once: f32, int8, int4. Default: all three.
    #[arg(long, value_name = "FORMAT")]
    pub format: Vec<String>,
    /// How many are made up.
    #[arg(long, default_value_t = 50_000, value_name = "N", conflicts_with = "file")]
    pub vectors: u64,
    /// Numbers of each.
    #[arg(long, default_value_t = 384, value_name = "N", conflicts_with = "file", value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub dim: u32,
    /// How far those of a group, of some hundred, lie from its middle: length of the noise, per cent of the middle's.
    #[arg(long, default_value_t = 60, value_name = "PERCENT", conflicts_with = "file", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub spread: u32,
    /// Real ones instead: a NumPy file, rows × numbers. The last 200 rows are looked for, the others stored.
    #[arg(long, value_name = "FILE.npy")]
    pub file: Option<PathBuf>,
    /// The memory that holds so many of a hundred vectors as f32; of shorter ones it holds more.
    #[arg(long, default_value_t = 10.0, value_name = "PERCENT")]
    pub hot: f64,
    /// Some are asked for more than others, by a Zipf law of this exponent; 0 is all alike.
    #[arg(long, default_value_t = 1.0, value_name = "EXPONENT")]
    pub theta: f64,
    /// A vector is gone so long after it was given to the cache.
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
    /// In the middle of each visit the model is replaced, and no vector in the cache is of use any more; how the new ones come there.
    #[arg(long, value_enum, value_name = "HOW")]
    pub replace: Option<Replaced>,
    /// What computing a vector anew takes, to be told beside.
    #[arg(long, value_name = "TIME")]
    pub compute: Option<String>,
    /// Clients, each with the next request once the one before is answered.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub clients: u32,
    /// Requests of a visit. Default: 20,000, or as many as the time allows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub operations: Option<u64>,
    /// The longest that a visit takes.
    #[arg(long, value_name = "TIME")]
    pub runtime: Option<String>,
    /// Visits of each cell, in turns; the median is told.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// The server's program; default: the redis-server or valkey-server in PATH.
    #[arg(long, value_name = "FILE")]
    pub server: Option<PathBuf>,
    /// A setting of redis.conf; may be given more than once. Default: maxmemory-policy=allkeys-lru.
    #[arg(long, value_name = "NAME=VALUE")]
    pub config: Vec<String>,
    /// What an emulated disk holds.
    #[arg(long, default_value = "2GiB", value_name = "SIZE")]
    pub size: String,
    /// Where chance begins.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// When to show progress.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub progress: When,
}

/// What `load desktop` takes.
#[derive(Debug, Clone, Args)]
pub struct DesktopArgs {
    /// Which set-up; may be given more than once, in turns: stock (an emulated Raspberry Pi 3 SD card with ext4 and 100 MB of swap), moved (its USB SSD
    /// with btrfs compress=zstd:1, 1 GB of swap, zswap), or PROFILE,fs=ext4|btrfs|f2fs,compress=ALGORITHM,swap=SIZE,zswap=PERCENT. Default: both.
    #[arg(long, value_name = "SETUP")]
    pub on: Vec<String>,
    /// Pages, each in a tab of its own.
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub pages: u32,
    /// What the script of each keeps in memory.
    #[arg(long, default_value = "100M", value_name = "SIZE")]
    pub weight: String,
    /// What the board has for all of it: a memory cgroup with this limit is made for the run. A Raspberry Pi 3 has 926 MB.
    #[arg(long, default_value = "900M", value_name = "SIZE")]
    pub memory: String,
    /// Tabs gone to once all pages are open.
    #[arg(long, default_value_t = 24, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub switches: u64,
    /// The longest that those take.
    #[arg(long, value_name = "TIME")]
    pub runtime: Option<String>,
    /// A page that cannot be used after so long has not come.
    #[arg(long, default_value = "60s", value_name = "TIME")]
    pub patience: String,
    /// Visits of each set-up, in turns.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// The browser's program; default: the Chromium that is there.
    #[arg(long, value_name = "FILE")]
    pub browser: Option<PathBuf>,
    /// Leave its program where it is, instead of starting a copy on the disk under test: its code then comes from this machine's disk.
    #[arg(long)]
    pub program_stays: bool,
    /// Where chance begins.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// When to show progress.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub progress: When,
}

/// What `load build` takes.
#[derive(Debug, Clone, Args)]
pub struct BuildArgs {
    /// What compiles: c (cc), rust (rustc), or mix (as much computing and writing by tiermark). Default: the first that is there.
    #[arg(long, value_enum)]
    pub compiler: Option<Compiles>,
    /// How long; default 10m.
    #[arg(long, value_name = "TIME", conflicts_with = "builds")]
    pub runtime: Option<String>,
    /// So many builds, however long they take.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub builds: Option<u64>,
    /// Files of one build.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub units: u32,
    /// So many at a time; default: as many as there are processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// How much of it may stay in RAM: a memory cgroup with this limit is made for the run.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// With --memory: what to swap to; may be given more than once, as with load swap. Default: this machine's own swap.
    #[arg(long, value_name = "TIER", requires = "memory")]
    pub swap: Vec<String>,
    /// Visits.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Where chance begins.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// When to show progress.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub progress: When,
}

/// What compiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compiles {
    /// C.
    C,
    /// Rust.
    Rust,
    /// Neither.
    Mix,
}

/// How the vectors of a new model come into the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Replaced {
    /// Once somebody asks for them.
    OnDemand,
    /// The most wanted at once.
    Prefetch,
}

/// How a server is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RedisLose {
    /// It is killed (SIGKILL); the machine goes on.
    Kill,
    /// The same, and the emulated disk is without power at once.
    Power,
}

/// How clients reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RedisLink {
    /// TCP on loopback.
    Tcp,
    /// A Unix socket.
    Unix,
}

/// A program that runs models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Server {
    /// Ollama.
    Ollama,
    /// llama.cpp's server.
    LlamaServer,
}

/// What `load decode` takes.
#[derive(Debug, Args)]
pub struct DecodeArgs {
    /// The model; its weights are made up.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Tokens that are given.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub prompt: u32,
    /// Tokens that are made.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub tokens: u32,
    /// Tokens for which a runner makes room, as far as the model can use them; it goes through half of that room for each token.
    #[arg(long, default_value_t = 2048, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    pub context: u32,
    /// The weights are pages of a file on the tier, not memory that is swapped there.
    #[arg(long)]
    pub mapped: bool,
    /// Threads that compute; default: as many as there are processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// The longest that a row's tokens take; what was made until then counts.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub runtime: String,
    /// Memory, tiers and the like.
    #[command(flatten)]
    pub pressed: PressedArgs,
}

/// An order of touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// Round and round, what a least-recently-used policy is worst at.
    Cyclic,
    /// Each page as likely as any other.
    Random,
    /// Few pages often, many seldom.
    Zipf,
    /// Pages at equal distances.
    Stride,
}

/// What pages hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Content {
    /// Nothing: the kernel need not even store them.
    Zeros,
    /// Half of each page random, half zeros: compresses 2:1.
    Half,
    /// Random: does not compress.
    Random,
}
