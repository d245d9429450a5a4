//! What a disk holds: its bytes, what of them a power cut would take back, and the address at which a disk that claims
//! more than it has begins again from the front.

use crate::backing::Backing;
use crate::undo::{BLOCK, Undo};
use std::io;

/// Bytes, undo data, and the true size.
#[derive(Debug)]
pub(crate) struct Store {
    backing: Backing,
    undo: Undo,
    /// Addresses from here on are those from 0 on again.
    real: Option<u64>,
}

impl Store {
    /// `cache` bounds the undo data.
    pub fn new(backing: Backing, cache: u64, real: Option<u64>) -> Self {
        Store { backing, undo: Undo::new(cache), real }
    }

    /// From now on the disk holds so much, whatever it claims.
    pub fn wrap(&mut self, real: Option<u64>) {
        self.real = real.map(|real| (real / BLOCK * BLOCK).max(BLOCK));
    }

    /// The true places of a range.
    fn places(&self, offset: u64, len: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let real = self.real.unwrap_or(u64::MAX);
        let end = offset + len;
        let mut at = offset;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let place = at % real;
            let part = (real - place).min(end - at);
            at += part;
            Some((place, part))
        })
    }

    pub fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut rest = into;
        for (place, part) in self.places(offset, rest.len() as u64) {
            let (here, later) = rest.split_at_mut(part as usize);
            self.backing.read(place, here)?;
            rest = later;
        }
        Ok(())
    }

    /// What [`Store::read`] would copy, where it lies in memory one after the other.
    pub fn lend(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let (place, part) = self.places(offset, len as u64).next()?;
        if part == len as u64 { self.backing.lend(place, len) } else { None }
    }

    pub fn write(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        let mut rest = from;
        for (place, part) in self.places(offset, from.len() as u64) {
            let (here, later) = rest.split_at(part as usize);
            self.remember(place, part)?;
            self.backing.write(place, here)?;
            rest = later;
        }
        Ok(())
    }

    /// Zeros that a power cut may take back.
    pub fn zero(&mut self, offset: u64, len: u64) -> io::Result<()> {
        for (place, part) in self.places(offset, len) {
            // Zeros over a hole change nothing; the rest in steps, so that a large range does not list all its blocks.
            let step = 1 << 20;
            for at in (place..place + part).step_by(step) {
                let len = (place + part - at).min(step as u64);
                if !self.backing.is_hole(at, len) {
                    self.remember(at, len)?;
                }
            }
            self.backing.punch(place, part)?;
        }
        Ok(())
    }

    /// Makes holes. What a cut does to a block that was written before it may still do; trimming itself is not undone.
    pub fn trim(&mut self, offset: u64, len: u64) -> io::Result<()> {
        self.places(offset, len).try_for_each(|(place, part)| self.backing.punch(place, part))
    }

    fn remember(&mut self, place: u64, len: u64) -> io::Result<()> {
        for block in self.undo.missing(place, len) {
            let at = block * BLOCK;
            let before = if self.backing.is_hole(at, BLOCK) {
                None
            } else {
                let mut bytes = self.undo.room();
                self.backing.read(at, &mut bytes)?;
                Some(bytes)
            };
            self.undo.remember(block, before);
        }
        Ok(())
    }

    /// All that was written is durable.
    pub fn flush(&mut self) {
        self.undo.forget();
    }

    /// Loses what was not flushed, but for a random choice. Gives the number of sectors lost.
    pub fn cut(&mut self, seed: u64) -> io::Result<u64> {
        let lost = self.undo.cut(seed);
        for (at, bytes) in &lost {
            self.backing.write(*at, bytes)?;
        }
        Ok(lost.len() as u64)
    }

    /// Turns one bit over, where something is stored.
    pub fn flip(&mut self, offset: u64, bit: u8) -> io::Result<()> {
        let Some((place, _)) = self.places(offset, 1).next() else { return Ok(()) };
        let mut byte = [0];
        self.backing.read(place, &mut byte)?;
        byte[0] ^= 1 << (bit & 7);
        self.backing.write(place, &byte)
    }

    /// Bytes that are really taken, and bytes that a cut could take back.
    pub fn taken(&self) -> (u64, u64) {
        (self.backing.taken(), self.undo.pending())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(real: Option<u64>) -> Store {
        let mut store = Store::new(Backing::ram(), 1 << 20, None);
        store.wrap(real);
        store
    }
    fn byte(store: &Store, offset: u64) -> u8 {
        let mut byte = [0xff];
        store.read(offset, &mut byte).unwrap();
        byte[0]
    }

    #[test]
    fn a_cut_keeps_what_was_flushed_and_tears_the_rest() {
        let mut store = store(None);
        store.write(0, &[1; 64 << 10]).unwrap();
        store.flush();
        store.write(0, &[2; 64 << 10]).unwrap();
        store.write(1 << 20, &[3; 64 << 10]).unwrap();
        let lost = store.cut(5).unwrap();
        let sectors = |from: u64| (0..128).map(move |i| from + i * 512);
        let (old, new) = sectors(0).partition::<Vec<_>, _>(|at| byte(&store, *at) == 1);
        assert!(!old.is_empty() && !new.is_empty() && new.iter().all(|at| byte(&store, *at) == 2));
        let zeros = sectors(1 << 20).filter(|at| byte(&store, *at) == 0).count();
        assert_eq!(old.len() + zeros, lost as usize);
        assert_eq!(store.cut(5).unwrap(), 0);
    }

    #[test]
    fn zeros_can_be_taken_back_and_trim_cannot() {
        let mut store = store(None);
        store.write(0, &[1; 128 << 10]).unwrap();
        store.flush();
        store.zero(0, 64 << 10).unwrap();
        store.trim(64 << 10, 64 << 10).unwrap();
        assert!((0..256).all(|i| byte(&store, i * 512) == 0));
        assert!(store.cut(1).unwrap() > 0);
        assert!((0..128).any(|i| byte(&store, i * 512) == 1));
        assert!((128..256).all(|i| byte(&store, i * 512) == 0));
    }

    #[test]
    fn a_fake_disk_begins_again_from_the_front() {
        let mut store = store(Some(1 << 20));
        store.write((1 << 20) - 512, &[7; 1024]).unwrap();
        assert_eq!((byte(&store, 0), byte(&store, (1 << 20) - 1), byte(&store, 512)), (7, 7, 0));
        assert_eq!(byte(&store, 5 << 20), 7);
    }

    #[test]
    fn a_bit_turns_over() {
        let mut store = store(None);
        store.flip(1000, 3).unwrap();
        assert_eq!(byte(&store, 1000), 8);
    }
}
