//! `load llm`: a real runner of models, each model on each tier. What is done with it is fixed: the prompt, the number of
//! tokens, temperature 0.

use crate::{Tier, WorkloadError, room};
use basics::decoding::{Serving, Source};
use basics::job::{Block, Direction, Engine, Stop};
use basics::plan::{Step, Target, step_seed};
use basics::pressure::{Pressed, Pressure, Swap, Work};
use basics::{Bytes, Job, Nanos, Plan};
use std::collections::BTreeMap;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The models.
    pub models: Vec<Serving>,
    /// What is taken away; nothing where they are to have all memory.
    pub pressure: Pressure,
    /// Where what does not fit goes: a row each.
    pub tiers: Vec<Tier>,
    /// The longest that a row's tokens take; what was made until then counts.
    pub time: Nanos,
    /// How often each row is visited.
    pub repeat: u32,
    /// `vm.page-cluster`, where it is to be another.
    pub page_cluster: Option<u32>,
    /// `vm.swappiness`, where it is to be another.
    pub swappiness: Option<u8>,
    /// The table of the first article is what is wanted.
    pub as_published: bool,
    /// It is watched for its memory curve, for these limits or some of our choice.
    pub curve: Option<Vec<Bytes>>,
    /// Of every random choice.
    pub seed: u64,
    /// Length of this machine's pages.
    pub page: Bytes,
}

/// What a runner holds beside weights, keys and values: its programs and what it computes with.
const RUNNER: Bytes = Bytes(256 << 20);

impl Request {
    /// The plan: a target for each model on each tier, a step for each visit, named by its model.
    ///
    /// # Errors
    /// When the options make no sense together.
    pub fn plan(&self) -> Result<Plan, WorkloadError> {
        let refused = |sentence: &str| Err(WorkloadError::Size(sentence.to_owned()));
        if self.models.iter().any(|model| model.tokens < 2) {
            return refused("--tokens 1 has no rate: the first token is the prompt's; take 2 or more");
        }
        if self.models.iter().any(|model| model.mapped == Some(true)) && self.tiers.iter().any(|tier| !tier.is_none()) {
            return refused(
                "with --mapped the weights come from where their file is, not from swap; take --swap none, and keep the file on the tier",
            );
        }
        if let Some(model) = self.models.iter().find(|model| model.size.0 == 0)
            && self.tiers.iter().any(|tier| !tier.is_own() && !tier.is_none())
        {
            let name = &model.model;
            return refused(&format!(
                "how large {name} is cannot be seen, nor so how much swap it needs; take --swap own"
            ));
        }
        let mut plan = Plan {
            method: "load-llm".to_owned(),
            parameters: self.parameters(),
            as_published: self.as_published,
            seed: self.seed,
            ..Plan::default()
        };
        for tier in &self.tiers {
            for model in &self.models {
                let size = Bytes(model.size.0 + model.cache.map_or(0, |cache| cache.0) + RUNNER.0);
                let swap = tier.sized(room(size));
                let swap = Swap { page_cluster: self.page_cluster, swappiness: self.swappiness, ..swap };
                let work = Work::Serve(Box::new(model.clone()));
                plan.targets.push(Target::Pressed(Pressed {
                    size,
                    pressure: self.pressure.clone(),
                    swap,
                    work,
                    curve: self.curve.clone(),
                    pager: false,
                }));
            }
        }
        for _ in 0..self.repeat.max(1) {
            let each = self.tiers.iter().flat_map(|tier| self.models.iter().map(move |model| (tier, model)));
            for (target, (tier, model)) in each.enumerate() {
                let job = Job { seed: step_seed(self.seed, plan.steps.len()), ..self.job(model) };
                let (name, tier) = (model.model.clone(), Some(tier.name.clone()));
                plan.steps.push(Step { name, tier, target, job, may_fail: true, before: Vec::new() });
            }
        }
        Ok(plan)
    }

    fn job(&self, model: &Serving) -> Job {
        let stop = Stop { time: Some(self.time), operations: Some(u64::from(model.tokens)), ..Stop::default() };
        Job {
            direction: Direction::Read,
            block: Block::Fixed(self.page),
            threads: model.threads.unwrap_or(1),
            size: Some(model.size),
            direct: false,
            stop,
            engine: Engine::Served,
            ..Job::default()
        }
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        let mut add = |key: &str, value: Option<String>| all.extend(value.map(|value| (key.to_owned(), value)));
        add("models", Some(self.models.iter().map(|model| model.model.as_str()).collect::<Vec<_>>().join(" ")));
        if let Some(model) = self.models.first() {
            add("tokens", Some(model.tokens.to_string()));
            add("runner", model.program.as_ref().map(|program| program.display().to_string()));
            if let Source::Running { addr, .. } = &model.source {
                add("server", Some(addr.to_string()));
            }
            add("context", Some(model.context.to_string()));
            add("threads", model.threads.map(|threads| threads.to_string()));
        }
        add("memory", self.pressure.memory.map(|memory| memory.to_string()));
        add("lock", self.pressure.lock.map(|lock| lock.to_string()));
        add("page-cluster", self.page_cluster.map(|pages| pages.to_string()));
        add("swappiness", self.swappiness.map(|percent| percent.to_string()));
        add("repeat", (self.repeat > 1).then(|| self.repeat.to_string()));
        add("tiers", Some(self.tiers.iter().map(|tier| tier.name.as_str()).collect::<Vec<_>>().join(" ")));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::decoding::Server;

    fn request(models: &[&str], tiers: &[&str], mapped: Option<bool>) -> Request {
        let model = |name: &&str| Serving {
            server: Server::Ollama,
            program: Some("ollama".into()),
            model: (*name).to_owned(),
            source: Source::File("m.gguf".into()),
            prompt: "a".to_owned(),
            tokens: 8,
            context: 64,
            threads: None,
            mapped,
            random: false,
            size: Bytes(1 << 30),
            touched: None,
            cache: None,
            room: Bytes(0),
        };
        let tier = |name: &&str| Tier::parse(name, &|name| Ok((name.to_owned(), String::new()))).unwrap();
        Request {
            models: models.iter().map(model).collect(),
            pressure: Pressure::default(),
            tiers: tiers.iter().map(tier).collect(),
            time: Nanos::from_millis(1000),
            repeat: 2,
            page_cluster: None,
            swappiness: None,
            as_published: false,
            curve: None,
            seed: 1,
            page: Bytes(4096),
        }
    }

    #[test]
    fn each_model_meets_each_tier() {
        let plan = request(&["a", "b"], &["zram", "/tmp"], None).plan().unwrap();
        let steps: Vec<_> =
            plan.steps.iter().map(|s| (s.name.as_str(), s.tier.as_deref().unwrap(), s.target)).collect();
        assert_eq!(steps[..4], [("a", "zram", 0), ("b", "zram", 1), ("a", "/tmp", 2), ("b", "/tmp", 3)]);
        assert_eq!((steps.len(), steps[4]), (8, ("a", "zram", 0)));
    }

    #[test]
    fn mapped_weights_are_not_swapped() {
        assert!(request(&["a"], &["none"], Some(true)).plan().is_ok());
        assert!(request(&["a"], &["zram"], Some(true)).plan().unwrap_err().to_string().contains("--mapped"));
    }
}
