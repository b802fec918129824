//! Removes secrets from text and JSON. Known values are found in all common encodings, unknown keys
//! by their shape.

mod files;
mod lines;
mod patterns;
mod placeholders;
mod values;

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

pub use files::is_secret_file;
pub use placeholders::{HiddenText, Unrestorable};
use values::Values;

/// Replacement for a secret.
pub const REDACTED: &str = "[redacted]";

/// The replacement that tells nothing about the secret.
fn redacted(_: &str) -> String {
    REDACTED.to_owned()
}

/// Removes secrets from text before it is written, sent or shown.
pub struct Redactor {
    values: Values,
}

impl Redactor {
    /// Recognises only keys with a known shape.
    pub fn patterns_only() -> Self {
        Self::with_values(std::iter::empty::<&str>())
    }

    /// Also recognises these values: as they are, and in JSON, base64 and URL encoding. Values
    /// shorter than 8 bytes are ignored, because they would match ordinary words; see
    /// [`Self::ignored_values`].
    pub fn with_values<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        Self {
            values: Values::new(secrets),
        }
    }

    /// Number of given values that were too short to search for.
    pub fn ignored_values(&self) -> usize {
        self.values.ignored_values
    }

    /// The text without secrets, borrowed if there were none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replace(text, &mut redacted)
    }

    /// Replaces each secret by what `mark` makes of it.
    fn replace<'a>(&self, text: &'a str, mark: &mut dyn FnMut(&str) -> String) -> Cow<'a, str> {
        match self.values.replace(text, mark) {
            Cow::Borrowed(text) => patterns::replace(text, mark),
            Cow::Owned(text) => match patterns::replace(&text, mark) {
                Cow::Borrowed(_) => Cow::Owned(text),
                Cow::Owned(text) => Cow::Owned(text),
            },
        }
    }

    /// Describes the first secret in a text; `None` if there is none.
    pub fn describe_secret(&self, text: &str) -> Option<&'static str> {
        if self.values.is_match(text) {
            return Some("one of this server's own keys");
        }
        patterns::describe(text)
    }

    /// Removes only known values. For text that is processed further, where a false positive could
    /// do harm.
    pub fn redact_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.values.replace(text, &mut redacted)
    }

    /// Redacts every string and key in place. A string is redacted whole if its key is a name such
    /// as `api_key`.
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if self.values.is_match(&number.to_string()) {
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
                    if patterns::names_a_secret(name) && text.len() >= values::MIN_SECRET_LEN =>
                {
                    *value = REDACTED.into();
                }
                _ => self.redact_json(value),
            }
        }
        // Secrets in keys are rare, so the map is rebuilt only then. No field is lost if two names
        // become equal.
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
        Self::patterns_only()
    }
}

// Not derived, because that would print the secrets.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("left_alone", &self.ignored_values())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
