//! Expected rows: CSV with a header, or JSON.

use std::path::Path;

use serde_json::Value;

/// One value of a row. An empty cell of CSV and a JSON null are SQL's NULL.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Number(f64),
    Text(String),
}

pub(super) type Rows = Vec<Vec<Cell>>;

impl Cell {
    /// A number where the text is one, so that `3` and `3.0` are equal.
    pub(super) fn of_text(text: &str) -> Self {
        match text.parse::<f64>() {
            _ if text.is_empty() => Self::Null,
            Ok(number) if number.is_finite() => Self::Number(number),
            _ => Self::Text(text.to_owned()),
        }
    }

    pub(super) fn of_json(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(yes) => Self::Number(f64::from(u8::from(*yes))),
            Value::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => Self::of_text(text),
            other => Self::Text(other.to_string()),
        }
    }

    pub(super) fn equals(&self, other: &Self, tolerance: f64) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => are_close(*a, *b, tolerance),
            (a, b) => a == b,
        }
    }

    pub(super) fn shown(&self) -> String {
        match self {
            Self::Null => String::from("NULL"),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// Whether two numbers are equal within `tolerance`, or as far as floating point can tell.
pub(super) fn are_close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance.max(1e-9 * a.abs().max(b.abs()))
}

pub(super) fn read(path: &Path) -> Result<Rows, String> {
    parse(path, &super::read(path)?)
}

pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Rows, String> {
    let name = path.display();
    let text = std::str::from_utf8(bytes).map_err(|_| format!("`{name}` is not UTF-8"))?;
    if path.extension().is_some_and(|e| e == "json") {
        let rows: Vec<Value> =
            serde_json::from_str(text).map_err(|e| format!("`{name}` is not a JSON array: {e}"))?;
        return rows
            .iter()
            .map(|row| match row {
                Value::Array(cells) => Ok(cells.iter().map(Cell::of_json).collect()),
                _ => Err(format!("`{name}` is not an array of arrays")),
            })
            .collect();
    }
    let mut records = csv_records(text);
    if records.is_empty() {
        return Err(format!(
            "`{name}` is empty; its first line names the columns"
        ));
    }
    records.remove(0);
    Ok(records
        .iter()
        .map(|record| record.iter().map(|cell| Cell::of_text(cell)).collect())
        .collect())
}

/// The records of CSV as RFC 4180 has it.
fn csv_records(text: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let (mut record, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut chars = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .chars()
        .peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            '"' if cell.is_empty() => is_quoted = true,
            ',' if !is_quoted => record.push(std::mem::take(&mut cell)),
            '\r' if !is_quoted && chars.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            c => cell.push(c),
        }
    }
    if !cell.is_empty() || !record.is_empty() {
        record.push(cell);
        records.push(record);
    }
    records.retain(|record| record.iter().any(|cell| !cell.is_empty()));
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_read_with_quotes_and_nulls() {
        let rows = parse(
            Path::new("a.csv"),
            b"name,total\r\n\"a, \"\"b\"\"\",3\r\nc,\n\n",
        )
        .expect("rows");
        assert_eq!(
            rows,
            [
                vec![Cell::Text("a, \"b\"".into()), Cell::Number(3.0)],
                vec![Cell::Text("c".into()), Cell::Null]
            ]
        );
        let rows = parse(Path::new("a.json"), br#"[["x", 1.5, null, "2"]]"#).expect("rows");
        assert_eq!(
            rows[0][1..],
            [Cell::Number(1.5), Cell::Null, Cell::Number(2.0)]
        );
        assert!(parse(Path::new("a.csv"), b"").is_err());
    }
}
