//! `tiermark advise`: what should be set up differently on this machine, and why; `tiermark rules`: by what.

use super::load::parsed;
use super::prove::proved;
use crate::cli::{AdviseArgs, GoalArgs};
use crate::context::Context;
use crate::exit::{Missing, Usage};
use crate::out;
use advise::{ConfFile, Goals, Job, Need, Recommendation, Seen, SeenMedium, SeenProof, SeenVectors, Situation};
use anyhow::Result;
use basics::{Bytes, Nanos};
use machine::{Machine, Root};
use record::{Origin, State};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Of so many runs of `load redis`, the newest, figures are taken.
const RUNS: usize = 20;

/// And so many proofs.
const PROOFS: usize = 20;
/// Of a server with its allocator and buffers; what an advised bound is worth below it, nobody knows.
const LEAST_MEMORY: u64 = 64 * basics::units::MIB;

/// Says what to do.
pub fn advise(context: &Context, args: &AdviseArgs) -> Result<ExitCode> {
    let mut said = advice(context, &args.goals)?;
    if let Some(need) = said.need.take().filter(|_| !args.no_run) {
        out::say(&format!(
            "{}: no record tells what {} does with pages; measuring it for a few seconds",
            need.rule, need.tier
        ));
        // What cannot be measured is not known, and the advice stands without it.
        match measured(context, &need) {
            Ok(()) => said = advice(context, &args.goals)?,
            Err(error) => out::say(&format!("{} was not measured: {error}", need.tier)),
        }
    }
    let Advice { goals, all, measure, .. } = said;
    let files = advise::files(&goals, &all);
    if let Some(folder) = &args.out {
        write(folder, &files)?;
    }
    if context.json {
        out::print_json(&report::json::advice(&goals, &all, &files, measure.as_deref()))?;
    } else {
        let text = report::terminal::advice(&goals, &all, &files, measure.as_deref(), &context.style);
        out::show(&text, &context.style)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is recommended.
pub struct Advice {
    /// What for.
    pub goals: Goals,
    /// Each.
    pub all: Vec<Recommendation>,
    /// The command that measures what it speaks of.
    pub measure: Option<String>,
    /// What no record has and a rule would need; nothing of another machine.
    pub need: Option<Need>,
}

/// Some seconds of what the disk would do as swap.
fn measured(context: &Context, need: &Need) -> Result<()> {
    let machine = machine::read(&Root::live());
    let method = methods::find("swap-sim")?;
    let sets = ["runtime=4s".to_owned(), "size=128MiB".to_owned()];
    let settings = methods::Settings::parse(method.name(), method.parameters(), &sets)?;
    let dir = need.dir.to_str().ok_or_else(|| Missing(format!("{} is not UTF-8", need.dir.display())))?;
    let site = methods::Site::named(dir, None, &machine, &Root::live())?;
    let request = methods::Request { site: &site, settings: &settings, as_published: false, machine: &machine };
    let plan = method.plan(&request)?;
    let finished = super::run::execute_one_of(context, machine, plan, crate::cli::When::Auto)?;
    if let record::State::Failed(why) = &finished.state {
        out::say(&format!("what {} does as swap could not be measured: {why}", need.dir.display()));
    }
    Ok(())
}

/// Reads the machine and what was measured on it, and asks the rules.
pub fn advice(context: &Context, args: &GoalArgs) -> Result<Advice> {
    let goals = goals(args)?;
    let root = Root::at(&args.root);
    if !(root.is_live() || args.root.join("proc").is_dir() || args.root.join("etc").is_dir()) {
        let what = format!("{} holds neither proc nor etc: it is no machine", args.root.display());
        return Err(
            Missing(format!("{what}; name the folder that a capture or an image was unpacked or mounted at")).into()
        );
    }
    let machine = machine::read(&root);
    if let (Some(memory), Some(ram)) = (goals.memory, machine.ram.get())
        && memory > *ram
    {
        return Err(Usage(format!("--memory {memory}: this machine has {ram}")).into());
    }
    let mut setup = machine::setup(&root);
    // What was measured here says nothing of another machine, and its room is that of the disk that the folder lies on.
    let (seen, vectors) = if root.is_live() { seen(context, &machine)? } else { Default::default() };
    if root.is_live()
        && let Ok(room) = rustix::fs::statvfs("/")
    {
        let bytes = |blocks: u64| Bytes(blocks.saturating_mul(room.f_frsize));
        setup.room.insert("/".into(), (bytes(room.f_bavail), bytes(room.f_blocks)));
    }
    let proofs = if root.is_live() { proofs(context)? } else { Vec::new() };
    let media = if root.is_live() { media(context, &machine)? } else { Vec::new() };
    let situation = Situation {
        machine: &machine,
        setup: &setup,
        goals: &goals,
        seen: &seen,
        vectors: &vectors,
        proofs: &proofs,
        media: &media,
    };
    for (rule, why) in advise::withheld(&situation) {
        out::say(&format!("{rule}: {why}"));
    }
    let (all, measure) = (advise::advise(&situation), advise::measure(&situation));
    let need = root.is_live().then(|| advise::need(&situation)).flatten();
    Ok(Advice { all, measure, need, goals })
}

/// Lists the rules.
pub fn rules(context: &Context) -> Result<ExitCode> {
    if context.json {
        out::print_json(&report::json::rules(&advise::ALL))?;
    } else {
        out::show(&report::terminal::rules(&advise::ALL, &context.style), &context.style)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What was asked for.
fn goals(args: &GoalArgs) -> Result<Goals> {
    let job: Job = args.job.parse().map_err(|why| Usage(format!("--for {why}")))?;
    let of_redis = [
        ("--p95", &args.p95),
        ("--loss", &args.loss),
        ("--memory", &args.memory),
        ("--payload", &args.payload),
        ("--on", &args.on),
    ];
    if let Some((option, _)) = of_redis.iter().find(|(_, given)| given.is_some() && !job.is_redis()) {
        let why = "speaks of a Redis server; say --for redis-cache, redis-store or redis-vectors with it";
        return Err(Usage(format!("{option} {why}")).into());
    }
    let mut goals = Goals::of(job);
    if let Some(p95) = &args.p95 {
        let p95 = parsed::<Nanos>("--p95", p95)?;
        goals.p95 = Some(p95).filter(|p95| p95.0 > 0);
        if goals.p95.is_none() {
            return Err(Usage("--p95: nothing answers in no time; write for example 5ms".to_owned()).into());
        }
    }
    match args.loss.as_deref() {
        None => {}
        Some("all") => goals.loss = None,
        Some("0") => goals.loss = Some(Nanos(0)),
        Some(loss) => goals.loss = Some(parsed::<Nanos>("--loss", loss)?),
    }
    if let Some(memory) = &args.memory {
        let memory = parsed::<Bytes>("--memory", memory)?;
        if memory.0 < LEAST_MEMORY {
            let why = format!("a server that holds anything takes {} or more", Bytes(LEAST_MEMORY));
            return Err(Usage(format!("--memory {memory}: {why}")).into());
        }
        goals.memory = Some(memory);
    }
    if let Some(payload) = &args.payload {
        goals.payload = parsed::<Bytes>("--payload", payload)?;
    }
    if let Some(on) = &args.on {
        let path = Path::new(on);
        if path.is_dir() {
            goals.dir = Some(std::fs::canonicalize(path).map_err(|error| Missing(format!("--on {on}: {error}")))?);
        } else {
            methods::profile_named(on.strip_prefix("profile:").unwrap_or(on))
                .map_err(|error| Usage(format!("--on {on}: give a directory, or a profile ({error})")))?;
        }
        goals.on = Some(on.clone());
    }
    Ok(goals)
}

/// Runs of these methods that were measured on this machine to their end, the newest first; none where there is no database.
fn records(context: &Context, machine: &Machine, methods: &[&str]) -> Result<Vec<record::Record>> {
    if !context.has_database() {
        return Ok(Vec::new());
    }
    let store = context.open_for_reading()?;
    let wanted = |head: &&record::RunHead| {
        methods.contains(&head.method.as_str()) && head.origin == Origin::Measured && head.state == State::Done
    };
    let mut records = Vec::new();
    for head in store.runs()?.iter().filter(wanted).take(RUNS) {
        let record = store.load(&head.id)?;
        // Another machine's came with a file, or with the card that it was stored on.
        if record.run.machine.model == machine.model && record.run.machine.cpu.model == machine.cpu.model {
            records.push(record);
        }
    }
    Ok(records)
}

/// What `load redis` and `load vectors` measured here.
fn seen(context: &Context, machine: &Machine) -> Result<(Vec<Seen>, Vec<SeenVectors>)> {
    let (mut seen, mut vectors) = (Vec::new(), Vec::new());
    for record in records(context, machine, &["load-redis", "load-vectors"])? {
        // Set up otherwise on purpose, it says nothing of what is recommended.
        if record.run.plan.parameters.keys().any(|name| name.starts_with("config.")) {
            continue;
        }
        let (view, run) = (report::view(&record), record.run.id.to_string());
        seen.extend(study::redis_cells(&view).into_iter().map(|cell| Seen { run: run.clone(), cell }));
        vectors.extend(study::vector_rows(&view).into_iter().map(|row| SeenVectors { run: run.clone(), row }));
    }
    Ok((seen, vectors))
}

/// What disks did as swap here.
fn media(context: &Context, machine: &Machine) -> Result<Vec<SeenMedium>> {
    let mut media = Vec::new();
    for record in records(context, machine, &["swap-sim", "check"])? {
        for step in record.steps.iter().filter(|step| step.name == "swap-sim" && step.elapsed.0 > 0) {
            let operations = step.read.operations() + step.write.operations();
            if let Some(tier) = step.tier.clone().filter(|_| operations > 0) {
                let pages_per_s = operations as f64 / step.elapsed.secs();
                let (run, page) = (record.run.id.to_string(), step.job.block.mean());
                media.push(SeenMedium { run, tier, pages_per_s, page });
            }
        }
    }
    Ok(media)
}

/// What was proven here of single rules, the newest first.
fn proofs(context: &Context) -> Result<Vec<SeenProof>> {
    if !context.has_database() {
        return Ok(Vec::new());
    }
    let store = context.open_for_reading()?;
    let mut seen: Vec<SeenProof> = Vec::new();
    for (number, proof) in store.proofs()? {
        let [rule] = proof.rules.as_slice() else { continue };
        let proved = proved(&store, number, &proof)?;
        let of = proved.of.clone().unwrap_or_default();
        seen.push(SeenProof { number, rule: rule.clone(), with: proof.with.clone(), of, effect: proved.effect });
        if seen.len() == PROOFS {
            break;
        }
    }
    Ok(seen)
}

/// Each file, if none of that name is there.
fn write(folder: &Path, files: &[ConfFile]) -> Result<()> {
    let taken: Vec<&str> = files.iter().map(|file| file.name).filter(|name| folder.join(name).exists()).collect();
    if !taken.is_empty() {
        let names = taken.join(", ");
        return Err(Missing(format!(
            "{} holds {names} already, which is not replaced; give another --out",
            folder.display()
        ))
        .into());
    }
    for file in files {
        let path = folder.join(file.name);
        let made = File::options().write(true).create_new(true).open(&path);
        made.and_then(|mut made| made.write_all(file.text.as_bytes()))
            .map_err(|error| Missing(format!("{} cannot be written: {error}", path.display())))?;
        out::say(&format!("wrote {}", path.display()));
    }
    Ok(())
}
