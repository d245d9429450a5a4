//! What each importer takes, damaged at random as texts are damaged on their way through mails, forums and editors: cut, lines
//! spliced, a foreign locale's commas, absurd numbers, bytes that are no text. Every outcome is figures or one clear sentence,
//! soon. `./test --full` tries for a minute an importer; a case is made again from its number, which a failure tells.
#![forbid(unsafe_code)]

use quoted::{Format, QuoteError, read_named};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const FIO: &str = include_str!("fixtures/fio-3.33.txt");
const HDPARM: &str = include_str!("fixtures/hdparm.txt");
const IOZONE: &str = include_str!("fixtures/iozone.txt");
const DD: &str = include_str!("fixtures/dd.txt");
const COMPSIZE: &str = include_str!("fixtures/compsize.txt");
const GNOME_DISKS: &str = "name = \"card\"\ntitle = \"A card\"\nbus = \"SD\"\nread_MBps = 34.8\nwrite_MBps = 17.2\naccess_ms = \
                           0.46\nstable = false\ndrops_below_MBps = 10.5\ndrops_where = [\"start\", \"end\"]\n";
const FIO_LOG: &str = "500, 1306464, 0, 0, 0\n500, 558464, 1, 0, 0\n1003, 1180079, 0, 0, 0\n1500, 12, 2, 4096, 0\n";

/// No text of these lengths takes a reader so long, in a debug build on a busy machine.
const SOON: Duration = Duration::from_secs(20);
/// What one importer is tried with in `./test` and in `./test --full`.
const FEW: u64 = 400;
const LONG: Duration = Duration::from_secs(60);

/// What repeating a line adds at most.
const LONGEST: usize = 1 << 20;
/// Instead of a number.
const ABSURD: [&str; 14] = [
    "",
    "0",
    "-1",
    "1e999",
    "NaN",
    "inf",
    "18446744073709551616",
    "9007199254740993",
    "0.00000000000000000000001",
    "99999999999999999999999999999999999999999",
    "1.2.3",
    "1 234",
    "\u{663}",
    "0x10",
];
/// Instead of a word, or between two.
const ODD: [&str; 16] =
    ["\0", "\r", "\t", "\u{a0}", "\u{feff}", "\u{202e}", "{", "}", "[[", "\"", "=", ":", "µ", "/s", "KiB", "\u{fffd}"];

/// Numbers by splitmix64, the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
    fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len())]
    }
}

/// A text of that format, and the name of the file that it came in.
fn fixture(format: Format) -> (&'static str, &'static str) {
    match format {
        Format::FioJson => (&FIO[FIO.find('{').unwrap()..=FIO.rfind('}').unwrap()], ""),
        Format::FioText => (FIO, "fio.txt"),
        Format::FioLog => (FIO_LOG, "swap_run_bw.1.log"),
        Format::Hdparm => (HDPARM, ""),
        Format::Iozone => (IOZONE, ""),
        Format::Dd => (DD, ""),
        Format::Compsize => (COMPSIZE, ""),
        Format::GnomeDisks => (GNOME_DISKS, ""),
    }
}

/// The text with one thing wrong with it.
fn damaged(text: &str, random: &mut Random) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = random.below(lines.len());
    match random.below(9) {
        0 => String::from_utf8_lossy(&text.as_bytes()[..random.below(text.len() + 1)]).into_owned(),
        1 => {
            let other = random.below(lines.len());
            lines.swap(at, other);
            lines.concat()
        }
        2 => {
            let (other, _) = fixture(Format::ALL[random.below(Format::ALL.len())]);
            let stolen: Vec<&str> = other.split_inclusive('\n').collect();
            lines.insert(at, stolen[random.below(stolen.len())]);
            lines.concat()
        }
        3 => {
            let line = lines[at];
            let times = (1 + random.below(300)).min(1 + LONGEST / line.len());
            lines.splice(at..at, std::iter::repeat_n(line, times));
            lines.concat()
        }
        4 => {
            // All numbers, or from a place on.
            let from = text.char_indices().map(|(at, _)| at).nth(random.below(text.len())).unwrap_or(0);
            format!("{}{}", &text[..from], text[from..].replace('.', ","))
        }
        5 | 6 => {
            let numbers: Vec<usize> = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
            let Some(start) = numbers.get(random.below(numbers.len())).copied() else { return text.to_owned() };
            let rest = &text[start..];
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            format!("{}{}{}", &text[..start], random.of(&ABSURD), &rest[end..])
        }
        7 => {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=random.below(8) {
                let at = random.below(bytes.len());
                let byte = random.next() as u8;
                bytes.splice(at..(at + random.below(4)).min(bytes.len()), [byte]);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => {
            let words: Vec<(usize, &str)> = text.match_indices(' ').collect();
            let at = words.get(random.below(words.len())).map_or(0, |(at, _)| *at);
            let odd = random.of(&ODD).repeat(1 + random.below(3) * random.below(2000));
            format!("{}{odd}{}", &text[..at], &text[at..])
        }
    }
}

/// The text of a case, which follows from its number.
fn case(format: Format, number: u64) -> String {
    let mut random = Random(number << 8 | format as u64);
    let mut text = fixture(format).0.to_owned();
    for _ in 0..=random.below(4) {
        text = damaged(&text, &mut random);
    }
    text
}

/// Figures that can be figures, or a sentence.
fn holds(text: &str, name: &str) -> Result<(), String> {
    match read_named(text, name) {
        Ok(blocks) if blocks.is_empty() => Err("no figures and no word about that".to_owned()),
        Ok(blocks) => {
            let mut all = blocks.iter().flat_map(|block| block.figures.list());
            let wrong = all.find(|figure| !(figure.value.is_finite() && figure.value >= 0.0));
            wrong.map_or(Ok(()), |figure| Err(format!("{} is {}", figure.name, figure.value)))
        }
        Err(error) => {
            let said = error.to_string();
            let placed = matches!(error, QuoteError::Nothing) || said.starts_with(&format!("line {} ", error.line()));
            let visible = !said.contains(|c: char| c.is_control());
            match said.len() {
                20..=600 if placed && visible => Ok(()),
                _ => Err(format!("no sentence for people: {said:?}")),
            }
        }
    }
}

/// Tries one importer; a text that it does not come back from is told by its case.
fn fuzz(format: Format) {
    let (text, name) = fixture(format);
    assert!(read_named(text, name).unwrap().iter().any(|block| block.format == format), "the text itself is read");
    let full = std::env::var_os("TIERMARK_TEST_FULL").is_some();
    let until = Instant::now() + LONG;
    let (began, under_way) = channel();
    let worker = std::thread::spawn(move || {
        let mut number = 0;
        while if full { Instant::now() < until } else { number < FEW } {
            began.send(number).unwrap();
            let text = case(format, number);
            let outcome = std::panic::catch_unwind(|| holds(&text, name)).unwrap_or(Err("it panicked".to_owned()));
            if let Err(why) = outcome {
                panic!("case {number} of {format:?}: {why}: {text:?}");
            }
            number += 1;
        }
        number
    });
    let mut last = 0;
    loop {
        match under_way.recv_timeout(SOON) {
            Ok(number) => last = number,
            Err(RecvTimeoutError::Timeout) => panic!("case {last} of {format:?} hangs: {:?}", case(format, last)),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match worker.join() {
        Ok(tried) => println!("{format:?}: {tried} damaged texts"),
        Err(told) => std::panic::resume_unwind(told),
    }
}

#[test]
fn fio_json() {
    fuzz(Format::FioJson);
}

#[test]
fn fio_text() {
    fuzz(Format::FioText);
}

#[test]
fn fio_log() {
    fuzz(Format::FioLog);
}

#[test]
fn hdparm() {
    fuzz(Format::Hdparm);
}

#[test]
fn iozone() {
    fuzz(Format::Iozone);
}

#[test]
fn dd() {
    fuzz(Format::Dd);
}

#[test]
fn compsize() {
    fuzz(Format::Compsize);
}

#[test]
fn gnome_disks() {
    fuzz(Format::GnomeDisks);
}
