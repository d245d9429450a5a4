use super::*;
use basics::curve::Watched;

const PAGE: u64 = 4096;
const PAGES: u64 = 20_000;

fn mixed(mut key: u64) -> u64 {
    key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

/// The part of all pages whose key is below this.
fn sampled(below: u64) -> f64 {
    (1..=PAGES).map(mixed).filter(|key| *key < below).count() as f64 / PAGES as f64
}

/// Touches of pages, one a µs, of which each `one_in`th page is sampled.
fn curve(touches: impl Iterator<Item = u64>, one_in: u64) -> Curve {
    let below = u64::MAX / one_in;
    let mut reuse = Reuse::new(Bytes(100 * PAGE), sampled(below));
    (1..=PAGES).map(mixed).filter(|key| *key < below).for_each(|key| reuse.enter(key));
    let mut count = 0;
    for page in touches {
        count += 1;
        let key = mixed(page + 1);
        if key < below {
            reuse.touch(Nanos(1000 * count), key, Bytes(PAGE));
        }
    }
    super::curve(&reuse, Nanos(1000 * count), Bytes(PAGES * PAGE)).unwrap()
}

/// Part of the touches that misses with a part of the memory.
fn ratio(curve: &Curve, part: f64) -> f64 {
    missed(curve, Bytes((part * (PAGES * PAGE) as f64) as u64)) / (1e6 * PAGE as f64)
}

fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    ((*state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

#[test]
fn a_cycle_misses_all_until_it_fits() {
    for one_in in [1, 16] {
        let curve = curve((0..10 * PAGES).map(|nth| nth % PAGES), one_in);
        for part in [0.1, 0.5, 0.9] {
            assert!((ratio(&curve, part) - 1.0).abs() < 0.05, "1/{one_in} {part}: {}", ratio(&curve, part));
        }
        assert!(ratio(&curve, 0.985) > 0.9 && ratio(&curve, 1.0) < 0.01, "{}", ratio(&curve, 1.0));
    }
}

#[test]
fn what_is_touched_at_random_misses_what_is_not_there() {
    for one_in in [1, 16] {
        let mut state = 7;
        let pages = (0..30 * PAGES).map(|_| (random(&mut state) * PAGES as f64) as u64);
        let curve = curve(pages, one_in);
        for part in [0.1, 0.5, 0.9] {
            assert!((ratio(&curve, part) - (1.0 - part)).abs() < 0.04, "1/{one_in} {part}: {}", ratio(&curve, part));
        }
    }
}

/// Against a list that is kept by the rule itself.
#[test]
fn favourites_miss_as_the_rule_says() {
    let mut state = 7;
    let n = PAGES as f64;
    let theta = 0.8f64;
    let mut page = || ((n.powf(1.0 - theta) - 1.0) * random(&mut state) + 1.0).powf(1.0 / (1.0 - theta)) as u64 - 1;
    let pages: Vec<u64> = (0..30 * PAGES).map(|_| page()).collect();
    let full = curve(pages.iter().copied(), 1);
    let sampled = curve(pages.iter().copied(), 16);
    for part in [0.2, 0.5, 0.8] {
        let room = (part * n) as u64;
        let (mut last, mut queue, mut missed, mut counted) =
            (vec![None; PAGES as usize], std::collections::VecDeque::new(), 0, 0);
        let mut held = 0;
        for (nth, page) in pages.iter().enumerate() {
            let was = last[*page as usize].replace(nth);
            queue.push_back((nth, *page));
            let hit = was.is_some_and(|was| queue.front().is_some_and(|(first, _)| was >= *first)) && was.is_some();
            let full = held == room;
            missed += u64::from(!hit && full);
            counted += u64::from(full);
            held += u64::from(!hit);
            while held > room || queue.front().is_some_and(|(nth, page)| last[*page as usize] != Some(*nth)) {
                let (nth, page) = queue.pop_front().unwrap();
                if last[page as usize] == Some(nth) {
                    held -= 1;
                    last[page as usize] = None;
                }
            }
        }
        let truth = missed as f64 / counted as f64;
        assert!((ratio(&full, part) - truth).abs() < 0.01 + 0.03 * truth, "{part}: {} {truth}", ratio(&full, part));
        assert!(
            (ratio(&sampled, part) - truth).abs() < 0.01 + 0.12 * truth,
            "{part}: {} {truth}",
            ratio(&sampled, part)
        );
    }
}

#[test]
fn a_smaller_sample_goes_on_where_the_larger_was() {
    let below = u64::MAX / 4;
    let mut reuse = Reuse::new(Bytes(100 * PAGE), sampled(below));
    let mut count = 0;
    for nth in 0..20 * PAGES {
        count += 1;
        if nth == 8 * PAGES {
            reuse.thin(below / 4, sampled(below / 4));
        }
        let key = mixed(nth % PAGES + 1);
        if key < if nth < 8 * PAGES { below } else { below / 4 } {
            reuse.touch(Nanos(1000 * count), key, Bytes(PAGE));
        }
    }
    let curve = super::curve(&reuse, Nanos(1000 * count), Bytes(PAGES * PAGE)).unwrap();
    assert!((ratio(&curve, 0.5) - 1.0).abs() < 0.1, "{}", ratio(&curve, 0.5));
    assert!(reuse.footprint().0.abs_diff(PAGES * PAGE) < PAGES * PAGE / 8);
}

fn at_today(resident: f64, missed: f64, stalled: f64) -> Today {
    let resident = Bytes((resident * (PAGES * PAGE) as f64) as u64);
    let cost = if missed > 0.0 { stalled / missed } else { 1e-5 / PAGE as f64 };
    Today { resident, missed, major: 1.0, stalled, cost, overhead: 0.0, page: Bytes(PAGE) }
}

fn change(from: f64, to: f64) -> i64 {
    ((to - from) * (PAGES * PAGE) as f64) as i64
}

fn part(part: f64) -> Bytes {
    Bytes((part * (PAGES * PAGE) as f64) as u64)
}

#[test]
fn stalls_follow_the_misses_and_work_stays() {
    let mut state = 7;
    let curve = curve((0..30 * PAGES).map(|_| (random(&mut state) * PAGES as f64) as u64), 1);
    let at = |share: f64| predict(&curve, &at_today(0.5, missed(&curve, part(0.5)), 0.8), change(0.5, share));
    assert!((at(0.5).speed - 1.0).abs() < 0.01 && (at(0.5).misses.unwrap() - 1.0).abs() < 0.01);
    // Half of the misses: 0.2 of work and 0.4 of stalls.
    assert!((at(0.75).speed - 1.0 / 0.6).abs() < 0.05, "{:?}", at(0.75));
    assert!((at(0.25).speed - 1.0 / 1.4).abs() < 0.05, "{:?}", at(0.25));
    assert!((at(1.1).speed - 5.0).abs() < 0.01 && at(1.1).major_per_s == 0.0, "{:?}", at(1.1));
    // All fits today; a miss costs what others took.
    let fits = predict(&curve, &at_today(1.1, 0.0, 0.0), change(1.1, 0.5));
    assert!((fits.speed - 1.0 / 6.0).abs() < 0.02 && fits.misses.is_none(), "{fits:?}");
}

#[test]
fn a_kernel_that_keeps_better_keeps_better_everywhere() {
    let curve = curve((0..10 * PAGES).map(|nth| nth % PAGES), 1);
    // A fifth of a cycle stays.
    let seen = at_today(0.5, 0.8 * missed(&curve, part(0.5)), 0.5);
    let at = |share| predict(&curve, &seen, change(0.5, share));
    for share in [0.2, 0.8] {
        assert!((at(share).misses.unwrap() - 1.0).abs() < 0.01 && at(share).known, "{:?}", at(share));
        assert!((at(share).missed / (0.8e6 * PAGE as f64) - 1.0).abs() < 0.01, "{:?}", at(share));
    }
    assert!(at(1.01).misses == Some(0.0) && (at(1.01).speed - 2.0).abs() < 0.01, "{:?}", at(1.01));
}

#[test]
fn what_was_not_seen_is_not_known() {
    // Not once round.
    let curve = curve(0..PAGES / 2, 1);
    assert!(curve.known < part(0.5), "{}", curve.known);
    let seen = at_today(0.3, missed(&curve, part(0.3)), 0.5);
    let known = |share| predict(&curve, &seen, change(0.3, share)).known;
    assert!(known(0.2) && !known(0.6) && known(1.01));
}

#[test]
fn where_only_all_of_it_helps_that_is_said() {
    let missed_each_second = 1e6 * PAGE as f64;
    // To its very end, as a cycle has it, or a little before.
    for falls in [0.9999, 0.95] {
        let points = vec![
            (Bytes(0), missed_each_second),
            (part(falls - 0.001), missed_each_second),
            (part(falls), 0.0),
            (part(1.0), 0.0),
        ];
        let curve = Curve { points, known: part(falls), whole: part(1.0), touches: 1000 };
        let watched = Watched {
            limit: Some(part(0.6)),
            asked: Vec::new(),
            time: Nanos(6_000_000_000),
            seen: Some((curve, at_today(0.6, missed_each_second, 0.8))),
            trouble: None,
            lost: 0,
        };
        let why = memory(&watched, 1.0, Unit::Passes).why;
        assert!(why.starts_with("less than all that it lacks brings little: "), "{falls}: {why}");
    }
}
