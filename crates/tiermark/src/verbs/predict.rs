//! `tiermark predict`: how fast a language model would decode, without running it.

use crate::cli::{PredictArgs, Predicted as Workload};
use crate::context::Context;
use crate::exit::{Missing, Usage};
use crate::verbs::run::execute;
use crate::verbs::{load, models};
use crate::{exit, out};
use anyhow::Result;
use basics::decoding::Decoding;
use basics::{Bytes, Known};
use gguf::Header;
use machine::Root;
use record::State;
use std::process::ExitCode;
use study::predict::{self, Board, Need, Predicted, Row, Tier, Usage as Length};
use workloads::probe::{self, OWN, Probe};

/// Predicts.
pub fn predict(context: &Context, args: &PredictArgs) -> Result<ExitCode> {
    let models = models::all(&args.models)?;
    let (rows, beside, code) = if args.probe {
        let (rows, code) = probed(context, args, &models)?;
        (rows, Vec::new(), code)
    } else {
        let (rows, beside) = published(args, &models)?;
        (rows, beside, ExitCode::SUCCESS)
    };
    if context.json {
        out::print_json(&report::json::predictions(&rows, &beside))?;
    } else {
        out::show(&report::terminal::predictions(&rows, &beside, &context.style), &context.style)?;
    }
    Ok(code)
}

fn need(args: &PredictArgs, (name, header): &(String, Header)) -> Result<Need> {
    let decode = gguf::decode(header).map_err(|error| Usage(format!("{name}: {error}")))?;
    let length = Length { prompt: args.prompt.into(), generated: args.tokens.into() };
    let need = Need::of(name, header, &decode, length);
    let need = if args.probe { need.with_room(args.context.into(), load::page(), &decode) } else { need };
    // A real runner's program and buffers, or our own.
    Ok(match args.workload {
        Workload::Llm => need,
        Workload::Decode => Need { resident: OWN, ..need },
    })
}

/// From what others published.
fn published(args: &PredictArgs, models: &[(String, Header)]) -> Result<(Vec<Row>, Vec<String>)> {
    let size = |option: &str, text: &str| -> Result<Bytes> { Ok(load::parsed::<Bytes>(option, text)?) };
    let ram = size("--ram", &args.ram)?;
    let mut board: Board = predict::pi5(ram);
    if let Some(page) = &args.page {
        board.page = size("--page", page)?;
        if !board.page.0.is_power_of_two() || !(4096..=65_536).contains(&board.page.0) {
            return Err(Usage(format!("--page {page}: pages have 4, 8, 16, 32 or 64 KiB")).into());
        }
    }
    if let Some(speed) = args.memory_speed {
        if !(speed.is_finite() && speed > 0.0) {
            return Err(Usage(format!("--memory-speed {speed}: give the MB that are multiplied in a second")).into());
        }
        board.memory_mbps = Known::Is(speed);
    }
    let lock = size("--lock", &args.lock)?;
    if lock >= ram {
        return Err(Usage(format!("--lock {lock} takes all of --ram {ram}; leave something")).into());
    }
    let mut tiers = Vec::with_capacity(args.on.len());
    for name in &args.on {
        let profiles: Vec<_> = name.split(',').map(methods::profile_named).collect::<Result<_, _>>()?;
        let several: Vec<_> = profiles.iter().collect();
        tiers.push(match several.as_slice() {
            [one] => Tier { name: name.clone(), ..Tier::of(one, board.page) },
            several => Tier::array(name, several, board.page),
        });
    }
    let needs = models.iter().map(|model| need(args, model)).collect::<Result<Vec<_>>>()?;
    let rows = predict::predict_table(&needs, &tiers, &board, lock, args.pager);
    let beside = needs.iter().flat_map(|need| {
        let (first, others) = tiers.split_first()?;
        Some(others.iter().map(|other| predict::versus(need, first, other, &board, lock).sentence).collect::<Vec<_>>())
    });
    let beside = beside.flatten().collect();
    Ok((rows, beside))
}

/// From a probe of this machine; what was probed before one failed or was interrupted stays.
fn probed(context: &Context, args: &PredictArgs, models: &[(String, Header)]) -> Result<(Vec<Row>, ExitCode)> {
    if !rustix::process::geteuid().is_root() {
        let needs = "swap and memory cgroups are set up by root alone; try again with sudo, or without --probe from published figures";
        return Err(Missing(needs.to_owned()).into());
    }
    let memory = args.memory.as_deref().unwrap_or_default();
    let memory = load::parsed::<Bytes>("--memory", memory)?;
    let lock = load::parsed::<Bytes>("--lock", &args.lock)?;
    if lock >= memory {
        return Err(Usage(format!("--lock {lock} leaves nothing of --memory {memory}; lock less")).into());
    }
    let memory = Bytes(memory.0 - lock.0);
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let mut rows = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for model in models {
        let need = need(args, model)?;
        let (name, header) = model;
        let decoding = workloads::decode::decoding(name, header, args.prompt, args.tokens, args.context)?;
        let tiers = args.on.iter().map(|name| load::tier(name)).collect::<Result<Vec<_>>>()?;
        let part = probe::part(&decoding).size;
        let probe = Probe {
            kept: predict::share_to_probe(&need, memory, part),
            model: Decoding { mapped: args.mapped, ..decoding },
            tiers: tiers.clone(),
            threads: args.threads.unwrap_or(processors),
            seed: 42,
            page: load::page(),
        };
        let machine = machine::read(&Root::live());
        let finished = execute(context, machine, probe.plan()?, args.progress)?;
        if finished.state == State::Interrupted {
            return Ok((rows, exit::of_run(&finished)));
        }
        let record = context.open_for_reading()?.load(&finished.id)?;
        let view = report::view(&record);
        let measured = study::token_rows(&view);
        for tier in &tiers {
            let mut paged = None;
            let predicted = match predict::probe_of(&view, &tier.name, OWN) {
                Some(probe) => {
                    let disk = measured.iter().find(|row| row.tier == tier.name).map(|row| row.disk_mbps.clone());
                    paged =
                        args.pager.then(|| predict::paged_with_probe(&need, &probe, &disk.unwrap_or_default(), memory));
                    predict::predict_with_probe(&need, &probe, memory)
                }
                None => {
                    code = exit::of_run(&finished);
                    let why = format!("its probe came to nothing; `tiermark show {}` says why", finished.id);
                    Predicted::unknown("no probe", why)
                }
            };
            let row = Row { model: name.clone(), profile: tier.name.clone(), pager: false, predicted };
            let paged = paged.map(|predicted| Row { pager: true, predicted, ..row.clone() });
            rows.push(row);
            rows.extend(paged);
        }
    }
    Ok((rows, code))
}
