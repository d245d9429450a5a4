//! The way back from a control group: what the journal knows of it and of the controller that was given for it, and how
//! all that is inside is ended.

use super::{CONTROLLER, MARK, PREFIX};
use crate::error::ChangeError;
use crate::kind::{Present, Reversible};
use crate::value::write;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the processes inside may take to end, killed, and the kernel to let the group go.
const SETTLE: Duration = Duration::from_secs(5);

/// Whether a list of controllers has ours.
pub(super) fn lists(file: &Path) -> io::Result<bool> {
    Ok(std::fs::read_to_string(file)?.split_ascii_whitespace().any(|controller| controller == CONTROLLER))
}

fn gone<T>(result: &io::Result<T>) -> bool {
    let gone = |e: &io::Error| e.kind() == io::ErrorKind::NotFound || Errno::from_io_error(e) == Some(Errno::NODEV);
    result.as_ref().is_err_and(gone)
}

/// The groups in a group.
fn groups_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut groups = Vec::new();
    for found in std::fs::read_dir(dir)? {
        let found = found?;
        if found.file_type()?.is_dir() {
            groups.push(found.path());
        }
    }
    Ok(groups)
}

/// The controller given to the groups of a v2 hierarchy. Before: `cgroup.subtree_control` does not list it. Wanted: it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ControllerChange {
    /// The file `cgroup.subtree_control`.
    target: PathBuf,
}

impl ControllerChange {
    pub(super) fn of(target: PathBuf) -> Self {
        ControllerChange { target }
    }
}

impl Reversible for ControllerChange {
    fn target(&self) -> String {
        format!("the memory controller in {}", self.target.display())
    }

    fn present(&self) -> Result<Present, ChangeError> {
        let fail = |source| ChangeError::Undo { action: "look at", path: self.target.clone(), source };
        let listed = lists(&self.target);
        if gone(&listed) || !listed.map_err(fail)? {
            return Ok(Present::Before);
        }
        for group in groups_in(self.target.parent().unwrap_or(Path::new("/"))).map_err(fail)? {
            if group.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes())) {
                return Ok(Present::Away(format!("limits another group of tiermark, {}", group.display())));
            }
            if lists(&group.join("cgroup.subtree_control")).unwrap_or(false) {
                return Ok(Present::Neither(format!("came to be used by {}", group.display())));
            }
        }
        Ok(Present::Wanted)
    }

    fn undo(&self) -> Result<(), ChangeError> {
        let fail = |source| ChangeError::Undo { action: "write -memory to", path: self.target.clone(), source };
        write(&self.target, &format!("-{CONTROLLER}")).map_err(fail)
    }

    fn undone(&self) -> &'static str {
        "was taken back"
    }

    fn of_this_boot(&self) -> bool {
        true
    }
}

/// Before: no such group. Wanted: it is there, with whatever runs in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupChange {
    /// Its directory.
    target: PathBuf,
}

impl GroupChange {
    pub(super) fn of(target: PathBuf) -> Self {
        GroupChange { target }
    }
}

impl Reversible for GroupChange {
    fn target(&self) -> String {
        format!("the control group {}", self.target.display())
    }

    fn present(&self) -> Result<Present, ChangeError> {
        let processes = processes(&self.target);
        if gone(&processes) {
            return Ok(Present::Before);
        }
        let fail = |source| ChangeError::Undo { action: "look at", path: self.target.clone(), source };
        let own = processes.map_err(fail)?.contains(&rustix::process::getpid());
        let away = "holds this process, which cannot end itself".to_owned();
        Ok(if own { Present::Away(away) } else { Present::Wanted })
    }

    fn undo(&self) -> Result<(), ChangeError> {
        remove(&self.target, Instant::now() + SETTLE).map_err(|source| ChangeError::Undo {
            action: "remove the control group",
            path: self.target.clone(),
            source,
        })
    }

    fn undone(&self) -> &'static str {
        "was removed"
    }

    fn of_this_boot(&self) -> bool {
        true
    }
}

/// Those inside. One of another PID namespace is shown as 0, which to kill would mean all of our own group.
fn processes(dir: &Path) -> io::Result<Vec<Pid>> {
    let text = std::fs::read_to_string(dir.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect())
}

/// Whether it was started for a group of ours, or by one that was.
fn is_ours(process: Pid) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).unwrap_or_default();
    let named = |one: &[u8]| one.strip_prefix(MARK.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
    environment.split(|byte| *byte == 0).any(named)
}

/// Puts into the group above what somebody else put into this one: a shell from which the run was watched is not ours to end.
/// True when it is there, or has ended.
fn let_go(dir: &Path, process: Pid) -> bool {
    let Some(above) = dir.parent() else { return false };
    let moved = write(&above.join("cgroup.procs"), &process.as_raw_nonzero().to_string());
    moved.is_ok() || moved.is_err_and(|error| Errno::from_io_error(&error) == Some(Errno::SRCH))
}

/// Kills what is inside and ours, and removes the group and those within it.
fn remove(dir: &Path, until: Instant) -> io::Result<()> {
    loop {
        match empty(dir, until) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            emptied => emptied?,
        }
        match std::fs::remove_dir(dir) {
            // What was killed is counted for a moment more.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::DirectoryNotEmpty)
                    && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => return removed,
        }
    }
}

fn empty(dir: &Path, until: Instant) -> io::Result<()> {
    for within in groups_in(dir)? {
        remove(&within, until)?;
    }
    // Again and again, for what was forked meanwhile.
    loop {
        let inside = processes(dir)?;
        if inside.is_empty() {
            break;
        }
        if inside.contains(&rustix::process::getpid()) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "it holds this process"));
        }
        if Instant::now() >= until {
            let why = format!("{} processes neither end nor can be put into the group above", inside.len());
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        let kept = inside.iter().filter(|process| is_ours(**process) || !let_go(dir, **process)).count();
        // Linux 5.14, v2 only.
        if kept == inside.len() && write(&dir.join("cgroup.kill"), "1").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        // Listed again, so that nothing is killed that has just been let go.
        for process in processes(dir)?.into_iter().filter(|process| is_ours(*process)) {
            let _ = kill_process(process, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // v1 only: page cache that it paid for. What stays goes to the group above.
    let _ = write(&dir.join("memory.force_empty"), "0");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A v2 hierarchy of plain files.
    fn hierarchy() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let control = dir.path().join("cgroup.subtree_control");
        std::fs::write(&control, "cpu memory\n").unwrap();
        (dir, control)
    }

    #[test]
    fn the_controller_is_taken_back_unless_it_is_used() {
        let (dir, control) = hierarchy();
        let change = ControllerChange { target: control.clone() };
        assert_eq!(change.present().unwrap(), Present::Wanted);
        let slice = dir.path().join("system.slice");
        std::fs::create_dir(&slice).unwrap();
        std::fs::write(slice.join("cgroup.subtree_control"), "cpu\n").unwrap();
        assert_eq!(change.present().unwrap(), Present::Wanted);
        std::fs::write(slice.join("cgroup.subtree_control"), "cpu memory\n").unwrap();
        assert!(matches!(change.present().unwrap(), Present::Neither(how) if how.ends_with("system.slice")));
        std::fs::remove_dir_all(slice).unwrap();
        std::fs::create_dir(dir.path().join("tiermark-other")).unwrap();
        assert!(matches!(change.present().unwrap(), Present::Away(_)));
        std::fs::remove_dir(dir.path().join("tiermark-other")).unwrap();
        change.undo().unwrap();
        assert_eq!(std::fs::read_to_string(&control).unwrap(), "-memory\n");
        assert_eq!(change.present().unwrap(), Present::Before);
        drop(dir);
        assert_eq!(change.present().unwrap(), Present::Before);
    }

    #[test]
    fn who_is_in_it_itself_does_not_kill_itself() {
        let dir = tempfile::tempdir().unwrap();
        let change = GroupChange { target: dir.path().to_owned() };
        assert_eq!(change.present().unwrap(), Present::Before, "no control group");
        std::fs::write(dir.path().join("cgroup.procs"), format!("0\n{}\n{}\n", i32::MAX, std::process::id())).unwrap();
        assert!(matches!(change.present().unwrap(), Present::Away(_)));
        assert_eq!(processes(dir.path()).unwrap().len(), 2, "0 is no process");
        assert!(change.undo().unwrap_err().to_string().contains("holds this process"));
    }
}
