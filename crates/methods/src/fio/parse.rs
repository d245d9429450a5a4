//! The text of a job file to its sections: comments, `[global]` sections that those below inherit from, `include`,
//! `${VARIABLES}`. What a key means is the business of `keys`.

use crate::MethodError;
use std::path::{Path, PathBuf};

/// Most entries of one file with all that it includes; a file that includes itself ends here.
const MOST_ENTRIES: usize = 10_000;
/// Deepest that files include each other.
const DEEPEST: usize = 16;

/// What a job file may ask of the world outside it.
pub trait Surroundings {
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// One of fio's own words: `pagesize`, `mb_memory`, `ncpus`.
    fn word(&self, name: &str) -> Option<u64>;
    /// The text of an included file.
    ///
    /// # Errors
    /// When it cannot be read.
    fn text(&self, path: &Path) -> Result<String, MethodError>;
    /// Whether there is such a file.
    fn exists(&self, path: &Path) -> bool;
    /// A seed that is another at each call, for `randrepeat=0`.
    fn chance(&self) -> u64;
}

/// A line of a job file: a key, and its value if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub key: String,
    pub value: Option<String>,
    /// The first variable in the value that is not set; fio takes it for nothing.
    pub unset: Option<String>,
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
}

impl Entry {
    /// Why this line stands in the way.
    pub fn refused(&self, why: impl Into<String>) -> MethodError {
        refused(&self.file, self.line, why)
    }
    /// As one would type it.
    pub fn shown(&self) -> String {
        match &self.value {
            Some(value) => format!("{}={value}", self.key),
            None => self.key.clone(),
        }
    }
}

/// A job with everything it inherits, in the order in which it counts: a later entry replaces an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub name: String,
    pub file: PathBuf,
    pub line: usize,
    pub entries: Vec<Entry>,
}

impl Section {
    /// Why this section stands in the way.
    pub fn refused(&self, why: impl std::fmt::Display) -> MethodError {
        refused(&self.file, self.line, format!("job {:?}: {why}", self.name))
    }
}

fn refused(file: &Path, line: usize, why: impl Into<String>) -> MethodError {
    MethodError::JobFile { path: file.to_owned(), line, why: why.into() }
}

/// The jobs of a file.
///
/// # Errors
/// A line that is none of fio's, with its number.
pub(crate) fn sections(file: &Path, text: &str, around: &dyn Surroundings) -> Result<Vec<Section>, MethodError> {
    let mut reader = Reader { around, entries: 0, global: Vec::new(), sections: Vec::new(), place: Place::Outside };
    reader.read(file, text, 0)?;
    Ok(reader.sections)
}

/// Where an entry goes.
enum Place {
    Outside,
    Global,
    Job,
}

struct Reader<'a> {
    around: &'a dyn Surroundings,
    entries: usize,
    global: Vec<Entry>,
    sections: Vec<Section>,
    place: Place,
}

impl Reader<'_> {
    fn read(&mut self, file: &Path, text: &str, depth: usize) -> Result<(), MethodError> {
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let refused = |why: &str| refused(file, number, why);
            // Both signs begin a comment anywhere in a line.
            let line = line.split([';', '#']).next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            if line.starts_with('[') {
                if depth > 0 {
                    return Err(refused("an included file has no sections of its own"));
                }
                let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                let name = name.ok_or_else(|| refused("a section is written [NAME]"))?;
                // Whatever begins so is global to fio.
                self.place = if name.starts_with("global") {
                    Place::Global
                } else {
                    let (name, entries) = (name.to_owned(), self.global.clone());
                    self.entries += entries.len();
                    self.sections.push(Section { name, file: file.to_owned(), line: number, entries });
                    Place::Job
                };
            } else if let Some(name) = line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) {
                if depth == DEEPEST {
                    return Err(refused("files include each other too deeply; does one include itself?"));
                }
                let path = self.included(file, name.trim());
                let text = self.around.text(&path)?;
                self.read(&path, &text, depth + 1)?;
            } else {
                let entry = self.entry(file, number, line);
                let to = match (&self.place, self.sections.last_mut()) {
                    (Place::Global, _) => &mut self.global,
                    (Place::Job, Some(section)) => &mut section.entries,
                    _ => return Err(refused("no key stands before the first section; begin with [global] or [NAME]")),
                };
                to.push(entry);
                self.entries += 1;
            }
            if self.entries > MOST_ENTRIES {
                return Err(refused(&format!("more than {MOST_ENTRIES} keys in all; split the file")));
            }
        }
        Ok(())
    }

    /// As it is called, or else beside the file that includes it.
    fn included(&self, from: &Path, name: &str) -> PathBuf {
        let path = PathBuf::from(name);
        if self.around.exists(&path) { path } else { from.parent().unwrap_or(Path::new("")).join(name) }
    }

    fn entry(&self, file: &Path, line: usize, text: &str) -> Entry {
        let mut unset = None;
        let text = self.expanded(text, &mut unset);
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim().to_owned())),
            None => (text.trim(), None),
        };
        Entry { key: key.to_owned(), value, unset, file: file.to_owned(), line }
    }

    /// With `${NAME}` from the environment, then `$pagesize` and its like, put in.
    fn expanded(&self, text: &str, unset: &mut Option<String>) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let Some((name, behind)) = after.split_once('}') else {
                out.push_str("${");
                rest = after;
                continue;
            };
            match self.around.variable(name) {
                Some(value) => out.push_str(&value),
                None => *unset = unset.take().or_else(|| Some(name.to_owned())),
            }
            rest = behind;
        }
        out.push_str(rest);
        for word in ["pagesize", "mb_memory", "ncpus"] {
            let name = format!("${word}");
            if out.contains(&name)
                && let Some(value) = self.around.word(word)
            {
                out = out.replace(&name, &value.to_string());
            }
        }
        out
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A world of a few variables and files.
    #[derive(Default)]
    pub(crate) struct World {
        pub variables: BTreeMap<&'static str, &'static str>,
        pub files: BTreeMap<&'static str, &'static str>,
    }

    impl Surroundings for World {
        fn variable(&self, name: &str) -> Option<String> {
            self.variables.get(name).map(|value| (*value).to_owned())
        }
        fn word(&self, name: &str) -> Option<u64> {
            (name == "pagesize").then_some(16384)
        }
        fn text(&self, path: &Path) -> Result<String, MethodError> {
            let text = self.files.get(path.to_str().unwrap());
            text.map(|text| (*text).to_owned()).ok_or_else(|| MethodError::Missing { path: path.to_owned() })
        }
        fn exists(&self, path: &Path) -> bool {
            path.to_str().is_some_and(|path| self.files.contains_key(path))
        }
        fn chance(&self) -> u64 {
            7
        }
    }

    fn read(text: &str, world: &World) -> Result<Vec<Section>, MethodError> {
        sections(Path::new("jobs/a.fio"), text, world)
    }

    fn shown(section: &Section) -> Vec<String> {
        section.entries.iter().map(Entry::shown).collect()
    }

    #[test]
    fn a_job_inherits_from_the_global_sections_above_it() {
        let text =
            "; disks\n[global]\nbs = 4k ; small\n  direct=1\n[a]\nrw=read\n[global]\nbs=8k\n[b]\nstonewall # last\n";
        let jobs = read(text, &World::default()).unwrap();
        assert_eq!((jobs[0].name.as_str(), jobs[0].line), ("a", 5));
        assert_eq!(shown(&jobs[0]), ["bs=4k", "direct=1", "rw=read"]);
        assert_eq!(shown(&jobs[1]), ["bs=4k", "direct=1", "bs=8k", "stonewall"]);
        assert_eq!(jobs[1].entries[3].line, 10);
    }

    #[test]
    fn variables_and_words_are_put_in() {
        let world = World { variables: [("SIZE", "64m"), ("K", "b")].into(), ..World::default() };
        let jobs =
            read("[a]\nsize=${SIZE}\n${K}s=$pagesize\nfilename=/x/${DISK}${NONE}\nbsrange=${\n", &world).unwrap();
        assert_eq!(shown(&jobs[0]), ["size=64m", "bs=16384", "filename=/x/", "bsrange=${"]);
        assert_eq!(jobs[0].entries[2].unset.as_deref(), Some("DISK"));
    }

    #[test]
    fn an_included_file_lies_here_or_beside() {
        let files = [("jobs/common", "bs=4k\ninclude more"), ("more", "rw=read"), ("loop", "include loop")].into();
        let world = World { files, ..World::default() };
        let jobs = read("[a]\ninclude common\niodepth=2\n", &world).unwrap();
        assert_eq!(shown(&jobs[0]), ["bs=4k", "rw=read", "iodepth=2"]);
        assert_eq!((jobs[0].entries[1].file.to_str(), jobs[0].entries[1].line), (Some("more"), 1));
        assert!(read("[a]\ninclude loop\n", &world).unwrap_err().to_string().contains("does one include itself"));
        assert!(
            matches!(read("[a]\ninclude none", &world), Err(MethodError::Missing { path }) if path == Path::new("jobs/none"))
        );
    }

    #[test]
    fn what_is_no_job_file_is_told_with_its_line() {
        for (text, line) in [("bs=4k\n", 1), ("[a]\n\n[b\n", 3)] {
            let error = read(text, &World::default()).unwrap_err();
            assert!(matches!(error, MethodError::JobFile { line: told, .. } if told == line), "{error}");
        }
    }
}
