//! Old results are welcome: text that other programs printed, whole or cut out of a larger text, becomes typed figures. What
//! is not printed is absent, what is printed is kept as it is printed; what the figures mean is left to `study`. Pure: no
//! I/O, and no text makes it panic.
#![forbid(unsafe_code)]

mod compsize;
mod dd;
mod error;
pub mod figures;
mod fio_json;
mod fio_log;
mod fio_text;
mod gnome_disks;
mod hdparm;
mod iozone;

pub use error::QuoteError;
pub use figures::{Compsize, CompsizeRow, Figures};
use serde::{Deserialize, Serialize};

/// Whose print a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `hdparm -tT`.
    Hdparm,
    /// `fio --output-format=json`.
    FioJson,
    /// What fio prints for people.
    FioText,
    /// `iozone`.
    Iozone,
    /// The last line of `dd`.
    Dd,
    /// `compsize`.
    Compsize,
    /// Figures of gnome-disks, written down by hand.
    GnomeDisks,
    /// A log of fio: `write_bw_log` and its like.
    FioLog,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 8] = [
        Format::FioJson,
        Format::FioText,
        Format::FioLog,
        Format::Hdparm,
        Format::Iozone,
        Format::Dd,
        Format::Compsize,
        Format::GnomeDisks,
    ];

    /// Its name, as in `source_format`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Hdparm => "hdparm",
            Format::FioJson => "fio-json",
            Format::FioText => "fio-text",
            Format::Iozone => "iozone",
            Format::Dd => "dd",
            Format::Compsize => "compsize",
            Format::GnomeDisks => "gnome-disks",
            Format::FioLog => "fio-log",
        }
    }

    /// In words for people.
    pub fn words(self) -> &'static str {
        match self {
            Format::Hdparm => "lines of hdparm",
            Format::FioJson => "JSON of fio",
            Format::FioText => "text of fio",
            Format::Iozone => "a table of iozone",
            Format::Dd => "a line of dd",
            Format::Compsize => "a table of compsize",
            Format::GnomeDisks => "figures of gnome-disks in TOML",
            Format::FioLog => "a log of fio",
        }
    }

    fn listed() -> String {
        Format::ALL.map(Format::words).join(", ")
    }
}

/// One set of figures in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Whose print it is.
    pub format: Format,
    /// Its first line, counted from 1.
    pub line: usize,
    /// What was measured, as far as the text says: a device, a job's name, a command. Empty when it does not.
    pub what: String,
    /// The figures.
    pub figures: Figures,
}

/// A line of a text.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    /// Counted from 1.
    number: usize,
    /// Byte at which it begins.
    start: usize,
    /// Without its end.
    text: &'a str,
}

/// The text and its lines.
struct Text<'a> {
    whole: &'a str,
    /// The file's name, empty when it has none.
    name: &'a str,
    lines: Vec<Line<'a>>,
}

impl<'a> Text<'a> {
    fn new(whole: &'a str, name: &'a str) -> Self {
        let mut start = 0;
        let lines = whole.split_inclusive('\n').zip(1..).map(|(text, number)| {
            let line = Line { number, start, text: text.trim_end() };
            start += text.len();
            line
        });
        Text { whole, name, lines: lines.collect() }
    }
}

type Reader = fn(&Text<'_>) -> Result<Vec<Block>, QuoteError>;

const READERS: [Reader; 8] = [
    hdparm::read,
    fio_json::read,
    fio_text::read,
    fio_log::read,
    iozone::read,
    dd::read,
    compsize::read,
    gnome_disks::read,
];

/// Every block of figures in a text, in the order of the text. Lines that are nobody's are passed over.
///
/// # Errors
/// [`QuoteError::Nothing`] when there is none, and [`QuoteError::Broken`] for the first that begins like a known one and
/// does not go on like it: nothing is taken from half a text.
pub fn read(text: &str) -> Result<Vec<Block>, QuoteError> {
    read_named(text, "")
}

/// The same of a file: what a log of fio holds is told by its name alone.
///
/// # Errors
/// Those of [`read`].
pub fn read_named(text: &str, name: &str) -> Result<Vec<Block>, QuoteError> {
    // What an editor may put before the first line.
    let text = Text::new(text.strip_prefix('\u{feff}').unwrap_or(text), name);
    let mut blocks = Vec::new();
    let mut broken: Option<QuoteError> = None;
    for reader in READERS {
        match reader(&text) {
            Ok(found) => blocks.extend(found),
            Err(error) if broken.as_ref().is_none_or(|first| error.line() < first.line()) => broken = Some(error),
            Err(_) => {}
        }
    }
    if let Some(error) = broken {
        return Err(error);
    }
    if blocks.is_empty() {
        return Err(QuoteError::Nothing);
    }
    blocks.sort_by_key(|block| block.line);
    Ok(blocks)
}
