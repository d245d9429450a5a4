//! A setting put into the text of a file, everything else byte for byte as it was: comments, order, line ends, a last line
//! without its end. One function for each form that a file may have; none touches a file.

/// What a file's lines end with: what its first line ends with.
pub(super) fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// A line without its end, and the end.
fn parted(line: &str) -> (&str, &str) {
    let body = line.trim_end_matches(['\n', '\r']);
    (body, &line[body.len()..])
}

/// With a line at its end.
fn appended(text: &str, line: &str) -> String {
    let end = line_end(text);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
    format!("{text}{gap}{line}{end}")
}

/// With this line, at its end where it is not there yet.
pub(super) fn line(text: &str, line: &str) -> String {
    if text.lines().any(|other| other.trim_end() == line) { text.to_owned() } else { appended(text, line) }
}

/// The kernel takes `-` and `_` in a parameter's name for the same (parse_args in kernel/params.c).
fn same_parameter(word: &str, name: &str) -> bool {
    let dashed = |text: &str| text.replace('-', "_");
    dashed(word.split_once('=').map_or(word, |(key, _)| key)) == dashed(name)
}

/// The words of a command line with where each begins; blanks within quotes part nothing.
pub(super) fn words(line: &str) -> Vec<(usize, &str)> {
    let (mut all, mut from, mut quoted) = (Vec::new(), None, false);
    for (at, c) in line.char_indices() {
        match (c.is_ascii_whitespace() && !quoted, from) {
            (false, None) => from = Some(at),
            (true, Some(start)) => {
                all.push((start, &line[start..at]));
                from = None;
            }
            _ => {}
        }
        quoted ^= c == '"';
    }
    all.extend(from.map(|start| (start, &line[start..])));
    all
}

/// A command line with a parameter set, or without it. Where it stands several times the last one counts for the kernel, so that
/// one is set and the others stay; without it, all go.
pub fn with_parameter(line: &str, name: &str, value: Option<&str>) -> String {
    let wanted = match value {
        Some("") => name.to_owned(),
        Some(value) => format!("{name}={value}"),
        None => String::new(),
    };
    let all = words(line);
    let own: Vec<&(usize, &str)> = all.iter().filter(|(_, word)| same_parameter(word, name)).collect();
    let mut out = line.to_owned();
    if value.is_none() {
        for (at, word) in own.iter().rev() {
            // With the blank before it, or, of the first word, the one after.
            let before = out[..*at].ends_with(' ');
            let end = at + word.len();
            let after = !before && out[end..].starts_with(' ');
            out.replace_range(at - usize::from(before)..end + usize::from(after), "");
        }
        return out;
    }
    match own.last() {
        Some((at, word)) => out.replace_range(*at..at + word.len(), &wanted),
        None => {
            let end = out.trim_end().len();
            let gap = if end == 0 { "" } else { " " };
            out.insert_str(end, &format!("{gap}{wanted}"));
        }
    }
    out
}

/// The first line of a cmdline.txt, which is the only one that the firmware reads, with a parameter set or without it.
pub(super) fn command_line(text: &str, name: &str, value: Option<&str>) -> String {
    let end = text.find('\n').map_or(text.len(), |at| at);
    let (body, _) = parted(&text[..end]);
    format!("{}{}", with_parameter(body, name, value), &text[body.len()..])
}

/// How a file writes `NAME=value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As the shell reads it: quotes where there are blanks.
    Shell,
    /// As sysctl(8) does: blanks around the sign, `/` for `.`, all after the sign is the value.
    Sysctl,
    /// All after the sign is the value.
    Plain,
}

/// The name that a line sets.
fn key_of(line: &str, form: Form) -> Option<String> {
    let key = line.split_once('=')?.0.trim();
    Some(match form {
        // sysctl.d(5): a `-` before it forgives that it is missing.
        Form::Sysctl => key.trim_start_matches('-').replace('/', "."),
        Form::Shell => key.trim_start_matches("export ").to_owned(),
        Form::Plain => key.to_owned(),
    })
}

/// `NAME=value`: the last line that sets it is changed, within the quotes that it has; otherwise a line is added.
pub(super) fn assigned(text: &str, name: &str, value: &str, form: Form) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(at) = lines.iter().rposition(|line| key_of(line, form).as_deref() == Some(name)) else {
        let quote = if form == Form::Shell && value.contains(' ') { "\"" } else { "" };
        let sign = if form == Form::Sysctl { " = " } else { "=" };
        return appended(text, &format!("{name}{sign}{quote}{value}{quote}"));
    };
    let set = |line: &str| {
        let (body, end) = parted(line);
        let (key, rest) = body.split_once('=').unwrap_or((body, ""));
        let old = rest.trim_start();
        let lead = &rest[..rest.len() - old.len()];
        let new = match form {
            Form::Shell => replaced_word(old, value),
            Form::Sysctl | Form::Plain => format!("{value}{}", &old[old.trim_end().len()..]),
        };
        format!("{key}={lead}{new}{end}")
    };
    lines.iter().enumerate().map(|(n, line)| if n == at { set(line) } else { (*line).to_owned() }).collect()
}

/// A word of the shell in place of another, in its quotes and with the comment after it.
fn replaced_word(old: &str, value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some((_, after)) = old.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return format!("{quote}{value}{quote}{after}");
        }
    }
    let end = old.find(|c: char| c.is_whitespace() || c == '#').unwrap_or(old.len());
    let quote = if value.contains(' ') { "\"" } else { "" };
    format!("{quote}{value}{quote}{}", &old[end..])
}

/// The value of the last line that sets it, without its quotes.
pub(super) fn assignment<'t>(text: &'t str, name: &str, form: Form) -> Option<&'t str> {
    let line = text.lines().rev().find(|line| key_of(line, form).as_deref() == Some(name))?;
    let value = line.split_once('=')?.1.trim();
    let bare = || value.split(" #").next().unwrap_or(value).trim().trim_matches(['"', '\'']);
    Some(if form == Form::Shell { bare() } else { value })
}

/// `name=value` in config.txt: where it holds for every board already, there; otherwise at the end, below `[all]`.
pub(super) fn firmware(text: &str, name: &str, value: &str) -> String {
    let wanted = format!("{name}={value}");
    let (mut section, mut found, mut last) = ("all".to_owned(), None, "all".to_owned());
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (at, line) in lines.iter().enumerate() {
        let body = parted(line).0.trim();
        if let Some(inner) = body.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = inner.trim().to_ascii_lowercase();
            last.clone_from(&section);
        } else if section == "all" && body.rsplit_once('=').is_some_and(|(key, _)| key.trim() == name) {
            found = Some(at);
        }
    }
    if let Some(at) = found {
        let set = |line: &str| format!("{wanted}{}", parted(line).1);
        return lines
            .iter()
            .enumerate()
            .map(|(n, line)| if n == at { set(line) } else { (*line).to_owned() })
            .collect();
    }
    let text = if last == "all" { text.to_owned() } else { appended(text, "[all]") };
    appended(&text, &wanted)
}

/// A line of fstab(5) with other options, or none where nothing is mounted there. Only the bytes of that line's fourth field change.
pub(super) fn mount_options(text: &str, at: &str, add: &[String], drop: &[String]) -> Option<String> {
    let mut found = false;
    let mut out = String::with_capacity(text.len() + 32);
    for line in text.split_inclusive('\n') {
        let body = parted(line).0;
        let fields: Vec<(usize, &str)> =
            if body.trim_start().starts_with('#') { Vec::new() } else { words(body).into_iter().take(4).collect() };
        let is_it = fields.get(1).is_some_and(|(_, place)| place.replace("\\040", " ") == at);
        match (is_it, fields.get(3), fields.get(2)) {
            (true, Some((from, options)), _) => {
                found = true;
                out.push_str(&line[..*from]);
                out.push_str(&options_with(options, add, drop));
                out.push_str(&line[from + options.len()..]);
            }
            // fstab(5) needs no options.
            (true, None, Some((from, kind))) => {
                found = true;
                let end = from + kind.len();
                out.push_str(&format!("{} {}{}", &line[..end], options_with("defaults", add, drop), &line[end..]));
            }
            _ => out.push_str(line),
        }
    }
    found.then_some(out)
}

fn options_with(options: &str, add: &[String], drop: &[String]) -> String {
    let name = |option: &str| option.split_once('=').map_or(option, |(name, _)| name).to_owned();
    let gone = |option: &&str| drop.iter().chain(add).any(|other| name(other) == name(option));
    let mut all: Vec<String> = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match add.iter().find(|wanted| name(wanted) == name(option)) {
            Some(wanted) => all.push(wanted.clone()),
            None if gone(&option) => {}
            None => all.push(option.to_owned()),
        }
    }
    all.extend(add.iter().filter(|wanted| !all.contains(wanted)).cloned().collect::<Vec<_>>());
    if all.is_empty() { "defaults".to_owned() } else { all.join(",") }
}

/// `name=value` in a section of a file of sections, made where there is none.
pub(super) fn in_section(text: &str, section: &str, name: &str, value: &str) -> String {
    let header = format!("[{section}]");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(head) = lines.iter().position(|line| line.trim() == header) else {
        return appended(&appended(text, &header), &format!("{name}={value}"));
    };
    let end =
        lines[head + 1..].iter().position(|line| line.trim().starts_with('[')).map_or(lines.len(), |n| head + 1 + n);
    let (before, rest) = lines.split_at(head + 1);
    let (own, after) = rest.split_at(end - head - 1);
    format!("{}{}{}", before.concat(), assigned(&own.concat(), name, value, Form::Plain), after.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PI: &str =
        "console=serial0,115200 console=tty1 root=PARTUUID=ab-02 rootfstype=ext4 fsck.repair=yes rootwait\n";

    #[test]
    fn parameters_of_the_kernel() {
        let set = |text: &str, name: &str, value: &str| command_line(text, name, Some(value));
        assert_eq!(set(PI, "zswap.enabled", "1"), PI.replace("wait\n", "wait zswap.enabled=1\n"));
        assert_eq!(set(PI, "rootwait", ""), PI);
        assert_eq!(set(PI, "rootfstype", "btrfs"), PI.replace("ext4", "btrfs"));
        // No last line end, and one of another kind, stay as they are.
        assert_eq!(set("root=/dev/sda2", "quiet", ""), "root=/dev/sda2 quiet");
        assert_eq!(set("root=/dev/sda2 \r\n", "quiet", ""), "root=/dev/sda2 quiet \r\n");
        assert_eq!(set("a=\"b c\" d", "a", "1"), "a=1 d");
        assert_eq!(set("usb-storage.quirks=1:2:u x", "usb_storage.quirks", "3:4:u"), "usb_storage.quirks=3:4:u x");
        assert_eq!(set("", "quiet", ""), "quiet");
        assert_eq!(set("a=1 a=2\nsecond a=3\n", "a", "4"), "a=1 a=4\nsecond a=3\n");
        let without = |text: &str, name: &str| command_line(text, name, None);
        assert_eq!(without("a=1 b a=2\n", "a"), "b\n");
        assert_eq!(without("b a=2", "a"), "b");
        assert_eq!(without("a", "a"), "");
    }

    #[test]
    fn variables() {
        let set = |text: &str, value: &str| assigned(text, "CONF_SWAPSIZE", value, Form::Shell);
        assert_eq!(set("# size\nCONF_SWAPSIZE=100\n#end", "0"), "# size\nCONF_SWAPSIZE=0\n#end");
        assert_eq!(set("#CONF_SWAPSIZE=100\n", "0"), "#CONF_SWAPSIZE=100\nCONF_SWAPSIZE=0\n");
        assert_eq!(set("CONF_SWAPSIZE=\"100\" # so\r\n", "0"), "CONF_SWAPSIZE=\"0\" # so\r\n");
        assert_eq!(set("x=1", "0"), "x=1\nCONF_SWAPSIZE=0\n");
        assert_eq!(set("x=1\r\n", "0"), "x=1\r\nCONF_SWAPSIZE=0\r\n");
        assert_eq!(assigned("vm/swappiness=60\n", "vm.swappiness", "10", Form::Sysctl), "vm/swappiness=10\n");
        assert_eq!(assigned("vm.swappiness = 60 \n", "vm.swappiness", "10", Form::Sysctl), "vm.swappiness = 10 \n");
        assert_eq!(assignment("A=1\nA='2 3' # so\n", "A", Form::Shell), Some("2 3"));
        assert_eq!(assigned("extraargs=a b\n", "extraargs", "a b c", Form::Plain), "extraargs=a b c\n");
        assert_eq!(assigned("", "extraargs", "a b", Form::Plain), "extraargs=a b\n");
    }

    #[test]
    fn lines_of_the_firmware() {
        let name = "dtparam=pciex1_gen";
        assert_eq!(firmware("dtparam=pciex1\n", name, "3"), "dtparam=pciex1\ndtparam=pciex1_gen=3\n");
        assert_eq!(firmware("dtparam=pciex1_gen=2\nx=1", name, "3"), "dtparam=pciex1_gen=3\nx=1");
        // What holds for one board alone is not the place; nor is a comment.
        let text = "#dtparam=pciex1_gen=3\n[cm4]\notg_mode=1\n";
        assert_eq!(firmware(text, name, "3"), format!("{text}[all]\n{name}=3\n"));
        assert_eq!(firmware("[pi4]\r\na=1\r\n[all]\r\n", name, "3"), format!("[pi4]\r\na=1\r\n[all]\r\n{name}=3\r\n"));
    }

    #[test]
    fn options_of_a_mount() {
        let fstab = "proc /proc proc defaults 0 0\n#PARTUUID=a / ext4 defaults 0 1\nPARTUUID=ab-02  /\text4  defaults,discard  0 1\n";
        let add = ["noatime".to_owned()];
        let drop = ["discard".to_owned()];
        let out = mount_options(fstab, "/", &add, &drop).unwrap();
        assert_eq!(out, fstab.replace("ext4  defaults,discard ", "ext4  defaults,noatime "));
        assert_eq!(mount_options(fstab, "/home", &add, &[]), None);
        let level = ["compress=zstd:1".to_owned()];
        assert_eq!(mount_options("a / btrfs compress=lzo", "/", &level, &[]).unwrap(), "a / btrfs compress=zstd:1");
        assert_eq!(mount_options("a / btrfs discard", "/", &[], &drop).unwrap(), "a / btrfs defaults");
        assert_eq!(mount_options("a / btrfs\n", "/", &add, &[]).unwrap(), "a / btrfs defaults,noatime\n");
        assert_eq!(
            mount_options("a /my\\040disk ext4 ro", "/my disk", &add, &[]).unwrap(),
            "a /my\\040disk ext4 ro,noatime"
        );
    }

    #[test]
    fn settings_in_sections() {
        let set = |text: &str| in_section(text, "Main", "Mechanism", "zram");
        assert_eq!(set(""), "[Main]\nMechanism=zram\n");
        assert_eq!(set("[File]\nPath=/a\n"), "[File]\nPath=/a\n[Main]\nMechanism=zram\n");
        assert_eq!(set("[Main]\n[File]\nMechanism=x\n"), "[Main]\nMechanism=zram\n[File]\nMechanism=x\n");
        assert_eq!(set("[Main]\nMechanism=auto\n"), "[Main]\nMechanism=zram\n");
    }
}
