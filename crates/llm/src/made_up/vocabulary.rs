//! A vocabulary of any number of tokens, of the kind that llama's first tokenizer had: three that control, the 256 bytes, and
//! words, each a space and some letters.

/// Tokens before the first word: unknown, begin, end, 256 bytes, the space.
pub(super) const FIRST_WORD: u32 = 260;

/// The kind of a token, as llama.cpp numbers it: unknown, control, byte, normal.
pub(super) fn kind(token: u32) -> i32 {
    match token {
        0 => 2,
        1 | 2 => 3,
        3..259 => 6,
        _ => 1,
    }
}

/// The words in the order of their length, so that each begins with one before it: a tokenizer that joins letter by letter finds
/// them all. `a` to `z`, `aa` to `zz`, …
pub(super) fn word(number: u32) -> String {
    let (mut rest, mut letters) = (u64::from(number), 1);
    while rest >= 26u64.pow(letters) {
        rest -= 26u64.pow(letters);
        letters += 1;
    }
    (0..letters).rev().map(|place| char::from(b'a' + (rest / 26u64.pow(place) % 26) as u8)).collect()
}

/// The text of a token.
pub(super) fn text(token: u32) -> String {
    match token {
        0 => "<unk>".to_owned(),
        1 => "<s>".to_owned(),
        2 => "</s>".to_owned(),
        3..259 => format!("<0x{:02X}>", token - 3),
        259 => "▁".to_owned(),
        _ => format!("▁{}", word(token - FIRST_WORD)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn words_are_distinct_and_each_begins_with_another() {
        let words: Vec<String> = (0..20_000).map(word).collect();
        assert_eq!(
            (words[0].as_str(), words[25].as_str(), words[26].as_str(), words[702].as_str()),
            ("a", "z", "aa", "aaa")
        );
        let known: HashSet<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(known.len(), words.len());
        assert!(words.iter().all(|word| word.len() == 1 || known.contains(&word[..word.len() - 1])));
    }
}
