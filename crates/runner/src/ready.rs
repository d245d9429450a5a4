//! Targets made ready: test files created and filled, files and devices opened with what the job may do and nothing
//! more. Whoever holds an [`Opened`] may use it; the engine opens nothing itself.

use crate::RunError;
use crate::model::Model;
use crate::pressed::{Needs, Pressing};
use crate::redis::{Limits, Media, Site, Stock};
use basics::job::{Direction, Entropy, Order, Sync};
use basics::plan::{Act, CHUNK, Target};
use basics::pressure::Pressed;
use basics::redis::Medium;
use basics::{Bytes, Job, Nanos, Plan, Predicted};
use change::{Journal, TestFile, guard};
use engine::{Control, EngineError, Outcome, Sink};
use machine::Machine;
use profile::Profile;
use rustix::fs::{Advice, Mode, OFlags, fadvise, open};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

/// The targets of one plan.
pub struct Targets<'a> {
    journal: &'a Journal,
    specs: Vec<Target>,
    files: BTreeMap<usize, OwnFile>,
    models: Models,
    /// What stands for the target under pressure that is in use, and which it is: two would be in each other's way.
    pressing: Option<(usize, Pressing)>,
    /// Emulated disks with a file system, for what keeps files.
    media: Media,
    limits: Limits,
    stock: Stock,
    run: String,
    seed: u64,
}

/// Device models by target, each made when it is first asked for.
type Models = BTreeMap<usize, Rc<RefCell<Model>>>;

/// A test file and how much of it holds written data.
struct OwnFile {
    file: TestFile,
    written: Bytes,
}

/// A target opened for one step.
pub enum Opened {
    /// A file or device.
    File {
        /// What the engine gets.
        fd: OwnedFd,
        /// Usable from offset 0.
        len: Bytes,
        /// For direct I/O.
        alignment: Bytes,
        /// O_DIRECT is on.
        direct: bool,
    },
    /// Memory.
    Memory(Bytes),
    /// Nothing.
    Null {
        /// Time that each operation takes.
        service: Nanos,
        /// Every `.0`, all operations wait for `.1`.
        stall: Option<(Nanos, Nanos)>,
    },
    /// A device model, which the next step on its target meets as this one leaves it.
    Model(Rc<RefCell<Model>>),
}

/// An opened target with what a reader of its figures must know.
pub struct Ready {
    /// For the engine.
    pub opened: Opened,
    /// Each a sentence.
    pub notes: Vec<String>,
}

/// Targets that may be used as the plan asks.
pub struct Allowed(Vec<Target>);

/// Refuses at once, before anything has begun, a plan that would write what must not be written, or whose jobs can be
/// seen not to fit their targets. Devices are asked about again when they are opened.
pub fn allowed(plan: &Plan) -> Result<Allowed, RunError> {
    for target in &plan.targets {
        if let Target::File { path } | Target::Device { path, .. } | Target::TestFile { dir: path, .. } = target
            && path.to_str().is_none()
        {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "its name is not UTF-8, as records are");
            return Err(failed(path, source));
        }
    }
    for step in plan.steps.iter().filter(|step| step.job.direction.writes()) {
        match &plan.targets[step.target] {
            Target::File { path } => return Err(guard::existing_file_refused(path).into()),
            Target::Device { path, destroy } => {
                guard::device_for_writing(Path::new("/"), path, destroy.as_deref())?;
            }
            _ => {}
        }
    }
    // A step that may fail is an account of its own; what every step hangs on is refused before there is a run.
    for step in plan.steps.iter().filter(|step| !step.may_fail) {
        match &plan.targets[step.target] {
            Target::TestFile { dir, size, .. } => {
                change::may_make(dir, whole_chunks(*size))?;
                engine::may_fit(&step.job, *size)?;
            }
            Target::File { path } => {
                let len = std::fs::metadata(path).map_err(|source| failed(path, source))?.len();
                engine::may_fit(&step.job, Bytes(len))?;
            }
            Target::Memory { .. }
            | Target::Null { .. }
            | Target::Device { .. }
            | Target::Profile { .. }
            | Target::Pressed(_)
            | Target::Redis(_) => {}
        }
    }
    Ok(Allowed(plan.targets.clone()))
}

impl<'a> Targets<'a> {
    /// The targets of a run.
    pub fn new(allowed: Allowed, run: &str, seed: u64, journal: &'a Journal) -> Self {
        let (files, models) = (BTreeMap::new(), BTreeMap::new());
        let (pressing, media, limits, stock) = (None, Media::default(), Limits::default(), Stock::default());
        Targets { journal, specs: allowed.0, files, models, pressing, media, limits, stock, run: run.to_owned(), seed }
    }

    /// The file that must still be written whole before a step on this target, if there is one, with its length and
    /// content.
    pub fn unfilled(&mut self, index: usize) -> Result<Option<(PathBuf, Bytes, Entropy)>, RunError> {
        let Target::TestFile { dir, size, entropy, first_step_fills } = &self.specs[index] else {
            return Ok(None);
        };
        let own = match self.files.entry(index) {
            Entry::Occupied(own) => own.into_mut(),
            Entry::Vacant(place) => {
                let file = TestFile::create(self.journal, &self.run, dir, whole_chunks(*size))?;
                place.insert(OwnFile { file, written: Bytes(0) })
            }
        };
        let wanted = !first_step_fills && own.written < *size;
        Ok(wanted.then(|| (own.file.path().to_owned(), own.file.size(), *entropy)))
    }

    /// What the target is.
    pub fn spec(&self, index: usize) -> &Target {
        &self.specs[index]
    }

    /// What stands for a target under pressure; it is set up when it does not yet.
    pub fn press(
        &mut self,
        index: usize,
        spec: &Pressed,
        (machine, program, interrupted): (&Machine, &Path, &AtomicBool),
    ) -> Result<&Pressing, RunError> {
        let standing = self.pressing.take_if(|(target, _)| *target == index).map(|(_, pressing)| pressing);
        let pressing = match standing {
            Some(pressing) => pressing,
            None => {
                let needs = Needs { journal: self.journal, machine, program, run: &self.run, interrupted };
                Pressing::set_up(spec, &needs)?
            }
        };
        Ok(&self.pressing.insert((index, pressing)).1)
    }

    /// The directory of a medium, made ready where it is not, and the disk below where it is ours.
    pub fn medium(&mut self, medium: &Medium, program: &Path) -> Result<(PathBuf, Option<String>), RunError> {
        self.media.place(medium, Site { journal: self.journal, run: &self.run, program })
    }

    /// The media that are there.
    pub fn media(&mut self) -> &mut Media {
        &mut self.media
    }

    /// What clients of Redis servers could do at most, as far as that was found.
    pub fn limits(&mut self) -> &mut Limits {
        &mut self.limits
    }

    /// Vectors of the run's caches.
    pub fn stock(&mut self) -> &mut Stock {
        &mut self.stock
    }

    /// What a step needs of its run to start something.
    pub fn site<'s>(&'s self, program: &'s Path) -> Site<'s> {
        Site { journal: self.journal, run: &self.run, program }
    }

    /// The target in a few words.
    pub fn describe(&self, index: usize) -> String {
        self.specs[index].describe()
    }

    /// Where the target lies, when it lies anywhere.
    pub fn path(&self, index: usize) -> Option<&Path> {
        match &self.specs[index] {
            Target::File { path } | Target::Device { path, .. } | Target::TestFile { dir: path, .. } => Some(path),
            Target::Memory { .. }
            | Target::Null { .. }
            | Target::Profile { .. }
            | Target::Pressed(_)
            | Target::Redis(_) => None,
        }
    }

    /// Whether nothing of the target is real.
    pub fn is_model(&self, index: usize) -> bool {
        matches!(self.specs[index], Target::Profile { .. })
    }

    /// Does something to a target between two jobs.
    pub fn act(&mut self, index: usize, act: Act) -> Result<(), RunError> {
        if let (Act::Renew, Some(own)) = (act, self.files.get_mut(&index)) {
            own.file.renew()?;
            own.written = Bytes(0);
            return Ok(());
        }
        let path = match &self.specs[index] {
            Target::File { path } | Target::Device { path, .. } => path.as_path(),
            Target::TestFile { .. } => match self.files.get(&index) {
                Some(own) => own.file.path(),
                None => return Ok(()),
            },
            Target::Profile { toml, .. } => {
                return Ok(living(&mut self.models, index, toml, self.seed)?.borrow_mut().act(act)?);
            }
            Target::Memory { .. } | Target::Null { .. } | Target::Pressed(_) | Target::Redis(_) => return Ok(()),
        };
        let fail = |source| failed(path, source);
        let fd = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| fail(errno.into()))?;
        match act {
            Act::Fsync => rustix::fs::fsync(&fd).map_err(|errno| fail(errno.into()))?,
            Act::Drop => {
                rustix::fs::fsync(&fd).map_err(|errno| fail(errno.into()))?;
                // Only root may drop a device's buffers; where that is refused, the hint does for what is clean.
                if sys::file::drop_buffers(&fd).is_err() {
                    let _ = fadvise(&fd, 0, None::<NonZeroU64>, Advice::DontNeed);
                }
            }
            Act::Renew | Act::Sync | Act::Rest(_) => {}
        }
        Ok(())
    }

    /// Opens a test file for being filled, whole.
    pub fn open_to_fill(&mut self, index: usize, job: &Job) -> Result<Ready, RunError> {
        match self.files.get(&index) {
            Some(own) => open_file(own.file.path(), Some(own.file.size()), job, true),
            None => self.open(index, job),
        }
    }

    /// Notes that `job` has written `bytes` to a test file; only what grows from its start without a gap counts.
    pub fn wrote(&mut self, index: usize, job: &Job, bytes: Bytes) {
        if let Some(own) = self.files.get_mut(&index)
            && fills(job)
        {
            // Beyond the job's region it began again from the start.
            let reached = bytes.min(job.size.unwrap_or(bytes)).min(own.file.size());
            own.written = own.written.max(reached);
        }
    }

    /// Opens a target for a step.
    pub fn open(&mut self, index: usize, job: &Job) -> Result<Ready, RunError> {
        let writes = job.direction.writes();
        match &self.specs[index] {
            Target::Memory { size } => Ok(Ready { opened: Opened::Memory(*size), notes: vec![] }),
            Target::Null { service, stall } => {
                Ok(Ready { opened: Opened::Null { service: *service, stall: *stall }, notes: vec![] })
            }
            Target::Profile { toml, .. } => {
                let model = Rc::clone(living(&mut self.models, index, toml, self.seed)?);
                let notes = model.borrow().notes.clone();
                Ok(Ready { opened: Opened::Model(model), notes })
            }
            Target::File { path } => open_file(path, None, job, false),
            Target::Pressed(_) | Target::Redis(_) => {
                Err(RunError::Load { what: "what is started for a step is not opened".to_owned() })
            }
            Target::TestFile { dir, size, first_step_fills, .. } => {
                let own = self.files.get(&index);
                let written = own.map_or(Bytes(0), |own| own.written.min(*size));
                // What writes from the start to the end may go to the end; everything else stays on written ground.
                let usable = if fills(job) { *size } else { written };
                let least = Bytes(job.block.largest().0 * u64::from(job.threads));
                match own {
                    Some(own) if !first_step_fills || usable >= least => {
                        open_file(own.file.path(), Some(usable), job, writes)
                    }
                    _ => Err(RunError::TooLittle { path: dir.clone(), usable }),
                }
            }
            Target::Device { path, destroy } => {
                let mut notes = Vec::new();
                let fd = if writes {
                    let grant = guard::device_for_writing(Path::new("/"), path, destroy.as_deref())?;
                    notes.extend(grant.overrides().map(|content| {
                        format!("what was on the device is destroyed, as --destroy allowed: {content}")
                    }));
                    grant.into_fd(job.direct)?
                } else {
                    guard::device_for_reading(path, job.direct)?
                };
                let len = sys::file::block_device_size(&fd).map_err(|source| failed(path, source))?;
                let sector = sys::file::logical_block_size(&fd).map_err(|source| failed(path, source))?;
                drop_cached(&fd, job);
                let alignment = Bytes(u64::from(sys::file::dio_alignment(&fd).unwrap_or(sector).max(sector)));
                let opened = Opened::File { fd, len: Bytes(len), alignment, direct: job.direct };
                Ok(Ready { opened, notes })
            }
        }
    }

    /// Removes the test files that no step after `index` uses; what could not be removed is told, and tried again at
    /// the next start.
    pub fn release(&mut self, plan: &Plan, index: usize) -> Vec<RunError> {
        let later: Vec<usize> = plan.steps[index + 1..].iter().map(|step| step.target).collect();
        let (keep, done) = std::mem::take(&mut self.files).into_iter().partition(|(target, _)| later.contains(target));
        self.files = keep;
        let mut troubles = remove(done);
        let next = plan.steps.get(index + 1).map(|step| step.target);
        if let Some((_, pressing)) = self.pressing.take_if(|(target, _)| Some(*target) != next) {
            troubles.extend(pressing.take_down());
        }
        troubles
    }

    /// Removes what is left, and tells as [`Targets::release`] does.
    pub fn close(&mut self) -> Vec<RunError> {
        let mut troubles = remove(std::mem::take(&mut self.files));
        troubles.extend(self.pressing.take().into_iter().flat_map(|(_, pressing)| pressing.take_down()));
        troubles.extend(self.media.close());
        troubles
    }
}

/// The device of a target that is a model of this profile.
fn living<'a>(
    models: &'a mut Models,
    index: usize,
    toml: &str,
    seed: u64,
) -> Result<&'a Rc<RefCell<Model>>, EngineError> {
    Ok(match models.entry(index) {
        Entry::Occupied(model) => model.into_mut(),
        Entry::Vacant(place) => {
            let profile = Profile::parse(toml).map_err(EngineError::Profile)?;
            place.insert(Rc::new(RefCell::new(Model::new(&profile, seed))))
        }
    })
}

fn remove(files: BTreeMap<usize, OwnFile>) -> Vec<RunError> {
    files.into_values().filter_map(|own| own.file.remove().err()).map(RunError::from).collect()
}

fn whole_chunks(size: Bytes) -> Bytes {
    Bytes(size.0.next_multiple_of(CHUNK))
}

/// True for a job that leaves written ground without a gap behind it.
fn fills(job: &Job) -> bool {
    job.direction == Direction::Write && job.order == Order::Sequential && job.offset.0 == 0 && job.threads == 1
}

fn failed(path: &Path, source: std::io::Error) -> RunError {
    let hint = match source.kind() {
        std::io::ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => {
            "; root may not either: the container, its device rules or the place itself forbid this"
        }
        std::io::ErrorKind::PermissionDenied => "; try again as root, or give a directory that you may write",
        _ => "",
    };
    RunError::Open { path: path.to_owned(), source, hint }
}

/// Opens a plain file. O_DIRECT and O_NOATIME are asked for and done without where they are refused.
fn open_file(path: &Path, usable: Option<Bytes>, job: &Job, write: bool) -> Result<Ready, RunError> {
    let mut flags = OFlags::CLOEXEC | if write { OFlags::RDWR } else { OFlags::RDONLY };
    flags |= match job.sync {
        Sync::Dsync => OFlags::DSYNC,
        Sync::OSync => OFlags::SYNC,
        _ => OFlags::empty(),
    };
    let mut notes = Vec::new();
    let attempt = |extra: OFlags| open(path, flags | extra, Mode::empty());
    let with_atime_kept = |extra| match attempt(extra | OFlags::NOATIME) {
        // Only the owner of a file may leave its access time alone.
        Err(Errno::PERM) => attempt(extra),
        result => result,
    };
    let (fd, direct) = match job.direct {
        true => match with_atime_kept(OFlags::DIRECT) {
            Err(Errno::INVAL) => {
                notes.push("O_DIRECT is refused here: these are the page cache's figures, not the medium's".to_owned());
                (with_atime_kept(OFlags::empty()), false)
            }
            result => (result, true),
        },
        false => (with_atime_kept(OFlags::empty()), false),
    };
    let fd = fd.map_err(|errno| failed(path, errno.into()))?;
    let len = match usable {
        Some(len) => len,
        None => Bytes(rustix::fs::fstat(&fd).map_err(|e| failed(path, e.into()))?.st_size.try_into().unwrap_or(0)),
    };
    drop_cached(&fd, job);
    // Without an answer of the kernel (before 6.1) the strictest common sector is safe.
    let alignment = Bytes(u64::from(sys::file::dio_alignment(&fd).unwrap_or(4096)));
    Ok(Ready { opened: Opened::File { fd, len, alignment, direct }, notes })
}

/// Before a buffered job: what the cache holds of the target is written out and dropped, if the job asks for it.
fn drop_cached(fd: &OwnedFd, job: &Job) {
    if !job.direct && job.invalidate {
        // Both are hints: a target that cannot do them has nothing cached.
        let _ = rustix::fs::fdatasync(fd);
        let _ = fadvise(fd, 0, None::<NonZeroU64>, Advice::DontNeed);
    }
}

impl Opened {
    /// How much of it `job` uses, from the job's offset on; a null target has no bytes.
    pub fn region(&self, job: &Job) -> Option<Bytes> {
        let len = match self {
            Opened::File { len, .. } | Opened::Memory(len) => *len,
            Opened::Null { .. } | Opened::Model(_) => return None,
        };
        let left = Bytes(len.0.saturating_sub(job.offset.0));
        Some(job.size.map_or(left, |size| size.min(left)))
    }

    /// Runs a job here: really, or on the model in virtual time, which can say between what its figures lie.
    pub fn run(
        &self,
        job: &Job,
        control: &Control<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(Outcome, Option<Predicted>), EngineError> {
        let target = match self {
            Opened::File { fd, len, alignment, direct } => {
                engine::Target::File { fd: fd.as_fd(), len: *len, alignment: *alignment, direct: *direct }
            }
            Opened::Memory(size) => engine::Target::Memory { size: *size },
            Opened::Null { service, stall } => engine::Target::Null { service: *service, stall: *stall },
            Opened::Model(model) => return model.borrow_mut().run(job, control, sink),
        };
        Ok((engine::run(job, target, control, sink)?, None))
    }
    /// True when no operation is real.
    pub fn is_model(&self) -> bool {
        matches!(self, Opened::Model(_))
    }
}
