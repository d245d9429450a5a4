//! One token after the other, as data for the page's script: what each took, the faults, the reading and the temperature
//! meanwhile, and where the model's bytes were. All of it on one clock, which begins when the prompt was given.

use super::charts::{POINTS, rate, short};
use basics::decoding::{Generated, Lay};
use basics::pressure::Load;
use basics::{Bytes, Nanos};
use observe::Sample;
use record::StepRecord;
use serde_json::{Value, json};

/// Of a step in which a model made tokens; null of any other.
pub fn tokens(step: &StepRecord, samples: &[&Sample]) -> Value {
    let seen = step.load.as_deref().and_then(|load| Some((load, load.generated.as_deref()?)));
    let Some((load, generated)) = seen else { return Value::Null };
    let Some(first) = generated.tokens.first() else { return Value::Null };
    let (at, took) = spans(generated);
    json!({
        "first": short(first.secs()),
        "at": at,
        "took": took,
        "of": generated.tokens.len(),
        "model": generated.model,
        "from": from(load, generated),
        "meanwhile": meanwhile(step, load, generated, samples),
        "lay": lay(&generated.lay),
    })
}

/// Where what is read of its weights comes from, by the rules of [`study::weights_read`].
fn from(load: &Load, generated: &Generated) -> &'static str {
    match generated.mapped {
        true if load.areas.iter().all(|area| area.used.is_some()) => "disks",
        true => "disk",
        false => "swap",
    }
}

/// When each token after the first was there and what it took; so many that a drawing has no room for them are joined, and
/// take their mean.
fn spans(generated: &Generated) -> (Vec<Value>, Vec<Value>) {
    let each = generated.tokens.len().div_ceil(POINTS).max(1);
    let ends: Vec<&Nanos> = generated.tokens.iter().skip(1).collect();
    let mut before = generated.tokens.first().copied().unwrap_or_default();
    let span = |group: &[&Nanos]| {
        let end = **group.last()?;
        // A clock that stands still, or goes back, took no time.
        let took = end.0.saturating_sub(before.0) as f64 / 1e9 / group.len() as f64;
        before = end;
        Some((short(end.secs()), short(took)))
    };
    ends.chunks(each).filter_map(span).unzip()
}

/// Faults, bytes read and temperature between samples, in columns; a column of what was not seen holds nothing but null.
fn meanwhile(step: &StepRecord, load: &Load, generated: &Generated, samples: &[&Sample]) -> Value {
    let from = step.measured_from.unwrap_or_default();
    let each = samples.len().div_ceil(POINTS).max(1);
    let kept: Vec<&&Sample> = samples.iter().step_by(each).collect();
    let mut columns: [Vec<Value>; 4] = Default::default();
    for (i, sample) in kept.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| kept.get(i));
        let faults = before.and_then(|before| rate(before, sample, "pgmajfault"));
        let read = before.and_then(|before| {
            let width = (sample.at - before.at).secs();
            let bytes = study::weights_read(load, generated, before, sample)?;
            (width > 0.0).then(|| bytes / 1e6 / width)
        });
        columns[0].push(short((sample.at - from).secs()));
        columns[1].push(faults.map_or(Value::Null, short));
        columns[2].push(read.map_or(Value::Null, short));
        columns[3].push(sample.temperature_c.map_or(Value::Null, short));
    }
    let [t, faults, read, temperature] = columns;
    json!({"t": t, "faults": faults, "read": read, "temperature": temperature})
}

/// Bytes by where they were, in columns.
fn lay(lay: &[Lay]) -> Value {
    let each = lay.len().div_ceil(POINTS).max(1);
    let kept = || lay.iter().step_by(each);
    let bytes = |pick: fn(&Lay) -> Bytes| kept().map(|at| json!(pick(at).0)).collect::<Vec<_>>();
    json!({
        "t": kept().map(|at| short(at.at.secs())).collect::<Vec<_>>(),
        "anonymous": bytes(|at| at.anonymous),
        "file": bytes(|at| at.file),
        "swap": bytes(|at| at.swap),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_has_its_own_time_and_too_many_their_mean() {
        let seconds = |list: &[u64]| list.iter().map(|second| Nanos(second * 1_000_000_000)).collect();
        let of = |tokens: Vec<Nanos>| spans(&Generated { tokens, ..Generated::default() });
        let values = |list: &[f64]| list.iter().map(|value| json!(value)).collect::<Vec<_>>();
        assert_eq!(of(seconds(&[5, 6, 9])), (values(&[6.0, 9.0]), values(&[1.0, 3.0])));
        assert_eq!(of(seconds(&[5])), (vec![], vec![]));
        let (at, took) = of((0..=2 * POINTS as u64).map(|second| Nanos(second * 500_000_000)).collect());
        assert!(at.len() <= POINTS && took.iter().all(|took| *took == json!(0.5)), "{took:?}");
        assert_eq!(at.last(), Some(&json!(POINTS as f64)));
    }
}
