//! What code notices and cannot decide: a vague word, praise, a look at the environment, a reach for the runner.
//! A flag never rejects by itself. It is shown in the result and handed to the verifier, and only one that the verifier
//! upholds rejects. Knows neither who raises a flag nor who answers it.

use serde::{Deserialize, Serialize};

use supervisor_text::words;

/// The kind of a flag that says: a test of another hand fails, which the worker has not seen.
pub const TWIN_FLAG: &str = "twin";
/// More flags than this tell a reader nothing new; the last one counts the rest.
const MOST: usize = 30;
/// Bytes of one sentence.
const DETAIL: usize = 400;

/// One thing that was noticed about an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// Its kind, numbered from the second of that kind on, so that it is unique in one answer: `vague`, `vague-2`.
    pub id: String,
    /// `criterion `AC-1``, `src/a.rs:12`.
    #[serde(rename = "where", default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    pub detail: String,
    /// What the verifier said; absent where none was asked or none answered.
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
    left_out: usize,
}

impl Flags {
    /// Notes one. `kind` is a short name such as `vague`, the same for all flags of that kind.
    pub fn raise(&mut self, kind: &str, place: impl Into<String>, detail: impl Into<String>) {
        if self.list.len() >= MOST {
            self.left_out += 1;
            let last = self.list.last_mut().expect("the list is full");
            let own = last.detail.split(" (and ").next().unwrap_or_default();
            last.detail = format!("{own} (and {})", words::count(self.left_out, "more flag"));
            return;
        }
        let before = self.list.iter().filter(|flag| flag.kind() == kind).count();
        let id = if before == 0 {
            kind.to_owned()
        } else {
            format!("{kind}-{}", before + 1)
        };
        let tidy = |text: String| words::cut_end(&words::plain(&text), DETAIL).into_owned();
        self.list.push(Flag {
            id,
            place: tidy(place.into()),
            detail: tidy(detail.into()),
            ..Flag::default()
        });
    }

    /// Adds the flags of another check of the same answer.
    pub fn absorb(&mut self, other: Self) {
        for flag in other.list {
            let kind = flag.kind().to_owned();
            self.raise(&kind, flag.place, flag.detail);
        }
    }

    /// Notes what the verifier says of one; `false` if there is no such flag.
    pub fn answer(&mut self, id: &str, upheld: bool, why: &str) -> bool {
        let Some(flag) = self
            .list
            .iter_mut()
            .find(|flag| flag.id.eq_ignore_ascii_case(id.trim()))
        else {
            return false;
        };
        flag.upheld = Some(upheld);
        flag.why = words::cut_end(&words::plain(why.trim()), DETAIL).into_owned();
        true
    }

    pub fn iter(&self) -> impl Iterator<Item = &Flag> {
        self.list.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Those that the verifier agreed with.
    pub fn upheld(&self) -> impl Iterator<Item = &Flag> {
        self.list.iter().filter(|flag| flag.upheld == Some(true))
    }

    /// Those that the verifier has not dismissed, as a reader should see them in one clause; `None` if there is none.
    pub fn headline(&self) -> Option<String> {
        let standing: Vec<&Flag> = self
            .list
            .iter()
            .filter(|flag| flag.upheld != Some(false))
            .collect();
        let first = standing.first()?;
        let more = match standing.len() - 1 {
            0 => String::new(),
            n => format!(", and {n} more in `details.flags`"),
        };
        Some(format!(
            "{}: {first}{more}",
            words::count(standing.len(), "flag")
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
    fn flags_of_one_kind_have_ids_of_their_own_and_are_answered_by_them() {
        let mut flags = Flags::default();
        flags.raise("vague", "criterion `AC-1`", "says `fast` without a number");
        flags.raise("praise", "finding 2", "names no defect");
        let mut more = Flags::default();
        more.raise("vague", "criterion `AC-2`", "says `easy` without a number");
        flags.absorb(more);
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
        let said = "2 flags: praise, finding 2: names no defect, and 1 more in `details.flags`";
        assert_eq!(
            flags.headline().as_deref(),
            Some(said),
            "a dismissed flag is not repeated"
        );
    }

    #[test]
    fn a_flood_of_flags_is_counted() {
        let mut flags = Flags::default();
        (0..100).for_each(|n| flags.raise("vague", format!("criterion {n}"), "says `fast`"));
        assert_eq!(flags.len(), MOST);
        assert_eq!(
            flags.iter().last().map(|flag| flag.detail.as_str()),
            Some("says `fast` (and 70 more flags)")
        );
    }
}
