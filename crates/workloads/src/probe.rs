//! The probe of a prediction: a few layers of the model, once in memory and then with memory for part of them, on each tier. It
//! measures in less than a minute what decides and cannot be looked up: how fast this processor multiplies such weights, what of
//! them this kernel keeps, and how fast the rest comes back.

use crate::decode::Request;
use crate::{Tier, WorkloadError};
use basics::decoding::{Decoding, Part, Piece};
use basics::pressure::Pressure;
use basics::units::MIB;
use basics::{Bytes, Nanos, Plan};

/// Weights of the probe: many times what a processor's caches hold, few enough for a slow disk.
const SIZE: Bytes = Bytes(160 * MIB);
/// Shares of them that there is memory for.
const KEPT: [f64; 4] = [0.4, 0.6, 0.8, 0.9];
/// What the process needs of its limit for itself.
pub const OWN: Bytes = Bytes(10 * MIB);
/// The longest that one share takes, its prompt included.
const TIME: Nanos = Nanos::from_millis(12_000);
const TOKENS: u32 = 16;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The model that is to be predicted.
    pub model: Decoding,
    /// Where its weights would go.
    pub tiers: Vec<Tier>,
    /// Threads that compute.
    pub threads: u32,
    /// Of every random choice.
    pub seed: u64,
    /// Length of this machine's pages.
    pub page: Bytes,
}

/// The first pieces of a model that have room in so much, close together, and its largest where none of them has.
fn cut(model: &Decoding, most: Bytes) -> Decoding {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut end = 0;
    for piece in model.pieces.iter().filter(|piece| matches!(piece.part, Part::Whole | Part::Experts { .. })) {
        // Of experts that a prompt needs all of, a scan would be something else.
        let len = piece.touched(0).min(most.0);
        if end + len <= most.0 {
            pieces.push(Piece { at: Bytes(end), len: Bytes(len), part: Part::Whole, ..*piece });
            end = (end + len).next_multiple_of(64);
        }
    }
    Decoding {
        model: model.model.clone(),
        size: Bytes(end.next_multiple_of(4096)),
        pieces,
        prompt: 1,
        tokens: TOKENS,
        mapped: model.mapped,
    }
}

impl Probe {
    /// The plan: one target in memory, and one for each share on each tier.
    ///
    /// # Errors
    /// When the model is too small to be probed, or a tier cannot hold it.
    pub fn plan(&self) -> Result<Plan, WorkloadError> {
        let part = cut(&self.model, SIZE);
        let size = part.size.0;
        if size < SIZE.0 / 4 {
            let sentence = format!("{} has {} of weights, too little to probe with; run it", part.model, part.size);
            return Err(WorkloadError::Size(sentence));
        }
        let request = |tiers: Vec<Tier>, memory: Option<Bytes>, mapped: bool| Request {
            decoding: Decoding { mapped, ..part.clone() },
            pressure: Pressure { memory, ..Pressure::default() },
            tiers,
            threads: self.threads,
            time: TIME,
            repeat: 1,
            page_cluster: None,
            swappiness: None,
            curve: None,
            seed: self.seed,
            page: self.page,
        };
        // Twice as much as it needs: a limit, so that it is not this machine's own swap that it goes to.
        let mut plan = request(vec![Tier::nothing()], Some(Bytes(2 * size + OWN.0)), false).plan()?;
        "in memory".clone_into(&mut plan.steps[0].name);
        for kept in KEPT {
            let memory = Bytes((kept * size as f64) as u64 + OWN.0);
            let next = request(self.tiers.clone(), Some(memory), self.model.mapped).plan()?;
            let before = plan.targets.len();
            plan.targets.extend(next.targets);
            plan.steps.extend(next.steps.into_iter().map(|mut step| {
                step.target += before;
                step.name = format!("keeping {kept}");
                step
            }));
        }
        // All shares of a tier one after the other.
        let place = |tier: &Option<String>| self.tiers.iter().position(|one| Some(&one.name) == tier.as_ref());
        plan.steps[1..].sort_by_key(|step| place(&step.tier));
        "probe".clone_into(&mut plan.method);
        let tiers: Vec<&str> = self.tiers.iter().map(|tier| tier.name.as_str()).collect();
        plan.parameters.insert("tiers".to_owned(), tiers.join(" "));
        plan.parameters.remove("memory");
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::Shape;

    fn probe(shape: &str, tiers: &[&str]) -> Probe {
        let model = crate::decode::decoding("m", &Shape::parse(shape).unwrap().header(), 10, 10).unwrap();
        let tier = |name: &&str| Tier::parse(name, &|name| Ok((name.to_owned(), String::new()))).unwrap();
        Probe { model, tiers: tiers.iter().map(tier).collect(), threads: 2, seed: 1, page: Bytes(4096) }
    }

    #[test]
    fn each_share_is_tried_on_each_tier() {
        let plan = probe("layers=32,embd=4096,quant=Q8_0", &["zram", "/tmp"]).plan().unwrap();
        let steps: Vec<_> = plan.steps.iter().map(|s| (s.tier.as_deref().unwrap(), s.name.as_str())).collect();
        assert_eq!(steps[0], ("none", "in memory"));
        let names: Vec<_> = steps[1..5].iter().map(|step| step.1).collect();
        assert_eq!(names, ["keeping 0.4", "keeping 0.6", "keeping 0.8", "keeping 0.9"]);
        assert!(steps[1..5].iter().all(|step| step.0 == "zram") && steps[5..].iter().all(|step| step.0 == "/tmp"));
        assert_eq!(plan.targets.len(), 9);
    }

    #[test]
    fn a_part_of_a_model_is_of_its_kind() {
        let whole = probe("layers=32,embd=4096,quant=Q4_0", &["zram"]).model;
        let part = cut(&whole, SIZE);
        assert!(part.size.0 > SIZE.0 / 4 * 3 && part.size <= SIZE, "{}", part.size);
        assert!(part.pieces.iter().any(|piece| piece.packed == 2));
        assert!(probe("layers=1,embd=64", &["zram"]).plan().unwrap_err().to_string().contains("too little"));
    }
}
