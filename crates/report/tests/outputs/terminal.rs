//! The terminal's texts as a whole, each line within its width.

use super::support;
use jiff::tz::TimeZone;
use report::terminal::{self, Style};
use std::path::Path;
use unicode_width::UnicodeWidthStr;

const REPORT: &str = "~/.local/share/tiermark/reports/2026-11-21-check-7c1e04aa.html";

fn style(width: usize) -> Style {
    Style { width, color: false, unicode: true, zone: TimeZone::UTC }
}

#[track_caller]
fn fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.width() <= width, "{} columns: {line:?}", line.width());
        assert_eq!(line, line.trim_end(), "blanks at the end");
    }
}

#[test]
fn the_check_of_the_pi_5() {
    let (record, study) = (support::check_record(), support::check_study());
    let text = terminal::check(record, &study, Some(Path::new(REPORT)), &style(100));
    fits(&text, 100);
    insta::assert_snapshot!(text);
}

#[test]
fn the_check_in_eighty_columns_and_ascii() {
    let (record, study) = (support::check_record(), support::check_study());
    let plain = Style { unicode: false, ..style(80) };
    let text = terminal::check(record, &study, None, &plain);
    fits(&text, 80);
    // Units keep their signs, everything else is ASCII.
    assert_eq!(text.chars().filter(|c| !c.is_ascii() && !"µ°".contains(*c)).collect::<String>(), "");
    insta::assert_snapshot!(text);
}

#[test]
fn what_was_not_measured_says_why() {
    let (record, study) = (support::check_record(), support::study_with_gaps());
    let text = terminal::check(record, &study, None, &style(100));
    fits(&text, 100);
    for word in ["root only", "no room", "out of time"] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_run_that_was_broken_off() {
    let record = support::interrupted_record();
    let checked = terminal::check(&record, &support::check_study(), None, &style(100));
    fits(&checked, 100);
    assert!(checked.contains("interrupted"), "{checked}");
    let text = terminal::run(&record, &style(100));
    fits(&text, 100);
    insta::assert_snapshot!(text);
}

#[test]
fn an_open_loop_shows_service_time_beside_intended_time() {
    let text = terminal::run(&support::open_loop_record(), &style(100));
    fits(&text, 100);
    insta::assert_snapshot!(text);
    fits(&terminal::run(&support::open_loop_record(), &style(80)), 80);
}

#[test]
fn the_tiers_and_their_hops() {
    let text = terminal::tiers(&support::machine(), &style(100));
    fits(&text, 100);
    insta::assert_snapshot!(text);
    fits(&terminal::tiers(&support::machine(), &style(80)), 80);
}

#[test]
fn the_list_of_runs() {
    use basics::Nanos;
    use record::{Origin, RunHead, State};
    let head = |id: &str, state, seconds: Option<u64>| RunHead {
        id: id.into(),
        state,
        origin: Origin::Measured,
        method: "check".into(),
        target: "RAM, zram0, nvme0n1, sda, mmcblk0".into(),
        tiers: vec![],
        started: support::STARTED,
        ended: seconds.map(|s| support::STARTED + Nanos::from_millis(s * 1000)),
        steps: 31,
    };
    let why = "the disk is full: no space left on /mnt/ssd".to_owned();
    let full = record::Failure { kind: basics::FailKind::NoRoom, why };
    let heads = [
        head("7c1e04aa", State::Done, Some(58)),
        head("a90b33c2", State::Failed(full), Some(4)),
        head("00ff13e7", State::Running, None),
        head("3b80c1d0", State::Interrupted, Some(4000)),
    ];
    let text = terminal::runs(&heads, &style(100));
    fits(&text, 100);
    insta::assert_snapshot!(text);
    assert!(terminal::runs(&[], &style(100)).contains("No run is recorded yet"));
}

#[test]
fn two_runs_side_by_side() {
    let before = support::sda_record(1.0);
    // The disk behind USB gave half as much the second time.
    let after = record::Record {
        run: record::Run { id: "a90b33c2".into(), ..support::sda_record(0.5).run },
        ..support::sda_record(0.5)
    };
    let text = terminal::compare(&[vec![&before], vec![&after]], &style(100));
    fits(&text, 100);
    assert!(text.contains("worse") && text.contains("sda"), "{text}");
    insta::assert_snapshot!(text);
    assert!(terminal::compare(&[vec![&before]], &style(100)).contains("only one run"));
}

#[test]
fn colour_only_repeats_what_the_words_say() {
    let (record, study) = (support::check_record(), support::check_study());
    let plain = terminal::check(record, &study, None, &style(100));
    let colored = terminal::check(record, &study, None, &Style { color: true, ..style(100) });
    assert!(colored.contains("\x1b["), "there is colour");
    let mut stripped = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        stripped.push_str(before);
        rest = after.split_once('m').map_or("", |(_, tail)| tail);
    }
    stripped.push_str(rest);
    let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(lines(&stripped), lines(&plain));
}

/// Bugs: `0 ns, ended by interrupted`, `ended by process ended`, and `direct` where the page cache was in the way.
#[test]
fn how_a_step_ran_and_ended_is_said_as_it_was() {
    let mut record = support::sda_record(1.0);
    for (step, ended_by) in record.steps.iter_mut().zip(["interrupted", "process ended"]) {
        step.state = record::State::Interrupted;
        step.ended_by = ended_by.to_owned();
    }
    record.steps[0].elapsed = basics::Nanos(0);
    let engine = |step: &mut record::StepRecord, change: fn(&mut basics::EngineUse)| {
        change(step.engine.as_mut().unwrap());
    };
    engine(&mut record.steps[2], |engine| engine.dropped.push(("O_DIRECT".to_owned(), "refused".to_owned())));
    engine(&mut record.steps[3], |engine| engine.used = basics::job::Engine::Mmap);
    let text = terminal::run(&record, &style(100));
    assert!(!text.contains("ended by interrupted") && !text.contains("ended by process ended"), "{text}");
    for said in
        [" interrupted, partial", "cut off with its process after 1.20 s", "buffered (O_DIRECT refused)", "mapped"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
}
