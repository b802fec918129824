//! Removes line numbers that were copied from a listing: `12| code`, `12: code`, `12<tab>code`.

use std::sync::LazyLock;

use regex::Regex;

/// The text without its line numbers; `None` if it has none.
pub(super) fn without_line_numbers(text: &str) -> Option<String> {
    let written: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let numbered: Vec<(u32, &str)> = written
        .iter()
        .filter_map(|line| split(line))
        .map(|(n, separator, _)| (n, separator))
        .collect();
    let (_, separator) = *numbered.first()?;
    // Inserted lines have no number, or repeat one.
    let is_mostly_numbered =
        numbered.len() * 10 >= written.len() * 6 && (numbered.len() > 1 || separator == "|");
    let is_ascending = numbered.windows(2).all(|pair| pair[0].0 <= pair[1].0)
        && numbered.iter().all(|(_, m)| *m == separator);
    if !is_mostly_numbered || !is_ascending {
        return None;
    }
    let without_number = |line: &str| match split(line) {
        Some((_, _, rest)) => rest.to_owned(),
        None => line.to_owned(),
    };
    let mut out: String = text
        .lines()
        .map(|line| without_number(line) + "\n")
        .collect();
    if !text.ends_with('\n') {
        out.pop();
    }
    Some(out)
}

/// Splits a line into number, separator and text.
fn split(line: &str) -> Option<(u32, &str, &str)> {
    static NUMBERED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\s{0,7}(\d{1,6})(?:[ ]?([|│])[ ]?|([:→])[ \t]|(\t))(.*)$")
            .expect("the pattern is valid")
    });
    // A blank line keeps its number but has no space after the separator.
    let found = NUMBERED.captures(line)?;
    let separator = (2..=4).find_map(|n| found.get(n))?.as_str();
    let separator = if separator == "│" { "|" } else { separator };
    Some((found[1].parse().ok()?, separator, found.get(5)?.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listing_numbers_are_removed() {
        for text in [
            "1| fn a() {\n2|     b\n3| }\n",
            "  9: fn a() {\n 10:     b\n 11: }\n",
            "1\tfn a() {\n2\t    b\n3\t}\n",
            "7 | fn a() {\n8 |     b\nnew\n9 | }\n",
        ] {
            let without_number = without_line_numbers(text).map(|t| t.replace("new\n", ""));
            assert_eq!(
                without_number.as_deref(),
                Some("fn a() {\n    b\n}\n"),
                "{text}"
            );
        }
        assert_eq!(
            without_line_numbers("1| a\n2|\n3| b").as_deref(),
            Some("a\n\nb")
        );
        assert_eq!(
            without_line_numbers("12|     let x = 1;").as_deref(),
            Some("    let x = 1;")
        );
    }

    #[test]
    fn other_numbers_are_kept() {
        for text in [
            "fn a() {}\n",
            "x = {\n  1: 2,\n}\n",
            "3: a\n1: b\n",
            "1: a",
            "",
            "match x {\n    1 | 2 => 3,\n    _ => 4,\n}\n",
        ] {
            assert_eq!(without_line_numbers(text), None, "{text}");
        }
    }
}
