//! An error number as a sentence that says what it means for a disk.

use std::io;

/// The kernel's own words, and for the errors that a disk gives what is probably behind them.
pub fn in_words(errno: i32) -> String {
    let words = io::Error::from_raw_os_error(errno).to_string();
    let behind = match errno {
        // The numbers are those of every Linux architecture that this program is built for.
        5 => "; the device reports an error or is gone, see the kernel's log (dmesg)",
        6 | 19 => "; the device is gone",
        28 => "; the disk is full: free some room or give a smaller size",
        30 => "; the file system went read-only, often after an error, see the kernel's log (dmesg)",
        _ => "",
    };
    format!("{words}{behind}")
}
