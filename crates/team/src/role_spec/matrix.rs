//! The tables and lists of a role spec, by heading.

use super::CHECKPOINT;
use crate::document::{TableRow, TeamDocument};
use crate::verdict::CheckGroup;

/// Part of a document below one heading, without the parts of deeper headings.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    /// Titles of the headings above it.
    above: Vec<String>,
    rows: Vec<Row>,
}

/// One row of a matrix.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) title: String,
    /// Titles and cells of the other columns.
    more: Vec<(String, String)>,
    pub(super) group: CheckGroup,
}

impl Row {
    /// Whether the row says how it is checked, or when it passes.
    pub(super) fn has_criteria(&self) -> bool {
        self.more.iter().any(|(_, cell)| !cell.is_empty())
    }

    pub(super) fn question(&self) -> String {
        let more = self
            .more
            .iter()
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(head, cell)| format!(" {head}: {cell}."));
        format!("{}.{}", self.title, more.collect::<String>())
    }
}

/// Whether a heading is about this checkpoint. `CHECKPOINT-001` is not in `CHECKPOINT-0010`.
pub(super) fn names_id(heading: &str, id: &str) -> bool {
    CHECKPOINT
        .find_iter(heading)
        .any(|found| found.as_str() == id)
}

/// The rows about this checkpoint: those below its own heading, and those for all checkpoints if it
/// has any of its own.
pub(super) fn rows_of<'a>(sections: &'a [Section], id: &'a str) -> impl Iterator<Item = &'a Row> {
    let titles = |section: &'a Section| section.above.iter().chain([&section.title]);
    let is_own = move |section: &'a Section| titles(section).any(|title| names_id(title, id));
    let is_for_all = move |section: &'a Section| {
        titles(section).any(|title| title.to_lowercase().contains("all checkpoints"))
    };
    let has_own = sections
        .iter()
        .any(|section| is_own(section) && !section.rows.is_empty());
    sections
        .iter()
        .filter(move |section| is_own(section) || has_own && is_for_all(section))
        .flat_map(|section| &section.rows)
}

pub(super) fn sections(document: &TeamDocument) -> Vec<Section> {
    let lines: Vec<&str> = document.text.lines().collect();
    let level = |line: usize| {
        let line = lines.get(line - 1).copied().unwrap_or_default();
        line.chars().take_while(|c| *c == '#').count().max(1)
    };
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut sections = Vec::new();
    for (n, heading) in document.headings.iter().enumerate() {
        let level = level(heading.line);
        open.retain(|(above, _)| *above < level);
        let end = document.headings.get(n + 1).map_or(usize::MAX, |h| h.line);
        let range = heading.line..end;
        let all = || open.iter().map(|(_, title)| title.clone());
        let group = group_of(&format!("{} {}", heading.title, all().collect::<String>()));
        let of_table = document
            .rows
            .iter()
            .filter(|row| range.contains(&row.line))
            .filter_map(cells_of);
        let of_list = document
            .items
            .iter()
            .filter(|item| range.contains(&item.line))
            .map(|item| (item.text.trim().to_owned(), Vec::new()));
        let rows = of_table
            .chain(of_list)
            .filter(|(title, _): &(String, Vec<_>)| !title.is_empty())
            .map(|(title, more)| Row { title, more, group });
        sections.push(Section {
            title: heading.title.clone(),
            above: all().collect(),
            rows: rows.collect(),
        });
        open.push((level, heading.title.clone()));
    }
    sections
}

/// Titles of the column that says what a row checks.
const TITLE_COLUMNS: &[&str] = &["check", "item", "criterion"];

/// The title of a row, from the column that is headed so, else from its first cell that is not a
/// number; and the other cells, without the numbers before it.
fn cells_of(row: &TableRow) -> Option<(String, Vec<(String, String)>)> {
    let is_number = |cell: &String| {
        let digits = cell.trim_matches(|c: char| !c.is_alphanumeric());
        digits.chars().all(|c| c.is_ascii_digit())
    };
    let is_title = |head: &String| {
        let mut titles = TITLE_COLUMNS.iter();
        titles.any(|title| head.trim().eq_ignore_ascii_case(title))
    };
    let headed = row.head.iter().position(is_title);
    let at = headed.or_else(|| row.cells.iter().position(|cell| !is_number(cell)))?;
    let title = row.cells.get(at)?.clone();
    let more = row.head.iter().zip(&row.cells).enumerate();
    let more = more
        .filter(|(n, (_, cell))| *n != at && !(*n < at && is_number(cell)))
        .map(|(_, (head, cell))| (head.clone(), cell.clone()));
    Some((title, more.collect()))
}

fn group_of(titles: &str) -> CheckGroup {
    let titles = titles.to_lowercase();
    if titles.contains("health") {
        CheckGroup::Health
    } else if titles.contains("process") {
        CheckGroup::Process
    } else {
        CheckGroup::Consistency
    }
}
