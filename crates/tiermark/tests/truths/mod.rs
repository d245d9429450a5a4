//! The parts of the truth tests: where a question is asked, what is asked, and how the answers are shown.

pub mod agreement;
pub mod lab;
pub mod questions;
pub mod round;
pub mod table;
