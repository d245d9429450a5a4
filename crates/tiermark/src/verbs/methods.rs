//! `tiermark methods`: what can be run, what it does and costs, what it takes.

use crate::context::Context;
use crate::out;
use anyhow::Result;
use methods::Method;
use std::fmt::Write;
use std::process::ExitCode;

/// Lists all methods, or explains one.
pub fn methods(context: &Context, name: Option<&str>) -> Result<ExitCode> {
    let chosen = match name {
        Some(name) => vec![methods::find(name)?],
        None => methods::ALL.to_vec(),
    };
    if context.json {
        out::print_json(&report::json::methods(&chosen))?;
    } else if let (Some(_), [method]) = (name, chosen.as_slice()) {
        out::print(&explain(*method))?;
    } else {
        let width = chosen.iter().map(|method| method.name().len()).max().unwrap_or(0) + 2;
        let lines: Vec<_> =
            chosen.iter().map(|method| format!("{:<width$}{}", method.name(), method.summary())).collect();
        out::print(&format!("{}\n\ntiermark methods NAME explains one.", lines.join("\n")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(method: &dyn Method) -> String {
    let mut text = format!("{}: {}\n\ncosts      {}\n", method.name(), method.summary(), method.cost());
    if let Some(source) = method.source() {
        let _ = writeln!(text, "published  {source}");
    }
    text.push_str("\nparameters (--set KEY=VALUE)\n");
    for parameter in method.parameters() {
        let default = match parameter.default.text() {
            "" => String::new(),
            text => format!(" ({text})"),
        };
        let _ = writeln!(text, "  {:<13}{}{default}", parameter.key, parameter.help);
        if !parameter.aliases.is_empty() {
            let _ = writeln!(text, "  {:<13}also {}", "", parameter.aliases.join(", "));
        }
    }
    text
}
