//! A terminal that is drawn on as a whole: taken over, asked for keys, and given back on every way out, a panic included.

use anyhow::{Context as _, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use report::live::Live;
use std::io::IsTerminal;
use std::time::Duration;

/// The terminal, taken over until this is dropped.
pub struct Screen(DefaultTerminal);

impl Screen {
    /// None where standard output is no terminal.
    pub fn take() -> Result<Option<Screen>> {
        if !std::io::stdout().is_terminal() {
            return Ok(None);
        }
        // Its hook gives the terminal back before a panic is told.
        let terminal =
            ratatui::try_init().context("the terminal cannot be drawn on; --json or a pipe has lines instead")?;
        Ok(Some(Screen(terminal)))
    }

    /// Draws what is known now.
    pub fn draw(&mut self, live: &Live) -> Result<()> {
        self.0.draw(|frame| live.draw(frame, &clock())).context("the terminal cannot be drawn on")?;
        Ok(())
    }

    /// Waits so long for a key; whether it was one that ends, or the terminal is gone. What changes the terminal's size is
    /// drawn at once.
    pub fn ends(&mut self, live: &Live, patience: Duration) -> Result<bool> {
        if !event::poll(patience).unwrap_or(false) {
            return Ok(false);
        }
        match event::read() {
            Ok(Event::Key(key)) if key.kind == KeyEventKind::Press => {
                let interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                Ok(interrupt || matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc))
            }
            Ok(Event::Resize(..)) => self.draw(live).map(|()| false),
            Ok(_) => Ok(false),
            Err(_) => Ok(true),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Now, as it is shown beside an event.
pub fn clock() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}
