//! The likely files on the page: whole, or around what the failing tests and the trace lead to.

use super::find::{Finder, WantedName};
use super::likely::Signs;
use super::source::Source;
use super::tree::{self, Id};
use super::{Plan, ends_with, passage};
use supervisor_languages::ProjectFiles as _;

impl<'p> Plan<'p> {
    /// The file that will most likely be changed goes in before everything but the test: whole, or around what is meant.
    pub(super) fn likely(
        &mut self,
        finder: &Finder<'p>,
        wants: &[WantedName],
        test_path: &str,
        test: &Source,
    ) {
        let given: Vec<Id> = self
            .request
            .also
            .iter()
            .filter_map(|p| self.tree.at(&tree::relative(p)?))
            .collect();
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
            red: &self.red_text,
            ranked: &self.ranked,
            together: self.request.together,
        }
        .weigh();
        for id in given {
            self.want(id);
        }
        self.target = likely.files.first().copied();
        let rooms = self.rooms();
        let focused: Vec<&WantedName> = likely.wants.iter().chain(wants).collect();
        for (room, id) in rooms.into_iter().zip(&likely.files) {
            // Parts of one file leave room for parts of the next; the first may take that to be whole.
            let whole = if self.red.is_empty() {
                room
            } else {
                room.max(78)
            };
            // A long file that comes second waits for the others' parts; what is left of the page makes it whole.
            let waits = self.target != Some(*id)
                && self
                    .tree
                    .source(*id)
                    .is_some_and(|s| s.text.len() > self.request.window_bytes / 6);
            if waits || !self.show(*id, &[0..usize::MAX], whole) {
                self.traced(*id, room);
                self.passages_of(*id, room);
                self.parts_of(*id, &focused, self.request.window_bytes / 6, room);
                if self.target == Some(*id) {
                    self.imports_of(*id);
                    if !self.sheet.has(self.tree.path(*id)) {
                        self.whole_or_outline(*id);
                    }
                }
            }
            self.want(*id);
        }
        // What was cut to its share in the file that matters most, as far as there is room.
        let (target, most) = (self.target, rooms[rooms.len() - 1]);
        for want in &focused {
            if let WantedName::Defined { file, lines, .. } = want
                && target == Some(*file)
            {
                self.show(*file, std::slice::from_ref(lines), most);
            }
        }
        // What the caller named or the test calls, in files further down.
        let share = self.request.window_bytes / 12;
        for want in likely.wants.iter().take(12) {
            if let WantedName::Defined {
                file, lines, at, ..
            } = want
            {
                self.part(*file, lines, *at, share, 100);
            }
        }
        self.likely_files = likely.files;
    }

    /// How full the page may be after each of the likely files. Before there is a test, the tests that are there need
    /// room beside it; where it is known what fails, the page is for that.
    fn rooms(&self) -> [usize; 6] {
        match (self.request.test_source.is_empty(), self.red.is_empty()) {
            (true, _) => [45, 50, 55, 55, 55, 55],
            (false, true) => [60, 70, 75, 75, 75, 75],
            (false, false) => [56, 68, 78, 84, 88, 90],
        }
    }

    /// Where a long file speaks of what fails, though nothing in it is called by name: a message that the runner shows
    /// stands there word by word.
    fn passages_of(&mut self, id: Id, percent: usize) {
        const SAID: usize = 4_000;
        let Some(source) = self.tree.source(id).filter(|_| !self.red_text.is_empty()) else {
            return;
        };
        let said = super::cut_output(self.request.failing_output, SAID);
        let query = format!("{}\n{}\n{said}", self.red_text, self.request.named);
        for passage in passage::speaking_of(&source.text, &query) {
            let whole = source
                .around(passage.start + passage.len() / 2)
                .map(|item| item.lines.clone());
            let whole = whole.filter(|lines| lines.len() <= 2 * passage.len());
            let _ = whole.is_some_and(|lines| self.show(id, &[lines], percent))
                || self.show(id, &[passage], percent);
        }
    }

    /// The definitions in question that stand in this file, each as its share allows.
    fn parts_of(&mut self, id: Id, wants: &[&WantedName], share: usize, percent: usize) {
        for want in wants {
            if let WantedName::Defined {
                file, lines, at, ..
            } = want
                && *file == id
            {
                self.part(id, lines, *at, share, percent);
            }
        }
    }

    /// Where a trace leads through a file.
    fn traced(&mut self, id: Id, percent: usize) {
        const PLACES: usize = 6;
        let own = self.tree.path(id);
        let places = self
            .said
            .places
            .iter()
            .filter(|(path, _)| path == own || ends_with(path, own));
        let lines: Vec<usize> = places
            .map(|(_, line)| line.saturating_sub(1))
            .take(PLACES)
            .collect();
        let Some(source) = self.tree.source(id) else {
            return;
        };
        for line in lines {
            let around = source
                .around(line)
                .map(|item| (item.lines.clone(), item.at));
            let (whole, at) = around.unwrap_or((line.saturating_sub(8)..line + 8, line));
            let near = line.saturating_sub(12).max(whole.start)..(line + 12).min(whole.end);
            self.show(id, &[near, at..at + 1], percent);
            self.part(id, &whole, at, self.request.window_bytes / 6, percent);
        }
    }

    /// What a file takes from others stands before its first definition, and a change may need more of it.
    fn imports_of(&mut self, id: Id) {
        const LINES: usize = 60;
        let Some(source) = self
            .tree
            .source(id)
            .filter(|_| self.sheet.has(self.tree.path(id)))
        else {
            return;
        };
        let end = source
            .items()
            .iter()
            .map(|item| item.lines.start)
            .min()
            .unwrap_or_default();
        if end <= LINES {
            self.show(id, &[0..end], 80);
        }
    }
}
