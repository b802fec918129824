//! Single lines outside of code: `DELETE: path`, `NEED: …`, `CONTRADICTION: why`, `NOTES: …`, plain or decorated.

use super::Reading;
use super::found::{FoundEdit, FoundText};
use super::paths::is_path;
use super::rule::ReadingRule;
use super::vocabulary::says_nothing;

/// Takes the directives in these lines of prose. `true` if one says something.
pub(super) fn take_directives(lines: &[&str], reading: &mut Reading<'_>) -> bool {
    let mut taken = false;
    for (n, line) in lines.iter().enumerate() {
        let Some((word, rest)) = split(line) else {
            continue;
        };
        // A reason may begin on the next line and have several.
        let following = || {
            lines[n + 1..]
                .iter()
                .take_while(|line| !line.trim().is_empty() && split(line).is_none())
        };
        let in_full = || {
            std::iter::once(rest)
                .chain(following().copied())
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" ")
        };
        match word {
            Directive::Delete => {
                let path = rest.trim_matches(['`', '*', '"', '\'', ' ']);
                if is_path(path, &reading.known) {
                    reading.add(FoundEdit {
                        path: Some(path.to_owned()),
                        text: FoundText::Delete,
                        ..FoundEdit::default()
                    });
                    taken = true;
                }
            }
            Directive::Need => {
                let before = reading.need.len();
                if rest.trim().is_empty() {
                    let listed: Vec<&str> = following()
                        .map(|line| line.trim().trim_start_matches(['-', '*', ' ']))
                        .collect();
                    listed.into_iter().for_each(|what| reading.add_need(what));
                } else {
                    rest.split(", ").for_each(|what| reading.add_need(what));
                }
                taken |= reading.need.len() > before;
            }
            Directive::Contradiction => {
                let why = in_full();
                if says_nothing(&why) {
                    reading.used(ReadingRule::NoContradiction);
                } else {
                    reading.contradiction = Some(why.trim_matches('*').trim().to_owned());
                    taken = true;
                }
            }
            Directive::Notes => {
                let note = in_full();
                if !says_nothing(&note) {
                    reading.notes.push(note);
                    reading.used(ReadingRule::Directive);
                }
            }
        }
    }
    if taken {
        reading.used(ReadingRule::Directive);
    }
    taken
}

#[derive(Clone, Copy)]
enum Directive {
    Delete,
    Need,
    Contradiction,
    Notes,
}

/// The directive at the start of a line, past its decoration, and what comes after the colon.
fn split(line: &str) -> Option<(Directive, &str)> {
    let bare = line.trim_start_matches(|c: char| c.is_whitespace() || "#*-_>`".contains(c));
    let (word, rest) = bare.split_once(':')?;
    let word = word.trim_end_matches(['*', '_', '`', ' ']);
    let directive = match word {
        "DELETE" | "Delete" | "DELETE FILE" => Directive::Delete,
        "NEED" | "NEEDS" | "Need" => Directive::Need,
        "CONTRADICTION" | "Contradiction" => Directive::Contradiction,
        "NOTES" | "NOTE" | "Notes" => Directive::Notes,
        _ => return None,
    };
    Some((directive, rest.trim_start_matches(['*', '_', '`']).trim()))
}
