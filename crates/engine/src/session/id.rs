//! The name of a session, safe to be a file's name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Letters, digits, `.`, `_` and `-`; begins with a letter or digit; at most 128. So it is a file's name and never a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "session_id `{written}` is not a name: use letters, digits, `.`, `_` and `-`, begin with a letter or digit, \
     and stay within {LONGEST} characters, as in `fix-login.2`"
)]
pub struct InvalidSessionId {
    /// Made safe to show, and short.
    written: String,
}

const LONGEST: usize = 128;

impl SessionId {
    /// A new name: sorts by the time it was made, and cannot be guessed.
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

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let begins_well = written.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins_well && written.len() <= LONGEST && written.chars().all(inside) {
            return Ok(Self(written.to_owned()));
        }
        let shown = supervisor_text::words::plain(written).replace(['\n', '\t', '`'], " ");
        Err(InvalidSessionId {
            written: supervisor_text::words::cut_end(&shown, 60).into_owned(),
        })
    }
}

impl TryFrom<String> for SessionId {
    type Error = InvalidSessionId;

    fn try_from(written: String) -> Result<Self, Self::Error> {
        written.parse()
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
    fn names_are_accepted_and_paths_are_not() {
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
    fn the_refusal_names_the_rule_and_stays_on_one_line() {
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
    fn generated_names_are_valid_distinct_and_in_order_of_time() {
        let first = SessionId::generate().expect("random bytes");
        std::thread::sleep(std::time::Duration::from_millis(3));
        let second = SessionId::generate().expect("random bytes");
        assert!(first < second, "{first} {second}");
        assert_eq!(first.as_str().parse(), Ok(first.clone()));
    }
}
