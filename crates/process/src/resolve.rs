//! Finds a program before it is started, to tell "missing", "not executable" and "no such
//! directory" apart.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::StartError;

/// Looks up a program like `execvp`, but skips relative entries of the PATH: those would depend on
/// the current directory. With `forbid_under`, nothing inside that directory is accepted, not even
/// through a link.
pub fn which(
    name: impl AsRef<OsStr>,
    path_var: Option<&OsStr>,
    forbid_under: Option<&Path>,
) -> Result<PathBuf, StartError> {
    let name = name.as_ref();
    let shown = || name.to_string_lossy().into_owned();
    let forbidden =
        forbid_under.map(|root| root.canonicalize().unwrap_or_else(|_| root.to_owned()));
    let allowed = |found: &Path| match &forbidden {
        None => true,
        Some(root) => {
            !found.starts_with(root)
                && found
                    .canonicalize()
                    .is_ok_and(|real| !real.starts_with(root))
        }
    };
    let mut not_executable = None;
    for candidate in candidates(name, path_var) {
        match check_executable(&candidate) {
            Ok(()) if allowed(&candidate) => return Ok(candidate),
            Ok(()) | Err(StartError::NotFound(_)) => {}
            // A PATH directory that cannot be searched says nothing about the program.
            Err(e) => not_executable = not_executable.or(candidate.exists().then_some(e)),
        }
    }
    Err(not_executable.unwrap_or_else(|| StartError::NotFound(shown())))
}

/// Resolves the program of a command: a path is relative to the working directory, a name is looked
/// up.
pub(super) fn program_path(
    argv0: &OsStr,
    cwd: &Path,
    path_var: Option<&OsStr>,
) -> Result<PathBuf, StartError> {
    if !cwd.is_dir() || access(cwd, Access::EXEC_OK).is_err() {
        return Err(StartError::NoDirectory(cwd.display().to_string()));
    }
    if argv0.as_bytes().contains(&b'/') {
        let program = cwd.join(argv0);
        return check_executable(&program).map(|()| program);
    }
    which(argv0, path_var, None)
}

fn candidates(name: &OsStr, path_var: Option<&OsStr>) -> Vec<PathBuf> {
    if name.is_empty() {
        return Vec::new();
    }
    if name.as_bytes().contains(&b'/') {
        return if Path::new(name).is_absolute() {
            vec![name.into()]
        } else {
            Vec::new()
        };
    }
    let entries = path_var
        .map(|path| std::env::split_paths(path).collect::<Vec<_>>())
        .unwrap_or_default();
    entries
        .into_iter()
        .filter(|entry| entry.is_absolute())
        .map(|entry| entry.join(name))
        .collect()
}

fn check_executable(program: &Path) -> Result<(), StartError> {
    let shown = program.display().to_string();
    match std::fs::metadata(program) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(StartError::NotExecutable(shown))
        }
        Err(_) => Err(StartError::NotFound(shown)),
        Ok(meta) if !meta.is_file() => Err(StartError::NotExecutable(shown)),
        Ok(_) if access(program, Access::EXEC_OK).is_err() => Err(StartError::NotExecutable(shown)),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn put(dir: &Path, name: &str, mode: u32) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn first_executable_on_path_wins() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(a.path(), "tool", 0o644);
        let right = put(b.path(), "tool", 0o755);
        let path = std::env::join_paths([a.path(), b.path()]).unwrap();
        assert_eq!(which("tool", Some(&path), None), Ok(right.clone()));
        let only_a = std::env::join_paths([a.path()]).unwrap();
        assert!(
            matches!(which("tool", Some(&only_a), None), Err(StartError::NotExecutable(p)) if p.ends_with("tool"))
        );
        assert_eq!(
            which("other", Some(&path), None),
            Err(StartError::NotFound("other".into()))
        );
        assert_eq!(
            which("tool", None, None),
            Err(StartError::NotFound("tool".into()))
        );
        assert_eq!(which(&right, None, None), Ok(right));
    }

    #[test]
    fn relative_path_entries_are_skipped() {
        assert!(matches!(
            which("Cargo.toml", Some(OsStr::new(":.:src")), None),
            Err(StartError::NotFound(_))
        ));
    }

    #[test]
    fn forbidden_directory_is_never_used() {
        let (project, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bin = project.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let planted = put(&bin, "git", 0o755);
        std::os::unix::fs::symlink(&planted, outside.path().join("git")).unwrap();
        let path = std::env::join_paths([bin.as_path(), outside.path()]).unwrap();
        assert_eq!(which("git", Some(&path), None), Ok(planted));
        assert_eq!(
            which("git", Some(&path), Some(project.path())),
            Err(StartError::NotFound("git".into()))
        );
    }

    #[test]
    fn program_path_is_relative_to_cwd() {
        let dir = tempfile::tempdir().unwrap();
        let program = put(dir.path(), "run", 0o755);
        assert_eq!(
            program_path(OsStr::new("./run"), dir.path(), None)
                .unwrap()
                .canonicalize()
                .unwrap(),
            program
        );
        assert!(matches!(
            program_path(OsStr::new("./gone"), dir.path(), None),
            Err(StartError::NotFound(_))
        ));
        assert!(matches!(
            program_path(OsStr::new("./run"), &dir.path().join("gone"), None),
            Err(StartError::NoDirectory(_))
        ));
        assert!(matches!(
            program_path(OsStr::new("/bin/sh"), &program, None),
            Err(StartError::NoDirectory(_))
        ));
    }
}
