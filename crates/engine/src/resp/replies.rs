//! Replies, as far as a load generator needs them: where one ends, and whether it is an error (RESP2 and RESP3,
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>). Values are passed over and not kept.

/// What is kept of a line: sizes are shorter, and of an error the rest says no more.
const LINE: usize = 160;

/// Reads the replies of one connection, however they are cut into pieces.
#[derive(Debug)]
pub(super) struct Replies {
    /// What there is of a line that is not whole yet, or of an error.
    line: Vec<u8>,
    /// Bytes of a value that are still to come, its line's end among them.
    value: u64,
    /// Elements of the present reply that are still to come.
    elements: u64,
    failed: bool,
}

/// A reply that is whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// Whatever it is.
    Fine,
    /// What it says.
    Error(&'a [u8]),
    /// No reply.
    Nonsense(&'a [u8]),
}

impl Replies {
    pub(super) fn new() -> Self {
        Replies { line: Vec::with_capacity(LINE), value: 0, elements: 1, failed: false }
    }

    /// Takes what came next; tells each reply that it makes whole.
    #[inline]
    pub(super) fn take(&mut self, mut input: &[u8], mut told: impl FnMut(Reply<'_>)) {
        while !input.is_empty() {
            if self.value > 0 {
                let passed = self.value.min(input.len() as u64);
                self.value -= passed;
                input = &input[passed as usize..];
                if self.value == 0 {
                    self.element(&mut told);
                }
                continue;
            }
            // Most lines are a few bytes.
            let near = input.iter().take(8).position(|byte| *byte == b'\n');
            let Some(end) = near.or_else(|| memchr::memchr(b'\n', input)) else {
                self.keep(input);
                return;
            };
            let (line, rest) = input.split_at(end + 1);
            input = rest;
            if self.line.is_empty() {
                self.one(line, &mut told);
            } else {
                self.keep(line);
                let line = std::mem::take(&mut self.line);
                self.one(&line, &mut told);
                if !self.failed {
                    self.line = line;
                    self.line.clear();
                }
            }
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// A whole line.
    #[inline]
    fn one(&mut self, line: &[u8], told: &mut impl FnMut(Reply<'_>)) {
        let Some((kind, rest)) = line.split_first() else { return };
        match kind {
            b'+' | b':' | b'_' | b'#' | b',' | b'(' => self.element(told),
            b'$' | b'=' => match count(rest) {
                Some(length) if length >= 0 => self.value = length as u64 + 2,
                _ => self.element(told),
            },
            b'*' | b'~' | b'%' | b'>' => {
                let pairs = if *kind == b'%' { 2 } else { 1 };
                match count(rest) {
                    Some(elements) if elements > 0 => self.elements += elements as u64 * pairs - 1,
                    _ => self.element(told),
                }
            }
            b'-' => {
                told(Reply::Error(rest.trim_ascii_end()));
                self.elements = 1;
            }
            _ => told(Reply::Nonsense(line)),
        }
    }

    #[inline]
    fn element(&mut self, told: &mut impl FnMut(Reply<'_>)) {
        self.elements -= 1;
        if self.elements == 0 {
            self.elements = 1;
            told(Reply::Fine);
        }
    }
}

#[inline]
fn count(digits: &[u8]) -> Option<i64> {
    let digits = digits.trim_ascii_end();
    let (digits, sign) = digits.strip_prefix(b"-").map_or((digits, 1), |rest| (rest, -1));
    let mut sum: i64 = 0;
    for digit in digits {
        sum = sum.checked_mul(10)?.checked_add(i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?))?;
    }
    Some(sign * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<String> {
        let (mut replies, mut seen) = (Replies::new(), Vec::new());
        for piece in pieces {
            replies.take(piece, |reply| {
                seen.push(match reply {
                    Reply::Fine => "fine".to_owned(),
                    Reply::Error(said) => format!("error {}", String::from_utf8_lossy(said)),
                    Reply::Nonsense(said) => format!("nonsense {}", String::from_utf8_lossy(said)),
                });
            });
        }
        seen
    }

    /// However the bytes are cut, the same replies come out.
    #[test]
    fn replies_are_found_wherever_they_are_cut() {
        let text = b"+OK\r\n$5\r\nab\r\nc\r\n$-1\r\n:42\r\n-OOM command not allowed\r\n*2\r\n$1\r\nx\r\n*1\r\n:1\r\n%1\r\n+a\r\n_\r\n$0\r\n\r\n+OK\r\n";
        let whole = all(&[text]);
        let fine = "fine".to_owned();
        let mut expected = vec![fine.clone(), fine.clone(), fine.clone(), fine.clone()];
        expected.push("error OOM command not allowed".to_owned());
        expected.extend(std::iter::repeat_n(fine, 4));
        assert_eq!(whole, expected);
        for cut in 1..text.len() {
            let (a, b) = text.split_at(cut);
            assert_eq!(all(&[a, b]), expected, "cut at {cut}");
        }
        let singly: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(all(&singly), expected);
    }

    #[test]
    fn what_is_no_reply_is_said_so() {
        assert_eq!(all(&[b"HTTP/1.1 400 Bad Request\r\n"]), ["nonsense HTTP/1.1 400 Bad Request\r\n"]);
    }
}
