//! What every output says of a Redis server under load: its cells, why its slowest requests were slow, and the article beside it.

use super::support::redis::redis_record;
use jiff::tz::TimeZone;
use report::terminal::{self, Style};
use report::{html, json, markdown};

#[test]
fn cells_causes_and_the_article_stand_in_every_output() {
    let record = redis_record();
    let style = Style { color: false, unicode: true, width: 100, zone: TimeZone::UTC };
    let text = terminal::run(&record, &style);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Against keeping nothing, values of 512 B cost: rdb 25"), "{text}");
    assert!(words.contains("1 is a fork and its child (up to 18 ms)"), "{text}");
    assert!(text.contains("* Raspberry Pi 5, NVMe") && text.contains("36,000"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let document = json::run(&record);
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    assert_eq!(cells[1]["causes"][0]["name"], "fork");
    assert_eq!(cells[0]["causes"].as_array().unwrap().len(), 0);
    assert_eq!(cells[0]["spikes"]["unexplained"], 1);
    let page = html::report(&[&record]);
    for part in [
        "Redis by way to keep its data",
        "The slowest requests, and why",
        "published: Raspberry Pi 5, NVMe",
        "fork and child",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let post = markdown::report(&[&record]);
    assert!(post.contains("| rdb on sd-evo-pi5, values of 512 B |") && post.contains("- rdb on sd-evo-pi5"), "{post}");
}

/// Only as the article did it: other figures would stand beside what they cannot be compared with.
#[test]
fn the_article_stands_beside_what_was_done_as_it_did_it_alone() {
    let mut record = redis_record();
    record.run.plan.as_published = false;
    let style = Style { color: false, unicode: true, width: 100, zone: TimeZone::UTC };
    assert!(!terminal::run(&record, &style).contains("Raspberry Pi 5, NVMe"));
    assert!(!html::report(&[&record]).contains("published: Raspberry"));
}
