//! One swap area: what lies below it (a file, a device, an emulated disk, zram) made ready, its plain sequential rate taken
//! while it holds nothing yet, then switched on.

use super::Needs;
use super::behind::{Behind, Writer};
use super::shared::{self, Shared};
use crate::emulated::Emulated;
use crate::{RunError, errno};
use basics::job::{Block, Direction, Stop};
use basics::pressure::{Area as Spec, AreaSeen, Compressed};
use basics::units::MIB;
use basics::{Bytes, Interval, Job, Nanos};
use change::{SwapOn, TestFile, Zram, guard, swap_area, zram};
use engine::{Control, Ended};
use machine::{Root, SwapArea};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How long the sequential rate is taken.
const SEQUENTIAL: Nanos = Nanos::from_millis(1000);

/// What is below an area.
enum Base {
    File(TestFile),
    Device,
    /// An area of this machine's, on already, that stays as it is.
    Own,
    Emulated(Box<Emulated>),
    /// An emulated disk with a file system beside the area.
    Shared(Box<Shared>),
    /// The thread that has it write ends first, the disk behind it is let go last.
    Zram {
        writer: Option<Writer>,
        zram: Zram,
        behind: Option<Box<Behind>>,
    },
}

/// An area and what is below it.
pub(crate) struct Area {
    pub seen: AreaSeen,
    swap: Option<SwapOn>,
    base: Base,
    path: PathBuf,
}

/// Makes all areas ready, in the order of the plan; emulated disks start side by side.
pub(crate) fn set_up(specs: &[Spec], needs: &Needs<'_>) -> Result<Vec<Area>, RunError> {
    let mut starting = Vec::new();
    for spec in specs {
        let lowest = match spec {
            Spec::Zram { behind: Some(behind), .. } => behind.as_ref(),
            spec => spec,
        };
        starting.push(match lowest {
            Spec::Emulated { name, toml, size, files } => {
                let site = (needs.journal, needs.run, needs.program);
                Some(Emulated::begin((name, toml), shared::whole(*size, files.as_ref()), site)?)
            }
            _ => None,
        });
    }
    let mut ready = Vec::with_capacity(specs.len());
    for (spec, emulator) in specs.iter().zip(starting) {
        match spec {
            Spec::Own => ready.extend(needs.machine.swaps.iter().map(|own| Area::own(own, needs))),
            _ => ready.push(Area::new(spec, emulator, needs)?),
        }
    }
    Ok(ready)
}

fn failed(what: String) -> RunError {
    RunError::Load { what }
}

impl Area {
    fn new(spec: &Spec, emulator: Option<Emulated>, needs: &Needs<'_>) -> Result<Self, RunError> {
        let (base, path) = match (spec, emulator) {
            (Spec::Emulated { size, files: Some(files), .. }, Some(mut emulated)) => {
                let disk = emulated.device()?;
                let shared = Shared::of(emulated, &disk, (*size, files), needs)?;
                let path = shared.swap().to_owned();
                (Base::Shared(Box::new(shared)), path)
            }
            (Spec::Emulated { .. }, Some(mut emulated)) => {
                let path = emulated.device()?;
                (Base::Emulated(Box::new(emulated)), path)
            }
            (Spec::Zram { algorithm, size, behind }, emulator) => {
                let behind = behind.as_ref().map(|spec| Behind::of(spec, emulator, needs)).transpose()?;
                let disk = behind.as_ref().map(Behind::path);
                let zram = Zram::add(needs.journal, needs.run, *size, algorithm.as_deref(), disk)?;
                let path = zram.path().to_owned();
                (Base::Zram { writer: disk.map(|_| Writer::of(&path)), zram, behind: behind.map(Box::new) }, path)
            }
            (Spec::File { dir, size }, _) => {
                let file = TestFile::create(needs.journal, needs.run, dir, *size)?;
                let path = file.path().to_owned();
                (Base::File(file), path)
            }
            // As the kernel's tables have it, however it was named.
            (Spec::Device { path, .. }, _) => {
                (Base::Device, std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()))
            }
            (Spec::Emulated { name, .. }, None) => return Err(failed(format!("{name} was not started"))),
            (Spec::Own, _) => return Err(failed("this machine's own swap is not made".to_owned())),
        };
        let mut area = Area { seen: AreaSeen::default(), swap: None, base, path };
        area.seen.path = area.path.display().to_string();
        area.seen.what = spec.describe();
        area.seen.disk = area.disk(needs);
        area.seen.rotational = area.seen.disk.as_deref().and_then(rotational);
        area.prepare(spec, needs)?;
        Ok(area)
    }

    /// One that is on already. Its rate is taken where it is a device, which can be read beside its use.
    fn own(own: &SwapArea, needs: &Needs<'_>) -> Self {
        let mut area = Area { seen: AreaSeen::default(), swap: None, base: Base::Own, path: own.path.clone() };
        area.seen.path = own.path.display().to_string();
        area.seen.what = format!("this machine's own, priority {}", own.priority);
        area.seen.size = own.size;
        area.seen.disk = area.disk(needs);
        area.seen.rotational = area.seen.disk.as_deref().and_then(rotational);
        if zram::stat(&area.path).is_err() {
            let stop = Stop { time: Some(SEQUENTIAL), bytes: Some(own.size), ..Stop::default() };
            let file = open(&area.path, OFlags::RDONLY | OFlags::DIRECT);
            let rate = file.and_then(|file| sequential(&file, &area.path, Direction::Read, own.size, stop, needs));
            area.seen.sequential = rate.inspect_err(|error| tracing::debug!("{error}")).ok();
        }
        area
    }

    /// The disk that moves.
    fn disk(&self, needs: &Needs<'_>) -> Option<String> {
        match &self.base {
            Base::Shared(shared) => Some(shared.disk().file_name()?.to_str()?.to_owned()),
            Base::File(_) | Base::Own if !self.path.starts_with("/dev") => {
                let tier = machine::tier_of_path(needs.machine, &Root::live(), &self.path)?;
                machine::disks_below(needs.machine, &tier).into_iter().next()
            }
            _ => Some(self.path.file_name()?.to_str()?.to_owned()),
        }
    }

    /// Takes its sequential rate and makes a swap area of it.
    fn prepare(&mut self, spec: &Spec, needs: &Needs<'_>) -> Result<(), RunError> {
        let open = |flags| open(&self.path, flags);
        let file = match spec {
            Spec::Device { path, destroy } => match destroy {
                Some(_) => {
                    let grant = guard::device_for_writing(Path::new("/"), path, destroy.as_deref())?;
                    grant.into_fd(false)?
                }
                None => return self.given(path, needs),
            },
            _ => open(OFlags::RDWR)?,
        };
        let len = match &self.base {
            Base::File(file) => file.size(),
            _ => Bytes(sys::file::block_device_size(&file).map_err(|source| self.trouble(source))?),
        };
        self.seen.size = len;
        if !matches!(self.base, Base::Zram { .. }) {
            let direct = open(OFlags::RDWR | OFlags::DIRECT)?;
            if matches!(self.base, Base::File(_)) {
                // A file that was only allocated is read without its disk.
                sequential(
                    &direct,
                    &self.path,
                    Direction::Write,
                    len,
                    Stop { bytes: Some(len), ..Stop::default() },
                    needs,
                )?;
            }
            let stop = Stop { time: Some(SEQUENTIAL), bytes: Some(len), ..Stop::default() };
            self.seen.sequential = Some(sequential(&direct, &self.path, Direction::Read, len, stop, needs)?);
        }
        Ok(swap_area::format(&File::from(file), len, "tiermark")?)
    }

    /// A device that holds a swap area already is taken as it is.
    fn given(&mut self, path: &Path, needs: &Needs<'_>) -> Result<(), RunError> {
        let direct = guard::device_for_reading(path, true)?;
        let len = Bytes(sys::file::block_device_size(&direct).map_err(|source| self.trouble(source))?);
        self.seen.size = len;
        let stop = Stop { time: Some(SEQUENTIAL), bytes: Some(len), ..Stop::default() };
        self.seen.sequential = Some(sequential(&direct, path, Direction::Read, len, stop, needs)?);
        Ok(())
    }

    fn trouble(&self, source: std::io::Error) -> RunError {
        RunError::Open { path: self.path.clone(), source, hint: "" }
    }

    /// Where files can be kept on the same disk.
    pub fn folder(&self) -> Option<&Path> {
        match &self.base {
            Base::Shared(shared) => Some(shared.folder()),
            _ => None,
        }
    }

    /// Its device or file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Switches it on, where it is not.
    pub fn swap_on(&mut self, needs: &Needs<'_>, priority: u16) -> Result<(), RunError> {
        if matches!(self.base, Base::Own) {
            return Ok(());
        }
        self.swap = Some(SwapOn::on(needs.journal, needs.run, &self.path, Some(priority))?);
        Ok(())
    }

    /// As it stands now.
    pub fn now(&self) -> AreaSeen {
        let used = swap_area::used(&self.path).ok();
        let compressed = zram::stat(&self.path).ok().map(|stat| Compressed {
            algorithm: zram::algorithm(&self.path).unwrap_or_default(),
            original: stat.orig_data_size,
            compressed: stat.compr_data_size,
            memory: stat.mem_used_total,
            behind: zram::behind(&self.path).ok(),
        });
        AreaSeen { used, compressed, ..self.seen.clone() }
    }

    /// Switches it off and takes away what is below.
    pub fn take_down(mut self) -> Vec<RunError> {
        let mut troubles = Vec::new();
        troubles.extend(self.swap.take().and_then(|swap| swap.off().err()));
        // Where it could not be switched off, what is below says so and stays: pages lie there.
        troubles.extend(match self.base {
            Base::File(file) => file.remove().err(),
            Base::Device | Base::Own => None,
            Base::Zram { writer, zram, behind } => {
                drop(writer);
                let removed = zram.remove().err();
                // Until it is removed it holds the disk.
                let behind = behind.filter(|_| removed.is_none());
                let below = behind.map(|behind| behind.take_down()).unwrap_or_default();
                return troubles.into_iter().chain(removed).map(RunError::from).chain(below).collect();
            }
            Base::Shared(shared) => {
                return troubles.into_iter().map(RunError::from).chain(shared.take_down()).collect();
            }
            Base::Emulated(emulated) => {
                return troubles.into_iter().map(RunError::from).chain(emulated.end()).collect();
            }
        });
        troubles.into_iter().map(RunError::from).collect()
    }
}

fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, RunError> {
    let fd = rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
    fd.map_err(|errno| RunError::Open { path: path.to_owned(), source: errno.into(), hint: "" })
}

/// Whether the kernel takes a disk for one that turns.
fn rotational(disk: &str) -> Option<bool> {
    // A partition's queue is its disk's, the folder above.
    let below = ["queue", "../queue"].map(|queue| format!("/sys/class/block/{disk}/{queue}/rotational"));
    let text = below.iter().find_map(|path| std::fs::read_to_string(path).ok())?;
    Some(text.trim() == "1")
}

/// Reads or writes from the start in pieces of 1 MiB, four at a time.
fn sequential(
    fd: &OwnedFd,
    path: &Path,
    direction: Direction,
    len: Bytes,
    stop: Stop,
    needs: &Needs<'_>,
) -> Result<(Bytes, Nanos), RunError> {
    let job = Job { direction, block: Block::Fixed(Bytes(MIB)), depth: 4, stop, ..Job::default() };
    let target = engine::Target::File { fd: fd.as_fd(), len, alignment: Bytes(4096), direct: true };
    let outcome = engine::run(&job, target, &Control::new(needs.interrupted), &mut |_: &Interval| {})?;
    match outcome.ended {
        Ended::Cancelled => Err(RunError::Interrupted),
        Ended::Failed { offset, errno, .. } => {
            let what = if direction == Direction::Read { "reading" } else { "writing" };
            let target = path.display().to_string();
            Err(RunError::Operation { what, offset, target, reason: errno::in_words(errno), errno })
        }
        _ => Ok((Bytes(outcome.read.bytes + outcome.write.bytes), outcome.elapsed)),
    }
}
