//! Secrets that survive a round trip: a text that is shown to a model has a placeholder for each
//! secret, and what the model writes gets the secret back, in the file and lines it came from.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::sync::LazyLock;

use regex::Regex;
use thiserror::Error;

use super::{REDACTED, Redactor};
use crate::words::diff::Diff;

/// Hashed with each secret, so that a placeholder says nothing about it. On Linux the same for all processes of this machine:
/// a brief of one can be answered in another.
static SALT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    std::fs::read("/etc/machine-id").unwrap_or_else(|_| {
        let random = RandomState::new().hash_one(0);
        random.to_ne_bytes().to_vec()
    })
});

static PLACEHOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[redacted-[0-9a-f]{12}\]").expect("valid regex"));

fn placeholder(secret: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (&*SALT, secret).hash(&mut hasher);
    format!("[redacted-{:012x}]", hasher.finish() >> 16)
}

/// A text with a placeholder where no secret can be put back.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "it would contain `{0}`, which stands for a secret that you are not shown; keep the lines with it as they are and copy it nowhere else"
)]
pub struct Unrestorable(String);

/// A file's text and its secrets.
#[derive(Clone)]
pub struct HiddenText<'a> {
    original: &'a str,
    hidden: Cow<'a, str>,
    /// By placeholder.
    secrets: BTreeMap<String, String>,
}

impl Redactor {
    /// The text with a placeholder for each secret, and with the same line count.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replace_lines(text, &mut placeholder, &mut |_, _| ())
    }

    /// Like [`Self::hide`], for a text that is edited afterwards.
    pub fn hide_file<'a>(&self, original: &'a str) -> HiddenText<'a> {
        let mut secrets = BTreeMap::new();
        let mut mark = |secret: &str| {
            let name = placeholder(secret);
            secrets.insert(name.clone(), secret.to_owned());
            name
        };
        let hidden = self.replace_lines(original, &mut mark, &mut |_, _| ());
        HiddenText {
            original,
            hidden,
            secrets,
        }
    }
}

impl HiddenText<'_> {
    /// The text as a model sees it.
    pub fn as_str(&self) -> &str {
        &self.hidden
    }

    /// Puts the secrets back into a new version of the whole text: on unchanged lines, and on lines
    /// that take the place of lines with the same secret.
    pub fn restore<'n>(&self, new: &'n str) -> Result<Cow<'n, str>, Unrestorable> {
        self.check_markers(self.original, new)?;
        if !PLACEHOLDER.is_match(new) {
            return Ok(Cow::Borrowed(new));
        }
        let lines: Vec<&str> = new.split_inclusive('\n').collect();
        let (mut out, mut next) = (String::with_capacity(new.len()), 0);
        for change in Diff::of(self.hidden.as_bytes(), new.as_bytes()).changes() {
            let unchanged = lines[next..change.line].concat();
            next = change.line + change.added.len();
            let removed = change.removed.concat();
            let removed = String::from_utf8_lossy(&removed);
            out += &self.put_back(&unchanged, &self.hidden)?;
            out += &self.put_back(&lines[change.line..next].concat(), &removed)?;
        }
        out += &self.put_back(&lines[next..].concat(), &self.hidden)?;
        Ok(Cow::Owned(out))
    }

    /// Puts the secrets back into an edit that finds `search` and writes `replace` in its place.
    pub fn restore_change(
        &self,
        search: &str,
        replace: &str,
    ) -> Result<(String, String), Unrestorable> {
        self.check_markers(search, replace)?;
        Ok((
            self.put_back(search, &self.hidden)?,
            self.put_back(replace, search)?,
        ))
    }

    /// A marker or placeholder that a new version of the whole text has and this one has not.
    pub fn added_marker<'n>(&self, new: &'n str) -> Option<&'n str> {
        if self.check_markers(self.original, new).is_err() {
            return Some(REDACTED);
        }
        let mut found = PLACEHOLDER.find_iter(new).map(|found| found.as_str());
        found.find(|marker| !self.original.contains(marker))
    }

    /// Puts the secrets back whose placeholders `source` has.
    fn put_back(&self, text: &str, source: &str) -> Result<String, Unrestorable> {
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for found in PLACEHOLDER.find_iter(text) {
            out += &text[done..found.start()];
            done = found.end();
            match self.secrets.get(found.as_str()) {
                // A secret found by its shape may contain one that was known by its value.
                Some(secret) if source.contains(found.as_str()) => {
                    out += &self.put_back(secret, secret)?;
                }
                _ if self.original.contains(found.as_str()) => out += found.as_str(),
                _ => return Err(Unrestorable(found.as_str().to_owned())),
            }
        }
        Ok(out + &text[done..])
    }

    /// A file with secrets gets no more of the markers that logs and messages have for them.
    fn check_markers(&self, old: &str, new: &str) -> Result<(), Unrestorable> {
        let count = |text: &str| text.matches(REDACTED).count();
        match !self.secrets.is_empty() && count(new) > count(old) {
            true => Err(Unrestorable(REDACTED.to_owned())),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "import os\nurl = \"ftp://foo:s3cr3t!x@ftp.corp.net/\"\nkey = \"sk-ant-api03-AbC_dEf-123456\"\nlast = 1\n";

    #[test]
    fn edited_file_gets_its_secrets_back() {
        let redactor = Redactor::with_values(["known-value-17"]);
        let file = redactor.hide_file(FILE);
        assert!(!file.as_str().contains("s3cr3t") && !file.as_str().contains("AbC_dEf"));
        assert_eq!(file.as_str(), redactor.hide(FILE));
        let edited = file
            .as_str()
            .replace("last = 1", "last = 2")
            .replace("url = ", "ADDRESS = ");
        assert_eq!(
            file.restore(&edited).unwrap(),
            FILE.replace("last = 1", "last = 2")
                .replace("url = ", "ADDRESS = ")
        );
        assert_eq!(file.restore(file.as_str()).unwrap(), FILE);
        let crlf = FILE.replace('\n', "\r\n");
        let file = redactor.hide_file(&crlf);
        assert_eq!(file.restore(file.as_str()).unwrap(), crlf);
    }

    #[test]
    fn changed_place_gets_its_secrets_back() {
        let redactor = Redactor::patterns_only();
        let file = redactor.hide_file(FILE);
        let line = file.as_str().lines().nth(1).unwrap();
        let (search, replace) = file
            .restore_change(line, &format!("{line}\nmore = 1"))
            .unwrap();
        let original = FILE.lines().nth(1).unwrap();
        assert_eq!(search, original);
        assert_eq!(replace, format!("{original}\nmore = 1"));
    }

    #[test]
    fn secret_is_put_nowhere_else() {
        let redactor = Redactor::patterns_only();
        let file = redactor.hide_file(FILE);
        let key = file.as_str().lines().nth(2).unwrap();
        let copied = format!("{}log({key})\n", file.as_str());
        let error = file.restore(&copied).unwrap_err().to_string();
        assert!(error.contains("[redacted-"), "{error}");
        assert!(file.restore_change("last = 1", key).is_err());
        let other = redactor.hide_file("no secrets\n");
        assert!(other.restore(key).is_err());
        assert!(redactor.hide_file("").restore(key).is_err());
    }

    #[test]
    fn marker_in_place_of_a_secret_is_refused() {
        let redactor = Redactor::patterns_only();
        let file = redactor.hide_file(FILE);
        let marked = FILE.replace("s3cr3t!x", REDACTED);
        assert!(file.restore(&marked).is_err());
        assert!(file.restore_change("last = 1", REDACTED).is_err());
        let own = redactor.hide_file("MARKER = '[redacted]'\n");
        assert!(
            own.restore("MARKER = ['[redacted]', '[redacted]']\n")
                .is_ok()
        );
    }

    #[test]
    fn lines_of_a_key_block_are_restored() {
        let text =
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEx\n\nyz==\n-----END RSA PRIVATE KEY-----\nb\n";
        let redactor = Redactor::patterns_only();
        let file = redactor.hide_file(text);
        assert!(!file.as_str().contains("MIIEx"));
        let edited = file.as_str().replace("b\n", "c\n");
        assert_eq!(file.restore(&edited).unwrap(), text.replace("b\n", "c\n"));
    }

    #[test]
    fn known_value_inside_a_shape_is_restored() {
        let redactor = Redactor::with_values(["known-value-17"]);
        let text = "SECRET=abc1known-value-17 run\n";
        let file = redactor.hide_file(text);
        assert!(!file.as_str().contains("known-value") && !file.as_str().contains("abc1"));
        assert_eq!(file.restore(file.as_str()).unwrap(), text);
    }
}
