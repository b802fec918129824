//! Which files is a model shown that can ask for none? Definitions of what the test imports come first, then where the
//! work is expected, what the runner named, the neighbours, the manifest, and an outline of the rest, packed to the
//! room there is.
//! Reads files beneath the root and nothing else. Does not know models, prompts or phases.

#![expect(clippy::single_range_in_vec_init, reason = "one range of lines is a list of one")]

mod find;
mod imports;
mod items;
mod lang;
mod modules;
mod rank;
mod said;
mod sheet;
mod tree;

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::verify::Ecosystem;
use find::{Finder, Want};
use items::{Item, Kind, Source};
use lang::Lang;
use sheet::Sheet;
use tree::{Id, Tree};

/// What is known when files are chosen.
#[derive(Debug, Clone, Copy)]
pub struct PackRequest<'a> {
    pub root: &'a Path,
    pub ecosystem: Option<Ecosystem>,
    /// Relative to the root. The test is the first file shown.
    pub test_path: &'a Path,
    /// The file as it is, or the part of it that matters; empty if there is none yet.
    pub test_source: &'a str,
    pub failing_output: &'a str,
    /// Files the caller named, such as where the implementation goes. Relative to the root.
    pub also: &'a [PathBuf],
    /// Room for the files, in bytes.
    pub window_bytes: usize,
}

/// The files as text, and which they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed {
    /// Never longer than the window. Untrusted, as the files are.
    pub text: String,
    /// Shown, whole or in parts.
    pub shown: Vec<PathBuf>,
    /// Only their signatures.
    pub outlined: Vec<PathBuf>,
    /// Sources of which nothing is shown.
    pub left_out: usize,
}

/// Chooses files for a test and packs them.
pub fn files(request: &PackRequest<'_>) -> Packed {
    let lang = Lang::of_project(request.ecosystem, request.test_path);
    let tree = Tree::open(request.root, lang);
    let test_path = tree::relative(request.test_path).unwrap_or_default();
    let manifest = manifest(&tree, &test_path);
    let test = lang.map(|l| Source::new(l, request.test_source.to_owned()));
    let mut plan = Plan::new(&tree, request, test.as_ref());
    plan.test(&test_path);
    if let (Some(lang), Some(test)) = (tree.lang(), &test) {
        plan.definitions(&Finder::new(&tree), lang, &test_path, test);
    }
    plan.grow();
    if let Some((path, text)) = &manifest {
        plan.manifest(path, text);
    }
    plan.rank(&test_path);
    plan.example();
    plan.neighbours(&test_path);
    plan.finish()
}

/// The places that a text points at, as they are written there.
pub(in crate::skills) fn places(output: &str) -> Vec<(String, usize)> {
    said::read(output).places
}

/// Could this file be among those chosen?
pub(in crate::skills) fn shows(ecosystem: Option<Ecosystem>, test_path: &Path, path: &Path) -> bool {
    let lang = Lang::of_project(ecosystem, test_path);
    Lang::of(&path.to_string_lossy()).is_some_and(|own| lang.is_none_or(|lang| lang == own))
}

/// The nearest manifest above the test.
fn manifest(tree: &Tree, test_path: &str) -> Option<(String, String)> {
    let above = |m: &&String| {
        let dir = tree::parent(m);
        dir.is_empty() || test_path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
    };
    let path = tree.manifests().iter().filter(above).max_by_key(|m| m.matches('/').count())?;
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
    ranked: Option<Vec<(Id, f64)>>,
    said: said::Said,
}

impl<'p> Plan<'p> {
    fn new(tree: &'p Tree, request: &'p PackRequest<'p>, test: Option<&'p Source>) -> Self {
        let mentioned = lang::words(test.map_or("", |t| &t.masked)).collect();
        let said = said::read(request.failing_output);
        Self {
            tree,
            request,
            sheet: Sheet::new(request.window_bytes),
            mentioned,
            wanted: Vec::new(),
            ranked: None,
            said,
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

    /// The test whole, or what it takes from others and where it fails.
    fn test(&mut self, path: &'p str) {
        let on_disk = self.tree.at(path).and_then(|id| self.tree.source(id));
        let text = on_disk.map_or(self.request.test_source, |s| &s.text);
        if text.is_empty() || path.is_empty() || self.sheet.add(path, text, &[0..usize::MAX], self.room(40)) {
            return;
        }
        let failing = self.said.places.iter().filter(|(place, _)| place == path || ends_with(place, path));
        let failing = failing.map(|(_, line)| line.saturating_sub(20)..line + 10);
        let given = text.find(self.request.test_source).map_or(0, |at| text[..at].lines().count());
        for (lines, limit) in [(0..20, 15), (given..given + 40, 25)].into_iter().chain(failing.map(|f| (f, 35))) {
            self.sheet.add(path, text, &[lines], self.room(limit));
        }
    }

    /// First a fair share of each definition, so that one giant does not push out the rest; then what is missing of them.
    fn definitions(&mut self, finder: &Finder<'p>, lang: Lang, test_path: &str, test: &Source) {
        let mut wants = finder.wanted(lang, test_path, test);
        let given: Vec<Id> = self.request.also.iter().filter_map(|p| self.tree.at(&tree::relative(p)?)).collect();
        for name in self.said.missing.clone() {
            wants.extend(finder.anywhere(&name, 3).into_iter().filter(|w| !wants.contains(w)).collect::<Vec<_>>());
        }
        let defined = wants.iter().filter(|w| matches!(w, Want::Defined { .. })).count().max(1);
        let share = self.request.window_bytes.saturating_sub(self.sheet.used()) / defined;
        for want in &wants {
            if let Want::Defined { file, lines, at, .. } = want {
                self.part(*file, lines, *at, share);
            }
        }
        for want in &wants {
            if let Want::Defined { file, lines, .. } = want {
                self.show(*file, std::slice::from_ref(lines), 100);
                self.want(*file);
            }
        }
        for id in given {
            self.whole_or_outline(id);
            self.want(id);
        }
        for want in &wants {
            if let Want::Missing { home } = want {
                for id in home.iter().copied() {
                    self.whole_or_outline(id);
                    self.want(id);
                }
            }
        }
        for want in &wants {
            if let Want::Defined { file, name, .. } = want {
                self.members(*file, name);
            }
        }
        self.named_by_runner(test_path);
    }

    fn show(&mut self, id: Id, lines: &[Range<usize>], percent: usize) -> bool {
        let Some(source) = self.tree.source(id) else { return false };
        let limit = self.room(percent);
        self.sheet.add(self.tree.path(id), &source.text, lines, limit)
    }

    /// As much of a definition as its share allows: whole, or its head with the members that matter, or its first lines.
    fn part(&mut self, id: Id, lines: &Range<usize>, at: usize, share: usize) {
        let Some(source) = self.tree.source(id) else { return };
        let sizes: Vec<usize> = source.text.lines().map(|l| l.len().min(400) + 8).collect();
        let size =
            |r: &Range<usize>| sizes.get(r.start..r.end.min(sizes.len())).unwrap_or_default().iter().sum::<usize>();
        if size(lines) <= share && self.show(id, std::slice::from_ref(lines), 100) {
            return;
        }
        let condensed = self.condensed(source, lines, at);
        if condensed.iter().map(size).sum::<usize>() <= share && self.show(id, &condensed, 100) {
            return;
        }
        let mut end = lines.end.min(at + 1);
        while end < lines.end && size(&(lines.start..end + 1)) <= share {
            end += 1;
        }
        // Without its comment, if need be: the line that names it matters most.
        let _ = self.show(id, &[lines.start..end], 100)
            || self.show(id, &[at..end], 100)
            || self.show(id, &[at..at + 1], 100);
    }

    /// The head of a definition, the members that the test mentions, and the first line of the others.
    fn condensed(&self, source: &Source, lines: &Range<usize>, at: usize) -> Vec<Range<usize>> {
        let inside: Vec<&Item> = source.items.iter().filter(|i| i.at > at && lines.contains(&i.at)).collect();
        let head = inside.iter().map(|i| i.lines.start).min().unwrap_or(lines.end);
        let mut parts = vec![lines.start..head, lines.end.saturating_sub(1)..lines.end];
        parts.extend(inside.iter().map(|i| match self.mentioned.contains(i.name.as_str()) {
            true => i.lines.clone(),
            false => i.at..i.at + 1,
        }));
        parts
    }

    /// Methods of a type, where they are written apart from it and the test mentions them.
    fn members(&mut self, id: Id, name: &str) {
        let Some(source) = self.tree.source(id) else { return };
        let own = |i: &&Item| i.owner.as_deref() == Some(name) && i.member && self.mentioned.contains(i.name.as_str());
        let heads = source.items.iter().filter(|i| i.kind == Kind::More && i.name == name).map(|i| i.at..i.at + 1);
        let members: Vec<_> = source.items.iter().filter(own).map(|i| i.lines.clone()).collect();
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
        let Some(source) = self.tree.source(id) else { return };
        let total = source.text.lines().count();
        if self.show(id, &[0..total], 70) {
            return;
        }
        let mentioned: Vec<_> = source
            .items
            .iter()
            .filter(|i| i.kind == Kind::Plain && self.mentioned.contains(i.name.as_str()))
            .map(|i| i.lines.clone())
            .collect();
        let signatures: Vec<_> = source.items.iter().map(|i| i.at..i.at + 1).collect();
        for parts in [[signatures.as_slice(), &mentioned].concat(), signatures, vec![0..total.min(40)]] {
            if self.show(id, &parts, 80) {
                return;
            }
        }
    }

    /// Where the runner says that something went wrong.
    fn named_by_runner(&mut self, test_path: &str) {
        for (path, line) in self.said.places.clone() {
            let found = self.tree.ids().find(|id| path == self.tree.path(*id) || ends_with(&path, self.tree.path(*id)));
            let Some(id) = found.filter(|id| self.tree.path(*id) != test_path) else { continue };
            let Some(source) = self.tree.source(id) else { continue };
            let line = line.saturating_sub(1);
            let near = line.saturating_sub(8)..line + 8;
            let lines = source.around(line).map_or(near.clone(), |i| i.lines.clone());
            let _ = self.show(id, &[lines], 85) || self.show(id, &[near], 85);
            self.want(id);
        }
    }

    /// Small files are better whole.
    fn grow(&mut self) {
        for id in self.wanted.clone() {
            self.show(id, &[0..usize::MAX], 75);
        }
    }

    fn manifest(&mut self, path: &'p str, text: &'p str) {
        let limit = self.room(90).min(self.sheet.used() + self.room(10));
        let _ = self.sheet.add(path, text, &[0..usize::MAX], limit) || self.sheet.add(path, text, &[0..12], limit);
    }

    fn rank(&mut self, test_path: &str) {
        let likeness = rank::by_likeness(self.tree, test_path, self.request.test_source, self.request.failing_output);
        self.ranked = Some(likeness);
    }

    /// Whoever writes the first test sees how tests are written here, and may add to them: the one most like what is
    /// asked for, whole or its beginning and its last lines.
    fn example(&mut self) {
        let ranked = self.ranked.as_deref().unwrap_or_default();
        let holds = |id: &Id| self.is_test(*id) && self.tree.source(*id).is_some_and(|s| !s.text.trim().is_empty());
        let found = ranked.iter().map(|(id, _)| *id).find(holds);
        let Some(id) = found.filter(|_| self.request.test_source.is_empty()) else { return };
        if !self.show(id, &[0..usize::MAX], 40) {
            let lines = self.tree.source(id).map_or(0, |s| s.text.lines().count());
            self.show(id, &[0..30, lines.saturating_sub(20)..lines], 30);
        }
    }

    /// The files most like the test, as long as they are small.
    fn neighbours(&mut self, test_path: &str) {
        let ranked = self.ranked.take().unwrap_or_default();
        for (id, score) in ranked.iter().take(12) {
            let source = self.tree.source(*id).filter(|s| s.text.len() < self.request.window_bytes / 8);
            if *score > 0.0 && source.is_some() && self.tree.path(*id) != test_path && !self.is_test(*id) {
                self.show(*id, &[0..usize::MAX], 80);
            }
        }
        self.ranked = Some(ranked);
    }

    fn is_test(&self, id: Id) -> bool {
        crate::verify::sealed::role(self.request.ecosystem, Path::new(self.tree.path(id))).belongs_to_tests()
    }

    fn finish(mut self) -> Packed {
        let test_path = tree::relative(self.request.test_path).unwrap_or_default();
        let mut outlined = Vec::new();
        for (id, _) in self.ranked.take().unwrap_or_default() {
            let path = self.tree.path(id);
            if self.sheet.has(path) || path == test_path {
                continue;
            }
            let Some(source) = self.tree.source(id) else { continue };
            let lines: Vec<&str> = source.text.lines().collect();
            let seen = source.items.iter().filter(|i| i.depth < 2 && i.kind != Kind::More).take(12);
            let signatures: Vec<(usize, &str)> = seen.filter_map(|i| Some((i.at, *lines.get(i.at)?))).collect();
            if self.sheet.outline(path, &signatures) {
                outlined.push(PathBuf::from(path));
            }
        }
        let sources = self.tree.ids().filter(|id| self.tree.path(*id) != test_path).count();
        let (text, shown) = self.sheet.finish();
        let of_sources = shown.iter().filter(|p| self.tree.at(p).is_some()).count();
        let shown = shown.into_iter().map(PathBuf::from).collect();
        Packed { text, shown, left_out: sources.saturating_sub(of_sources + outlined.len()), outlined }
    }
}

fn ends_with(long: &str, short: &str) -> bool {
    long.strip_suffix(short).is_some_and(|before| before.ends_with('/'))
}
