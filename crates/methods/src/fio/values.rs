//! Values as fio reads them: its own units, which are not the house's, and lists with a part for each direction.

use super::parse::Entry;
use crate::MethodError;
use basics::job::Direction;
use basics::{Bytes, Nanos};

impl Entry {
    /// The value as text.
    pub fn text(&self) -> Result<&str, MethodError> {
        if let Some(name) = &self.unset {
            return Err(
                self.refused(format!("{}: the variable {name} is not set; set it in the environment", self.key))
            );
        }
        match self.value.as_deref() {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(self.refused(format!("{} needs a value", self.key))),
        }
    }

    /// Yes or no; a key alone says yes.
    pub fn flag(&self) -> Result<bool, MethodError> {
        match self.value {
            None => Ok(true),
            Some(_) => Ok(self.count()? != 0),
        }
    }

    /// A plain number.
    pub fn count(&self) -> Result<u64, MethodError> {
        self.whole(self.text()?)
    }

    /// A number that fits the job's field.
    pub fn small<T: TryFrom<u64>>(&self) -> Result<T, MethodError> {
        T::try_from(self.count()?).map_err(|_| self.bad("it is too large"))
    }

    fn whole(&self, text: &str) -> Result<u64, MethodError> {
        // Numbers take fio's suffixes wherever they stand: number_ios=10k.
        bytes(text, 1024).ok_or_else(|| self.bad("give a whole number"))
    }

    /// A size in the unit that `kb_base` gives to `k`.
    pub fn bytes(&self, kb_base: u64) -> Result<Bytes, MethodError> {
        self.size(self.text()?, kb_base)
    }

    /// A part of the value as a size.
    pub fn size(&self, text: &str, kb_base: u64) -> Result<Bytes, MethodError> {
        if text.ends_with('%') {
            return Err(self.bad("a share of a file or device is not supported; give the size itself"));
        }
        bytes(text, kb_base).map(Bytes).ok_or_else(|| self.bad("give a size such as 4k, 64m or 1g"))
    }

    /// A duration; without a unit it is so many of `unit`.
    pub fn time(&self, unit: Nanos) -> Result<Nanos, MethodError> {
        time(self.text()?, unit).ok_or_else(|| self.bad("give a duration such as 500ms, 30s, 5m or 1h"))
    }

    /// What a list such as `4k,8k` says for a direction: the first part is of reads, the second of writes, and a part
    /// that is missing is as the one before it. `usual` is what an empty first part is.
    pub fn of_direction<'t>(
        &self,
        text: &'t str,
        direction: Direction,
        usual: &'t str,
    ) -> Result<&'t str, MethodError> {
        let mut parts = text.split(',').map(str::trim);
        let or = |part: Option<&'t str>, otherwise| part.filter(|part| !part.is_empty()).unwrap_or(otherwise);
        let read = or(parts.next(), usual);
        // `4k,` says nothing of writes: they keep what is usual.
        let write = match parts.next() {
            None => read,
            some => or(some, usual),
        };
        match (direction.reads(), direction.writes()) {
            (true, true) if read != write => {
                Err(self.bad("reads and writes of one job are of one kind; make a job of each"))
            }
            (false, true) => Ok(write),
            _ => Ok(read),
        }
    }

    /// That the value makes no sense, and what would.
    pub fn bad(&self, why: &str) -> MethodError {
        self.refused(format!("{}: {why}", self.shown()))
    }
}

/// Digits, or hexadecimal ones behind `0x`, and what follows them.
fn number(text: &str) -> Option<(u64, &str)> {
    if let Some(digits) = text.strip_prefix("0x") {
        return Some((u64::from_str_radix(digits, 16).ok()?, ""));
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

/// A size. With a `kb_base` of 1024, fio's default, `k`, `kb` and `kB` are 1024 and `ki`, `kiB` are 1000; with 1000 they
/// are what they say (fio's manual, *Parameter types*).
fn bytes(text: &str, kb_base: u64) -> Option<u64> {
    let (value, unit) = number(text)?;
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix('b').unwrap_or(&unit);
    let (letter, base) = match unit.strip_suffix('i') {
        Some(letter) => (letter, if kb_base == 1000 { 1024 } else { 1000 }),
        None => (unit, kb_base),
    };
    let power = match letter {
        "" if unit.is_empty() => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    // Half of the range stays free, so that sums and products of two sizes can be told from too much.
    u64::checked_pow(base, power)?.checked_mul(value).filter(|value| *value < 1 << 63)
}

fn time(text: &str, usual: Nanos) -> Option<Nanos> {
    let (value, unit) = number(text)?;
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" => usual.0,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    value.checked_mul(unit).filter(|value| *value < 1 << 62).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen with fio 3.33: `--bs=4kib` moves 4000 B at a time.
    #[test]
    fn sizes_are_fios() {
        for (text, value) in
            [("512", 512), ("4k", 4096), ("4KB", 4096), ("4kib", 4000), ("0x10", 16), ("2 M", 2 << 20), ("1b", 1)]
        {
            assert_eq!(bytes(text, 1024), Some(value), "{text}");
        }
        assert_eq!((bytes("4k", 1000), bytes("4ki", 1000)), (Some(4000), Some(4096)));
        for text in ["", "k", "4x", "i", "4i", "-1", "1.5g", "(2*4k)", "99999999999999999999", "99999999p"] {
            assert_eq!(bytes(text, 1024), None, "{text}");
        }
    }

    #[test]
    fn times_are_fios() {
        let second = Nanos::from_millis(1000);
        for (text, ms) in [("5", 5000), ("5s", 5000), ("200ms", 200), ("2m", 120_000), ("3000us", 3), ("1h", 3_600_000)]
        {
            assert_eq!(time(text, second), Some(Nanos::from_millis(ms)), "{text}");
        }
        assert_eq!(time("5y", second), None);
        assert_eq!(time("1000000000000d", second), None);
    }
}
