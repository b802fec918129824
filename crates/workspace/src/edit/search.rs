//! Finds the one place that a search text matches: literally, or else ignoring white space. Never
//! chooses between two.

use std::ops::Range;

/// The result of a search, with the new text if exactly one place matched.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SearchOutcome {
    Exact(Vec<u8>),
    Tolerant(Vec<u8>),
    /// Line numbers, starting at 1.
    Ambiguous {
        lines: Vec<usize>,
    },
    NoMatch {
        nearest: Option<(usize, String)>,
    },
    EmptySearch,
}

pub(super) fn replace_once(text: &[u8], search: &str, replace: &str) -> SearchOutcome {
    if search.trim().is_empty() {
        return SearchOutcome::EmptySearch;
    }
    let exact = occurrences(text, search.as_bytes());
    match exact.as_slice() {
        [at] => {
            return SearchOutcome::Exact(splice(text, *at..at + search.len(), replace.as_bytes()));
        }
        [] => {}
        several => {
            return SearchOutcome::Ambiguous {
                lines: several.iter().map(|at| line_of(text, *at)).collect(),
            };
        }
    }
    let lines = lines(text);
    let wanted: Vec<&str> = trim_blank(&search.lines().collect::<Vec<_>>());
    let windows: Vec<usize> = (0..(lines.len() + 1).saturating_sub(wanted.len()))
        .filter(|from| {
            wanted
                .iter()
                .zip(&lines[*from..])
                .all(|(w, l)| equal_ignoring_whitespace(w.as_bytes(), &text[l.clone()]))
        })
        .collect();
    match windows.as_slice() {
        [from] => {
            let place = lines[*from].start..lines[from + wanted.len() - 1].end;
            SearchOutcome::Tolerant(replace_reindented(text, place, wanted[0], replace))
        }
        [] => SearchOutcome::NoMatch {
            nearest: nearest(text, &lines, &wanted),
        },
        several => SearchOutcome::Ambiguous {
            lines: several.iter().map(|from| from + 1).collect(),
        },
    }
}

fn occurrences(text: &[u8], search: &[u8]) -> Vec<usize> {
    text.windows(search.len())
        .enumerate()
        .filter(|(_, here)| *here == search)
        .map(|(at, _)| at)
        .collect()
}

fn splice(text: &[u8], place: Range<usize>, with: &[u8]) -> Vec<u8> {
    [&text[..place.start], with, &text[place.end..]].concat()
}

fn line_of(text: &[u8], at: usize) -> usize {
    text[..at].iter().filter(|b| **b == b'\n').count() + 1
}

/// Returns the range of each line without its line end.
fn lines(text: &[u8]) -> Vec<Range<usize>> {
    let (mut found, mut from) = (Vec::new(), 0);
    for line in text.split_inclusive(|b| *b == b'\n') {
        let end = from + line.len() - usize::from(line.ends_with(b"\n"));
        found.push(from..end);
        from += line.len();
    }
    found
}

fn trim_blank<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let blank = |l: &&str| l.trim().is_empty();
    let from = lines.iter().position(|l| !blank(l)).unwrap_or(0);
    let to = lines
        .iter()
        .rposition(|l| !blank(l))
        .map_or(from, |at| at + 1);
    lines[from..to].to_vec()
}

fn equal_ignoring_whitespace(a: &[u8], b: &[u8]) -> bool {
    let words = |line: &[u8]| -> Vec<u8> {
        let parts = line
            .split(u8::is_ascii_whitespace)
            .filter(|w| !w.is_empty());
        parts.collect::<Vec<_>>().join(&b' ')
    };
    words(a) == words(b)
}

/// Inserts the replacement with the file's own indentation and line ends.
fn replace_reindented(
    text: &[u8],
    place: Range<usize>,
    first_wanted: &str,
    replace: &str,
) -> Vec<u8> {
    let found = &text[place.clone()];
    let file_indent = indent(found);
    let search_indent = indent(first_wanted.as_bytes());
    let line_end: &[u8] = if found.ends_with(b"\r") {
        b"\r\n"
    } else {
        b"\n"
    };
    let body = replace.strip_suffix('\n').unwrap_or(replace);
    let mut new: Vec<u8> = Vec::new();
    for (n, line) in body
        .split('\n')
        .map(|l| l.strip_suffix('\r').unwrap_or(l))
        .enumerate()
    {
        if n > 0 {
            new.extend_from_slice(line_end);
        }
        match line.as_bytes().strip_prefix(search_indent) {
            Some(rest) if !line.trim().is_empty() => new.extend([file_indent, rest].concat()),
            _ => new.extend_from_slice(line.as_bytes()),
        }
    }
    if body.is_empty() {
        // Nothing is left of these lines, so remove their last line end too.
        let end = (place.end + 1).min(text.len());
        return splice(text, place.start..end, b"");
    }
    if found.ends_with(b"\r") {
        new.push(b'\r');
    }
    splice(text, place, &new)
}

fn indent(line: &[u8]) -> &[u8] {
    let end = line
        .iter()
        .position(|b| *b != b' ' && *b != b'\t')
        .unwrap_or(line.len());
    &line[..end]
}

/// Limits for quoted text: lines, and characters per line.
const MAX_QUOTED_LINES: usize = 12;
const MAX_QUOTED_WIDTH: usize = 160;
/// Lines compared at most; comparing more would keep the caller waiting.
const MAX_COMPARED_LINES: usize = 20_000;

/// Returns the range that shares most lines with the search text; failing that, the line most
/// similar to its first line.
fn nearest(text: &[u8], lines: &[Range<usize>], wanted: &[&str]) -> Option<(usize, String)> {
    let shared = |from: usize| {
        let pairs = wanted.iter().zip(&lines[from..]);
        pairs
            .filter(|(w, l)| {
                !w.trim().is_empty() && equal_ignoring_whitespace(w.as_bytes(), &text[(*l).clone()])
            })
            .count()
    };
    let similarity = |from: usize| {
        let line = String::from_utf8_lossy(&text[lines[from].clone()]);
        let cut: String = line.trim().chars().take(MAX_QUOTED_WIDTH).collect();
        strsim::normalized_levenshtein(
            &cut,
            &wanted[0]
                .trim()
                .chars()
                .take(MAX_QUOTED_WIDTH)
                .collect::<String>(),
        )
    };
    let windows = 0..lines.len().min(MAX_COMPARED_LINES);
    let best = windows
        .clone()
        .max_by_key(|from| (shared(*from), std::cmp::Reverse(*from)))?;
    let best = if shared(best) > 0 {
        best
    } else {
        let (best, score) = windows
            .map(|from| (from, similarity(from)))
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        (score > 0.4).then_some(best)?
    };
    let quoted = lines[best..]
        .iter()
        .take(wanted.len().clamp(1, MAX_QUOTED_LINES));
    let quoted = quoted.map(|l| {
        String::from_utf8_lossy(&text[l.clone()])
            .chars()
            .take(MAX_QUOTED_WIDTH)
            .collect::<String>()
    });
    Some((best + 1, quoted.collect::<Vec<_>>().join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"fn a() {\n    one();\n    two();\n}\n\nfn b() {\n    one();\n}\n";

    fn text(found: SearchOutcome) -> String {
        match found {
            SearchOutcome::Exact(t) | SearchOutcome::Tolerant(t) => {
                String::from_utf8(t).expect("text")
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ambiguous_matches_are_refused() {
        assert!(
            text(replace_once(TEXT, "    two();", "    three();"))
                .contains("    one();\n    three();\n}")
        );
        assert_eq!(
            replace_once(TEXT, "    one();", "x"),
            SearchOutcome::Ambiguous { lines: vec![2, 7] }
        );
        assert_eq!(replace_once(TEXT, " \n", "x"), SearchOutcome::EmptySearch);
    }

    #[test]
    fn tolerant_match_keeps_file_indentation() {
        let new = text(replace_once(
            TEXT,
            "one();\ntwo();\n",
            "one();\nif x {\n    two();\n}\n",
        ));
        assert!(
            new.contains("    one();\n    if x {\n        two();\n    }\n}\n"),
            "{new}"
        );
        assert!(matches!(
            replace_once(TEXT, "one();\n two();", ""),
            SearchOutcome::Tolerant(_)
        ));
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        let new = text(replace_once(b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n"));
        assert_eq!(new, "x\r\ny\r\nz\r\nc\r\n");
        assert_eq!(text(replace_once(b"a\n  b\nc\n", "\tb\n", "")), "a\nc\n");
    }

    #[test]
    fn failed_search_quotes_nearest_line() {
        let SearchOutcome::NoMatch {
            nearest: Some((line, quoted)),
        } = replace_once(TEXT, "    twoo();\n", "x")
        else {
            panic!()
        };
        assert_eq!((line, quoted.as_str()), (3, "    two();"));
        assert_eq!(
            replace_once(TEXT, "nothing like it at all, really", "x"),
            SearchOutcome::NoMatch { nearest: None }
        );
    }
}
