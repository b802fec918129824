//! Which files is a model shown that can ask for none? The test, then the file that will most likely be changed, whole or
//! around the definitions in question; definitions of what the test imports, what the runner named, the neighbours, an
//! outline of the rest and the manifest, packed to the room there is.
//! Reads files beneath the root and nothing else. Does not know models, prompts or phases.

#![expect(
    clippy::single_range_in_vec_init,
    reason = "one range of lines is a list of one"
)]

mod fill;
mod find;
mod focus;
mod likely;
mod output;
mod passage;
mod rank;
mod said;
mod sheet;
mod shown_sources;
mod shown_tests;
mod source;
mod tree;

pub use output::cut as cut_output;

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use find::{Finder, WantedName};
use sheet::Sheet;
use source::Source;
use supervisor_languages::{
    Definition as Item, DefinitionKind as Kind, Language, ProjectFiles as _, parent,
};
use tree::{Id, Tree};

/// What is known when files are chosen.
#[derive(Debug, Clone, Copy)]
pub struct PackRequest<'a> {
    pub root: &'a Path,
    pub ecosystem: Option<&'static Language>,
    /// Relative to the root. The test is the first file shown.
    pub test_path: &'a Path,
    /// The file as it is, or the part of it that matters; empty if there is none yet.
    pub test_source: &'a str,
    pub failing_output: &'a str,
    /// The tests that are to pass, as the runner calls them; empty if that is not known.
    pub failing: &'a [String],
    /// What the caller wrote: the specification, the context. Files and names in it are meant.
    pub named: &'a str,
    /// Files the caller named, such as where the implementation goes. Relative to the root.
    pub also: &'a [PathBuf],
    /// Files that recent commits changed together with the test, relative to the root, and how much that says.
    pub together: &'a [(PathBuf, f64)],
    /// Room for the files, in bytes.
    pub window_bytes: usize,
}

/// The files as text, and which they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedFiles {
    /// Never longer than the window. Untrusted, as the files are.
    pub text: String,
    /// Shown, whole or in parts.
    pub shown: Vec<PathBuf>,
    /// Only their signatures.
    pub outlined: Vec<PathBuf>,
    /// Sources of which nothing is shown.
    pub left_out: usize,
    /// Is the test there at all? Without it nothing can be asked.
    pub holds_test: bool,
}

/// Chooses files for a test and packs them.
pub fn files(request: &PackRequest<'_>) -> PackedFiles {
    let lang = language_of(request.ecosystem, request.test_path);
    let tree = Tree::open(request.root, lang);
    let test_path = tree::relative(request.test_path).unwrap_or_default();
    let manifest = manifest(&tree, &test_path);
    let test = lang.map(|l| Source::new(l, &test_path, request.test_source.to_owned()));
    let mut plan = Plan::new(&tree, request, test.as_ref());
    plan.show_test(&test_path);
    plan.rank(&test_path);
    if let (Some(lang), Some(test)) = (tree.lang(), &test) {
        let finder = Finder::new(&tree);
        let mut wants = finder.wanted(lang, &test_path, test);
        plan.likely(&finder, &wants, &test_path, test);
        plan.show_example(&test_path);
        plan.missing(&finder, &mut wants);
        let red: HashSet<&str> = source::words(&plan.red_text).collect();
        wants.sort_by_key(
            |want| matches!(want, WantedName::Defined { name, .. } if !red.contains(name.as_str())),
        );
        drop(red);
        plan.definitions(&wants, &test_path);
    }
    plan.grow(&test_path);
    plan.neighbours(&test_path);
    if let Some((path, text)) = &manifest {
        plan.manifest(path, text);
    }
    plan.fill();
    plan.finish()
}

/// The places that a text points at, as they are written there.
pub fn places(output: &str) -> Vec<(String, usize)> {
    said::read(output).places
}

/// Could this file be among those chosen?
pub fn shows(language: Option<&'static Language>, test_path: &Path, path: &Path) -> bool {
    let lang = language_of(language, test_path);
    Language::of_path(path).is_some_and(|own| lang.is_none_or(|lang| lang == own))
}

/// The language of the test; where there is none yet, the project's.
fn language_of(project: Option<&'static Language>, test_path: &Path) -> Option<&'static Language> {
    Language::of_path(test_path).or(project)
}

/// The nearest manifest above the test.
fn manifest(tree: &Tree, test_path: &str) -> Option<(String, String)> {
    let above = |m: &&String| {
        let dir = parent(m);
        dir.is_empty()
            || test_path
                .strip_prefix(dir)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    let path = tree
        .manifests()
        .iter()
        .filter(above)
        .max_by_key(|m| m.matches('/').count())?;
    Some((path.clone(), tree.read(path)?))
}

struct Plan<'p> {
    tree: &'p Tree,
    request: &'p PackRequest<'p>,
    sheet: Sheet<'p>,
    /// Names the test mentions: of a large type, these members are shown.
    mentioned: HashSet<&'p str>,
    /// Files of which more would help, the most useful first.
    wanted: Vec<Id>,
    ranked: Vec<(Id, f64)>,
    /// Files that may be changed, the likeliest first.
    likely_files: Vec<Id>,
    said: said::OutputHints,
    /// The lines of the test file that fail; empty if that is not known.
    red: Vec<Range<usize>>,
    /// Their text, with what they use of the file's own helpers.
    red_text: String,
    /// The file that will most likely be changed.
    target: Option<Id>,
}

impl<'p> Plan<'p> {
    fn new(tree: &'p Tree, request: &'p PackRequest<'p>, test: Option<&'p Source>) -> Self {
        let mentioned = source::words(test.map_or("", |t| t.masked())).collect();
        let said = said::read(request.failing_output);
        let path = tree::relative(request.test_path).unwrap_or_default();
        let whole = tree.at(&path).and_then(|id| tree.source(id)).or(test);
        let red = whole
            .map(|test| red_parts(request, &said, &path, test))
            .unwrap_or_default();
        let red_text = whole
            .map(|test| focus::text_with_helpers(test, &red))
            .unwrap_or_default();
        Self {
            tree,
            request,
            sheet: Sheet::new(request.window_bytes),
            mentioned,
            wanted: Vec::new(),
            ranked: Vec::new(),
            likely_files: Vec::new(),
            said,
            red,
            red_text,
            target: None,
        }
    }

    fn room(&self, percent: usize) -> usize {
        self.request.window_bytes.saturating_mul(percent) / 100
    }

    fn want(&mut self, id: Id) {
        if !self.wanted.contains(&id) {
            self.wanted.push(id);
        }
    }

    /// Names that the runner says are missing, where they are defined after all.
    fn missing(&self, finder: &Finder<'p>, wants: &mut Vec<WantedName>) {
        for name in &self.said.missing {
            let more: Vec<WantedName> = finder
                .anywhere(name, 3)
                .into_iter()
                .filter(|w| !wants.contains(w))
                .collect();
            wants.extend(more);
        }
    }

    /// First a fair share of each definition, so that one giant does not push out the rest; then what is missing of them.
    fn definitions(&mut self, wants: &[WantedName], test_path: &str) {
        // What only the rest of the file uses leaves room for what is meant.
        let red: HashSet<&str> = source::words(&self.red_text).collect();
        let limits: Vec<usize> = wants
            .iter()
            .map(|want| match want {
                WantedName::Defined { name, .. }
                    if !red.is_empty() && !red.contains(name.as_str()) =>
                {
                    75
                }
                _ => 100,
            })
            .collect();
        drop(red);
        let defined = wants
            .iter()
            .filter(|w| matches!(w, WantedName::Defined { .. }))
            .count()
            .max(1);
        let share = self.request.window_bytes.saturating_sub(self.sheet.used()) / defined;
        for (want, limit) in wants.iter().zip(&limits) {
            if let WantedName::Defined {
                file, lines, at, ..
            } = want
            {
                self.part(*file, lines, *at, share, *limit);
            }
        }
        for (want, limit) in wants.iter().zip(&limits) {
            if let WantedName::Defined { file, lines, .. } = want {
                self.show(*file, std::slice::from_ref(lines), *limit);
                self.want(*file);
            }
        }
        for want in wants {
            if let WantedName::Missing { home } = want {
                for id in home.iter().copied() {
                    self.whole_or_outline(id);
                    self.want(id);
                }
            }
        }
        for want in wants {
            if let WantedName::Defined { file, name, .. } = want {
                self.members(*file, name);
            }
        }
        self.named_by_runner(test_path);
    }

    fn show(&mut self, id: Id, lines: &[Range<usize>], percent: usize) -> bool {
        let Some(source) = self.tree.source(id) else {
            return false;
        };
        let limit = self.room(percent);
        self.sheet
            .add(self.tree.path(id), &source.text, lines, limit)
    }

    /// As much of a definition as its share allows: whole, or its head with the members that matter, or its first lines.
    fn part(&mut self, id: Id, lines: &Range<usize>, at: usize, share: usize, percent: usize) {
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
        let condensed = self.condensed(source, lines, at);
        if condensed.iter().map(size).sum::<usize>() <= share && self.show(id, &condensed, percent)
        {
            return;
        }
        let mut end = lines.end.min(at + 1);
        while end < lines.end && size(&(lines.start..end + 1)) <= share {
            end += 1;
        }
        // Without its comment, if need be: the line that names it matters most.
        let _ = self.show(id, &[lines.start..end], percent)
            || self.show(id, &[at..end], percent)
            || self.show(id, &[at..at + 1], percent);
    }

    /// The head of a definition, the members that the test mentions, and the first line of the others.
    fn condensed(&self, source: &Source, lines: &Range<usize>, at: usize) -> Vec<Range<usize>> {
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

    /// Methods of a type, where they are written apart from it and the test mentions them.
    fn members(&mut self, id: Id, name: &str) {
        let Some(source) = self.tree.source(id) else {
            return;
        };
        let own = |i: &&Item| {
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
            .filter(own)
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

    fn whole_or_outline(&mut self, id: Id) {
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
            .filter(|i| i.kind.is_plain() && self.mentioned.contains(i.name.as_str()))
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

    /// Where the runner says that something went wrong.
    fn named_by_runner(&mut self, test_path: &str) {
        for (path, line) in self.said.places.clone() {
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
            let near = line.saturating_sub(8)..line + 8;
            let lines = source
                .around(line)
                .map_or(near.clone(), |i| i.lines.clone());
            let _ = self.show(id, &[lines], 85) || self.show(id, &[near], 85);
            self.want(id);
        }
    }

    /// Small files are better whole: first the one that will be changed, last the test, of which enough is there.
    fn grow(&mut self, test_path: &str) {
        let mut wanted = self.wanted.clone();
        wanted.sort_by_key(|id| (self.tree.path(*id) == test_path, self.target != Some(*id)));
        for id in wanted {
            self.show(id, &[0..usize::MAX], 75);
        }
    }

    fn manifest(&mut self, path: &'p str, text: &'p str) {
        let limit = self.room(95).min(self.sheet.used() + self.room(6));
        let _ = self.sheet.add(path, text, &[0..usize::MAX], limit)
            || self.sheet.add(path, text, &[0..12], limit);
    }

    fn rank(&mut self, test_path: &str) {
        let said = format!("{}\n{}", self.request.failing_output, self.request.named);
        let texts = match self.red_text.as_str() {
            "" => vec![(self.request.test_source, 2.0), (said.as_str(), 1.0)],
            red => vec![
                (self.request.test_source, 0.5),
                (said.as_str(), 1.0),
                (red, 2.0),
            ],
        };
        self.ranked = rank::by_likeness(self.tree, test_path, &texts);
    }

    /// The files most likely meant, and those most like the test, as long as they are small.
    fn neighbours(&mut self, test_path: &str) {
        for id in self.likely_files.clone().into_iter().take(12) {
            if self
                .tree
                .source(id)
                .is_some_and(|s| s.text.len() < self.request.window_bytes / 6)
            {
                self.show(
                    id,
                    &[0..usize::MAX],
                    if self.red.is_empty() { 80 } else { 92 },
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

    fn is_test(&self, id: Id) -> bool {
        supervisor_verify::sealed::role(self.request.ecosystem, Path::new(self.tree.path(id)))
            .belongs_to_tests()
    }

    fn finish(mut self) -> PackedFiles {
        let test_path = tree::relative(self.request.test_path).unwrap_or_default();
        let mut outlined = Vec::new();
        let mut refused = 0;
        for (id, _) in std::mem::take(&mut self.ranked) {
            let path = self.tree.path(id);
            if self.sheet.has(path) || path == test_path {
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
            if self.sheet.outline(path, &signatures) {
                outlined.push(PathBuf::from(path));
            } else {
                // The page is full; what is left is counted.
                refused += 1;
                if refused > 8 {
                    break;
                }
            }
        }
        let sources = self
            .tree
            .ids()
            .filter(|id| self.tree.path(*id) != test_path)
            .count();
        let holds_test = self.request.test_source.is_empty() || self.sheet.has(&test_path);
        let (text, shown) = self.sheet.finish();
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

/// The lines of the test that fail.
fn red_parts(
    request: &PackRequest<'_>,
    said: &said::OutputHints,
    path: &str,
    test: &Source,
) -> Vec<Range<usize>> {
    let of_test = said
        .places
        .iter()
        .filter(|(place, _)| place == path || ends_with(place, path));
    let lines: Vec<usize> = of_test.map(|(_, line)| *line).collect();
    focus::failing_parts(test, request.failing, &lines)
}

fn ends_with(long: &str, short: &str) -> bool {
    long.strip_suffix(short)
        .is_some_and(|before| before.ends_with('/'))
}
