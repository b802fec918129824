//! Resolves paths given by the caller and rejects those that leave the project, also through links.

use std::path::{Component, Path, PathBuf};

use supervisor_engine::skill::RefusedCall;
use supervisor_text::words;

/// Returns the path relative to the root, whether or not it exists. Fails if it is outside the
/// project.
pub(crate) fn inside(root: &Path, given: &str) -> Result<PathBuf, String> {
    let outside = || {
        format!(
            "`{}` lies outside the project `{}`",
            words::plain(given),
            root.display()
        )
    };
    let full = root.join(given);
    // The nearest existing ancestor decides where links lead.
    let existing = full
        .ancestors()
        .find(|p| p.symlink_metadata().is_ok())
        .unwrap_or(root);
    let real = existing.canonicalize().map_err(|_| outside())?;
    let rest = full.strip_prefix(existing).unwrap_or(Path::new(""));
    if rest
        .components()
        .any(|c| !matches!(c, Component::Normal(_)))
    {
        return Err(outside());
    }
    let real = if rest.as_os_str().is_empty() {
        real
    } else {
        real.join(rest)
    };
    real.strip_prefix(root)
        .map(Path::to_owned)
        .map_err(|_| outside())
}

/// Like [`inside`], and the file must exist.
pub(crate) fn existing(root: &Path, given: &str, argument: &str) -> Result<PathBuf, RefusedCall> {
    let path =
        inside(root, given).map_err(|why| RefusedCall::error(format!("{argument}: {why}")))?;
    if root.join(&path).is_file() {
        return Ok(path);
    }
    Err(RefusedCall::error(format!(
        "{argument}: there is no file `{}` in `{}`; give a path relative to the project",
        words::plain(given),
        root.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn path_outside_the_project_is_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        fs::create_dir(root.join("tests")).expect("made");
        fs::write(root.join("tests/a.rs"), "").expect("written");
        std::os::unix::fs::symlink("/etc", root.join("out")).expect("linked");
        assert_eq!(inside(&root, "tests/a.rs"), Ok(PathBuf::from("tests/a.rs")));
        assert_eq!(
            inside(&root, "tests/../tests/a.rs"),
            Ok(PathBuf::from("tests/a.rs"))
        );
        assert_eq!(
            inside(&root, "tests/new.rs"),
            Ok(PathBuf::from("tests/new.rs"))
        );
        let whole = root.join("tests/a.rs");
        assert_eq!(
            inside(&root, &whole.display().to_string()),
            Ok(PathBuf::from("tests/a.rs"))
        );
        for bad in [
            "../x",
            "/etc/passwd",
            "out/passwd",
            "tests/../../x",
            "no/../../x",
        ] {
            assert!(inside(&root, bad).is_err(), "{bad}");
        }
    }
}
