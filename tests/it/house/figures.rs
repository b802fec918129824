//! The figures of README and docs are those of `docs/figures.toml`. `SUPERVISOR_UPDATE_DOCS=1` writes them there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use toml_edit::DocumentMut;

const BEGIN: &str = "<!-- figure ";
const END: &str = "<!-- /figure -->";
/// A figure older than this is marked.
const FRESH_DAYS: i32 = 90;

struct Figure {
    value: String,
    date: Date,
    version: String,
}

impl Figure {
    /// What is written behind the value in documents that are made on this day, by this version.
    fn mark(&self, today: Date, version: &str) -> String {
        let age = self.date.until(today).map_or(0, |span| span.get_days());
        if age > FRESH_DAYS {
            return format!(" ({}, older than {FRESH_DAYS} days)", self.date);
        }
        match series(&self.version) == series(version) {
            true => String::new(),
            false => format!(" (version {})", self.version),
        }
    }

    /// Whether a document shows the value, with or without a mark.
    fn is_shown_by(&self, text: &str) -> bool {
        let marks = [
            String::new(),
            format!(" ({}, older than {FRESH_DAYS} days)", self.date),
            format!(" (version {})", self.version),
        ];
        marks
            .iter()
            .any(|mark| text == format!("{}{mark}", self.value))
    }
}

/// Versions of one series promise the same: `1` of 1.2.3, `0.1` of 0.1.2.
fn series(version: &str) -> String {
    let mut parts = version.split('.');
    match (parts.next(), parts.next()) {
        (Some("0"), Some(minor)) => format!("0.{minor}"),
        (major, _) => major.unwrap_or_default().to_owned(),
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn figures() -> BTreeMap<String, Figure> {
    let text = fs::read_to_string(root().join("docs/figures.toml")).unwrap();
    let document: DocumentMut = text.parse().unwrap();
    let figure = |(name, entry): (&str, &toml_edit::Item)| {
        let field = |key: &str| {
            let value = entry[key].as_str();
            value
                .unwrap_or_else(|| panic!("`{name}` has no `{key}`"))
                .to_owned()
        };
        assert!(
            !field("command").is_empty() && field("commit").len() >= 7,
            "{name}"
        );
        assert!(!entry["seed"].is_none(), "`{name}` has no `seed`");
        let figure = Figure {
            value: field("value"),
            date: field("date").parse().unwrap(),
            version: field("version"),
        };
        (name.to_owned(), figure)
    };
    document.iter().map(figure).collect()
}

fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    pages.chain([root().join("README.md")]).collect()
}

/// Replaces what stands between each pair of marks.
fn rewrite(text: &str, replace: &mut dyn FnMut(&str, &str) -> String) -> String {
    let mut parts = text.split(BEGIN);
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->").expect("the name of a figure ends");
        let (shown, rest) = rest.split_once(END).expect("a figure ends");
        written += &format!("{BEGIN}{name} -->{}{END}{rest}", replace(name, shown));
    }
    written
}

#[test]
fn figures_in_docs_are_recorded() {
    let figures = figures();
    let updates = std::env::var_os("SUPERVISOR_UPDATE_DOCS").is_some_and(|value| value == "1");
    let mut quoted = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let written = rewrite(&text, &mut |name, shown| {
            let figure = figures
                .get(name)
                .unwrap_or_else(|| panic!("{}: no figure `{name}`", page.display()));
            quoted.push(name.to_owned());
            if updates {
                let today = jiff::Timestamp::now()
                    .to_zoned(jiff::tz::TimeZone::UTC)
                    .date();
                return format!(
                    "{}{}",
                    figure.value,
                    figure.mark(today, env!("CARGO_PKG_VERSION"))
                );
            }
            assert!(
                figure.is_shown_by(shown),
                "{}: `{name}` is {}, and `{shown}` is written; SUPERVISOR_UPDATE_DOCS=1 corrects it",
                page.display(),
                figure.value
            );
            shown.to_owned()
        });
        if updates && written != text {
            fs::write(&page, written).unwrap();
        }
    }
    for name in figures.keys() {
        assert!(quoted.contains(name), "`{name}` is quoted nowhere");
    }
}

#[test]
fn measured_table_of_readme_holds_recorded_figures_only() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let rows: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("| measured |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert!(rows.len() >= 3, "{rows:?}");
    for row in rows {
        let value = row.split('|').nth(2).unwrap().trim();
        assert!(value.starts_with(BEGIN) && value.ends_with(END), "{row}");
    }
}

#[test]
fn old_figures_are_marked() {
    let figure = Figure {
        value: "1 of 2".into(),
        date: "2026-01-01".parse().unwrap(),
        version: "0.1.0".into(),
    };
    let mark = |today: &str, version: &str| figure.mark(today.parse().unwrap(), version);
    assert_eq!(mark("2026-03-01", "0.1.9"), "");
    assert_eq!(mark("2026-04-01", "0.1.9"), "");
    assert_eq!(
        mark("2026-04-02", "0.1.9"),
        " (2026-01-01, older than 90 days)"
    );
    assert_eq!(mark("2026-03-01", "0.2.0"), " (version 0.1.0)");
    for mark in ["", " (version 0.1.0)", " (2026-01-01, older than 90 days)"] {
        assert!(figure.is_shown_by(&format!("1 of 2{mark}")));
    }
    assert!(!figure.is_shown_by("1 of 3") && !figure.is_shown_by("1 of 2 (new)"));
    let shown = rewrite("a <!-- figure x -->old<!-- /figure --> b", &mut |_, _| {
        "new".into()
    });
    assert_eq!(shown, "a <!-- figure x -->new<!-- /figure --> b");
}
