//! `...` in an answer, where it stands for code that stays as it is. In the search text of a change it can be filled in
//! from the file; in a whole file it cannot, and the file is refused rather than cut.

use std::ops::Range;

/// Words beside the dots that say what they stand for.
const MEANINGS: &[&str] = &[
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

/// The search and replacement text with every elision filled in from the file; `None` if there is nothing to fill in.
/// `Some(Err(()))`: there is, and it cannot be.
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
    // Dots that stand in the file are code.
    if !windows_like(&lines, &wanted, 0).is_empty() {
        return None;
    }
    Some(fill(&wanted, replace, &lines).ok_or(()))
}

fn fill(wanted: &[&str], replace: &str, lines: &[&str]) -> Option<(String, String)> {
    let parts: Vec<&[&str]> = wanted.split(|line| is_elision(line)).collect();
    let first = parts
        .iter()
        .find(|part| part.iter().any(|line| !line.trim().is_empty()))?;
    // The first part must stand in one place alone, or it is unclear which is meant.
    let starts = windows_like(lines, trim(first), 0);
    let &[start] = starts.as_slice() else {
        return None;
    };
    let (mut at, mut gaps, mut begun) = (start, Vec::<Range<usize>>::new(), false);
    for (n, part) in parts.iter().enumerate() {
        let part = trim(part);
        if part.is_empty() {
            // Dots at the start or the end stand for nothing that must be found.
            if n > 0 && begun && n + 1 < parts.len() {
                return None;
            }
            continue;
        }
        let found = *windows_like(lines, part, at).first()?;
        if begun {
            gaps.push(at..found);
        }
        begun = true;
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

/// The first line of a whole file that stands for code which was left out.
pub(super) fn first_elision<'t>(text: &'t str, file: Option<&str>) -> Option<(usize, &'t str)> {
    text.lines()
        .enumerate()
        .find(|(_, line)| {
            let lower = line.to_lowercase();
            is_elision(line)
                && line.trim() != "..."
                && MEANINGS.iter().any(|word| lower.contains(word))
                && !file.is_some_and(|file| file.lines().any(|old| old.trim() == line.trim()))
        })
        .map(|(n, line)| (n + 1, line.trim()))
}

/// `...`, `// ...`, `# ... existing code ...`, `… lines 4-9 not shown`.
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
            && MEANINGS.iter().any(|word| lower.contains(word));
    };
    let rest = rest.trim_matches(|c: char| c == '.' || c.is_whitespace() || "*/->)]".contains(c));
    rest.is_empty()
        || is_comment
        || MEANINGS
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

/// Where these lines stand in the file from `from` on, white space around them aside.
pub(super) fn windows_like(lines: &[&str], wanted: &[&str], from: usize) -> Vec<usize> {
    if wanted.is_empty() || wanted.len() > lines.len() {
        return Vec::new();
    }
    let same = |at: &usize| {
        wanted
            .iter()
            .zip(&lines[*at..])
            .all(|(w, l)| w.trim() == l.trim())
    };
    (from..=lines.len() - wanted.len())
        .filter(same)
        .take(50)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "fn a() {\n    one();\n    two();\n    three();\n}\n\nfn b() {\n    one();\n}\n";

    #[test]
    fn dots_in_a_search_are_filled_in_from_the_file() {
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
    fn dots_that_cannot_be_filled_in_are_said() {
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
    fn a_whole_file_with_parts_left_out_is_noticed() {
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
