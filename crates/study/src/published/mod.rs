//! The figures of a method under the names that its readers know, computed from a run's steps as the published procedure
//! computes them; one file a method. A figure whose step did not come to its end is absent.

mod fsync;
mod gnome_disks;
mod hdparm;
mod iozone;
mod ping;
mod point;
mod review;
mod sd_class;
mod snia;
mod zeros;

pub use sd_class::classes;

use crate::model::RunView;
use serde::Serialize;

/// What a method's readers look for; each serialises to an object with units in the names.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Figures {
    /// `hdparm -t` and `-T`.
    Hdparm(hdparm::Hdparm),
    /// Durable writes.
    Fsync(fsync::Fsync),
    /// Single requests.
    Ping(ping::Ping),
    /// The sweeps of an SSD review.
    Review(review::Review),
    /// A steady state.
    Snia(snia::Snia),
    /// Speed classes of SD cards.
    SdClass(sd_class::SdClass),
    /// iozone's matrix.
    Iozone(iozone::Iozone),
    /// The three figures of GNOME Disks.
    GnomeDisks(gnome_disks::GnomeDisks),
    /// dd of zeros.
    Zeros(zeros::Zeros),
}

/// Steps, by index, that only prepare others: what they show is on its way to be what is measured.
pub(crate) fn preparing(run: &RunView<'_>) -> Vec<u32> {
    if run.method == "ssd-review" { review::preparing(run) } else { Vec::new() }
}

/// The figures of a run's method; nothing for a method whose steps say it all.
pub fn figures(run: &RunView<'_>) -> Option<Figures> {
    // What another program printed stands as it was printed.
    if run.quoted.is_some() {
        return None;
    }
    match run.method {
        "hdparm" => Some(Figures::Hdparm(hdparm::figures(run))),
        "fsync" => Some(Figures::Fsync(fsync::figures(run))),
        "ping" => ping::figures(run).map(Figures::Ping),
        "ssd-review" => Some(Figures::Review(review::figures(run))),
        "snia" => snia::figures(run).map(Figures::Snia),
        "sd-class" => sd_class::figures(run).map(Figures::SdClass),
        "iozone" => Some(Figures::Iozone(iozone::figures(run))),
        "gnome-disks" => Some(Figures::GnomeDisks(gnome_disks::figures(run))),
        "zeros" => Some(Figures::Zeros(zeros::figures(run))),
        _ => None,
    }
}

/// As outputs show them: the readers' own lines.
impl Figures {
    /// Lines of text, as the tool of that name prints them.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Figures::Hdparm(figures) => figures.lines(),
            Figures::Fsync(figures) => figures.lines(),
            Figures::Ping(figures) => figures.lines(),
            Figures::Review(figures) => figures.lines(),
            Figures::Snia(figures) => figures.lines(),
            Figures::SdClass(figures) => figures.lines(),
            Figures::Iozone(figures) => figures.lines(),
            Figures::GnomeDisks(figures) => figures.lines(),
            Figures::Zeros(figures) => figures.lines(),
        }
    }
}
