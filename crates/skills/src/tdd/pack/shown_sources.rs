//! Shows the likely files: whole, or around the code that the failing tests and the stack trace
//! lead to.

use super::find::{Finder, WantedName};
use super::likely_files::RelevanceSignals;
use super::source::SourceFile;
use super::tree::{self, FileId};
use super::{PackPlan, ends_with, passage};
use supervisor_languages::ProjectFiles as _;

impl<'p> PackPlan<'p> {
    /// Shows the files that will most likely be changed, right after the test: whole, or the
    /// relevant parts.
    pub(super) fn show_likely_files(
        &mut self,
        finder: &Finder<'p>,
        wants: &[WantedName],
        test_path: &str,
        test: &SourceFile,
    ) {
        let extra: Vec<FileId> = self
            .request
            .extra_files
            .iter()
            .filter_map(|p| self.tree.at(&tree::relative(p)?))
            .collect();
        let likely = RelevanceSignals {
            tree: self.tree,
            finder,
            is_test: &|id| self.is_test(id),
            wants,
            extra_files: &extra,
            caller_text: self.request.caller_text,
            hints: &self.hints,
            test_path,
            test: Some(test),
            failing_text: &self.failing_text,
            ranked: &self.ranked,
            co_changed: self.request.co_changed,
        }
        .score();
        for id in extra {
            self.mark_wanted(id);
        }
        self.target = likely.files.first().copied();
        let limits = self.fill_limits();
        let focused: Vec<&WantedName> = likely.wants.iter().chain(wants).collect();
        for (limit, id) in limits.into_iter().zip(&likely.files) {
            // Parts of one file leave space for parts of the next. A file shown whole may use that
            // space.
            let whole_limit = if self.failing_lines.is_empty() {
                limit
            } else {
                limit.max(78)
            };
            // Long files after the first are shown in part for now; remaining space is used for
            // them later.
            let is_deferred = self.target != Some(*id)
                && self
                    .tree
                    .source(*id)
                    .is_some_and(|s| s.text.len() > self.request.window_bytes / 6);
            if is_deferred || !self.show(*id, &[0..usize::MAX], whole_limit) {
                self.show_traced_lines(*id, limit);
                self.show_passages(*id, limit);
                self.show_parts(*id, &focused, self.request.window_bytes / 6, limit);
                if self.target == Some(*id) {
                    self.show_imports(*id);
                    if !self.page.contains(self.tree.path(*id)) {
                        self.show_whole_or_outline(*id);
                    }
                }
            }
            self.mark_wanted(*id);
        }
        // Show the rest of truncated definitions in the target, as far as there is space.
        let (target, max_percent) = (self.target, limits[limits.len() - 1]);
        for want in &focused {
            if let WantedName::Defined { file, lines, .. } = want
                && target == Some(*file)
            {
                self.show(*file, std::slice::from_ref(lines), max_percent);
            }
        }
        // Definitions in less likely files that the caller names or the test calls.
        let share = self.request.window_bytes / 12;
        for want in likely.wants.iter().take(12) {
            if let WantedName::Defined {
                file, lines, at, ..
            } = want
            {
                self.show_part(*file, lines, *at, share, 100);
            }
        }
        self.likely_files = likely.files;
    }

    /// Percentage of the page that may be filled after each likely file. Without a test, existing
    /// tests need space too. If the failing part is known, the page is for that.
    fn fill_limits(&self) -> [usize; 6] {
        match (
            self.request.test_source.is_empty(),
            self.failing_lines.is_empty(),
        ) {
            (true, _) => [45, 50, 55, 55, 55, 55],
            (false, true) => [60, 70, 75, 75, 75, 75],
            (false, false) => [56, 68, 78, 84, 88, 90],
        }
    }

    /// Shows passages of a long file that share words with the failure, for example the text of an
    /// error message, even if nothing in them is used by name.
    fn show_passages(&mut self, id: FileId, percent: usize) {
        const MAX_OUTPUT_BYTES: usize = 4_000;
        let Some(source) = self
            .tree
            .source(id)
            .filter(|_| !self.failing_text.is_empty())
        else {
            return;
        };
        let output = super::cut_output(self.request.failing_output, MAX_OUTPUT_BYTES);
        let query = format!(
            "{}\n{}\n{output}",
            self.failing_text, self.request.caller_text
        );
        for passage in passage::find_passages(&source.text, &query) {
            let enclosing = source
                .innermost_at(passage.start + passage.len() / 2)
                .map(|item| item.lines.clone());
            let enclosing = enclosing.filter(|lines| lines.len() <= 2 * passage.len());
            let _ = enclosing.is_some_and(|lines| self.show(id, &[lines], percent))
                || self.show(id, &[passage], percent);
        }
    }

    /// Shows the relevant definitions of this file, each within its share.
    fn show_parts(&mut self, id: FileId, wants: &[&WantedName], share: usize, percent: usize) {
        for want in wants {
            if let WantedName::Defined {
                file, lines, at, ..
            } = want
                && *file == id
            {
                self.show_part(id, lines, *at, share, percent);
            }
        }
    }

    /// Shows the lines of a file that a stack trace names.
    fn show_traced_lines(&mut self, id: FileId, percent: usize) {
        const MAX_LOCATIONS: usize = 6;
        let own_path = self.tree.path(id);
        let locations = self
            .hints
            .locations
            .iter()
            .filter(|(path, _)| path == own_path || ends_with(path, own_path));
        let lines: Vec<usize> = locations
            .map(|(_, line)| line.saturating_sub(1))
            .take(MAX_LOCATIONS)
            .collect();
        let Some(source) = self.tree.source(id) else {
            return;
        };
        for line in lines {
            let around = source
                .innermost_at(line)
                .map(|item| (item.lines.clone(), item.at));
            let (enclosing, at) = around.unwrap_or((line.saturating_sub(8)..line + 8, line));
            let nearby =
                line.saturating_sub(12).max(enclosing.start)..(line + 12).min(enclosing.end);
            self.show(id, &[nearby, at..at + 1], percent);
            self.show_part(id, &enclosing, at, self.request.window_bytes / 6, percent);
        }
    }

    /// Shows the imports at the top of a file, because a change may need more of them.
    fn show_imports(&mut self, id: FileId) {
        const MAX_IMPORT_LINES: usize = 60;
        let Some(source) = self
            .tree
            .source(id)
            .filter(|_| self.page.contains(self.tree.path(id)))
        else {
            return;
        };
        let end = source
            .items()
            .iter()
            .map(|item| item.lines.start)
            .min()
            .unwrap_or_default();
        if end <= MAX_IMPORT_LINES {
            self.show(id, &[0..end], 80);
        }
    }
}
