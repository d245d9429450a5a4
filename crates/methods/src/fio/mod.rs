//! Fio's job files as plans: each job a step, in the order of the file. Jobs that fio would run side by side are one step
//! with their threads together when they ask for the same, and are refused otherwise; what is not honoured is refused by
//! name and line. The meaning of keys is fio's manual's, in `keys`.

mod keys;
mod parse;
mod tables;
mod values;

pub use parse::Surroundings;

use crate::{MethodError, Site, Where};
use basics::job::{Direction, Engine, Order};
use basics::plan::{Step, Target, step_seed};
use basics::{Bytes, Job, Nanos, Plan};
use keys::Read;
use machine::{Machine, Root};
use parse::Section;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a job file is turned into a plan with.
#[derive(Debug)]
pub struct Request<'a> {
    /// The file.
    pub path: &'a Path,
    /// Where all of its jobs go; without it `filename` and `directory` say so.
    pub on: Option<&'a Site>,
    /// What the user gave to `--destroy`.
    pub destroy: Option<&'a str>,
    /// The machine.
    pub machine: &'a Machine,
    /// Where its paths begin.
    pub root: &'a Root,
}

/// This process's environment and files.
#[derive(Debug)]
pub struct Live<'a>(pub &'a Machine);

impl Surroundings for Live<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
    fn word(&self, name: &str) -> Option<u64> {
        match name {
            "pagesize" => self.0.page_size.get().map(|size| size.0),
            "mb_memory" => self.0.ram.get().map(|size| size.0 >> 20),
            "ncpus" => std::thread::available_parallelism().ok().map(|count| count.get() as u64),
            _ => None,
        }
    }
    fn text(&self, path: &Path) -> Result<String, MethodError> {
        crate::site::text_of(path, "a job file")
    }
    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }
    fn chance(&self) -> u64 {
        // SipHash keyed by the kernel's random numbers, as the standard library seeds it for every map.
        use std::hash::{BuildHasher, Hasher, RandomState};
        RandomState::new().build_hasher().finish()
    }
}

/// The plan that a job file asks for. Its parameters hold, beside the file's name, each job's keys as they were written
/// (`job NAME`), those that were `ignored` and the `notes` on where our way is not fio's.
///
/// # Errors
/// [`MethodError::JobFile`] for the first line in the way; a target that is not there.
pub fn plan(request: &Request<'_>, around: &dyn Surroundings) -> Result<Plan, MethodError> {
    let text = around.text(request.path)?;
    let sections = parse::sections(request.path, &text, around)?;
    let mut groups: Vec<Group<'_>> = Vec::new();
    for section in &sections {
        let read = keys::read(section, around)?;
        match groups.last_mut() {
            Some(group) if !read.barrier => group.join(section, read)?,
            _ => groups.push(Group { section, threads: read.asked.numjobs.into(), read, members: 1 }),
        }
    }
    let Some(first) = groups.first() else {
        let why = "there is no job in it; a job begins with [NAME]".to_owned();
        return Err(MethodError::Unusable { path: request.path.to_owned(), why });
    };
    let mut plan = Plan {
        method: "fio".to_owned(),
        parameters: parameters(request.path, &groups),
        as_published: false,
        seed: first.read.asked.job.seed,
        targets: Vec::new(),
        steps: Vec::new(),
        left_out: Vec::new(),
        ..Plan::default()
    };
    let mut targets: BTreeMap<Option<PathBuf>, usize> = BTreeMap::new();
    for (index, group) in groups.iter().enumerate() {
        let place = group.place(request, index)?;
        let mut job = group.job(&place.site, request)?;
        job.seed = step_seed(job.seed, index);
        job.check().map_err(|error| group.section.refused(error))?;
        let whole = job.offset + job.size.unwrap_or_default();
        let target = *targets.entry(place.key).or_insert_with(|| {
            plan.targets.push(place.site.target(whole, job.entropy, group.fills_itself(&job)));
            plan.targets.len() - 1
        });
        if let Target::TestFile { size, .. } = &mut plan.targets[target] {
            *size = whole.max(*size);
        }
        let (name, tier) = (group.read.name.clone(), place.site.tier);
        plan.steps.push(Step { name, tier, target, job, may_fail: false, before: Vec::new() });
    }
    fill_for_later(&mut plan);
    Ok(plan)
}

/// A later job meets the whole file, as it would with fio: it is written before the first, unless the first is sure to
/// write all of it.
fn fill_for_later(plan: &mut Plan) {
    for (index, target) in plan.targets.iter_mut().enumerate() {
        let Target::TestFile { size, first_step_fills, .. } = target else { continue };
        let mut steps = plan.steps.iter().filter(|step| step.target == index);
        let first = steps.next().map(|step| step.job.stop);
        let writes_all = first.is_some_and(|stop| {
            stop.time.is_none() && stop.operations.is_none() && stop.bytes.is_some_and(|bytes| bytes >= *size)
        });
        if steps.next().is_some() && !writes_all {
            *first_step_fills = false;
        }
    }
}

fn parameters(path: &Path, groups: &[Group<'_>]) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = [("file".to_owned(), path.display().to_string())].into();
    let said = |pick: fn(&Read) -> &[String]| {
        let mut said: Vec<&str> = groups.iter().flat_map(|group| pick(&group.read)).map(String::as_str).collect();
        said.sort_unstable();
        said.dedup();
        said.join("; ")
    };
    for (key, text) in [("ignored", said(|read| &read.ignored)), ("notes", said(|read| &read.notes))] {
        if !text.is_empty() {
            all.insert(key.to_owned(), text);
        }
    }
    // No value holds the sign that begins a comment.
    all.extend(groups.iter().map(|group| (format!("job {}", group.read.name), group.read.options.join("; "))));
    all
}

/// Jobs that run side by side.
struct Group<'a> {
    section: &'a Section,
    read: Read,
    /// Of all together.
    threads: u64,
    members: u32,
}

/// Where a group works.
struct Place {
    site: Site,
    /// Equal for equal files.
    key: Option<PathBuf>,
}

impl Group<'_> {
    fn join(&mut self, section: &Section, read: Read) -> Result<(), MethodError> {
        if read.asked != self.read.asked {
            return Err(section.refused(format!(
                "fio would run it beside job {:?}, and jobs side by side must ask for the same; add stonewall to it",
                self.read.name
            )));
        }
        self.threads += u64::from(read.asked.numjobs);
        self.members += 1;
        self.read.name = format!("{}+{}", self.read.name, read.name);
        Ok(())
    }

    /// Each process has a file of its own, or all have the same.
    fn shares_a_file(&self) -> bool {
        self.read.asked.filename.is_some()
    }

    fn place(&self, request: &Request<'_>, index: usize) -> Result<Place, MethodError> {
        let asked = &self.read.asked;
        if asked.null {
            let at = Where::Null { service: Nanos(0), stall: None };
            let site = Site { tier: None, at, room: basics::Known::default(), compresses: false };
            return Ok(Place { site, key: Some(PathBuf::from("null")) });
        }
        let own = || PathBuf::from(format!("{index} {}", self.read.name));
        let named = || asked.filename.as_ref().map(PathBuf::from);
        if let Some(site) = request.on {
            let in_a_directory = matches!(site.at, Where::Directory(_));
            let key = in_a_directory.then(|| named().unwrap_or_else(own));
            return Ok(Place { site: site.clone(), key });
        }
        for entry in self.section.entries.iter().filter(|entry| matches!(entry.key.as_str(), "filename" | "directory"))
        {
            entry.text()?;
        }
        let directory = PathBuf::from(asked.directory.as_deref().unwrap_or("."));
        let at = |path: &Path| {
            let text = path.to_str().ok_or_else(|| self.section.refused("its path is not UTF-8"))?;
            Site::named(text, request.destroy, request.machine, request.root)
        };
        let Some(file) = named() else { return Ok(Place { site: at(&directory)?, key: Some(own()) }) };
        let path = directory.join(file);
        if path.is_dir() {
            return Err(self.section.refused(format!("{} is a directory; write directory=", path.display())));
        }
        let site = if path.exists() { at(&path)? } else { at(path.parent().unwrap_or(&directory))? };
        Ok(Place { site, key: Some(path) })
    }

    /// The job with its threads, its region among them and its end.
    fn job(&self, site: &Site, request: &Request<'_>) -> Result<Job, MethodError> {
        let asked = &self.read.asked;
        let too_much = || self.section.refused("its sizes and jobs come to more than there can be");
        let mut job = asked.job.clone();
        job.threads = u32::try_from(self.threads).map_err(|_| too_much())?;
        if matches!(site.at, Where::Memory) {
            job.engine = Engine::Auto;
        }
        let threads = self.threads.max(1);
        job.separate_regions = !self.shares_a_file();
        if asked.increment.0 > 0 && threads > 1 {
            if !self.shares_a_file() || self.members > 1 || job.size != Some(asked.increment) {
                let why = "offset_increment is supported where numjobs work on one filename and size is the same";
                return Err(self.section.refused(why));
            }
            job.separate_regions = true;
        }
        let each = match job.size {
            Some(size) => {
                let whole = if job.separate_regions { size.0.checked_mul(threads) } else { Some(size.0) };
                job.size = Some(Bytes(whole.filter(|whole| *whole < 1 << 63).ok_or_else(too_much)?));
                size
            }
            None => {
                let length = site.length(request.machine)?.ok_or_else(|| {
                    self.section.refused("size is needed: nothing that exists says how large its file is")
                })?;
                let left = length.0.saturating_sub(job.offset.0);
                Bytes(if job.separate_regions { left / threads } else { left })
            }
        };
        if asked.time_based {
            job.stop.operations = None;
            return Ok(job);
        }
        let amount = asked.amount.unwrap_or(each).0;
        let all = |each: u64| each.checked_mul(threads).ok_or_else(too_much);
        job.stop.bytes = Some(Bytes(all(amount.checked_mul(asked.loops).ok_or_else(too_much)?)?));
        job.stop.operations = job.stop.operations.map(all).transpose()?;
        Ok(job)
    }

    /// Whether fio would let the job itself make the file grow.
    fn fills_itself(&self, job: &Job) -> bool {
        !self.read.asked.overwrite
            && job.direction == Direction::Write
            && job.order == Order::Sequential
            && job.offset.0 == 0
            && job.threads == 1
    }
}

#[cfg(test)]
mod tests;
