//! Session ids, which are safe to use as file names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// At most 128 letters, digits, `.`, `_` and `-`, starting with a letter or digit. This makes it a
/// valid file name that is never a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "session_id `{input}` is not a name: use letters, digits, `.`, `_` and `-`, begin with a letter or digit, \
     and stay within {MAX_LEN} characters, as in `fix-login.2`"
)]
pub struct InvalidSessionId {
    /// Sanitised and shortened for display.
    input: String,
}

const MAX_LEN: usize = 128;

impl SessionId {
    /// Creates a new id that sorts by time and cannot be guessed.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S.%3fZ");
        Ok(Self(format!("{now}-{:016x}", getrandom::u64()?)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let is_valid_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let has_valid_start = input.starts_with(|c: char| c.is_ascii_alphanumeric());
        if has_valid_start && input.len() <= MAX_LEN && input.chars().all(is_valid_char) {
            return Ok(Self(input.to_owned()));
        }
        let shown = supervisor_text::words::plain(input).replace(['\n', '\t', '`'], " ");
        Err(InvalidSessionId {
            input: supervisor_text::words::cut_end(&shown, 60).into_owned(),
        })
    }
}

impl TryFrom<String> for SessionId {
    type Error = InvalidSessionId;

    fn try_from(input: String) -> Result<Self, Self::Error> {
        input.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_never_paths() {
        for good in ["a", "7", "fix-login.2", "A_b", &"x".repeat(128), "a..b"] {
            assert_eq!(
                good.parse::<SessionId>().map(String::from),
                Ok(good.to_owned())
            );
        }
        for bad in [
            "",
            ".",
            "..",
            ".a",
            "-a",
            "_a",
            "a/b",
            "../a",
            "a\0",
            "a b",
            "ä",
            "a\n",
            &"x".repeat(129),
        ] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn error_names_the_rule_on_one_line() {
        let error = "a/../\u{1b}[31m\n"
            .parse::<SessionId>()
            .expect_err("a path")
            .to_string();
        assert!(
            error.contains("begin with a letter or digit") && error.contains("128"),
            "{error}"
        );
        assert!(
            !error.contains('\n') && !error.contains('\u{1b}'),
            "{error}"
        );
    }

    #[test]
    fn generated_ids_are_valid_and_sorted() {
        let first = SessionId::generate().expect("random bytes");
        std::thread::sleep(std::time::Duration::from_millis(3));
        let second = SessionId::generate().expect("random bytes");
        assert!(first < second, "{first} {second}");
        assert_eq!(first.as_str().parse(), Ok(first.clone()));
    }
}
