//! A clock that costs ten nanoseconds or so where the CPU has a counter that neither stops nor changes pace, and else the
//! kernel's. It counts ticks; what a tick is worth comes from two [`Pair`]s of counter and kernel time at both ends of
//! what was measured, so nothing spins to calibrate and the kernel's own correction of its clock is included.

use std::sync::OnceLock;
use std::time::Duration;

/// Where ticks come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `rdtsc`, where CPUID calls it invariant and the kernel itself trusts it.
    Tsc,
    /// The virtual counter of the ARM generic timer; architecturally constant (Arm ARM, D12).
    Cntvct,
    /// `clock_gettime(CLOCK_MONOTONIC)`: a tick is a nanosecond.
    Monotonic,
}

/// A source of time stamps, the same for all threads of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    source: Source,
}

/// One moment by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// By [`Clock::ticks`].
    pub ticks: u64,
    /// By `CLOCK_MONOTONIC`, in nanoseconds.
    pub nanos: u64,
}

/// What a tick is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    nanos_per_tick: f64,
}

/// Two pairs closer than this give no useful rate: reading one is uncertain by some 30 ns, 2 ms make that 15 ppm.
const BASELINE: Duration = Duration::from_millis(2);

fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// Is the counter constant, and does the kernel keep its own time by it?
#[cfg(target_arch = "x86_64")]
fn tsc_is_sound() -> bool {
    use std::arch::x86_64::__cpuid;
    // Invariant TSC: CPUID 8000_0007h, EDX bit 8 (AMD APM 3, E.4.6; Intel SDM 3, 17.17.1).
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
    let trusted = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .is_ok_and(|name| ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"].contains(&name.trim()));
    invariant && trusted
}

impl Clock {
    /// The cheapest source that can be trusted here.
    pub fn best() -> Self {
        static BEST: OnceLock<Source> = OnceLock::new();
        let source = *BEST.get_or_init(|| {
            #[cfg(target_arch = "x86_64")]
            if tsc_is_sound() {
                return Source::Tsc;
            }
            if cfg!(target_arch = "aarch64") { Source::Cntvct } else { Source::Monotonic }
        });
        Clock { source }
    }
    /// The kernel's clock.
    pub fn kernel() -> Self {
        Clock { source: Source::Monotonic }
    }
    /// Where the ticks come from.
    pub fn source(self) -> Source {
        self.source
    }
    /// Now. Not ordered with the memory accesses around it beyond what the CPU does by itself; a system call is.
    #[inline(always)]
    pub fn ticks(self) -> u64 {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: reads a counter; every x86-64 CPU has it, and the kernel lets user mode read it or `best` failed.
            Source::Tsc => unsafe { std::arch::x86_64::_rdtsc() },
            #[cfg(target_arch = "aarch64")]
            Source::Cntvct => {
                let ticks: u64;
                // SAFETY: reads a counter that Linux opens to user mode on every arm64 machine; touches nothing else.
                unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
                ticks
            }
            _ => monotonic(),
        }
    }
    /// This moment by both clocks: the tightest of a few tries.
    pub fn pair(self) -> Pair {
        let mut best = Pair { ticks: 0, nanos: 0 };
        let mut tightest = u64::MAX;
        for _ in 0..8 {
            let (before, nanos, after) = (self.ticks(), monotonic(), self.ticks());
            let width = after.saturating_sub(before);
            if width < tightest {
                tightest = width;
                best = Pair { ticks: before + width / 2, nanos };
            }
        }
        best
    }
    /// The rate since this process first asked; the first caller waits 2 ms, later ones get an ever longer baseline.
    pub fn rate(self) -> Rate {
        static FIRST: OnceLock<Pair> = OnceLock::new();
        if self.source == Source::Monotonic {
            return Rate { nanos_per_tick: 1.0 };
        }
        let first = *FIRST.get_or_init(|| self.pair());
        let age = Duration::from_nanos(monotonic().saturating_sub(first.nanos));
        std::thread::sleep(BASELINE.saturating_sub(age));
        Rate::between(first, self.pair()).unwrap_or(Rate { nanos_per_tick: 1.0 })
    }
}

impl Rate {
    /// From two moments; nothing when they are closer than 100 µs.
    pub fn between(first: Pair, second: Pair) -> Option<Rate> {
        let nanos = second.nanos.checked_sub(first.nanos)?;
        let ticks = second.ticks.checked_sub(first.ticks)?;
        (nanos >= 100_000 && ticks > 0).then(|| Rate { nanos_per_tick: nanos as f64 / ticks as f64 })
    }
    /// Nanoseconds of a number of ticks.
    #[inline]
    pub fn nanos(self, ticks: f64) -> f64 {
        ticks * self.nanos_per_tick
    }
    /// Ticks of a number of nanoseconds.
    #[inline]
    pub fn ticks(self, nanos: f64) -> f64 {
        nanos / self.nanos_per_tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two clocks over the same 20 ms agree within a thousandth, whichever source this machine has.
    #[test]
    fn ticks_are_worth_what_the_rate_says() {
        let clock = Clock::best();
        let rate = clock.rate();
        // A processor that is taken away between the two halves of a pair makes that pair wrong: the best of some counts.
        let measured = |_| {
            let first = clock.pair();
            std::thread::sleep(Duration::from_millis(20));
            let second = clock.pair();
            let ticks = (second.ticks - first.ticks) as f64;
            let (ours, kernels) = (rate.nanos(ticks), (second.nanos - first.nanos) as f64);
            ((ours / kernels - 1.0).abs(), ticks, first)
        };
        let (off, ticks, first) = (0..8).map(measured).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let ours = rate.nanos(ticks);
        assert!(off < 1e-3, "off by {off} of {ours} ns");
        assert!((rate.ticks(ours) - ticks).abs() < 1.0);
        assert!(Rate::between(first, first).is_none());
    }

    #[test]
    fn the_kernels_clock_ticks_in_nanoseconds() {
        assert_eq!(Clock::kernel().rate(), Rate { nanos_per_tick: 1.0 });
        let pairs = (0..8).map(|_| Clock::kernel().pair());
        assert!(pairs.map(|pair| pair.ticks.abs_diff(pair.nanos)).min().unwrap() < 1_000_000);
    }
}
