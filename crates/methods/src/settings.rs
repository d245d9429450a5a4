//! `--set KEY=VALUE`: typed access with one clear sentence for what does not fit. A key that a method does not list is
//! refused by name, never skipped in silence.

use crate::MethodError;
use std::collections::BTreeMap;
use std::str::FromStr;

/// A parameter of a method, as `tiermark methods NAME` lists it.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its key.
    pub key: &'static str,
    /// Other spellings that are accepted (fio's, mostly).
    pub aliases: &'static [&'static str],
    /// Its value when not set, as text; empty: none.
    pub default: &'static str,
    /// What it does, with its unit or its choices.
    pub help: &'static str,
}

/// Settings as given, by canonical key.
#[derive(Debug, Clone, Default)]
pub struct Settings(BTreeMap<&'static str, String>);

impl Settings {
    /// Reads `KEY=VALUE` words against a method's parameters; a later word replaces an earlier one.
    ///
    /// # Errors
    /// A word without `=`, or a key that the method does not list.
    pub fn parse(
        method: &'static str,
        parameters: &'static [Parameter],
        words: &[String],
    ) -> Result<Self, MethodError> {
        let mut settings = BTreeMap::new();
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| MethodError::NotASetting(word.clone()))?;
            let (key, value) = (key.trim(), value.trim());
            let parameter = parameters.iter().find(|p| p.key == key || p.aliases.contains(&key)).ok_or_else(|| {
                MethodError::UnknownKey { method, key: key.to_owned(), hint: likely(parameters, key) }
            })?;
            settings.insert(parameter.key, value.to_owned());
        }
        Ok(Settings(settings))
    }

    /// The value as text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The value as a `T`.
    ///
    /// # Errors
    /// When it cannot be read as one.
    pub fn get<T>(&self, key: &str) -> Result<Option<T>, MethodError>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        self.text(key).map(|value| value.parse().map_err(|e: T::Err| bad(key, value, e.to_string()))).transpose()
    }

    /// The value as yes or no: `true false yes no 1 0`.
    ///
    /// # Errors
    /// Anything else.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, MethodError> {
        self.text(key)
            .map(|value| match value {
                "true" | "yes" | "1" => Ok(true),
                "false" | "no" | "0" => Ok(false),
                _ => Err(bad(key, value, "say true or false")),
            })
            .transpose()
    }

    /// All, for the plan's account of itself.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    }
}

/// A value error in one expression.
pub(crate) fn bad(key: &str, value: &str, why: impl Into<String>) -> MethodError {
    MethodError::Value { key: key.to_owned(), value: value.to_owned(), why: why.into() }
}

/// The key that shares the longest beginning with what was typed, as a question; empty when none shares two letters.
fn likely(parameters: &[Parameter], typed: &str) -> String {
    let common = |key: &str| key.chars().zip(typed.chars()).take_while(|(a, b)| a == b).count();
    parameters
        .iter()
        .map(|p| (common(p.key), p.key))
        .filter(|(shared, _)| *shared >= 2)
        .max()
        .map_or(String::new(), |(_, key)| format!("; did you mean {key}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter { key: "depth", aliases: &["iodepth"], default: "1", help: "" },
        Parameter { key: "direct", aliases: &[], default: "true", help: "" },
    ];

    fn parse(words: &[&str]) -> Result<Settings, MethodError> {
        Settings::parse("job", PARAMETERS, &words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn aliases_and_types() {
        let settings = parse(&["iodepth=32", "direct=no"]).unwrap();
        assert_eq!(settings.get::<u32>("depth").unwrap(), Some(32));
        assert_eq!(settings.flag("direct").unwrap(), Some(false));
        assert_eq!(settings.text("absent"), None);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let error = parse(&["dept=3"]).unwrap_err().to_string();
        assert!(error.contains("no parameter \"dept\"; did you mean depth?"), "{error}");
        assert_eq!(parse(&["depth"]).unwrap_err().to_string(), "--set takes KEY=VALUE, not \"depth\"");
        let error = parse(&["depth=many"]).unwrap().get::<u32>("depth").unwrap_err().to_string();
        assert!(error.starts_with("depth=many: "), "{error}");
    }
}
