//! A terminal that is drawn on as a whole: taken over, asked for keys, and given back on every way out, a panic included.

use anyhow::{Context as _, Result};
use ratatui::DefaultTerminal;
use report::live::Live;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io::IsTerminal;
use std::time::Duration;

/// As a terminal sends them that hands over each key.
const CTRL_C: u8 = 3;
const ESCAPE: u8 = 27;

/// The terminal, taken over until this is dropped.
pub struct Screen(DefaultTerminal);

impl Screen {
    /// None where there is no terminal to draw on and to hear keys from.
    pub fn take() -> Result<Option<Screen>> {
        if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
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

    /// Waits so long for a key; whether it was one that ends, or the terminal is gone.
    pub fn ends(&mut self, patience: Duration) -> bool {
        // Read here, since crossterm's own reader turns round for ever once a terminal is gone.
        let keys = std::io::stdin();
        let mut asked = [PollFd::new(&keys, PollFlags::IN)];
        let patience = Timespec::try_from(patience).ok();
        match rustix::event::poll(&mut asked, patience.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return false,
            Ok(_) if asked[0].revents().contains(PollFlags::IN) => {}
            Ok(_) | Err(_) => return true,
        }
        let mut typed = [0; 64];
        match rustix::io::read(&keys, &mut typed) {
            Ok(0) => true,
            // An arrow or a function key begins with Escape, too.
            Ok(1) => matches!(typed[0], b'q' | b'Q' | CTRL_C | ESCAPE),
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => false,
            Err(_) => true,
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
