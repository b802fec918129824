//! Edits as data: the schema for models that answer in JSON, and the project facts needed to parse
//! an answer in any format.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::project_access::{Site, SiteError};
use supervisor_edits::{Edit, MAX_EDITS, ProjectFacts};
use supervisor_text::redact::Redactor;
use supervisor_text::words;

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
    redactor: &'a Redactor,
}

impl<'a> SiteFacts<'a> {
    /// `shown` are the files that the model saw. `check_editable` returns an error for protected paths.
    pub fn of(
        site: &mut Site,
        shown: &[String],
        check_editable: &'a dyn Fn(&Path) -> Result<(), String>,
        redactor: &'a Redactor,
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
            redactor,
        })
    }

    fn original(&self, path: &str) -> Option<String> {
        let whole = self.files.join(path);
        let meta = whole
            .symlink_metadata()
            .ok()
            .filter(|meta| meta.is_file() && meta.len() <= MAX_FILE_BYTES);
        meta.and_then(|_| fs::read(whole).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok())
    }

    /// The edits with the secrets that the model was not shown. The error says why an edit would
    /// write a placeholder into a file.
    pub fn restore_secrets(&self, edits: Vec<Edit>) -> Result<Vec<Edit>, String> {
        edits.into_iter().map(|edit| self.restore(edit)).collect()
    }

    fn restore(&self, edit: Edit) -> Result<Edit, String> {
        let path = edit.path().to_owned();
        let original = self.original(&path).unwrap_or_default();
        let file = self.redactor.hide_file(&original);
        let whole = |contents: Vec<u8>| match String::from_utf8(contents) {
            Ok(text) => file
                .restore(&text)
                .map(|text| text.into_owned().into_bytes()),
            Err(error) => Ok(error.into_bytes()),
        };
        let restored = match edit {
            Edit::Create { path, contents } => {
                whole(contents).map(|contents| Edit::Create { path, contents })
            }
            Edit::Replace { path, contents } => {
                whole(contents).map(|contents| Edit::Replace { path, contents })
            }
            Edit::Change {
                path,
                search,
                replace,
            } => file
                .restore_change(&search, &replace)
                .map(|(search, replace)| Edit::Change {
                    path,
                    search,
                    replace,
                }),
            edit @ Edit::Delete { .. } => Ok(edit),
        };
        restored.map_err(|why| format!("`{}`: {why}", words::plain(&path)))
    }
}

impl ProjectFacts for SiteFacts<'_> {
    fn root(&self) -> &Path {
        &self.root
    }

    fn paths(&self) -> &[String] {
        &self.paths
    }

    /// As the model was shown it.
    fn text(&self, path: &str) -> Option<String> {
        let original = self.original(path)?;
        Some(self.redactor.hide(&original).into_owned())
    }

    fn is_protected(&self, path: &str) -> bool {
        (self.check_editable)(Path::new(path)).is_err()
    }

    fn editable(&self) -> &[String] {
        &self.editable
    }
}
