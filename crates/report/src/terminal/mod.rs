//! What people read in a terminal. Every function returns the whole text; nothing is printed here. Colour only repeats
//! what the words say, so that a pipe, a file or `NO_COLOR` loses nothing.

mod advise;
mod begin;
mod check;
mod compare;
mod desktop;
mod desktop_check;
mod fitted;
mod lay;
mod learned;
mod load;
mod memory;
mod moving;
mod plan;
mod predict;
mod profiles;
mod proof;
mod redis;
mod redis_loss;
mod run;
mod runs;
mod settings;
mod tiers;
mod tokens;
mod vectors;

pub use advise::{advice, rules};
pub use begin::begin;
pub use check::check;
pub use compare::compare;
pub use desktop_check::desktop_check;
pub use fitted::fitted;
pub use learned::learned;
pub use moving::{move_planned, moved};
pub use plan::plan;
pub use predict::predictions;
pub use profiles::profiles;
pub use proof::{proof, proofs};
pub use run::run;
pub use runs::runs;
pub use settings::{applied, plan_of_settings, reverted, status};
pub use tiers::tiers;

pub(crate) use check::{bus, findings, model, purpose, purposes};
pub(crate) use run::engine_words;
pub(crate) use tiers::sets_the_ceiling;

use jiff::tz::TimeZone;

/// How a text is set.
#[derive(Debug, Clone)]
pub struct Style {
    /// Columns to stay within; from 80 on the tables fit, narrower ones only wrap their sentences.
    pub width: usize,
    /// ANSI colours.
    pub color: bool,
    /// Bars, arrows and dashes of Unicode, else of ASCII. Units (µs, °C) are Unicode in both.
    pub unicode: bool,
    /// In which points in time are shown.
    pub zone: TimeZone,
}

impl Default for Style {
    /// 100 columns, no colour, Unicode, UTC.
    fn default() -> Self {
        Style { width: 100, color: false, unicode: true, zone: TimeZone::UTC }
    }
}
