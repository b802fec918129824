//! Extracts references from test output: file locations, and names that do not exist.

use supervisor_verify::BuildError;

/// More locations are repetitions of stack traces.
const MAX_LOCATIONS: usize = 40;
/// Only this much is read, from the start, where compilers report errors, and from the end, where
/// runners print a summary.
const MAX_READ_BYTES: usize = 64 << 10;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OutputHints {
    /// Path as written, and line number counted from 1.
    pub locations: Vec<(String, usize)>,
    /// Last segments of missing names.
    pub missing: Vec<String>,
}

pub(super) fn read_hints(output: &str) -> OutputHints {
    let output = supervisor_text::words::cut_middle(output, MAX_READ_BYTES);
    let mut hints = OutputHints::default();
    for word in output.split(|c: char| c.is_whitespace() || "()[]'\"`,".contains(c)) {
        if let Some(location) = parse_location(word).filter(|p| !hints.locations.contains(p)) {
            hints.locations.push(location);
        }
        if hints.locations.len() == MAX_LOCATIONS {
            break;
        }
    }
    for (path, line) in python_locations(&output) {
        if hints.locations.len() < MAX_LOCATIONS && !hints.locations.contains(&(path.clone(), line))
        {
            hints.locations.push((path, line));
        }
    }
    for name in output
        .lines()
        .flat_map(|line| BuildError::new(line).missing)
    {
        let last = name
            .rsplit(['.', ':', '/'])
            .next()
            .unwrap_or(&name)
            .to_owned();
        if !last.is_empty() && hints.missing.len() < MAX_LOCATIONS && !hints.missing.contains(&last)
        {
            hints.missing.push(last);
        }
    }
    hints
}

fn parse_location(word: &str) -> Option<(String, usize)> {
    let word = word.trim_start_matches("file://").trim_start_matches("./");
    let mut parts = word.split(':');
    let path = parts.next().filter(|p| p.contains('.') && p.len() > 3)?;
    let line = parts.next()?.parse().ok()?;
    Some((path.to_owned(), line))
}

fn python_locations(output: &str) -> Vec<(String, usize)> {
    let location = |line: &str| {
        let (path, rest) = line
            .trim()
            .strip_prefix("File \"")?
            .split_once("\", line ")?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        Some((path.to_owned(), rest[..digits].parse().ok()?))
    };
    output.lines().filter_map(location).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_and_missing_names_are_extracted() {
        let hints = read_hints(
            "error[E0425]: cannot find function `add` in this scope\n --> src/a.rs:12:5\n  File \"/p/pkg/b.py\", line 7, in f\n    at f (file:///p/c.js:3:1)\n12:30:01 x",
        );
        let locations = [("src/a.rs", 12), ("/p/c.js", 3), ("/p/pkg/b.py", 7)];
        assert_eq!(hints.locations, locations.map(|(p, l)| (p.to_owned(), l)));
        assert_eq!(hints.missing, ["add"]);
    }
}
