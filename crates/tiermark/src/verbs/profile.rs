//! `tiermark profile`: a device's behaviour as a file, fitted to what was measured.

use super::run::execute;
use crate::cli::ProfileArgs;
use crate::context::Context;
use crate::exit::{BrokenOff, Missing};
use crate::{exit, out};
use anyhow::Result;
use machine::Root;
use methods::{Request, Settings, Site};
use record::State;
use report::Style;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use study::fit::Fitted;

/// Fits a profile to runs, made before or now, or to figures alone.
pub fn profile(context: &Context, args: &ProfileArgs) -> Result<ExitCode> {
    // A file that is already there is found out before a minute of measuring, not after.
    let file = args.out.as_deref().filter(|path| *path != Path::new("-")).map(make).transpose()?;
    let fitted = fit(context, args);
    match (fitted, file) {
        (Ok((fitted, code)), file) => {
            write(context, &fitted, file)?;
            Ok(code)
        }
        (Err(error), Some((path, _))) => {
            // Empty and our own: nothing is lost with it.
            let _ = std::fs::remove_file(path);
            Err(error)
        }
        (Err(error), None) => Err(error),
    }
}

fn make(path: &Path) -> Result<(&Path, File)> {
    let file = File::options().write(true).create_new(true).open(path);
    Ok((path, file.map_err(|error| Missing(format!("{} cannot be made: {error}", path.display())))?))
}

fn fit(context: &Context, args: &ProfileArgs) -> Result<(Fitted, ExitCode)> {
    let mut code = ExitCode::SUCCESS;
    let mut interrupted = false;
    if let Some(path) = &args.figures {
        let mut figures = methods::figures_in(path)?;
        if let Some(name) = &args.name {
            figures.name.clone_from(name);
        }
        return Ok((study::fit::of_figures(&figures)?, code));
    }
    let ids = if let Some(on) = &args.on {
        let method = methods::find("profile")?;
        let settings = Settings::parse(method.name(), method.parameters(), &args.set)?;
        let root = Root::live();
        let machine = machine::read(&root);
        let site = Site::named(on, args.destroy.as_deref(), &machine, &root)?;
        let request = Request { site: &site, settings: &settings, as_published: false, machine: &machine };
        let plan = method.plan(&request)?;
        let finished = execute(context, machine, plan, args.progress)?;
        code = exit::of_run(&finished);
        interrupted = finished.state == State::Interrupted;
        vec![finished.id]
    } else {
        let store = context.open_for_reading()?;
        args.runs.iter().map(|run| store.find(run)).collect::<Result<_, _>>()?
    };
    let store = context.open_for_reading()?;
    let records = ids.iter().map(|id| store.load(id)).collect::<Result<Vec<_>, _>>()?;
    let quoted: Vec<_> = records.iter().filter_map(|record| record.run.quoted.as_ref()).collect();
    if !quoted.is_empty() && quoted.len() < records.len() {
        let mixed =
            "runs of quoted figures and measured runs are not fitted together; name only the ones or the others";
        return Err(study::fit::FitError::Unfit(mixed.to_owned()).into());
    }
    if let ([first, ..], [record, ..]) = (quoted.as_slice(), records.as_slice()) {
        let format = first.format().name();
        let name = args.name.clone().unwrap_or_else(|| format.to_owned());
        return Ok((study::fit::of_quoted(&name, &format!("{format} on {}", record.run.target), &quoted)?, code));
    }
    let views: Vec<_> = records.iter().map(report::view).collect();
    let name = args.name.clone().unwrap_or_else(|| report::profile_name(&records));
    match study::fit::fit(&name, &views) {
        // Too little was measured, for a reason that is known.
        Err(_) if interrupted => Err(BrokenOff(ids[0].to_string()).into()),
        fitted => Ok((fitted?, code)),
    }
}

/// The file, or standard output; the table goes where it is not in the way.
fn write(context: &Context, fitted: &Fitted, file: Option<(&Path, File)>) -> Result<()> {
    let toml = fitted.profile.to_toml()?;
    if let Some((path, mut file)) = file {
        file.write_all(toml.as_bytes())
            .map_err(|error| Missing(format!("{} cannot be written: {error}", path.display())))?;
        if context.json {
            return out::print_json(&report::json::profile(&fitted.profile)?);
        }
        return out::show(&report::terminal::fitted(fitted, &context.style), &context.style);
    }
    if context.json {
        return out::print_json(&report::json::profile(&fitted.profile)?);
    }
    out::print(&toml)?;
    let style = Style { color: false, ..context.style.clone() };
    out::beside(&report::terminal::fitted(fitted, &style));
    Ok(())
}
