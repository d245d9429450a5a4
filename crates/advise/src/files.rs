//! What follows from recommendations, as the files that would be written: each line below the rule and the evidence that it
//! stands on.

use crate::goals::Goals;
use crate::model::{Evidence, Origin, Recommendation};
use change::{Place, Wanted};

/// A file as it would be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfFile {
    /// Its own name.
    pub name: &'static str,
    /// Where it belongs.
    pub belongs: &'static str,
    /// All of it.
    pub text: String,
}

/// Columns of a comment.
const WIDTH: usize = 100;

/// The files, without those that nothing stands in.
pub fn files(goals: &Goals, all: &[Recommendation]) -> Vec<ConfFile> {
    let places = [
        (
            Place::RedisConf,
            "redis.conf",
            "the server's only argument, or included from /etc/redis/redis.conf as its last line",
        ),
        (Place::SysctlD, "60-tiermark-redis.conf", "/etc/sysctl.d; it holds at once after: sysctl --system"),
        (Place::TmpfilesD, "tiermark-redis.conf", "/etc/tmpfiles.d; it holds at once after: systemd-tmpfiles --create"),
    ];
    let file = |(place, name, belongs)| {
        let mut text = comment(&format!("tiermark advise --for {}: {}", goals.job, goals.in_words()));
        let mut lines = 0;
        for said in all {
            let here: Vec<&Wanted> = said.changes.iter().filter(|change| change.place() == place).collect();
            if here.is_empty() {
                continue;
            }
            text.push('\n');
            text.push_str(&comment(&format!("{}: {}", said.rule, reason(said))));
            for change in here {
                text.push_str(&change.line());
                text.push('\n');
                lines += 1;
            }
        }
        (lines > 0).then_some(ConfFile { name, belongs, text })
    };
    places.into_iter().filter_map(file).collect()
}

/// What it stands on, in a line or two: what was measured here before what was read of the machine, and that before what was
/// published.
fn reason(said: &Recommendation) -> String {
    let rank = |evidence: &&Evidence| match evidence.from {
        Origin::Run(_) | Origin::Proof(_) => 0,
        Origin::Machine(_) => 1,
        Origin::Published(_) | Origin::Predicted(_) => 2,
    };
    match said.evidence.iter().min_by_key(rank) {
        Some(Evidence { text, from }) => format!("{} ({from}: {text})", said.title),
        None => said.title.clone(),
    }
}

/// Lines that begin with `#`.
fn comment(text: &str) -> String {
    let mut out = String::new();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH && line != "#" {
            out.push_str(&line);
            out.push('\n');
            line = String::from("#  ");
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Scene;
    use crate::{Job, advise};
    use basics::Known;

    #[test]
    fn each_line_stands_below_its_reason() {
        let mut scene = Scene::of(Job::RedisStore);
        scene.machine.vm.insert("overcommit_memory".to_owned(), Known::Is("0".to_owned()));
        let made = files(&scene.goals, &advise(&scene.situation()));
        let names: Vec<_> = made.iter().map(|file| file.name).collect();
        assert_eq!(names, ["redis.conf", "60-tiermark-redis.conf"]);
        let sysctl = &made[1].text;
        assert!(sysctl.ends_with("\nvm.overcommit_memory = 1\n"), "{sysctl}");
        assert!(sysctl.contains("# redis-overcommit: "), "{sysctl}");
        assert!(sysctl.contains("(/proc/sys/vm/overcommit_memory: 0)"), "{sysctl}");
        let conf = &made[0].text;
        // Each setting below a comment, none twice: the second one would win.
        let settings: Vec<_> = conf
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .filter_map(|line| line.split(' ').next())
            .collect();
        let mut once = settings.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), settings.len(), "{conf}");
        assert!(made.iter().flat_map(|file| file.text.lines()).all(|line| line.chars().count() <= WIDTH), "{conf}");
    }
}
