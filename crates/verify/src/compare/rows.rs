//! Runs a query and compares its rows. The query is the work of a model: it runs in a process of its own, in the sandbox
//! of tests, on a private copy of the database.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection};
use serde_json::{Value, json};

use super::reduce::Reduction;
use super::table::{Cell, Rows};

/// A query with more rows is refused.
const MAX_ROWS: usize = 100_000;

/// `witness rows REPORT DATABASE QUERY REDUCTION`: writes the rows as JSON and returns the exit code.
pub(in super::super) fn run_query(report: &Path, arguments: &[OsString]) -> i32 {
    let [database, query, reduction] = arguments else {
        return 126;
    };
    let Some(reduction) = reduction.to_str().and_then(Reduction::from_word) else {
        return 126;
    };
    let (found, code) = match query_rows(report, Path::new(database), Path::new(query), reduction) {
        Ok(rows) => (json!({"rows": rows}), 0),
        Err(why) => (json!({"error": why}), 1),
    };
    match fs::write(report, found.to_string()) {
        Ok(()) => code,
        Err(_) => 126,
    }
}

fn query_rows(
    report: &Path,
    database: &Path,
    query: &Path,
    reduction: Reduction,
) -> Result<Vec<Value>, String> {
    let text = |path: &Path| {
        fs::read_to_string(path).map_err(|e| format!("`{}` cannot be read: {e}", path.display()))
    };
    let failed = |path: &Path, e: rusqlite::Error| format!("`{}`: {e}", path.display());
    let connection = if database.extension().is_some_and(|e| e == "sql") {
        let connection = Connection::open_in_memory().map_err(|e| e.to_string())?;
        let script = text(database)?;
        connection
            .execute_batch(&script)
            .map_err(|e| failed(database, e))?;
        connection
    } else {
        let copy: PathBuf = report.with_extension("db");
        fs::copy(database, &copy)
            .map_err(|e| format!("`{}` cannot be read: {e}", database.display()))?;
        Connection::open(copy).map_err(|e| failed(database, e))?
    };
    reduction
        .apply_to_database(&connection)
        .map_err(|e| failed(database, e))?;
    let script = text(query)?;
    let mut batch = Batch::new(&connection, &script);
    let mut found = None;
    while let Some(mut statement) = batch.next().map_err(|e| failed(query, e))? {
        let columns = statement.column_count();
        if columns == 0 {
            statement.execute([]).map_err(|e| failed(query, e))?;
            continue;
        }
        let mut rows = statement.query([]).map_err(|e| failed(query, e))?;
        let mut read = Vec::new();
        while let Some(row) = rows.next().map_err(|e| failed(query, e))? {
            if read.len() == MAX_ROWS {
                return Err(format!("the query returns more than {MAX_ROWS} rows"));
            }
            let cells = (0..columns).map(|at| row.get_ref(at).map_or(Value::Null, to_json));
            read.push(cells.collect());
        }
        found = Some(read);
    }
    found.ok_or_else(|| format!("`{}` has no statement that returns rows", query.display()))
}

fn to_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Value::String(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

/// Compares what [`run_query`] reported.
pub(super) fn compare(
    report: &str,
    expected: &Rows,
    ordered: bool,
    tolerance: f64,
) -> Result<(), String> {
    let report: Value = serde_json::from_str(report).map_err(|e| e.to_string())?;
    if let Some(error) = report["error"].as_str() {
        return Err(error.to_owned());
    }
    let rows = report["rows"].as_array().ok_or("the query did not run")?;
    let actual: Rows = rows
        .iter()
        .map(|row| {
            row.as_array()
                .into_iter()
                .flatten()
                .map(Cell::of_json)
                .collect()
        })
        .collect();
    compare_rows(&actual, expected, ordered, tolerance)
}

fn compare_rows(
    actual: &Rows,
    expected: &Rows,
    ordered: bool,
    tolerance: f64,
) -> Result<(), String> {
    let equals = |a: &[Cell], b: &[Cell]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b, tolerance))
    };
    let counts = format!(
        "{} rows were returned, {} are expected",
        actual.len(),
        expected.len()
    );
    if ordered {
        let differing = actual.iter().zip(expected).position(|(a, b)| !equals(a, b));
        return match differing {
            Some(at) => Err(format!(
                "row {} is ({}), expected is ({}); {counts}",
                at + 1,
                shown(&actual[at]),
                shown(&expected[at])
            )),
            None if actual.len() == expected.len() => Ok(()),
            None => Err(counts),
        };
    }
    let mut left: Vec<&Vec<Cell>> = expected.iter().collect();
    let mut surplus = Vec::new();
    for row in actual {
        match left.iter().position(|wanted| equals(row, wanted)) {
            Some(at) => drop(left.swap_remove(at)),
            None => surplus.push(row),
        }
    }
    if left.is_empty() && surplus.is_empty() {
        return Ok(());
    }
    let mut why = counts;
    if let Some(row) = left.first() {
        why += &format!("; missing is ({})", shown(row));
    }
    if let Some(row) = surplus.first() {
        why += &format!("; not expected is ({})", shown(row));
    }
    Err(why)
}

fn shown(row: &[Cell]) -> String {
    row.iter().map(Cell::shown).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Rows {
        text.split(';')
            .map(|row| row.split(',').map(Cell::of_text).collect())
            .collect()
    }

    #[test]
    fn rows_are_a_multiset_unless_ordered() {
        let compare = |a: &str, b: &str, ordered| compare_rows(&rows(a), &rows(b), ordered, 0.0);
        assert_eq!(compare("a,1;b,2", "b,2.0;a,1", false), Ok(()));
        assert!(compare("a,1;b,2", "b,2;a,1", true).is_err());
        assert!(compare("a,1;a,1", "a,1;b,2", false).is_err());
        assert!(compare("a,1;a,1", "a,1", false).is_err());
        assert_eq!(
            compare("a,1", "a,2", false),
            Err(
                "1 rows were returned, 1 are expected; missing is (a, 2); not expected is (a, 1)"
                    .into()
            )
        );
        assert!(compare_rows(&rows("1.004"), &rows("1"), true, 0.01).is_ok());
        assert!(compare_rows(&rows("1.02"), &rows("1"), true, 0.01).is_err());
    }
}
