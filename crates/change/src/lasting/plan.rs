//! From settings to files: what each file would say. Nothing is written here.

use super::bootable;
use super::content::Content;
use super::layout::{self, CommandLine};
use super::text::{self, Form};
use crate::error::ChangeError;
use crate::wanted::Wanted;
use machine::Root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// What somebody recommends, with the name that its files will have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The rule that recommends it.
    pub rule: String,
    /// What for, a few words: the first line of a file of our own.
    pub title: String,
    /// Each.
    pub wanted: Vec<Wanted>,
}

/// One file before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Where, as the machine that lives there names it, without links but for the last component of a link.
    pub path: PathBuf,
    /// What stands there.
    pub before: Content,
    /// What shall.
    pub wanted: Content,
    /// Where a copy of what stood there is put, for a file without which the machine might not start.
    pub way_back: Option<PathBuf>,
}

impl Edit {
    /// As a unified diff, or in words where it is a link.
    pub fn diff(&self) -> String {
        let path = self.path.display();
        let name =
            |content: &Content| if *content == Content::Absent { "/dev/null".to_owned() } else { path.to_string() };
        let link = |sign: char, content: &Content| match content {
            Content::Link { to } => format!("{sign}{path} -> {}\n", to.display()),
            _ => String::new(),
        };
        let links = link('-', &self.before) + &link('+', &self.wanted);
        if !links.is_empty() {
            return format!("--- {}\n+++ {}\n{links}", name(&self.before), name(&self.wanted));
        }
        let mut options = diffy::DiffOptions::new();
        options.set_original_filename(name(&self.before)).set_modified_filename(name(&self.wanted));
        options.create_patch(self.before.text(), self.wanted.text()).to_string()
    }
}

/// A kernel setting that holds now, beside the file that makes it hold later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// The file below `/proc/sys` or `/sys`.
    pub path: PathBuf,
    /// As the kernel said it.
    pub before: String,
    /// As it was asked for.
    pub wanted: String,
}

/// What would be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Planned {
    /// What for; those that hold already are left out.
    pub settings: Vec<Settings>,
    /// Files, those that would not change left out.
    pub edits: Vec<Edit>,
    /// Kernel settings that take it at once; none below another root than `/`.
    pub live: Vec<Live>,
    /// Commands that must follow, as the distribution has them.
    pub then: Vec<String>,
}

/// Makes a plan, file by file.
pub(super) struct Planner<'r> {
    root: &'r Root,
    planned: Planned,
    then: BTreeSet<String>,
}

/// A file that would keep the machine from starting if it were wrong.
const BOOT_FILES: [&str; 3] = ["cmdline.txt", "config.txt", "fstab"];

impl<'r> Planner<'r> {
    pub(super) fn new(root: &'r Root) -> Self {
        Planner { root, planned: Planned::default(), then: BTreeSet::new() }
    }

    /// Adds what a rule wants; nothing of it where one of its settings cannot be made.
    pub(super) fn add(&mut self, settings: &Settings) -> Result<(), ChangeError> {
        let (edits, live, then) = (self.planned.edits.clone(), self.planned.live.clone(), self.then.clone());
        for wanted in &settings.wanted {
            if let Err(error) = self.one(settings, wanted).and_then(|()| self.starts()) {
                (self.planned.edits, self.planned.live, self.then) = (edits, live, then);
                return Err(error);
            }
        }
        self.planned.settings.push(settings.clone());
        Ok(())
    }

    pub(super) fn done(self) -> Planned {
        let mut planned = self.planned;
        planned.edits.retain(|edit| !edit.before.says_the_same(&edit.wanted));
        planned.then = self.then.into_iter().collect();
        if planned.edits.is_empty() && planned.live.is_empty() {
            planned.settings.clear();
        }
        planned
    }

    fn one(&mut self, settings: &Settings, wanted: &Wanted) -> Result<(), ChangeError> {
        let rule = &settings.rule;
        match wanted {
            Wanted::Sysctl { name, value } => {
                let set = |text: &str| Ok(text::assigned(text, name, value, Form::Sysctl));
                match layout::sysctl_file(self.root, name) {
                    Some(path) => self.edit(&path, set)?,
                    None => self.own(&format!("/etc/sysctl.d/99-tiermark-{rule}.conf"), settings, set)?,
                }
                self.live(Path::new("/proc/sys").join(name.replace('.', "/")), value);
            }
            Wanted::Sysfs { path, value } => {
                self.line(&format!("/etc/tmpfiles.d/tiermark-{rule}.conf"), settings, &wanted.line())?;
                self.live(path.clone(), value);
            }
            Wanted::Queue { disk, name, value } => {
                self.line(&format!("/etc/udev/rules.d/99-tiermark-{rule}.rules"), settings, &wanted.line())?;
                self.live(Path::new("/sys/block").join(disk).join("queue").join(name), value);
            }
            Wanted::Boot { name, value } => self.boot(name, value.as_deref())?,
            Wanted::Firmware { name, value } => {
                let path = layout::config_txt(self.root).ok_or_else(|| {
                    lacks(
                        "this machine has no config.txt of the Raspberry Pi's firmware below /boot",
                        "mount its boot partition there",
                    )
                })?;
                self.edit(&path, |text| Ok(text::firmware(text, name, value)))?;
            }
            Wanted::Mount { at, add, drop } => {
                let at_text = at.to_string_lossy();
                self.edit(Path::new("/etc/fstab"), |text| {
                    text::mount_options(text, &at_text, add, drop).ok_or_else(|| {
                        lacks(
                            format!("/etc/fstab has no line for {at_text}"),
                            "who mounts it otherwise has its options",
                        )
                    })
                })?;
            }
            Wanted::Unit { name, enabled: false } => {
                let path = Path::new("/etc/systemd/system").join(name);
                let link = Content::Link { to: "/dev/null".into() };
                match self.standing(&path)? {
                    Content::File { .. } => {
                        let what = format!("{} is a unit of the administrator's own", path.display());
                        return Err(lacks(what, "it is left; disable it with systemctl"));
                    }
                    _ => self.put(&path, link)?,
                }
            }
            Wanted::Unit { name, enabled: true } => self.enabled(name)?,
            Wanted::Tool { tool, section, name, value } => {
                let path = format!("{}/90-tiermark-{rule}.conf", tool.folder());
                self.own(&path, settings, |text| Ok(text::in_section(text, section, name, value)))?;
            }
            Wanted::Variable { path, name, value } => {
                self.edit(path, |text| Ok(text::assigned(text, name, value, Form::Shell)))?;
            }
            Wanted::Redis { .. } => {
                let main = Path::new("/etc/redis/redis.conf");
                let own = format!("/etc/redis/tiermark-{rule}.conf");
                self.edit(main, |text| Ok(text::line(text, &format!("include {own}"))))?;
                self.line(&own, settings, &wanted.line())?;
                self.then.insert("systemctl restart redis-server".to_owned());
            }
        }
        Ok(())
    }

    /// With all that is planned the machine still starts, as far as can be seen.
    fn starts(&self) -> Result<(), ChangeError> {
        let changed = self.planned.edits.iter().filter(|edit| !edit.before.says_the_same(&edit.wanted));
        for edit in changed {
            bootable::check(self.root, &edit.path, edit.before.text(), edit.wanted.text())?;
        }
        Ok(())
    }

    /// The kernel's command line, wherever it is.
    fn boot(&mut self, name: &str, value: Option<&str>) -> Result<(), ChangeError> {
        let parameter = Path::new("/sys/module").join(name.replacen('.', "/parameters/", 1));
        match layout::command_line(self.root) {
            None => {
                return Err(lacks(
                    "no file with the kernel's command line was found (cmdline.txt, armbianEnv.txt, /etc/default/grub, …)",
                    "mount its boot partition at /boot, or add it by hand where this boot loader has it",
                ));
            }
            Some(CommandLine::Line(path)) => self.edit(&path, |text| {
                let new = text::command_line(text, name, value);
                let first = new.lines().next().unwrap_or_default();
                if !first.split_whitespace().any(|word| word.starts_with("root=")) {
                    let what = format!("{} names no root=", path.display());
                    return Err(lacks(what, "a machine that is started with it may not start; look at it first"));
                }
                Ok(new)
            })?,
            Some(CommandLine::Variable { path, name: variable, form, then }) => {
                self.edit(&path, |text| {
                    let old = text::assignment(text, variable, form).unwrap_or_default();
                    let new = text::with_parameter(old, name, value);
                    Ok(if new == old { text.to_owned() } else { text::assigned(text, variable, &new, form) })
                })?;
                self.then.extend(then.map(str::to_owned));
            }
        }
        // zswap takes its settings while it runs; of other modules it is not known.
        if let Some(value) = value.filter(|_| name.starts_with("zswap.")) {
            self.live(parameter, value);
        }
        Ok(())
    }

    fn enabled(&mut self, name: &str) -> Result<(), ChangeError> {
        let own = Path::new("/etc/systemd/system").join(name);
        if self.standing(&own)? == (Content::Link { to: "/dev/null".into() }) {
            self.put(&own, Content::Absent)?;
        }
        let unit = layout::unit(self.root, name).ok_or_else(|| {
            lacks(format!("the unit {name} is not installed here"), "install the package that brings it")
        })?;
        let target = layout::wanted_by(self.root, &unit).ok_or_else(|| {
            lacks(format!("{} does not say what wants it", unit.display()), "enable it with systemctl")
        })?;
        let link = Path::new("/etc/systemd/system").join(format!("{target}.wants")).join(name);
        if self.standing(&link)? == Content::Absent {
            self.put(&link, Content::Link { to: unit })?;
        }
        Ok(())
    }

    /// A file that is there.
    fn edit(
        &mut self,
        path: &Path,
        change: impl FnOnce(&str) -> Result<String, ChangeError>,
    ) -> Result<(), ChangeError> {
        let before = self.standing(path)?;
        if before == Content::Absent {
            return Err(lacks(format!("there is no {}", path.display()), "nothing was changed"));
        }
        let new = change(before.text())?;
        self.put(path, before.with_text(new))
    }

    /// A file of our own, which begins with what it is for.
    fn own(
        &mut self,
        path: &str,
        settings: &Settings,
        change: impl FnOnce(&str) -> Result<String, ChangeError>,
    ) -> Result<(), ChangeError> {
        let path = Path::new(path);
        let before = self.standing(path)?;
        let head = format!("# tiermark, rule {}: {}\n", settings.rule, settings.title);
        let text = if before == Content::Absent { head } else { before.text().to_owned() };
        self.put(path, before.with_text(change(&text)?))
    }

    fn line(&mut self, path: &str, settings: &Settings, line: &str) -> Result<(), ChangeError> {
        self.own(path, settings, |text| Ok(text::line(text, line)))
    }

    /// What stands there, or what it was planned to be.
    fn standing(&self, path: &Path) -> Result<Content, ChangeError> {
        let real = self.place(path)?;
        match self.planned.edits.iter().find(|edit| edit.path == real) {
            Some(edit) => Ok(edit.wanted.clone()),
            None => Content::read(&self.root.outside(&real)).map_err(|source| ChangeError::Apply {
                action: "read",
                path: path.to_owned(),
                source,
            }),
        }
    }

    fn put(&mut self, path: &Path, wanted: Content) -> Result<(), ChangeError> {
        let real = self.place(path)?;
        if let Some(edit) = self.planned.edits.iter_mut().find(|edit| edit.path == real) {
            edit.wanted = wanted;
            return Ok(());
        }
        let before = self.standing(path)?;
        let way_back = self.way_back(&real, &before);
        self.planned.edits.push(Edit { path: real, before, wanted, way_back });
        Ok(())
    }

    fn way_back(&self, real: &Path, before: &Content) -> Option<PathBuf> {
        let name = real.file_name()?.to_str().filter(|name| BOOT_FILES.contains(name))?;
        matches!(before, Content::File { .. }).then_some(())?;
        Some(layout::boot_folder(self.root)?.join(format!("{name}.before-tiermark")))
    }

    /// Where a path leads below the root: a link to a file is that file, a link that leads nowhere is refused.
    fn place(&self, path: &Path) -> Result<PathBuf, ChangeError> {
        let unit = path.starts_with("/etc/systemd/system");
        let above = path
            .ancestors()
            .skip(1)
            .find_map(|above| Some((above, self.root.real(above).filter(|real| self.root.exists(real))?)));
        let fail = |source| ChangeError::Apply { action: "find", path: path.to_owned(), source };
        let (above, real) = above.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
        let plain = real.join(path.strip_prefix(above).unwrap_or(path));
        match Content::read(&self.root.outside(&plain)).map_err(fail)? {
            Content::Link { .. } if !unit => {
                self.root.real(&plain).filter(|real| self.root.exists(real)).ok_or_else(|| {
                    lacks(
                        format!("{} is a link that leads nowhere", path.display()),
                        "look at it first; nothing was changed",
                    )
                })
            }
            _ => Ok(plain),
        }
    }

    fn live(&mut self, path: PathBuf, wanted: &str) {
        if !self.root.is_live() {
            return;
        }
        let Ok(before) = crate::value::read(&path) else { return };
        if !crate::value::same(&before, wanted) {
            self.planned.live.push(Live { path, before, wanted: wanted.to_owned() });
        }
    }
}

pub(super) fn lacks(what: impl Into<String>, remedy: &'static str) -> ChangeError {
    ChangeError::Lacks { what: what.into(), remedy }
}
