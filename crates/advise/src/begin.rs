//! What somebody who has typed nothing yet may want to ask here: commands that fit this machine, the most useful first. Nothing of
//! it changes anything.

use basics::Bytes;
use basics::units::GIB;
use machine::{Machine, TierKind};

/// With so much memory a model or a desktop is soon in want of swap.
const SMALL: Bytes = Bytes(8 * GIB);

/// What is here beside the machine itself.
#[derive(Debug, Clone, Default)]
pub struct Around {
    /// Runs that were measured here.
    pub runs: usize,
    /// What `advise` recommends, whatever the machine is for.
    pub recommended: usize,
    /// Programs of these names can be started: `ollama`, `llama-server`, `redis-server`, `chromium`.
    pub programs: Vec<String>,
}

/// A command, and what it tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// As it is typed.
    pub command: String,
    /// Why here, a sentence without its point.
    pub why: String,
}

/// At most `most` of them.
pub fn begin(machine: &Machine, around: &Around, most: usize) -> Vec<Suggestion> {
    let has = |program: &str| around.programs.iter().any(|has| has == program);
    let kinds = |kind: TierKind| machine.tiers.iter().filter(move |tier| tier.kind == kind);
    let small = machine.ram.get().is_some_and(|ram| *ram <= SMALL);
    let mut all = Vec::new();
    let mut say = |command: &str, why: String| all.push(Suggestion { command: command.to_owned(), why });
    match around.runs {
        0 => say(
            "tiermark check --quick",
            "nothing was measured here yet; this takes 15 seconds and changes nothing".to_owned(),
        ),
        1 => say("tiermark show last", "what was measured here".to_owned()),
        runs => {
            say("tiermark runs", format!("{runs} runs were measured here; `tiermark compare A B` says what differs"))
        }
    }
    match around.recommended {
        0 => {}
        1 => say(
            "tiermark advise",
            "one setting of this machine should be another: which, why, how it is undone".to_owned(),
        ),
        many => say(
            "tiermark advise",
            format!("{many} settings of this machine should be others: which, why, how they are undone"),
        ),
    }
    if has("ollama") || has("llama-server") {
        say(
            "tiermark predict llm --model gemma2:2b",
            "a language model's tokens a second on each disk, before one is bought".to_owned(),
        );
    }
    if has("redis-server") {
        say("tiermark advise --for redis-cache", "how Redis should be set up here, and why".to_owned());
    }
    if machine.swaps.iter().any(|swap| swap.used.0 > 0) {
        say(
            "sudo tiermark pager --help",
            "this machine swaps: the pager keeps a program's next pages ahead of it".to_owned(),
        );
    }
    if let Some(card) = kinds(TierKind::Sd).next() {
        say("tiermark methods sd-class", format!("{} is a card: what its label promises can be tried", card.name));
    }
    if small {
        say("sudo tiermark load swap --ladder --quick", "what each kind of swap would be worth here".to_owned());
    }
    if small && has("chromium") {
        say("tiermark check --for desktop", "whether a desktop would feel at home".to_owned());
    }
    say("tiermark tiers", "the way to each disk, and what it lets through".to_owned());
    say("tiermark watch", "what the machine does now; q ends it".to_owned());
    all.truncate(most);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(machine: &Machine, around: &Around) -> Vec<String> {
        begin(machine, around, 3).into_iter().map(|said| said.command).collect()
    }

    #[test]
    fn what_fits_comes_first() {
        let mut machine = Machine::default();
        let nothing = commands(&machine, &Around::default());
        assert_eq!(nothing, ["tiermark check --quick", "tiermark tiers", "tiermark watch"]);

        machine.ram = basics::Known::Is(Bytes(4 * GIB));
        let board = Around { runs: 2, recommended: 3, programs: vec!["redis-server".to_owned()] };
        assert_eq!(
            commands(&machine, &board),
            ["tiermark runs", "tiermark advise", "tiermark advise --for redis-cache"]
        );
    }
}
