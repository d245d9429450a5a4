//! What other amounts of memory would bring a workload that was watched: its speed at the limits that were asked for, or at some
//! that are worth asking for, and the answer to "how much more do I need" in one sentence.

use super::{missed, predict};
use crate::findings::times;
use basics::curve::{Curve, Today, Watched};
use basics::units::{MIB, significant};
use basics::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Less than this much faster or slower is no difference: what is said is true to about as much.
const NO_DIFFERENCE: f64 = 1.1;
/// Misses that take less than this part of the time do not matter: memory fits.
const SHORT: f64 = 0.01;
/// Steps in which the amount is looked for that doubles the speed.
const STEPS: u64 = 200;
/// With more than this share of its faults untold nothing is said of what was watched.
const LOST: f64 = 0.1;

/// What other amounts of memory would bring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Misses against memory, and today's measurement; None when too little was seen.
    pub seen: Option<(Curve, Today)>,
    /// What is to be expected at other limits, rising.
    pub foreseen: Vec<Foreseen>,
    /// How long it was watched.
    pub time: Nanos,
    /// In a sentence, how much more it needs, or why that is not known.
    pub why: String,
}

/// Another limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Foreseen {
    /// The limit; where there is none today, what the workload has in RAM.
    pub memory: Bytes,
    /// Its speed, today's being 1.
    pub speed: f64,
    /// The same in passes or tokens a second.
    pub rate: f64,
    /// Major faults a second.
    pub major_per_s: f64,
    /// The curve was seen there, or all fits; if not it is a straight line between the two.
    pub known: bool,
}

/// What its speed is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Passes,
    Tokens,
}

impl Unit {
    fn word(self) -> &'static str {
        match self {
            Unit::Passes => "passes",
            Unit::Tokens => "tokens",
        }
    }
}

/// What was seen of a workload that reached `rate` while it was watched.
pub(crate) fn memory(watched: &Watched, rate: f64, unit: Unit) -> Memory {
    let nothing = |why: String| Memory { seen: None, foreseen: Vec::new(), time: watched.time, why };
    if let Some(trouble) = &watched.trouble {
        return nothing(format!("the memory curve is not known: {trouble}"));
    }
    let Some((curve, today)) = &watched.seen else {
        let watched = watched.time;
        return nothing(format!(
            "the memory curve is not known: in {watched} too little was touched twice; give --runtime more"
        ));
    };
    let faults = today.missed / today.page.0.max(1) as f64 * watched.time.secs();
    if watched.lost as f64 > LOST * faults.max(1000.0) {
        let lost = watched.lost;
        return nothing(format!(
            "the memory curve is not known: faults came faster than they could be told, {lost} of them"
        ));
    }
    if rate <= 0.0 {
        let unit = unit.word();
        return nothing(format!("the memory curve is not known: it made too few {unit} to have a speed"));
    }
    // What watching took is given back: a prediction is for a run that nobody watches.
    let rate = rate / (1.0 - today.overhead).max(0.5);
    let base = watched.limit.unwrap_or(today.resident);
    let lacks = curve.whole.0.saturating_sub(today.resident.0);
    let asked = match watched.asked.is_empty() {
        false => watched.asked.clone(),
        true => worth_asking(base, lacks),
    };
    let at = |memory: Bytes| {
        let expected = predict(curve, today, memory.0 as i64 - base.0 as i64);
        Foreseen {
            memory,
            speed: expected.speed,
            rate: rate * expected.speed,
            major_per_s: expected.major_per_s,
            known: expected.known,
        }
    };
    let mut foreseen: Vec<Foreseen> = asked.into_iter().map(at).collect();
    foreseen.sort_by_key(|one| one.memory);
    foreseen.dedup_by_key(|one| one.memory);
    let why = sentence(curve, today, rate, unit);
    Memory { seen: Some((curve.clone(), *today)), foreseen, time: watched.time, why }
}

/// Three quarters of today's limit, a quarter and a half more, and what all fits in.
fn worth_asking(base: Bytes, lacks: u64) -> Vec<Bytes> {
    let whole = (base.0 + lacks + lacks / 50).next_multiple_of(MIB);
    let quarter = |quarters: u64| (base.0 / 4 * quarters).next_multiple_of(MIB);
    let mut all = vec![quarter(3)];
    all.extend([quarter(5), quarter(6)].into_iter().filter(|more| *more < whole));
    all.extend((lacks > base.0 / 50).then_some(whole));
    all.into_iter().map(Bytes).collect()
}

/// An amount as one buys or sets it.
fn amount(bytes: f64) -> Bytes {
    Bytes((bytes as u64).next_multiple_of(MIB))
}

fn sentence(curve: &Curve, today: &Today, rate: f64, unit: Unit) -> String {
    let lacks = curve.whole.0.saturating_sub(today.resident.0);
    let speed = |more: f64| predict(curve, today, more as i64).speed;
    if today.stalled < SHORT {
        return fits(curve, today);
    }
    let all = speed(lacks as f64 + 1.0);
    let most = format!("{} {} a second", significant(rate * all), unit.word());
    if all < NO_DIFFERENCE {
        return format!(
            "more memory would hardly matter: with {} more all fits, and it would be {} % faster",
            amount(lacks as f64),
            significant(((all - 1.0) * 100.0).round())
        );
    }
    let whole = format!(
        "with {} more all fits and the tier no longer matters: {} times as fast, {most}",
        amount(lacks as f64),
        times(all)
    );
    let doubles = (1..STEPS).map(|step| lacks as f64 * step as f64 / STEPS as f64).find(|more| speed(*more) >= 2.0);
    let sentence = match doubles {
        Some(more) if more <= 0.8 * lacks as f64 => format!("{} more doubles it; {whole}", amount(more)),
        // What doubles it is as good as all, or is all.
        _ if all >= 2.0 => format!("less than all that it lacks brings little: {whole}"),
        _ => whole,
    };
    match curve.known.0 + curve.whole.0 / 50 < curve.whole.0 {
        true => format!(
            "{sentence} (seen up to {} more only, and a straight line from there: watched longer it would be known)",
            Bytes(curve.known.0.saturating_sub(today.resident.0))
        ),
        false => sentence,
    }
}

/// Nothing is missed: how much could go.
fn fits(curve: &Curve, today: &Today) -> String {
    let less = |part: f64| curve.whole.0 as f64 * part;
    let bears = |left: f64| predict(curve, today, left as i64 - today.resident.0 as i64).speed > 1.0 / NO_DIFFERENCE;
    let least = (1..STEPS).map(|step| less(step as f64 / STEPS as f64)).find(|left| bears(*left));
    match least.filter(|left| missed(curve, Bytes(*left as u64)) >= 0.0 && *left < 0.98 * curve.whole.0 as f64) {
        Some(left) => format!(
            "all that it needs is in RAM, or its misses take next to no time: more would bring nothing, and {} less would not be felt either",
            amount(curve.whole.0 as f64 - left)
        ),
        None => "all that it needs is in RAM: more would bring nothing, and it needs all of what it has".to_owned(),
    }
}
