//! Puts files on the page, step by step. Each step may fill the page up to a limit, so that the
//! steps after it have space; a part is shown whole or not at all.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;

use super::failure::Failure;
use super::page::Page;
use super::project::{FileId, Found, Project, SourceFile, relative};
use super::resolve::{UsedNames, unique};
use super::signals::LikelyFiles;
use super::similarity::{find_passages, words};
use super::{PackRequest, PackedFiles, cut_output};
use supervisor_languages::{Definition, DefinitionKind, ProjectFiles as _};

/// Number of likely files that are shown first and that get the remaining space.
const LIKELY: usize = 6;
/// Number of likely files that are shown whole if they are small, and of definitions that lead to
/// them.
const NEIGHBOURS: usize = 12;
/// Bytes of output that are compared with passages.
const MAX_OUTPUT_BYTES: usize = 4_000;
/// Signatures shown in the outline of one file.
const MAX_SIGNATURES: usize = 12;
/// Lines of a cut definition.
const MAX_FIRST_LINES: usize = 400;
const WHOLE: Range<usize> = 0..usize::MAX;

pub(super) struct Packer<'p> {
    pub project: &'p Project,
    pub request: &'p PackRequest<'p>,
    pub failure: &'p Failure,
    pub likely: &'p LikelyFiles<'p>,
    pub test_path: &'p str,
    /// Words of the test. Of a large type, only members with these names are shown in full.
    pub mentioned: HashSet<&'p str>,
    pub page: Page<'p>,
}

impl<'p> Packer<'p> {
    fn percent(&self, percent: usize) -> usize {
        self.request.window_bytes.saturating_mul(percent) / 100
    }

    /// Whether a file takes at most a sixth of the page.
    fn is_small(&self, id: FileId) -> bool {
        self.project.source(id).text.len() <= self.request.window_bytes / 6
    }

    /// Shows these lines of a file with the heading of each definition around them, if the page
    /// does not exceed `limit` bytes afterwards.
    fn show(&mut self, id: FileId, lines: &[Range<usize>], limit: usize) -> bool {
        let source = self.project.source(id);
        let is_around = |item: &&Definition| {
            let mut starts = lines.iter().map(|part| part.start);
            starts.any(|start| item.lines.start < start && start < item.lines.end)
        };
        let headings = source
            .definitions()
            .iter()
            .filter(is_around)
            .map(|i| i.at..i.at + 1);
        let lines: Vec<Range<usize>> = lines.iter().cloned().chain(headings).collect();
        self.page.add(&source.path, &source.text, &lines, limit)
    }

    /// Shows the whole test, or its imports and the failing parts.
    pub(super) fn show_test(&mut self, test: &'p SourceFile) {
        let (path, text) = (self.test_path, test.text.as_str());
        if path.is_empty() || self.page.add(path, text, &[WHOLE], self.percent(35)) {
            return;
        }
        for part in [0..20].iter().chain(&self.failure.lines) {
            self.page
                .add(path, text, std::slice::from_ref(part), self.percent(35));
        }
    }

    /// Shows files that somebody asked for, whole where they fit.
    pub(super) fn show_given(&mut self) {
        let given = self.request.extra_files.iter().filter_map(|p| relative(p));
        let given: Vec<FileId> = given.filter_map(|path| self.project.at(&path)).collect();
        for id in given {
            self.show(id, &[WHOLE], self.percent(85));
        }
    }

    /// Shows the files that will most likely be changed, right after the test: whole, or the
    /// relevant parts.
    pub(super) fn show_likely_files(&mut self, used: &UsedNames<'p>) {
        let likely = self.likely;
        let share = self.request.window_bytes / 6;
        // How full the page may be after the first file and after the last one. Without a test,
        // existing tests need space too.
        let has_test = !self.request.test_source.is_empty();
        let (first, last) = if has_test { (58, 85) } else { (45, 55) };
        let output = cut_output(self.request.failing_output, MAX_OUTPUT_BYTES);
        let task = [&self.failure.text, self.request.caller_text, &output].join("\n");
        for (n, &id) in likely.files.iter().take(LIKELY).enumerate() {
            let percent = (first + 10 * n).min(last);
            let limit = self.percent(percent);
            let is_target = n == 0;
            // Long files after the first are shown in part; remaining space is used for them later.
            if (is_target || self.is_small(id)) && self.show(id, &[WHOLE], limit) {
                continue;
            }
            self.show_locations(Some(id), percent);
            self.show_passages(id, &task, limit);
            for found in likely.definitions.iter().chain(&used.definitions) {
                if found.file == id {
                    self.show_definition(*found, share, limit);
                }
            }
            if is_target {
                self.show_head(id);
            }
        }
    }

    /// Shows the imports of the target, because a change may need more of them. If nothing of it is
    /// shown yet, shows its most relevant parts.
    fn show_head(&mut self, id: FileId) {
        if !self.page.contains(self.project.path(id)) {
            self.show_part(id, WHOLE, 0, self.request.window_bytes, self.percent(80));
        }
        let items = self.project.source(id).definitions().iter();
        let first = items.map(|item| item.lines.start).min();
        self.show(id, &[0..first.unwrap_or_default()], self.percent(80));
    }

    /// Shows passages of a long file that share words with a task, for example the text of an error
    /// message, even if nothing in them is used by name.
    fn show_passages(&mut self, id: FileId, task: &str, limit: usize) {
        for passage in find_passages(&self.project.source(id).text, task) {
            self.show(id, &[passage], limit);
        }
    }

    /// Shows where the output reports errors, in one file or in all files.
    pub(super) fn show_locations(&mut self, only: Option<FileId>, percent: usize) {
        let limit = self.percent(percent);
        for &(id, line) in &self.failure.locations {
            if only.is_some_and(|only| only != id) || self.project.path(id) == self.test_path {
                continue;
            }
            self.show(
                id,
                &[line.saturating_sub(12)..line.saturating_add(12)],
                limit,
            );
            if let Some(item) = self.project.source(id).innermost_at(line) {
                self.show_definition(Found { file: id, item }, self.percent(16), limit);
            }
        }
    }

    /// Shows an existing test as an example: whole, or its start, the passages about the task, and
    /// its end.
    pub(super) fn show_example(&mut self, id: FileId) {
        let limit = (self.page.used() + self.percent(35)).min(self.percent(92));
        let source = self.project.source(id);
        let end = source.text.lines().count();
        if !self.show(id, &[WHOLE], limit) {
            self.show(id, &[0..30, end.saturating_sub(12)..end], limit);
            self.show_passages(id, self.request.caller_text, limit);
        }
    }

    /// Shows a fair share of each definition that the test uses, so that a large one does not
    /// displace the others, and then the remaining lines. Names that the output reports as missing
    /// may be defined elsewhere.
    pub(super) fn show_definitions(&mut self, used: &UsedNames<'p>) {
        const MAX_ELSEWHERE: usize = 3;
        let mut all = UsedNames::default();
        all.add(self.likely.definitions.iter().take(NEIGHBOURS).copied());
        all.add(used.definitions.iter().copied());
        for name in &self.failure.missing {
            let found = self.project.definitions_of(name).take(MAX_ELSEWHERE + 1);
            let found: Vec<Found<'p>> = found.collect();
            if found.len() <= MAX_ELSEWHERE {
                all.add(found);
            }
        }
        // Names used only outside the failing tests come last.
        let failing: HashSet<&str> = words(&self.failure.text).collect();
        let mut definitions = all.definitions;
        definitions.sort_by_key(|found| !failing.contains(found.item.name.as_str()));
        let window = self.request.window_bytes;
        let share = window.saturating_sub(self.page.used()) / definitions.len().max(1);
        for found in &definitions {
            self.show_definition(*found, share, window);
        }
        for Found { file, item } in &definitions {
            self.show(*file, std::slice::from_ref(&item.lines), window);
        }
        for id in unique(used.missing.iter().flatten().copied()) {
            self.show_part(id, WHOLE, 0, window, self.percent(75));
        }
    }

    fn show_definition(&mut self, found: Found<'p>, share: usize, limit: usize) {
        let Definition { lines, at, .. } = found.item;
        self.show_part(found.file, lines.clone(), *at, share, limit);
    }

    /// Shows as much of a part as its share allows: all of it, its head with the relevant members,
    /// or its first lines. The line `at` with the name matters most.
    fn show_part(
        &mut self,
        id: FileId,
        lines: Range<usize>,
        at: usize,
        share: usize,
        limit: usize,
    ) {
        let share = limit.min(self.page.used() + share);
        if self.show(id, std::slice::from_ref(&lines), share)
            || self.show(id, &self.condensed(id, &lines, at), share)
        {
            return;
        }
        if self.show(id, &[lines.start..at + 1], share) || self.show(id, &[at..at + 1], limit) {
            for next in (at + 1..lines.end).take(MAX_FIRST_LINES) {
                if !self.show(id, &[next..next + 1], share) {
                    break;
                }
            }
        }
    }

    /// The head of a part, the members that the test mentions, and the first line of the other
    /// members.
    fn condensed(&self, id: FileId, lines: &Range<usize>, at: usize) -> Vec<Range<usize>> {
        let items = self.project.source(id).definitions();
        let members = items.iter().filter(|i| i.at > at && lines.contains(&i.at));
        let head_end = members
            .clone()
            .map(|i| i.lines.start)
            .min()
            .unwrap_or(lines.end);
        let members = members.map(|i| match self.mentioned.contains(i.name.as_str()) {
            true => i.lines.clone(),
            false => i.at..i.at + 1,
        });
        members
            .chain([lines.start..head_end, lines.end - 1..lines.end])
            .collect()
    }

    pub(super) fn show_manifest(&mut self, path: &'p str, text: &'p str) {
        let limit = (self.page.used() + self.percent(6)).min(self.percent(95));
        let _ = self.page.add(path, text, &[WHOLE], limit)
            || self.page.add(path, text, &[0..12], limit);
    }

    /// Fills the remaining space with the likely files: small ones whole, then others whole where
    /// they fit, otherwise more lines around those already shown.
    pub(super) fn fill_remaining(&mut self) {
        for &id in self.likely.files.iter().take(NEIGHBOURS) {
            if self.is_small(id) {
                self.show(id, &[WHOLE], self.percent(90));
            }
        }
        let limit = self.percent(95);
        let mut unfinished: Vec<FileId> = self.likely.files.iter().copied().take(LIKELY).collect();
        unfinished.retain(|id| !self.show(*id, &[WHOLE], limit));
        // Take turns, so that one long file does not use all the space.
        while !unfinished.is_empty() {
            unfinished.retain(|id| {
                let adjacent = self.page.adjacent_lines(self.project.path(*id));
                let mut has_grown = false;
                for part in adjacent {
                    has_grown |= self.show(*id, &[part], limit);
                }
                has_grown
            });
        }
    }

    /// Adds the outline of files that are not shown, the most similar first.
    pub(super) fn finish(mut self, ranked: &[(FileId, f64)]) -> PackedFiles {
        let mut outlined = Vec::new();
        for source in ranked.iter().map(|(id, _)| self.project.source(*id)) {
            let path = source.path.as_str();
            if self.page.contains(path) || path == self.test_path {
                continue;
            }
            let lines: Vec<&str> = source.text.lines().collect();
            let is_listed = |i: &&Definition| i.depth < 2 && i.kind != DefinitionKind::Extension;
            let items = source
                .definitions()
                .iter()
                .filter(is_listed)
                .take(MAX_SIGNATURES);
            let signatures = items.filter_map(|i| Some((i.at, *lines.get(i.at)?)));
            if self.page.add_outline(path, signatures) {
                outlined.push(path);
            } else {
                // The page is full.
                break;
            }
        }
        let holds_test = self.request.test_source.is_empty() || self.page.contains(self.test_path);
        let (text, shown) = self.page.finish();
        let paths = self.project.ids().map(|id| self.project.path(id));
        let is_left_out = |path: &&str| !shown.contains(path) && !outlined.contains(path);
        PackedFiles {
            text,
            left_out: paths.filter(is_left_out).count(),
            shown: shown.into_iter().map(PathBuf::from).collect(),
            outlined: outlined.into_iter().map(PathBuf::from).collect(),
            holds_test,
        }
    }
}
