//! Files written by a pipeline: Markdown and JSON, read once, with line numbers for everything that
//! can be cited.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::{Map, Value};

use super::definition::SourceGlobs;
use super::team_dirs::{TeamDirs, join_path};
use supervisor_text::redact::is_secret_file;
use supervisor_text::words::front_matter;
use supervisor_workspace::{FolderEntry, FolderError};

/// Larger documents are not read.
const MAX_DOCUMENT_BYTES: u64 = 2 << 20;
/// Maximum number of files below a session.
const MAX_FILES: usize = 5_000;
const MAX_DEPTH: usize = 8;

/// One file, with its structure.
#[derive(Debug)]
pub struct TeamDocument {
    /// Relative to the project.
    pub path: String,
    /// Relative to the folder of the pipeline's artifacts.
    pub name: String,
    pub hash: String,
    pub text: String,
    pub front: Map<String, Value>,
    /// Why the front matter could not be parsed.
    pub front_problem: Option<String>,
    pub headings: Vec<DocumentHeading>,
    pub rows: Vec<TableRow>,
    pub items: Vec<ListItem>,
}

#[derive(Debug, Clone)]
pub struct DocumentHeading {
    pub title: String,
    pub line: usize,
}

/// A table row below its header.
#[derive(Debug, Clone)]
pub struct TableRow {
    pub section: String,
    pub line: usize,
    pub head: Arc<Vec<String>>,
    pub cells: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct ListItem {
    pub section: String,
    pub line: usize,
    pub text: String,
    /// `None` if it is not a checkbox.
    pub ticked: Option<bool>,
}

/// A cache of documents, which are read again only when they change.
#[derive(Debug, Default)]
pub struct DocumentStore {
    known: HashMap<String, (FolderEntry, Arc<TeamDocument>)>,
}

/// The files of a session, by the sources of a checkpoint.
#[derive(Debug, Default)]
pub struct SessionDocuments {
    pub by_source: HashMap<String, Vec<Arc<TeamDocument>>>,
    pub wisdom: Vec<Arc<TeamDocument>>,
    /// Files that tasks in scope refer to and that are in no source.
    pub refs: Vec<Arc<TeamDocument>>,
    /// Number of files read now, and of files taken from the cache.
    pub read: usize,
    pub known: usize,
    /// Files that could not be read, and why.
    pub unreadable: Vec<(String, String)>,
}

impl TeamDocument {
    pub fn new(path: &str, name: &str, bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let is_markdown = path.ends_with(".md");
        let (front, front_problem) = match front_matter::split(&text) {
            Ok(front) if is_markdown => (front, None),
            Ok(_) => (
                front_matter::FrontMatter {
                    body_line: 1,
                    ..Default::default()
                },
                None,
            ),
            Err(e) => (
                front_matter::FrontMatter {
                    body_line: 1,
                    ..Default::default()
                },
                is_markdown.then(|| e.to_string()),
            ),
        };
        let mut document = Self {
            path: path.to_owned(),
            name: name.to_owned(),
            hash: blake3::hash(bytes).to_hex().to_string(),
            text: String::new(),
            front: front.fields,
            front_problem,
            headings: Vec::new(),
            rows: Vec::new(),
            items: Vec::new(),
        };
        if is_markdown {
            document.read_structure(&text[front.body..], front.body_line);
        }
        document.text = text;
        document
    }

    fn read_structure(&mut self, body: &str, first_line: usize) {
        let starts: Vec<usize> = std::iter::once(0)
            .chain(body.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let line_of =
            |offset: usize| first_line + starts.partition_point(|start| *start <= offset) - 1;
        let mut section = String::new();
        let mut text = String::new();
        let (mut head, mut cells) = (Arc::new(Vec::new()), Vec::new());
        let mut items: Vec<ListItem> = Vec::new();
        let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
        for (event, range) in Parser::new_ext(body, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. } | Tag::TableCell) => text.clear(),
                Event::Start(Tag::Item) => {
                    text.clear();
                    let line = line_of(range.start);
                    items.push(ListItem {
                        section: section.clone(),
                        line,
                        text: String::new(),
                        ticked: None,
                    });
                }
                Event::TaskListMarker(ticked) => {
                    if let Some(item) = items.last_mut() {
                        item.ticked = Some(ticked);
                    }
                }
                Event::Text(part) | Event::Code(part) => {
                    text.push_str(&part);
                    if let Some(item) = items.last_mut() {
                        item.text.push_str(&part);
                    }
                }
                Event::SoftBreak | Event::HardBreak => text.push(' '),
                Event::End(TagEnd::Heading(_)) => {
                    section = text.trim().to_owned();
                    self.headings.push(DocumentHeading {
                        title: section.clone(),
                        line: line_of(range.start),
                    });
                }
                Event::End(TagEnd::TableCell) => cells.push(text.trim().to_owned()),
                Event::End(TagEnd::TableHead) => head = Arc::new(std::mem::take(&mut cells)),
                Event::End(TagEnd::TableRow) => self.rows.push(TableRow {
                    section: section.clone(),
                    line: line_of(range.start),
                    head: Arc::clone(&head),
                    cells: std::mem::take(&mut cells),
                }),
                Event::End(TagEnd::Item) => {
                    if let Some(item) = items.pop() {
                        self.items.push(item);
                    }
                }
                _ => {}
            }
        }
        self.items.sort_by_key(|item| item.line);
    }

    /// Lines, numbered from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(n, line)| (n + 1, line))
    }

    /// The first line that contains this text; 0 if none does.
    pub fn line_with(&self, words: &str) -> usize {
        self.lines()
            .find(|(_, line)| line.contains(words))
            .map_or(0, |(n, _)| n)
    }

    /// A front matter field as text, with lists joined.
    pub fn front_text(&self, key: &str) -> Option<String> {
        Some(joined(self.front.get(key)?))
    }

    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.text).ok()
    }
}

impl TableRow {
    /// The cell in a column, ignoring case.
    pub fn cell(&self, title: &str) -> Option<&str> {
        let at = self
            .head
            .iter()
            .position(|head| head.eq_ignore_ascii_case(title))?;
        self.cells.get(at).map(String::as_str)
    }

    pub fn text(&self) -> String {
        self.cells.join(" | ")
    }
}

fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(joined).collect::<Vec<_>>().join(", "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

impl DocumentStore {
    /// Loads the files of these sources. Unchanged files come from the cache.
    pub fn load<'a>(
        &mut self,
        place: &TeamDirs,
        sources: impl IntoIterator<Item = (&'a String, &'a SourceGlobs)>,
    ) -> Result<SessionDocuments, FolderError> {
        let sources: Vec<_> = sources.into_iter().collect();
        let mut loaded = SessionDocuments::default();
        for (name, _) in &sources {
            loaded.by_source.insert((*name).clone(), Vec::new());
        }
        let wisdom = place.wisdom("");
        let mut files = Vec::new();
        for root in place.artifact_roots() {
            walk(place, &root, "", 0, &mut files)?;
        }
        let mut seen = std::collections::HashSet::new();
        for (path, name, entry) in files {
            let is_wisdom = path
                .strip_prefix(&wisdom)
                .is_some_and(|rest| rest.starts_with('/') && rest.ends_with(".md"));
            let wanted: Vec<&String> = sources
                .iter()
                .filter(|(_, globs)| globs.matches(&name))
                .map(|(n, _)| *n)
                .collect();
            // A file may be below several roots; the nearest one counts.
            if (wanted.is_empty() && !is_wisdom)
                || is_own_report(&name)
                || !seen.insert(path.clone())
            {
                continue;
            }
            match self.load_one(place, &path, &name, entry, &mut loaded) {
                Err(e) => loaded.unreadable.push((path, e.to_string())),
                Ok(document) => {
                    for source in wanted {
                        loaded
                            .by_source
                            .entry(source.clone())
                            .or_default()
                            .push(Arc::clone(&document));
                    }
                    if is_wisdom {
                        loaded.wisdom.push(document);
                    }
                }
            }
        }
        Ok(loaded)
    }

    /// Adds a file that a task refers to, or the files of a folder: to each source with a glob for
    /// the end of its path, or to what no source has.
    pub(super) fn add_ref(
        &mut self,
        place: &TeamDirs,
        path: &str,
        sources: &BTreeMap<String, SourceGlobs>,
        loaded: &mut SessionDocuments,
    ) -> Result<(), FolderError> {
        let mut files = Vec::new();
        match place.folder().entry(path)? {
            Some(entry) if entry.is_dir => walk(place, path, "", 0, &mut files)?,
            Some(entry) => files.push((path.to_owned(), path.to_owned(), entry)),
            None => {}
        }
        for (path, _, entry) in files {
            let is_known = loaded.all().iter().any(|document| document.path == path);
            let is_bus = path.split('/').any(|part| part == ".msg");
            if is_known || is_bus || is_own_report(&path) || is_secret_file(Path::new(&path)) {
                continue;
            }
            let starts = std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1));
            let ends: Vec<&str> = starts.map(|at| &path[at..]).collect();
            let has_glob =
                |(_, globs): &(&String, &SourceGlobs)| ends.iter().any(|end| globs.matches(end));
            let wanted: Vec<&String> = sources.iter().filter(has_glob).map(|(n, _)| n).collect();
            match self.load_one(place, &path, &path, entry, loaded) {
                Err(error) => loaded.unreadable.push((path, error.to_string())),
                Ok(document) if wanted.is_empty() => loaded.refs.push(document),
                Ok(document) => {
                    for source in wanted {
                        let documents = loaded.by_source.entry(source.clone()).or_default();
                        documents.push(Arc::clone(&document));
                    }
                }
            }
        }
        Ok(())
    }

    fn load_one(
        &mut self,
        place: &TeamDirs,
        path: &str,
        name: &str,
        entry: FolderEntry,
        loaded: &mut SessionDocuments,
    ) -> Result<Arc<TeamDocument>, FolderError> {
        let key = place.absolute(path).to_string_lossy().into_owned();
        if let Some((known, document)) = self.known.get(&key)
            && *known == entry
        {
            loaded.known += 1;
            return Ok(Arc::clone(document));
        }
        let bytes = place
            .folder()
            .read(path, MAX_DOCUMENT_BYTES)?
            .unwrap_or_default();
        let document = Arc::new(TeamDocument::new(path, name, &bytes));
        loaded.read += 1;
        self.known.insert(key, (entry, Arc::clone(&document)));
        Ok(document)
    }
}

impl SessionDocuments {
    pub fn of(&self, source: &str) -> &[Arc<TeamDocument>] {
        self.by_source.get(source).map_or(&[], Vec::as_slice)
    }

    /// The files that the checks are about: all but wisdom.
    pub fn artifacts(&self) -> impl Iterator<Item = &Arc<TeamDocument>> {
        self.by_source.values().flatten().chain(&self.refs)
    }

    /// Every document once, including wisdom.
    pub fn all(&self) -> Vec<Arc<TeamDocument>> {
        let mut all: Vec<_> = self.artifacts().chain(&self.wisdom).cloned().collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all.dedup_by(|a, b| a.path == b.path);
        all
    }
}

/// Our own reports are not part of the work they are about.
fn is_own_report(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.starts_with("CHECKPOINT-") && file.contains("-report.")
}

fn walk(
    place: &TeamDirs,
    root: &str,
    dir: &str,
    depth: usize,
    files: &mut Vec<(String, String, FolderEntry)>,
) -> Result<(), FolderError> {
    for name in place.folder().list(&join_path(root, dir))? {
        // Skip the bus, our own temporary files, and version control.
        if files.len() >= MAX_FILES || (name.starts_with('.') && name != ".task") {
            continue;
        }
        let relative = join_path(dir, &name);
        let path = join_path(root, &relative);
        // Links are neither followed nor treated as artifacts.
        let Ok(Some(entry)) = place.folder().entry(&path) else {
            continue;
        };
        if !entry.is_dir {
            files.push((path, relative, entry));
        } else if depth < MAX_DEPTH && name != "node_modules" && name != "target" {
            walk(place, root, &relative, depth + 1, files)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_items_and_headings_have_line_numbers() {
        let text = "---\nid: B\n---\n# Brief\n\n## Goals\n\n| Goal ID | Goal |\n|---|---|\n| G-001 | fast |\n| G-002 | safe |\n\n## Open Questions\n\n- [ ] who pays?\n- [x] when?\n- plain\n";
        let document = TeamDocument::new("a.md", "a.md", text.as_bytes());
        let rows: Vec<_> = document
            .rows
            .iter()
            .map(|r| (r.line, r.cell("goal id").unwrap_or("-")))
            .collect();
        assert_eq!(rows, [(10, "G-001"), (11, "G-002")]);
        let items: Vec<_> = document
            .items
            .iter()
            .map(|i| (i.line, i.ticked, i.section.as_str()))
            .collect();
        assert_eq!(
            items,
            [
                (15, Some(false), "Open Questions"),
                (16, Some(true), "Open Questions"),
                (17, None, "Open Questions")
            ]
        );
        assert_eq!(document.headings[1].line, 6);
        assert_eq!(document.front["id"], "B");
    }
}
