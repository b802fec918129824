//! Falsification of a check: with other expectations it must fail, and with less data its result must change. An answer
//! that holds the expected output passes without data.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::ResultCheck;

/// How much of the data a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    None,
    /// No row, no line.
    Empty,
    /// About half of it, chosen by this number.
    Half(u64),
}

/// A run of the check that must fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// What is different: "another expected value".
    pub name: &'static str,
    pub reduction: Reduction,
    /// Files to write for this run.
    pub edits: Vec<(PathBuf, Vec<u8>)>,
    /// Whether passing means that the answer holds its result; if not, it only proves nothing.
    pub is_decisive: bool,
}

impl Reduction {
    pub(super) fn to_word(self) -> String {
        match self {
            Self::None => String::from("all"),
            Self::Empty => String::from("empty"),
            Self::Half(seed) => format!("half:{seed}"),
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        match word {
            "all" => Some(Self::None),
            "empty" => Some(Self::Empty),
            other => other.strip_prefix("half:")?.parse().ok().map(Self::Half),
        }
    }

    /// Deletes rows of all tables.
    pub(super) fn apply_to_database(self, connection: &Connection) -> rusqlite::Result<()> {
        let condition = match self {
            Self::None => return Ok(()),
            Self::Empty => String::new(),
            Self::Half(seed) => format!(" WHERE (rowid * 7919 + {}) % 5 < 3", seed % 1_000),
        };
        connection.execute_batch("PRAGMA foreign_keys = OFF")?;
        let tables: Vec<String> = connection
            .prepare(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            )?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for table in tables {
            let table = table.replace('"', "\"\"");
            // Virtual tables, and those without a rowid, may refuse; the others are enough.
            let _ = connection.execute(&format!("DELETE FROM \"{table}\"{condition}"), []);
        }
        Ok(())
    }

    fn apply_to_text(self, text: &str) -> Vec<u8> {
        let Self::Half(seed) = self else {
            return Vec::new();
        };
        let keeps = |at: usize| {
            let mixed = (at as u64)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_add(seed);
            at == 0 || mixed.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 63 == 0
        };
        let kept = text
            .split_inclusive('\n')
            .enumerate()
            .filter(|(at, _)| keeps(*at));
        kept.map(|(_, line)| line).collect::<String>().into_bytes()
    }
}

impl ResultCheck {
    /// The runs that must fail for work that passes. `files` is where the files are now; `changed` are those that the
    /// work changed.
    pub fn trials(&self, files: &Path, changed: &[PathBuf], seed: u64) -> Vec<Trial> {
        let other_value = |expected: &str| {
            let text = std::fs::read_to_string(files.join(expected)).ok()?;
            Some(Trial {
                name: "another expected value",
                reduction: Reduction::None,
                edits: vec![(expected.into(), with_other_value(&text, seed)?.into_bytes())],
                is_decisive: true,
            })
        };
        let reduced = |reduction: Reduction, edits| Trial {
            name: match reduction {
                Reduction::Empty => "no data",
                _ => "less data",
            },
            reduction,
            edits,
            is_decisive: reduction == Reduction::Empty,
        };
        // A result that one half of the data does not change may be honest; three halves are no chance.
        let halves = (0..3).map(|more| Reduction::Half(seed.wrapping_add(more)));
        let reductions: Vec<Reduction> = [Reduction::Empty].into_iter().chain(halves).collect();
        match self {
            Self::Rows { expected, .. } => {
                let less = reductions
                    .iter()
                    .map(|reduction| reduced(*reduction, Vec::new()));
                other_value(expected).into_iter().chain(less).collect()
            }
            Self::Files {
                expected, input, ..
            } => {
                let text = input.as_ref().and_then(|input| {
                    Some((input, std::fs::read_to_string(files.join(input)).ok()?))
                });
                let less = text.into_iter().flat_map(|(input, text)| {
                    let reductions = reductions.clone().into_iter();
                    reductions.map(move |reduction| {
                        reduced(
                            reduction,
                            vec![(input.into(), reduction.apply_to_text(&text))],
                        )
                    })
                });
                other_value(expected).into_iter().chain(less).collect()
            }
            Self::Command { .. } | Self::Docs { .. } => vec![Trial {
                name: "an empty file",
                reduction: Reduction::None,
                edits: changed
                    .iter()
                    .map(|path| (path.clone(), Vec::new()))
                    .collect(),
                is_decisive: false,
            }],
        }
    }

    /// Why its trials cannot show that the result depends on data; `None` if they can.
    pub fn unprovable(&self) -> Option<&'static str> {
        match self {
            Self::Files { input: None, .. } => {
                Some("`check` names no `input`, so nothing shows that the output is made from data")
            }
            _ => None,
        }
    }
}

/// The text with one number or word changed, never in the first line, which may be a header.
fn with_other_value(text: &str, seed: u64) -> Option<String> {
    let is_value = |c: char| c.is_ascii_alphanumeric();
    let body = text.find('\n').map_or(0, |at| at + 1);
    let body = if text[body..].contains(is_value) {
        body
    } else {
        0
    };
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text[body..]
        .char_indices()
        .chain([(text.len() - body, ' ')])
    {
        match (start, is_value(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                words.push((body + from, body + at));
                start = None;
            }
            _ => {}
        }
    }
    let picked = usize::try_from(seed % words.len().max(1) as u64).ok()?;
    let (from, to) = *words.get(picked)?;
    let word = &text[from..to];
    let other = match word.parse::<u64>() {
        // One digit more is another number whatever the tolerance.
        Ok(_) => format!("{word}7"),
        Err(_) => format!("{word}q"),
    };
    Some(format!("{}{other}{}", &text[..from], &text[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_expected_value_is_changed() {
        for seed in 0..6 {
            let text = "name,total\na,3\nb,4.5\n";
            let other = with_other_value(text, seed).expect("a value");
            assert!(
                other.starts_with("name,total\n") && other != text,
                "{other}"
            );
            assert_eq!(other.lines().count(), 3);
        }
        assert_eq!(with_other_value("7", 3).as_deref(), Some("77"));
        assert_eq!(with_other_value("\n", 3), None);
    }

    #[test]
    fn reductions_survive_their_word() {
        for reduction in [Reduction::None, Reduction::Empty, Reduction::Half(42)] {
            assert_eq!(Reduction::from_word(&reduction.to_word()), Some(reduction));
        }
        let text = "head\n".to_owned() + &"row\n".repeat(40);
        let half = Reduction::Half(1).apply_to_text(&text);
        assert!(half.starts_with(b"head\n") && half.len() < text.len() && half.len() > 20);
    }
}
