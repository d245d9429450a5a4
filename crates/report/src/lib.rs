//! Record and study to what people and programs read: [`terminal`], [`html`], [`markdown`], [`json`], and for other programs [`fio_json`],
//! [`csv`] and [`openmetrics`]. Deterministic: the same input gives
//! the same bytes, times come from the record. It measures nothing and derives nothing; every figure is `study`'s.
//!
//! A further format is a further module beside these three, with the same input.
#![forbid(unsafe_code)]

mod costs;
pub mod csv;
mod desktop_check;
pub mod fio_json;
pub mod html;
pub mod json;
pub mod live;
pub mod markdown;
pub mod openmetrics;
pub mod proof;
pub mod settings;
pub mod terminal;
mod view;
mod words;
mod workload;

pub use desktop_check::{DesktopCheck, Zswapped};
pub use terminal::Style;
pub use view::view;
pub use words::{file_name, file_name_of, profile_name};
