//! Resolves the output file of a specification. Problems are reported before any model is asked.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{inside, named};
use supervisor_engine::project_access::Site;
use supervisor_engine::skill::RefusedCall;
use supervisor_text::words;
use supervisor_verify::protected::{FileRole, role};

/// The output path and the current content.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Relative to the project.
    pub(super) path: PathBuf,
    pub(super) previous: PreviousDocument,
}

/// The content that the document replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PreviousDocument {
    None,
    /// The existing document, which the caller asked to update.
    Document(String),
}

/// Max bytes read of an existing document. Models are shown less.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024;

impl Target {
    /// Validates the path by name, without locking the project.
    pub(super) fn resolve(
        root: &Path,
        given: &str,
        overwrite: bool,
    ) -> Result<PathBuf, RefusedCall> {
        let refused = |why: String| RefusedCall::error(format!("output_path: {why}"));
        let path = inside(root, given).map_err(refused)?;
        if !path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("md"))
        {
            return Err(refused(format!(
                "`{}` is not a Markdown file; end it in `.md`",
                words::plain(given)
            )));
        }
        // A link could be changed between this check and the write.
        let full = root.join(given);
        let below = full
            .ancestors()
            .filter(|above| above.starts_with(root) && *above != root);
        if let Some(link) = below.into_iter().find(|above| above.is_symlink()) {
            let link = link.strip_prefix(root).unwrap_or(link);
            return Err(refused(format!(
                "{} is a link; name the file itself",
                named(link)
            )));
        }
        match role(None, &path) {
            FileRole::BuildConfig
            | FileRole::RunnerConfig
            | FileRole::Snapshot
            | FileRole::Fixture => {
                return Err(refused(format!(
                    "{} is read by tools or tests of the project; choose another place, such as `docs/spec.md`",
                    named(&path)
                )));
            }
            FileRole::Source | FileRole::Test => {}
        }
        if !overwrite && root.join(&path).symlink_metadata().is_ok() {
            return Err(refused(format!(
                "{} exists already; call again with `overwrite: true` to have it updated, or name another `output_path`",
                named(&path)
            )));
        }
        Ok(path)
    }

    /// Under the lock: checks that the snapshot allows the write, and reads the current content.
    pub(super) fn read(site: &mut Site, path: PathBuf) -> Result<Self, RefusedCall> {
        let root = site.root().to_owned();
        let armed = site.armed()?;
        let refused = |e| RefusedCall::error(format!("output_path: {e}"));
        armed
            .check_writable(&path.to_string_lossy())
            .map_err(refused)?;
        let previous = match fs::symlink_metadata(root.join(&path)) {
            Err(_) => PreviousDocument::None,
            Ok(_) => {
                let bytes = armed.original(&path).unwrap_or_default();
                PreviousDocument::Document(
                    words::cut_middle(&String::from_utf8_lossy(&bytes), MAX_DOCUMENT_BYTES)
                        .into_owned(),
                )
            }
        };
        Ok(Self { path, previous })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_output_path_is_rejected_with_a_hint() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        fs::create_dir(root.join("docs")).expect("made");
        fs::write(root.join("docs/old.md"), "old").expect("written");
        std::os::unix::fs::symlink("docs", root.join("link")).expect("linked");
        std::os::unix::fs::symlink("docs/old.md", root.join("alias.md")).expect("linked");
        let resolve = |given: &str, overwrite| {
            Target::resolve(&root, given, overwrite).map_err(|e| e.message)
        };
        for fine in ["docs/spec.md", "./a/b/c.MD", "spec.md", "spec/spec.md"] {
            assert!(
                resolve(fine, false).is_ok(),
                "{fine}: {:?}",
                resolve(fine, false)
            );
        }
        assert_eq!(resolve("docs/old.md", true), Ok("docs/old.md".into()));
        for (bad, part) in [
            ("../spec.md", "outside the project"),
            ("/etc/spec.md", "outside the project"),
            ("docs/spec.txt", "end it in `.md`"),
            ("docs", "end it in `.md`"),
            ("link/spec.md", "`link` is a link"),
            ("alias.md", "`alias.md` is a link"),
            (".github/spec.md", "read by tools"),
            ("node_modules/a/spec.md", "read by tools"),
            ("docs/old.md", "overwrite: true"),
        ] {
            let error = resolve(bad, false).expect_err(bad);
            assert!(
                error.starts_with("output_path: ") && error.contains(part),
                "{bad}: {error}"
            );
        }
    }
}
