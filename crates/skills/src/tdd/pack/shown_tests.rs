//! Shows tests: the one in question, or the most similar existing test if there is none yet.

use super::tree::FileId;
use super::{PackPlan, passage, rank};
use supervisor_languages::ProjectFiles as _;

impl<'p> PackPlan<'p> {
    /// Shows the whole test, or its imports and the failing parts.
    pub(super) fn show_test(&mut self, path: &'p str) {
        let on_disk = self.tree.at(path).and_then(|id| self.tree.source(id));
        let text = on_disk.map_or(self.request.test_source, |s| &s.text);
        let whole = self.percent_bytes(if self.failing_lines.is_empty() {
            40
        } else {
            30
        });
        if text.is_empty() || path.is_empty() || self.page.add(path, text, &[0..usize::MAX], whole)
        {
            return;
        }
        // If the failing part is unknown, show the start of the given part.
        let given = text
            .find(self.request.test_source)
            .map_or(0, |at| text[..at].lines().count());
        let first_lines = self
            .failing_lines
            .is_empty()
            .then_some((given..given + 40, 25));
        let failing_lines = self
            .failing_lines
            .clone()
            .into_iter()
            .map(|part| (part, 35));
        for (lines, limit) in [(0..20, 15)]
            .into_iter()
            .chain(first_lines)
            .chain(failing_lines)
        {
            self.page
                .add(path, text, &[lines], self.percent_bytes(limit));
        }
    }

    /// Before the test is written, shows the most similar test file as an example: whole, or its
    /// start, the passages about the task, and its end.
    pub(super) fn show_example(&mut self, test_path: &str) {
        if !self.request.test_source.is_empty() {
            return;
        }
        let Some(id) = self.nearest_test(test_path) else {
            return;
        };
        let window = self.request.window_bytes;
        let limit =
            (self.page.used() + window * 35 / 100).min(window * 92 / 100) * 100 / window.max(1);
        if self.show(id, &[0..usize::MAX], limit) {
            return;
        }
        let Some(source) = self.tree.source(id) else {
            return;
        };
        let lines = source.text.lines().count();
        let _ = self.show(id, &[0..30, lines.saturating_sub(12)..lines], limit)
            || self.show(id, &[0..12, lines.saturating_sub(6)..lines], limit);
        for passage in passage::find_passages(&source.text, self.request.caller_text) {
            let whole = source
                .innermost_at(passage.start + passage.len() / 2)
                .map(|item| item.lines.clone());
            let whole = whole.filter(|lines| lines.len() <= 4 * passage.len());
            let _ = whole.is_some_and(|lines| self.show(id, &[lines], limit))
                || self.show(id, &[passage], limit);
        }
    }

    fn nearest_test(&self, test_path: &str) -> Option<FileId> {
        let target = self.target.map(|id| rank::subject(self.tree.path(id)));
        let test_subject = rank::subject(test_path);
        let is_nonempty_test = |id: FileId| {
            self.is_test(id)
                && self
                    .tree
                    .source(id)
                    .is_some_and(|s| !s.text.trim().is_empty())
        };
        let tests: Vec<(FileId, f64)> = self
            .ranked
            .iter()
            .filter(|(id, _)| is_nonempty_test(*id))
            .copied()
            .collect();
        let best = tests
            .iter()
            .map(|(_, score)| *score)
            .fold(f64::MIN_POSITIVE, f64::max);
        // Shared words count as much as a name. A name that both the caller and the file use
        // counts most.
        let with_score = |(id, score): (FileId, f64)| {
            let subject = rank::subject(self.tree.path(id));
            let points = [
                (target == Some(subject), 12.0),
                (!test_subject.is_empty() && test_subject == subject, 30.0),
                (
                    rank::mentions_subject(self.request.caller_text, subject),
                    12.0,
                ),
            ];
            (
                id,
                10.0 * score / best
                    + points
                        .iter()
                        .filter(|(applies, _)| *applies)
                        .map(|(_, more)| more)
                        .sum::<f64>(),
            )
        };
        let nearest = tests
            .into_iter()
            .map(with_score)
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        nearest.map(|(id, _)| id)
    }
}
