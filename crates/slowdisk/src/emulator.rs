//! An emulated disk from start to stop: what the machine must have, folder, file system, loop device, what the way costs,
//! and the loop that waits for the end. Undone in the opposite order on every way out.

use crate::asked::Program;
use crate::backing::Backing;
use crate::calibrate::Calibration;
use crate::control;
use crate::disk::Disk;
use crate::error::{SlowdiskError, io_at};
use crate::faults::Fault;
use crate::figures::Figures;
use crate::fuse::{FILE, Mounted};
use crate::registry::{ABOUT, ABOUT_DRAFT, Description, Registry, SOCKET};
use crate::schedule::Clock;
use crate::store::Store;
use crate::way::Account;
use basics::Bytes;
use change::{FuseMount, Journal, LoopDevice, TestFile, guard};
use profile::Profile;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use sys::process::Identity;

/// Undo data where the profile has no write cache.
const UNDO: u64 = 24 << 20;
/// Smallest disk, and what its size is a multiple of.
const LEAST: u64 = 1 << 20;
const UNIT: u64 = 4096;
/// How often the loop looks whether it is to end, and what the kernel says of the device's requests.
const TICK: Duration = Duration::from_millis(50);
/// How often it looks whether anybody still uses a disk that waits for that.
const LOOK: Duration = Duration::from_millis(200);
/// Between two accounts of its figures.
const ACCOUNT: Duration = Duration::from_secs(1);

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// How it behaves.
    pub profile: Profile,
    /// Its size; the profile's when none is given.
    pub size: Option<Bytes>,
    /// A file to be made for its bytes; memory when none is given.
    pub backing: Option<PathBuf>,
    /// Where its FUSE file system is mounted: an empty directory; one of its own when none is given.
    pub at: Option<PathBuf>,
    /// What it is called; after the profile when no name is given.
    pub name: Option<String>,
    /// Where chance begins.
    pub seed: u64,
    /// Logical sectors, 512 or 4096 bytes.
    pub sector: u32,
    /// True when the process is alone in its session.
    pub own_session: bool,
    /// At work from the start.
    pub faults: Vec<Fault>,
}

/// What the thread that answers questions needs.
#[derive(Debug)]
pub(crate) struct Steering {
    pub disk: Arc<Disk>,
    pub device: PathBuf,
    /// Set when it is to end.
    pub stop: AtomicBool,
}

impl Steering {
    /// Why it may not stop now.
    pub fn in_use(&self) -> Option<String> {
        match guard::user_of(Path::new("/"), &self.device) {
            Ok(None) => None,
            Ok(Some((user, remedy))) => Some(format!("the emulated disk is not stopped: {user}; {remedy}")),
            Err(error) => {
                Some(format!("the emulated disk is not stopped: it cannot be seen whether it is used: {error}"))
            }
        }
    }
}

/// A running disk. Fields go in this order: what lies upon another first.
pub struct Emulator {
    description: Description,
    steering: Arc<Steering>,
    account: Option<Account>,
    device: Option<LoopDevice>,
    mounted: Option<Mounted>,
    folder: Option<FuseMount>,
    file: Option<TestFile>,
}

impl std::fmt::Debug for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulator").field("description", &self.description).finish_non_exhaustive()
    }
}

/// Says in one sentence what this machine lacks.
fn needs() -> Result<(), SlowdiskError> {
    let needs = |what: String| Err(SlowdiskError::Needs(format!("an emulated disk cannot be made here: {what}")));
    if !rustix::process::geteuid().is_root() {
        return needs("mounting and loop devices need root; try again with sudo".to_owned());
    }
    for (path, what) in [("/dev/fuse", "FUSE"), ("/dev/loop-control", "loop devices")] {
        if let Err(error) = File::options().read(true).write(true).open(path) {
            let way = "a kernel with it, its module loaded (modprobe), and in a container the device passed in";
            return needs(format!("{path} cannot be opened ({error}); {what} needs {way}"));
        }
    }
    Ok(())
}

/// Where the kernel shares the CPU between sessions first (autogroup), a nice value counts within a session alone.
const AUTOGROUP: &str = "/proc/self/autogroup";

/// Answers in time matter more than comfort: first in line for the CPU, never swapped out, no I/O of its own waits for
/// memory that only this disk could free. Each is done where the rights allow it.
fn brace(own_session: bool) {
    let _ = rustix::process::setpriority_process(None, -20);
    // A session of its own is gone with it; a user's is not to be changed.
    if own_session {
        let _ = std::fs::write(AUTOGROUP, "-20");
    }
    let flags = rustix::mm::MlockAllFlags::CURRENT | rustix::mm::MlockAllFlags::FUTURE;
    if rustix::mm::mlockall(flags | rustix::mm::MlockAllFlags::ONFAULT).is_err() {
        tracing::info!("memory cannot be locked: do not swap to this disk");
    }
    let _ = rustix::process::configure_io_flusher_behavior(true);
}

fn size_of(options: &Options) -> Result<Bytes, SlowdiskError> {
    let size = options.size.unwrap_or_else(|| options.profile.size());
    let whole = size.0 / UNIT * UNIT;
    if whole < LEAST {
        return Err(SlowdiskError::Usage(format!("an emulated disk of {size} is too small; --size 1MiB is the least")));
    }
    if i64::try_from(whole).is_err() || ![512, 4096].contains(&options.sector) {
        return Err(SlowdiskError::Usage("sectors have 512 or 4096 bytes, and a disk less than 8 EiB".to_owned()));
    }
    Ok(Bytes(whole))
}

impl Emulator {
    /// Makes the disk and measures the way to it, by `program`.
    ///
    /// # Errors
    /// [`SlowdiskError::Needs`] where the machine lacks something, [`SlowdiskError::Refused`] for a file that exists, and
    /// whatever the kernel says; everything that was made is undone then.
    pub fn start(
        options: &Options,
        registry: &Registry,
        journal: &Journal,
        program: &Program<'_>,
    ) -> Result<Self, SlowdiskError> {
        let size = size_of(options)?;
        if let Some(path) = options.backing.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
            let sentence = "exists, and an existing file is never written over; name one that does not";
            return Err(SlowdiskError::Refused(format!("{} {sentence}", path.display())));
        }
        if let Some(at) = &options.at {
            let mut entries = std::fs::read_dir(at).map_err(io_at("read the directory", at))?;
            if entries.next().is_some() {
                let sentence = "is not empty; --at takes an empty directory";
                return Err(SlowdiskError::Usage(format!("{} {sentence}", at.display())));
            }
        }
        needs()?;
        let locked = registry.lock()?;
        let name = registry.name(options.name.as_deref(), &options.profile.name)?;
        let id = format!("{name}-{:016x}", RandomState::new().build_hasher().finish());
        let files = [ABOUT, ABOUT_DRAFT, SOCKET];
        let file = match &options.backing {
            Some(path) => Some(TestFile::sparse(journal, &id, path, size)?),
            None => None,
        };
        let backing = match &file {
            Some(file) => File::options().read(true).write(true).open(file.path()).and_then(Backing::file),
            None => Ok(Backing::ram()),
        };
        let backing = backing.map_err(io_at("open", options.backing.clone().unwrap_or_default()))?;
        brace(options.own_session);
        let folder = FuseMount::prepare(journal, &id, registry.dir(), options.at.as_deref(), &files)?;
        let cache = options.profile.cache.map_or(UNDO, |cache| cache.size.0);
        let store = Store::new(backing, cache, None);
        let disk = Arc::new(Disk::new(&options.profile, size, options.seed, store, Clock::start()));
        let mounted = Mounted::new(Arc::clone(&disk), folder.at(), folder.source())
            .map_err(io_at("mount a FUSE file system at", folder.at()))?;
        folder.mounted();
        let device = LoopDevice::attach(journal, &id, &folder.at().join(FILE), options.sector)?;
        let account = Account::open(device.path());
        let calibration = Calibration { disk: &disk, device: device.path(), account: account.as_ref(), program };
        let (most, way) = (calibration.most()?, calibration.way()?);
        let counted = account.as_ref().and_then(|account| account.read().ok()).unwrap_or_default();
        disk.ready(way, counted);
        options.faults.iter().for_each(|fault| disk.fault(fault.clone()));
        let description = Description {
            name,
            profile: options.profile.name.clone(),
            device: device.path().to_owned(),
            size: size.0,
            floor_us: (way.base[0] / 100.0).round() / 10.0,
            most,
            backing: options.backing.as_ref().map_or_else(|| "ram".to_owned(), |path| path.display().to_string()),
            owner: Identity::of_this_process().map_err(io_at("look at", "/proc/self"))?,
        };
        let steering = Arc::new(Steering { disk, device: device.path().to_owned(), stop: AtomicBool::new(false) });
        control::serve(folder.folder(), Arc::clone(&steering))?;
        description.write(folder.folder())?;
        drop(locked);
        Ok(Emulator {
            description,
            steering,
            account,
            device: Some(device),
            mounted: Some(mounted),
            folder: Some(folder),
            file,
        })
    }

    /// Who it is.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Its figures so far.
    pub fn figures(&self) -> Figures {
        self.steering.disk.figures()
    }

    /// Serves until it is stopped through its socket, or `interrupted` is set while nobody uses the disk; while somebody does,
    /// `refused` is told why not, and `interrupted` is taken back. `account` is given the figures once a second.
    ///
    /// # Errors
    /// [`SlowdiskError::Told`] when somebody unmounted it or aborted its connection.
    pub fn serve(
        &self,
        interrupted: &AtomicBool,
        mut account: impl FnMut(&Figures),
        mut refused: impl FnMut(&str),
    ) -> Result<(), SlowdiskError> {
        let (mut looked, mut accounted) = (Instant::now(), Instant::now());
        loop {
            if self.steering.stop.load(SeqCst) {
                return Ok(());
            }
            if interrupted.load(SeqCst) {
                match self.steering.in_use() {
                    None => return Ok(()),
                    Some(why) => {
                        interrupted.store(false, SeqCst);
                        refused(&why);
                    }
                }
            }
            if self.mounted.as_ref().is_none_or(Mounted::is_over) {
                let sentence = "was unmounted or its connection aborted from outside: what it held is gone";
                return Err(SlowdiskError::Told(format!("the emulated disk {} {sentence}", self.description.name)));
            }
            if let Some(Ok(kernel)) = self.account.as_ref().map(Account::read) {
                self.steering.disk.look(kernel);
            }
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                let disk = &self.steering.disk;
                if disk.waits_for_peace() && self.steering.in_use().is_none() {
                    disk.come_back();
                }
            }
            if accounted.elapsed() >= ACCOUNT {
                accounted = Instant::now();
                account(&self.figures());
            }
            std::thread::sleep(TICK);
        }
    }

    /// Ends it: the loop device, the file system, the folder, the file.
    ///
    /// # Errors
    /// The first thing that cannot be undone now; the next start of any command tries again.
    pub fn stop(mut self) -> Result<(), SlowdiskError> {
        // A disk that is off would fail the last reads of whoever looks at it while it goes.
        self.steering.disk.come_back();
        let detached = self.device.take().map_or(Ok(()), LoopDevice::detach);
        let unmounted = self.mounted.take().map_or(Ok(()), Mounted::unmount);
        let removed = self.folder.take().map_or(Ok(()), FuseMount::remove);
        let deleted = self.file.take().map_or(Ok(()), TestFile::remove);
        detached?;
        unmounted.map_err(io_at("unmount the emulated disk", &self.description.name))?;
        removed?;
        Ok(deleted?)
    }
}
