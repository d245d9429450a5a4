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
    /// Its value when not set.
    pub default: Default,
    /// What it does, with its unit or its choices.
    pub help: &'static str,
}

/// What a parameter is when nobody sets it. The table of parameters is the only place where that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// Nothing.
    Nothing,
    /// This, read as if it had been typed.
    Is(&'static str),
    /// What the method decides, in words: it depends on the target, the machine or other parameters.
    Depends(&'static str),
}

impl Default {
    /// For lists; empty when there is none.
    pub fn text(&self) -> &'static str {
        match self {
            Default::Nothing => "",
            Default::Is(text) | Default::Depends(text) => text,
        }
    }
}

/// Settings as given, by canonical key, over the defaults of a method's parameters.
#[derive(Debug, Clone)]
pub struct Settings {
    parameters: &'static [Parameter],
    given: BTreeMap<&'static str, String>,
}

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
        let mut given = BTreeMap::new();
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| MethodError::NotASetting(word.clone()))?;
            let (key, value) = (key.trim(), value.trim());
            let parameter = parameters.iter().find(|p| p.key == key || p.aliases.contains(&key)).ok_or_else(|| {
                MethodError::UnknownKey { method, key: key.to_owned(), hint: likely(parameters, key) }
            })?;
            given.insert(parameter.key, value.to_owned());
        }
        Ok(Settings { parameters, given })
    }

    /// What was typed.
    pub fn given(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(String::as_str)
    }

    /// What was typed or else the default, as text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.given(key).or_else(|| match self.parameters.iter().find(|parameter| parameter.key == key)?.default {
            Default::Is(text) => Some(text),
            Default::Nothing | Default::Depends(_) => None,
        })
    }

    /// The text of a parameter that always has a value.
    ///
    /// # Errors
    /// When it has none.
    pub fn word(&self, key: &str) -> Result<&str, MethodError> {
        self.text(key).ok_or_else(|| bad(key, "", "must be set"))
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

    /// The value of a parameter that always has one, as a `T`.
    ///
    /// # Errors
    /// When it has none, or it cannot be read as a `T`.
    pub fn value<T>(&self, key: &str) -> Result<T, MethodError>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        self.get(key)?.ok_or_else(|| bad(key, "", "must be set"))
    }

    /// The value as yes or no: `true false yes no 1 0`.
    ///
    /// # Errors
    /// Anything else.
    pub fn flag(&self, key: &str) -> Result<bool, MethodError> {
        match self.word(key)? {
            "true" | "yes" | "1" => Ok(true),
            "false" | "no" | "0" => Ok(false),
            value => Err(bad(key, value, "say true or false")),
        }
    }

    /// Every parameter that has a value, for the plan's account of itself: given as settings again, they make the same
    /// plan. `decided` is what the method made of those that depend on more than the table; with none they are left out.
    pub(crate) fn resolved(&self, decided: &[(&str, Option<String>)]) -> BTreeMap<String, String> {
        let own = |key: &str| decided.iter().find(|(decided, _)| *decided == key).map(|(_, value)| value.clone());
        let value = |key: &str| own(key).unwrap_or_else(|| self.text(key).map(str::to_owned));
        self.parameters.iter().filter_map(|p| Some((p.key.to_owned(), value(p.key)?))).collect()
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
        Parameter { key: "depth", aliases: &["iodepth"], default: Default::Is("1"), help: "" },
        Parameter { key: "direct", aliases: &[], default: Default::Is("true"), help: "" },
    ];

    fn parse(words: &[&str]) -> Result<Settings, MethodError> {
        Settings::parse("job", PARAMETERS, &words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn aliases_and_types() {
        let settings = parse(&["iodepth=32", "direct=no"]).unwrap();
        assert_eq!(settings.get::<u32>("depth").unwrap(), Some(32));
        assert!(!settings.flag("direct").unwrap());
        assert_eq!(settings.text("absent"), None);
    }

    #[test]
    fn what_is_not_given_is_what_the_table_says() {
        let settings = parse(&[]).unwrap();
        assert_eq!((settings.value::<u32>("depth").unwrap(), settings.given("depth")), (1, None));
        let resolved = parse(&["depth=7"]).unwrap().resolved(&[("direct", None)]);
        assert_eq!(resolved.into_iter().collect::<Vec<_>>(), [("depth".to_owned(), "7".to_owned())]);
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
