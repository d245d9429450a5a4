//! What a runner is asked to continue, and what came of it: its own account and the instant of every token as this side
//! saw it. What the figures mean is for `study`.

use basics::Nanos;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// A text to be continued, always at temperature 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// As it is given to the model, without a template around it.
    pub text: String,
    /// Tokens to generate. With the prompt's they should be within the context, or a part of it is thrown away and computed again.
    pub tokens: NonZeroU32,
    /// Of the sampler; at temperature 0 nothing should depend on it.
    pub seed: u32,
    /// True for random weights: a token that was said becomes less likely. Such a model may say one token for ever, and Ollama ends an
    /// answer in which more than 30 equal ones follow each other.
    pub varied: bool,
}

/// Why no more tokens came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It made as many as it was asked for.
    Asked,
    /// The model said that its text ends here. Ollama cannot be told to go on.
    OwnEnd,
    /// Ollama ended it, without an account, because more than 30 equal tokens followed each other.
    Repeats,
    /// The runner ended its answer properly, but without an account and without a reason that can be seen from here. Ollama does so
    /// as well when more than 30 tokens without any text follow each other.
    NoAccount,
}

/// What the runner itself says about a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// From the request to the end; only Ollama says it.
    pub total: Option<Nanos>,
    /// Until the model was there; some ms where it was already. Only Ollama says it.
    pub load: Option<Nanos>,
    /// Tokens of the prompt. Ollama counts those as well that it still had from the request before.
    pub prompt_tokens: u64,
    /// Computing the prompt, up to and with the decoding that gives the first token.
    pub prompt_time: Nanos,
    /// Tokens that it generated, with the one that says that the text ends.
    pub tokens: u64,
    /// From the first token to the end, in which one token fewer than `tokens` was decoded.
    pub generate_time: Nanos,
}

/// A prompt continued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// The text, at most 1 MiB of it.
    pub text: String,
    /// From the request until its answer had ended, as seen from here.
    pub total: Nanos,
    /// When each token came, since the request, as seen from here. Tokens that are no whole character by themselves come
    /// together with the one that completes it, and tokens without text do not come at all: there may be fewer than `account` says.
    pub instants: Vec<Nanos>,
    /// The runner's own figures; none when it ended without.
    pub account: Option<Account>,
    /// Why no more came.
    pub ended: Ended,
}

impl Generation {
    /// Tokens that were generated, by the runner's account, or else that came here.
    pub fn tokens(&self) -> u64 {
        self.account.map_or(self.instants.len() as u64, |account| account.tokens)
    }

    /// Tokens a second after the first, by the runner's account or else by what came here; none below two tokens. Ollama itself
    /// prints `tokens / generate_time`, which counts a token too many.
    pub fn rate(&self) -> Option<f64> {
        let (tokens, time) = match self.account {
            Some(account) => (account.tokens, account.generate_time),
            None => {
                let (first, last) = (self.instants.first()?, self.instants.last()?);
                (self.instants.len() as u64, Nanos(last.0 - first.0))
            }
        };
        (tokens > 1 && time.0 > 0).then(|| (tokens - 1) as f64 * 1e9 / time.0 as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_counts_the_tokens_that_the_time_holds() {
        let account = Account {
            total: None,
            load: None,
            prompt_tokens: 3,
            prompt_time: Nanos(1),
            tokens: 11,
            generate_time: Nanos(2_000_000_000),
        };
        let instants = vec![Nanos(1_000_000_000), Nanos(1_500_000_000), Nanos(2_000_000_000)];
        let whole =
            Generation { text: String::new(), total: Nanos(9), instants, account: Some(account), ended: Ended::Asked };
        assert_eq!((whole.tokens(), whole.rate()), (11, Some(5.0)));
        let early = Generation { account: None, ended: Ended::Repeats, ..whole };
        assert_eq!((early.tokens(), early.rate()), (3, Some(2.0)));
        assert_eq!(Generation { instants: vec![Nanos(1)], ..early }.rate(), None);
    }
}
