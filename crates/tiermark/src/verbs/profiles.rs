//! `tiermark profiles`: the devices that can be simulated and emulated.

use crate::context::Context;
use crate::out;
use anyhow::Result;
use std::process::ExitCode;

/// Lists the shipped profiles, or prints one.
pub fn profiles(context: &Context, name: Option<&str>) -> Result<ExitCode> {
    let chosen = match name {
        Some(name) => vec![methods::profile_named(name)?],
        None => profile::shipped().to_vec(),
    };
    if context.json {
        out::print_json(&report::json::profiles(&chosen)?)?;
    } else if let (Some(_), [profile]) = (name, chosen.as_slice()) {
        // A shipped one with its comments: it is the form that people write their own after.
        let shipped = name.and_then(profile::text).map(str::to_owned);
        out::print(&shipped.map_or_else(|| profile.to_toml(), Ok)?)?;
    } else {
        out::print(&report::terminal::profiles(&chosen, &context.style))?;
    }
    Ok(ExitCode::SUCCESS)
}
