//! The file that a specification becomes. What speaks against it is told before any model is asked.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{inside, named};
use supervisor_engine::site::Site;
use supervisor_engine::skill::RefusedCall;
use supervisor_text::words;
use supervisor_verify::sealed::{FileRole, role};

/// A place for the document, and what is there now.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Relative to the project.
    pub(super) path: PathBuf,
    pub(super) before: Before,
}

/// What the document takes the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// To be updated, as the caller said.
    Document(String),
}

/// Bytes of an old document that are read; models are shown less.
const MOST: usize = 64 * 1024;

impl Target {
    /// By name alone: what can be refused without holding the project.
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
                "`{}` is no Markdown file; end it in `.md`",
                words::plain(given)
            )));
        }
        // A link could lead elsewhere between now and then.
        let whole = root.join(given);
        let below = whole
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

    /// Under the lock: whether the snapshot would let it be written, and what it says now.
    pub(super) fn read(site: &mut Site, path: PathBuf) -> Result<Self, RefusedCall> {
        let root = site.root().to_owned();
        let armed = site.armed().map_err(RefusedCall::error)?;
        let refused = |e| RefusedCall::error(format!("output_path: {e}"));
        armed.may_write(&path.to_string_lossy()).map_err(refused)?;
        let before = match fs::symlink_metadata(root.join(&path)) {
            Err(_) => Before::Nothing,
            Ok(_) => {
                let bytes = armed.original(&path).unwrap_or_default();
                Before::Document(
                    words::cut_middle(&String::from_utf8_lossy(&bytes), MOST).into_owned(),
                )
            }
        };
        Ok(Self { path, before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_cannot_be_meant_is_refused_with_what_helps() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        fs::create_dir(root.join("docs")).expect("made");
        fs::write(root.join("docs/old.md"), "old").expect("written");
        std::os::unix::fs::symlink("docs", root.join("link")).expect("linked");
        std::os::unix::fs::symlink("docs/old.md", root.join("alias.md")).expect("linked");
        let named = |given: &str, overwrite| {
            Target::resolve(&root, given, overwrite).map_err(|e| e.message)
        };
        for fine in ["docs/spec.md", "./a/b/c.MD", "spec.md", "spec/spec.md"] {
            assert!(
                named(fine, false).is_ok(),
                "{fine}: {:?}",
                named(fine, false)
            );
        }
        assert_eq!(named("docs/old.md", true), Ok("docs/old.md".into()));
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
            let said = named(bad, false).expect_err(bad);
            assert!(
                said.starts_with("output_path: ") && said.contains(part),
                "{bad}: {said}"
            );
        }
    }
}
