//! Line numbers that were copied from a listing into an answer: `12| code`, `12: code`, `12<tab>code`.

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
        .map(|(n, mark, _)| (n, mark))
        .collect();
    let (_, mark) = *numbered.first()?;
    // Lines that were put in between have none, or repeat one.
    let most = numbered.len() * 10 >= written.len() * 6 && (numbered.len() > 1 || mark == "|");
    let rises = numbered.windows(2).all(|pair| pair[0].0 <= pair[1].0)
        && numbered.iter().all(|(_, m)| *m == mark);
    if !most || !rises {
        return None;
    }
    let bare = |line: &str| match split(line) {
        Some((_, _, rest)) => rest.to_owned(),
        None => line.to_owned(),
    };
    let mut out: String = text.lines().map(|line| bare(line) + "\n").collect();
    if !text.ends_with('\n') {
        out.pop();
    }
    Some(out)
}

/// The number, the mark after it, and the line itself.
fn split(line: &str) -> Option<(u32, &str, &str)> {
    static NUMBERED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\s{0,7}(\d{1,6})(?:[ ]?([|│])[ ]?|([:→])[ \t]|(\t))(.*)$")
            .expect("a pattern that is tested below")
    });
    // A blank line keeps its number and loses the space after the mark.
    let found = NUMBERED.captures(line)?;
    let mark = (2..=4).find_map(|n| found.get(n))?.as_str();
    let mark = if mark == "│" { "|" } else { mark };
    Some((found[1].parse().ok()?, mark, found.get(5)?.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_from_a_listing_are_taken_away() {
        for text in [
            "1| fn a() {\n2|     b\n3| }\n",
            "  9: fn a() {\n 10:     b\n 11: }\n",
            "1\tfn a() {\n2\t    b\n3\t}\n",
            "7 | fn a() {\n8 |     b\nnew\n9 | }\n",
        ] {
            let bare = without_line_numbers(text).map(|t| t.replace("new\n", ""));
            assert_eq!(bare.as_deref(), Some("fn a() {\n    b\n}\n"), "{text}");
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
    fn other_numbers_stay() {
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
