//! A disk behind compressed memory: what does not compress, and what was not touched for a while, is written to it and its memory
//! freed. The kernel moves nothing by itself; whoever uses zram so asks it again and again, and a thread here does the same.

use super::Needs;
use crate::RunError;
use crate::emulated::Emulated;
use basics::pressure::Area as Spec;
use change::{LoopDevice, TestFile, zram};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two times that what does not compress goes to the disk.
const ROUND: Duration = Duration::from_millis(500);
/// So many rounds a page may lie untouched before it goes there too: 10 s, as the first minutes of a program need.
const IDLE: u32 = 20;

/// The disk, ready to be given to zram.
pub(super) struct Behind {
    path: PathBuf,
    below: Below,
}

enum Below {
    File(Box<(LoopDevice, TestFile)>),
    Emulated(Box<Emulated>),
}

impl Behind {
    pub fn of(spec: &Spec, emulator: Option<Emulated>, needs: &Needs<'_>) -> Result<Self, RunError> {
        match (spec, emulator) {
            (_, Some(mut emulated)) => {
                let path = emulated.device()?;
                Ok(Behind { path, below: Below::Emulated(Box::new(emulated)) })
            }
            (Spec::File { dir, size }, None) => {
                let file = TestFile::create(needs.journal, needs.run, dir, *size)?;
                let device = LoopDevice::attach(needs.journal, needs.run, file.path(), 4096)?;
                Ok(Behind { path: device.path().to_owned(), below: Below::File(Box::new((device, file))) })
            }
            _ => Err(RunError::Load { what: format!("{} cannot stand behind zram", spec.describe()) }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes it away, once zram let it go.
    pub fn take_down(self) -> Vec<RunError> {
        match self.below {
            Below::File(both) => {
                let (device, file) = *both;
                [device.detach().err(), file.remove().err()].into_iter().flatten().map(RunError::from).collect()
            }
            Below::Emulated(emulated) => emulated.end().into_iter().collect(),
        }
    }
}

/// Has a zram device write to the disk behind it, until it is dropped.
pub(super) struct Writer {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn of(device: &Path) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (device, told) = (device.to_owned(), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            let mut round = 0;
            while !told.load(Relaxed) {
                if let Err(error) = one(&device, round) {
                    tracing::debug!("{}: {error}", device.display());
                }
                round += 1;
                std::thread::park_timeout(ROUND);
            }
        });
        Writer { over, thread: Some(thread) }
    }
}

fn one(device: &Path, round: u32) -> std::io::Result<()> {
    zram::write_back(device, "huge")?;
    if round % IDLE == IDLE - 1 {
        // Those marked the last time and not touched since; then all that there are now are marked.
        zram::write_back(device, "idle")?;
        zram::mark_idle(device)?;
    }
    Ok(())
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
