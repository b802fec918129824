//! Handles `...` in an answer as a placeholder for unchanged code. In the search text of a change
//! it is filled in from the file. In a whole file it cannot be, so the file is rejected rather than
//! truncated.

use std::ops::Range;

/// Words beside the dots that mark them as a placeholder.
const ELISION_WORDS: &[&str] = &[
    "existing",
    "rest of",
    "unchanged",
    "remain",
    "same as",
    "previous",
    "other ",
    "omitted",
    "keep",
    "code here",
    "as before",
    "as is",
    "not shown",
];

/// Fills in every elision in search and replacement text from the file. Returns `None` if there are
/// none, and `Some(Err(()))` if they cannot be filled in.
pub(super) fn fill_in(
    search: &str,
    replace: &str,
    file: &str,
) -> Option<Result<(String, String), ()>> {
    let wanted: Vec<&str> = search.lines().collect();
    if !wanted.iter().any(|line| is_elision(line)) {
        return None;
    }
    let lines: Vec<&str> = file.lines().collect();
    // Dots that occur in the file are code.
    if !find_lines(&lines, &wanted, 0).is_empty() {
        return None;
    }
    Some(fill(&wanted, replace, &lines).ok_or(()))
}

fn fill(wanted: &[&str], replace: &str, lines: &[&str]) -> Option<(String, String)> {
    let parts: Vec<&[&str]> = wanted.split(|line| is_elision(line)).collect();
    let first = parts
        .iter()
        .find(|part| part.iter().any(|line| !line.trim().is_empty()))?;
    // The first part must occur exactly once, or the position is ambiguous.
    let starts = find_lines(lines, trim(first), 0);
    let &[start] = starts.as_slice() else {
        return None;
    };
    let (mut at, mut gaps, mut started) = (start, Vec::<Range<usize>>::new(), false);
    for (n, part) in parts.iter().enumerate() {
        let part = trim(part);
        if part.is_empty() {
            // Dots at the start or end need no match.
            if n > 0 && started && n + 1 < parts.len() {
                return None;
            }
            continue;
        }
        let found = *find_lines(lines, part, at).first()?;
        if started {
            gaps.push(at..found);
        }
        started = true;
        at = found + part.len();
    }
    let joined = |range: Range<usize>| {
        lines[range]
            .iter()
            .flat_map(|line| [*line, "\n"])
            .collect::<String>()
    };
    let dots = replace.lines().filter(|line| is_elision(line)).count();
    if dots != gaps.len() && dots != 0 {
        return None;
    }
    let mut gaps = gaps.into_iter();
    let new = replace.lines().map(|line| match is_elision(line) {
        true => gaps.next().map(joined).unwrap_or_default(),
        false => format!("{line}\n"),
    });
    let new: String = new.collect();
    Some((joined(start..at), new))
}

/// The first line of a whole file that is a placeholder for omitted code.
pub(super) fn first_elision<'t>(text: &'t str, file: Option<&str>) -> Option<(usize, &'t str)> {
    text.lines()
        .enumerate()
        .find(|(_, line)| {
            let lower = line.to_lowercase();
            is_elision(line)
                && line.trim() != "..."
                && ELISION_WORDS.iter().any(|word| lower.contains(word))
                && !file.is_some_and(|file| file.lines().any(|old| old.trim() == line.trim()))
        })
        .map(|(n, line)| (n + 1, line.trim()))
}

/// Matches `...`, `// ...`, `# ... existing code ...`, `… lines 4-9 not shown`.
fn is_elision(line: &str) -> bool {
    let bare = line.trim();
    let inside = bare.trim_start_matches(['/', '#', '*', '-', ';', '<', '!', '%', '(', '[', ' ']);
    let is_comment = inside.len() < bare.len();
    let Some(rest) = inside
        .strip_prefix("...")
        .or_else(|| inside.strip_prefix('…'))
    else {
        let lower = inside.to_lowercase();
        return is_comment
            && (lower.ends_with("...") || lower.ends_with('…'))
            && ELISION_WORDS.iter().any(|word| lower.contains(word));
    };
    let rest = rest.trim_matches(|c: char| c == '.' || c.is_whitespace() || "*/->)]".contains(c));
    rest.is_empty()
        || is_comment
        || ELISION_WORDS
            .iter()
            .any(|word| rest.to_lowercase().contains(word))
}

fn trim<'l, 't>(lines: &'l [&'t str]) -> &'l [&'t str] {
    let from = lines
        .iter()
        .position(|line| !line.trim().is_empty())
        .unwrap_or(lines.len());
    let to = lines
        .iter()
        .rposition(|line| !line.trim().is_empty())
        .map_or(from, |at| at + 1);
    &lines[from..to]
}

/// The positions of these lines in the file from `from` on, ignoring surrounding white space.
pub(super) fn find_lines(lines: &[&str], wanted: &[&str], from: usize) -> Vec<usize> {
    if wanted.is_empty() || wanted.len() > lines.len() {
        return Vec::new();
    }
    let is_match = |at: &usize| {
        wanted
            .iter()
            .zip(&lines[*at..])
            .all(|(w, l)| w.trim() == l.trim())
    };
    (from..=lines.len() - wanted.len())
        .filter(is_match)
        .take(50)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "fn a() {\n    one();\n    two();\n    three();\n}\n\nfn b() {\n    one();\n}\n";

    #[test]
    fn dots_in_search_are_filled_in() {
        let search = "fn a() {\n    ...\n    three();\n}\n";
        let (old, new) = fill_in(search, "fn a() {\n    ...\n    four();\n}\n", FILE)
            .expect("dots")
            .expect("found");
        assert_eq!(old, "fn a() {\n    one();\n    two();\n    three();\n}\n");
        assert_eq!(new, "fn a() {\n    one();\n    two();\n    four();\n}\n");
        let (_, new) = fill_in(
            "fn a() {\n// ... existing code ...\n}\n",
            "fn a() {}\n",
            FILE,
        )
        .expect("dots")
        .expect("found");
        assert_eq!(new, "fn a() {}\n");
    }

    #[test]
    fn ambiguous_dots_are_an_error() {
        assert_eq!(
            fill_in("one();\n...\n}\n", "x\n...\n", FILE),
            Some(Err(())),
            "two places"
        );
        assert_eq!(fill_in("nowhere();\n...\n}\n", "x\n", FILE), Some(Err(())));
        assert_eq!(
            fill_in("fn a() {\n...\n}\n", "...\n...\n", FILE),
            Some(Err(()))
        );
        assert_eq!(fill_in("one();\n", "x", FILE), None);
        assert_eq!(
            fill_in("    ...\n", "x", "class A:\n    ...\n"),
            None,
            "the dots are Python"
        );
    }

    #[test]
    fn elided_whole_file_is_detected() {
        assert_eq!(
            first_elision("a\n// ... existing code ...\n", None),
            Some((2, "// ... existing code ..."))
        );
        assert_eq!(
            first_elision("a\n# rest of the file unchanged...\n", None),
            Some((2, "# rest of the file unchanged..."))
        );
        assert_eq!(
            first_elision(
                "a\n// ... existing code ...\n",
                Some("// ... existing code ...\n")
            ),
            None
        );
        assert_eq!(
            first_elision("class A:\n    ...\n# and so on...\n", None),
            None
        );
    }
}
