//! Parses single-line directives outside of code: `DELETE: path`, `NEED: …`, `CONTRADICTION: why`,
//! `NOTES: …`, plain or decorated.

use super::AnswerParser;
use super::found::{FoundEdit, FoundText};
use super::paths::is_path;
use super::rule::ParseRule;
use super::vocabulary::means_none;

/// Parses the directives in these lines of prose. Returns whether there was one with content.
pub(super) fn parse_directives(lines: &[&str], parser: &mut AnswerParser<'_>) -> bool {
    let mut parsed = false;
    for (n, line) in lines.iter().enumerate() {
        let Some((word, rest)) = split(line) else {
            continue;
        };
        // A reason may start on the next line and span several.
        let following = || {
            lines[n + 1..]
                .iter()
                .take_while(|line| !line.trim().is_empty() && split(line).is_none())
        };
        let full_text = || {
            std::iter::once(rest)
                .chain(following().copied())
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" ")
        };
        match word {
            Directive::Delete => {
                let path = rest.trim_matches(['`', '*', '"', '\'', ' ']);
                if is_path(path, &parser.files) {
                    parser.add(FoundEdit {
                        path: Some(path.to_owned()),
                        text: FoundText::Delete,
                        ..FoundEdit::default()
                    });
                    parsed = true;
                }
            }
            Directive::Need => {
                let before = parser.need.len();
                if rest.trim().is_empty() {
                    let listed: Vec<&str> = following()
                        .map(|line| line.trim().trim_start_matches(['-', '*', ' ']))
                        .collect();
                    listed.into_iter().for_each(|what| parser.add_need(what));
                } else {
                    rest.split(", ").for_each(|what| parser.add_need(what));
                }
                parsed |= parser.need.len() > before;
            }
            Directive::Contradiction => {
                let why = full_text();
                if means_none(&why) {
                    parser.record(ParseRule::NoContradiction);
                } else {
                    parser.contradiction = Some(why.trim_matches('*').trim().to_owned());
                    parsed = true;
                }
            }
            Directive::Notes => {
                let note = full_text();
                if !means_none(&note) {
                    parser.notes.push(note);
                    parser.record(ParseRule::Directive);
                }
            }
        }
    }
    if parsed {
        parser.record(ParseRule::Directive);
    }
    parsed
}

#[derive(Clone, Copy)]
enum Directive {
    Delete,
    Need,
    Contradiction,
    Notes,
}

/// Splits a line into its directive, ignoring decoration, and the text after the colon.
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
