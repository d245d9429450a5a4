//! The compressed cache in front of swap, watched: groups of version 1 do not count what it takes, so the group's limit is lowered by as
//! much, as it would be on a board that has no more memory than that.

use basics::Bytes;
use basics::desktop::ZswapSeen;
use change::Cgroup;

/// A limit is changed when the cache has grown or shrunk by so much.
const STEP: u64 = 4 << 20;

/// Watches it.
pub(super) struct ZswapWatch<'a> {
    cgroup: Option<&'a Cgroup>,
    memory: Bytes,
    before: Bytes,
    lowered: u64,
    seen: Option<ZswapSeen>,
}

impl<'a> ZswapWatch<'a> {
    /// Where it is `on`, in front of the swap of a group with so much memory.
    pub fn of(on: bool, cgroup: Option<(&'a Cgroup, Bytes)>) -> Self {
        let apart = cgroup.filter(|(cgroup, _)| !cgroup.counts_zswap());
        let before = read().map_or(Bytes(0), |(pool, _)| pool);
        let seen = on.then(|| ZswapSeen { counted_apart: apart.is_some(), ..ZswapSeen::default() });
        let (cgroup, memory) = apart.map_or((None, Bytes(0)), |(cgroup, memory)| (Some(cgroup), memory));
        ZswapWatch { cgroup, memory, before, lowered: 0, seen }
    }

    /// Looks, and lowers the limit or gives it back.
    pub fn look(&mut self) {
        let Some(seen) = &mut self.seen else { return };
        let Some((pool, stored)) = read() else { return };
        let pool = Bytes(pool.0.saturating_sub(self.before.0));
        (seen.pool, seen.stored, seen.most) = (pool, stored, seen.most.max(pool));
        let Some(cgroup) = self.cgroup else { return };
        if pool.0.abs_diff(self.lowered) >= STEP {
            // At least an eighth is left, whatever else uses that cache.
            let least = Bytes(self.memory.0 / 8);
            let limit = Bytes(self.memory.0.saturating_sub(pool.0)).max(least);
            match cgroup.give(limit) {
                Ok(()) => self.lowered = pool.0,
                Err(error) => tracing::debug!("{error}"),
            }
        }
    }

    /// As it was last seen.
    pub fn seen(&self) -> Option<ZswapSeen> {
        self.seen
    }
}

impl Drop for ZswapWatch<'_> {
    fn drop(&mut self) {
        // The group stands for the next step as well.
        if self.lowered > 0
            && let Some(cgroup) = self.cgroup
            && let Err(error) = cgroup.give(self.memory)
        {
            tracing::debug!("{error}");
        }
    }
}

/// What it takes and what it holds (Linux 5.19 and later), of the whole machine.
fn read() -> Option<(Bytes, Bytes)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let of = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(Bytes(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? * 1024))
    };
    Some((of("Zswap:")?, of("Zswapped:")?))
}
