//! Takes out of a capture what identifies a person, a machine or a medium: identifiers, addresses, names of hosts and
//! users, labels. Each is replaced by a stable placeholder, the same for the same text, so that a mount's source still
//! matches the link that it names.

use crate::hops::without_container_id;
use crate::root::Root;
use std::collections::BTreeMap;
use std::path::Path;

/// Options of mount(8) and words of a kernel command line whose value is somebody's: any name that contains one of these.
const PRIVATE_KEYS: [&str; 20] = [
    "serial",
    "mac",
    "host",
    "user",
    "pass",
    "cred",
    "domain",
    "addr",
    "server",
    "secret",
    "key",
    "token",
    "ssid",
    "psk",
    "bootif",
    "androidboot",
    "workgroup",
    "nfsroot",
    "ip",
    "volume",
];
/// Names that contain a private word and are settings all the same.
const PUBLIC_KEYS: [&str; 8] =
    ["user_xattr", "user_id", "nouser", "usrquota", "rootflags", "pipe", "description", "skip"];
/// Words that occur everywhere; a host or user of such a name is not hidden by replacing them.
const COMMON: [&str; 22] = [
    "root",
    "daemon",
    "localhost",
    "debian",
    "linux",
    "ubuntu",
    "home",
    "media",
    "boot",
    "data",
    "swap",
    "disk",
    "dev",
    "proc",
    "sys",
    "mnt",
    "srv",
    "var",
    "tmp",
    "ext4",
    "btrfs",
    "nobody",
];

/// The replacements made so far.
#[derive(Debug, Default)]
pub(crate) struct Scrubber {
    placeholders: BTreeMap<(&'static str, String), String>,
    /// Names of hosts and users, in lower case, with the kind of placeholder.
    names: Vec<(String, &'static str)>,
}

impl Scrubber {
    /// Learns the names of this host and its users, which are not captured themselves.
    pub(crate) fn new(root: &Root) -> Self {
        let mut scrubber = Scrubber::default();
        for path in ["/etc/hostname", "/proc/sys/kernel/hostname"] {
            let name = root.word(path).unwrap_or_default();
            scrubber.learn(&name, "host");
            scrubber.learn(name.split('.').next().unwrap_or(""), "host");
        }
        let passwd = root.word("/etc/passwd").unwrap_or_default();
        for line in passwd.lines() {
            let mut fields = line.split(':');
            let (name, id) = (fields.next().unwrap_or(""), fields.nth(1).and_then(|id| id.parse::<u32>().ok()));
            if id.is_some_and(|id| (1000..60000).contains(&id)) {
                scrubber.learn(name, "user");
            }
        }
        for path in ["/proc/self/mountinfo", "/proc/mounts", "/etc/fstab", "/proc/swaps"] {
            for name in root.word(path).unwrap_or_default().split_whitespace().filter_map(owner) {
                scrubber.learn(name, "user");
            }
        }
        scrubber
    }

    fn learn(&mut self, name: &str, kind: &'static str) {
        let name = name.trim().to_ascii_lowercase();
        // Shorter ones would be found inside everything; as the owner of a home folder they are replaced all the same.
        if name.len() >= 3 && !COMMON.contains(&name.as_str()) && self.names.iter().all(|(known, _)| *known != name) {
            self.names.push((name, kind));
            self.names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        }
    }

    /// How many different texts were replaced.
    pub(crate) fn replaced(&self) -> usize {
        self.placeholders.len()
    }

    /// The content of a file of a capture.
    pub(crate) fn content(&mut self, path: &Path, content: &[u8]) -> Vec<u8> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        match name {
            "auxv" => return page_size_only(content),
            "bos_descriptors" => return without_container_id(content),
            // PCI configuration (without the serial number, which begins at byte 256), USB descriptors, a device tree's number.
            "config" | "descriptors" | "bus-width" => return content.to_vec(),
            _ => {}
        }
        let text = String::from_utf8_lossy(content);
        let text = match name {
            "cpuinfo" => without_serial(&text),
            "uuid" if path.parent().is_some_and(|dir| dir.ends_with("dm")) => mapping_kind(&text),
            _ if is_free_text(path) => self.free_text(&without_comments(path, &text)),
            _ => self.uuids(&text),
        };
        text.into_bytes()
    }

    /// A path inside the capture, or a link's target.
    pub(crate) fn path(&mut self, path: &Path) -> String {
        let text = path.to_string_lossy();
        let is_swap_unit = text.contains("systemd/") && text.ends_with(".swap");
        match text.rsplit_once('/') {
            // The unit's name is the escaped path of its device.
            Some((folder, unit)) if is_swap_unit => format!("{folder}/{}.swap", self.placeholder("unit", unit)),
            _ => self.word(&text),
        }
    }

    /// Mount tables, command lines and configuration: words separated by white space, which stays as it is.
    fn free_text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in text.split_inclusive(char::is_whitespace) {
            let word = piece.trim_end_matches(char::is_whitespace);
            out.push_str(&self.word(word));
            out.push_str(&piece[word.len()..]);
        }
        out
    }

    /// One word: a path, a list of options, a setting.
    fn word(&mut self, word: &str) -> String {
        let settings: Vec<String> = word.split(',').map(|setting| self.setting(setting)).collect();
        let word = self.network_source(&settings.join(","));
        let word = self.below(&word);
        let word = self.uuids(&word);
        let word = self.runs(&word);
        self.known_names(&word)
    }

    /// `key=value` with a private key or an identifying kind of value.
    fn setting(&mut self, setting: &str) -> String {
        let Some((key, value)) = setting.split_once('=') else { return setting.to_owned() };
        let bare = key.to_ascii_lowercase();
        let bare = bare.rsplit('/').next().unwrap_or("");
        match bare {
            "uuid" | "partuuid" | "label" | "partlabel" | "id" => format!("{key}={}", self.identifier(bare, value)),
            // root=PARTUUID=…, resume=LABEL=…, cryptdevice=UUID=…:name
            _ if value.contains('=') => format!("{key}={}", self.setting(value)),
            _ if private(bare) => format!("{key}={}", self.placeholder("private", value)),
            _ => setting.to_owned(),
        }
    }

    fn identifier(&mut self, kind: &str, value: &str) -> String {
        match kind {
            "uuid" | "partuuid" if is_uuid(value) => self.uuids(value),
            "uuid" => self.placeholder("uuid", value),
            "partuuid" => self.placeholder("partuuid", value),
            "id" => self.placeholder("id", value),
            _ => self.placeholder("label", value),
        }
    }

    /// `host:/path`, `user@host:/path`, `//host/share`.
    fn network_source(&mut self, word: &str) -> String {
        if let Some(rest) = word.strip_prefix("//") {
            let (host, share) = rest.split_once('/').unwrap_or((rest, ""));
            return format!("//{}/{}", self.placeholder("host", host), self.placeholder("share", share));
        }
        let Some((host, path)) =
            word.split_once(":/").filter(|(host, _)| !host.is_empty() && !host.contains(['/', '=']))
        else {
            return word.to_owned();
        };
        match host.split_once('@') {
            Some((user, host)) => {
                format!("{}@{}:/{path}", self.placeholder("user", user), self.placeholder("host", host))
            }
            None => format!("{}:/{path}", self.placeholder("host", host)),
        }
    }

    /// Components that a person or a medium gave its name to: below `/home`, `/media` and the folders of `/dev/disk`.
    fn below(&mut self, word: &str) -> String {
        let mut out: Vec<String> = Vec::new();
        let parts: Vec<&str> = word.split('/').collect();
        let at = |i: usize, back: usize| i.checked_sub(back).and_then(|i| parts.get(i)).copied().unwrap_or("");
        for (i, part) in parts.iter().enumerate() {
            let place = at(i, 1).trim_start_matches(|c: char| !c.is_ascii_lowercase());
            let kind = match place {
                _ if part.is_empty() => None,
                "home" | "Users" | "media" if i > 1 => Some("user"),
                "by-id" => Some("id"),
                "by-uuid" if !is_uuid(part) => Some("uuid"),
                "by-partuuid" if !is_uuid(part) => Some("partuuid"),
                "by-label" | "by-partlabel" => Some("label"),
                _ if at(i, 2) == "media" && !part.is_empty() => Some("label"),
                _ => None,
            };
            out.push(kind.map_or_else(|| (*part).to_owned(), |kind| self.placeholder(kind, part)));
        }
        out.join("/")
    }

    /// Each UUID in a text.
    fn uuids(&mut self, text: &str) -> String {
        self.matches(text, |rest| rest.get(..36).filter(|text| is_uuid(text)).map(|_| (36, "uuid")))
    }

    /// MAC and IP addresses, and hexadecimal numbers too long to be anything but an identifier.
    fn runs(&mut self, text: &str) -> String {
        self.matches(text, |rest| {
            let end = rest.find(|c: char| !c.is_ascii_hexdigit() && c != ':').unwrap_or(rest.len());
            let run = &rest[..end];
            let groups: Vec<&str> = run.split(':').collect();
            if groups.len() == 6 && groups.iter().all(|group| group.len() == 2) {
                return Some((end, "mac"));
            }
            // IPv6; a PCI address has two colons, a link-local one four.
            if groups.len() >= 4 && (run.contains("::") || groups.len() == 8) {
                return Some((end, "ip6"));
            }
            let digits = rest.strip_prefix("0x").unwrap_or(rest);
            let hex = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
            if hex >= 16 {
                return Some((rest.len() - digits.len() + hex, "number"));
            }
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let octets: Vec<&str> = rest[..end].split('.').collect();
            (octets.len() == 4 && octets.iter().all(|octet| octet.parse::<u8>().is_ok())).then_some((end, "ip"))
        })
    }

    /// Names of this host and its users, as whole words.
    fn known_names(&mut self, text: &str) -> String {
        let names = self.names.clone();
        self.matches(text, |rest| {
            names.iter().find_map(|(name, kind)| {
                let found = rest.get(..name.len())?.eq_ignore_ascii_case(name);
                (found && !rest[name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric()))
                    .then_some((name.len(), *kind))
            })
        })
    }

    /// Replaces what `found` recognises at the beginning of a word; it gives the length in bytes and the kind.
    fn matches(&mut self, text: &str, found: impl Fn(&str) -> Option<(usize, &'static str)>) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut inside = false;
        while let Some(first) = rest.chars().next() {
            if let Some((length, kind)) = found(rest).filter(|(length, _)| !inside && *length > 0) {
                out.push_str(&self.placeholder(kind, &rest[..length]));
                rest = &rest[length..];
                inside = true;
                continue;
            }
            out.push(first);
            inside = first.is_ascii_alphanumeric();
            rest = &rest[first.len_utf8()..];
        }
        out
    }

    /// The placeholder for a text; one that is a placeholder already stays.
    fn placeholder(&mut self, kind: &'static str, text: &str) -> String {
        if text.is_empty() || self.placeholders.values().any(|known| known == text) {
            return text.to_owned();
        }
        let key = (kind, text.to_ascii_lowercase());
        if let Some(known) = self.placeholders.get(&key) {
            return known.clone();
        }
        let number = self.placeholders.keys().filter(|(of, _)| *of == kind).count() + 1;
        let made = match kind {
            "uuid" if is_uuid(text) => format!("00000000-0000-0000-0000-{number:012}"),
            "ip" => format!("192.0.2.{}", number % 256),
            "mac" => format!("02:00:00:00:00:{:02x}", number % 256),
            _ => format!("{kind}-{number}"),
        };
        self.placeholders.insert(key, made.clone());
        made
    }
}

/// Files whose text people or their tools wrote.
fn is_free_text(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let own = [
        "mountinfo",
        "mounts",
        "mtab",
        "swaps",
        "cmdline",
        "backing_file",
        "backing_dev",
        "product",
        "manufacturer",
        "uevent",
    ];
    own.contains(&name)
        || (path.starts_with("/etc") && name != "os-release")
        || (name == "name" && path.parent().is_some_and(|dir| dir.ends_with("dm")))
}

fn private(key: &str) -> bool {
    !PUBLIC_KEYS.iter().any(|public| key.contains(public))
        && PRIVATE_KEYS.iter().any(|word| if *word == "ip" { key == "ip" } else { key.contains(word) })
}

/// The owner in a path below a home or a medium's folder.
fn owner(word: &str) -> Option<&str> {
    ["/home/", "/run/media/", "/media/"].iter().find_map(|prefix| {
        let (_, rest) = word.split_once(prefix)?;
        rest.split('/').next().filter(|name| !name.is_empty())
    })
}

/// `01234567-89ab-cdef-0123-456789abcdef`.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| group.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// A mapping's kind without its identifier: `CRYPT-LUKS2-…` becomes `CRYPT-scrubbed`.
fn mapping_kind(uuid: &str) -> String {
    format!("{}-scrubbed\n", uuid.split('-').next().unwrap_or(""))
}

/// A Raspberry Pi prints its serial number at the end of cpuinfo.
fn without_serial(cpuinfo: &str) -> String {
    cpuinfo
        .lines()
        .filter(|line| !line.to_ascii_lowercase().starts_with("serial"))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Configuration without the comments, in which anything may stand.
fn without_comments(path: &Path, text: &str) -> String {
    if !path.starts_with("/etc") {
        return text.to_owned();
    }
    text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])).map(|line| format!("{line}\n")).collect()
}

/// Of the auxiliary vector only the page size: the rest is addresses of a process.
fn page_size_only(auxv: &[u8]) -> Vec<u8> {
    match crate::facts::auxv_page(auxv) {
        Some(size) => [crate::facts::AT_PAGESZ, size.0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(text: &str) -> String {
        let mut scrubber = Scrubber::default();
        scrubber.learn("mayu", "host");
        scrubber.learn("alice", "user");
        scrubber.free_text(text)
    }

    #[test]
    fn what_identifies() {
        for (text, expected) in [
            ("root=PARTUUID=8e27b9a2-02 rw", "root=PARTUUID=partuuid-1 rw"),
            ("UUID=1234-ABCD /boot vfat", "UUID=uuid-1 /boot vfat"),
            ("root=UUID=0A1b2c3d-89ab-cdef-0123-456789abcdef", "root=UUID=00000000-0000-0000-0000-000000000001"),
            ("/dev/disk/by-id/ata-Samsung_S3Z8NB0K123456A-part1 /x", "/dev/disk/by-id/id-1 /x"),
            ("smsc95xx.macaddr=B8:27:EB:01:02:03", "smsc95xx.macaddr=private-1"),
            ("ip=10.0.0.7::10.0.0.1:255.255.255.0:mayu:eth0", "ip=private-1"),
            (
                "nas.example.org:/export /home/alice/nas nfs4 rw,addr=10.0.0.9,vers=4.2",
                "host-1:/export /home/user-1/nas nfs4 rw,addr=private-1,vers=4.2",
            ),
            (
                "//nas/Photos /mnt cifs rw,username=bob,uid=1000",
                "//host-1/share-1 /mnt cifs rw,username=private-1,uid=1000",
            ),
            ("bob@box:/srv /mnt fuse.sshfs rw,user_id=1000", "user-1@host-1:/srv /mnt fuse.sshfs rw,user_id=1000"),
            ("/dev/mapper/mayu--vg-root / ext4", "/dev/mapper/host-1--vg-root / ext4"),
            ("/media/alice/HOLIDAY/disk.img", "/media/user-1/label-1/disk.img"),
            ("b8:27:eb:01:02:03 10.1.2.3 fe80::1:2:3", "02:00:00:00:00:01 192.0.2.1 ip6-1"),
            ("/x/0025385b71b0a3c1", "/x/number-1"),
        ] {
            assert_eq!(scrubbed(text), expected, "{text}");
        }
    }

    #[test]
    fn what_does_not() {
        for text in [
            "179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw,stripe=1024",
            "console=serial0,115200 rootfstype=ext4 zswap.enabled=1 usb-storage.quirks=152d:0578:u",
            "/dev/sda2 / btrfs rw,compress=zstd:3,subvolid=5,user_xattr 0 1",
            "BOOT_IMAGE=/vmlinuz-6.1.0-28-amd64",
            "0000:03:00.0",
        ] {
            assert_eq!(scrubbed(text), text);
        }
    }

    #[test]
    fn the_same_text_gets_the_same_placeholder() {
        assert_eq!(scrubbed("LABEL=Alpha LABEL=Beta LABEL=Alpha"), "LABEL=label-1 LABEL=label-2 LABEL=label-1");
    }
}
