//! A system, copied to another disk and started from there: its partitions made, its files copied with all that belongs to them and read
//! again, what it says of itself mended, and only then the one line of the boot partition changed that leads to it. The old system stays
//! as it is, and one file on the boot partition leads back to it. What is interrupted goes on by the same command.
#![forbid(unsafe_code)]

mod boot;
mod error;
mod fit;
mod source;
mod table;
mod target;
mod tree;

pub use boot::{Boot, COMMAND_LINE, WAY_BACK};
pub use error::MoveError;
pub use source::Whence;
pub use table::Style;
pub use target::{Fs, Wanted as TargetWanted};

use basics::Bytes;
use basics::units::MIB;
use change::lasting::Settings;
use change::{Journal, Lasting, Tool, Wanted};
use machine::Root;
use source::Source;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use table::Role;
use target::Target;
use tree::{Manifest, OWN, Since, Trees, Watch};

/// Length of a boot partition that goes with the system: that of Raspberry Pi OS.
pub const BOOT_LEN: Bytes = Bytes(512 * MIB);
/// Of files that are there, a file system needs so much more: its own tables, and room to breathe.
const ROOM: f64 = 1.1;
/// Under this name settings of the new system are in its ledger.
const RULE: &str = "move";
/// So often files that the system wrote to meanwhile are copied once more.
const ROUNDS: usize = 3;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Which system.
    pub from: Whence,
    /// Where to.
    pub to: TargetWanted,
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Looking at how much there is.
    Measuring,
    /// Files go over.
    Copying,
    /// Both sides are read.
    Verifying,
}

/// Who is told.
pub trait Progress {
    /// A phase begins, with so many files and bytes in it.
    fn phase(&mut self, _phase: Phase, _files: u64, _bytes: u64) {}
    /// So many more are done.
    fn went_on(&mut self, _files: u64, _bytes: u64) {}
}

/// Nobody is.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moved {
    /// Files of all kinds.
    pub files: u64,
    /// Bytes that were written now.
    pub bytes: u64,
    /// Files that were there from before an interruption.
    pub there: u64,
    /// The partitions: what for, PARTUUID, length.
    pub parts: Vec<(String, String, Bytes)>,
    /// The new root file system's UUID.
    pub root_uuid: String,
    /// The command line that it is started with; none where the way that this system starts is not known.
    pub command_line: Option<String>,
    /// Where that stands.
    pub boot: Option<String>,
    /// What was looked at before the line was written, each a sentence.
    pub checked: Vec<String>,
    /// What is to be known.
    pub notes: Vec<String>,
}

/// What would be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Planned {
    /// Which system.
    pub from: String,
    /// How much its files take.
    pub used: Bytes,
    /// What for, where from, how long, where the target's length is known.
    pub parts: Vec<(String, Bytes, Bytes)>,
    /// Swap files that are not copied.
    pub without: Vec<PathBuf>,
    /// The command line as it is.
    pub command_line: Option<String>,
}

struct Heard<'a> {
    progress: &'a mut dyn Progress,
    interrupted: &'a AtomicBool,
}

impl Watch for Heard<'_> {
    fn went_on(&mut self, files: u64, bytes: u64) {
        self.progress.went_on(files, bytes);
    }

    fn ends(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// Where mounts are made, and for whom.
struct Site<'a> {
    journal: &'a Journal,
    run: &'a str,
    dir: PathBuf,
}

/// Looks, and writes nothing.
///
/// # Errors
/// As [`run`]'s, before anything is written.
pub fn plan(request: &Request, journal: &Journal, run: &str) -> Result<Planned, MoveError> {
    source::apart(&request.from, &request.to.path)?;
    let source = Source::open(&request.from, journal, run, &source::place())?;
    let layout = planned_layout(&request.to)?;
    let name = |role: Role| format!("{role:?}").to_lowercase();
    Ok(Planned {
        from: source.name.clone(),
        used: source.used()?,
        parts: layout.into_iter().flatten().map(|(role, start, len)| (name(role), start, len)).collect(),
        without: source.swap_files.clone(),
        command_line: command_line(&source)?,
    })
}

/// Where each partition would go; none where the target's length is not known yet.
fn planned_layout(to: &TargetWanted) -> Result<Option<table::Layout>, MoveError> {
    let length = |path: &Path| {
        let mut file = fs::File::open(path).ok().filter(|_| !path.is_dir())?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).ok().map(Bytes)
    };
    let size = length(&to.path).or(to.size);
    size.map(|size| table::layout(size, to.style, to.boot, to.swap)).transpose()
}

/// Does it, or goes on with it.
///
/// # Errors
/// [`MoveError`]: until the very end nothing of the source was changed.
pub fn run(
    request: &Request,
    journal: &Journal,
    run: &str,
    progress: &mut dyn Progress,
    interrupted: &AtomicBool,
) -> Result<Moved, MoveError> {
    source::apart(&request.from, &request.to.path)?;
    let site = Site { journal, run, dir: source::place() };
    let source = Source::open(&request.from, journal, run, &site.dir)?;
    let before = command_line(&source)?;
    let used = source.used()?;
    let layout = planned_layout(&request.to)?;
    let room = layout.iter().flatten().find(|(role, ..)| *role == Role::Root).map(|(.., len)| *len);
    if let Some(room) = room.filter(|room| request.to.compress.is_none() && (room.0 as f64) < ROOM * used.0 as f64) {
        let what =
            format!("{used} of files do not fit into {room}; give a larger target, or --fs btrfs --compress zstd:1");
        return Err(MoveError::Usage(what));
    }
    let mut target = Target::open(&request.to, &source.name, journal, run, &site.dir)?;
    let mut moved = Moved { root_uuid: target.state.root_uuid.clone(), ..Moved::default() };
    let mut heard = Heard { progress, interrupted };
    // Also of what was verified before: a system that runs has gone on since. Until all is well again the old one starts, and what the
    // new one was made to say of itself goes first.
    if let (Some(boot), Some(before)) = (&source.boot, &before)
        && target.state.verified
        && boot.read(COMMAND_LINE)?.is_some_and(|now| now != before.as_bytes())
    {
        boot.put(COMMAND_LINE, before.as_bytes())?;
    }
    unretired(target.root(), &site)?;
    let without = source.without(journal, &request.to.path);
    copied(&source, &without, &mut target, &site, &mut heard, &mut moved)?;
    target.state.verified = true;
    target.keep()?;
    let result = fitted(&source, &mut target, before.as_deref(), request, &site, &mut moved);
    tree::settle(target.root())?;
    target.close()?;
    let switch = result?;
    // The very last step: from here on the new system starts.
    if let Some(switch) = switch {
        switch.done()?;
    }
    Ok(moved)
}

/// All files, until both sides are the same.
fn copied(
    source: &Source,
    without: &[PathBuf],
    target: &mut Target,
    site: &Site<'_>,
    heard: &mut Heard<'_>,
    moved: &mut Moved,
) -> Result<(), MoveError> {
    let from = source.root().to_owned();
    for round in 1.. {
        let to = target.root().to_owned();
        let since = source.runs.then(Since::now);
        let trees = Trees { from: &from, to: &to, without, since };
        heard.progress.phase(Phase::Measuring, 0, 0);
        let (files, bytes) = tree::measure(&trees)?;
        heard.progress.phase(Phase::Copying, files, bytes);
        let mut manifest = Manifest::open(&to)?;
        let copied = tree::copy(&trees, &mut manifest, heard)?;
        drop(manifest);
        tree::settle(&to)?;
        target.afresh(site.journal, site.run, &site.dir)?;
        let to = target.root().to_owned();
        let trees = Trees { from: &from, to: &to, without, since };
        heard.progress.phase(Phase::Verifying, files, bytes);
        let manifest = Manifest::open(&to)?;
        let differs = tree::compare(&trees, &manifest, heard)?;
        moved.files = copied.files;
        moved.bytes += copied.bytes;
        moved.there = moved.there.max(if round == 1 { copied.there } else { 0 });
        // What the file system does not take cannot be there.
        let lacking = !copied.lacks.is_empty();
        let real: Vec<&String> =
            differs.really.iter().filter(|what| !(lacking && what.contains("extended attributes"))).collect();
        // A system that runs never stands still; what it wrote to in the last round is told.
        if real.is_empty() && (differs.meanwhile.is_empty() || round == ROUNDS) {
            moved.notes.extend(copied.lacks);
            moved.notes.extend(meanwhile(&differs.meanwhile));
            return Ok(());
        }
        if round == ROUNDS {
            let more = if real.len() > 1 { format!(" and {} more", real.len() - 1) } else { String::new() };
            let what = format!("what was copied is not what is there: {}{more}; nothing was switched", real[0]);
            return Err(MoveError::Differs(what));
        }
        // A file that differs although its length and time do not is copied anew.
        for path in differs.really.iter().filter_map(|what| what.strip_suffix(": what it says differs")) {
            let _ = fs::remove_file(to.join(path.trim_start_matches('/')));
        }
    }
    Ok(())
}

/// What a system that runs wrote to while it was copied for the last time.
fn meanwhile(differs: &[String]) -> Option<String> {
    let mut paths: Vec<&str> = differs.iter().filter_map(|what| what.rsplit_once(": ")).map(|(path, _)| path).collect();
    paths.dedup();
    let (first, more) = (paths.first()?, paths.len() - 1);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "this system wrote to files while they were copied, so that the copy has them as they were shortly before, or half of it: {first}{more}; \
         with less running, the same command brings them over"
    ))
}

/// The one line that leads to the new system, still to be written.
struct Switch {
    boot: Boot,
    before: String,
    after: String,
    /// Whether the old line is kept beside it.
    way_back: bool,
}

impl Switch {
    fn done(self) -> Result<(), MoveError> {
        if self.before == self.after {
            return Ok(());
        }
        if self.way_back && self.boot.read(WAY_BACK)?.is_none() {
            self.boot.put(WAY_BACK, self.before.as_bytes())?;
        }
        self.boot.put(COMMAND_LINE, self.after.as_bytes())
    }
}

/// What the new system says of itself; and the line that leads to it, once all that it names is there.
fn fitted(
    source: &Source,
    target: &mut Target,
    before: Option<&str>,
    request: &Request,
    site: &Site<'_>,
    moved: &mut Moved,
) -> Result<Option<Switch>, MoveError> {
    let root = target.root().to_owned();
    let partuuid = |role: Role| target.parts.iter().find(|(of, _)| *of == role).map(|(_, part)| part.partuuid.clone());
    let mut options = vec!["noatime".to_owned()];
    if let Some(compress) = request.to.compress.as_ref().filter(|_| request.to.fs == Fs::Btrfs) {
        options.push(format!("compress={compress}"));
    }
    let new = fit::New {
        root_uuid: target.state.root_uuid.clone(),
        root_partuuid: partuuid(Role::Root).unwrap_or_default(),
        fs: request.to.fs.as_str().to_owned(),
        options,
        swap_uuid: target.state.swap_uuid.clone(),
        boot_partuuid: partuuid(Role::Boot),
    };
    for (role, part) in &target.parts {
        moved.parts.push((format!("{role:?}").to_lowercase(), part.partuuid.clone(), part.len));
    }
    // From the old text each time: done twice it is as done once.
    let path = root.join("etc/fstab");
    let fstab = fit::fstab(&source.text("etc/fstab").unwrap_or_default(), &new);
    replaced(&path, &fstab)?;
    if new.swap_uuid.is_some() {
        retire(&root, site, moved)?;
    }
    let Some(before) = before else {
        moved.notes.push("this system has no cmdline.txt on a boot partition: how it starts is not known, so nothing leads to the copy yet; its fstab is right".to_owned());
        return Ok(None);
    };
    let after = fit::command_line(before, &new)?;
    let old_boot = source.boot.clone().ok_or_else(|| MoveError::Missing("the boot partition is gone".to_owned()))?;
    references(&root, &new, &after, (target, &old_boot), moved)?;
    moved.command_line = Some(after.clone());
    if let Some(boot) = target.boot.clone() {
        boot.format()?;
        let (files, _) = old_boot.copy_to(&boot)?;
        if boot.all()? != old_boot.all()? {
            let what = "the copy of the boot partition is not what is there; nothing was switched";
            return Err(MoveError::Differs(what.to_owned()));
        }
        moved.files += files;
        moved.boot = Some(boot.describe());
        moved.notes.push("the old disk was not changed: start from the new one, and take the old one out".to_owned());
        return Ok(Some(Switch { boot, before: before.to_owned(), after, way_back: false }));
    }
    target.state.before = Some(before.to_owned());
    target.keep()?;
    moved.boot = Some(old_boot.describe());
    moved.notes.push(format!("the old system starts again once {WAY_BACK} is {COMMAND_LINE}: `tiermark move --undo`"));
    Ok(Some(Switch { boot: old_boot, before: before.to_owned(), after, way_back: true }))
}

/// Who manages the old swap file does so no more; as settings of the new system, which `revert` takes back there.
fn retire(root: &Path, site: &Site<'_>, moved: &mut Moved) -> Result<(), MoveError> {
    let setup = machine::setup(&Root::at(root));
    let mut wanted = Vec::new();
    if root.join("etc/dphys-swapfile").exists() {
        wanted.push(Wanted::Unit { name: "dphys-swapfile.service".to_owned(), enabled: false });
    }
    if setup.rpi_swap {
        let (section, name) = ("Main".to_owned(), "Mechanism".to_owned());
        wanted.push(Wanted::Tool { tool: Tool::RpiSwap, section, name, value: "none".to_owned() });
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let lasting = Lasting::at(root);
    let title = "swap is a partition of its own since the move".to_owned();
    let (planned, refused) = lasting.plan(&[Settings { rule: RULE.to_owned(), title, wanted }]);
    moved.notes.extend(refused.into_iter().map(|(_, why)| format!("the old swap file's manager stays: {why}")));
    if !planned.edits.is_empty() {
        lasting.apply(site.journal, planned)?;
    }
    Ok(())
}

/// What [`retire`] did in a move of before is taken back.
fn unretired(root: &Path, site: &Site<'_>) -> Result<(), MoveError> {
    let lasting = Lasting::at(root);
    for applied in lasting.applied()? {
        if applied.settings.iter().all(|settings| settings.rule == RULE) {
            lasting.revert(site.journal, &applied.id)?;
        }
    }
    Ok(())
}

/// What the line names is there, and the kernel that it starts can read it.
fn references(
    root: &Path,
    new: &fit::New,
    line: &str,
    (target, boot): (&Target, &Boot),
    moved: &mut Moved,
) -> Result<(), MoveError> {
    if !["sbin/init", "usr/sbin/init", "usr/lib/systemd/systemd", "lib/systemd/systemd"]
        .iter()
        .any(|init| root.join(init).symlink_metadata().is_ok())
    {
        let what = "the system has no sbin/init, so it cannot start; nothing was switched";
        return Err(MoveError::Missing(what.to_owned()));
    }
    moved.checked.push("it has an init".to_owned());
    if !target
        .parts
        .iter()
        .any(|(role, part)| *role == Role::Root && line.contains(&format!("root=PARTUUID={}", part.partuuid)))
    {
        return Err(MoveError::Differs(
            "the command line names a root that is not there; nothing was switched".to_owned(),
        ));
    }
    moved.checked.push(format!("root=PARTUUID={} is the target's root partition, {}", new.root_partuuid, new.fs));
    let about = fs::symlink_metadata(root.join(OWN)).is_ok();
    if about {
        moved.checked.push(format!("its file system can be mounted as {}", new.fs));
    }
    let fs = &new.fs;
    match knows(root, fs, boot)? {
        Knows::BuiltIn(kernel) => moved.checked.push(format!("the kernel {kernel} has {fs} built in")),
        Knows::Initramfs(kernel) => moved.notes.push(format!(
            "the kernel {kernel} has {fs} as a module, so that its initramfs has to bring it: etc/initramfs-tools/modules names it, but what the \
             initramfs holds was not looked at; `update-initramfs -u` before the move makes sure"
        )),
        Knows::NoInitramfs(kernel) => {
            return Err(MoveError::Missing(format!(
                "the kernel {kernel} has {fs} as a module alone, and {} starts no initramfs that could bring it (no initrd* or initramfs* there, \
                 or neither auto_initramfs=1 nor initramfs in its config.txt); nothing was switched: take --fs ext4, or add an initramfs",
                boot.describe()
            )));
        }
        Knows::Not(kernel) => {
            let what = format!(
                "the kernel {kernel} has {fs} as a module alone, which it cannot load from a root of {fs} without an initramfs; nothing was \
                 switched: take --fs ext4, or a kernel or an initramfs with {fs}"
            );
            return Err(MoveError::Missing(what));
        }
        Knows::Untold => moved.notes.push(format!(
            "which file systems its kernel has built in is not told below /lib/modules: it must know {fs}"
        )),
    }
    Ok(())
}

/// What the kernels of a system know of a file system; the one that knows least is named.
enum Knows {
    /// Built in.
    BuiltIn(String),
    /// A module, which an initramfs was told to hold, and one is started.
    Initramfs(String),
    /// The same, and none is started.
    NoInitramfs(String),
    /// A module that nothing brings.
    Not(String),
    /// They do not say.
    Untold,
}

fn knows(root: &Path, fs: &str, boot: &Boot) -> Result<Knows, MoveError> {
    let all = fs::read_dir(root.join("lib/modules")).into_iter().flatten().flatten();
    let mut kernels: Vec<PathBuf> = all.map(|entry| entry.path()).collect();
    kernels.sort();
    let mut found = Knows::Untold;
    for kernel in kernels {
        let Ok(text) = fs::read_to_string(kernel.join("modules.builtin")) else { continue };
        let name = kernel.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found = match text.lines().any(|line| line.ends_with(&format!("/{fs}.ko"))) {
            true if matches!(found, Knows::Untold | Knows::BuiltIn(_)) => Knows::BuiltIn(name),
            true => found,
            false if !initramfs_told(root, fs) => return Ok(Knows::Not(name)),
            false if !boot.starts_initramfs()? => return Ok(Knows::NoInitramfs(name)),
            false => Knows::Initramfs(name),
        };
    }
    Ok(found)
}

/// An initramfs is made anew with each kernel, and is told to hold it.
fn initramfs_told(root: &Path, fs: &str) -> bool {
    let modules = fs::read_to_string(root.join("etc/initramfs-tools/modules")).unwrap_or_default();
    modules.lines().any(|line| line.trim() == fs)
}

/// The first file of the boot partition that says how the kernel is started.
fn command_line(source: &Source) -> Result<Option<String>, MoveError> {
    let Some(boot) = &source.boot else { return Ok(None) };
    let Some(bytes) = boot.read(COMMAND_LINE)? else { return Ok(None) };
    // After a move of before the old line is beside it.
    let bytes = boot.read(WAY_BACK)?.unwrap_or(bytes);
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| MoveError::Missing(format!("{COMMAND_LINE} of {} is no text", boot.describe())))
}

/// A file of the target with another text, its owner and mode kept.
fn replaced(path: &Path, text: &str) -> Result<(), MoveError> {
    if fs::read_to_string(path).is_ok_and(|now| now == text) {
        return Ok(());
    }
    let draft = path.with_extension("tiermark-draft");
    let put = || -> std::io::Result<()> {
        if path.exists() {
            fs::copy(path, &draft)?;
            let about = fs::metadata(path)?;
            std::os::unix::fs::chown(
                &draft,
                Some(std::os::unix::fs::MetadataExt::uid(&about)),
                Some(std::os::unix::fs::MetadataExt::gid(&about)),
            )?;
        }
        fs::write(&draft, text)?;
        fs::File::open(&draft)?.sync_all()?;
        fs::rename(&draft, path)
    };
    put().map_err(MoveError::io("write", path))
}

/// Where the boot partition of a system is, for what comes after a move.
fn boot_partition(from: &Whence, journal: &Journal, run: &str) -> Result<Boot, MoveError> {
    let source = Source::open(from, journal, run, &source::place())?;
    source.boot.clone().ok_or_else(|| MoveError::Missing(format!("{} has no boot partition", source.name)))
}

/// Back to the old system: its command line is put in its place again. Where.
///
/// # Errors
/// [`MoveError::Missing`] where nothing was moved.
pub fn undo(from: &Whence, journal: &Journal, run: &str) -> Result<String, MoveError> {
    let boot = boot_partition(from, journal, run)?;
    let before = boot.read(WAY_BACK)?;
    let none = || MoveError::Missing(format!("{} has no {WAY_BACK}: nothing was moved from there", boot.describe()));
    boot.put(COMMAND_LINE, &before.ok_or_else(none)?)?;
    boot.remove(WAY_BACK)?;
    Ok(boot.describe())
}

/// Whether the system that runs is the one that the boot partition leads to.
fn started_by(runs: &str, next: &str, boot: &Boot) -> Result<(), MoveError> {
    match (fit::root_of(runs), fit::root_of(next)) {
        (Some(runs), Some(next)) if runs == next => Ok(()),
        (runs, next) => {
            let word =
                |root: Option<&str>| root.map_or("nothing that is told".to_owned(), |root| format!("root={root}"));
            Err(MoveError::Missing(format!(
                "this system was started with {}, and {COMMAND_LINE} of {} leads to {}: start that one first, and see that all is well",
                word(runs),
                boot.describe(),
                word(next)
            )))
        }
    }
}

/// The new system stays: what leads back to the old one goes. Where.
///
/// # Errors
/// [`MoveError::Missing`] where nothing was moved, and on the running system where the old one still runs.
pub fn finish(from: &Whence, journal: &Journal, run: &str) -> Result<String, MoveError> {
    let boot = boot_partition(from, journal, run)?;
    if boot.read(WAY_BACK)?.is_none() {
        return Err(MoveError::Missing(format!("{} has no {WAY_BACK}: nothing was moved from there", boot.describe())));
    }
    if *from == Whence::Live && !Path::new("/").join(OWN).join("state.json").exists() {
        let what = "the old system runs still: start the new one first, and see that all is well";
        return Err(MoveError::Missing(what.to_owned()));
    }
    if *from == Whence::Live {
        // A system that was moved once more has such a file, too, and may still be the old one.
        let runs = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let next = boot.read(COMMAND_LINE)?.unwrap_or_default();
        started_by(&runs, &String::from_utf8_lossy(&next), &boot)?;
    }
    boot.remove(WAY_BACK)?;
    if *from == Whence::Live {
        let manifest = Path::new("/").join(OWN).join("manifest");
        match fs::remove_file(&manifest) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(MoveError::io("remove", &manifest)(error));
            }
            _ => {}
        }
    }
    Ok(boot.describe())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_stays_until_the_new_system_runs() {
        let boot = Boot::Folder(PathBuf::from("/boot/firmware"));
        let next = "console=tty1 root=PARTUUID=new rootfstype=btrfs quiet\n";
        assert!(started_by("8250.nr_uarts=0 root=PARTUUID=new rootfstype=btrfs quiet", next, &boot).is_ok());
        let old = started_by("root=PARTUUID=old quiet", next, &boot).unwrap_err().to_string();
        assert!(old.contains("root=PARTUUID=old") && old.contains("leads to root=PARTUUID=new"), "{old}");
        assert!(started_by("", next, &boot).is_err() && started_by("quiet", "quiet", &boot).is_err());
    }

    #[test]
    fn a_module_needs_an_initramfs_that_is_started() {
        let dir = tempfile::tempdir().unwrap();
        let (root, folder) = (dir.path().join("root"), dir.path().join("boot"));
        let boot = Boot::Folder(folder.clone());
        for name in ["root/lib/modules/6.6.51-v8+", "root/etc/initramfs-tools", "boot"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        assert!(matches!(knows(&root, "btrfs", &boot), Ok(Knows::Untold)));
        fs::write(root.join("lib/modules/6.6.51-v8+/modules.builtin"), "kernel/fs/ext4/ext4.ko\n").unwrap();
        assert!(matches!(knows(&root, "ext4", &boot), Ok(Knows::BuiltIn(_))));
        assert!(matches!(knows(&root, "btrfs", &boot), Ok(Knows::Not(_))));
        fs::write(root.join("etc/initramfs-tools/modules"), "# more\nbtrfs\n").unwrap();
        assert!(matches!(knows(&root, "btrfs", &boot), Ok(Knows::NoInitramfs(_))));
        fs::write(folder.join("config.txt"), "[all]\n#auto_initramfs=1\n").unwrap();
        fs::write(folder.join("initramfs8"), "").unwrap();
        assert!(matches!(knows(&root, "btrfs", &boot), Ok(Knows::NoInitramfs(_))));
        for line in ["auto_initramfs=1", "initramfs initramfs8 followkernel"] {
            fs::write(folder.join("config.txt"), format!("[all]\r\n{line}\r\n")).unwrap();
            assert!(matches!(knows(&root, "btrfs", &boot), Ok(Knows::Initramfs(_))));
        }
        fs::remove_file(folder.join("initramfs8")).unwrap();
        assert!(matches!(knows(&root, "btrfs", &boot), Ok(Knows::NoInitramfs(_))));
    }
}
