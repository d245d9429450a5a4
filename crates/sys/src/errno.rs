//! The few error numbers that a measuring loop tells apart, so that it need not link `libc` for them.

pub use libc::{EAGAIN, ECANCELED, EINTR, EIO, ENODATA, ENOSPC, EPIPE, EPROTO};
