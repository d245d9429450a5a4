use super::*;
use crate::world::Look;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::{HashMap, HashSet, VecDeque};

/// A machine whose kernel drops what was used longest ago, and a program that touches units.
pub(crate) struct Machine {
    room: usize,
    /// By unit: when it was used last; those in memory.
    used: HashMap<Id, u64>,
    mapped: HashSet<Id>,
    order: VecDeque<(Id, u64)>,
    pub(crate) now: u64,
    pub(crate) read: u64,
    /// Those that the program changes each time, and how often such a one went out.
    changed: HashSet<Id>,
    written: u64,
    /// Of files: what is in memory and not mapped can be told from what is not.
    files: bool,
    /// Units asked for, and those mapped beforehand.
    asks: u64,
    maps: u64,
    /// Bytes that wait to go out.
    going: u64,
    /// Threads that have ended, or sleep.
    ended: HashSet<u32>,
}

impl Machine {
    pub(crate) fn new(room: usize) -> Self {
        Machine {
            room,
            used: HashMap::new(),
            mapped: HashSet::new(),
            order: VecDeque::new(),
            now: 0,
            read: 0,
            changed: HashSet::new(),
            written: 0,
            files: false,
            asks: 0,
            maps: 0,
            going: 0,
            ended: HashSet::new(),
        }
    }

    /// The program touched these before it was followed.
    fn has_used(&mut self, units: &[Id]) {
        for unit in units {
            self.bring(*unit);
            self.mapped.insert(*unit);
        }
    }

    /// The program touches a unit: whether it meets a fault, and whether that is a major one.
    pub(crate) fn touch(&mut self, unit: Id) -> (bool, bool) {
        let was = self.bring(unit);
        (self.mapped.insert(unit), !was)
    }

    fn bring(&mut self, unit: Id) -> bool {
        self.now += 1;
        let was = self.used.insert(unit, self.now).is_some();
        self.order.push_back((unit, self.now));
        self.read += u64::from(!was);
        while self.used.len() > self.room {
            if let Some((unit, at)) = self.order.pop_front()
                && self.used.get(&unit) == Some(&at)
            {
                self.used.remove(&unit);
                self.mapped.remove(&unit);
            }
        }
        was
    }
}

impl World for Machine {
    fn look(&mut self, unit: Id) -> Look {
        let here = self.mapped.contains(&unit);
        Look { present: u64::from(here), absent: u64::from(!here), page: UNIT as u32 }
    }
    fn cached(&mut self, unit: Id, pages: u64) -> u64 {
        if self.files && self.used.contains_key(&unit) { pages } else { 0 }
    }
    fn ahead(&mut self, unit: Id, _: u64) {
        self.asks += 1;
        self.bring(unit);
    }
    fn release(&mut self, unit: Id, pages: u64) {
        if pages > 0 {
            self.used.remove(&unit);
        }
    }
    fn map(&mut self, _: Id, _: u64) {
        self.maps += 1;
    }
    fn coming(&mut self) -> u64 {
        0
    }
    fn going(&mut self) -> u64 {
        self.going
    }
    fn under_way(&mut self) -> u64 {
        0
    }
    fn behind(&mut self, unit: Id) {
        // What nobody touched is not found.
        if self.mapped.remove(&unit) {
            self.used.remove(&unit);
            self.written += u64::from(self.changed.contains(&unit));
        }
    }
    fn is_at_work(&mut self, thread: u32) -> bool {
        !self.ended.contains(&thread)
    }
    fn is_written(&mut self, unit: Id, _: u64) -> bool {
        self.changed.contains(&unit)
    }
}

/// The program touches these; major faults of them. A unit that was brought in ahead of its touch meets a minor one.
fn touch(follow: &mut Follow, machine: &mut Machine, units: impl IntoIterator<Item = Id>) -> u32 {
    let mut majors = 0;
    for unit in units {
        let (fault, major) = machine.touch(unit);
        if !fault {
            continue;
        }
        majors += u32::from(major);
        let now = machine.now * 600_000;
        follow.fault(Some(unit), 1, major, now);
        follow.act(machine, now);
    }
    majors
}

fn laps(count: u32, follow: &mut Follow, machine: &mut Machine, order: &[Id]) {
    for _ in 0..count {
        touch(follow, machine, order.iter().copied());
    }
}

const ROOM: u64 = 1000 * UNIT;

/// Followed for three laps, with room for a thousand units.
fn followed(order: &[Id]) -> (Follow, Machine) {
    let (mut follow, mut machine) = (Follow::new(order, ROOM, 0), Machine::new(1000));
    follow.survey(&mut machine);
    laps(3, &mut follow, &mut machine, order);
    (follow, machine)
}

#[test]
fn a_cycle_that_does_not_fit_is_read_but_for_what_is_kept() {
    let order: Vec<Id> = (0..1600).map(|at| at * 7 % 1600).collect();
    let mut machine = Machine::new(1000);
    machine.has_used(&order);
    let mut follow = Follow::new(&order, ROOM, 0);
    follow.survey(&mut machine);
    laps(4, &mut follow, &mut machine, &order);
    let before = machine.read;
    let majors: u32 = (0..10).map(|_| touch(&mut follow, &mut machine, order.clone())).sum();
    let a_lap = (machine.read - before) as f64 / 10.0;
    // 600 at least; all 1600 by the kernel alone.
    assert!(a_lap < 600.0 * 1.12, "{a_lap} {}", follow.inside());
    assert!(majors < 100 && !follow.is_astray(), "{majors}");
}

#[test]
fn what_was_used_once_is_not_kept_for_good() {
    // Each twentieth is in memory when the program is met, and not used any more.
    let idle = |unit: &Id| unit.is_multiple_of(20);
    let order: Vec<Id> = (0..1600).collect();
    let mut machine = Machine::new(1000);
    machine.has_used(&order);
    machine.has_used(&order.iter().copied().filter(idle).collect::<Vec<_>>());
    let mut follow = Follow::new(&order, ROOM, 0);
    follow.survey(&mut machine);
    let used: Vec<Id> = order.iter().copied().filter(|unit| !idle(unit)).collect();
    laps(10, &mut follow, &mut machine, &used);
    let left = order.iter().filter(|unit| idle(unit) && machine.used.contains_key(unit)).count();
    assert!(left < 8, "{left} of 80: {}", follow.inside());
}

#[test]
fn what_a_files_cache_still_has_is_not_asked_for() {
    let order: Vec<Id> = (0..1600).collect();
    let lap = |files: bool| {
        let (mut follow, mut machine) = (Follow::new(&order, ROOM, 0), Machine { files, ..Machine::new(1000) });
        machine.has_used(&order[..1000]);
        follow.survey(&mut machine);
        // It is divided because a part of it is to go.
        machine.mapped.clear();
        let read = machine.read;
        laps(1, &mut follow, &mut machine, &order);
        (machine.asks, machine.read - read)
    };
    let ((asks, read), (asks_blindly, read_blindly)) = (lap(true), lap(false));
    assert!(asks + 800 < asks_blindly && read < read_blindly + 100, "{asks} {asks_blindly}, {read} {read_blindly}");
}

#[test]
fn what_is_changed_stays() {
    let order: Vec<Id> = (0..1600).collect();
    let mut machine = Machine { changed: (0..200).map(|at| at * 8).collect(), ..Machine::new(1000) };
    let mut follow = Follow::new(&order, ROOM, 0);
    follow.survey(&mut machine);
    laps(8, &mut follow, &mut machine, &order);
    let before = (machine.read, machine.written);
    laps(4, &mut follow, &mut machine, &order);
    let a_lap = ((machine.read - before.0) as f64 / 4.0, (machine.written - before.1) as f64 / 4.0);
    // 75 of them would go each lap, as of the others.
    assert!(a_lap.0 < 600.0 * 1.12 && a_lap.1 < 4.0, "{a_lap:?} {}", follow.inside());
}

#[test]
fn what_waits_to_go_out_is_no_sign_of_too_much_kept() {
    let order: Vec<Id> = (0..1600).collect();
    let kept = |going: u64| {
        let (mut follow, mut machine) = followed(&order);
        let before = follow.kept();
        machine.going = going;
        for unit in order.iter().copied() {
            follow.left(Some(0));
            touch(&mut follow, &mut machine, [unit]);
        }
        before as i64 - follow.kept() as i64
    };
    assert!(kept(0) > 8 << 20 && kept(64 << 20) < 8 << 20, "{} {}", kept(0) >> 20, kept(64 << 20) >> 20);
}

#[test]
fn a_thread_that_has_ended_holds_nothing_up() {
    let order: Vec<Id> = (0..1600).collect();
    let (mut follow, mut machine) = (Follow::new(&order, ROOM, 0), Machine::new(1000));
    laps(4, &mut follow, &mut machine, &order);
    let now = machine.now * 600_000;
    follow.fault(Some(1599), 2, false, now);
    touch(&mut follow, &mut machine, 0..200);
    let held = |follow: &Follow| follow.front - follow.behind;
    assert!(held(&follow) > 190, "one that runs and is seen no more does, for a while: {}", follow.inside());
    machine.ended.insert(2);
    touch(&mut follow, &mut machine, 200..210);
    assert!(held(&follow) < 40, "{}", follow.inside());
}

#[test]
fn a_program_that_comes_back_is_let_go() {
    // Piece by piece, each from its beginning, as a model is trained.
    let order: Vec<Id> = (0..1600).collect();
    let (mut follow, mut machine) = followed(&order);
    touch(&mut follow, &mut machine, 0..1280);
    for piece in (0..12).rev() {
        touch(&mut follow, &mut machine, 100 * piece..100 * piece + 100);
    }
    assert!(follow.is_astray(), "{}", follow.inside());
}

#[test]
fn less_and_more_room_are_taken_up() {
    let order: Vec<Id> = (0..1600).collect();
    let mut machine = Machine::new(1000);
    let mut follow = Follow::new(&order, ROOM, 0);
    laps(4, &mut follow, &mut machine, &order);
    for room in [600usize, 1000, 1900] {
        machine.room = room;
        follow.room(room as u64 * UNIT);
        laps(4, &mut follow, &mut machine, &order);
        let before = machine.read;
        touch(&mut follow, &mut machine, order.clone());
        let read = (machine.read - before) as f64;
        assert!(read <= (1600usize.saturating_sub(room)) as f64 * 1.12, "{room}: {read} {}", follow.inside());
    }
    assert!(follow.fits());
}

#[test]
fn what_is_learned_badly_is_put_right() {
    let order: Vec<Id> = (0..1600).collect();
    // Each seventh was in memory when it was learned, and some do not come again.
    let mut learned: Vec<Id> = order.iter().copied().filter(|unit| unit % 7 != 0).collect();
    (0..50).for_each(|stray| learned.insert(stray * 20, 2000 + stray as Id));
    let mut machine = Machine::new(1000);
    let mut follow = Follow::new(&learned, ROOM, 0);
    laps(8, &mut follow, &mut machine, &order);
    let majors = touch(&mut follow, &mut machine, order.clone());
    assert!(majors < 20 && !follow.is_astray(), "{majors} {}", follow.inside());
    assert!(follow.order().len().abs_diff(1600) < 20, "{}", follow.order().len());
}

#[test]
fn another_order_ends_it() {
    let order: Vec<Id> = (0..1600).collect();
    let (mut follow, mut machine) = followed(&order);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let chance = (0..2000).map(|_| (rng.next_u64() % 1600) as Id);
    touch(&mut follow, &mut machine, chance);
    assert!(follow.is_astray(), "{}", follow.inside());
}

#[test]
fn one_bad_moment_does_not_end_what_was_gone_round_for_laps() {
    let order: Vec<Id> = (0..1600).collect();
    let (mut follow, mut machine) = followed(&order);
    laps(SETTLED as u32, &mut follow, &mut machine, &order);
    // What the kernel took beside it turns up between its own.
    let stray = (0..800).flat_map(|unit| [unit, 5000 + unit]);
    touch(&mut follow, &mut machine, stray.take(500));
    touch(&mut follow, &mut machine, 250..1600);
    assert!(!follow.is_astray(), "{}", follow.inside());
    touch(&mut follow, &mut machine, 10_000..14_000);
    assert!(follow.is_astray(), "it has left: {}", follow.inside());
}

#[test]
fn what_was_sent_out_to_see_whether_it_is_used_speaks_against_nothing() {
    let order: Vec<Id> = (0..1600).collect();
    let stray = || (0..400).flat_map(|unit| [unit, 5000 + unit]);
    let after_two_laps = |may_turn_up: Vec<Id>| {
        let (mut follow, mut machine) = followed(&order);
        laps(2, &mut follow, &mut machine, &order);
        follow.may_turn_up(&may_turn_up);
        touch(&mut follow, &mut machine, stray());
        (follow, machine)
    };
    assert!(after_two_laps(Vec::new()).0.is_astray());
    let (mut follow, mut machine) = after_two_laps((5000..5400).collect());
    touch(&mut follow, &mut machine, 400..1600);
    assert!(!follow.is_astray(), "{}", follow.inside());
    // They are part of it from now on.
    laps(3, &mut follow, &mut machine, &stray().chain(400..1600).collect::<Vec<_>>());
    assert!(!follow.is_astray() && follow.knows(5200), "{}", follow.inside());
}

#[test]
fn a_program_that_begins_elsewhere_is_found() {
    let order: Vec<Id> = (0..1600).collect();
    let (mut follow, mut machine) = followed(&order);
    touch(&mut follow, &mut machine, 700..1600);
    let majors = touch(&mut follow, &mut machine, order.clone());
    assert!(majors < 40 && !follow.is_astray(), "{majors} {}", follow.inside());
}

#[test]
fn a_cycle_that_is_left_before_two_laps_is_over_all_the_same() {
    let order: Vec<Id> = (0..1400).collect();
    let (mut follow, mut machine) = (Follow::new(&order, ROOM, 0), Machine::new(1000));
    follow.lap_took(1_000_000_000);
    laps(1, &mut follow, &mut machine, &order);
    assert!(!follow.is_astray());
    // Others than ever before, for good.
    touch(&mut follow, &mut machine, 10_000..40_000);
    assert!(follow.tally().laps < 2 && follow.is_astray(), "{:?} {}", follow.tally(), follow.inside());
}

#[test]
fn a_round_through_a_part_of_it_is_what_is_followed_then() {
    let order: Vec<Id> = (0..2400).collect();
    let (mut follow, mut machine) = followed(&order);
    follow.lap_took(2400 * 600_000);
    let part: Vec<Id> = (0..1600).collect();
    laps(20, &mut follow, &mut machine, &part);
    let majors = touch(&mut follow, &mut machine, part.clone());
    assert!(!follow.is_astray() && follow.len() < 1800 && majors < 40, "{majors} {}", follow.inside());
}

#[test]
fn one_long_lap_is_no_verdict() {
    let order: Vec<Id> = (0..1600).collect();
    let (mut follow, mut machine) = followed(&order);
    follow.judged();
    laps(1, &mut follow, &mut machine, &order);
    machine.now += 100_000;
    laps(2, &mut follow, &mut machine, &order);
    let Tally { lap, shortest, .. } = follow.tally();
    assert!(shortest <= lap && shortest < 4000 * 600_000, "{lap} {shortest}");
}

#[test]
fn who_runs_in_bursts_is_left_alone_in_them_and_finds_all_there() {
    let order: Vec<Id> = (0..1600).map(|at| at * 7 % 1600).collect();
    let mut machine = Machine::new(1000);
    let mut follow = Follow::new(&order, ROOM, 0);
    follow.survey(&mut machine);
    let (mut now, mut at) = (0, 0);
    // 60 units in 6 ms, then held for 90; units asked for in the first half of it and afterwards, and major faults.
    let mut burst = |follow: &mut Follow, machine: &mut Machine| {
        let before = machine.asks;
        let (mut majors, mut meanwhile) = (0, 0);
        for nth in 0..60 {
            let unit = order[at % order.len()];
            at += 1;
            now += 100_000;
            let was = machine.bring(unit);
            majors += u32::from(!was);
            if machine.mapped.insert(unit) {
                follow.fault(Some(unit), 1, !was, now);
            }
            follow.act(machine, now);
            meanwhile = if nth == 30 { machine.asks - before } else { meanwhile };
        }
        follow.held();
        for _ in 0..20 {
            now += 4_500_000;
            follow.act(machine, now);
        }
        (meanwhile, machine.asks - before - meanwhile, majors)
    };
    assert!(burst(&mut follow, &mut machine).0 > 0 && !follow.is_bursty(), "nothing is known of it yet");
    for _ in 0..300 {
        burst(&mut follow, &mut machine);
    }
    assert!(follow.is_bursty() && !follow.is_astray() && machine.maps > 0, "{}", follow.inside());
    let bursts: Vec<_> = (0..100).map(|_| burst(&mut follow, &mut machine)).collect();
    let sum = |of: fn(&(u64, u64, u32)) -> u64| bursts.iter().map(of).sum::<u64>();
    assert!(sum(|burst| burst.0) * 10 < sum(|burst| burst.1), "{bursts:?}");
    assert!(sum(|burst| u64::from(burst.2)) < 100, "{bursts:?}");
}

#[test]
fn what_was_brought_in_for_nothing_leaves_again() {
    let order: Vec<Id> = (0..1600).collect();
    let mut machine = Machine::new(2000);
    let mut follow = Follow::new(&order, ROOM, 0);
    follow.survey(&mut machine);
    laps(6, &mut follow, &mut machine, &order);
    // It goes past some of them without touching them.
    let fewer: Vec<Id> = (0..1600).filter(|unit| unit % 40 != 7).collect();
    laps(4, &mut follow, &mut machine, &fewer);
    let untouched = (0..1600).filter(|unit| machine.used.contains_key(unit) && !machine.mapped.contains(unit)).count();
    // What is asked for now is there, and not touched yet.
    assert!(untouched as u64 * UNIT <= follow.outstanding + 2 * UNIT, "{untouched} {}", follow.inside());
}

#[test]
fn it_waits_for_memory_and_does_not_run_dry() {
    let order: Vec<Id> = (0..1600).collect();
    let mut machine = Machine::new(1000);
    let mut follow = Follow::new(&order, ROOM, 0);
    follow.survey(&mut machine);
    follow.left(Some(3 * UNIT));
    follow.act(&mut machine, 1);
    let quarter = follow.window.bytes() / 4;
    assert!((quarter..quarter + UNIT).contains(&follow.outstanding), "{}", follow.inside());
    follow.left(None);
    follow.act(&mut machine, 2);
    assert!(follow.outstanding >= 4 * quarter, "{}", follow.inside());
}

#[test]
fn a_run_through_what_is_in_memory_is_no_jump() {
    let order: Vec<Id> = (0..1600).collect();
    let mut machine = Machine::new(1000);
    // As the kernel leaves it: 700 in a row, and none of the others.
    (300..1000).for_each(|unit| {
        machine.bring(unit);
        machine.mapped.insert(unit);
    });
    let mut follow = Follow::new(&order, ROOM, 0);
    follow.survey(&mut machine);
    let begun = follow.lap_began;
    // Nobody looks meanwhile.
    (0..300).chain(1000..1020).for_each(|unit| follow.fault(Some(unit), 1, true, 1_000_000_000));
    follow.act(&mut machine, 1_000_000_000);
    assert_eq!((follow.jumps, follow.lap_began), (0, begun), "{}", follow.inside());
    assert!(follow.front >= 1000, "{}", follow.inside());
}

#[test]
fn what_is_used_everywhere_leads_nobody_on() {
    let order: Vec<Id> = (0..1600).collect();
    let (mut follow, mut machine) = followed(&order);
    touch(&mut follow, &mut machine, 0..100);
    follow.asked = follow.front + 700;
    follow.elsewhere.clear();
    let (front, now) = (follow.front, machine.now * 600_000);
    // Within what was asked for, and beyond it: each of its pages tells.
    for hot in [600, 1300] {
        (0..64).for_each(|_| follow.fault(Some(hot), 2, false, now));
        follow.act(&mut machine, now);
        assert_eq!((follow.front, follow.jumps), (front, 0), "{}", follow.inside());
    }
    // Who goes on there is there.
    (600..600 + Id::from(jumps::JUMP as u16)).for_each(|unit| follow.fault(Some(unit), 2, false, now));
    assert!(follow.front > front + 400, "{}", follow.inside());
}

#[test]
fn two_threads_that_have_gone_elsewhere_are_found_there() {
    let order: Vec<Id> = (0..1600).collect();
    let (mut follow, mut machine) = followed(&order);
    touch(&mut follow, &mut machine, 0..100);
    let now = machine.now * 600_000;
    // Each goes on where it is, the one between the other's.
    for at in 0..Id::from(jumps::JUMP as u16) {
        follow.fault(Some(900 + at), 1, true, now);
        follow.fault(Some(1050 + at), 2, true, now);
    }
    follow.act(&mut machine, now);
    assert!(follow.front.rem_euclid(1600) >= 900 && !follow.is_astray(), "{}", follow.inside());
}

#[test]
fn what_was_brought_in_for_where_it_does_not_come_leaves() {
    let order: Vec<Id> = (0..1600).collect();
    let (mut follow, mut machine) = followed(&order);
    laps(SETTLED as u32, &mut follow, &mut machine, &order);
    touch(&mut follow, &mut machine, 0..100);
    let ahead: Vec<Id> = (follow.front..follow.asked)
        .filter(|at| follow.cycle.get(follow.index(*at)).asked > 0)
        .map(|at| follow.cycle.get(follow.index(at)).unit)
        .collect();
    assert!(!ahead.is_empty() && ahead.iter().all(|unit| machine.used.contains_key(unit)));
    (900..1000).for_each(|unit| follow.fault(Some(unit), 1, true, 1_000_000_000));
    follow.act(&mut machine, 1_000_000_000);
    assert!(follow.jumps == 1 && ahead.iter().all(|unit| !machine.used.contains_key(unit)), "{}", follow.inside());
}

#[test]
fn what_was_brought_in_on_a_guess_and_used_becomes_part_of_it() {
    let order: Vec<Id> = (0..1600).collect();
    let (mut follow, mut machine) = followed(&order);
    touch(&mut follow, &mut machine, 0..100);
    let guessed = 2000;
    follow.fault(Some(guessed), 1, false, machine.now * 600_000);
    assert!(!follow.knows(guessed), "a minor fault alone says nothing: much is mapped beside the cycle");
    follow.turned_up(guessed);
    touch(&mut follow, &mut machine, 100..1600);
    touch(&mut follow, &mut machine, 0..100);
    assert!(follow.knows(guessed), "{}", follow.inside());
}
