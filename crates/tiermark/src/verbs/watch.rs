//! `tiermark watch`: what happens on this machine now, on a terminal, as lines, or as JSON for a program.

use crate::cli::WatchArgs;
use crate::context::{self, Context};
use crate::exit::Usage;
use crate::out;
use crate::screen::{Screen, clock};
use anyhow::Result;
use basics::{Bytes, Nanos};
use machine::{Machine, Root};
use observe::{Memory, Observer, Sample};
use report::live::Live;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use study::flow::{Event, Flow, SHORTEST, events, flow};

/// A key is heard after so long.
const KEYS: Duration = Duration::from_millis(100);

/// Looks until it is told to end.
pub fn watch(context: &Context, args: &WatchArgs) -> Result<ExitCode> {
    let interval: Nanos = args.interval.parse().map_err(|error| Usage(format!("--interval: {error}")))?;
    if interval < SHORTEST {
        return Err(Usage(format!(
            "--interval {interval} is too short for counters that tick 100 times a second; take {SHORTEST} or more"
        ))
        .into());
    }
    let machine = machine::read(&Root::live());
    let mut look = Look::start(&machine, interval)?;
    let mut live = Live::new(&machine, context.style.color);
    let mut screen = if context.json { None } else { Screen::take()? };
    let cancel = context::interrupted()?;
    let mut left = args.count;
    while !cancel.load(Relaxed) && left != Some(0) {
        if let Some(screen) = &mut screen
            && screen.ends(KEYS)
        {
            break;
        }
        let patience = if screen.is_some() { Duration::ZERO } else { KEYS };
        let Some(seen) = look.next(patience)? else { continue };
        left = left.map(|left| left - 1);
        if context.json {
            out::print_as_it_is(&report::json::watch(&seen.flow, &seen.memory, &seen.events).to_string())?;
            continue;
        }
        live.look(&clock(), seen.flow, seen.memory, seen.events);
        match &mut screen {
            Some(screen) => screen.draw(&live)?,
            None => out::print(&live.line(&clock()))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What one look brought.
pub struct Seen {
    /// Rates since the look before.
    pub flow: Flow,
    /// How memory is taken up now.
    pub memory: Memory,
    /// What of it should be told.
    pub events: Vec<Event>,
}

/// Looks at this machine every so often, by a thread.
pub struct Look {
    samples: Receiver<Sample>,
    before: Option<Sample>,
    page: Bytes,
    /// Kept for its thread.
    _observer: Observer,
}

impl Look {
    /// Begins.
    pub fn start(machine: &Machine, interval: Nanos) -> Result<Look> {
        let disks = machine.tiers.iter().filter(|tier| tier.block.is_some()).map(|tier| tier.name.clone());
        let (sender, samples) = channel();
        // Who listens no more has ended.
        let observer =
            Observer::start(Path::new("/"), disks.collect(), interval, move |sample| drop(sender.send(sample)))?;
        Ok(Look { samples, before: None, page: Bytes(rustix::param::page_size() as u64), _observer: observer })
    }

    /// The next look, if there is one within `patience`; the first sample alone says nothing.
    pub fn next(&mut self, patience: Duration) -> Result<Option<Seen>> {
        let after = match self.samples.recv_timeout(patience) {
            Ok(sample) => sample,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the thread that looks at the machine has ended"),
        };
        let seen = self.before.as_ref().and_then(|before| {
            let flow = flow(before, &after, self.page)?;
            let events = events(&flow, before, &after);
            Some(Seen { flow, memory: observe::memory(Path::new("/")), events })
        });
        self.before = Some(after);
        Ok(seen)
    }
}
