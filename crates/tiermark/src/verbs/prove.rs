//! `tiermark prove`: the same work with a change and without it, in turns, and what follows from that.

use super::advise::advice;
use super::settings::{agreed, lasting};
use super::{load, run};
use crate::cli::{Cli, ProveArgs, Verb};
use crate::context::{self, Context};
use crate::exit::{Missing, Usage};
use crate::progress::Bar;
use crate::{exit, out};
use anyhow::Result;
use basics::{Nanos, Plan};
use change::ChangeError;
use change::lasting::{Applied, Settings, Took};
use clap::{CommandFactory, Parser};
use machine::{Machine, Root};
use record::{Proof, Store};
use report::proof::Proved;
use runner::Runner;
use runner::trial::{self, Switch, Trial};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;
use study::proof::{FEWEST_PAIRS, FEWEST_TURNS, Proven};

/// What is on trial.
#[derive(Default)]
struct Subject {
    rules: Vec<String>,
    applied: Option<String>,
    differs: Vec<String>,
    switches: Vec<Switch>,
    /// Where something takes a reboot: whether it is behind us.
    across: Option<bool>,
}

/// Tries it, or shows what was proven so far.
pub fn prove(context: &Context, args: &ProveArgs) -> Result<ExitCode> {
    let Some(with) = &args.with else {
        if !(args.what.is_empty() && args.set.is_empty()) {
            return Err(Usage("--with METHOD|WORKLOAD says by what work it is judged".to_owned()).into());
        }
        return list(context);
    };
    if !args.goals.root.eq(Path::new("/")) {
        return Err(Usage("what is proven is proven on the machine that runs; --root has none".to_owned()).into());
    }
    let subject = subject(context, args)?;
    let least = if subject.across.is_some() { FEWEST_TURNS } else { FEWEST_PAIRS };
    if (args.pairs as usize) < least {
        return Err(Usage(format!("--pairs {}: a verdict at the 1 % level takes {least}", args.pairs)).into());
    }
    let machine = machine::read(&Root::live());
    let plan = plan(with, &machine)?;
    clash(&plan, &subject)?;
    runner::may_begin(&plan)?;
    if args.dry_run {
        return dry_run(context, args, &subject, &plan, &machine);
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Missing("settings are switched by root alone; try again with sudo".to_owned()).into());
    }
    let (mut store, journal) = context.open()?;
    let interrupted = context::interrupted()?;
    let program = std::env::current_exe().map_err(|error| Missing(format!("this program cannot be found: {error}")))?;
    trial::attempt(&subject.switches, &journal).map_err(refused)?;
    let (number, mut proof) = proof(&store, &subject, with, args)?;
    let turns = match subject.across {
        Some(after) => trial::side(after, args.pairs),
        None => trial::pairs(args.pairs, proof.seed),
    };
    let number = store.keep_proof(number, &proof)?;
    let all = turns.len();
    let trial = Trial { plan: &plan, switches: &subject.switches, turns, command: &context.command };
    let mut bar = Bar::new(context.progress(args.progress));
    let mut runner = Runner {
        store: &mut store,
        journal: &journal,
        interrupted: &interrupted,
        progress: &mut bar,
        program: &program,
    };
    let ended = runner.trial(&trial, number, &mut proof, &mut |index, changed| {
        let side = if changed { "with the change" } else { "without it" };
        let warms = if index == 0 { ", to warm up" } else { "" };
        out::say(&format!("turn {} of {all}: {side}{warms}", index + 1));
    })?;
    for error in ended.iter().flat_map(|ended| &ended.errors) {
        out::say(&error.to_string());
    }
    let proved = proved(&store, number, &proof)?;
    if context.json {
        out::print_json(&report::json::proof(&proved))?;
    } else {
        out::show(&report::terminal::proof(&proved, &context.style), &context.style)?;
    }
    if subject.across == Some(false) {
        out::say("this is how it is before the change: apply it, start anew, and say the same again");
    }
    hurt(context, args, &subject, proved.effect.verdict)?;
    Ok(ended.map_or(ExitCode::from(130), |ended| exit::of_run(&ended)))
}

/// A value that the kernel does not know is a word mistyped.
fn refused(error: ChangeError) -> anyhow::Error {
    match &error {
        ChangeError::Apply { action: "write", path, source } if source.kind() == ErrorKind::InvalidInput => {
            let path = path.display();
            Usage(format!(
                "the kernel does not take what --set or --against gives for {path} ({source}); give another value"
            ))
            .into()
        }
        ChangeError::NotTaken { .. } | ChangeError::NotOffered { .. } => Usage(error.to_string()).into(),
        _ => error.into(),
    }
}

/// All that was proven so far.
fn list(context: &Context) -> Result<ExitCode> {
    let store = context.open_for_reading()?;
    let kept = store.proofs()?;
    let all = kept.iter().map(|(number, proof)| proved(&store, *number, proof)).collect::<Result<Vec<_>>>()?;
    if context.json {
        out::print_json(&report::json::proofs(&all))?;
    } else {
        out::show(&report::terminal::proofs(&all, &context.style), &context.style)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// With what its runs say.
pub(super) fn proved<'a>(store: &Store, number: i64, proof: &'a Proof) -> Result<Proved<'a>> {
    let mut runs = Vec::new();
    for turn in &proof.turns {
        runs.push(match store.load(&turn.run) {
            Ok(record) => Some(record),
            Err(record::RecordError::NoSuchRun { .. }) => None,
            Err(error) => return Err(error.into()),
        });
    }
    Ok(Proved::of(number, proof, &runs))
}

/// The work, as `run` and `load` read it.
fn plan(with: &str, machine: &Machine) -> Result<Plan> {
    let no = |why: String| Usage(format!("--with {with:?}: {why}"));
    let mut words = shlex::split(with).ok_or_else(|| no("a quote is not closed".to_owned()))?;
    if words.first().is_some_and(|word| word == "tiermark") {
        words.remove(0);
    }
    let first = words.first().ok_or_else(|| no("names no work".to_owned()))?;
    if Cli::command().find_subcommand(first).is_none() {
        words.insert(0, "run".to_owned());
    }
    let cli = Cli::try_parse_from(std::iter::once("tiermark".to_owned()).chain(words)).map_err(|error| {
        // Of what is missing it lists one a line, and then how the command is used.
        let text = error.to_string();
        let sentence: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        no(sentence.join(" ").trim_start_matches("error: ").to_owned())
    })?;
    match &cli.verb {
        Some(Verb::Run(args)) => run::plan(args, machine),
        Some(Verb::Load(verb)) => load::plan(verb, machine),
        _ => Err(no("`run` and `load` are work that can be repeated".to_owned()).into()),
    }
}

/// A setting that the work itself makes would hide what is switched.
fn clash(plan: &Plan, subject: &Subject) -> Result<(), Usage> {
    for switch in &subject.switches {
        let name = switch.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if plan.parameters.contains_key(name) {
            return Err(Usage(format!("the work sets {name} itself, so that switching it would show nothing")));
        }
    }
    Ok(())
}

/// What was asked for: rules, what is applied, settings.
fn subject(context: &Context, args: &ProveArgs) -> Result<Subject> {
    let mut subject = Subject::default();
    for setting in &args.set {
        let (path, after) = named("--set", setting)?;
        let mut against = Vec::new();
        for text in &args.against {
            against.push(named("--against", text)?);
        }
        let before = against.into_iter().find_map(|(other, value)| (other == path).then_some(value));
        let before = match before {
            Some(before) => before,
            None => change::value_now(&path)
                .map_err(|error| Missing(format!("--set {setting}: {} cannot be read: {error}", path.display())))?,
        };
        subject.switch(Switch { path, before, after });
    }
    for text in &args.against {
        let (path, _) = named("--against", text)?;
        if !subject.switches.iter().any(|switch| switch.path == path) {
            return Err(Usage(format!("--against {text}: give --set for the same setting, too")).into());
        }
    }
    let (ids, rules): (Vec<&String>, Vec<&String>) =
        args.what.iter().partition(|what| what.chars().all(|c| c.is_ascii_digit()));
    for id in ids {
        subject.applied(id)?;
    }
    if !rules.is_empty() {
        subject.rules(context, args, &rules)?;
    }
    if subject.differs.is_empty() {
        let nothing = "names nothing that differs: give RULE, the ID of what is applied, or --set SETTING=VALUE";
        return Err(Usage(nothing.to_owned()).into());
    }
    if subject.across.is_some() {
        // All of it is measured as one, so nothing is switched in between.
        subject.switches.clear();
    }
    Ok(subject)
}

impl Subject {
    fn switch(&mut self, switch: Switch) {
        self.differs.push(format!("{}: {} → {}", switch.path.display(), switch.before, switch.after));
        self.switches.push(switch);
    }

    /// What `apply` wrote.
    fn applied(&mut self, id: &str) -> Result<()> {
        let all = lasting(Path::new("/"))?.status()?;
        let status = all.into_iter().find(|status| status.applied.id == id);
        let status =
            status.ok_or_else(|| Usage(format!("nothing is applied as {id}; `tiermark status` lists what is")))?;
        if self.applied.replace(id.to_owned()).is_some() {
            return Err(Usage("one ID at a time: together they would be proven together".to_owned()).into());
        }
        let Applied { settings, live, .. } = status.applied;
        self.rules.extend(settings.iter().map(|settings| settings.rule.clone()));
        if let Some((_, wanted, _)) = status.settings.iter().find(|(.., took)| *took == Took::No) {
            let what = format!("{} did not take, so there is nothing to prove", wanted.line());
            return Err(Missing(format!("{what}; `tiermark status` says more")).into());
        }
        let waits = status.settings.iter().any(|(.., took)| *took == Took::Waits);
        self.take(&settings, live.into_iter().map(|live| (live.path, live.before, live.wanted)), !waits);
        Ok(())
    }

    /// What rules recommend, applied or not.
    fn rules(&mut self, context: &Context, args: &ProveArgs, names: &[&String]) -> Result<()> {
        if let Some(name) = names.iter().find(|name| !advise::ALL.iter().any(|rule| rule.name == name.as_str())) {
            return Err(Usage(format!("there is no rule {name:?}; `tiermark rules` lists them")).into());
        }
        let mut settings = Vec::new();
        let said = advice(context, &args.goals)?.all;
        for name in names {
            let said = said.iter().find(|said| said.rule == name.as_str() && !said.changes.is_empty());
            let said = said.ok_or_else(|| {
                Usage(format!("{name} changes nothing on this machine; what is applied is proven by its ID"))
            })?;
            settings.push(Settings {
                rule: said.rule.to_owned(),
                title: said.title.clone(),
                wanted: said.changes.clone(),
            });
        }
        let (planned, refused) = lasting(Path::new("/"))?.plan(&settings);
        if let Some((rule, why)) = refused.into_iter().next() {
            return Err(Missing(format!("{rule} cannot be applied: {why}")).into());
        }
        self.rules.extend(settings.iter().map(|settings| settings.rule.clone()));
        let live = planned.live.into_iter().map(|live| (live.path, live.before, live.wanted));
        self.take(&settings, live, false);
        Ok(())
    }

    /// Settings, those of them that the kernel takes at once, and whether the others are behind a reboot.
    fn take(
        &mut self,
        settings: &[Settings],
        live: impl Iterator<Item = (PathBuf, String, String)>,
        started_since: bool,
    ) {
        live.for_each(|(path, before, after)| self.switch(Switch { path, before, after }));
        let later = settings.iter().flat_map(|settings| &settings.wanted).filter(|wanted| !wanted.is_live());
        let later: Vec<String> = later.map(change::Wanted::line).collect();
        if !later.is_empty() {
            self.differs.extend(later);
            self.across = Some(started_since);
        }
    }
}

/// `vm.page-cluster=0` or a path below `/sys`.
fn named(option: &str, text: &str) -> Result<(PathBuf, String), Usage> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| Usage(format!("{option} {text}: give SETTING=VALUE, as vm.page-cluster=0")))?;
    let path =
        if name.starts_with('/') { PathBuf::from(name) } else { Path::new("/proc/sys").join(name.replace('.', "/")) };
    if path.is_file() {
        return Ok((path, value.to_owned()));
    }
    Err(Usage(format!("{option} {text}: this kernel has no {}", path.display())))
}

/// A new one, or the one whose other side is still to come.
fn proof(store: &Store, subject: &Subject, with: &str, args: &ProveArgs) -> Result<(Option<i64>, Proof)> {
    let draw = || std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), "order");
    if subject.across == Some(true) {
        let other_half = |proof: &Proof| {
            !proof.interleaved
                && proof.with == with
                && proof.rules == subject.rules
                && proof.turns.iter().all(|turn| !turn.changed)
                && !proof.turns.is_empty()
        };
        let found = store.proofs()?.into_iter().find(|(_, proof)| other_half(proof));
        let Some((number, mut proof)) = found else {
            let what = "it was not measured before it was applied: revert it, start anew, and say the same again";
            return Err(Missing(what.to_owned()).into());
        };
        proof.applied.clone_from(&subject.applied);
        return Ok((Some(number), proof));
    }
    Ok((
        None,
        Proof {
            started: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(Nanos(0), Nanos::from),
            rules: subject.rules.clone(),
            applied: subject.applied.clone(),
            differs: subject.differs.clone(),
            with: with.to_owned(),
            interleaved: subject.across.is_none(),
            seed: args.seed.unwrap_or_else(draw),
            turns: Vec::new(),
        },
    ))
}

fn dry_run(context: &Context, args: &ProveArgs, subject: &Subject, plan: &Plan, machine: &Machine) -> Result<ExitCode> {
    if context.json {
        out::print_json(&report::json::plan(plan, machine))?;
        return Ok(ExitCode::SUCCESS);
    }
    let how = match subject.across {
        None => format!("{} pairs, the order of each drawn, and one turn before them to warm up", args.pairs),
        Some(after) => format!("{} turns {} the reboot", args.pairs, if after { "after" } else { "before" }),
    };
    let differs: String = subject.differs.iter().map(|differs| format!("differs  {differs}\n")).collect();
    out::print(&format!("{differs}{how}, each of this plan:\n\n"))?;
    out::show(&report::terminal::plan(plan, machine, &context.style), &context.style)?;
    Ok(ExitCode::SUCCESS)
}

/// What is applied and hurt is offered to be taken back.
fn hurt(context: &Context, args: &ProveArgs, subject: &Subject, verdict: Proven) -> Result<()> {
    let (Proven::Hurt, Some(id)) = (verdict, &subject.applied) else { return Ok(()) };
    out::say(&format!("`tiermark revert {id}` takes it back"));
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stdin());
    if args.yes || !terminal || agreed(false, Path::new("/")).is_err() {
        return Ok(());
    }
    let reverted = lasting(Path::new("/"))?.revert(&context.open()?.1, id)?;
    out::show(&report::terminal::reverted(&reverted, &context.style), &context.style)?;
    Ok(())
}
