//! Edits as data: the schema for models that are asked for JSON, and the facts about the project with which an answer of
//! any shape is read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::site::{Site, SiteError};
use supervisor_edits::{MOST_EDITS, ProjectFacts};

/// Larger files are not compared with what an answer says about them.
const LARGEST: u64 = 2 * 1024 * 1024;

/// The schema of `edits`, for a reply's own schema.
pub fn schema() -> Value {
    json!({
        "type": "array",
        "maxItems": MOST_EDITS,
        "items": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "relative to the project"},
                "action": {"type": "string", "enum": ["create", "replace", "delete", "change"]},
                "content": {"type": "string", "description": "create, replace: the whole file"},
                "search": {"type": "string", "description": "change: text that stands there exactly once"},
                "replace": {"type": "string", "description": "change: what stands there instead"}
            },
            "required": ["path", "action"],
            "additionalProperties": false
        }
    })
}

/// The project as the reader of answers sees it.
pub struct SiteFacts<'a> {
    /// As models know it.
    root: PathBuf,
    /// Where this process finds the files.
    files: PathBuf,
    paths: Vec<String>,
    editable: Vec<String>,
    sealed: &'a dyn Fn(&Path) -> Result<(), String>,
}

impl<'a> SiteFacts<'a> {
    /// `shown` are the files that the model saw; `sealed` says which paths are off limits, and why.
    pub fn of(
        site: &mut Site,
        shown: &[String],
        sealed: &'a dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<Self, SiteError> {
        let (root, files) = (site.root().to_owned(), site.files_root());
        let paths: Vec<String> = site
            .armed()?
            .files()
            .filter_map(|(path, _)| path.to_str().map(str::to_owned))
            .collect();
        let is_open = |path: &&String| sealed(Path::new(path.as_str())).is_ok();
        let editable: Vec<String> = shown.iter().filter(is_open).cloned().collect();
        Ok(Self {
            root,
            files,
            paths,
            editable,
            sealed,
        })
    }
}

impl ProjectFacts for SiteFacts<'_> {
    fn root(&self) -> &Path {
        &self.root
    }

    fn paths(&self) -> &[String] {
        &self.paths
    }

    fn text(&self, path: &str) -> Option<String> {
        let whole = self.files.join(path);
        let meta = whole
            .symlink_metadata()
            .ok()
            .filter(|meta| meta.is_file() && meta.len() <= LARGEST);
        meta.and_then(|_| fs::read(whole).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok())
    }

    fn is_sealed(&self, path: &str) -> bool {
        (self.sealed)(Path::new(path)).is_err()
    }

    fn editable(&self) -> &[String] {
        &self.editable
    }
}
