//! Named procedures, each expanding to a plan. A method is data plus a small function from settings and sites to a
//! [`Plan`]; it runs nothing, computes no statistics, and the runner does not know it by name. To add one, write one
//! file like `swap_sim.rs` and list it in [`ALL`].
#![forbid(unsafe_code)]

mod capacity;
mod check;
pub mod fio;
mod fsync;
mod gnome_disks;
mod hdparm;
mod iozone;
mod job;
mod ping;
mod profiling;
mod sd_class;
mod settings;
mod site;
mod snia;
mod ssd_review;
mod survey;
mod swap_sim;
mod zeros;

pub use check::{Effort, check};
pub use settings::{Default, Parameter, Settings};
pub use site::{Site, Where, figures_in, profile_named};
pub use survey::{LEAST_ROOM, survey};

use basics::{Bytes, Plan};
use machine::Machine;
use std::path::PathBuf;
use thiserror::Error;

/// What a method is asked for.
#[derive(Debug)]
pub struct Request<'a> {
    /// Where; most methods take one.
    pub site: &'a Site,
    /// `--set KEY=VALUE`.
    pub settings: &'a Settings,
    /// To the letter of the published procedure.
    pub as_published: bool,
    /// The machine, for defaults that depend on it.
    pub machine: &'a Machine,
}

impl Request<'_> {
    /// The kernel's page size, 4 KiB where it is not known.
    pub fn page_size(&self) -> Bytes {
        self.machine.page_size.get().copied().unwrap_or(Bytes(4096))
    }

    /// The length of what is worked on, where that is known.
    fn length(&self) -> Result<Option<Bytes>, MethodError> {
        self.site.length(self.machine)
    }
}

/// A named procedure.
pub trait Method: Sync {
    /// Short kebab-case name.
    fn name(&self) -> &'static str;
    /// One line: what it finds out.
    fn summary(&self) -> &'static str;
    /// What it costs: time, bytes written, room.
    fn cost(&self) -> &'static str;
    /// Where it was published, when it was.
    fn source(&self) -> Option<&'static str> {
        None
    }
    /// What `--set` takes.
    fn parameters(&self) -> &'static [Parameter];
    /// The plan for a request that this method can be asked for.
    ///
    /// # Errors
    /// A setting that makes no sense, or a site that the method cannot work on.
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError>;
    /// The plan for a request.
    ///
    /// # Errors
    /// Those of [`Method::expand`], and [`MethodError::NotPublished`] where the letter of what was never published is wanted.
    fn plan(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        if request.as_published && self.source().is_none() {
            return Err(MethodError::NotPublished(self.name()));
        }
        self.expand(request)
    }
}

/// Every method that `tiermark run` knows.
pub const ALL: &[&dyn Method] = &[
    &job::JobMethod,
    &swap_sim::SwapSim,
    &profiling::Profiling,
    &capacity::FakeCapacity,
    &hdparm::Hdparm,
    &fsync::Fsync,
    &ping::Ping,
    &sd_class::SdClass,
    &iozone::Iozone,
    &gnome_disks::GnomeDisks,
    &zeros::Zeros,
    &ssd_review::SsdReview,
    &snia::Snia,
];

/// The method of that name.
///
/// # Errors
/// When there is none; the message lists those that exist.
pub fn find(name: &str) -> Result<&'static dyn Method, MethodError> {
    ALL.iter().copied().find(|method| method.name() == name).ok_or_else(|| MethodError::UnknownMethod {
        name: name.to_owned(),
        known: ALL.iter().map(|method| method.name()).collect::<Vec<_>>().join(", "),
    })
}

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum MethodError {
    /// No method of that name.
    #[error("there is no method {name:?}; there are {known} (see `tiermark methods`)")]
    UnknownMethod {
        /// As typed.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// No parameter of that name.
    #[error("method {method} has no parameter {key:?}{hint}; `tiermark methods {method}` lists them")]
    UnknownKey {
        /// The method.
        method: &'static str,
        /// As typed.
        key: String,
        /// A likely spelling, as "; did you mean …?".
        hint: String,
    },
    /// Not of the form KEY=VALUE.
    #[error("--set takes KEY=VALUE, not {0:?}")]
    NotASetting(String),
    /// A value that makes no sense.
    #[error("{key}={value}: {why}")]
    Value {
        /// The parameter.
        key: String,
        /// As typed.
        value: String,
        /// What it should be.
        why: String,
    },
    /// `--as-published` where nothing was.
    #[error("method {0} was not published anywhere; leave --as-published away")]
    NotPublished(&'static str),
    /// The settings make no sense together.
    #[error(transparent)]
    Job(#[from] basics::job::JobError),
    /// `--scale` where there is nothing to shorten.
    #[error(transparent)]
    Scale(#[from] basics::NothingToScale),
    /// No such profile, or one that cannot be used.
    #[error(transparent)]
    Profile(#[from] profile::ProfileError),
    /// A line of a job file of fio's that is not followed.
    #[error("{}, line {line}: {why}", path.display())]
    JobFile {
        /// The file, or one that it includes.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The key in the way, and the way out.
        why: String,
    },
    /// Nothing there.
    #[error("{} does not exist; give a directory, a file, a block device, `memory`, `null` or `profile:NAME`", path.display())]
    Missing {
        /// As typed.
        path: PathBuf,
    },
    /// A file that was given for something that its text is not.
    #[error("{}: {why}", path.display())]
    Malformed {
        /// As typed.
        path: PathBuf,
        /// What is wrong with the text, and where.
        why: String,
    },
    /// There, and of no use.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// As typed.
        path: PathBuf,
        /// What is wrong with it, and the way out.
        why: String,
    },
}
