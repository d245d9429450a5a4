//! Pages of a file are charged to the control group of whoever brings them in. So that a program's pages count against its own
//! limit, and not against nobody's, a process in its group gives that advice: this program once more, told by a pipe.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use sys::peer::{Advice, Peer, Range};

/// Of a range in the pipe: its address and its length.
const RECORD: usize = 16;
/// Read in one go.
const MOST: usize = RECORD * 1024;

/// The process in the program's group; ended when dropped.
#[derive(Debug)]
pub struct Hand {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Hand {
    /// For process `pid`, in the control group at `group`: `program` is this one, which knows [`serve`] as `pager --hand PID`.
    ///
    /// # Errors
    /// Those of starting it and of the kernel when it may not go there.
    pub fn of(pid: u32, group: &Path, program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(["pager", "--hand", &pid.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let pipe = child.stdin.take();
        let hand = Hand { child, pipe };
        // Nothing is said to it before it is there.
        std::fs::write(group.join("cgroup.procs"), hand.child.id().to_string())?;
        Ok(hand)
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has these pages brought in.
    ///
    /// # Errors
    /// When it has ended.
    pub fn bring(&mut self, ranges: &[Range]) -> io::Result<()> {
        let records: Vec<u8> =
            ranges.iter().flat_map(|range| [range.at.to_le_bytes(), range.len.to_le_bytes()]).flatten().collect();
        self.pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(&records)
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // It may wait for a disk, and its group is to be empty.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What that process does: brings in what it is told, until there is nobody left to tell it or the program has ended.
///
/// # Errors
/// When the program is not there, or may not be helped.
pub fn serve(pid: u32, mut told: impl Read) -> io::Result<()> {
    let peer = Peer::open(pid)?;
    let mut buffer = vec![0; MOST];
    let mut have = 0;
    loop {
        let read = told.read(&mut buffer[have..])?;
        if read == 0 {
            return Ok(());
        }
        have += read;
        let whole = have / RECORD * RECORD;
        let ranges: Vec<Range> = buffer[..whole].chunks_exact(RECORD).map(record).collect();
        buffer.copy_within(whole..have, 0);
        have -= whole;
        match peer.advise(&ranges, Advice::WillNeed) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // It is no more than advice.
            _ => {}
        }
    }
}

fn record(bytes: &[u8]) -> Range {
    let word = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    Range { at: word(0), len: word(8) }
}
