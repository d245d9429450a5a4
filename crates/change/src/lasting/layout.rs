//! Where a distribution keeps what: the kernel's command line, the firmware's settings, units. Found by what is there, below a root.

use super::text::{self, Form};
use machine::Root;
use std::path::{Path, PathBuf};

/// Where the kernel's command line is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandLine {
    /// The first line of a file.
    Line(PathBuf),
    /// A variable of a file, which something else makes the command line of.
    Variable { path: PathBuf, name: &'static str, form: Form, then: Option<&'static str> },
}

/// Boards whose boot script reads `extraargs`.
const BOARDS: [&str; 3] = ["/boot/armbianEnv.txt", "/boot/orangepiEnv.txt", "/boot/dietpiEnv.txt"];
/// Where packages put units; older distributions have them below `/lib`.
const UNITS: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];

/// Where the kernel's command line is set here.
pub(super) fn command_line(root: &Root) -> Option<CommandLine> {
    // Debian 12 moved the firmware's partition, and left a note in place of the file.
    let pi = ["/boot/firmware/cmdline.txt", "/boot/cmdline.txt"].map(PathBuf::from);
    let is_read = |path: &&PathBuf| root.text(path).get().is_some_and(|text| !text.contains("DO NOT EDIT"));
    if let Some(path) = pi.iter().find(is_read) {
        return Some(CommandLine::Line(path.clone()));
    }
    let variable = |path: &str, name, form, then| CommandLine::Variable { path: path.into(), name, form, then };
    if let Some(path) = BOARDS.iter().find(|path| root.exists(path)) {
        return Some(variable(path, "extraargs", Form::Plain, None));
    }
    if root.exists("/etc/default/grub") {
        return Some(variable("/etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT", Form::Shell, Some("update-grub")));
    }
    if root.exists("/etc/default/u-boot") {
        return Some(variable("/etc/default/u-boot", "U_BOOT_PARAMETERS", Form::Shell, Some("u-boot-update")));
    }
    let systemd = Path::new("/etc/kernel/cmdline");
    root.exists(systemd).then(|| CommandLine::Line(systemd.to_owned()))
}

/// The Raspberry Pi firmware's settings.
pub(super) fn config_txt(root: &Root) -> Option<PathBuf> {
    let all = ["/boot/firmware/config.txt", "/boot/config.txt"].map(PathBuf::from);
    all.into_iter()
        .find(|path| root.text(path).get().is_none_or(|text| !text.contains("DO NOT EDIT")) && root.exists(path))
}

/// Where a way back is put for a machine that does not start: a card's boot partition is what another computer can read.
pub(super) fn boot_folder(root: &Root) -> Option<PathBuf> {
    ["/boot/firmware", "/boot"].map(PathBuf::from).into_iter().find(|path| root.exists(path))
}

/// The unit's own file.
pub(super) fn unit(root: &Root, name: &str) -> Option<PathBuf> {
    let mut folders = ["/etc/systemd/system"].into_iter().chain(UNITS).map(|folder| Path::new(folder).join(name));
    folders.find(|path| root.real(path).is_some_and(|real| real != Path::new("/dev/null")) && root.exists(path))
}

/// What the unit's file says it is wanted by.
pub(super) fn wanted_by(root: &Root, unit: &Path) -> Option<String> {
    let text = root.text(unit).into_option()?;
    let targets = text::assignment(&text, "WantedBy", Form::Plain)?;
    targets.split_whitespace().next().map(str::to_owned)
}

/// The file of the administrator that sets it and comes last.
pub(super) fn sysctl_file(root: &Root, name: &str) -> Option<PathBuf> {
    let folder = Path::new("/etc/sysctl.d");
    let own = root.names(folder).into_iter().filter(|file| file.ends_with(".conf")).map(|file| folder.join(file));
    let mut files: Vec<PathBuf> = own.collect();
    files.sort();
    // sysctl(8) reads it after all others; systemd's does by a link in the folder.
    files.push("/etc/sysctl.conf".into());
    let sets =
        |path: &PathBuf| root.text(path).get().is_some_and(|text| text::assignment(text, name, Form::Sysctl).is_some());
    files.into_iter().rev().find(sets)
}
