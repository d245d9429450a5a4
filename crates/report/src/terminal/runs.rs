//! The list of runs.

use super::Style;
use super::lay::{Align, Grid, Tone};
use crate::words;
use record::{RunHead, State};

/// One line a run, in the order given.
pub fn runs(heads: &[RunHead], style: &Style) -> String {
    if heads.is_empty() {
        return style.paragraph("", "No run is recorded yet. `tiermark check` makes the first.", Tone::Plain);
    }
    let mut grid = Grid::new(
        style,
        &[
            ("run", Align::Left),
            ("started", Align::Left),
            ("took", Align::Right),
            ("state", Align::Left),
            ("method", Align::Left),
            ("steps", Align::Right),
            ("target", Align::Left),
        ],
    )
    .indent(0);
    for head in heads {
        let took = head.ended.map_or_else(|| style.dash().to_owned(), |ended| words::duration(ended - head.started));
        let state = match &head.state {
            State::Done => (words::state(&head.state).to_owned(), Tone::Plain),
            State::Running => (words::state(&head.state).to_owned(), Tone::Good),
            State::Interrupted | State::NotRun(_) => (words::state(&head.state).to_owned(), Tone::Fair),
            State::Failed(_) => (words::state(&head.state).to_owned(), Tone::Bad),
        };
        grid.row(vec![
            (head.id.clone(), Tone::Strong),
            (words::minute(head.started, &style.zone), Tone::Plain),
            (took, Tone::Plain),
            state,
            (head.method.clone(), Tone::Plain),
            (head.steps.to_string(), Tone::Plain),
            (head.target.clone(), Tone::Plain),
        ]);
    }
    grid.fit(&[(6, 16)]);
    let mut out = grid.render();
    for head in heads {
        if let State::Failed(why) = &head.state {
            out.push_str(&style.paragraph(&format!("{}  ", head.id), &format!("failed: {why}"), Tone::Faint));
        }
    }
    out
}
