//! A browser under pressure: its files on the disk under test, started in the group, told over a pipe to open pages and to go from one to
//! the other, and asked ten times a second whether the page in front answers. This process, which times it all, stays outside.

use super::Heard;
use super::pool::ZswapWatch;
use super::program::{Parent, Program, Running, environment};
use super::toucher::{Listener, Touched, Trouble};
use crate::RunError;
use basics::desktop::{Act, Browsed, Browsing, PageSeen};
use basics::{Bytes, Interval, Job, Latencies, Nanos, Side, job};
use browser::{BrowserError, DevTools, Event, INTERACTIVE, Pages};
use change::Folder;
use engine::Ended;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Between two questions to the page in front.
const BEAT: Duration = Duration::from_millis(100);
/// Between two looks at everything else.
const LOOK: Duration = Duration::from_millis(50);
/// Until the browser answers: its program may come from the slowest of cards.
const READY: Duration = Duration::from_secs(300);
/// At the end, for a page to show that it is alive.
const ALIVE: Duration = Duration::from_secs(20);
/// Between two acts of a user, who looks at what came.
const READING: Duration = Duration::from_millis(500);

/// Where it runs.
pub(super) struct Needs<'a> {
    pub parent: Parent<'a>,
    pub groups: Vec<PathBuf>,
    /// On the disk under test, where there is one for it.
    pub folder: Option<&'a Path>,
}

fn failed(what: impl std::fmt::Display) -> RunError {
    RunError::Load { what: what.to_string() }
}

/// A folder of its own, which on an emulated disk goes with that.
enum Home {
    Own(Box<Folder>),
    OnDisk(PathBuf),
}

impl Home {
    fn make(needs: &Needs<'_>) -> Result<Self, RunError> {
        match needs.folder {
            Some(folder) => {
                let path = folder.join("desktop");
                let _ = std::fs::remove_dir_all(&path);
                std::fs::create_dir(&path).map_err(failed)?;
                Ok(Home::OnDisk(path))
            }
            // Not /tmp, which is RAM on many a machine.
            None => {
                Ok(Home::Own(Box::new(Folder::make(needs.parent.journal, needs.parent.run, Path::new("/var/tmp"))?)))
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            Home::Own(folder) => folder.path(),
            Home::OnDisk(path) => path,
        }
    }
}

/// Copies the program and what it needs, and has the page cache let go of it. Where it is then, and how much was copied.
fn copied(
    browsing: &Browsing,
    home: &Path,
    listener: &mut dyn Listener,
    cancel: &AtomicBool,
) -> Result<PathBuf, RunError> {
    let from = browsing.program.parent().unwrap_or(Path::new("/"));
    let to = home.join("program");
    let mut done = 0;
    for name in browser::files(&browsing.program).map_err(failed)? {
        let (source, target) = (from.join(&name), to.join(&name));
        std::fs::create_dir_all(target.parent().unwrap_or(&to)).map_err(failed)?;
        let mut read = File::open(&source).map_err(failed)?;
        let mut write = File::create(&target).map_err(failed)?;
        loop {
            if cancel.load(Relaxed) {
                return Err(RunError::Interrupted);
            }
            // In pieces, so that a slow card is seen to go on.
            let piece = std::io::copy(&mut std::io::Read::take(&mut read, 8 << 20), &mut write).map_err(failed)?;
            if piece == 0 {
                break;
            }
            done += piece;
            write.sync_data().map_err(failed)?;
            listener.heard(Heard::Filling(Bytes(done)));
        }
        let mode = std::fs::metadata(&source).map_err(failed)?.permissions();
        std::fs::set_permissions(&target, mode).map_err(failed)?;
    }
    let folder = File::open(home).map_err(failed)?;
    let _ = rustix::fs::syncfs(&folder);
    for name in browser::files(&browsing.program).map_err(failed)? {
        // What was written here would be found in memory without the limit's leave.
        for path in [to.join(&name), from.join(&name)] {
            if let Ok(file) = File::open(path) {
                let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
            }
        }
    }
    Ok(to.join(browsing.program.file_name().unwrap_or_default()))
}

/// A page in its tab.
struct Tab {
    session: String,
    target: String,
    seen: PageSeen,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Answer(u64),
    Interactive(usize),
}

/// What came of it.
enum Came {
    It(Value),
    /// Not within the time.
    Late,
    /// Its page crashed.
    Crashed,
}

/// Why no more is asked.
enum Stop {
    /// The browser has ended.
    Gone,
    Cancelled,
    EndedEarly(String),
}

struct Desk<'a> {
    tools: DevTools,
    tabs: Vec<Tab>,
    front: Option<usize>,
    /// The question under way: its number, and when it was put.
    beat: Option<(u64, Instant)>,
    last_beat: Instant,
    looked: Instant,
    begun: Instant,
    seen: Browsed,
    open: Interval,
    all: Side,
    width: Nanos,
    zswap: ZswapWatch<'a>,
    listener: &'a mut dyn Listener,
    cancel: &'a AtomicBool,
}

/// Has it do its work.
pub(super) fn run(
    browsing: &Browsing,
    job: &Job,
    needs: &Needs<'_>,
    zswap: ZswapWatch<'_>,
    cancel: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Touched, Trouble> {
    let trouble = |error: RunError| Trouble::Failed(error);
    let home = Home::make(needs).map_err(trouble)?;
    let program = match browsing.copied {
        true => copied(browsing, home.path(), listener, cancel).map_err(trouble)?,
        false => browsing.program.clone(),
    };
    let profile = home.path().join("profile");
    let log = File::create(home.path().join("log")).map_err(|error| trouble(failed(error)))?;
    let pages = Pages::serve(browsing.weight.0).map_err(|error| trouble(failed(error)))?;
    let this = Program {
        program,
        arguments: browser::arguments(&profile, rustix::process::geteuid().is_root()),
        environment: environment(home.path()),
        folder: home.path().to_owned(),
        groups: needs.groups.clone(),
        on_three_and_four: true,
    };
    let mut running = Running::start(this, &log, "a browser", &needs.parent).map_err(trouble)?;
    let (Some(to), Some(from)) = (running.child.stdin.take(), running.child.stdout.take()) else {
        return Err(trouble(failed("the browser has no pipe")));
    };
    let now = Instant::now();
    let mut desk = Desk {
        tools: DevTools::over(to, from),
        tabs: Vec::new(),
        front: None,
        beat: None,
        last_beat: now,
        looked: now,
        begun: now,
        seen: Browsed { patience: browsing.patience, answers: Latencies::lazy(), ..Browsed::default() },
        open: Interval::default(),
        all: Side::default(),
        width: job.interval,
        zswap,
        listener,
        cancel,
    };
    let stopped = desk.work(browsing, job, &pages).err();
    desk.ends();
    desk.seen.files = needs.folder.and_then(taken);
    let (mut notes, mut ended_early) = (Vec::new(), None);
    match stopped {
        Some(Stop::Cancelled) => return Err(trouble(RunError::Interrupted)),
        Some(Stop::EndedEarly(why)) => ended_early = Some(why),
        Some(Stop::Gone) if desk.seen.version.is_empty() => {
            drop(running);
            return Err(trouble(failed(format!("the browser did not come up; it wrote: {}", last_line(home.path())))));
        }
        Some(Stop::Gone) => {
            desk.seen.gone = Some(desk.begun.elapsed().into());
            let missed = missed(&desk.seen, browsing, job);
            desk.seen.acts.extend(missed);
            let by = if desk.listener.was_killed() { "the kernel for want of memory" } else { "itself" };
            notes.push(format!("the browser was ended by {by} after {}", Nanos::from(desk.begun.elapsed())));
        }
        None => {}
    }
    desk.interval(true);
    desk.listener.done();
    let Desk { seen, all, begun, .. } = desk;
    let elapsed = Nanos::from(begun.elapsed());
    drop(running);
    drop(home);
    let engine = (job::Engine::Browsed, "a browser does the work");
    let outcome = super::program::outcome(job, engine, (Ended::Operations, elapsed), all, notes);
    Ok(Touched {
        outcome,
        filled: None,
        tokens: Vec::new(),
        prompt: None,
        busy: None,
        lay: Vec::new(),
        watched: None,
        paged: None,
        ended_early,
        browsed: Some(seen),
        built: None,
    })
}

/// Bytes of files on a file system, by what each takes by its own word, and what it has given out for them.
fn taken(folder: &Path) -> Option<(Bytes, Bytes)> {
    let about = rustix::fs::statvfs(folder).ok()?;
    let used = Bytes((about.f_blocks - about.f_bfree) * about.f_frsize);
    let mut of_files = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.path().symlink_metadata() else { continue };
            if about.is_dir() {
                folders.push(entry.path());
            } else if about.is_file() {
                of_files += about.len();
            }
        }
    }
    Some((Bytes(of_files), used))
}

/// Which tabs are gone to, one after the other: each as often as any other, in an order that is drawn.
fn order(browsing: &Browsing, job: &Job) -> Vec<u32> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(job.seed);
    let switches = job.stop.operations.unwrap_or(0) as usize;
    let mut all = Vec::with_capacity(switches);
    while all.len() < switches {
        let mut round: Vec<u32> = (0..browsing.pages).collect();
        for at in (1..round.len()).rev() {
            round.swap(at, (random.next_u64() % (at as u64 + 1)) as usize);
        }
        all.extend(round);
    }
    all.truncate(switches);
    all
}

/// What a user would have done with a browser that has ended: it does not come.
fn missed(seen: &Browsed, browsing: &Browsing, job: &Job) -> Vec<Act> {
    let opens = (0..browsing.pages).map(|page| Act { page, opens: true, took: None });
    let goes = order(browsing, job).into_iter().map(|page| Act { page, opens: false, took: None });
    opens.chain(goes).skip(seen.acts.len()).collect()
}

/// What it wrote last.
fn last_line(home: &Path) -> String {
    let bytes = std::fs::read(home.join("log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(16 << 10)..]).into_owned();
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing").to_owned()
}

impl Desk<'_> {
    fn work(&mut self, browsing: &Browsing, job: &Job, pages: &Pages) -> Result<(), Stop> {
        let patience = Duration::from_nanos(browsing.patience.0);
        let asked = self.say("Browser.getVersion", json!({}), None)?;
        let Came::It(about) = self.wait(Wanted::Answer(asked), READY)? else { return Err(Stop::Gone) };
        self.seen.version = about["product"].as_str().unwrap_or_default().to_owned();
        self.seen.started = self.begun.elapsed().into();
        for page in 0..browsing.pages {
            self.opens(page, pages, patience)?;
        }
        let until = job.stop.time.map(|time| Instant::now() + Duration::from_nanos(time.0));
        for (round, tab) in (0..).zip(order(browsing, job)) {
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            self.goes_to(tab as usize, round, patience)?;
        }
        self.who_is_alive(ALIVE.min(patience))
    }

    /// Opens a page in a tab of its own and waits until it can be used.
    fn opens(&mut self, page: u32, pages: &Pages, patience: Duration) -> Result<(), Stop> {
        let begun = Instant::now();
        let left = |begun: Instant| patience.saturating_sub(begun.elapsed());
        let asked = self.say("Target.createTarget", json!({"url": "about:blank"}), None)?;
        let mut tab = Tab { session: String::new(), target: String::new(), seen: PageSeen::default() };
        if let Came::It(made) = self.wait(Wanted::Answer(asked), patience)? {
            tab.target = made["targetId"].as_str().unwrap_or_default().to_owned();
            let which = json!({"targetId": tab.target, "flatten": true});
            let asked = self.say("Target.attachToTarget", which, None)?;
            if let Came::It(made) = self.wait(Wanted::Answer(asked), left(begun))? {
                tab.session = made["sessionId"].as_str().unwrap_or_default().to_owned();
            }
        }
        let (index, session) = (self.tabs.len(), tab.session.clone());
        self.tabs.push(tab);
        let mut took = None;
        if !session.is_empty() {
            for (method, what) in [
                ("Inspector.enable", json!({})),
                ("Runtime.enable", json!({})),
                ("Runtime.addBinding", json!({"name": INTERACTIVE})),
                ("Page.navigate", json!({"url": pages.url(page)})),
            ] {
                self.say(method, what, Some(&session))?;
            }
            // One in the background is kept slow.
            let target = self.tabs[index].target.clone();
            self.say("Target.activateTarget", json!({"targetId": target}), None)?;
            self.comes_to_front(index);
            if let Came::It(_) = self.wait(Wanted::Interactive(index), left(begun))? {
                took = Some(Nanos::from(begun.elapsed()));
            }
        }
        self.tabs[index].seen.interactive = took;
        self.seen.acts.push(Act { page, opens: true, took });
        self.reads()
    }

    /// Goes to a tab and waits until it is shown as it is to be.
    fn goes_to(&mut self, index: usize, round: u64, patience: Duration) -> Result<(), Stop> {
        let begun = Instant::now();
        let (session, target) = (self.tabs[index].session.clone(), self.tabs[index].target.clone());
        let mut took = None;
        if !session.is_empty() && !self.tabs[index].seen.crashed {
            self.comes_to_front(index);
            self.say("Target.activateTarget", json!({"targetId": target}), None)?;
            let what = json!({"expression": format!("touch({round})"), "awaitPromise": true, "returnByValue": true});
            let asked = self.say("Runtime.evaluate", what, Some(&session))?;
            if let Came::It(answer) = self.wait(Wanted::Answer(asked), patience)?
                // A page that was never built has nothing to touch.
                && answer["result"]["type"] == "number"
            {
                took = Some(Nanos::from(begun.elapsed()));
            }
        }
        if let Some(took) = took {
            self.open.read.latency.record(took);
        }
        self.seen.acts.push(Act { page: index as u32, opens: false, took });
        self.reads()
    }

    fn comes_to_front(&mut self, index: usize) {
        if let Some((_, since)) = self.beat.take() {
            // As long as the page that is left has been silent, the user was without an answer.
            self.answered(since);
        }
        self.front = Some(index);
    }

    /// The user looks at what came.
    fn reads(&mut self) -> Result<(), Stop> {
        self.wait(Wanted::Answer(u64::MAX), READING).map(|_| ())
    }

    fn who_is_alive(&mut self, within: Duration) -> Result<(), Stop> {
        for index in 0..self.tabs.len() {
            let session = self.tabs[index].session.clone();
            if session.is_empty() || self.tabs[index].seen.crashed {
                continue;
            }
            self.front = Some(index);
            let asked = self.say("Runtime.evaluate", json!({"expression": "records.length"}), Some(&session))?;
            let came = self.wait(Wanted::Answer(asked), within)?;
            self.tabs[index].seen.alive = matches!(came, Came::It(answer) if answer["result"]["type"] == "number");
        }
        Ok(())
    }

    fn say(&mut self, method: &str, what: Value, session: Option<&str>) -> Result<u64, Stop> {
        self.tools.say(method, what, session).map_err(|_| Stop::Gone)
    }

    /// Waits, and meanwhile asks the page in front whether it answers, and looks after the rest.
    fn wait(&mut self, wanted: Wanted, within: Duration) -> Result<Came, Stop> {
        let until = Instant::now() + within;
        loop {
            self.look()?;
            let heard = match self.tools.hear(LOOK.min(until.saturating_duration_since(Instant::now()))) {
                Ok(heard) => heard,
                Err(BrowserError::Gone) => return Err(Stop::Gone),
                Err(_) => None,
            };
            match heard {
                Some(Event::Answer(number, result)) if self.beat.is_some_and(|(beat, _)| beat == number) => {
                    if let Some((_, since)) = self.beat.take() {
                        self.answered(since);
                    }
                    // A page whose process was another when it was told whom to call says it when it is asked.
                    let usable = result.is_ok_and(|answer| answer["result"]["value"] == true);
                    if usable && self.front.is_some_and(|front| wanted == Wanted::Interactive(front)) {
                        return Ok(Came::It(Value::Null));
                    }
                }
                Some(Event::Answer(number, result)) if wanted == Wanted::Answer(number) => {
                    return Ok(result.map_or(Came::Crashed, Came::It));
                }
                Some(Event::Called(session, name)) if name == INTERACTIVE => {
                    let index = self.tabs.iter().position(|tab| tab.session == session);
                    if index.is_some_and(|index| wanted == Wanted::Interactive(index)) {
                        return Ok(Came::It(Value::Null));
                    }
                }
                Some(Event::Crashed(session)) => {
                    let crashed = self.tabs.iter().position(|tab| tab.session == session);
                    if let Some(index) = crashed {
                        self.tabs[index].seen.crashed = true;
                        if self.front == Some(index) {
                            self.beat = None;
                            self.front = None;
                            return Ok(Came::Crashed);
                        }
                    }
                }
                _ => {}
            }
            if Instant::now() >= until {
                return Ok(Came::Late);
            }
        }
    }

    fn look(&mut self) -> Result<(), Stop> {
        if self.cancel.load(Relaxed) {
            return Err(Stop::Cancelled);
        }
        let now = Instant::now();
        if now - self.looked >= LOOK {
            self.looked = now;
            self.zswap.look();
            if let Some(why) = self.listener.enough() {
                return Err(Stop::EndedEarly(why));
            }
            self.interval(false);
        }
        if let (Some(front), None) = (self.front, self.beat)
            && now - self.last_beat >= BEAT
        {
            let session = self.tabs[front].session.clone();
            let asked =
                self.say("Runtime.evaluate", json!({"expression": "window.usable === true"}), Some(&session))?;
            (self.beat, self.last_beat) = (Some((asked, now)), now);
        }
        Ok(())
    }

    fn answered(&mut self, since: Instant) {
        let took = Nanos::from(since.elapsed());
        self.seen.answers.record(took);
        if took > self.seen.longest {
            (self.seen.longest, self.seen.longest_at) = (took, (since - self.begun).into());
        }
    }

    /// What stands when all is done and still there.
    fn ends(&mut self) {
        if let Some((_, since)) = self.beat.take() {
            self.answered(since);
        }
        self.seen.pages = self.tabs.iter().map(|tab| tab.seen).collect();
        self.seen.zswap = self.zswap.seen();
    }

    /// Tells what came since the last time, once that is long enough.
    fn interval(&mut self, last: bool) {
        let now = Nanos::from(self.begun.elapsed());
        if !last && now - self.open.start < self.width {
            return;
        }
        self.open.end = now;
        self.all.merge(&self.open.read);
        self.listener.heard(Heard::Interval(&self.open));
        self.open = Interval { start: now, ..Interval::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::job::Stop;

    #[test]
    fn tabs_are_gone_to_alike_and_what_did_not_come_is_counted() {
        let browsing = Browsing {
            program: PathBuf::from("/x"),
            copied: false,
            pages: 3,
            weight: Bytes(1),
            patience: Nanos::from_secs(1.0),
        };
        let job = Job { stop: Stop { operations: Some(7), ..Stop::default() }, seed: 5, ..Job::default() };
        let all = order(&browsing, &job);
        assert_eq!((all.len(), &all), (7, &order(&browsing, &job)));
        assert!((0..3).all(|page| all.iter().filter(|tab| **tab == page).count() >= 2), "{all:?}");
        let one = Act { page: 0, opens: true, took: Some(Nanos(1)) };
        let seen = Browsed { acts: vec![one], ..Browsed::default() };
        let rest = missed(&seen, &browsing, &job);
        assert_eq!((rest.len(), rest[0].page, rest[2].opens), (9, 1, false));
    }
}
