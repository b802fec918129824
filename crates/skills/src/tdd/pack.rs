//! Chooses the files to show to a model that cannot open files itself, and packs them into a byte
//! limit: the test, the file that will most likely be changed, definitions that the test imports,
//! locations that the runner named, neighbouring files, the manifest and an outline of the rest.
//! [`files`] is the entry point. Only files beneath the project root are read.

#![expect(
    clippy::single_range_in_vec_init,
    reason = "a slice of one line range is intended"
)]

mod fill;
mod find;
mod focus;
mod likely_files;
mod output;
mod passage;
mod prompt_page;
mod rank;
mod runner_output_refs;
mod shown_sources;
mod shown_tests;
mod source;
mod tree;

pub use output::cut as cut_output;

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use find::{Finder, WantedName};
use prompt_page::PromptPage;
use source::SourceFile;
use supervisor_languages::{
    Definition as Item, DefinitionKind as Kind, Language, ProjectFiles as _, parent,
};
use tree::{FileId, SourceTree};

/// Input for choosing files.
#[derive(Debug, Clone, Copy)]
pub struct PackRequest<'a> {
    pub root: &'a Path,
    pub ecosystem: Option<&'static Language>,
    /// Relative to the root. The test is the first file shown.
    pub test_path: &'a Path,
    /// The whole file or its relevant part; empty if there is no test yet.
    pub test_source: &'a str,
    pub failing_output: &'a str,
    /// Names of the tests that must pass, as the runner writes them; empty if unknown.
    pub failing: &'a [String],
    /// Text written by the caller, such as specification and context. Files and names in it are
    /// relevant.
    pub caller_text: &'a str,
    /// Files named by the caller, for example where the implementation goes. Relative to the root.
    pub extra_files: &'a [PathBuf],
    /// Files that recent commits changed together with the test, relative to the root, with a
    /// weight.
    pub co_changed: &'a [(PathBuf, f64)],
    /// Space for the files, in bytes.
    pub window_bytes: usize,
}

/// The chosen files as text, and their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedFiles {
    /// Never longer than the limit. Untrusted, like the files.
    pub text: String,
    /// Files shown, whole or in part.
    pub shown: Vec<PathBuf>,
    /// Files shown only by their signatures.
    pub outlined: Vec<PathBuf>,
    /// Number of source files that are not shown at all.
    pub left_out: usize,
    /// Whether the test is included. Without it no question can be asked.
    pub holds_test: bool,
}

/// Chooses files for a test and packs them.
pub fn files(request: &PackRequest<'_>) -> PackedFiles {
    let lang = language_of(request.ecosystem, request.test_path);
    let tree = SourceTree::open(request.root, lang);
    let test_path = tree::relative(request.test_path).unwrap_or_default();
    let manifest = nearest_manifest(&tree, &test_path);
    let test = lang.map(|l| SourceFile::new(l, &test_path, request.test_source.to_owned()));
    let mut plan = PackPlan::new(&tree, request, test.as_ref());
    plan.show_test(&test_path);
    plan.rank_files(&test_path);
    if let (Some(lang), Some(test)) = (tree.lang(), &test) {
        let finder = Finder::new(&tree);
        let mut wants = finder.wanted(lang, &test_path, test);
        plan.show_likely_files(&finder, &wants, &test_path, test);
        plan.show_example(&test_path);
        plan.add_missing_names(&finder, &mut wants);
        let failing_words: HashSet<&str> = source::words(&plan.failing_text).collect();
        wants.sort_by_key(
            |want| matches!(want, WantedName::Defined { name, .. } if !failing_words.contains(name.as_str())),
        );
        drop(failing_words);
        plan.show_definitions(&wants, &test_path);
    }
    plan.show_whole_files(&test_path);
    plan.show_neighbours(&test_path);
    if let Some((path, text)) = &manifest {
        plan.show_manifest(path, text);
    }
    plan.fill_remaining();
    plan.finish()
}

/// File locations that a text refers to, as written there.
pub fn locations(output: &str) -> Vec<(String, usize)> {
    runner_output_refs::read_hints(output).locations
}

/// Whether this file could be among the chosen ones.
pub fn is_candidate(language: Option<&'static Language>, test_path: &Path, path: &Path) -> bool {
    let lang = language_of(language, test_path);
    Language::of_path(path).is_some_and(|own| lang.is_none_or(|lang| lang == own))
}

/// The language of the test; if there is none yet, the project's.
fn language_of(project: Option<&'static Language>, test_path: &Path) -> Option<&'static Language> {
    Language::of_path(test_path).or(project)
}

/// The nearest manifest in a directory above the test.
fn nearest_manifest(tree: &SourceTree, test_path: &str) -> Option<(String, String)> {
    let is_above = |m: &&String| {
        let dir = parent(m);
        dir.is_empty()
            || test_path
                .strip_prefix(dir)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    let path = tree
        .manifests()
        .iter()
        .filter(is_above)
        .max_by_key(|m| m.matches('/').count())?;
    Some((path.clone(), tree.read(path)?))
}

struct PackPlan<'p> {
    tree: &'p SourceTree,
    request: &'p PackRequest<'p>,
    page: PromptPage<'p>,
    /// Names the test mentions. Of a large type, only these members are shown in full.
    mentioned: HashSet<&'p str>,
    /// Files worth showing more of, the most useful first.
    wanted: Vec<FileId>,
    ranked: Vec<(FileId, f64)>,
    /// Files that may be changed, the likeliest first.
    likely_files: Vec<FileId>,
    hints: runner_output_refs::OutputHints,
    /// Line ranges of the failing tests; empty if unknown.
    failing_lines: Vec<Range<usize>>,
    /// Their text, with the helpers they use from the same file.
    failing_text: String,
    /// The file that will most likely be changed.
    target: Option<FileId>,
}

impl<'p> PackPlan<'p> {
    fn new(
        tree: &'p SourceTree,
        request: &'p PackRequest<'p>,
        test: Option<&'p SourceFile>,
    ) -> Self {
        let mentioned = source::words(test.map_or("", |t| t.masked())).collect();
        let hints = runner_output_refs::read_hints(request.failing_output);
        let path = tree::relative(request.test_path).unwrap_or_default();
        let whole = tree.at(&path).and_then(|id| tree.source(id)).or(test);
        let failing_lines = whole
            .map(|test| failing_lines_of(request, &hints, &path, test))
            .unwrap_or_default();
        let failing_text = whole
            .map(|test| focus::text_with_helpers(test, &failing_lines))
            .unwrap_or_default();
        Self {
            tree,
            request,
            page: PromptPage::new(request.window_bytes),
            mentioned,
            wanted: Vec::new(),
            ranked: Vec::new(),
            likely_files: Vec::new(),
            hints,
            failing_lines,
            failing_text,
            target: None,
        }
    }

    fn percent_bytes(&self, percent: usize) -> usize {
        self.request.window_bytes.saturating_mul(percent) / 100
    }

    fn mark_wanted(&mut self, id: FileId) {
        if !self.wanted.contains(&id) {
            self.wanted.push(id);
        }
    }

    /// Adds definitions of names that the runner reports as missing.
    fn add_missing_names(&self, finder: &Finder<'p>, wants: &mut Vec<WantedName>) {
        for name in &self.hints.missing {
            let more: Vec<WantedName> = finder
                .importable_anywhere(name, 3)
                .into_iter()
                .filter(|w| !wants.contains(w))
                .collect();
            wants.extend(more);
        }
    }

    /// Shows a fair share of each definition first, so that a large one does not displace the
    /// others, and then the remaining lines.
    fn show_definitions(&mut self, wants: &[WantedName], test_path: &str) {
        // Names used only outside the failing tests leave space for the others.
        let failing_words: HashSet<&str> = source::words(&self.failing_text).collect();
        let limits: Vec<usize> = wants
            .iter()
            .map(|want| match want {
                WantedName::Defined { name, .. }
                    if !failing_words.is_empty() && !failing_words.contains(name.as_str()) =>
                {
                    75
                }
                _ => 100,
            })
            .collect();
        drop(failing_words);
        let defined = wants
            .iter()
            .filter(|w| matches!(w, WantedName::Defined { .. }))
            .count()
            .max(1);
        let share = self.request.window_bytes.saturating_sub(self.page.used()) / defined;
        for (want, limit) in wants.iter().zip(&limits) {
            if let WantedName::Defined {
                file, lines, at, ..
            } = want
            {
                self.show_part(*file, lines, *at, share, *limit);
            }
        }
        for (want, limit) in wants.iter().zip(&limits) {
            if let WantedName::Defined { file, lines, .. } = want {
                self.show(*file, std::slice::from_ref(lines), *limit);
                self.mark_wanted(*file);
            }
        }
        for want in wants {
            if let WantedName::Missing { candidates } = want {
                for id in candidates.iter().copied() {
                    self.show_whole_or_outline(id);
                    self.mark_wanted(id);
                }
            }
        }
        for want in wants {
            if let WantedName::Defined { file, name, .. } = want {
                self.show_members(*file, name);
            }
        }
        self.show_runner_locations(test_path);
    }

    fn show(&mut self, id: FileId, lines: &[Range<usize>], percent: usize) -> bool {
        let Some(source) = self.tree.source(id) else {
            return false;
        };
        let limit = self.percent_bytes(percent);
        self.page
            .add(self.tree.path(id), &source.text, lines, limit)
    }

    /// Shows as much of a definition as its share allows: all of it, its head with the relevant
    /// members, or its first lines.
    fn show_part(
        &mut self,
        id: FileId,
        lines: &Range<usize>,
        at: usize,
        share: usize,
        percent: usize,
    ) {
        let Some(source) = self.tree.source(id) else {
            return;
        };
        let sizes: Vec<usize> = source.text.lines().map(|l| l.len().min(400) + 8).collect();
        let size = |r: &Range<usize>| {
            sizes
                .get(r.start..r.end.min(sizes.len()))
                .unwrap_or_default()
                .iter()
                .sum::<usize>()
        };
        if size(lines) <= share && self.show(id, std::slice::from_ref(lines), percent) {
            return;
        }
        let condensed = self.condensed_parts(source, lines, at);
        if condensed.iter().map(size).sum::<usize>() <= share && self.show(id, &condensed, percent)
        {
            return;
        }
        let mut end = lines.end.min(at + 1);
        while end < lines.end && size(&(lines.start..end + 1)) <= share {
            end += 1;
        }
        // Drop the doc comment if necessary. The line with the name matters most.
        let _ = self.show(id, &[lines.start..end], percent)
            || self.show(id, &[at..end], percent)
            || self.show(id, &[at..at + 1], percent);
    }

    /// The head of a definition, the members that the test mentions, and the first line of the
    /// other members.
    fn condensed_parts(
        &self,
        source: &SourceFile,
        lines: &Range<usize>,
        at: usize,
    ) -> Vec<Range<usize>> {
        let inside: Vec<&Item> = source
            .items()
            .iter()
            .filter(|i| i.at > at && lines.contains(&i.at))
            .collect();
        let head = inside
            .iter()
            .map(|i| i.lines.start)
            .min()
            .unwrap_or(lines.end);
        let mut parts = vec![lines.start..head, lines.end.saturating_sub(1)..lines.end];
        parts.extend(
            inside
                .iter()
                .map(|i| match self.mentioned.contains(i.name.as_str()) {
                    true => i.lines.clone(),
                    false => i.at..i.at + 1,
                }),
        );
        parts
    }

    /// Shows methods the test mentions that are defined outside the type itself, as in Rust `impl`
    /// blocks.
    fn show_members(&mut self, id: FileId, name: &str) {
        let Some(source) = self.tree.source(id) else {
            return;
        };
        let is_mentioned_member = |i: &&Item| {
            i.owner.as_deref() == Some(name) && i.member && self.mentioned.contains(i.name.as_str())
        };
        let heads = source
            .items()
            .iter()
            .filter(|i| i.kind == Kind::Extension && i.name == name)
            .map(|i| i.at..i.at + 1);
        let members: Vec<_> = source
            .items()
            .iter()
            .filter(is_mentioned_member)
            .map(|i| i.lines.clone())
            .collect();
        if members.is_empty() {
            return;
        }
        let parts: Vec<_> = heads.chain(members.iter().cloned()).collect();
        if !self.show(id, &parts, 95) {
            for part in &parts {
                self.show(id, std::slice::from_ref(part), 95);
            }
        }
    }

    fn show_whole_or_outline(&mut self, id: FileId) {
        let Some(source) = self.tree.source(id) else {
            return;
        };
        let total = source.text.lines().count();
        if self.show(id, &[0..total], 70) {
            return;
        }
        let mentioned: Vec<_> = source
            .items()
            .iter()
            .filter(|i| i.kind.is_leaf() && self.mentioned.contains(i.name.as_str()))
            .map(|i| i.lines.clone())
            .collect();
        let signatures: Vec<_> = source.items().iter().map(|i| i.at..i.at + 1).collect();
        for parts in [
            [signatures.as_slice(), &mentioned].concat(),
            signatures,
            vec![0..total.min(40)],
        ] {
            if self.show(id, &parts, 80) {
                return;
            }
        }
    }

    /// Shows the locations where the runner reports errors.
    fn show_runner_locations(&mut self, test_path: &str) {
        for (path, line) in self.hints.locations.clone() {
            let found = self
                .tree
                .ids()
                .find(|id| path == self.tree.path(*id) || ends_with(&path, self.tree.path(*id)));
            let Some(id) = found.filter(|id| self.tree.path(*id) != test_path) else {
                continue;
            };
            let Some(source) = self.tree.source(id) else {
                continue;
            };
            let line = line.saturating_sub(1);
            let nearby = line.saturating_sub(8)..line + 8;
            let lines = source
                .innermost_at(line)
                .map_or(nearby.clone(), |i| i.lines.clone());
            let _ = self.show(id, &[lines], 85) || self.show(id, &[nearby], 85);
            self.mark_wanted(id);
        }
    }

    /// Shows small files as a whole: the target first and the test last, because enough of the
    /// test is shown already.
    fn show_whole_files(&mut self, test_path: &str) {
        let mut wanted = self.wanted.clone();
        wanted.sort_by_key(|id| (self.tree.path(*id) == test_path, self.target != Some(*id)));
        for id in wanted {
            self.show(id, &[0..usize::MAX], 75);
        }
    }

    fn show_manifest(&mut self, path: &'p str, text: &'p str) {
        let limit = self
            .percent_bytes(95)
            .min(self.page.used() + self.percent_bytes(6));
        let _ = self.page.add(path, text, &[0..usize::MAX], limit)
            || self.page.add(path, text, &[0..12], limit);
    }

    fn rank_files(&mut self, test_path: &str) {
        let mentions = format!(
            "{}\n{}",
            self.request.failing_output, self.request.caller_text
        );
        let texts = match self.failing_text.as_str() {
            "" => vec![(self.request.test_source, 2.0), (mentions.as_str(), 1.0)],
            failing => vec![
                (self.request.test_source, 0.5),
                (mentions.as_str(), 1.0),
                (failing, 2.0),
            ],
        };
        self.ranked = rank::by_similarity(self.tree, test_path, &texts);
    }

    /// Shows small files among the likely ones and those most similar to the test.
    fn show_neighbours(&mut self, test_path: &str) {
        for id in self.likely_files.clone().into_iter().take(12) {
            if self
                .tree
                .source(id)
                .is_some_and(|s| s.text.len() < self.request.window_bytes / 6)
            {
                self.show(
                    id,
                    &[0..usize::MAX],
                    if self.failing_lines.is_empty() {
                        80
                    } else {
                        92
                    },
                );
            }
        }
        for (id, score) in self.ranked.clone().iter().take(12) {
            let source = self
                .tree
                .source(*id)
                .filter(|s| s.text.len() < self.request.window_bytes / 8);
            if *score > 0.0
                && source.is_some()
                && self.tree.path(*id) != test_path
                && !self.is_test(*id)
            {
                self.show(*id, &[0..usize::MAX], 80);
            }
        }
    }

    fn is_test(&self, id: FileId) -> bool {
        supervisor_verify::protected::role(self.request.ecosystem, Path::new(self.tree.path(id)))
            .belongs_to_tests()
    }

    fn finish(mut self) -> PackedFiles {
        let test_path = tree::relative(self.request.test_path).unwrap_or_default();
        let mut outlined = Vec::new();
        let mut not_fitting = 0;
        for (id, _) in std::mem::take(&mut self.ranked) {
            let path = self.tree.path(id);
            if self.page.contains(path) || path == test_path {
                continue;
            }
            let Some(source) = self.tree.source(id) else {
                continue;
            };
            let lines: Vec<&str> = source.text.lines().collect();
            let seen = source
                .items()
                .iter()
                .filter(|i| i.depth < 2 && i.kind != Kind::Extension)
                .take(12);
            let signatures: Vec<(usize, &str)> = seen
                .filter_map(|i| Some((i.at, *lines.get(i.at)?)))
                .collect();
            if self.page.add_outline(path, &signatures) {
                outlined.push(PathBuf::from(path));
            } else {
                // The page is full; the remaining files are only counted.
                not_fitting += 1;
                if not_fitting > 8 {
                    break;
                }
            }
        }
        let sources = self
            .tree
            .ids()
            .filter(|id| self.tree.path(*id) != test_path)
            .count();
        let holds_test = self.request.test_source.is_empty() || self.page.contains(&test_path);
        let (text, shown) = self.page.finish();
        let of_sources = shown.iter().filter(|p| self.tree.at(p).is_some()).count();
        let shown = shown.into_iter().map(PathBuf::from).collect();
        PackedFiles {
            text,
            shown,
            left_out: sources.saturating_sub(of_sources + outlined.len()),
            outlined,
            holds_test,
        }
    }
}

/// Line ranges of the failing tests in the test file.
fn failing_lines_of(
    request: &PackRequest<'_>,
    hints: &runner_output_refs::OutputHints,
    path: &str,
    test: &SourceFile,
) -> Vec<Range<usize>> {
    let in_test = hints
        .locations
        .iter()
        .filter(|(place, _)| place == path || ends_with(place, path));
    let lines: Vec<usize> = in_test.map(|(_, line)| *line).collect();
    focus::failing_parts(test, request.failing, &lines)
}

fn ends_with(path: &str, suffix: &str) -> bool {
    path.strip_suffix(suffix)
        .is_some_and(|before| before.ends_with('/'))
}
