//! What a copied system must say of itself: the lines of its fstab, and of the command line that it is started with. Text in, text out;
//! what is not meant stays byte for byte.

use crate::error::MoveError;
use change::lasting::with_parameter;

/// How the new system is found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct New {
    /// Of the root file system.
    pub root_uuid: String,
    /// Of its partition.
    pub root_partuuid: String,
    /// `ext4`, `btrfs`.
    pub fs: String,
    /// What it is mounted with beside `defaults`.
    pub options: Vec<String>,
    /// Of its swap area, where it has one.
    pub swap_uuid: Option<String>,
    /// Of its boot partition, where that goes with it.
    pub boot_partuuid: Option<String>,
}

/// Where boot partitions are mounted.
const BOOT: [&str; 3] = ["/boot/firmware", "/boot/efi", "/boot"];

/// fstab(5) of the new system: the root's line, the boot partition's where that moves, swap.
pub fn fstab(text: &str, new: &New) -> String {
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut out = String::new();
    let mut has_root = false;
    for line in text.split_inclusive('\n') {
        let fields = fields(line);
        let field = |nth: usize| fields.get(nth).map(|span| &line[span.clone()]);
        let comment = line.trim_start().starts_with('#');
        match (field(1), field(2)) {
            (Some("/"), _) if !comment => {
                has_root = true;
                out.push_str(&spliced(
                    line,
                    &fields,
                    &[
                        (0, format!("UUID={}", new.root_uuid)),
                        (2, new.fs.clone()),
                        (3, new.mount_options(field(3).unwrap_or("defaults"))),
                        (5, if new.fs == "btrfs" { "0" } else { "1" }.to_owned()),
                    ],
                ));
            }
            (Some(at), _) if !comment && BOOT.contains(&at) && new.boot_partuuid.is_some() => {
                let partuuid = new.boot_partuuid.as_deref().unwrap_or_default();
                out.push_str(&spliced(line, &fields, &[(0, format!("PARTUUID={partuuid}"))]));
            }
            // The old area lies on the old disk.
            (_, Some("swap")) if !comment && new.swap_uuid.is_some() => {
                out.push_str("# before the move: ");
                out.push_str(line);
            }
            _ => out.push_str(line),
        }
    }
    let mut more = Vec::new();
    if !has_root {
        more.push(format!(
            "UUID={} / {} {} 0 {}",
            new.root_uuid,
            new.fs,
            new.mount_options("defaults"),
            u8::from(new.fs != "btrfs")
        ));
    }
    if let Some(uuid) = &new.swap_uuid {
        more.push(format!("UUID={uuid} none swap sw,pri=10 0 0"));
    }
    for line in more {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push_str(ending);
        }
        out.push_str(&line);
        out.push_str(ending);
    }
    out
}

impl New {
    /// Options that belong to a file system of another kind are not taken along.
    fn mount_options(&self, old: &str) -> String {
        let anywhere = ["defaults", "noatime", "relatime", "nodiratime", "lazytime", "ro", "rw", "x-systemd"];
        let kept = old.split(',').filter(|option| anywhere.iter().any(|known| option.starts_with(known)));
        let mut all: Vec<&str> = kept.collect();
        if all.is_empty() {
            all.push("defaults");
        }
        all.extend(self.options.iter().map(String::as_str).filter(|option| !old.split(',').any(|had| had == *option)));
        all.join(",")
    }
}

/// Where each field of a line stands.
fn fields(line: &str) -> Vec<std::ops::Range<usize>> {
    let mut all = Vec::new();
    let mut from = None;
    for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
        match (c.is_whitespace(), from) {
            (false, None) => from = Some(at),
            (true, Some(start)) => {
                all.push(start..at);
                from = None;
            }
            _ => {}
        }
    }
    all
}

/// The line with other words in some of its fields; one that it lacks stays away.
fn spliced(line: &str, fields: &[std::ops::Range<usize>], words: &[(usize, String)]) -> String {
    let mut out = line.to_owned();
    for (nth, word) in words.iter().rev() {
        if let Some(span) = fields.get(*nth) {
            out.replace_range(span.clone(), word);
        }
    }
    out
}

/// What a command line names as root; the kernel takes the last one.
pub fn root_of(line: &str) -> Option<&str> {
    line.split_whitespace().filter_map(|word| word.strip_prefix("root=")).next_back()
}

/// The kernel's command line: where its root is, and zswap before the swap area where there is one (the article's share of memory).
///
/// # Errors
/// [`MoveError::Missing`] where it names no root.
pub fn command_line(text: &str, new: &New) -> Result<String, MoveError> {
    let end = text.find(['\r', '\n']).unwrap_or(text.len());
    let (mut line, rest) = (text[..end].to_owned(), &text[end..]);
    if !line.split(' ').any(|word| word.starts_with("root=")) {
        let what = "cmdline.txt names no root=, so that it is not known how this system starts";
        return Err(MoveError::Missing(what.to_owned()));
    }
    let partuuid = format!("PARTUUID={}", new.root_partuuid);
    let mut set = |name: &str, value: Option<&str>| line = with_parameter(&line, name, value);
    set("root", Some(&partuuid));
    set("rootfstype", Some(&new.fs));
    // Of the old file system, and of the old swap area.
    set("rootflags", None);
    set("resume", None);
    set("rootwait", Some(""));
    if new.swap_uuid.is_some() {
        set("zswap.enabled", Some("1"));
        set("zswap.max_pool_percent", Some("15"));
    }
    Ok(format!("{line}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> New {
        New {
            root_uuid: "u-root".into(),
            root_partuuid: "p-root".into(),
            fs: "btrfs".into(),
            options: vec!["noatime".into(), "compress=zstd:1".into()],
            swap_uuid: Some("u-swap".into()),
            boot_partuuid: None,
        }
    }

    #[test]
    fn only_what_moved_is_another() {
        let old = "# a comment with / in it\nproc            /proc           proc    defaults          0       0\n\
                   PARTUUID=5e3da3da-01  /boot/firmware  vfat    defaults          0       2\n\
                   PARTUUID=5e3da3da-02  /               ext4    defaults,noatime,errors=remount-ro  0       1\n\
                   /var/swap none swap sw 0 0\n//nas/x /mnt/x cifs noauto 0 0";
        let said = fstab(old, &new());
        let wanted = "# a comment with / in it\nproc            /proc           proc    defaults          0       0\n\
                      PARTUUID=5e3da3da-01  /boot/firmware  vfat    defaults          0       2\n\
                      UUID=u-root  /               btrfs    defaults,noatime,compress=zstd:1  0       0\n\
                      # before the move: /var/swap none swap sw 0 0\n//nas/x /mnt/x cifs noauto 0 0\n\
                      UUID=u-swap none swap sw,pri=10 0 0\n";
        assert_eq!(said, wanted);
        let moved = New { boot_partuuid: Some("p-boot".into()), swap_uuid: None, ..new() };
        let said = fstab(&old.replace('\n', "\r\n"), &moved);
        assert!(said.contains("PARTUUID=p-boot  /boot/firmware") && said.contains("\r\n/var/swap none swap"), "{said}");
        assert_eq!(fstab("", &moved), "UUID=u-root / btrfs defaults,noatime,compress=zstd:1 0 0\n");
    }

    #[test]
    fn the_command_line_leads_to_the_new_root() {
        let old = "console=tty1 root=PARTUUID=5e3da3da-02 rootfstype=ext4 rootflags=data=writeback fsck.repair=yes quiet\nmore\n";
        let said = command_line(old, &new()).unwrap();
        let wanted = "console=tty1 root=PARTUUID=p-root rootfstype=btrfs fsck.repair=yes quiet rootwait zswap.enabled=1 \
                      zswap.max_pool_percent=15\nmore\n";
        assert_eq!(said, wanted);
        assert!(command_line("quiet\n", &new()).is_err());
    }
}
