//! Flags: suspicious details that code can detect but not judge, such as an unrelated criterion or a look at the environment.
//! A flag is shown in the result and given to the verifier. It rejects an answer only if the verifier upholds it.

use serde::{Deserialize, Serialize};

use supervisor_text::words;

/// The kind of a flag raised when a hidden test fails, one that the worker has not seen.
pub const HIDDEN_TEST_FLAG: &str = "twin";
/// More flags are not useful to a reader; the last one counts the rest.
const MAX_FLAGS: usize = 30;
/// Limit for each text of a flag.
const MAX_DETAIL_BYTES: usize = 400;

/// One suspicious detail of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// The kind, numbered from the second flag of that kind on, unique within one answer: `unrelated`, `unrelated-2`.
    pub id: String,
    /// `criterion `AC-1``, `src/a.rs:12`.
    #[serde(rename = "where", default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    pub detail: String,
    /// The verifier's decision; absent if none was asked or it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upheld: Option<bool>,
    /// The verifier's reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// The flags of one answer, in the order they were raised.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flags {
    list: Vec<Flag>,
    #[serde(skip)]
    omitted: usize,
}

impl Flags {
    /// Adds a flag. `kind` is a short name such as `unrelated`.
    pub fn raise(&mut self, kind: &str, place: impl Into<String>, detail: impl Into<String>) {
        if self.list.len() >= MAX_FLAGS {
            self.omitted += 1;
            let last = self.list.last_mut().expect("the list is full");
            let text = last.detail.split(" (and ").next().unwrap_or_default();
            last.detail = format!("{text} (and {})", words::count(self.omitted, "more flag"));
            return;
        }
        let before = self.list.iter().filter(|flag| flag.kind() == kind).count();
        let id = if before == 0 {
            kind.to_owned()
        } else {
            format!("{kind}-{}", before + 1)
        };
        let clean = |text: String| words::short(&text, MAX_DETAIL_BYTES);
        self.list.push(Flag {
            id,
            place: clean(place.into()),
            detail: clean(detail.into()),
            ..Flag::default()
        });
    }

    /// Records the verifier's decision on one flag. Returns `false` if there is no such flag.
    pub fn answer(&mut self, id: &str, upheld: bool, why: &str) -> bool {
        let Some(flag) = self
            .list
            .iter_mut()
            .find(|flag| flag.id.eq_ignore_ascii_case(id.trim()))
        else {
            return false;
        };
        flag.upheld = Some(upheld);
        flag.why = words::short(why.trim(), MAX_DETAIL_BYTES);
        true
    }

    pub fn iter(&self) -> impl Iterator<Item = &Flag> {
        self.list.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The flags that the verifier upheld.
    pub fn upheld(&self) -> impl Iterator<Item = &Flag> {
        self.list.iter().filter(|flag| flag.upheld == Some(true))
    }

    /// Summarises the flags that the verifier has not dismissed; `None` if there are none.
    pub fn headline(&self) -> Option<String> {
        let remaining: Vec<&Flag> = self
            .list
            .iter()
            .filter(|flag| flag.upheld != Some(false))
            .collect();
        let first = remaining.first()?;
        let more = match remaining.len() - 1 {
            0 => String::new(),
            n => format!(", and {n} more in `details.flags`"),
        };
        Some(format!(
            "{}: {first}{more}",
            words::count(remaining.len(), "flag")
        ))
    }
}

impl Flag {
    /// The id without its number.
    pub fn kind(&self) -> &str {
        match self.id.rsplit_once('-') {
            Some((kind, number)) if number.bytes().all(|b| b.is_ascii_digit()) => kind,
            _ => &self.id,
        }
    }
}

/// `vague, criterion `AC-1`: says `fast` without a number`
impl std::fmt::Display for Flag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let comma = if self.place.is_empty() { "" } else { ", " };
        write!(f, "{}{comma}{}: {}", self.id, self.place, self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_answered_by_unique_ids() {
        let mut flags = Flags::default();
        flags.raise("vague", "criterion `AC-1`", "says `fast` without a number");
        flags.raise("praise", "finding 2", "names no defect");
        flags.raise("vague", "criterion `AC-2`", "says `easy` without a number");
        assert_eq!(
            flags
                .iter()
                .map(|flag| flag.id.as_str())
                .collect::<Vec<_>>(),
            ["vague", "praise", "vague-2"]
        );
        assert!(
            flags.answer(" VAGUE-2 ", true, "nobody can test it")
                && !flags.answer("vague-3", true, "")
        );
        assert!(flags.answer("vague", false, "the unit is in the title"));
        assert_eq!(
            flags
                .upheld()
                .map(|flag| flag.id.as_str())
                .collect::<Vec<_>>(),
            ["vague-2"]
        );
        let expected = "2 flags: praise, finding 2: names no defect, and 1 more in `details.flags`";
        assert_eq!(
            flags.headline().as_deref(),
            Some(expected),
            "a dismissed flag is not repeated"
        );
    }

    #[test]
    fn excess_flags_are_counted() {
        let mut flags = Flags::default();
        (0..100).for_each(|n| flags.raise("vague", format!("criterion {n}"), "says `fast`"));
        assert_eq!(flags.list.len(), MAX_FLAGS);
        assert_eq!(
            flags.iter().last().map(|flag| flag.detail.as_str()),
            Some("says `fast` (and 70 more flags)")
        );
    }
}
