//! `tiermark report`: one or more runs as one HTML file, or as Markdown.

use crate::cli::ReportFormat;
use crate::context::Context;
use crate::exit::Missing;
use crate::out;
use anyhow::Result;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes the report and names it.
pub fn report(
    context: &Context,
    runs: &[String],
    format: Option<ReportFormat>,
    path: Option<&Path>,
) -> Result<ExitCode> {
    let store = context.open_for_reading()?;
    let records = runs.iter().map(|run| store.load(&store.find(run)?)).collect::<Result<Vec<_>, _>>()?;
    let records: Vec<_> = records.iter().collect();
    let is_markdown = path.and_then(Path::extension).is_some_and(|ending| ending == "md" || ending == "markdown");
    let (text, ending) = match format.unwrap_or(if is_markdown { ReportFormat::Markdown } else { ReportFormat::Html }) {
        ReportFormat::Html => (report::html::report(&records), "html"),
        ReportFormat::Markdown => (report::markdown::report(&records), "md"),
    };
    let file = match path {
        Some(path) if path == Path::new("-") => {
            out::print_as_it_is(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(path) => Place::Given(path.to_owned()),
        None => {
            let path = context.report_path(&report::file_name_of(&records))?;
            Place::Default(path.with_extension(ending))
        }
    };
    file.write(&text)?;
    out::made(file.path(), None, context.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Where a report goes.
pub enum Place {
    /// Among tiermark's own reports, where a report of the same run may be replaced.
    Default(PathBuf),
    /// Where the user said; an existing file is never replaced.
    Given(PathBuf),
}

impl Place {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Place::Default(path) | Place::Given(path) => path,
        }
    }

    /// Says at once what would go wrong later.
    pub fn check(&self) -> Result<()> {
        match self {
            Place::Given(path) if path.exists() => Err(self.trouble("it exists already")),
            Place::Given(path) if path.parent().is_some_and(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()) => {
                Err(self.trouble("there is no such folder"))
            }
            _ => Ok(()),
        }
    }

    /// Writes the report; half a report does not stay.
    pub fn write(&self, text: &str) -> Result<()> {
        self.check()?;
        let result = match self {
            Place::Default(path) => {
                let draft = path.with_extension(format!("{}.part", std::process::id()));
                let result = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path));
                // Gone already when all went well.
                result.inspect_err(|_| drop(std::fs::remove_file(&draft)))
            }
            Place::Given(path) => File::create_new(path)
                .and_then(|mut file| file.write_all(text.as_bytes()).inspect_err(|_| drop(std::fs::remove_file(path)))),
        };
        result.map_err(|error| self.trouble(&error.to_string()))
    }

    fn trouble(&self, why: &str) -> anyhow::Error {
        let way = if matches!(self, Place::Given(_)) { "name another place" } else { "give --out FILE" };
        Missing(format!("the report cannot be written to {}: {why}; {way}", self.path().display())).into()
    }
}
