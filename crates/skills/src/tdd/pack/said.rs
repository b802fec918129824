//! What a runner's words point at: places in files, and names that do not exist.

use supervisor_verify::BuildError;

/// More places than this are a stack trace of a stack trace.
const MOST: usize = 40;
/// The end is where runners sum up, the beginning where compilers say what is wrong.
const READ: usize = 64 << 10;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OutputHints {
    /// A path as it was written, and a line that counts from 1.
    pub places: Vec<(String, usize)>,
    /// The last parts of missing names.
    pub missing: Vec<String>,
}

pub(super) fn read(output: &str) -> OutputHints {
    let output = supervisor_text::words::cut_middle(output, READ);
    let mut said = OutputHints::default();
    for word in output.split(|c: char| c.is_whitespace() || "()[]'\"`,".contains(c)) {
        if let Some(place) = place(word).filter(|p| !said.places.contains(p)) {
            said.places.push(place);
        }
        if said.places.len() == MOST {
            break;
        }
    }
    for (path, line) in python_places(&output) {
        if said.places.len() < MOST && !said.places.contains(&(path.clone(), line)) {
            said.places.push((path, line));
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
        if !last.is_empty() && said.missing.len() < MOST && !said.missing.contains(&last) {
            said.missing.push(last);
        }
    }
    said
}

/// `src/a.rs:12:5`
fn place(word: &str) -> Option<(String, usize)> {
    let word = word.trim_start_matches("file://").trim_start_matches("./");
    let mut parts = word.split(':');
    let path = parts.next().filter(|p| p.contains('.') && p.len() > 3)?;
    let line = parts.next()?.parse().ok()?;
    Some((path.to_owned(), line))
}

/// `File "pkg/a.py", line 12`
fn python_places(output: &str) -> Vec<(String, usize)> {
    let place = |line: &str| {
        let (path, rest) = line
            .trim()
            .strip_prefix("File \"")?
            .split_once("\", line ")?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        Some((path.to_owned(), rest[..digits].parse().ok()?))
    };
    output.lines().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_missing_names_are_read_from_what_runners_say() {
        let said = read(
            "error[E0425]: cannot find function `add` in this scope\n --> src/a.rs:12:5\n  File \"/p/pkg/b.py\", line 7, in f\n    at f (file:///p/c.js:3:1)\n12:30:01 x",
        );
        let places = [("src/a.rs", 12), ("/p/c.js", 3), ("/p/pkg/b.py", 7)];
        assert_eq!(said.places, places.map(|(p, l)| (p.to_owned(), l)));
        assert_eq!(said.missing, ["add"]);
    }
}
