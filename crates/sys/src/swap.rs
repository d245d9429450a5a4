//! swapon(2) and swapoff(2), which neither the standard library nor rustix offers.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// linux/swap.h: the lowest bits of the flags are the priority.
const SWAP_FLAG_PREFER: libc::c_int = 0x8000;
/// The largest priority.
pub const LARGEST_PRIORITY: u16 = 0x7fff;

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Switches the swap area at `path` on, without discards. With a priority it is filled before those of a lower one;
/// without, the kernel gives it one below all others.
///
/// # Errors
/// `InvalidInput` for a priority above [`LARGEST_PRIORITY`]; the kernel's: `EBUSY` when it is on already, `EINVAL` when there is no swap
/// header, or the file has holes, `EPERM` without rights or when too many are on.
pub fn on(path: &Path, priority: Option<u16>) -> io::Result<()> {
    let path = c_path(path)?;
    let flags = match priority {
        Some(priority) if priority > LARGEST_PRIORITY => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a swap priority is 0 to 32767"));
        }
        Some(priority) => SWAP_FLAG_PREFER | libc::c_int::from(priority),
        None => 0,
    };
    // SAFETY: the path is a C string that lives through the call; the kernel only reads it.
    let result = unsafe { libc::swapon(path.as_ptr(), flags) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Switches it off; what it holds goes back into memory first, or to other swap areas, which can take long.
///
/// # Errors
/// The kernel's: `ENOMEM` when its content does not fit into memory, `EINVAL` when it is not on, `EINTR` when a signal
/// came.
pub fn off(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path is a C string that lives through the call; the kernel only reads it.
    let result = unsafe { libc::swapoff(path.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        let missing = Path::new("/tiermark/no/such/area");
        assert!(on(missing, Some(7)).is_err() && off(missing).is_err());
        assert_eq!(on(missing, Some(0x8000)).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(off(Path::new("a\0b")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
