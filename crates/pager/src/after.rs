//! What is done once the pager is gone, however it went: somebody goes on having the kernel renew its counts of the programs' control
//! groups for a while. What comes back from swap beside the pager is held for in use; without the pager the kernel moves all of it from
//! one list to the other and back by counts that are up to two seconds old, and may end the program where a list runs empty between two
//! of them (docs/pager.md). Half of it would still be held for in use after that while, and move then; so what the programs have is
//! called inactive (`MADV_COLD`) now and then meanwhile.

use crate::limits::Limits;
use crate::maps::Maps;
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use sys::peer::{Advice, Peer};

/// So long.
const AFTER: Duration = Duration::from_secs(15);
/// Between two counts: a list may run empty in between, at a fifth of a second it is thought to have done so. A count takes 0.04 ms.
pub(crate) const RENEWED: Duration = Duration::from_millis(20);

/// Between two times in which all that a program has is called inactive: what comes back is held for in use again. 650 MB take 0.03 s.
const COOLED: Duration = Duration::from_secs(3);

/// The process that waits for the pager's end.
#[derive(Debug)]
pub struct After {
    child: Child,
    told: HashSet<u32>,
}

impl After {
    /// `program` is this one, which knows [`after`] as `pager --after`.
    ///
    /// # Errors
    /// Those of starting it.
    pub fn of(program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(["pager", "--after"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Who interrupts the pager at a terminal does not mean this one.
        let child = command.process_group(0).spawn()?;
        Ok(After { child, told: HashSet::new() })
    }

    /// This process is one of those that were helped.
    pub fn also(&mut self, pid: u32) {
        if self.told.insert(pid)
            && let Some(pipe) = &mut self.child.stdin
        {
            // Where it was ended nobody is told.
            let _ = pipe.write_all(&pid.to_le_bytes());
        }
    }

    /// CPU time that it took.
    pub fn cpu(&self) -> Duration {
        sys::process::cpu_time_of(self.child.id()).unwrap_or_default()
    }
}

/// What that process does: hears of programs until there is nobody left to tell, has what their limits hold counted and what they have made
/// inactive for a while, and ends; sooner where all of them have ended.
///
/// # Errors
/// When it cannot be told.
pub fn after(mut told: impl Read) -> io::Result<()> {
    let mut pids = Vec::new();
    told.read_to_end(&mut pids)?;
    let pids: Vec<u32> =
        pids.chunks_exact(4).filter_map(|pid| Some(u32::from_le_bytes(pid.try_into().ok()?))).collect();
    let limits: Vec<(u32, Limits)> = pids.into_iter().map(|pid| (pid, Limits::of(pid))).collect();
    let (gone, mut cooled) = (Instant::now(), None::<Instant>);
    while gone.elapsed() < AFTER {
        let mut alive = limits.iter().filter(|(pid, _)| Path::new(&format!("/proc/{pid}")).exists()).peekable();
        if alive.peek().is_none() {
            break;
        }
        let cools = cooled.is_none_or(|cooled| cooled.elapsed() >= COOLED);
        for (pid, limits) in alive {
            limits.renew();
            if cools {
                // Who may not be told, or ends meanwhile, is as it was.
                let _ = cool(*pid);
            }
        }
        if cools {
            cooled = Some(Instant::now());
        }
        std::thread::sleep(RENEWED);
    }
    Ok(())
}

fn cool(pid: u32) -> io::Result<u64> {
    let own: Vec<_> = Maps::read(pid)?.within(0, u64::MAX).filter(|(_, file)| !file).map(|(map, _)| map).collect();
    Peer::open(pid)?.advise(&own, Advice::Cold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_at_once_where_the_programs_have() {
        let mut program = Command::new("true").spawn().unwrap();
        program.wait().unwrap();
        let begun = Instant::now();
        after(&program.id().to_le_bytes()[..]).unwrap();
        after(&[][..]).unwrap();
        assert!(begun.elapsed() < AFTER / 3);
    }
}
