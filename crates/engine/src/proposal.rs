//! Edits as data: the schema for models that answer in JSON, and the project facts needed to parse
//! an answer in any format.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::project_access::{Site, SiteError};
use supervisor_edits::{MAX_EDITS, ProjectFacts};

/// Larger files are not compared with the answer.
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;

/// Schema of `edits`, for use in a reply's schema.
pub fn schema() -> Value {
    json!({
        "type": "array",
        "maxItems": MAX_EDITS,
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

/// The project as the answer parser sees it.
pub struct SiteFacts<'a> {
    /// The path that models know.
    root: PathBuf,
    /// Where this process finds the files.
    files: PathBuf,
    paths: Vec<String>,
    editable: Vec<String>,
    check_editable: &'a dyn Fn(&Path) -> Result<(), String>,
}

impl<'a> SiteFacts<'a> {
    /// `shown` are the files that the model saw. `check_editable` returns an error for protected paths.
    pub fn of(
        site: &mut Site,
        shown: &[String],
        check_editable: &'a dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<Self, SiteError> {
        let (root, files) = (site.root().to_owned(), site.files_root());
        let paths: Vec<String> = site
            .armed()?
            .files()
            .filter_map(|(path, _)| path.to_str().map(str::to_owned))
            .collect();
        let is_editable = |path: &&String| check_editable(Path::new(path.as_str())).is_ok();
        let editable: Vec<String> = shown.iter().filter(is_editable).cloned().collect();
        Ok(Self {
            root,
            files,
            paths,
            editable,
            check_editable,
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
            .filter(|meta| meta.is_file() && meta.len() <= MAX_FILE_BYTES);
        meta.and_then(|_| fs::read(whole).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok())
    }

    fn is_protected(&self, path: &str) -> bool {
        (self.check_editable)(Path::new(path)).is_err()
    }

    fn editable(&self) -> &[String] {
        &self.editable
    }
}
