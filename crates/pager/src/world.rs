//! What whoever follows a program sees of its memory and does to it, so that the real one and one that is played can be followed.

use crate::units::Id;

/// Where the pages of a unit are, a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// In the program's page table.
    pub present: u64,
    /// To be read when they are touched.
    pub absent: u64,
    /// Bytes of a page.
    pub page: u32,
}

impl Look {
    /// Bytes of so many of its pages.
    pub fn bytes(&self, pages: u64) -> u32 {
        pages.count_ones() * self.page
    }
}

/// What is done to the program's memory.
pub trait World {
    /// Where a unit is now.
    fn look(&mut self, unit: Id) -> Look;
    /// Of these pages that the program would meet a fault at, those of files that are in memory all the same.
    fn cached(&mut self, unit: Id, pages: u64) -> u64;
    /// Bring these pages of it in.
    fn ahead(&mut self, unit: Id, pages: u64);
    /// Put these, which were asked for, into its page table once they are there: the program meets no fault of theirs.
    fn map(&mut self, unit: Id, pages: u64);
    /// Bytes that were asked for and do not count as its memory yet.
    fn coming(&mut self) -> u64;
    /// Bytes of swap that were asked for, and are not yet where they were to be put: in memory, or in its page table as well.
    fn under_way(&mut self) -> u64;
    /// Bytes that were sent out and still wait for that.
    fn going(&mut self) -> u64;
    /// Nobody used these, which were brought in: only the swap cache has them, which the kernel empties last. Have them leave.
    fn release(&mut self, unit: Id, pages: u64);
    /// Send it out.
    fn behind(&mut self, unit: Id);
    /// These pages of it were changed since they were brought in: they have to be written when they go. False where nobody can say.
    fn is_written(&mut self, unit: Id, pages: u64) -> bool;
    /// Whether a thread of the program computes, or waits for a page; not one that has ended or sleeps.
    fn is_at_work(&mut self, thread: u32) -> bool;
}
