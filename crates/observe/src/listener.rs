//! Which process listens at an address: the kernel's table of sockets says which socket it is, and the processes' open files
//! whose that is (proc_pid_net(5), proc_pid_fd(5)).

use procfs_core::net::{TcpNetEntries, TcpState};
use procfs_core::{ExplicitSystemInfo, FromBufReadSI};
use std::fs::{self, File};
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::Path;

/// The process that listens there; none when there is none, or its files are another user's.
pub fn listener(at: SocketAddr) -> Option<u32> {
    let socket = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| socket(Path::new(table), at))?;
    let link = format!("socket:[{socket}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|target| target.as_os_str() == link.as_str())
    };
    // One that hands its socket to its children is before them.
    pids.filter(holds).min()
}

/// The inode of the socket that listens there, or at all addresses.
fn socket(table: &Path, at: SocketAddr) -> Option<u64> {
    // Only the order of bytes matters for sockets.
    let system = ExplicitSystemInfo {
        boot_time_secs: 0,
        ticks_per_second: 100,
        page_size: 4096,
        is_little_endian: cfg!(target_endian = "little"),
    };
    let table = TcpNetEntries::from_buf_read(BufReader::new(File::open(table).ok()?), &system).ok()?;
    let listens = |local: SocketAddr| {
        local.port() == at.port() && (local.ip().to_canonical() == at.ip() || local.ip().is_unspecified())
    };
    let entry = table.0.into_iter().find(|entry| entry.state == TcpState::Listen && listens(entry.local_address))?;
    Some(entry.inode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn our_own_is_found() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        assert_eq!(listener(at), Some(std::process::id()));
        drop(socket);
        assert_eq!(listener(at), None);
    }
}
