//! How much is asked for ahead of the program. Mostly a fixed part of the room: as much as keeps a disk busy. A program that runs in
//! bursts, because its control group has a quota of processor time, would use that up at once and wait for the disk, which had nothing
//! to do while it was held; for such a one it grows to what a burst uses.

/// Of the room: this part, at least and at most, where nothing pauses; and the most of all. The least of several that are asked for
/// together is less, and never below a few pieces of it.
const PART: u64 = 168;
const LEAST: u64 = 3 << 20;
const PIECES: u64 = 1 << 20;
const USUAL: u64 = 16 << 20;
const MOST_PART: u64 = 14;
/// No fault for so long is a pause, in ns.
const PAUSE: u64 = 20_000_000;
/// Whoever came on within so long runs, in ns, unless it began longer ago than a burst lasts.
const RUNS: u64 = 5_000_000;
const BURST: u64 = 50_000_000;
/// Bursts are judged over so long, in ns, and so many of them at least.
const SPAN: u64 = 1_000_000_000;
const BURSTS: u32 = 3;
/// Of the window: a burst that used so much of it could have used more; a second in which none used so much could do with less.
const DRY: f64 = 0.9;
const AMPLE: f64 = 0.7;
/// A part of the time, one in so many, for which it must have been held: of two threads one turns round while the other waits, and what is
/// held to 0.45 of a processor pauses for hardly more than half of the time.
const PAUSED: u64 = 4;
/// Growth and shrinking, in a second; and growth once it was found to be too much.
const MORE: f64 = 2.0;
const LITTLE: f64 = 1.15;
const LESS: f64 = 0.9;
/// As a part of what it is where nothing pauses, from which on the program is taken to run in bursts.
const BURSTY: f64 = 1.5;

/// The window.
#[derive(Debug)]
pub struct Window {
    least: u64,
    usual: u64,
    most: u64,
    bytes: u64,
    /// When the program came on last, when it began to after a pause, and how long that was.
    moved: u64,
    began: u64,
    pause: u64,
    /// Bytes that it used since then.
    used: u64,
    /// Its quota held it since the span began, and in the one before.
    held: bool,
    was_held: bool,
    /// It is known not to run now.
    stands: bool,
    /// All of it was there in this pause but for what can still come, and in the one before this burst.
    full: bool,
    was_full: bool,
    /// It was more than the disk could bring.
    too_much: bool,
    span: Span,
}

/// What was seen in a second.
#[derive(Debug, Default)]
struct Span {
    began: u64,
    /// Bursts, those before which all of it was there, and those of them that used it up.
    bursts: u32,
    full: u32,
    dry: u32,
    /// The pauses before all of them, and how long both took.
    paused: u64,
    took: u64,
    /// The most that any burst used.
    most: u64,
}

impl Window {
    /// Of a program that came on just now.
    pub fn new(now: u64) -> Self {
        let span = Span { began: now, ..Span::default() };
        Window {
            least: LEAST,
            usual: 0,
            most: 0,
            bytes: 0,
            moved: now,
            began: now,
            pause: 0,
            used: 0,
            held: false,
            was_held: false,
            stands: false,
            full: true,
            was_full: true,
            too_much: false,
            span,
        }
    }

    /// It is one of so many on the same disk.
    pub fn beside(&mut self, windows: u64) {
        self.least = (LEAST / windows).max(PIECES);
    }

    /// There is so much room for the cycle.
    pub fn room(&mut self, room: u64) {
        self.usual = (room / PART).clamp(self.least, USUAL);
        self.most = (room / MOST_PART).max(self.usual);
        self.bytes = self.bytes.clamp(self.usual, self.most);
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes where nothing pauses: as much as keeps a disk busy.
    pub fn usual(&self) -> u64 {
        self.usual
    }

    /// Its quota of processor time was used up, and it was held.
    pub fn held(&mut self) {
        self.held = true;
    }

    /// Whether its quota holds it, of late.
    pub fn is_held(&self) -> bool {
        self.was_held
    }

    /// All of it was asked for, and what is still to come does not take the disk longer than a burst.
    pub fn full(&mut self) {
        self.full = true;
    }

    /// The program runs in bursts: what delays it in one is not made up for.
    pub fn is_bursty(&self) -> bool {
        self.bytes as f64 > BURSTY * self.usual as f64
    }

    /// When the program came on after its last pause.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// Whether it is known not to run now: it was held, or waits.
    pub fn stands(&mut self, stands: bool) {
        self.stands = stands;
    }

    /// The program is in the middle of a burst, as far as it runs in bursts.
    pub fn is_in_burst(&self, now: u64) -> bool {
        !self.stands && now.saturating_sub(self.moved) < RUNS && now.saturating_sub(self.began) < BURST
    }

    /// The program came on, and so many bytes that had been asked for are used.
    pub fn used(&mut self, bytes: u64, now: u64) {
        let pause = now.saturating_sub(self.moved);
        if pause >= PAUSE {
            self.burst_over();
            (self.began, self.pause, self.used) = (now, pause, 0);
            self.was_full = std::mem::take(&mut self.full);
        }
        self.used += bytes;
        self.moved = self.moved.max(now);
        if now.saturating_sub(self.span.began) >= SPAN {
            self.span_over(now);
        }
    }

    fn burst_over(&mut self) {
        let span = &mut self.span;
        span.most = span.most.max(self.used);
        span.bursts += 1;
        span.full += u32::from(self.was_full);
        span.dry += u32::from(self.was_full && self.used as f64 >= DRY * self.bytes as f64);
        span.paused += self.pause;
        span.took += self.pause + self.moved.saturating_sub(self.began);
    }

    fn span_over(&mut self, now: u64) {
        let span = std::mem::take(&mut self.span);
        self.span.began = now;
        let bytes = self.bytes as f64;
        // A program that waits for the disk pauses, too: more would not come the sooner, and take the place of what is kept.
        self.was_held = std::mem::take(&mut self.held);
        let wanted = if !self.was_held {
            bytes / MORE
        } else if self.is_bursty() && 2 * span.full < span.bursts {
            self.too_much = true;
            bytes * LESS
        } else if span.dry >= BURSTS && PAUSED * span.paused > span.took {
            bytes * if self.too_much { LITTLE } else { MORE }
        } else if (span.most as f64) < AMPLE * bytes {
            bytes * LESS
        } else {
            bytes
        };
        self.bytes = (wanted as u64).clamp(self.usual, self.most);
        // What was too much then was of other bursts.
        self.too_much &= self.bytes > self.usual;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A second of a program that runs for 15 ms and is held for 85, on a disk that brings 40 MB in 100 ms; it needs `needs` in a burst.
    fn held(window: &mut Window, now: &mut u64, needs: u64) {
        for _ in 0..10 {
            let ready = window.bytes().min(34 << 20);
            let used = needs.min(ready + (6 << 20));
            for _ in 0..15 {
                *now += MS;
                window.used(used / 15, *now);
            }
            window.held();
            window.full();
            *now += 85 * MS;
        }
    }

    #[test]
    fn it_grows_to_what_a_burst_uses_and_comes_back() {
        let (mut window, mut now) = (Window::new(1), 1);
        window.room(640 << 20);
        let usual = window.bytes();
        assert_eq!(usual, (640 << 20) / PART);
        (0..12).for_each(|_| held(&mut window, &mut now, 30 << 20));
        assert!(window.is_bursty() && (30 << 20..46 << 20).contains(&window.bytes()), "{}", window.bytes() >> 20);
        // One without a pause: a unit each millisecond.
        (0..40_000).for_each(|_| {
            now += MS;
            window.used(1 << 18, now);
        });
        assert_eq!(window.bytes(), usual);
    }

    #[test]
    fn what_the_disk_cannot_bring_is_not_asked_for() {
        let (mut window, mut now) = (Window::new(1), 1);
        window.room(640 << 20);
        // In 85 ms it brings 20 MB, and whoever is held would use 60.
        let mut most = 0;
        for second in 0..60 {
            for _ in 0..10 {
                let used = window.bytes().min(20 << 20);
                for _ in 0..15 {
                    now += MS;
                    window.used(used / 15, now);
                }
                window.held();
                if window.bytes() <= 20 << 20 {
                    window.full();
                }
                now += 85 * MS;
            }
            most = if second > 20 { most.max(window.bytes()) } else { 0 };
        }
        assert!(window.is_bursty() && most < 24 << 20, "{}", most >> 20);
    }

    #[test]
    fn who_is_not_held_gains_nothing_by_it() {
        let (mut window, mut now) = (Window::new(1), 1);
        window.room(640 << 20);
        // 100 MB in 230 ms, and 25 ms in between; another whose disk makes it wait most of the time.
        for _ in 0..100 {
            for _ in 0..230 {
                now += MS;
                window.used(100_000_000 / 230, now);
            }
            now += 25 * MS;
        }
        for _ in 0..300 {
            now += 50 * MS;
            window.used(20_000_000, now);
        }
        assert!(!window.is_bursty() && window.bytes() == (640 << 20) / PART, "{}", window.bytes() >> 20);
    }
}
