//! The page in a real browser: no error on its console, every chart drawn, and screenshots of it in light, in dark and on
//! a telephone's width. Skipped, with the reason printed, where no Chromium is installed. `TIERMARK_SHOTS=DIR` keeps the
//! pages and the screenshots for a person to look at.
#![forbid(unsafe_code)]

#[path = "support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Chromium under the names that distributions give it.
fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file())
}

struct Seen {
    dom: String,
    console: Vec<String>,
}

/// Opens the page once with its own empty profile.
fn open(program: &Path, page: &Path, scheme: u8, size: (u32, u32), shot: Option<&Path>) -> Seen {
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    command.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
    ]);
    command.args(["--enable-logging=stderr", "--virtual-time-budget=4000"]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("--window-size={},{}", size.0, size.1));
    // 0 is dark, 1 is light.
    command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    match shot {
        Some(shot) => command.arg(format!("--screenshot={}", shot.display())),
        None => command.arg("--dump-dom"),
    };
    let output = command.arg(format!("file://{}", page.display())).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    Seen {
        dom: String::from_utf8_lossy(&output.stdout).into_owned(),
        console: errors.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect(),
    }
}

/// The part of the DOM that belongs to a chart.
fn chart<'a>(dom: &'a str, id: &str) -> &'a str {
    let from = dom.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("{id} is not on the page"));
    let rest = &dom[from..];
    let to = rest[10..].find("class=\"chart").or_else(|| rest[10..].find("<section")).map_or(rest.len(), |at| at + 10);
    &rest[..to]
}

#[test]
fn a_browser_draws_every_chart_without_an_error() {
    let Some(program) = chromium() else {
        eprintln!("skipped: no chromium is installed (apt-get install chromium)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("TIERMARK_SHOTS").map(PathBuf::from);
    let folder = kept.as_deref().unwrap_or(folder.path());
    let write = |name: &str, records: &[&record::Record]| {
        let path = folder.join(name);
        std::fs::write(&path, report::html::report(records)).unwrap();
        path
    };
    let (check, open_loop) = (support::check_record(), support::open_loop_record());
    let checked = write("check.html", &[check]);
    let job = write("job.html", &[&open_loop]);

    let seen = open(&program, &checked, 1, (1280, 900), None);
    assert_eq!(seen.console, Vec::<String>::new());
    // Points of measured and of published devices; a line a tier; a mark a pattern; a line a step.
    for (id, least) in [("chart-ladder", 2), ("chart-percentiles", 4), ("chart-compare", 5), ("chart-time", 30)] {
        let drawn = chart(&seen.dom, id).matches("class=\"trace scatter").count();
        assert!(drawn >= least, "{id}: {drawn} traces drawn, at least {least} expected");
    }
    assert!(!chart(&seen.dom, "chart-time").contains("0.5 s"), "no moment is marked yet");
    assert!(seen.dom.contains("aria-pressed=\"true\""), "switches are there");
    assert!(!seen.dom.contains("<img"), "nothing of the record became an element");

    // A click on evidence that names a moment of a step marks it there; every switch redraws without an error.
    let clicked = folder.join("clicked.html");
    let clicks = "<script>for (const what of [...document.querySelectorAll('.segment button, .chips button')]) what.click();\
                  document.querySelector('[data-step]').textContent += ' at 0.5 s';\
                  document.querySelector('[data-step]').click();</script></body>";
    let text = std::fs::read_to_string(&checked).unwrap();
    let (before, _) = text.rsplit_once("</body>").unwrap();
    std::fs::write(&clicked, format!("{before}{clicks}")).unwrap();
    let seen = open(&program, &clicked, 1, (1280, 900), None);
    assert_eq!(seen.console, Vec::<String>::new());
    assert!(chart(&seen.dom, "chart-time").contains("0.5 s"), "the moment is marked");

    let seen = open(&program, &job, 1, (1280, 900), None);
    assert_eq!(seen.console, Vec::<String>::new());
    // Intended time and service time.
    assert_eq!(chart(&seen.dom, "chart-percentiles").matches("class=\"trace scatter").count(), 2);

    // Two devices on one chart, with every switch and every chart's data as a table.
    let (slow, fast) = (support::sweep_record("x", 1.0), support::sweep_record("y", 0.05));
    let review = write("review.html", &[&slow, &fast]);
    let seen = open(&program, &review, 1, (1280, 900), None);
    assert_eq!(seen.console, Vec::<String>::new());
    assert_eq!(chart(&seen.dom, "chart-sweep-depth").matches("class=\"trace scatter").count(), 2);
    let tables = folder.join("tables.html");
    let take = "<script>URL.createObjectURL = (blob) => { blob.text().then((text) => console.log(text.replaceAll('\\n', ' / '))); return '#'; };\
                for (const what of [...document.querySelectorAll('.segment button')]) what.click();\
                document.querySelectorAll('.csv').forEach((button) => button.click());</script></body>";
    let text = std::fs::read_to_string(&review).unwrap();
    std::fs::write(&tables, text.replace("</body>", take)).unwrap();
    let seen = open(&program, &tables, 1, (1280, 900), None);
    let told = seen.console.join("\n");
    assert_eq!(seen.console.len(), seen.dom.matches("class=\"csv\"").count(), "{told}");
    assert!(!told.contains("Error"), "{told}");
    let sweep = seen.console.iter().find(|line| line.contains("series,queue depth,")).unwrap();
    assert!(sweep.contains(" / x,1,") && sweep.contains(" / y,16,"), "{sweep}");

    // A model's tokens: four panels on one axis and three places for its bytes; what one tier lacks is named, not drawn.
    let (swapped, mapped) = (support::tokens_record(false), support::tokens_record(true));
    let tokens = write("tokens.html", &[&swapped]);
    let pages = write("tokens-mapped.html", &[&mapped]);
    for (page, places) in [(&tokens, 3), (&pages, 2)] {
        let seen = open(&program, page, 1, (1280, 900), None);
        assert_eq!(seen.console, Vec::<String>::new());
        assert_eq!(chart(&seen.dom, "chart-tokens").matches("class=\"trace scatter").count(), 4);
        assert!(chart(&seen.dom, "chart-tokens").contains("first token, 4.1 s"));
        assert_eq!(chart(&seen.dom, "chart-lay").matches("class=\"trace scatter").count(), places);
    }
    let other = folder.join("tokens-zram.html");
    let turn = "<script>const tier = document.querySelector('[data-for=tokens] select'); tier.value = '1';\
                tier.dispatchEvent(new Event('change'));\
                document.querySelectorAll('[data-for=tokens] .segment button').forEach((button) => button.click());\
                document.querySelectorAll('#tokens .note').forEach((note) => console.log(note.textContent));</script></body>";
    let text = std::fs::read_to_string(&tokens).unwrap();
    std::fs::write(&other, text.replace("</body>", turn)).unwrap();
    let seen = open(&program, &other, 1, (1280, 900), None);
    let told = seen.console.join("\n");
    assert!(told.contains("Not known here: temperature.") && told.contains("is not known of zram"), "{told}");
    assert_eq!(seen.console.len(), 2, "{told}");
    assert_eq!(chart(&seen.dom, "chart-tokens").matches("class=\"trace scatter").count(), 3);

    // A telephone that is turned: what was drawn at 700 px is drawn anew for 400, and nothing holds the page wider.
    let turned = folder.join("turned.html");
    let turn = "<body style='margin:0'><iframe src='inside.html' style='border:0;width:700px;height:900px'></iframe>\
                <script>const frame = document.querySelector('iframe');\
                frame.onload = () => setTimeout(() => { frame.style.width = '400px'; }, 300);</script>";
    let inside = folder.join("inside.html");
    // Timers run in virtual time, frames (in which a new width is noticed) in real time: each look works for some frames'
    // length before it lets the next come.
    let tell = "<script>let sink = 0; setInterval(() => { for (let i = 0; i < 5e7; i++) { sink += i % 7; }\
                const widest = Math.max(...[...document.querySelectorAll('.main-svg')]\
                .map((svg) => svg.getBoundingClientRect().right));\
                console.log(`${innerWidth} px, drawn to ${Math.round(widest)}, page ${document.documentElement.scrollWidth}`); }, 500);\
                </script></body>";
    std::fs::write(&inside, format!("{before}{tell}")).unwrap();
    std::fs::write(&turned, turn).unwrap();
    let seen = open(&program, &turned, 1, (900, 1000), None);
    let last = seen.console.last().cloned().unwrap_or_default();
    let number = |after: &str| -> u32 {
        let digits = last.split_once(after).unwrap_or_else(|| panic!("{after} is not in {:?}", seen.console)).1;
        digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    assert!(last.contains("400 px"), "{:?}", seen.console);
    assert!(number("drawn to ") <= 400 && number("page ") <= 400, "{:?}", seen.console);

    // A window is never narrower than some 500 px, a frame is as narrow as it is told.
    let narrow = folder.join("narrow.html");
    let frame = "<body style='margin:0'><iframe src='check.html' style='border:0;width:360px;height:9800px'></iframe>";
    std::fs::write(&narrow, frame).unwrap();
    let narrow_tokens = folder.join("tokens-narrow.html");
    std::fs::write(&narrow_tokens, frame.replace("check.html", "tokens.html").replace("360px", "400px")).unwrap();
    for (name, page, scheme, size) in [
        ("tokens.png", &tokens, 1, (1280, 3600)),
        ("tokens-dark.png", &pages, 0, (1280, 3600)),
        ("tokens-narrow.png", &narrow_tokens, 1, (500, 4600)),
        ("light.png", &checked, 1, (1280, 6400)),
        ("dark.png", &checked, 0, (1280, 6400)),
        ("narrow.png", &narrow, 1, (500, 9800)),
        ("job.png", &job, 1, (1280, 3600)),
        ("review.png", &review, 1, (1280, 4600)),
    ] {
        let shot = folder.join(name);
        let seen = open(&program, page, scheme, size, Some(&shot));
        assert_eq!(seen.console, Vec::<String>::new(), "{name}");
        let bytes = std::fs::metadata(&shot).map_or(0, |meta| meta.len());
        assert!(bytes > 50_000, "{name} is {bytes} bytes: an empty page");
    }
}
