//! The probe of a prediction: a few layers of the model, in memory and with memory for as much of them as decides, on each tier, three
//! times in turns. It measures in less than a minute a tier what cannot be looked up: how fast this processor multiplies such
//! weights, what of them this kernel keeps, and how fast the rest comes back.

use crate::decode::Request;
use crate::{Tier, WorkloadError};
use basics::decoding::{Decoding, Part, Piece};
use basics::pressure::Pressure;
use basics::units::MIB;
use basics::{Bytes, Nanos, Plan};

/// Weights of the probe: many times what a processor's caches hold, few enough for a slow disk.
const SIZE: Bytes = Bytes(160 * MIB);
/// Least and most of them that a probe leaves memory for.
const KEPT: [f64; 2] = [0.2, 0.9];
/// One visit lies up to a quarter off the next (0.292 to 0.383 tokens a second were said of one model and disk).
const VISITS: u32 = 3;
/// What the process needs of its limit for itself.
pub const OWN: Bytes = Bytes(10 * MIB);
/// The longest that one visit takes, its prompt included.
const TIME: Nanos = Nanos::from_millis(12_000);
const TOKENS: u32 = 16;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The model that is to be predicted.
    pub model: Decoding,
    /// Share of the probe's weights that there is memory for, as far as a probe can be made with so little or so much.
    pub kept: f64,
    /// Where its weights would go.
    pub tiers: Vec<Tier>,
    /// Threads that compute.
    pub threads: u32,
    /// Of every random choice.
    pub seed: u64,
    /// Length of this machine's pages.
    pub page: Bytes,
}

/// What of a model is probed with: its first pieces that have room in [`SIZE`], close together, and its largest where none of them has.
pub fn part(model: &Decoding) -> Decoding {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut end = 0;
    for piece in model.pieces.iter().filter(|piece| matches!(piece.part, Part::Whole | Part::Experts { .. })) {
        // Of experts that a prompt needs all of, a scan would be something else.
        let len = piece.touched(0).min(SIZE.0);
        if end + len <= SIZE.0 {
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
        room: 0,
        mapped: model.mapped,
    }
}

impl Probe {
    /// The plan: the visits in memory, then those of the tiers in turns.
    ///
    /// # Errors
    /// When the model is too small to be probed, or a tier cannot hold it.
    pub fn plan(&self) -> Result<Plan, WorkloadError> {
        let part = part(&self.model);
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
            repeat: VISITS,
            page_cluster: None,
            swappiness: None,
            curve: None,
            seed: self.seed,
            page: self.page,
        };
        // Twice as much as it needs: a limit, so that it is not this machine's own swap that it goes to.
        let mut plan = request(vec![Tier::nothing()], Some(Bytes(2 * size + OWN.0)), false).plan()?;
        for step in &mut plan.steps {
            "in memory".clone_into(&mut step.name);
        }
        let kept = self.kept.clamp(KEPT[0], KEPT[1]);
        let memory = Bytes((kept * size as f64) as u64 + OWN.0);
        let next = request(self.tiers.clone(), Some(memory), self.model.mapped).plan()?;
        let before = plan.targets.len();
        plan.targets.extend(next.targets);
        plan.steps.extend(next.steps.into_iter().map(|mut step| {
            step.target += before;
            step.name = format!("keeping {kept:.2}");
            step
        }));
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
        let model = crate::decode::decoding("m", &Shape::parse(shape).unwrap().header(), 10, 10, 0).unwrap();
        let tier = |name: &&str| Tier::parse(name, &|name| Ok((name.to_owned(), String::new()))).unwrap();
        Probe { model, kept: 0.8, tiers: tiers.iter().map(tier).collect(), threads: 2, seed: 1, page: Bytes(4096) }
    }

    #[test]
    fn the_share_that_decides_is_tried_on_each_tier_in_turns() {
        let plan = probe("layers=32,embd=4096,quant=Q8_0", &["zram", "/tmp"]).plan().unwrap();
        let steps: Vec<_> = plan.steps.iter().map(|s| (s.tier.as_deref().unwrap(), s.name.as_str())).collect();
        assert_eq!(steps[..3], [("none", "in memory"); 3]);
        assert_eq!(steps[3..], [("zram", "keeping 0.80"), ("/tmp", "keeping 0.80")].repeat(3));
        assert_eq!(plan.targets.len(), 3);
    }

    #[test]
    fn a_part_of_a_model_is_of_its_kind() {
        let whole = probe("layers=32,embd=4096,quant=Q4_0", &["zram"]).model;
        let part = part(&whole);
        assert!(part.size.0 > SIZE.0 / 4 * 3 && part.size <= SIZE, "{}", part.size);
        assert!(part.pieces.iter().any(|piece| piece.packed == 2));
        assert!(probe("layers=1,embd=64", &["zram"]).plan().unwrap_err().to_string().contains("too little"));
    }
}
