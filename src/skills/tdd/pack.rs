//! Which files is a model shown that can ask for none? The test, then the file that will most likely be changed, whole or
//! around the definitions in question; definitions of what the test imports, what the runner named, the neighbours, an
//! outline of the rest and the manifest, packed to the room there is.
//! Reads files beneath the root and nothing else. Does not know models, prompts or phases.

#![expect(clippy::single_range_in_vec_init, reason = "one range of lines is a list of one")]

mod find;
mod likely;
mod output;
mod passage;
mod rank;
mod said;
mod sheet;
mod source;
mod tree;

pub(in crate::skills) use output::cut as cut_output;

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::languages::{Definition as Item, DefinitionKind as Kind, Language, ProjectFiles as _, parent};
use find::{Finder, WantedName};
use likely::Signs;
use sheet::Sheet;
use source::Source;
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
    /// What the caller wrote: the specification, the context. Files and names in it are meant.
    pub named: &'a str,
    /// Files the caller named, such as where the implementation goes. Relative to the root.
    pub also: &'a [PathBuf],
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
    plan.test(&test_path);
    plan.rank(&test_path);
    if let (Some(lang), Some(test)) = (tree.lang(), &test) {
        let finder = Finder::new(&tree);
        let mut wants = finder.wanted(lang, &test_path, test);
        plan.likely(&finder, &wants, &test_path, test);
        plan.example(&test_path);
        plan.missing(&finder, &mut wants);
        plan.definitions(&wants, &test_path);
    }
    plan.grow(&test_path);
    plan.neighbours(&test_path);
    if let Some((path, text)) = &manifest {
        plan.manifest(path, text);
    }
    plan.finish()
}

/// The places that a text points at, as they are written there.
pub(in crate::skills) fn places(output: &str) -> Vec<(String, usize)> {
    said::read(output).places
}

/// Could this file be among those chosen?
pub(in crate::skills) fn shows(language: Option<&'static Language>, test_path: &Path, path: &Path) -> bool {
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
    ranked: Vec<(Id, f64)>,
    said: said::OutputHints,
    /// The file that will most likely be changed.
    target: Option<Id>,
}

impl<'p> Plan<'p> {
    fn new(tree: &'p Tree, request: &'p PackRequest<'p>, test: Option<&'p Source>) -> Self {
        let mentioned = source::words(test.map_or("", |t| t.masked())).collect();
        let said = said::read(request.failing_output);
        Self {
            tree,
            request,
            sheet: Sheet::new(request.window_bytes),
            mentioned,
            wanted: Vec::new(),
            ranked: Vec::new(),
            said,
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

    /// The file that will most likely be changed goes in before everything but the test: whole, or around what is meant.
    fn likely(&mut self, finder: &Finder<'p>, wants: &[WantedName], test_path: &str, test: &Source) {
        let given: Vec<Id> = self.request.also.iter().filter_map(|p| self.tree.at(&tree::relative(p)?)).collect();
        let likely = Signs {
            tree: self.tree,
            finder,
            is_test: &|id| self.is_test(id),
            wants,
            given: &given,
            named: self.request.named,
            said: &self.said,
            test_path,
            test: Some(test),
            ranked: &self.ranked,
        }
        .weigh();
        for id in given {
            self.want(id);
        }
        self.target = likely.files.first().copied();
        // Before there is a test, the tests that are there need room beside it.
        let rooms = if self.request.test_source.is_empty() { [45, 50, 55] } else { [60, 70, 75] };
        for (room, id) in rooms.into_iter().zip(&likely.files) {
            let is_target = self.target == Some(*id);
            if !self.show(*id, &[0..usize::MAX], room) {
                self.traced(*id);
                for want in wants.iter().chain(&likely.wants) {
                    if let WantedName::Defined { file, lines, at, .. } = want
                        && file == id
                    {
                        let share = self.request.window_bytes / 6;
                        self.part(*file, lines, *at, share);
                    }
                }
                if is_target {
                    self.imports_of(*id);
                }
                if is_target && !self.sheet.has(self.tree.path(*id)) {
                    self.whole_or_outline(*id);
                }
            }
            self.want(*id);
        }
        // What was cut to its share in the file that matters most, as far as there is room.
        let (target, most) = (self.target, rooms[2]);
        for want in wants.iter().chain(&likely.wants) {
            if let WantedName::Defined { file, lines, .. } = want
                && target == Some(*file)
            {
                self.show(*file, std::slice::from_ref(lines), most);
            }
        }
        // What the caller named or the test calls, in files further down.
        let share = self.request.window_bytes / 12;
        for want in likely.wants.iter().take(12) {
            if let WantedName::Defined { file, lines, at, .. } = want {
                self.part(*file, lines, *at, share);
            }
        }
    }

    /// Where a trace leads through a file.
    fn traced(&mut self, id: Id) {
        const PLACES: usize = 6;
        let own = self.tree.path(id);
        let places = self.said.places.iter().filter(|(path, _)| path == own || ends_with(path, own));
        let lines: Vec<usize> = places.map(|(_, line)| line.saturating_sub(1)).take(PLACES).collect();
        let Some(source) = self.tree.source(id) else { return };
        for line in lines {
            let around = source.around(line).map(|item| (item.lines.clone(), item.at));
            let (whole, at) = around.unwrap_or((line.saturating_sub(8)..line + 8, line));
            let near = line.saturating_sub(12).max(whole.start)..(line + 12).min(whole.end);
            self.show(id, &[near, at..at + 1], 75);
            self.part(id, &whole, at, self.request.window_bytes / 6);
        }
    }

    /// What a file takes from others stands before its first definition, and a change may need more of it.
    fn imports_of(&mut self, id: Id) {
        const LINES: usize = 60;
        let Some(source) = self.tree.source(id).filter(|_| self.sheet.has(self.tree.path(id))) else { return };
        let end = source.items().iter().map(|item| item.lines.start).min().unwrap_or_default();
        if end <= LINES {
            self.show(id, &[0..end], 80);
        }
    }

    /// Names that the runner says are missing, where they are defined after all.
    fn missing(&self, finder: &Finder<'p>, wants: &mut Vec<WantedName>) {
        for name in &self.said.missing {
            let more: Vec<WantedName> = finder.anywhere(name, 3).into_iter().filter(|w| !wants.contains(w)).collect();
            wants.extend(more);
        }
    }

    /// First a fair share of each definition, so that one giant does not push out the rest; then what is missing of them.
    fn definitions(&mut self, wants: &[WantedName], test_path: &str) {
        let defined = wants.iter().filter(|w| matches!(w, WantedName::Defined { .. })).count().max(1);
        let share = self.request.window_bytes.saturating_sub(self.sheet.used()) / defined;
        for want in wants {
            if let WantedName::Defined { file, lines, at, .. } = want {
                self.part(*file, lines, *at, share);
            }
        }
        for want in wants {
            if let WantedName::Defined { file, lines, .. } = want {
                self.show(*file, std::slice::from_ref(lines), 100);
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
        let inside: Vec<&Item> = source.items().iter().filter(|i| i.at > at && lines.contains(&i.at)).collect();
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
        let heads =
            source.items().iter().filter(|i| i.kind == Kind::Extension && i.name == name).map(|i| i.at..i.at + 1);
        let members: Vec<_> = source.items().iter().filter(own).map(|i| i.lines.clone()).collect();
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
            .items()
            .iter()
            .filter(|i| i.kind.is_plain() && self.mentioned.contains(i.name.as_str()))
            .map(|i| i.lines.clone())
            .collect();
        let signatures: Vec<_> = source.items().iter().map(|i| i.at..i.at + 1).collect();
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
        let _ = self.sheet.add(path, text, &[0..usize::MAX], limit) || self.sheet.add(path, text, &[0..12], limit);
    }

    fn rank(&mut self, test_path: &str) {
        let said = format!("{}\n{}", self.request.failing_output, self.request.named);
        self.ranked = rank::by_likeness(self.tree, test_path, self.request.test_source, &said);
    }

    /// Before the test is written, the tests that are there show how it is done, and may be added to: the file nearest by
    /// name and by what it is about, whole, or how it begins, where it speaks of the task, and how it ends.
    fn example(&mut self, test_path: &str) {
        if !self.request.test_source.is_empty() {
            return;
        }
        let Some(id) = self.nearest_test(test_path) else { return };
        let room = self.request.window_bytes;
        let limit = (self.sheet.used() + room * 35 / 100).min(room * 92 / 100) * 100 / room.max(1);
        if self.show(id, &[0..usize::MAX], limit) {
            return;
        }
        let Some(source) = self.tree.source(id) else { return };
        let lines = source.text.lines().count();
        let _ = self.show(id, &[0..30, lines.saturating_sub(12)..lines], limit)
            || self.show(id, &[0..12, lines.saturating_sub(6)..lines], limit);
        for passage in passage::speaking_of(&source.text, self.request.named) {
            let whole = source.around(passage.start + passage.len() / 2).map(|item| item.lines.clone());
            let whole = whole.filter(|lines| lines.len() <= 4 * passage.len());
            let _ = whole.is_some_and(|lines| self.show(id, &[lines], limit)) || self.show(id, &[passage], limit);
        }
    }

    fn nearest_test(&self, test_path: &str) -> Option<Id> {
        let target = self.target.map(|id| rank::subject(self.tree.path(id)));
        let asked = rank::subject(test_path);
        let holds = |id: Id| self.is_test(id) && self.tree.source(id).is_some_and(|s| !s.text.trim().is_empty());
        let tests: Vec<(Id, f64)> = self.ranked.iter().filter(|(id, _)| holds(*id)).copied().collect();
        let best = tests.iter().map(|(_, score)| *score).fold(f64::MIN_POSITIVE, f64::max);
        // Shared words count as much as a name; a name that the caller says and the file has counts most.
        let nearness = |(id, score): (Id, f64)| {
            let own = rank::subject(self.tree.path(id));
            let points = [
                (target == Some(own), 12.0),
                (!asked.is_empty() && asked == own, 30.0),
                (rank::names_subject(self.request.named, own), 12.0),
            ];
            (id, 10.0 * score / best + points.iter().filter(|(is, _)| *is).map(|(_, more)| more).sum::<f64>())
        };
        let nearest = tests.into_iter().map(nearness).max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        nearest.map(|(id, _)| id)
    }

    /// The files most like the test, as long as they are small.
    fn neighbours(&mut self, test_path: &str) {
        for (id, score) in self.ranked.clone().iter().take(12) {
            let source = self.tree.source(*id).filter(|s| s.text.len() < self.request.window_bytes / 8);
            if *score > 0.0 && source.is_some() && self.tree.path(*id) != test_path && !self.is_test(*id) {
                self.show(*id, &[0..usize::MAX], 80);
            }
        }
    }

    fn is_test(&self, id: Id) -> bool {
        crate::verify::sealed::role(self.request.ecosystem, Path::new(self.tree.path(id))).belongs_to_tests()
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
            let Some(source) = self.tree.source(id) else { continue };
            let lines: Vec<&str> = source.text.lines().collect();
            let seen = source.items().iter().filter(|i| i.depth < 2 && i.kind != Kind::Extension).take(12);
            let signatures: Vec<(usize, &str)> = seen.filter_map(|i| Some((i.at, *lines.get(i.at)?))).collect();
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
        let sources = self.tree.ids().filter(|id| self.tree.path(*id) != test_path).count();
        let holds_test = self.request.test_source.is_empty() || self.sheet.has(&test_path);
        let (text, shown) = self.sheet.finish();
        let of_sources = shown.iter().filter(|p| self.tree.at(p).is_some()).count();
        let shown = shown.into_iter().map(PathBuf::from).collect();
        PackedFiles { text, shown, left_out: sources.saturating_sub(of_sources + outlined.len()), outlined, holds_test }
    }
}

fn ends_with(long: &str, short: &str) -> bool {
    long.strip_suffix(short).is_some_and(|before| before.ends_with('/'))
}
