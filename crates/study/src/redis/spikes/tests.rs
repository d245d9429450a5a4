use super::*;

const MS: u64 = 1_000_000;

fn ms(ms: u64) -> Nanos {
    Nanos(ms * MS)
}

fn slow(at: u64, latency: u64) -> Slow {
    Slow { thread: 0, read: true, at: ms(at), waited: Nanos(0), latency: ms(latency) }
}

fn stall(cause: Cause, from: u64, until: u64) -> Stall {
    Stall { thread: None, cause, from: ms(from), until: ms(until), idle: Some(ms(until + 1)), who: String::new() }
}

fn seen(spikes: &Spikes) -> Seen<'_> {
    Seen { spikes, p50: Nanos(200_000), elapsed: ms(10_000), largest: Bytes(64) }
}

fn of(spikes: &Spikes) -> Late {
    late(&[seen(spikes)]).unwrap()
}

#[test]
fn a_stall_that_covers_half_is_the_cause_and_one_that_only_meets_it_is_not() {
    // Twenty together behind a fork of 18 ms, then three behind nothing, one of which a short wait for a disk falls into.
    let mut slowest: Vec<Slow> = (0..20).map(|_| slow(1000, 19)).collect();
    slowest.extend([slow(5000, 10), slow(7000, 10), slow(9000, 10)]);
    let stalls = vec![stall(Cause::Fork, 1000, 1018), stall(Cause::Disk, 5003, 5006)];
    let late = of(&Spikes { slowest, stalls, ..Spikes::default() });
    assert_eq!((late.clusters, late.unexplained), (4, 3));
    assert_eq!(late.reasons.len(), 1);
    let fork = &late.reasons[0];
    assert_eq!((fork.reason, fork.clusters, fork.worst, fork.claimed), (Reason::Fork, 1, ms(18), true));
    assert!(fork.share > 0.9 && fork.by_chance < 0.05, "{fork:?}");
    let text = sentence(&late).unwrap();
    assert!(text.contains("of 4 groups") && text.contains("1 is a fork and its child (up to 18 ms)"), "{text}");
    assert!(text.contains("3 are not explained"), "{text}");
}

#[test]
fn what_comes_after_a_stall_waits_for_those_that_waited() {
    let slowest = vec![slow(1019, 10)];
    let stalls = vec![Stall { idle: Some(ms(1040)), ..stall(Cause::Stopped, 500, 1020) }];
    let late = of(&Spikes { slowest, stalls, ..Spikes::default() });
    assert_eq!((late.unexplained, late.reasons[0].reason), (0, Reason::Stopped));
}

#[test]
fn stalls_that_are_everywhere_are_no_cause() {
    // Something that holds it up for 6 of every 10 ms covers half of whatever is late, at any moment.
    let stalls = (0..1000).map(|n| stall(Cause::Disk, 10 * n, 10 * n + 6)).collect();
    let late = of(&Spikes { slowest: vec![slow(1000, 40), slow(3002, 40)], stalls, ..Spikes::default() });
    let disk = &late.reasons[0];
    assert!(disk.share > 0.9 && disk.by_chance > 0.9 && !disk.claimed, "{disk:?}");
    assert!(sentence(&late).unwrap().contains("no cause in the server or beside it stands out"));
}

#[test]
fn other_programs_are_a_cause_only_where_they_took_something() {
    let one = |from| Stall { who: "python3".to_owned(), ..stall(Cause::Processor, from, from + 6) };
    let slowest: Vec<Slow> = (1..20).map(|n| slow(400 * n, 7)).collect();
    let few = Spikes { slowest: slowest.clone(), stalls: (1..20).map(|n| one(400 * n)).collect(), ..Spikes::default() };
    assert!(!of(&few).reasons[0].claimed, "114 ms of 10 s");
    let often = (1..20).map(|n| one(400 * n)).chain((1..40).map(|n| one(240 * n + 15))).collect();
    let late = of(&Spikes { slowest, stalls: often, ..Spikes::default() });
    assert!(late.reasons[0].claimed && late.reasons[0].who == "python3", "{late:?}");
}

#[test]
fn the_load_stands_apart() {
    let of = |thread, from, until| Stall { thread: Some(thread), ..stall(Cause::Load, from, until) };
    let stalls = vec![of(0, 1000, 1009), of(1, 2000, 2009)];
    let slowest = vec![slow(1000, 10), slow(2000, 10)];
    let late = super::late(&[seen(&Spikes { slowest, stalls, ..Spikes::default() })]).unwrap();
    assert_eq!((late.unexplained, late.reasons[0].reason, late.reasons[0].claimed), (1, Reason::Load, false));
}

#[test]
fn a_long_command_is_found_by_its_second_and_its_length() {
    let slowest: Vec<Slow> = (0..50).map(|_| slow(4100, 240)).collect();
    let command = |second, took| LongCommand { second, took: ms(took), text: "KEYS *".to_owned() };
    let began_unix = 1_000_000_000_000;
    // One in another second, one too long for what was seen.
    let commands = vec![command(1009, 235), command(1004, 235), command(1004, 900)];
    let spikes = Spikes { slowest, commands, began_unix, ..Spikes::default() };
    let late = of(&spikes);
    let found = &late.reasons[0];
    assert_eq!((found.reason, found.worst, found.who.as_str()), (Reason::Command, ms(235), "KEYS *"));
    assert!(found.claimed && found.by_chance < 0.3, "{found:?}");
    let none = of(&Spikes { commands: vec![command(1009, 235)], ..spikes });
    assert_eq!((none.unexplained, none.reasons.len()), (1, 0));
}

#[test]
fn a_command_in_which_the_server_stood_still_is_not_what_it_stood_still_for() {
    let command = |text: &str| vec![LongCommand { second: 1004, took: ms(601), text: text.to_owned() }];
    let commands = command("KEYS *");
    let slowest = vec![slow(4100, 602), slow(4101, 601), slow(4300, 402)];
    let spikes = Spikes { slowest, commands, began_unix: 1_000_000_000_000, ..Spikes::default() };
    let stopped = of(&Spikes { stalls: vec![stall(Cause::Stopped, 4101, 4702)], ..spikes.clone() });
    assert_eq!((stopped.reasons.len(), stopped.reasons[0].reason), (1, Reason::Stopped));
    // A moment without the processor is no reason to look elsewhere.
    let ran = Spikes { stalls: vec![stall(Cause::Processor, 4101, 4109)], ..spikes };
    assert_eq!(of(&ran).reasons[0].reason, Reason::Command, "{ran:?}");
    // A GET of 64 B takes no such time by itself; one of many megabytes may.
    let get = Spikes { commands: command("GET key:000000000042"), stalls: Vec::new(), ..ran };
    assert_eq!(of(&get).reasons.len(), 0);
    let large = late(&[Seen { largest: Bytes(64 << 20), ..seen(&get) }]).unwrap();
    assert_eq!(large.reasons[0].reason, Reason::Command);
}

#[test]
fn syncs_that_are_its_work_are_no_cause_of_a_spike_and_one_that_hangs_is() {
    let syncs = || (0..900).map(|n| stall(Cause::OwnSync, 10 * n, 10 * n + 9));
    let usual = of(&Spikes { slowest: vec![slow(1000, 40)], stalls: syncs().collect(), ..Spikes::default() });
    assert_eq!((usual.unexplained, usual.reasons.len()), (1, 0));
    let stalls = syncs().chain([stall(Cause::OwnSync, 9100, 9500)]).collect();
    let hangs = of(&Spikes { slowest: vec![slow(1000, 40), slow(9101, 420)], stalls, ..Spikes::default() });
    let sync = &hangs.reasons[0];
    assert_eq!((hangs.unexplained, sync.reason, sync.worst, sync.claimed), (1, Reason::OwnSync, ms(400), true));
}

#[test]
fn what_is_late_by_less_than_a_millisecond_is_nobodys_question() {
    let slowest = vec![Slow { latency: Nanos(900_000), ..slow(1, 1) }];
    let late = of(&Spikes { slowest, lacks: vec!["no root".to_owned()], ..Spikes::default() });
    assert_eq!((late.clusters, sentence(&late).as_deref()), (0, Some("no root")));
    assert!(super::late(&[]).is_none());
}
