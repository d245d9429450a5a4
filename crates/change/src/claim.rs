//! Kernel settings and swap are the machine's, and there is one machine: what one program sets for a run, a second one would take for what was
//! there before, and the pages of both would go to the swap of either. So they belong to one process at a time. What says so is a lock on a
//! folder of the kernel's own, which leaves nothing behind and ends with its process however that ends.

use crate::error::ChangeError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// There on every Linux, in each container too (which then knows of none outside it).
const LOCKED: &str = "/proc/sys/vm";

static HELD: Mutex<Weak<File>> = Mutex::new(Weak::new());

/// Settings and swap are this process's as long as one of these is there. Nothing where the kernel does not lock.
#[derive(Debug, Clone)]
pub struct Claim {
    #[allow(dead_code, reason = "only its life counts")]
    lock: Option<Arc<File>>,
}

impl Claim {
    /// Takes them, or has a part in what this process took already.
    ///
    /// # Errors
    /// [`ChangeError::Taken`] when another has them.
    pub fn take() -> Result<Self, ChangeError> {
        Self::at(Path::new(LOCKED), &HELD)
    }

    /// The same of the machine below this root; of one that does not run there is nothing to take.
    pub(crate) fn below(root: &Path) -> Result<Self, ChangeError> {
        if root == Path::new("/") { Self::take() } else { Ok(Claim { lock: None }) }
    }

    fn at(path: &Path, held: &Mutex<Weak<File>>) -> Result<Self, ChangeError> {
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = held.upgrade() {
            return Ok(Claim { lock: Some(file) });
        }
        let Ok(file) = File::open(path) else { return Ok(Claim { lock: None }) };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(ChangeError::Taken),
            Err(_) => Ok(Claim { lock: None }),
            Ok(()) => {
                let file = Arc::new(file);
                *held = Arc::downgrade(&file);
                Ok(Claim { lock: Some(file) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_claimed_belongs_to_one_until_its_last_part_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (Mutex::new(Weak::new()), Mutex::new(Weak::new()));
        let first = Claim::at(dir.path(), &one).unwrap();
        let second = Claim::at(dir.path(), &one).unwrap();
        drop(first);
        assert!(matches!(Claim::at(dir.path(), &other), Err(ChangeError::Taken)));
        drop(second);
        let now = Claim::at(dir.path(), &other).unwrap();
        assert!(matches!(Claim::at(dir.path(), &one), Err(ChangeError::Taken)));
        drop(now);
        assert!(Claim::at(Path::new("/nowhere"), &one).unwrap().lock.is_none());
    }
}
