//! What the documentation shows: each example (a block of `console`) runs here, and says what stands below its command as far as that
//! has no figures in it; every other command is one that can be typed; every page is reached, and no link leads nowhere.
#![forbid(unsafe_code)]

mod common;

use common::docs::{mentioned, pages, root};
use common::{Home, Need, finish, possible};
use std::fs;

/// A command, what its example needs (the words behind `console`), and what stands below it.
struct Example {
    page: String,
    needs: Vec<String>,
    command: String,
    shown: Vec<String>,
}

fn examples() -> Vec<Example> {
    let mut all: Vec<Example> = Vec::new();
    for (path, text) in pages() {
        let mut needs: Option<Vec<String>> = None;
        for line in text.lines() {
            match (&needs, line.strip_prefix("```")) {
                (None, Some(kind)) if kind.starts_with("console") => {
                    needs = Some(kind.split(',').skip(1).map(str::to_owned).collect())
                }
                (Some(_), Some(_)) => needs = None,
                (Some(needs), None) => match line.strip_prefix("$ ") {
                    Some(command) => all.push(Example {
                        page: path.file_name().unwrap().to_string_lossy().into_owned(),
                        needs: needs.clone(),
                        command: command.to_owned(),
                        shown: Vec::new(),
                    }),
                    None => all.last_mut().expect("a command comes first").shown.push(line.to_owned()),
                },
                (None, _) => {}
            }
        }
    }
    all
}

fn normal(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_example_runs_and_says_what_is_shown() {
    let all = examples();
    assert!(all.len() >= 8, "{} examples", all.len());
    let home = Home::new();
    for Example { page, needs, command, shown } in all {
        let test = format!("every_example_runs_and_says_what_is_shown ({page}: {command})");
        let wants = needs.iter().map(|need| match need.as_str() {
            "root" => Need::Root,
            tool => Need::Tool(String::leak(tool.to_owned())),
        });
        if !possible(&test, &wants.collect::<Vec<_>>()) {
            continue;
        }
        let words = shlex::split(command.trim_start_matches("sudo ")).unwrap();
        assert_eq!(words[0], "tiermark", "{command}");
        let began = std::time::Instant::now();
        let told = finish(home.start_in(&root(), &words[1..]));
        println!("{page}: {command}: {:.1} s", began.elapsed().as_secs_f64());
        assert_eq!(told.status.code(), Some(0), "{page}: {command}: {told:#?}");
        let said: Vec<String> = told.out.lines().map(normal).collect();
        for line in shown.iter().map(|line| normal(line)).filter(|line| !line.is_empty() && line != "[…]") {
            let has_figures = line.contains(|letter: char| letter.is_ascii_digit());
            assert!(has_figures || said.contains(&line), "{page}: {command} no longer says {line:?}: {}", told.out);
        }
    }
}

#[test]
fn every_command_can_be_typed() {
    let home = Home::new();
    let all = mentioned();
    assert!(all.len() > 50, "{} commands", all.len());
    for (page, command) in all {
        // How a command is built, and not one: alternatives, things left out, another program's words.
        let words = shlex::split(&command).unwrap();
        let words = words.iter().take_while(|word| !word.contains(['…', '[', '|']) && *word != "--");
        let words: Vec<&str> = words.map(String::as_str).chain(["--help"]).collect();
        let told = home.run(&words);
        assert_eq!(told.status.code(), Some(0), "{page}: tiermark {command}: {}", told.err);
    }
}

#[test]
fn every_page_is_reached_and_no_link_is_dead() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    for (path, text) in pages() {
        let name = path.strip_prefix(root().join("docs")).unwrap_or(&path).display().to_string();
        let reached =
            summary.contains(&format!("({name})")) || name.ends_with("SUMMARY.md") || name.ends_with("README.md");
        assert!(reached, "docs/SUMMARY.md does not lead to {name}");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            assert!(path.parent().unwrap().join(file).exists(), "{name} leads to {link}, which is not there");
        }
    }
}
