//! Parses one TOML file: its values, and the line of each key for messages. Never shows a line of
//! the file: it may contain a secret by mistake.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use figment::providers::{Format as _, Toml};
use figment::value::Dict;
use toml_edit::{ImDocument, TableLike};

use super::error::Fault;
use super::keys;

/// Values of a file and their lines.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub values: Dict,
    /// Line of each key and table, by its path as written in TOML.
    pub lines: BTreeMap<String, usize>,
}

/// A problem with the whole file, with the line if known.
#[derive(Debug)]
pub(crate) struct FileFault {
    pub fault: Fault,
    pub line: Option<usize>,
    pub is_missing: bool,
}

pub(crate) fn read(path: &Path) -> Result<Document, FileFault> {
    let file_fault = |fault| FileFault {
        fault,
        line: None,
        is_missing: false,
    };
    let unreadable = |e: std::io::Error| FileFault {
        is_missing: matches!(
            e.kind(),
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
        ),
        ..file_fault(Fault::Unreadable(describe_error(&e)))
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|f| f.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(file_fault(Fault::TooLarge));
    }
    parse(&String::from_utf8(bytes).map_err(|_| file_fault(Fault::NotUtf8))?)
}

pub(crate) fn parse(text: &str) -> Result<Document, FileFault> {
    // Parsed twice: once for the lines, which figment does not keep, and once for the values.
    let places = ImDocument::parse(text).map_err(|e| FileFault {
        fault: Fault::NotToml(e.message().replace('\n', ", ")),
        line: e.span().map(|span| line_at(text, span.start)),
        is_missing: false,
    })?;
    let values = values(text)?;
    let mut lines = BTreeMap::new();
    record_lines(text, &mut Vec::new(), places.as_table(), &mut lines);
    Ok(Document { values, lines })
}

/// Only the values.
pub(crate) fn values(text: &str) -> Result<Dict, FileFault> {
    Toml::from_str::<Dict>(text).map_err(|e| FileFault {
        fault: Fault::NotToml(e.message().replace('\n', ", ")),
        line: e.span().map(|span| line_at(text, span.start)),
        is_missing: false,
    })
}

const MAX_BYTES: u64 = 1 << 20;

/// An error text that does not depend on the platform's error numbers.
fn describe_error(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        std::io::ErrorKind::IsADirectory => "it is a directory".into(),
        _ => error.to_string(),
    }
}

fn record_lines(
    text: &str,
    path: &mut Vec<String>,
    table: &dyn TableLike,
    lines: &mut BTreeMap<String, usize>,
) {
    for (name, item) in table.iter() {
        path.push(name.to_owned());
        let span = table
            .key(name)
            .and_then(toml_edit::Key::span)
            .or_else(|| item.span());
        if let Some(span) = span {
            lines.insert(keys::toml_path(path), line_at(text, span.start));
        }
        if let Some(inner) = item.as_table_like() {
            record_lines(text, path, inner, lines);
        }
        path.pop();
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()
        .iter()
        .take(offset)
        .filter(|b| **b == b'\n')
        .count()
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_line_numbers() {
        let text = "a = 1\n\n[models.\"x/Y.1\"]\ncontext = 5\nnested = { deep = 1 }\n";
        let document = parse(text).expect("TOML");
        assert_eq!(document.lines["a"], 1);
        assert_eq!(document.lines["models.\"x/Y.1\".context"], 4);
        assert_eq!(document.lines["models.\"x/Y.1\".nested.deep"], 5);
    }

    #[test]
    fn invalid_toml_is_never_quoted() {
        let fault = parse("a = 1\napi_key = sk-canary\n").expect_err("not TOML");
        assert_eq!(fault.line, Some(2));
        assert!(
            !fault.fault.to_string().contains("canary"),
            "{}",
            fault.fault
        );
    }
}
