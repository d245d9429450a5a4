//! The Markdown of a run and of several: tables that are tables, and nothing in them that a forum takes for markup.

use super::support;
use report::markdown::report;

/// Each table's rows have as many cells as its head.
#[track_caller]
fn tables(text: &str) -> usize {
    let mut tables = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with("| ") {
            continue;
        }
        tables += 1;
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        assert!(lines.peek().is_some_and(|rule| rule.starts_with("| --- |")), "{line}");
        while let Some(row) = lines.next_if(|row| row.starts_with("| ")) {
            assert_eq!(cells(row), cells(line), "{row}");
        }
    }
    tables
}

#[test]
fn a_check_is_its_headline_its_findings_and_its_table() {
    let text = report(&[support::check_record()]);
    assert!(text.starts_with("# ") && text.contains("\n## Findings\n\n1. "), "{text}");
    assert!(text.contains("| nvme0n1 | ") && text.contains("- run 7c1e04aa: "), "{text}");
    assert_eq!(tables(&text), 1);
}

#[test]
fn curves_of_two_runs_share_a_table() {
    let text = report(&[&support::sweep_record("x", 1.0), &support::sweep_record("y", 0.05)]);
    assert_eq!(tables(&text), 1, "{text}");
    for words in [
        "# ssd-review of profile:x and profile:y, side by side.",
        "\n## random reads of 4 KiB\n\n| depth | profile:x MB/s | ",
        "Random reads of 4 KiB: y has 0.05",
        "- depth-seq-write: nothing is written here",
        "simulated from the profile x, not measured",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert_eq!(text.lines().filter(|line| line.starts_with("| 16 | ")).count(), 1);
}

#[test]
fn names_do_not_become_markup() {
    let mut record = support::open_loop_record();
    record.steps[0].name = "a|b*c_<d>`".into();
    let text = report(&[&record]);
    assert!(text.contains("a\\|b\\*c\\_&lt;d>\\`"), "{text}");
    assert_eq!(tables(&text), 1);
}

#[test]
fn a_language_model_is_its_tiers_and_their_reasons() {
    let text = report(&[&support::tokens_record(false)]);
    assert_eq!(tables(&text), 1, "{text}");
    for words in
        ["| tier | tokens/s | total s | ", "\n| optane | ", "\n| none | does not fit | ", "\n- none: does not fit: "]
    {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}
