//! What the slowest requests were slow for. That a stall of the server's main thread falls together with a slow request says nothing:
//! most of them do by chance. It is the cause where it covers at least half of the time by which the request was late, and it is
//! claimed only where the same stalls at other moments of the run would not have covered as much.

use basics::outcome::Slow;
use basics::spikes::{Cause, LongCommand, Spikes, Stall};
use basics::units::significant;
use basics::{Bytes, Nanos};
use std::collections::BTreeMap;

/// Requests closer together than this are late for one reason.
const APART: Nanos = Nanos::from_millis(5);
/// How near to the end of a second a command may have ended and be told in the next one.
const EDGE: Nanos = Nanos::from_millis(50);
/// By so many parts of the run the stalls are moved to see what chance covers.
const SHIFTS: u64 = 10;
/// What a cause must explain of all lateness to be claimed, and by how much more than chance.
const CLAIMED: f64 = 0.25;
/// Stalls that a drawing has room for.
const SHADED: usize = 60;
/// A late request is late by at least this; below it nobody asks why.
const LATE: Nanos = Nanos::from_millis(1);
/// What another program must have taken of the run to be a cause: something else always runs for a moment.
const TAKEN: f64 = 0.02;
/// Where the main thread waits for its own syncs most of the time they are its work, and only one that takes so many times as long as
/// others is a spike's cause.
const WORK: f64 = 0.5;
const UNUSUAL: u64 = 3;
/// A value from which on a request may take the server a millisecond by itself.
const LONG: Bytes = Bytes(1 << 20);

/// What slow requests may be slow for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The fork of a child that saves or rewrites, and that child on the main thread's processor.
    Fork,
    /// A sync of the main thread's own.
    OwnSync,
    /// A write held up behind a sync of another of the server's threads.
    PendingSync,
    /// The disk otherwise.
    Disk,
    /// A command that takes long.
    Command,
    /// A signal that stopped the server.
    Stopped,
    /// Other programs on its processor.
    Processor,
    /// The load itself, which is made on the same machine: nothing that the server would meet without it.
    Load,
    /// The hypervisor, which is not this machine's to change.
    Steal,
}

impl Reason {
    fn of(cause: Cause) -> Self {
        match cause {
            Cause::Fork | Cause::Child => Reason::Fork,
            Cause::OwnSync => Reason::OwnSync,
            Cause::PendingSync => Reason::PendingSync,
            Cause::Disk => Reason::Disk,
            Cause::Processor => Reason::Processor,
            Cause::Load => Reason::Load,
            Cause::Stopped => Reason::Stopped,
            Cause::Command => Reason::Command,
            Cause::Steal => Reason::Steal,
        }
    }

    /// In JSON.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Fork => "fork",
            Reason::OwnSync => "own-sync",
            Reason::PendingSync => "pending-sync",
            Reason::Disk => "disk",
            Reason::Command => "command",
            Reason::Stopped => "stopped",
            Reason::Processor => "processor",
            Reason::Load => "load",
            Reason::Steal => "steal",
        }
    }

    /// Neither the server's nor the machine's doing.
    fn is_apart(self) -> bool {
        matches!(self, Reason::Load | Reason::Steal)
    }

    /// On a chart.
    pub fn label(self) -> &'static str {
        match self {
            Reason::Fork => "fork and child",
            Reason::OwnSync => "own sync",
            Reason::PendingSync => "write behind a pending sync",
            Reason::Disk => "disk",
            Reason::Command => "long command",
            Reason::Stopped => "stopped",
            Reason::Processor => "another program",
            Reason::Load => "the load itself",
            Reason::Steal => "no processor",
        }
    }

    fn words(self, count: usize) -> &'static str {
        let one = count == 1;
        match self {
            Reason::Fork if one => "is a fork and its child",
            Reason::Fork => "are forks and their children",
            Reason::OwnSync if one => "is a sync of its own",
            Reason::OwnSync => "are syncs of its own",
            Reason::PendingSync if one => "is a write held up behind a sync that was not done",
            Reason::PendingSync => "are writes held up behind a sync that was not done",
            Reason::Disk if one => "is a wait for the disk",
            Reason::Disk => "are waits for the disk",
            Reason::Command if one => "is a long command",
            Reason::Command => "are long commands",
            Reason::Stopped if one => "is a signal that stopped the server",
            Reason::Stopped => "are signals that stopped the server",
            Reason::Processor if one => "is other programs on its processor",
            Reason::Processor => "are other programs on its processor",
            Reason::Load if one => "is the load itself on the same processors",
            Reason::Load => "are the load itself on the same processors",
            Reason::Steal if one => "is a processor that was not there",
            Reason::Steal => "are processors that were not there",
        }
    }
}

/// A reason, and what it explains.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Which.
    pub reason: Reason,
    /// Of all the time by which the slowest requests were late.
    pub share: f64,
    /// What the same stalls would explain at other moments.
    pub by_chance: f64,
    /// Groups of slow requests whose slowest it explains.
    pub clusters: usize,
    /// The longest stall of it that explains one.
    pub worst: Nanos,
    /// What had the processor, or which command.
    pub who: String,
    /// Whether it is claimed as a cause.
    pub claimed: bool,
}

/// Of the slowest requests of all visits of a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Late {
    /// The percentile that they lie beyond.
    pub beyond: f64,
    /// Groups of requests that were late together.
    pub clusters: usize,
    /// Those of them that nothing explains.
    pub unexplained: usize,
    /// What explains the others, most first.
    pub reasons: Vec<Explained>,
    /// What could not be looked at.
    pub lacks: Vec<String>,
}

/// What was seen of one visit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub spikes: &'a Spikes,
    pub p50: Nanos,
    pub elapsed: Nanos,
    /// The longest value that the load sets or reads.
    pub largest: Bytes,
}

/// A stall with what follows it: until the main thread had nothing to do, those who come wait for those who waited.
struct Span<'a> {
    reason: Reason,
    from: u64,
    until: u64,
    busy: u64,
    who: &'a str,
    /// Of the load's: the requests of this thread alone.
    thread: Option<u32>,
}

/// A late request and its reason.
struct Told<'a> {
    slow: &'a Slow,
    reason: Reason,
    late: f64,
    /// Of its cluster.
    is_slowest: bool,
    /// The longest stall of it.
    longest: u64,
    who: &'a str,
}

#[derive(Default)]
struct Sum {
    late: f64,
    clusters: usize,
    worst: u64,
    who: BTreeMap<String, f64>,
}

/// All visits together.
pub(super) fn late(visits: &[Seen<'_>]) -> Option<Late> {
    let beyond = visits.first().and_then(|visit| visit.spikes.beyond).unwrap_or(99.9);
    let mut all = Late { beyond, ..Late::default() };
    let (mut sums, mut chance): (BTreeMap<Reason, Sum>, BTreeMap<Reason, f64>) = Default::default();
    let (mut total, mut taken) = (0.0, BTreeMap::<(Reason, &str), f64>::new());
    for visit in visits {
        for lack in &visit.spikes.lacks {
            if !all.lacks.contains(lack) {
                all.lacks.push(lack.clone());
            }
        }
        let late: Vec<&Slow> = visit.spikes.slowest.iter().filter(|slow| lateness(slow, visit.p50) >= LATE.0).collect();
        total += late.iter().map(|slow| lateness(slow, visit.p50) as f64).sum::<f64>();
        let clusters = clusters(&late);
        all.clusters += clusters.len();
        let spans = spans(visit, 0);
        for span in &spans {
            *taken.entry((span.reason, span.who)).or_default() +=
                (span.until - span.from) as f64 / visit.elapsed.0.max(1) as f64;
        }
        all.unexplained += explain(visit, &clusters, &spans, 0, &mut |told| {
            let sum = sums.entry(told.reason).or_default();
            sum.late += told.late;
            sum.clusters += usize::from(told.is_slowest);
            sum.worst = sum.worst.max(told.longest);
            *sum.who.entry(told.who.to_owned()).or_default() += told.late;
        });
        for shift in 1..SHIFTS {
            let shift = visit.elapsed.0 * shift / SHIFTS;
            let moved = self::spans(visit, shift);
            explain(visit, &clusters, &moved, shift, &mut |told| {
                *chance.entry(told.reason).or_default() += told.late;
            });
        }
    }
    if visits.is_empty() {
        return None;
    }
    let share = |late: f64| if total > 0.0 { late / total } else { 0.0 };
    for (reason, sum) in sums {
        let by_chance = share(chance.get(&reason).copied().unwrap_or(0.0) / (SHIFTS - 1) as f64);
        let share = share(sum.late);
        let took = taken.iter().filter(|((of, _), _)| *of == reason).max_by(|a, b| a.1.total_cmp(b.1));
        let of_run = took.map_or(0.0, |(_, taken)| taken / visits.len() as f64);
        let ordinary = reason == Reason::Processor && of_run < TAKEN;
        let claimed =
            !reason.is_apart() && !ordinary && sum.clusters > 0 && share >= CLAIMED && share >= 2.0 * by_chance;
        // Of other programs the one that took most, whoever else was there at the worst moment.
        let most = took.filter(|_| claimed && reason == Reason::Processor).map(|((_, who), _)| (*who).to_owned());
        let worst = || sum.who.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(who, _)| who);
        let who = most.or_else(worst).unwrap_or_default();
        all.reasons.push(Explained {
            reason,
            share,
            by_chance,
            clusters: sum.clusters,
            worst: Nanos(sum.worst),
            who,
            claimed,
        });
    }
    all.reasons.sort_by(|a, b| b.share.total_cmp(&a.share));
    Some(all)
}

/// Of one visit, as it is drawn: its slowest requests, each with what explains it.
#[derive(Debug, Clone, PartialEq)]
pub struct LateRequests<'a> {
    /// Each with its reason, in order; none where nothing explains it, or where it was hardly late.
    pub requests: Vec<(&'a Slow, Option<Reason>)>,
    /// What the server's main thread met, the longest of it in order.
    pub stalls: Vec<(Reason, &'a Stall)>,
}

/// Its slowest requests; the same rules as for the cell that it is a visit of.
pub(super) fn requests<'a>(visit: &Seen<'a>, most: usize) -> LateRequests<'a> {
    let slowest: Vec<&Slow> = visit.spikes.slowest.iter().collect();
    let late: Vec<&Slow> = slowest.iter().copied().filter(|slow| lateness(slow, visit.p50) >= LATE.0).collect();
    let mut reasons: Vec<(*const Slow, Reason)> = Vec::new();
    explain(visit, &clusters(&late), &spans(visit, 0), 0, &mut |told| {
        reasons.push((std::ptr::from_ref(told.slow), told.reason));
    });
    let of = |slow: &Slow| reasons.iter().find(|(other, _)| std::ptr::eq(*other, slow)).map(|(_, reason)| *reason);
    let mut requests: Vec<_> = slowest.into_iter().take(most).map(|slow| (slow, of(slow))).collect();
    requests.sort_by_key(|(slow, _)| slow.at);
    let main = visit.spikes.stalls.iter().filter(|stall| stall.thread.is_none());
    let mut stalls: Vec<_> = main.map(|stall| (Reason::of(stall.cause), stall)).collect();
    stalls.sort_by_key(|(_, stall)| std::cmp::Reverse(stall.until.0.saturating_sub(stall.from.0)));
    stalls.truncate(SHADED);
    stalls.sort_by_key(|(_, stall)| stall.from);
    LateRequests { requests, stalls }
}

fn lateness(slow: &Slow, p50: Nanos) -> u64 {
    slow.latency.0.saturating_sub(p50.0)
}

/// Those that were late together.
fn clusters<'s>(late: &[&'s Slow]) -> Vec<Vec<&'s Slow>> {
    let mut sorted = late.to_vec();
    sorted.sort_by_key(|slow| slow.at);
    let (mut all, mut until): (Vec<Vec<&Slow>>, u64) = (Vec::new(), 0);
    for slow in sorted {
        match all.last_mut() {
            Some(last) if slow.at.0 <= until + APART.0 => last.push(slow),
            _ => all.push(vec![slow]),
        }
        until = until.max(slow.at.0 + slow.latency.0);
    }
    all
}

/// The stalls, moved in a circle.
fn spans<'a>(visit: &Seen<'a>, shift: u64) -> Vec<Span<'a>> {
    let whole = visit.elapsed.0.max(1);
    let of = |stall: &'a Stall| {
        let length = stall.until.0.saturating_sub(stall.from.0);
        // Without a moment of rest it is not known how long others waited: as long again at most.
        let after = stall.idle.map_or(length, |idle| idle.0.saturating_sub(stall.until.0).min(4 * length));
        let from = if shift == 0 { stall.from.0 } else { (stall.from.0 + shift) % whole };
        let (until, busy) = (from + length, from + length + after);
        Span { reason: Reason::of(stall.cause), from, until, busy, who: &stall.who, thread: stall.thread }
    };
    let least = unusual(visit);
    let counts = |stall: &&Stall| stall.cause != Cause::OwnSync || stall.until.0.saturating_sub(stall.from.0) >= least;
    visit.spikes.stalls.iter().filter(counts).map(of).collect()
}

/// How long a sync of its own must take to be more than its work.
fn unusual(visit: &Seen<'_>) -> u64 {
    let syncs = visit.spikes.stalls.iter().filter(|stall| stall.cause == Cause::OwnSync);
    let mut lengths: Vec<u64> = syncs.map(|stall| stall.until.0.saturating_sub(stall.from.0)).collect();
    lengths.sort_unstable();
    if (lengths.iter().sum::<u64>() as f64) < WORK * visit.elapsed.0 as f64 {
        return 0;
    }
    UNUSUAL * lengths.get(lengths.len() / 2).copied().unwrap_or(0)
}

fn overlap(a: (u64, u64), b: (u64, u64)) -> u64 {
    a.1.min(b.1).saturating_sub(a.0.max(b.0))
}

/// Tells each late request's reason, and gives how many clusters nothing explains.
fn explain(
    visit: &Seen<'_>,
    clusters: &[Vec<&Slow>],
    spans: &[Span<'_>],
    shift: u64,
    told: &mut impl FnMut(Told<'_>),
) -> usize {
    let mut unexplained = 0;
    for cluster in clusters {
        let Some(slowest) = cluster.iter().max_by_key(|slow| slow.latency) else { continue };
        let command = command(visit, cluster, slowest, shift).filter(|command| ran(command, spans));
        for slow in cluster {
            let is_slowest = std::ptr::eq(*slow, *slowest);
            let late = lateness(slow, visit.p50);
            match reason(slow, late, spans, command.as_ref()) {
                Some((reason, longest, who)) => {
                    told(Told { slow, reason, late: late as f64, is_slowest, longest, who })
                }
                None => unexplained += usize::from(is_slowest),
            }
        }
    }
    unexplained
}

/// What covers at least half of the time by which it was late.
fn reason<'a>(
    slow: &Slow,
    late: u64,
    spans: &[Span<'a>],
    command: Option<&Span<'a>>,
) -> Option<(Reason, u64, &'a str)> {
    let exposed = (slow.at.0, slow.at.0 + slow.latency.0);
    // Its stalls alone, and only then what came after them.
    for busy in [false, true] {
        let mut covered: BTreeMap<Reason, (u64, u64, &str)> = BTreeMap::new();
        let of_thread = |span: &&Span<'_>| span.thread.is_none_or(|thread| thread == slow.thread);
        for span in spans.iter().filter(of_thread).chain(command) {
            let until = if busy { span.busy } else { span.until };
            let part = overlap(exposed, (span.from, until));
            if part > 0 {
                let of = covered.entry(span.reason).or_default();
                of.0 += part;
                if span.until - span.from > of.1 {
                    (of.1, of.2) = (span.until - span.from, span.who);
                }
            }
        }
        // What is the server's or the machine's comes before what stands apart, where both cover enough.
        let enough = covered.into_iter().filter(|(_, (covered, ..))| 2 * covered >= late);
        let most = enough.max_by_key(|(reason, (covered, ..))| (!reason.is_apart(), *covered));
        if let Some((reason, (_, longest, who))) = most {
            return Some((reason, longest, who));
        }
    }
    None
}

/// The long command that a cluster waited for: the server tells only the second in which it ended, which is when the first of those
/// that waited was answered.
fn command<'a>(visit: &Seen<'a>, cluster: &[&Slow], slowest: &Slow, shift: u64) -> Option<Span<'a>> {
    let ended = cluster.iter().map(|slow| slow.at.0 + slow.latency.0).min()?;
    // For chance the commands are moved, not the requests.
    let whole = visit.elapsed.0.max(1);
    let told = if shift == 0 { ended } else { (ended + whole - shift) % whole };
    let unix = visit.spikes.began_unix + told;
    let seconds = [unix.saturating_sub(EDGE.0), unix + EDGE.0].map(|ns| ns / 1_000_000_000);
    let fits = |command: &&LongCommand| {
        // These take as long as their fork, which is told by itself.
        !["BGSAVE", "BGREWRITEAOF"].iter().any(|forks| command.text.to_ascii_uppercase().starts_with(forks))
            && !is_of_the_load(&command.text, visit.largest)
            && (seconds[0]..=seconds[1]).contains(&command.second)
            && command.took.0 <= slowest.latency.0 + slowest.latency.0 / 10
    };
    let longest = visit.spikes.commands.iter().filter(fits).max_by_key(|command| command.took)?;
    let (from, busy) = (ended.saturating_sub(longest.took.0), ended + longest.took.0);
    Some(Span { reason: Reason::Command, from, until: ended, busy, who: &longest.text, thread: None })
}

/// A request of the load's own, which is a matter of microseconds: where one took long, the server had no processor meanwhile (the
/// hypervisor had it, or the kernel did not tell who), and that is not explained by the request.
fn is_of_the_load(text: &str, largest: Bytes) -> bool {
    let key = text.split(' ').nth(1).unwrap_or_default();
    let own = ["key:", "count:", "hash:", "zset:", "stream:", "vector:", "tiermark:"];
    largest < LONG && own.iter().any(|name| key.starts_with(name))
}

/// Whether the main thread was at work for most of a command's time: what it stood still for inside a command is the cause, and the
/// command has only been there.
fn ran(command: &Span<'_>, spans: &[Span<'_>]) -> bool {
    let stood = spans.iter().filter(|span| span.thread.is_none());
    let stood: u64 = stood.map(|span| overlap((command.from, command.until), (span.from, span.until))).sum();
    2 * stood < command.until - command.from
}

/// `of 9 clusters of requests beyond p99.9 5 are forks …; 1 is not explained`.
pub(super) fn sentence(late: &Late) -> Option<String> {
    if late.clusters == 0 {
        return late.lacks.first().cloned();
    }
    let mut parts = Vec::new();
    for explained in late.reasons.iter().filter(|explained| explained.clusters > 0) {
        let mut details = Vec::new();
        if explained.worst > Nanos(0) {
            details.push(format!("up to {}", explained.worst));
        }
        if !explained.who.is_empty() {
            details.push(explained.who.clone());
        }
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        parts.push(format!("{} {}{details}", explained.clusters, explained.reason.words(explained.clusters)));
    }
    if late.unexplained > 0 {
        parts.push(format!("{} {} not explained", late.unexplained, if late.unexplained == 1 { "is" } else { "are" }));
    }
    let groups = if late.clusters == 1 { "1 group".to_owned() } else { format!("{} groups", late.clusters) };
    let mut text = format!("of {groups} of requests beyond p{} {}", late.beyond, parts.join(", "));
    match late.reasons.iter().find(|explained| explained.claimed) {
        Some(main) => {
            let percent = |share: f64| significant(100.0 * share);
            text += &format!(
                "; {} explains {} % of their lateness (by chance {} %)",
                main.reason.name(),
                percent(main.share),
                percent(main.by_chance)
            );
        }
        // What was not looked at cannot stand out.
        None => {
            text += &format!(
                "; {}",
                late.lacks.first().map_or("no cause in the server or beside it stands out", String::as_str)
            )
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests;
