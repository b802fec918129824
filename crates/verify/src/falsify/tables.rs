//! Table-driven tests: maps a name in an assertion to its column and finds the cells of that column.

use std::ops::Range;

use super::test_source::{Claim, TableSite, TestSite, TestSource, contains};

impl TestSource {
    /// The cells that provide the values of `name`, if a table around `at` does. `field` is a field of the row.
    pub(super) fn cells(
        &self,
        at: &Range<usize>,
        name: &str,
        field: Option<&str>,
    ) -> Vec<Range<usize>> {
        let enclosing = self
            .tables
            .iter()
            .filter(|table| contains(&table.whole, at));
        enclosing
            .min_by_key(|table| table.whole.len())
            .into_iter()
            .chain(
                self.tables
                    .iter()
                    .filter(|table| contains(&table.whole, at)),
            )
            .find_map(|table| {
                let column = self
                    .columns(table)
                    .iter()
                    .position(|column| *column == name)?;
                let count = self.columns(table).len();
                let fields = self.fields(table);
                let index = field.and_then(|field| fields.iter().position(|known| known == field));
                let cell = |row: &Range<usize>| match index {
                    // Without keys, the cells are in the order of the fields.
                    Some(index) if self.elements(row)?.iter().all(|e| self.pair(e).is_none()) => {
                        self.elements(row)?.get(index).cloned()
                    }
                    _ => self.cell(row, column, count, name, field),
                };
                Some(self.rows(table)?.iter().filter_map(cell).collect())
            })
            .unwrap_or_default()
    }

    /// Whether a column with expected values is also an input of the tested code. Then a changed cell would change the
    /// input, not falsify the expectation. Arguments to the runner (such as row names and messages) and uses in other
    /// assertions are not inputs.
    pub(super) fn is_also_input(
        &self,
        test: &TestSite,
        side: &Range<usize>,
        name: &str,
        field: Option<&str>,
    ) -> bool {
        let enclosing = self
            .tables
            .iter()
            .filter(|table| contains(&table.whole, side));
        let Some(table) = enclosing.min_by_key(|table| table.whole.len()) else {
            return false;
        };
        let is_expected = |at: &Range<usize>| {
            let is_plain =
                |side: &Range<usize>| contains(side, at) && !self.slice(side).contains('(');
            self.assertions
                .iter()
                .any(|assertion| match &assertion.claim {
                    Claim::Equal(left, right) => is_plain(left) || is_plain(right),
                    _ => false,
                })
        };
        let is_use = |at: &Range<usize>| {
            let before = self.text[..at.start].chars().next_back();
            let is_named = self.slice(at) == field.unwrap_or(name)
                && (field.is_none()
                    || before.is_some_and(|before| ['.', ':', '"', '\''].contains(&before)));
            let is_outside_table = [side, &table.rows, &table.params]
                .iter()
                .all(|range| !contains(range, at));
            is_named
                && is_outside_table
                && !is_expected(at)
                && !self.is_runner_argument(test, table, at)
        };
        // If the table encloses the test, as in an attribute, it only names the parameters. Then search the body alone.
        let body = test
            .body
            .as_ref()
            .or(test.expression.as_ref())
            .filter(|body| contains(&table.whole, body));
        self.words(body.unwrap_or(&table.whole)).iter().any(is_use)
    }

    /// Whether `at` is an argument to a method of the test's handle, such as `t.Run` or `t.Errorf`.
    fn is_runner_argument(&self, test: &TestSite, table: &TableSite, at: &Range<usize>) -> bool {
        let Some(handle) = &test.handle else {
            return false;
        };
        let mut open = Vec::new();
        for (place, byte) in self.bytes_outside_literals(&(table.whole.start..at.start)) {
            match byte {
                b'(' => open.push(place),
                b')' => drop(open.pop()),
                _ => {}
            }
        }
        open.last().is_some_and(|place| {
            let callee = self.text[..*place]
                .rsplit(|c: char| !(c.is_alphanumeric() || "._".contains(c)))
                .next();
            callee
                .and_then(|callee| callee.split_once('.'))
                .is_some_and(|(first, _)| first == handle)
        })
    }

    /// The column names: the words of a pattern, or of a string that lists them.
    fn columns(&self, table: &TableSite) -> Vec<&str> {
        let text = self.slice(&table.params);
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
        words
            .filter(|word| {
                !word.is_empty() && !["mut", "ref", "const", "let", "var"].contains(word)
            })
            .collect()
    }

    fn rows(&self, table: &TableSite) -> Option<Vec<Range<usize>>> {
        self.elements(&self.list_of(table))
    }

    /// `[]struct{ n int; want string }{…}` has the fields `n` and `want`.
    fn fields(&self, table: &TableSite) -> Vec<String> {
        let list = self.list_of(table);
        let text = self.slice(&list);
        let Some((_, rest)) = text.split_once("struct") else {
            return Vec::new();
        };
        let inside = rest
            .trim_start()
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
            .map(|(inside, _)| inside);
        let lines = inside
            .unwrap_or_default()
            .split([';', '\n'])
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let names = lines
            .filter_map(|line| line.rsplit_once(char::is_whitespace))
            .flat_map(|(names, _)| names.split(','));
        names.map(|name| name.trim().to_owned()).collect()
    }

    fn list_of(&self, table: &TableSite) -> Range<usize> {
        let text = self.slice(&table.rows).trim_start_matches(['&', '*']);
        let word = text
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .next()
            .unwrap_or_default();
        let mut bound = self
            .bindings
            .iter()
            .filter(|b| b.name == word && self.is_bound_before(b, table.rows.start));
        match bound.next_back() {
            Some(binding) if !word.is_empty() => binding.value.clone(),
            _ => table.rows.clone(),
        }
    }

    fn cell(
        &self,
        row: &Range<usize>,
        column: usize,
        columns: usize,
        name: &str,
        field: Option<&str>,
    ) -> Option<Range<usize>> {
        let key = field.unwrap_or(name);
        if let Some(elements) = self.elements(row) {
            let keyed = elements
                .iter()
                .filter_map(|e| self.pair(e))
                .find(|(k, _)| self.slice(k).trim_matches(['"', '\'', ':']) == key);
            if let Some((_, value)) = keyed {
                return Some(value);
            }
            let is_list = self.slice(row).starts_with(['(', '[', '{', '&'])
                || self.slice(row).starts_with("pytest.param");
            if is_list && field.is_none() && columns > 1 {
                return elements.get(column).cloned();
            }
        }
        match self.pair(row) {
            Some((key, value)) if columns == 2 => Some(if column == 0 { key } else { value }),
            _ => (columns == 1 && field.is_none()).then(|| row.clone()),
        }
    }
}
