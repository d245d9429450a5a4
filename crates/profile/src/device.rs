//! A device in virtual time: told when an operation comes, it says when it will be done. The same model paces the emulated
//! disk and runs jobs without any disk. It is known on arrival when an operation ends, because the link stands before the
//! medium: queue (if it is full, until one of those before is done), link (one after the other), medium (a free channel;
//! latency and transfer, the latter while the bytes are on the link), and whatever stalls, cache, zone and heat add.
//! Seeded: equal arrivals, equal answers.

use crate::cache::Level;
use crate::distribution::Sampler;
use crate::format::{Direction, Flush, Link, Mixed, Profile, ProfileError, Slowdown, Zone};
use crate::side::Side;
use crate::split::{Run, Runs};
use crate::stalls::Stalls;
use basics::{Bytes, Nanos};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is asked of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Bytes from the device.
    Read {
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Bytes to the device.
    Write {
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// All that was written made durable.
    Flush,
}

/// The model at work. Times are nanoseconds since it was made, or since the latest [`Device::pass`].
#[derive(Debug, Clone)]
pub struct Device {
    name: String,
    size: u64,
    largest: u64,
    link: Link,
    link_free: f64,
    /// When each operation in the queue will be done; the earliest on top.
    queue: BinaryHeap<Reverse<u64>>,
    /// When each channel is free again; empty: as many as wanted.
    channels: BinaryHeap<Reverse<u64>>,
    sides: [Option<Side>; 2],
    mixed: Mixed,
    cache: Option<Level>,
    flush: Flush,
    flush_latency: Sampler,
    dirty: u64,
    last_done: f64,
    /// On its own clock: when the clock of those who ask began.
    epoch: f64,
    stalls: Stalls,
    zones: Vec<Zone>,
    heat: Option<Heat>,
    runs: Option<Runs>,
    rng: Xoshiro256PlusPlus,
}

#[derive(Debug, Clone)]
struct Heat {
    law: Slowdown,
    /// Since when it has been under way.
    since: Option<f64>,
}

impl Device {
    /// A device of the profile's behaviour that holds `size` bytes.
    pub fn new(profile: &Profile, size: Bytes, seed: u64) -> Self {
        let side = |direction: &Option<Direction>| direction.as_ref().map(Side::new);
        let flush = profile.flush.clone().unwrap_or_default();
        Device {
            name: profile.name.clone(),
            size: size.0.max(1),
            largest: profile.largest.map_or(u64::MAX, |largest| largest.0),
            link: profile.link.unwrap_or_default(),
            link_free: 0.0,
            queue: BinaryHeap::new(),
            channels: (0..profile.channels.unwrap_or(0)).map(|_| Reverse(0)).collect(),
            sides: [side(&profile.write), side(&profile.read)],
            mixed: profile.mixed.unwrap_or(Mixed { read_factor: 1.0, write_factor: 1.0 }),
            cache: profile.cache.map(Level::new),
            flush_latency: Sampler::new(flush.latency_us.as_ref()),
            flush,
            dirty: 0,
            last_done: 0.0,
            epoch: 0.0,
            stalls: Stalls::new(&profile.stalls, seed),
            zones: profile.zones.clone(),
            heat: profile.slowdown.map(|law| Heat { law, since: None }),
            runs: None,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// The same device behind a kernel that cuts large operations up: the parts of one are told from operations of their own
    /// and take as long as the whole.
    #[must_use]
    pub fn behind_a_kernel(self) -> Self {
        Device { runs: Some(Runs::default()), ..self }
    }

    /// The way to the device scatters by itself, by a standard deviation of so many µs, with so many operations under way: its
    /// own scatter is narrowed by that, so that both together are the profile's, as far as they can be. Where operations wait
    /// for a channel each meets the scatter of several and the way's once.
    pub fn absorb(&mut self, deviation_us: f64, under_way: f64) {
        let turns = if self.channels.is_empty() { 1.0 } else { (under_way / self.channels.len() as f64).max(1.0) };
        for side in self.sides.iter_mut().flatten() {
            for medium in std::iter::once(&mut side.random).chain(&mut side.sequential) {
                medium.latency.absorb(deviation_us / turns.sqrt());
            }
        }
    }

    /// Takes an operation at `now` and says when it will be done. Operations are told in the order in which they come: a
    /// `now` before an earlier one's is taken for that.
    ///
    /// # Errors
    /// [`ProfileError::Says`] when the profile knows nothing of this direction.
    pub fn submit(&mut self, now: Nanos, request: Request) -> Result<Nanos, ProfileError> {
        let now = now.0 as f64 + self.epoch;
        let done = match request {
            Request::Read { offset, len } => self.transfer(now, true, offset, len)?,
            Request::Write { offset, len } => self.transfer(now, false, offset, len)?,
            Request::Flush => self.make_durable(now),
        };
        Ok(Nanos((done - self.epoch) as u64))
    }

    /// Lets `time` pass, counted from where the clock of those who ask began; their clock begins again at 0 there. The device
    /// goes on as it is: what its cache holds, how warm it is, when it stalls next.
    pub fn pass(&mut self, time: Nanos) {
        self.epoch += time.0 as f64;
    }

    /// Everything that was asked has been answered, some of it sooner than the model said: nothing is under way after `now`.
    pub fn rest(&mut self, now: Nanos) {
        let now = now.0 as f64 + self.epoch;
        if self.last_done <= now {
            return;
        }
        self.last_done = now;
        self.link_free = self.link_free.min(now);
        self.queue.clear();
        for Reverse(free) in std::mem::take(&mut self.channels) {
            self.channels.push(Reverse(free.min(now as u64)));
        }
        for side in self.sides.iter_mut().flatten() {
            side.rest(now);
        }
    }

    /// In pieces, if it is larger than the device takes at once; done with its last piece.
    fn transfer(&mut self, now: f64, read: bool, offset: u64, len: u64) -> Result<f64, ProfileError> {
        let mut done = now;
        let mut at = 0;
        loop {
            let piece = (len - at).min(self.largest);
            done = f64::max(done, self.piece(now, read, offset + at, piece)?);
            at += piece;
            if at >= len {
                return Ok(done);
            }
        }
    }

    fn piece(&mut self, now: f64, read: bool, offset: u64, len: u64) -> Result<f64, ProfileError> {
        if let Some(run) = self.runs.as_mut().and_then(|runs| runs.take(now, read, offset, len))
            && let Some(done) = self.go_on(run, now, offset, len)
        {
            return Ok(done);
        }
        let factor = self.factor(now, read, offset);
        let admitted = self.admit(now);
        let command_us = self.link.command_us.unwrap_or(0.0);
        let (on_link_at, arrived) = self.pass_link(admitted, command_us, len);
        let on_link = self.on_link(len);
        // Room comes with time, whether or not a channel is free meanwhile.
        let room = match &mut self.cache {
            Some(level) if !read => arrived + level.take(len as f64, arrived),
            _ => arrived,
        };
        let Some(side) = &mut self.sides[usize::from(read)] else {
            let what = if read { "reads" } else { "writes" };
            return Err(ProfileError::Says { name: self.name.clone(), what });
        };
        // A stream's end is remembered whether or not it makes a difference here.
        let stream = side.stream(offset, len);
        let (medium, before, sequential) = match (&side.sequential, stream) {
            (Some(sequential), Some(before)) => (sequential, before.done, true),
            _ => (&side.random, 0.0, false),
        };
        let transfer = medium.transfer(len as f64) * factor;
        let latency = medium.latency(&mut self.rng) * factor;
        // What is on the link is read or written meanwhile: the slower of the two counts, not both.
        let begin = before.max(self.stalls.done(on_link_at, (on_link - transfer).max(0.0)));
        let channel = self.channels.pop();
        let start = channel.map_or(begin, |Reverse(free)| begin.max(free as f64));
        let done = self.stalls.done_with_room(start, latency + transfer, arrived, room);
        if channel.is_some() {
            self.channels.push(Reverse(done as u64));
        }
        side.remember(stream, offset + len, done);
        if self.link.queue.is_some() {
            self.queue.push(Reverse(done as u64));
        }
        if let Some(runs) = &mut self.runs {
            runs.remember(Run {
                read,
                start: offset,
                end: offset + len,
                last: len,
                came: now,
                arrived,
                latency,
                done,
                sequential,
            });
        }
        self.account(read, len, done);
        Ok(done)
    }

    /// A further part of an operation: over the link without a command of its own, and then as much longer as the whole takes
    /// longer for it. Nothing when the direction is unknown.
    fn go_on(&mut self, run: Run, now: f64, offset: u64, len: u64) -> Option<f64> {
        let factor = self.factor(now, run.read, offset);
        // As if it had come with the first part: how fast a kernel cuts is not the device's time.
        let (_, arrived) = self.pass_link(run.arrived, 0.0, len);
        let room = match &mut self.cache {
            Some(level) if !run.read => arrived + level.take(len as f64, arrived),
            _ => arrived,
        };
        let side = self.sides[usize::from(run.read)].as_mut()?;
        let stream = side.stream(offset, len);
        let medium = side.sequential.as_ref().filter(|_| run.sequential).unwrap_or(&side.random);
        let whole = (run.end - run.start + len) as f64;
        let more = (medium.transfer(whole) - medium.transfer(whole - len as f64)) * factor;
        // With the medium the slower it ends so much later; with the link, when its last byte is over and the latency past.
        let time = more.max(arrived + run.latency - run.done);
        let done = self.stalls.done_with_room(run.done, time, arrived, room);
        side.remember(stream, offset + len, done);
        for heap in [&mut self.channels, &mut self.queue] {
            let mut all = std::mem::take(heap).into_vec();
            if let Some(own) = all.iter_mut().find(|own| own.0 == run.done as u64) {
                own.0 = done as u64;
            }
            *heap = all.into();
        }
        if let Some(runs) = &mut self.runs {
            let (start, end) = (run.start.min(offset), run.end.max(offset + len));
            runs.remember(Run { start, end, last: len, came: now, arrived, done, ..run });
        }
        self.account(run.read, len, done);
        Some(done)
    }

    /// What is known of an operation that will be done then.
    fn account(&mut self, read: bool, len: u64, done: f64) {
        if let Some(side) = &mut self.sides[usize::from(read)] {
            side.busy_until = side.busy_until.max(done);
        }
        if !read {
            self.dirty += len;
        }
        self.last_done = self.last_done.max(done);
    }

    /// When an operation gets a place in the queue.
    fn admit(&mut self, now: f64) -> f64 {
        let Some(depth) = self.link.queue else { return now };
        let mut admitted = now;
        while self.queue.peek().is_some_and(|Reverse(done)| *done as f64 <= now) {
            self.queue.pop();
        }
        while self.queue.len() >= depth as usize {
            let Some(Reverse(done)) = self.queue.pop() else { break };
            admitted = admitted.max(done as f64);
        }
        admitted
    }

    /// Nanoseconds that so many bytes are on the link.
    fn on_link(&self, len: u64) -> f64 {
        self.link.bandwidth_mbps.map_or(0.0, |rate| 1e3 * len as f64 / rate)
    }

    /// When the operation's bytes begin to pass the link, and when they are over it.
    fn pass_link(&mut self, now: f64, command_us: f64, len: u64) -> (f64, f64) {
        let time = self.on_link(len);
        if command_us == 0.0 && time == 0.0 {
            return (now, now);
        }
        let begin = self.stalls.done(now.max(self.link_free), 1e3 * command_us);
        self.link_free = self.stalls.done(begin, time);
        (begin, self.link_free)
    }

    /// What mixing, place and heat do to the time on the medium.
    fn factor(&mut self, now: f64, read: bool, offset: u64) -> f64 {
        let other = self.sides[usize::from(!read)].as_ref().is_some_and(|side| side.busy_until > now);
        let mixed = if read { self.mixed.read_factor } else { self.mixed.write_factor };
        let place = (offset % self.size) as f64 / self.size as f64;
        let zone = self.zones.iter().find(|zone| (zone.from..zone.to).contains(&place)).map_or(1.0, |zone| zone.factor);
        let idle = now - self.last_done;
        let heat = self.heat.as_mut().map_or(1.0, |heat| {
            if heat.law.recovers_s.is_some_and(|s| idle >= s * 1e9) {
                heat.since = None;
            }
            let since = *heat.since.get_or_insert(now);
            if now - since >= heat.law.after_s * 1e9 { heat.law.factor } else { 1.0 }
        });
        zone * heat * if other { mixed } else { 1.0 }
    }

    fn make_durable(&mut self, now: f64) -> f64 {
        let dirty = self.dirty.min(self.flush.at_most.map_or(u64::MAX, |most| most.0));
        self.dirty = 0;
        let per_byte = self.flush.dirty_us_per_mb.unwrap_or(0.0) / 1e6;
        let us = self.link.command_us.unwrap_or(0.0) + self.flush_latency.draw(&mut self.rng) + dirty as f64 * per_byte;
        // Writes that are under way are part of what is to be durable.
        let writes = self.sides[0].as_ref().map_or(0.0, |side| side.busy_until);
        let done = self.stalls.done(now.max(writes), us * 1e3);
        self.last_done = self.last_done.max(done);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(toml: &str) -> Device {
        Device::new(&Profile::parse(&format!("name = \"x\"\n{toml}")).unwrap(), Bytes(1 << 30), 1)
    }
    fn read(device: &mut Device, us: u64, offset: u64, len: u64) -> f64 {
        device.submit(Nanos(us * 1000), Request::Read { offset, len }).unwrap().us()
    }
    fn write(device: &mut Device, us: u64, offset: u64, len: u64) -> f64 {
        device.submit(Nanos(us * 1000), Request::Write { offset, len }).unwrap().us()
    }

    #[test]
    fn latency_transfer_and_table_add_up() {
        let mut all = device("[read]\nlatency_us = 100\nbandwidth_MBps = 100\nsize_us = { 4096 = 1, 12288 = 3 }");
        assert_eq!(read(&mut all, 0, 0, 4096), 100.0 + 40.96 + 1.0);
        assert_eq!(read(&mut all, 1000, 1 << 20, 8192), 1000.0 + 100.0 + 81.92 + 2.0);
        assert_eq!(read(&mut all, 2000, 1 << 25, 24576), 2000.0 + 100.0 + 245.76 + 6.0);
        assert!(write_fails(&mut all));
    }

    /// Bug: each write in a queue waited for the room of those before it once more, and the drive went by fits and starts.
    #[test]
    fn a_full_cache_is_slow_and_even_in_a_queue() {
        let mut full = device("channels = 1\n[write]\nlatency_us = 10\n[cache]\nsize = \"4MB\"\ndrain_MBps = 50");
        let mut done = [0.0; 4];
        let ends: Vec<f64> = (0..100)
            .map(|i| {
                let us = write(&mut full, done[i % 4] as u64, i as u64 * 500_000, 500_000);
                done[i % 4] = us;
                us
            })
            .collect();
        let apart: Vec<f64> = ends[20..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(apart.iter().all(|us| (us / 10_000.0 - 1.0).abs() < 0.01), "{apart:?}");
    }

    fn write_fails(device: &mut Device) -> bool {
        device.submit(Nanos(0), Request::Write { offset: 0, len: 1 }).is_err()
    }

    /// One channel serves one after the other, two serve two; without a number all are served at once.
    #[test]
    fn channels_are_servers() {
        for (channels, last) in [("channels = 1", 400.0), ("channels = 2", 200.0), ("", 100.0)] {
            let mut all = device(&format!("{channels}\n[read]\nlatency_us = 100"));
            let done = (0..4).map(|i| read(&mut all, 0, i << 25, 4096)).fold(0.0, f64::max);
            assert_eq!(done, last, "{channels}");
        }
    }

    /// The link passes one after the other; a queue of one lets the next in when the last is done.
    #[test]
    fn link_and_queue() {
        let mut all = device("[link]\ncommand_us = 10\nbandwidth_MBps = 4096\n[read]\nlatency_us = 100");
        assert_eq!([read(&mut all, 0, 0, 40960), read(&mut all, 0, 1 << 25, 40960)], [120.0, 140.0]);
        let mut all = device("[link]\ncommand_us = 10\nqueue = 1\n[read]\nlatency_us = 100");
        assert_eq!([read(&mut all, 0, 0, 4096), read(&mut all, 0, 1 << 25, 4096)], [110.0, 220.0]);
        assert_eq!(read(&mut all, 500, 1 << 26, 4096), 610.0);
    }

    /// The slower of link and medium sets an operation's time, and the link that of many.
    #[test]
    fn bytes_are_on_the_link_while_the_medium_moves_them() {
        let times = |link: u32, medium: u32| {
            let toml = format!(
                "[link]\ncommand_us = 10\nbandwidth_MBps = {link}\n[read]\nlatency_us = 100\nbandwidth_MBps = {medium}"
            );
            let mut all = device(&toml);
            [0, 1, 2].map(|i| read(&mut all, 0, i << 25, 40_000))
        };
        assert_eq!(times(400, 100), [510.0, 620.0, 730.0]);
        assert_eq!(times(100, 400), [510.0, 920.0, 1330.0]);
    }

    /// A stall that comes while bytes are on the link is one stall, for link and medium together.
    #[test]
    fn a_stall_on_the_link_counts_once() {
        let mut all = device(
            "[link]\nbandwidth_MBps = 100\n[read]\nlatency_us = 10\nbandwidth_MBps = 90\n[[stall]]\nperiod_ms = 10\nlength_ms = 5",
        );
        // 4 MB: 40 ms on the link, 44.4 ms and 10 µs on the medium, and 5 more for each of the stalls on the way.
        let took = read(&mut all, 0, 0, 4_000_000);
        let stalls = (took / 10_000.0).floor();
        assert!((took - 44_454.0 - 5000.0 * stalls).abs() < 1.0, "{took}");
    }

    /// What goes on where something ended is sequential, in pieces and a little out of order too, and waits for it.
    #[test]
    fn streams_are_told_from_random_places() {
        let toml = "largest = \"1MiB\"\n[read]\nlatency_us = 1000\n[read.sequential]\nbandwidth_MBps = 1048.576";
        let mut all = device(toml);
        assert_eq!(read(&mut all, 0, 0, 1 << 20), 1000.0);
        assert_eq!(read(&mut all, 1000, 1 << 20, 2 << 20), 3000.0);
        assert_eq!(read(&mut all, 3000, 4 << 20, 1 << 20), 4000.0, "a piece was overtaken");
        assert_eq!(read(&mut all, 4000, 3 << 20, 1 << 20), 5000.0);
        assert_eq!(read(&mut all, 5000, 100 << 20, 4096), 6000.0);
    }

    /// A kernel cuts an operation in two: the second part goes on on the first one's channel, over the link meanwhile, and both
    /// take as long as the operation did in one.
    #[test]
    fn the_parts_of_an_operation_take_as_long_as_the_whole() {
        const PART: u64 = 512 << 10;
        let tables = "[read]\nsize_us = { \"4KiB\" = 100, \"512KiB\" = 1000, \"1MiB\" = 1500 }";
        for model in [
            "channels = 4\n[link]\ncommand_us = 25\nbandwidth_MBps = 300\n[read]\nlatency_us = 400\nbandwidth_MBps = 120",
            "channels = 4\n[link]\nbandwidth_MBps = 400\n[read]\nlatency_us = 9000\nbandwidth_MBps = 4000",
            tables,
        ] {
            let whole = read(&mut device(model), 0, 0, 2 * PART);
            for (first, second) in [(0, PART), (PART, 0)] {
                let mut all = device(model).behind_a_kernel();
                read(&mut all, 0, first, PART);
                let parts = read(&mut all, 20, second, PART);
                assert!((parts / whole - 1.0).abs() < 1e-3, "{parts} instead of {whole}");
            }
            // And behind others, when its bytes are long over the link.
            let busy = |mut all: Device| {
                for i in 8..12 {
                    read(&mut all, 0, i << 25, PART);
                }
                all
            };
            let whole = read(&mut busy(device(model)), 50, 0, 2 * PART);
            let mut all = busy(device(model).behind_a_kernel());
            read(&mut all, 50, 0, PART);
            let parts = read(&mut all, 60, PART, PART);
            assert!((parts / whole - 1.0).abs() < 1e-3, "behind others {parts} instead of {whole}");
            let mut all = device(model).behind_a_kernel();
            let alone = read(&mut all, 0, 0, PART);
            let next = read(&mut all, alone as u64 + 1, PART, PART) - (alone as u64 as f64 + 1.0);
            assert!((next - alone).abs() < 1e-3, "the next one takes {next}, not {alone}");
        }
    }

    /// Bug: operations that went on with a stream took no channel, and several streams got several times the medium's rate.
    #[test]
    fn streams_share_the_channels() {
        let mut all = device("channels = 1\n[read]\nbandwidth_MBps = 100\n[read.sequential]\nbandwidth_MBps = 100");
        let done =
            (0..20).map(|i| read(&mut all, 0, (i % 4) * (1 << 28) + (i / 4) * 100_000, 100_000)).fold(0.0, f64::max);
        assert_eq!(done, 20_000.0);
    }

    /// The cliff stands where the cache is full: size / (rate − drain) after the start; an idle cache empties.
    #[test]
    fn a_full_cache_writes_at_its_drain() {
        let toml = "[write]\nbandwidth_MBps = 100\n[cache]\nsize = 9000000\ndrain_MBps = 10\nidle_drain_MBps = 90";
        let mut all = device(toml);
        let burst = |all: &mut Device, from: u64| {
            let mut now = from;
            let mut times = Vec::new();
            for i in 0..200u64 {
                let done = write(all, now, i * 100_000, 100_000) as u64;
                times.push(done - now);
                now = done;
            }
            (times, now)
        };
        let (times, end) = burst(&mut all, 0);
        let cliff = times.iter().position(|us| *us > 5000).unwrap();
        assert!((98..=101).contains(&cliff), "9 MB fill at 90 MB/s after 10 MB: {cliff}");
        assert!((9990..=10_010).contains(&times[150]), "{}", times[150]);
        let (times, _) = burst(&mut all, end + 50_000);
        assert!(times[10] > 5000, "no room yet");
        let (times, _) = burst(&mut all, end + 4_000_000);
        assert!(times.iter().position(|us| *us > 5000).unwrap() > 90, "emptied while idle");
    }

    /// A second job meets the cache as the first one left it, a rest empties it, and stalls keep their period.
    #[test]
    fn it_lives_on_when_the_clock_begins_again() {
        let toml = "[write]\nbandwidth_MBps = 100\n[cache]\nsize = 9000000\ndrain_MBps = 10\nidle_drain_MBps = 90\n\
                    [[stall]]\nperiod_ms = 10000\nlength_ms = 200";
        let mut all = device(toml);
        let job = |all: &mut Device| {
            let mut now = 0;
            let mut last = 0;
            for i in 0..200u64 {
                let done = write(all, now, i * 100_000, 100_000) as u64;
                (last, now) = (done - now, done);
                if i == 0 && last > 5000 {
                    break;
                }
            }
            all.pass(Nanos(now * 1000));
            last
        };
        assert!((9990..=10_010).contains(&job(&mut all)), "full at the end");
        assert!(job(&mut all) > 5000, "full at once");
        all.pass(Nanos::from_secs(4.0));
        assert!((9990..=10_010).contains(&job(&mut all)), "it was emptied, and filled again");
        let mut all = device(toml);
        all.pass(Nanos::from_secs(9.9995));
        assert_eq!(write(&mut all, 0, 0, 100_000), 201_000.0, "the stall of 10 s");
    }

    #[test]
    fn flushes_cost_by_what_is_dirty_and_wait_for_writes() {
        let toml = "[write]\nlatency_us = 100\n[flush]\nlatency_us = 500\ndirty_us_per_MB = 1000\nat_most = 2000000";
        let mut all = device(toml);
        assert_eq!(write(&mut all, 0, 0, 1_000_000), 100.0);
        assert_eq!(all.submit(Nanos(0), Request::Flush).unwrap().us(), 1600.0);
        assert_eq!(all.submit(Nanos(2_000_000), Request::Flush).unwrap().us(), 2500.0);
        write(&mut all, 3000, 1 << 29, 100_000_000);
        assert_eq!(all.submit(Nanos(4_000_000), Request::Flush).unwrap().us(), 6500.0);
    }

    /// What a stall catches waits for its end; what is under way is held up for its length.
    #[test]
    fn stalls_stop_everything() {
        let mut all = device("[read]\nlatency_us = 100\n[[stall]]\nperiod_ms = 1000\nlength_ms = 200");
        assert_eq!(read(&mut all, 500_000, 0, 4096), 500_100.0);
        assert_eq!(read(&mut all, 999_950, 1 << 25, 4096), 1_200_050.0);
        assert_eq!(read(&mut all, 1_100_000, 1 << 26, 4096), 1_200_100.0);
        assert_eq!(read(&mut all, 1_900_000, 1 << 27, 4096), 1_900_100.0);
    }

    #[test]
    fn place_heat_and_mixing_are_factors() {
        let toml = "[read]\nlatency_us = 100\n[write]\nlatency_us = 100\n[mixed]\nread_factor = 3\n\
                    [[zone]]\nfrom = 0\nto = 0.1\nfactor = 2\n[slowdown]\nafter_s = 1\nfactor = 5\nrecovers_s = 10";
        let mut all = device(toml);
        assert_eq!(read(&mut all, 0, 0, 4096), 200.0);
        assert_eq!(read(&mut all, 1000, 1 << 29, 4096), 1100.0);
        write(&mut all, 2000, 1 << 28, 4096);
        assert_eq!(read(&mut all, 2050, 1 << 29, 4096), 2350.0);
        assert_eq!(read(&mut all, 1_500_000, 1 << 29, 4096), 1_500_500.0, "warm");
        assert_eq!(read(&mut all, 20_000_000, 1 << 29, 4096), 20_000_100.0, "rested");
    }

    #[test]
    fn equal_seeds_answer_alike() {
        let toml = "channels = 2\n[read]\nlatency_us = { mean = 100, sigma = 0.5 }\n\
                    [[stall]]\nperiod_ms = 5\nlength_ms = 1\nspread = 1";
        let run = || {
            let mut all = device(toml);
            (0..1000u64).map(|i| read(&mut all, i * 50, (i * 7919) << 12, 4096)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }
}
