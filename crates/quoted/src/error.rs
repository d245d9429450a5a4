//! What is wrong with a text: one sentence that names the line and the way out.

use crate::Format;
use thiserror::Error;

/// Why a text gives no figures.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum QuoteError {
    /// No program's results are in it.
    #[error(
        "no figures were found in this text: it takes a file that `tiermark export` wrote, or text that holds {}, with the \
         lines as they were printed",
        Format::listed()
    )]
    Nothing,
    /// It begins like a program's results and does not go on like them.
    #[error("line {line} looks like {} but {why}", .format.words())]
    Broken {
        /// Counted from 1.
        line: usize,
        /// What it looks like.
        format: Format,
        /// What is wrong and the way out.
        why: String,
    },
}

impl QuoteError {
    /// The line that it is about, 0 for the whole text.
    pub fn line(&self) -> usize {
        match self {
            QuoteError::Nothing => 0,
            QuoteError::Broken { line, .. } => *line,
        }
    }
}

/// Bytes of a text that a sentence repeats at most: what is wrong shows in fewer, and a damaged line may be of any length.
const MOST_SAID: usize = 60;

/// The text in quotation marks, with what a terminal would obey escaped, and cut where it is long.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown = String::from("\"");
    for c in text.chars() {
        let next: String = c.escape_debug().collect();
        if shown.len() + next.len() > MOST_SAID {
            return shown + "…\"";
        }
        shown += &next;
    }
    shown + "\""
}

/// What a parser said, which may repeat the text: in one line, visible, and cut where it is long.
pub(crate) fn in_a_line(said: &str) -> String {
    let line = said.lines().collect::<Vec<_>>().join(" ");
    let visible = line.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] });
    visible.take(4 * MOST_SAID).collect()
}

/// A place in a text, for saying what is wrong there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    pub format: Format,
    pub line: usize,
}

impl At {
    pub fn wrong(self, why: impl Into<String>) -> QuoteError {
        QuoteError::Broken { line: self.line, format: self.format, why: why.into() }
    }

    /// Something that belongs there is missing.
    pub fn cut(self, what: &str) -> QuoteError {
        self.wrong(format!("{what} is missing: it was cut off; copy the whole of it"))
    }

    /// A number as the C locale prints it: digits, perhaps a point and more digits.
    pub fn number(self, text: &str, what: &str) -> Result<f64, QuoteError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(self.cut(what));
        }
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let plain = match text.split_once('.') {
            Some((whole, rest)) => digits(whole) && digits(rest),
            None => digits(text),
        };
        match text.parse::<f64>() {
            Ok(value) if plain && value < MOST => Ok(value),
            _ if text.contains(',') && text.split([',', '.']).all(digits) => Err(self.wrong(format!(
                "{what} is {}, with a comma: print it again with LC_ALL=C, or write numbers with a decimal point and \
                 without separators",
                excerpt(text)
            ))),
            _ => {
                Err(self
                    .wrong(format!("{what} is {}, which is no number; copy the line as it was printed", excerpt(text))))
            }
        }
    }

    /// A whole number.
    pub fn count(self, text: &str, what: &str) -> Result<u64, QuoteError> {
        let value = self.number(text, what)?;
        if value.fract() != 0.0 {
            return Err(self.wrong(format!(
                "{what} is {}, which is no whole number; copy the line as it was printed",
                excerpt(text)
            )));
        }
        Ok(value as u64)
    }

    /// A number with a unit at its end; `factor` knows the units.
    pub fn with_unit(self, text: &str, what: &str, factor: impl Fn(&str) -> Option<f64>) -> Result<f64, QuoteError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let value = self.number(number, what)?;
        match factor(unit.trim()) {
            Some(factor) => Ok(value * factor),
            None if unit.trim().is_empty() => Err(self.cut(&format!("the unit of {what}"))),
            None => {
                Err(self.wrong(format!("{what} has the unit {}, which is none of its units", excerpt(unit.trim()))))
            }
        }
    }
}

/// No figure of a storage device is larger, in any unit; above it a double does not hold every whole number.
const MOST: f64 = 9e15;

/// Bytes a second of the units in which rates are printed, `kilo` (1000 or 1024) standing for a prefix without `i`.
pub(crate) fn rate(unit: &str, kilo: f64) -> Option<f64> {
    let unit = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("/sec"))?;
    let binary = unit.ends_with("iB");
    let prefix = unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B')).or_else(|| unit.strip_suffix("bytes"))?;
    let power = match prefix.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(if binary { 1024f64 } else { kilo }.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: At = At { format: Format::Dd, line: 7 };

    #[test]
    fn a_number_is_one_of_the_c_locale() {
        assert_eq!(HERE.number(" 410.22", "the rate"), Ok(410.22));
        assert_eq!(HERE.number("0", "the rate"), Ok(0.0));
        for (text, says) in [
            ("410,22", "with a comma"),
            ("1.234,5", "with a comma"),
            ("", "is missing"),
            ("-1", "no number"),
            ("1e9", "no number"),
            ("inf", "no number"),
            (".5", "no number"),
            ("5.", "no number"),
            ("10000000000000000", "no number"),
            ("٣", "no number"),
        ] {
            let told = HERE.number(text, "the rate").unwrap_err().to_string();
            assert!(told.contains(says) && told.starts_with("line 7 looks like"), "{text}: {told}");
        }
        assert!(HERE.count("1.5", "bytes").is_err());
    }

    /// Bug: a line that a mail had made of thousands of characters came back whole in the sentence about it.
    #[test]
    fn a_sentence_repeats_no_more_than_shows_what_is_wrong() {
        let told = HERE.number(&"\0".repeat(5000), "the rate").unwrap_err().to_string();
        assert!(told.len() < 600 && told.contains("\\0…\", which is no number"), "{told}");
        assert_eq!(excerpt("µs"), "\"µs\"");
    }

    #[test]
    fn a_prefix_without_i_is_what_its_program_means() {
        assert_eq!(rate("MiB/s", 1000.0), Some(1_048_576.0));
        assert_eq!(rate("MB/s", 1000.0), Some(1e6));
        assert_eq!(rate("KB/s", 1024.0), Some(1024.0));
        assert_eq!(rate("bytes/sec", 1000.0), Some(1.0));
        assert_eq!(rate("MB", 1000.0), None);
        assert_eq!(rate("pears/s", 1000.0), None);
    }
}
