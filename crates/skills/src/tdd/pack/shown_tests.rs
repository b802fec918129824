//! The tests on the page: the one in question, and before there is one, the nearest that is there.

use super::tree::Id;
use super::{Plan, passage, rank};
use supervisor_languages::ProjectFiles as _;

impl<'p> Plan<'p> {
    /// The test whole, or what it takes from others and where it fails.
    pub(super) fn show_test(&mut self, path: &'p str) {
        let on_disk = self.tree.at(path).and_then(|id| self.tree.source(id));
        let text = on_disk.map_or(self.request.test_source, |s| &s.text);
        let whole = self.room(if self.red.is_empty() { 40 } else { 30 });
        if text.is_empty() || path.is_empty() || self.sheet.add(path, text, &[0..usize::MAX], whole)
        {
            return;
        }
        // Where it cannot be told what fails, how the part in question begins.
        let given = text
            .find(self.request.test_source)
            .map_or(0, |at| text[..at].lines().count());
        let begins = self.red.is_empty().then_some((given..given + 40, 25));
        let red = self.red.clone().into_iter().map(|part| (part, 35));
        for (lines, limit) in [(0..20, 15)].into_iter().chain(begins).chain(red) {
            self.sheet.add(path, text, &[lines], self.room(limit));
        }
    }

    /// Before the test is written, the tests that are there show how it is done, and may be added to: the file nearest by
    /// name and by what it is about, whole, or how it begins, where it speaks of the task, and how it ends.
    pub(super) fn show_example(&mut self, test_path: &str) {
        if !self.request.test_source.is_empty() {
            return;
        }
        let Some(id) = self.nearest_test(test_path) else {
            return;
        };
        let room = self.request.window_bytes;
        let limit = (self.sheet.used() + room * 35 / 100).min(room * 92 / 100) * 100 / room.max(1);
        if self.show(id, &[0..usize::MAX], limit) {
            return;
        }
        let Some(source) = self.tree.source(id) else {
            return;
        };
        let lines = source.text.lines().count();
        let _ = self.show(id, &[0..30, lines.saturating_sub(12)..lines], limit)
            || self.show(id, &[0..12, lines.saturating_sub(6)..lines], limit);
        for passage in passage::speaking_of(&source.text, self.request.named) {
            let whole = source
                .around(passage.start + passage.len() / 2)
                .map(|item| item.lines.clone());
            let whole = whole.filter(|lines| lines.len() <= 4 * passage.len());
            let _ = whole.is_some_and(|lines| self.show(id, &[lines], limit))
                || self.show(id, &[passage], limit);
        }
    }

    fn nearest_test(&self, test_path: &str) -> Option<Id> {
        let target = self.target.map(|id| rank::subject(self.tree.path(id)));
        let asked = rank::subject(test_path);
        let holds = |id: Id| {
            self.is_test(id)
                && self
                    .tree
                    .source(id)
                    .is_some_and(|s| !s.text.trim().is_empty())
        };
        let tests: Vec<(Id, f64)> = self
            .ranked
            .iter()
            .filter(|(id, _)| holds(*id))
            .copied()
            .collect();
        let best = tests
            .iter()
            .map(|(_, score)| *score)
            .fold(f64::MIN_POSITIVE, f64::max);
        // Shared words count as much as a name; a name that the caller says and the file has counts most.
        let nearness = |(id, score): (Id, f64)| {
            let own = rank::subject(self.tree.path(id));
            let points = [
                (target == Some(own), 12.0),
                (!asked.is_empty() && asked == own, 30.0),
                (rank::names_subject(self.request.named, own), 12.0),
            ];
            (
                id,
                10.0 * score / best
                    + points
                        .iter()
                        .filter(|(is, _)| *is)
                        .map(|(_, more)| more)
                        .sum::<f64>(),
            )
        };
        let nearest = tests
            .into_iter()
            .map(nearness)
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        nearest.map(|(id, _)| id)
    }
}
