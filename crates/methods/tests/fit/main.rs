//! The fit judged against devices whose behaviour is known: profile → virtual time → fit → profile.
#![forbid(unsafe_code)]

mod predict;
mod round;
mod support;
