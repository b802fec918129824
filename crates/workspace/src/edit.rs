//! Applies edits given as data. All edits of a call are planned in memory, staged, and then renamed
//! into place; if one fails, none is made.

pub(super) mod fuzz;
mod path;
mod search;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::ActiveSnapshot;
use super::active_snapshot::{ActiveSnapshotState, rejected_dir};
use super::encoded_path::EncodedPath;
use super::fault_points::{FaultPoint, point};
use super::journal::JournalRecord;
use super::manifest::Area;
use super::rejected_files::RejectedFiles;
use super::root::{Meta, Node, as_path, split};
use super::write::{StagedFile, fresh_time};
use search::{SearchOutcome, replace_once};
use supervisor_edits::Edit;

/// The result of applied edits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppliedEdits {
    pub paths: Vec<PathBuf>,
    /// Files in which `search` matched only after ignoring white space.
    pub tolerant: Vec<PathBuf>,
}

/// Why no edit was made. Each variant names the path and what would be accepted.
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
    OffLimits { path: String, why: String },
    #[error("`{path}` is not a plain file: {what}")]
    NotAFile { path: String, what: &'static str },
    #[error("`{path}` exists already; replace it or change a place in it")]
    Exists { path: String },
    #[error("`{path}` does not exist; create it")]
    Missing { path: String },
    #[error("the text to look for in `{path}` is empty; quote the lines to change")]
    EmptySearch { path: String },
    #[error("the text to look for is not in `{path}`{}", quote_nearest(.nearest))]
    NoMatch {
        path: String,
        nearest: Option<(usize, String)>,
    },
    #[error("the text to look for is {} times in `{path}`, at lines {}; quote more of what surrounds it", .lines.len(), format_lines(.lines))]
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

fn quote_nearest(found: &Option<(usize, String)>) -> String {
    match found {
        Some((line, text)) => format!("; the nearest is at line {line}:\n{text}"),
        None => String::new(),
    }
}

fn format_lines(lines: &[usize]) -> String {
    lines
        .iter()
        .take(8)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A file before and after. `None`: it does not exist.
pub(super) struct PlannedFile {
    pub(super) name: String,
    pub(super) before: Option<(Vec<u8>, Meta)>,
    pub(super) after: Option<Vec<u8>>,
    /// The new mode; `None` keeps the mode, or uses the default for a new file.
    pub(super) mode: Option<u32>,
}

pub(super) type EditPlan = BTreeMap<Vec<u8>, PlannedFile>;

impl ActiveSnapshot {
    /// Makes all of these edits or none. `may_touch` returns a reason for paths that are off limits
    /// in this phase.
    pub fn apply(
        &mut self,
        edits: &[Edit],
        may_touch: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<AppliedEdits, EditError> {
        let state = self.state_mut();
        let (mut plan, mut applied) = (EditPlan::new(), AppliedEdits::default());
        for edit in edits {
            let path = path::validate(edit.path())?;
            path::check_editable(state, edit.path(), &path)?;
            may_touch(as_path(&path)).map_err(|why| EditError::OffLimits {
                path: edit.path().to_owned(),
                why,
            })?;
            if !plan.contains_key(&path) {
                let before = state.read_current(edit.path(), &path)?;
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
            let planned = plan.get_mut(&path).expect("inserted above");
            if planned.apply(edit)? == Match::Tolerant {
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
        state.execute_plan(&plan)?;
        Ok(applied)
    }
}

impl ActiveSnapshot {
    /// Checks whether this path could be edited at all, so that it can be reported before a model
    /// is asked to write it.
    pub fn check_writable(&mut self, path: &str) -> Result<(), EditError> {
        let state = self.state_mut();
        let bytes = path::validate(path)?;
        path::check_editable(state, path, &bytes)?;
        state.read_current(path, &bytes).map(drop)
    }
}

#[derive(PartialEq, Eq)]
enum Match {
    Exact,
    Tolerant,
}

impl PlannedFile {
    fn apply(&mut self, edit: &Edit) -> Result<Match, EditError> {
        let path = || edit.path().to_owned();
        match (edit, &self.after) {
            (Edit::Create { .. }, Some(_)) => return Err(EditError::Exists { path: path() }),
            (Edit::Replace { .. } | Edit::Delete { .. } | Edit::Change { .. }, None) => {
                return Err(EditError::Missing { path: path() });
            }
            (Edit::Create { contents, .. } | Edit::Replace { contents, .. }, _) => {
                self.after = Some(contents.clone());
            }
            (Edit::Delete { .. }, _) => self.after = None,
            (
                Edit::Change {
                    search, replace, ..
                },
                Some(text),
            ) => {
                let (text, how) = match replace_once(text, search, replace) {
                    SearchOutcome::Exact(text) => (text, Match::Exact),
                    SearchOutcome::Tolerant(text) => (text, Match::Tolerant),
                    SearchOutcome::NoMatch { nearest } => {
                        return Err(EditError::NoMatch {
                            path: path(),
                            nearest,
                        });
                    }
                    SearchOutcome::Ambiguous { lines } => {
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

impl ActiveSnapshotState {
    /// Returns the current file. Fails if it may not be replaced.
    pub(super) fn read_current(
        &self,
        name: &str,
        path: &[u8],
    ) -> Result<Option<(Vec<u8>, Meta)>, EditError> {
        let tree = &self.inner().layout.tree;
        let failed = |source| EditError::Io {
            path: name.to_owned(),
            source,
        };
        let not_a_file = |what| {
            Err(EditError::NotAFile {
                path: name.to_owned(),
                what,
            })
        };
        let mut parent = split(path).0;
        while !parent.is_empty() {
            match tree.meta(parent).map_err(failed)?.map(|m| m.node) {
                None | Some(Node::Dir) => parent = split(parent).0,
                Some(Node::Link) => return not_a_file("a directory above it is a link"),
                Some(_) => return not_a_file("what should be a directory above it is none"),
            }
        }
        let Some(meta) = tree.meta(path).map_err(failed)? else {
            return Ok(None);
        };
        match meta.node {
            Node::File if meta.links > 1 => {
                not_a_file("it has another name elsewhere, a hard link")
            }
            Node::File if meta.size > self.inner().caps.max_file_bytes => {
                not_a_file("it is too large")
            }
            Node::File => Ok(Some((tree.read(path).map_err(failed)?, meta))),
            Node::Dir => not_a_file("it is a directory"),
            Node::Link => not_a_file("it is a link"),
            Node::Fifo => not_a_file("it is a fifo"),
            Node::Special => not_a_file("it is a socket or a device"),
        }
    }

    pub(super) fn execute_plan(&mut self, plan: &EditPlan) -> Result<(), EditError> {
        let Some(first) = plan.values().next() else {
            return Ok(());
        };
        let failed = |name: &str| {
            let path = name.to_owned();
            move |source| EditError::Io { path, source }
        };
        // The journal is written before the project. It also names the directories that we create.
        let mut names: Vec<_> = plan.keys().cloned().collect();
        names.extend(self.missing_dirs(plan).map_err(failed(&first.name))?);
        let record = JournalRecord::Editing {
            paths: names.iter().cloned().map(EncodedPath).collect(),
        };
        self.journal.write(&record).map_err(failed(&first.name))?;
        self.heartbeat();
        point(FaultPoint::EditsJournaled);
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
        point(FaultPoint::EditsStaged);
        let mut done: Vec<(&Vec<u8>, &PlannedFile)> = Vec::new();
        let mut rest = staged.into_iter();
        while let Some((path, planned, stage)) = rest.next() {
            if let Err(error) = self.put_in_place(path, planned, stage) {
                rest.filter_map(|(_, _, s)| s).for_each(|s| s.discard());
                for (path, planned) in done.into_iter().rev() {
                    // The journal names these paths: if this fails too, a restore still brings them
                    // back.
                    let _ = self.undo_edit(path, planned);
                }
                return Err(error);
            }
            done.push((path, planned));
            point(FaultPoint::FirstEdit);
        }
        point(FaultPoint::LastEdit);
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
            let mut parent = split(path).0;
            while !parent.is_empty() && tree.meta(parent)?.is_none() {
                missing.push(parent.to_vec());
                parent = split(parent).0;
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
        let temporary = super::temporary_name(&self.id, &super::random_name()).into_bytes();
        Ok(Some(tree.stage(
            path,
            temporary,
            mode,
            mtime,
            false,
            |file| file.write_all(after),
        )?))
    }

    /// Returns the latest time under which this path may have been compiled, even if it was deleted
    /// since.
    pub(super) fn newest_time(&self, path: &[u8], now: Option<i64>) -> Option<i64> {
        let original = self
            .snapshot
            .manifest
            .find(Area::Tree, path)
            .map(|e| e.mtime);
        [now, original, self.lease.times.get(path).copied()]
            .into_iter()
            .flatten()
            .max()
    }

    /// Puts one file in place, unless it has changed since the plan was made.
    fn put_in_place(
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
            self.save_if_foreign(path, bytes).map_err(failed)?;
            self.lease.record_time(path, meta.mtime);
        }
        match staged {
            Some(staged) => staged.commit().map_err(failed)?,
            None => tree.remove(path).map_err(failed)?,
        }
        let now = tree.meta(path).map_err(failed)?;
        if let Some(meta) = now {
            self.lease.record_time(path, meta.mtime);
        }
        self.edited.insert(path.to_vec(), now);
        Ok(())
    }

    /// Saves contents that are neither from the snapshot nor from us: another process wrote them,
    /// and they would be lost.
    fn save_if_foreign(&self, path: &[u8], bytes: &[u8]) -> io::Result<()> {
        let is_original = self
            .snapshot
            .manifest
            .find(Area::Tree, path)
            .is_some_and(|e| blake3::hash(bytes) == e.hash);
        let is_ours = self
            .edited
            .get(path)
            .is_some_and(|e| *e == self.inner().layout.tree.meta(path).ok().flatten());
        if is_original || is_ours {
            return Ok(());
        }
        let mut rejected = RejectedFiles::at(rejected_dir(
            self.inner().state.path(),
            &self.since,
            &self.id,
        ));
        rejected.keep(Area::Tree, &self.inner().layout.tree, path)
    }

    fn undo_edit(&mut self, path: &[u8], planned: &PlannedFile) -> io::Result<()> {
        let tree = self.inner().layout.tree.clone();
        match &planned.before {
            Some((bytes, meta)) => {
                let mtime = fresh_time(self.newest_time(path, None));
                let temporary = super::temporary_name(&self.id, &super::random_name()).into_bytes();
                tree.stage(path, temporary, meta.mode, mtime, false, |file| {
                    file.write_all(bytes)
                })?
                .commit()
            }
            None => tree.remove(path),
        }
    }
}
