//! Weights that mean nothing: as the process's own memory, or in a file of the tier that is then mapped, as llama.cpp does.

use super::toucher::{Task, region};
use basics::decoding::Decoding;
use basics::{Bytes, Job};
use rustix::fs::{Advice, fadvise};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use sys::region::Region;
use sys::weights::Weights;

/// Written between two looks at whether to go on.
const PIECE: usize = 4 << 20;

/// Makes them; none when `cancel` was set meanwhile. `told` is called now and then with how much is done.
pub(super) fn make(
    decoding: &Decoding,
    task: &Task,
    cancel: &AtomicBool,
    told: impl FnMut(Bytes),
) -> Result<Option<Weights>, String> {
    let Some(path) = &task.file else {
        let weights = region(decoding.size)?;
        // In the order of the file, as a model is loaded: the kernel's lists remember in which order pages came, and pages that
        // are touched in another order than they came in are kept by chance (a tenth to two fifths, by two threads with a half each).
        let job = Job { size: Some(decoding.size), threads: 1, ..task.job.clone() };
        // Nothing more than reading a model into memory does: what is then swapped is the prompt's to find out.
        let whole = engine::fill(&job, &weights, false, cancel, told).map_err(|error| error.to_string())?;
        return Ok(whole.then(|| Weights::of(weights)));
    };
    let wrong = |error: std::io::Error| format!("the weights in {}: {error}", path.display());
    let file = write(path, decoding.size, task.job.seed, cancel, told).map_err(wrong)?;
    let Some(file) = file else { return Ok(None) };
    // As llama.cpp opens one (llama-mmap.cpp): read-ahead doubles.
    let _ = fadvise(&file, 0, None, Advice::Sequential);
    let len = usize::try_from(decoding.size.0).map_err(|_| format!("{} cannot be mapped here", decoding.size))?;
    Weights::map(&file, len).map(Some).map_err(wrong)
}

/// Room for keys and values, cleared as llama.cpp clears it once the weights are there (`ggml_backend_buffer_clear`): what the kernel
/// then keeps of it, whatever comes, depends on it. None when `cancel` was set meanwhile.
pub(super) fn cache(decoding: &Decoding, cancel: &AtomicBool) -> Result<Option<Region>, String> {
    let cache = region(Bytes(decoding.cache().0.max(1)))?;
    let zeros = vec![0; PIECE];
    for at in (0..cache.size()).step_by(PIECE) {
        if cancel.load(Relaxed) {
            return Ok(None);
        }
        cache.fill(at, &zeros[..PIECE.min(cache.size() - at)]);
    }
    Ok(Some(cache))
}

fn write(
    path: &Path,
    size: Bytes,
    seed: u64,
    cancel: &AtomicBool,
    mut told: impl FnMut(Bytes),
) -> std::io::Result<Option<File>> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut piece = vec![0; PIECE];
    let mut done = 0;
    while done < size.0 {
        if cancel.load(Relaxed) {
            return Ok(None);
        }
        let len = (size.0 - done).min(PIECE as u64) as usize;
        engine::random(&mut piece[..len], seed, done);
        file.write_all(&piece[..len])?;
        done += len as u64;
        told(Bytes(done));
    }
    file.sync_data()?;
    // It is read anew, as one that was there before.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    Ok(Some(file))
}
