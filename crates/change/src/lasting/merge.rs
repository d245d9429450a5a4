//! Taking a change back out of a file that somebody else has changed since: the lines that were changed then go back, all others stay
//! as they are now. Where both changed the same lines nothing is done.

use super::content::Content;

/// What shall stand there once a change from `before` to `wanted` is taken back, where `now` stands; none where it cannot be told.
pub(super) fn taken_back(before: &Content, wanted: &Content, now: &Content) -> Option<Content> {
    if now.says_the_same(wanted) {
        return Some(before.clone());
    }
    if now.says_the_same(before) {
        return Some(now.clone());
    }
    let (Content::File { text: wanted, .. }, Content::File { text: now_text, .. }) = (wanted, now) else { return None };
    let old = match before {
        Content::File { text, .. } => text.as_str(),
        // What others put into a file of ours is theirs, and stays alone in it.
        Content::Absent => "",
        Content::Link { .. } => return None,
    };
    let text = if old.is_empty() { without(wanted, now_text) } else { None };
    let text = text.or_else(|| lines(old, wanted, now_text)).or_else(|| words(old, wanted, now_text))?;
    Some(if text.is_empty() && *before == Content::Absent { Content::Absent } else { now.with_text(text) })
}

/// All lines but those of ours, which must all be there.
fn without(ours: &str, now: &str) -> Option<String> {
    let mut left: Vec<&str> = ours.lines().collect();
    let mut mine = |line: &&str| match left.first() {
        Some(first) if first == &line.trim_end_matches(['\n', '\r']) => {
            left.remove(0);
            true
        }
        _ => false,
    };
    let others: String = now.split_inclusive('\n').filter(|line| !mine(line)).collect();
    left.is_empty().then_some(others)
}

/// By lines: three ways, and where that sees a conflict only because the changes are neighbours, by the reverse patch.
fn lines(before: &str, wanted: &str, now: &str) -> Option<String> {
    if let Ok(merged) = diffy::merge(wanted, now, before) {
        return Some(merged);
    }
    // The less it must recognise around the lines the easier it is mistaken, so lines that it only adds need some.
    let adds_only = before.len() > wanted.len() && is_part_of(wanted, before);
    let least = usize::from(adds_only);
    let patched = (least..3).rev().find_map(|context| {
        let patch = diffy::DiffOptions::new().set_context_len(context).create_patch(wanted, before).to_string();
        diffy::apply(now, &diffy::Patch::from_str(&patch).ok()?).ok()
    });
    patched.or_else(|| beside(before, wanted, now).filter(|_| adds_only))
}

/// Lines that were taken away in one piece go back beside the line that they stood after or before, where there is one such line.
fn beside(before: &str, wanted: &str, now: &str) -> Option<String> {
    let [before, wanted, now] = [before, wanted, now].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let head = before.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
    let gone = before.get(head..head + before.len().checked_sub(wanted.len())?)?;
    if before[head + gone.len()..] != wanted[head..] {
        return None;
    }
    let only = |line: &str| {
        let mut all = now.iter().enumerate().filter(|(_, other)| **other == line).map(|(at, _)| at);
        all.next().filter(|_| all.next().is_none())
    };
    let after = head.checked_sub(1).and_then(|at| only(wanted[at])).map(|at| at + 1);
    // All before it is as it was: there it stood.
    let same = now.starts_with(&wanted[..head]).then_some(head);
    let at = same.or(after).or_else(|| only(wanted.get(head)?))?;
    Some([&now[..at], gone, &now[at..]].concat().concat())
}

/// Whether each line of one stands in the other, in order.
fn is_part_of(part: &str, whole: &str) -> bool {
    let mut all = whole.lines();
    part.lines().all(|line| all.any(|other| other == line))
}

/// By the words of each line, where no lines came or went: a command line is a single one.
fn words(before: &str, wanted: &str, now: &str) -> Option<String> {
    let [before, wanted, now] = [before, wanted, now].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    if before.len() != wanted.len() || now.len() != wanted.len() {
        return None;
    }
    let all = before.iter().zip(&wanted).zip(&now);
    all.map(
        |((before, wanted), now)| if before == wanted { Some((*now).to_owned()) } else { in_line(before, wanted, now) },
    )
    .collect()
}

fn in_line(before: &str, wanted: &str, now: &str) -> Option<String> {
    let body = |line: &str| line.trim_end_matches(['\n', '\r']).len();
    let apart = |line: &str| tokens(&line[..body(line)]).iter().map(|token| format!("{token}\n")).collect::<String>();
    let merged = lines(&apart(before), &apart(wanted), &apart(now))?;
    let mut out = String::new();
    let mut after_word = false;
    for token in merged.lines() {
        let is_word = !token.contains('"');
        out.push_str(if is_word && after_word { " " } else { "" });
        out.push_str(token);
        after_word = is_word;
    }
    Some(format!("{out}{}", &now[body(now)..]))
}

/// Words, and quotes with the blanks around them; an empty word where two blanks are.
fn tokens(line: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let pieces: Vec<&str> = line.split('"').collect();
    for (at, piece) in pieces.iter().enumerate() {
        let (first, last) = (at == 0, at + 1 == pieces.len());
        let from = if first { 0 } else { piece.len() - piece.trim_start().len() };
        let to = if last { piece.len() } else { piece.trim_end().len().max(from) };
        if let Some(quote) = all.last_mut().filter(|_| !first) {
            quote.push_str(&piece[..from]);
        }
        if from < to || pieces.len() == 1 {
            all.extend(piece[from..to].split(' ').map(str::to_owned));
        }
        if !last {
            all.push(format!("{}\"", &piece[to..]));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Content {
        Content::new_file(text.to_owned())
    }

    fn back(before: &str, wanted: &str, now: &str) -> Option<String> {
        taken_back(&file(before), &file(wanted), &file(now)).map(|content| content.text().to_owned())
    }

    #[test]
    fn what_others_changed_stays() {
        let (before, wanted) = ("a\nb\nc\nd\n", "a\nb\nX\nd\n");
        assert_eq!(back(before, wanted, wanted).unwrap(), before);
        assert_eq!(back(before, wanted, before).unwrap(), before);
        assert_eq!(back(before, wanted, "# mine\na\nb\nX\nd\n").unwrap(), "# mine\na\nb\nc\nd\n");
        assert_eq!(back(before, wanted, "a\nb\nX\nd\ne\n").unwrap(), "a\nb\nc\nd\ne\n");
        assert_eq!(back(before, wanted, "a\nb\nmine\nd\n"), None);
        // Neighbours: a line that we had put at the end, and one that somebody put behind it.
        assert_eq!(back("a\nb\n", "a\nb\nX\n", "a\nb\nX\ntheirs\n").unwrap(), "a\nb\ntheirs\n");
        assert_eq!(back("a\nb", "a\nb\nX\n", "a\nb\nX\ntheirs\n").map(|text| text.contains('X')), Some(false));
        assert_eq!(back("a\nb\nc\n", "a\nX\nc\n", "a\nX\ntheirs\n").unwrap(), "a\nb\ntheirs\n");
    }

    #[test]
    fn the_single_line_of_a_command_line_goes_by_words() {
        let (before, wanted) = ("root=a quiet\n", "root=a quiet zswap.enabled=1\n");
        assert_eq!(back(before, wanted, "root=a quiet zswap.enabled=1 splash\n").unwrap(), "root=a quiet splash\n");
        assert_eq!(
            back(before, wanted, "console=tty1 root=a quiet zswap.enabled=1\n").unwrap(),
            "console=tty1 root=a quiet\n"
        );
        assert_eq!(back("root=a quiet", "root=a quiet z=1", "root=a z=1").unwrap(), "root=a");
        assert_eq!(back(before, wanted, "root=a quiet zswap.enabled=0\n"), None);
        // What stood beside it is gone by now.
        assert_eq!(back("root=a quiet z=1\n", "root=a z=1\n", "root=a\n").unwrap(), "root=a quiet\n");
        assert_eq!(back("root=a quiet z=1\n", "root=a z=1\n", "b\n"), None);
    }

    #[test]
    fn words_within_quotes_too() {
        let (before, wanted) = ("T=0\nX=\"quiet splash\"\n", "T=0\nX=\"quiet splash z=1\"\n");
        assert_eq!(back(before, wanted, "T=0\nX=\"splash z=1\"\n").unwrap(), "T=0\nX=\"splash\"\n");
        assert_eq!(
            back(before, wanted, "T=5\nX=\"quiet splash z=1 a=\\\"b\"\n").unwrap(),
            "T=5\nX=\"quiet splash a=\\\"b\"\n"
        );
        for line in ["", "a", " a  b ", "a=\"b c\" d", "X=\"\"", "a \"b", "\""] {
            assert_eq!(in_line(line, line, line).unwrap(), line);
        }
    }

    #[test]
    fn files_of_our_own_go_unless_others_wrote_into_them() {
        let ours = file("# tiermark\nvm.swappiness = 10\n");
        assert_eq!(taken_back(&Content::Absent, &ours, &ours), Some(Content::Absent));
        assert_eq!(taken_back(&Content::Absent, &ours, &Content::Absent), Some(Content::Absent));
        let more = file("# tiermark\nvm.swappiness = 10\nvm.laptop_mode = 1\n");
        assert_eq!(taken_back(&Content::Absent, &ours, &more).unwrap().text(), "vm.laptop_mode = 1\n");
        assert_eq!(taken_back(&ours, &file("x"), &Content::Absent), None);
        let link = Content::Link { to: "/dev/null".into() };
        assert_eq!(taken_back(&Content::Absent, &link, &link), Some(Content::Absent));
        assert_eq!(taken_back(&Content::Absent, &link, &ours), None);
    }
}
