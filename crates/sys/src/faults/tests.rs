use super::*;
use crate::perf::listed;
use crate::region::Region;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One test listens at a time: since Linux 6.2 an event that several listeners see carries one's number for all, and tests of one
/// process hear each other.
static LISTENING: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    LISTENING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// None, with the reason printed, where this user may not look.
fn opened(test: &str, open: impl FnOnce() -> io::Result<Faults>) -> Option<Faults> {
    match open() {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
            println!("SKIP {test}: {error}");
            None
        }
        faults => Some(faults.unwrap()),
    }
}

fn pages_of(region: &Region) -> Vec<u64> {
    let from = region.start().addr() as u64;
    (0..region.size() / region.page()).map(|page| from + (page * region.page()) as u64).collect()
}

#[test]
fn faults_of_threads_that_come_later_are_seen() {
    let _alone = alone();
    let name = "faults_of_threads_that_come_later_are_seen";
    let region = Region::new((1 << 20) + 7 * rustix::param::page_size()).unwrap();
    let pages = pages_of(&region);
    let Some(mut faults) = opened(name, || Faults::open(std::process::id(), 1)) else { return };
    let before = monotonic();
    let tid = std::thread::scope(|scope| {
        let touch = || {
            region.stamp(0, region.size(), 1);
            rustix::thread::gettid().as_raw_nonzero().get() as u32
        };
        scope.spawn(touch).join().unwrap()
    });
    let mut seen = Vec::new();
    faults.poll(&mut |fault| seen.extend((fault.tid == tid && pages.contains(&fault.addr)).then_some(fault)));
    assert_eq!(seen.iter().map(|fault| fault.addr).collect::<Vec<_>>(), pages);
    assert!(seen.iter().all(|fault| !fault.major && fault.took.is_none() && fault.at > before), "{:?}", seen[0]);
    assert!(seen.is_sorted_by_key(|fault| fault.at));
    assert_eq!(faults.lost(), 0);
}

#[test]
fn what_a_fault_took_is_known_while_it_listens() {
    let _alone = alone();
    let name = "what_a_fault_took_is_known_while_it_listens";
    let Some(mut faults) = opened(name, || Faults::timed(std::process::id())) else { return };
    let region = Region::new((1 << 20) + 11 * rustix::param::page_size()).unwrap();
    let pages = pages_of(&region);
    let half = region.size() / 2;
    region.stamp(0, half, 1);
    faults.listen(true).unwrap();
    region.stamp(half, region.size() - half, 1);
    faults.listen(false).unwrap();
    let mut seen = Vec::new();
    faults.poll(&mut |fault| seen.extend(pages.contains(&fault.addr).then_some(fault)));
    assert!(seen.len() >= pages.len() / 2 && seen.len() <= pages.len() / 2 + 1, "{}", seen.len());
    let longest = Duration::from_secs(5).as_nanos() as u64;
    assert!(seen.iter().all(|fault| fault.took.is_some_and(|took| took > 0 && took < longest)), "{:?}", seen[0]);
}

#[test]
fn a_full_ring_counts_what_it_loses() {
    let _alone = alone();
    let name = "a_full_ring_counts_what_it_loses";
    let Some(mut faults) = opened(name, || Faults::open(std::process::id(), 1)) else { return };
    let pages = 60_000;
    let region = Region::new(pages * rustix::param::page_size()).unwrap();
    region.stamp(0, region.size(), 1);
    let mut seen = 0;
    faults.poll(&mut |_| seen += 1);
    // What is lost is told with the next record that finds room: on every processor, for this thread may have moved.
    for cpu in online().unwrap() {
        if crate::thread::pin(cpu as usize).is_ok() {
            Region::new(1 << 16).unwrap().stamp(0, 1 << 16, 1);
        }
    }
    faults.poll(&mut |_| seen += 1);
    if !faults.user_only() {
        assert!(faults.lost() > 0 && seen + faults.lost() >= pages as u64, "{seen} seen, {} lost", faults.lost());
    }
}

#[test]
fn two_listeners_agree_on_what_is_major() {
    let _alone = alone();
    let name = "two_listeners_agree_on_what_is_major";
    const PAGES: usize = 32;
    let page = rustix::param::page_size();
    // Where files are in RAM no fault of theirs is major.
    let path = std::path::Path::new("/var/tmp").join(format!("tiermark-faults-{}", std::process::id()));
    std::fs::write(&path, vec![7u8; PAGES * page]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let Some(mut faults) = opened(name, || Faults::open(std::process::id(), 1)) else { return };
    let Some(mut timed) = opened(name, || Faults::timed(std::process::id())) else { return };
    faults.know(&mut timed);
    timed.listen(true).unwrap();
    let (protection, flags) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::PRIVATE);
    // SAFETY: a new mapping of a whole file that nobody shortens, read below and then given back.
    let at = unsafe { rustix::mm::mmap(std::ptr::null_mut(), PAGES * page, protection, flags, &file, 0) }.unwrap();
    // SAFETY: as above.
    unsafe { rustix::mm::madvise(at, PAGES * page, rustix::mm::Advice::Random) }.unwrap();
    for nth in 0..PAGES {
        // SAFETY: inside of the mapping.
        assert_eq!(unsafe { std::ptr::read_volatile(at.cast::<u8>().add(nth * page)) }, 7);
    }
    let count = |faults: &mut Faults| {
        let (mut major, mut all) = (0, 0);
        faults.poll(&mut |fault| {
            if (at as u64..(at as u64) + (PAGES * page) as u64).contains(&fault.addr) {
                all += 1;
                major += usize::from(fault.major);
            }
        });
        (major, all)
    };
    let (one, other) = (count(&mut faults), count(&mut timed));
    // SAFETY: our own mapping, which nobody borrows.
    unsafe { rustix::mm::munmap(at, PAGES * page) }.unwrap();
    if one.0 == 0 && other.0 == 0 {
        return println!("SKIP {name}: what was written to a file here stays in RAM");
    }
    assert_eq!(one, other);
    assert_eq!(one.0, PAGES, "{one:?}");
}

#[test]
fn what_is_not_there_is_said() {
    let error = Faults::open(u32::MAX >> 1, 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("no process"), "{error}");
    let denied = explained(io::Error::from_raw_os_error(libc::EACCES), 7);
    assert!(denied.kind() == io::ErrorKind::PermissionDenied && denied.to_string().contains("perf_event_paranoid"));
    assert_eq!(listed("0-2,5\n"), Some(vec![0, 1, 2, 5]));
    assert_eq!(listed("0-x"), None);
}

fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
