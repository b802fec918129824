//! Which parts of a text are secret? Known values go in every form they travel in, unknown keys by their shape.
//! Knows text and JSON. Does not know where secrets come from, nor where the text goes.

mod files;
mod lines;
mod patterns;
mod values;

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

pub use files::is_secret_file;
use values::Values;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Takes secrets out of text before it is written, sent or shown.
pub struct Redactor {
    values: Values,
}

impl Redactor {
    /// Knows keys by their shape alone.
    pub fn by_shape() -> Self {
        Self::knowing(std::iter::empty::<&str>())
    }

    /// Knows these values as well, in the forms they travel in: as they are, in JSON, base64 and addresses.
    /// A value shorter than 8 bytes would take ordinary words along, so it is left alone; see [`Self::left_alone`].
    pub fn knowing<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        Self {
            values: Values::new(secrets),
        }
    }

    /// How many of the given values are too short to be looked for.
    pub fn left_alone(&self) -> usize {
        self.values.left_alone
    }

    /// The text without secrets. Text that has none is lent back as it is.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.values.redact(text) {
            Cow::Borrowed(text) => patterns::redact(text),
            Cow::Owned(text) => match patterns::redact(&text) {
                Cow::Borrowed(_) => Cow::Owned(text),
                Cow::Owned(text) => Cow::Owned(text),
            },
        }
    }

    /// What kind of secret a text holds, in words; `None` if it holds none.
    pub fn name_of_secret(&self, text: &str) -> Option<&'static str> {
        if matches!(self.values.redact(text), Cow::Owned(_)) {
            return Some("one of this server's own keys");
        }
        patterns::name(text)
    }

    /// Only what is known by value. For text that is worked with, where a guess at a shape could do harm.
    pub fn redact_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.values.redact(text)
    }

    /// Every string and every key of the tree, in place. A name such as `api_key` condemns the string beside it.
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if self.values.finds(&number.to_string()) {
                    *value = REDACTED.into();
                }
            }
            Value::String(text) => {
                if let Cow::Owned(clean) = self.redact(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(fields) => self.redact_fields(fields),
        }
    }

    fn redact_fields(&self, fields: &mut Map<String, Value>) {
        for (name, value) in fields.iter_mut() {
            match value {
                Value::String(text)
                    if patterns::names_a_secret(name) && text.len() >= values::SHORTEST =>
                {
                    *value = REDACTED.into();
                }
                _ => self.redact_json(value),
            }
        }
        // Secrets as names are rare: rebuild only then, and lose no field to two names becoming one.
        if fields
            .keys()
            .any(|name| matches!(self.redact(name), Cow::Owned(_)))
        {
            for (name, value) in std::mem::take(fields) {
                let mut clean = self.redact(&name).into_owned();
                while fields.contains_key(&clean) {
                    clean.push('\'');
                }
                fields.insert(clean, value);
            }
        }
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::by_shape()
    }
}

// By hand: the derived one would print what must never be printed.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("left_alone", &self.left_alone())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
