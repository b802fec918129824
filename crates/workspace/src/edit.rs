//! Edits that came as data. All of one call's edits are planned in memory, then staged, then put in place; if one cannot
//! be, none is. Knows how to change a file safely. Does not know whether a change is good.

pub(super) mod fuzz;
mod path;
mod search;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::ArmedSnapshot;
use super::armed::{ArmedState, aside_path};
use super::aside::Aside;
use super::fault::{Point, point};
use super::journal::JournalRecord;
use super::manifest::Area;
use super::name::Name;
use super::root::{Meta, Node, as_path, split};
use super::write::{StagedFile, fresh_time};
use search::{SearchOutcome, find};
use supervisor_edits::Edit;

/// What was put in place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppliedEdits {
    pub paths: Vec<PathBuf>,
    /// Where `search` was only found after looking past white space.
    pub tolerant: Vec<PathBuf>,
}

/// Why no edit was made. Each names the path and what would be accepted.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("`{path}` cannot be a path here: {why}")]
    BadPath { path: String, why: &'static str },
    #[error("`{path}` may not be written: {why}")]
    Protected { path: String, why: &'static str },
    #[error(
        "`{path}` is ignored by the project or left out of its snapshot, so it is not a place for edits"
    )]
    Ignored { path: String },
    #[error("`{path}` may not be changed: {why}")]
    Sealed { path: String, why: String },
    #[error("`{path}` is not a plain file: {what}")]
    NotAFile { path: String, what: &'static str },
    #[error("`{path}` exists already; replace it or change a place in it")]
    Exists { path: String },
    #[error("`{path}` does not exist; create it")]
    Missing { path: String },
    #[error("the text to look for in `{path}` is empty; quote the lines to change")]
    EmptySearch { path: String },
    #[error("the text to look for is not in `{path}`{}", quoted(.nearest))]
    NoMatch {
        path: String,
        nearest: Option<(usize, String)>,
    },
    #[error("the text to look for is {} times in `{path}`, at lines {}; quote more of what surrounds it", .lines.len(), numbers(.lines))]
    Ambiguous { path: String, lines: Vec<usize> },
    #[error("`{path}` was changed by another process just now; read it again")]
    Changed { path: String },
    #[error(
        "`{path}` would have {size} bytes, more than `max_file_bytes` = {limit} under [workspace]"
    )]
    TooLarge { path: String, size: u64, limit: u64 },
    #[error("`{path}` could not be written: {source}")]
    Io { path: String, source: io::Error },
}

fn quoted(found: &Option<(usize, String)>) -> String {
    match found {
        Some((line, text)) => format!("; the nearest is at line {line}:\n{text}"),
        None => String::new(),
    }
}

fn numbers(lines: &[usize]) -> String {
    lines
        .iter()
        .take(8)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A file before and after. `None`: not there.
pub(super) struct PlannedFile {
    pub(super) name: String,
    pub(super) before: Option<(Vec<u8>, Meta)>,
    pub(super) after: Option<Vec<u8>>,
    /// The mode to have; the one it has, or an ordinary one, if this is empty.
    pub(super) mode: Option<u32>,
}

pub(super) type EditPlan = BTreeMap<Vec<u8>, PlannedFile>;

impl ArmedSnapshot {
    /// Makes all of these edits or none. `may_touch` says, with a reason, which paths are off limits in this phase.
    pub fn apply(
        &mut self,
        edits: &[Edit],
        may_touch: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<AppliedEdits, EditError> {
        let state = self.state_mut();
        let (mut plan, mut applied) = (EditPlan::new(), AppliedEdits::default());
        for edit in edits {
            let path = path::checked(edit.path())?;
            path::may_be_edited(state, edit.path(), &path)?;
            may_touch(as_path(&path)).map_err(|why| EditError::Sealed {
                path: edit.path().to_owned(),
                why,
            })?;
            if !plan.contains_key(&path) {
                let before = state.before(edit.path(), &path)?;
                let after = before.as_ref().map(|(bytes, _)| bytes.clone());
                plan.insert(
                    path.clone(),
                    PlannedFile {
                        name: edit.path().to_owned(),
                        before,
                        after,
                        mode: None,
                    },
                );
            }
            let planned = plan.get_mut(&path).expect("just put there");
            if planned.follow(edit)? == Match::Tolerant {
                applied.tolerant.push(as_path(&path).to_owned());
            }
            let (size, limit) = (
                planned.after.as_ref().map_or(0, |a| a.len() as u64),
                state.inner().caps.max_file_bytes,
            );
            if size > limit {
                return Err(EditError::TooLarge {
                    path: edit.path().to_owned(),
                    size,
                    limit,
                });
            }
        }
        plan.retain(|_, p| p.after.as_ref() != p.before.as_ref().map(|(bytes, _)| bytes));
        applied.paths = plan.keys().map(|path| as_path(path).to_owned()).collect();
        state.carry_out(&plan)?;
        Ok(applied)
    }
}

impl ArmedSnapshot {
    /// Could an edit of this path be made at all? For what is better told before anybody is asked to write it.
    pub fn may_write(&mut self, path: &str) -> Result<(), EditError> {
        let state = self.state_mut();
        let bytes = path::checked(path)?;
        path::may_be_edited(state, path, &bytes)?;
        state.before(path, &bytes).map(drop)
    }
}

#[derive(PartialEq, Eq)]
enum Match {
    Exact,
    Tolerant,
}

impl PlannedFile {
    fn follow(&mut self, edit: &Edit) -> Result<Match, EditError> {
        let path = || edit.path().to_owned();
        match (edit, &self.after) {
            (Edit::Create { .. }, Some(_)) => return Err(EditError::Exists { path: path() }),
            (Edit::Replace { .. } | Edit::Delete { .. } | Edit::Change { .. }, None) => {
                return Err(EditError::Missing { path: path() });
            }
            (Edit::Create { contents, .. } | Edit::Replace { contents, .. }, _) => {
                self.after = Some(contents.clone())
            }
            (Edit::Delete { .. }, _) => self.after = None,
            (
                Edit::Change {
                    search, replace, ..
                },
                Some(text),
            ) => {
                let (text, how) = match find(text, search, replace) {
                    SearchOutcome::Exact(text) => (text, Match::Exact),
                    SearchOutcome::Tolerant(text) => (text, Match::Tolerant),
                    SearchOutcome::Nothing { nearest } => {
                        return Err(EditError::NoMatch {
                            path: path(),
                            nearest,
                        });
                    }
                    SearchOutcome::Several { lines } => {
                        return Err(EditError::Ambiguous {
                            path: path(),
                            lines,
                        });
                    }
                    SearchOutcome::EmptySearch => {
                        return Err(EditError::EmptySearch { path: path() });
                    }
                };
                self.after = Some(text);
                return Ok(how);
            }
        }
        Ok(Match::Exact)
    }
}

impl ArmedState {
    /// The file as it is, if it is one that may be replaced.
    pub(super) fn before(
        &self,
        name: &str,
        path: &[u8],
    ) -> Result<Option<(Vec<u8>, Meta)>, EditError> {
        let tree = &self.inner().layout.tree;
        let failed = |source| EditError::Io {
            path: name.to_owned(),
            source,
        };
        let not = |what| {
            Err(EditError::NotAFile {
                path: name.to_owned(),
                what,
            })
        };
        let mut above = split(path).0;
        while !above.is_empty() {
            match tree.meta(above).map_err(failed)?.map(|m| m.node) {
                None | Some(Node::Dir) => above = split(above).0,
                Some(Node::Link) => return not("a directory above it is a link"),
                Some(_) => return not("what should be a directory above it is none"),
            }
        }
        let Some(meta) = tree.meta(path).map_err(failed)? else {
            return Ok(None);
        };
        match meta.node {
            Node::File if meta.links > 1 => not("it has another name elsewhere, a hard link"),
            Node::File if meta.size > self.inner().caps.max_file_bytes => not("it is too large"),
            Node::File => Ok(Some((tree.read(path).map_err(failed)?, meta))),
            Node::Dir => not("it is a directory"),
            Node::Link => not("it is a link"),
            Node::Fifo => not("it is a fifo"),
            Node::Special => not("it is a socket or a device"),
        }
    }

    pub(super) fn carry_out(&mut self, plan: &EditPlan) -> Result<(), EditError> {
        let Some(first) = plan.values().next() else {
            return Ok(());
        };
        let failed = |name: &str| {
            let path = name.to_owned();
            move |source| EditError::Io { path, source }
        };
        // The journal knows before the project does; directories made on the way are ours too.
        let mut names: Vec<_> = plan.keys().cloned().collect();
        names.extend(self.missing_dirs(plan).map_err(failed(&first.name))?);
        let record = JournalRecord::Editing {
            paths: names.iter().cloned().map(Name).collect(),
        };
        self.journal.write(&record).map_err(failed(&first.name))?;
        self.beat();
        point(Point::EditsJournaled);
        for name in names {
            self.edited.entry(name).or_insert(None);
        }
        let mut staged = Vec::new();
        for (path, planned) in plan {
            match self.stage(path, planned) {
                Ok(stage) => staged.push((path, planned, stage)),
                Err(source) => {
                    staged
                        .iter()
                        .filter_map(|(_, _, s)| s.as_ref())
                        .for_each(StagedFile::discard);
                    return Err(failed(&planned.name)(source));
                }
            }
        }
        point(Point::EditsStaged);
        let mut done: Vec<(&Vec<u8>, &PlannedFile)> = Vec::new();
        let mut rest = staged.into_iter();
        while let Some((path, planned, stage)) = rest.next() {
            if let Err(error) = self.put(path, planned, stage) {
                rest.filter_map(|(_, _, s)| s).for_each(|s| s.discard());
                for (path, planned) in done.into_iter().rev() {
                    // The journal names these paths: should this fail too, a restore still brings them back.
                    let _ = self.take_back(path, planned);
                }
                return Err(error);
            }
            done.push((path, planned));
            point(Point::FirstEdit);
        }
        point(Point::LastEdit);
        Ok(())
    }

    fn missing_dirs(&self, plan: &EditPlan) -> io::Result<Vec<Vec<u8>>> {
        let tree = &self.inner().layout.tree;
        let mut missing = Vec::new();
        for path in plan
            .iter()
            .filter(|(_, p)| p.after.is_some())
            .map(|(path, _)| path)
        {
            let mut above = split(path).0;
            while !above.is_empty() && tree.meta(above)?.is_none() {
                missing.push(above.to_vec());
                above = split(above).0;
            }
        }
        Ok(missing)
    }

    fn stage(&mut self, path: &[u8], planned: &PlannedFile) -> io::Result<Option<StagedFile>> {
        let Some(after) = &planned.after else {
            return Ok(None);
        };
        let tree = self.inner().layout.tree.clone();
        tree.make_dirs(split(path).0, 0o755)?;
        let mode = planned
            .mode
            .unwrap_or_else(|| planned.before.as_ref().map_or(0o644, |(_, meta)| meta.mode));
        let mtime =
            fresh_time(self.newest_time(path, planned.before.as_ref().map(|(_, meta)| meta.mtime)));
        let temporary = super::temporary(&self.id, &super::random_name()).into_bytes();
        Ok(Some(tree.stage(
            path,
            temporary,
            mode,
            mtime,
            false,
            |file| file.write_all(after),
        )?))
    }

    /// The latest time under which this path may have been compiled, also if it was deleted since.
    pub(super) fn newest_time(&self, path: &[u8], now: Option<i64>) -> Option<i64> {
        let armed = self
            .snapshot
            .manifest
            .find(Area::Tree, path)
            .map(|e| e.mtime);
        [now, armed, self.lease.times.get(path).copied()]
            .into_iter()
            .flatten()
            .max()
    }

    /// Puts one file in place, unless it is not what it was when the plan was made.
    fn put(
        &mut self,
        path: &[u8],
        planned: &PlannedFile,
        staged: Option<StagedFile>,
    ) -> Result<(), EditError> {
        let tree = self.inner().layout.tree.clone();
        let failed = |source| EditError::Io {
            path: planned.name.clone(),
            source,
        };
        let now = tree.meta(path).map_err(failed)?;
        if now != planned.before.as_ref().map(|(_, meta)| *meta) {
            if let Some(staged) = staged {
                staged.discard();
            }
            return Err(EditError::Changed {
                path: planned.name.clone(),
            });
        }
        if let Some((bytes, meta)) = &planned.before {
            self.keep_if_foreign(path, bytes).map_err(failed)?;
            self.lease.saw(path, meta.mtime);
        }
        match staged {
            Some(staged) => staged.commit().map_err(failed)?,
            None => tree.remove(path).map_err(failed)?,
        }
        let now = tree.meta(path).map_err(failed)?;
        if let Some(meta) = now {
            self.lease.saw(path, meta.mtime);
        }
        self.edited.insert(path.to_vec(), now);
        Ok(())
    }

    /// What is neither from the snapshot nor from us was written by another process meanwhile, and would be lost.
    fn keep_if_foreign(&self, path: &[u8], bytes: &[u8]) -> io::Result<()> {
        let armed = self
            .snapshot
            .manifest
            .find(Area::Tree, path)
            .is_some_and(|e| blake3::hash(bytes) == e.hash);
        let ours = self
            .edited
            .get(path)
            .is_some_and(|e| *e == self.inner().layout.tree.meta(path).ok().flatten());
        if armed || ours {
            return Ok(());
        }
        let mut aside = Aside::at(aside_path(self.inner().state.path(), &self.since, &self.id));
        aside.keep(Area::Tree, &self.inner().layout.tree, path)
    }

    fn take_back(&mut self, path: &[u8], planned: &PlannedFile) -> io::Result<()> {
        let tree = self.inner().layout.tree.clone();
        match &planned.before {
            Some((bytes, meta)) => {
                let mtime = fresh_time(self.newest_time(path, None));
                let temporary = super::temporary(&self.id, &super::random_name()).into_bytes();
                tree.stage(path, temporary, meta.mode, mtime, false, |file| {
                    file.write_all(bytes)
                })?
                .commit()
            }
            None => tree.remove(path),
        }
    }
}
