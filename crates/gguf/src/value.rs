//! The values of keys, as far as they are kept: numbers, short texts and short lists of numbers. Tokenizers are not.

use serde::Serialize;

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Of an unsigned type of 8 to 64 bits.
    Unsigned(u64),
    /// Of a signed type of 8 to 64 bits.
    Signed(i64),
    /// Of 32 or 64 bits.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// A text of at most [`MOST_TEXT`](crate::MOST_TEXT) bytes; bytes that are no UTF-8 are replaced.
    Text(String),
    /// At most [`MOST_LISTED`](crate::MOST_LISTED) numbers or booleans.
    List(Vec<Value>),
    /// A longer text or list, or a list of texts: how many bytes or elements it has.
    Unread(u64),
}

impl Value {
    /// A whole number that is not negative, of whichever type.
    pub fn count(&self) -> Option<u64> {
        match self {
            Value::Unsigned(number) => Some(*number),
            Value::Signed(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Yes or no.
    pub fn bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// A text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What holds for one layer: the value itself, or that of the layer where the key has one for each.
    pub fn of_layer(&self, layer: u64) -> Option<&Value> {
        match self {
            Value::List(values) => values.get(usize::try_from(layer).ok()?),
            Value::Unread(_) => None,
            value => Some(value),
        }
    }
}
