//! Finds and reads the project files that an error or an answer names.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::common::inside;
use supervisor_pack as pack;
use supervisor_text::redact::is_secret_file;
use supervisor_text::words;

/// Max size of a file that can be shown or cited.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads a file as text. Returns its path in the project, or the reason it cannot be shown or
/// cited.
pub(super) fn read(root: &Path, given: &str) -> Result<(PathBuf, String), String> {
    let path = inside(root, given.trim())?;
    let named = words::plain(&path.to_string_lossy()).into_owned();
    if is_private(&path) {
        return Err(format!("`{named}` is not shown to anybody"));
    }
    let full = root.join(&path);
    let meta =
        fs::metadata(&full).map_err(|_| format!("there is no file `{named}` in the project"))?;
    if !meta.is_file() {
        return Err(format!("`{named}` is not a file"));
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(format!(
            "`{named}` is larger than {} KiB",
            MAX_FILE_BYTES >> 10
        ));
    }
    let mut bytes = Vec::new();
    let opened =
        File::open(&full).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    opened.map_err(|e| format!("`{named}` cannot be read: {e}"))?;
    if bytes.contains(&0) {
        return Err(format!("`{named}` is not text"));
    }
    Ok((path, String::from_utf8_lossy(&bytes).into_owned()))
}

/// The `.git` directory, and files that conventionally hold secrets.
fn is_private(path: &Path) -> bool {
    path.iter().any(|part| part == ".git") || is_secret_file(path)
}

/// Resolves a path from an error to a file in this project, even if the error comes from another
/// machine where the project had another root.
fn locate(root: &Path, mentioned_path: &str) -> Option<PathBuf> {
    let parts: Vec<_> = Path::new(mentioned_path).components().collect();
    (0..parts.len().min(12)).find_map(|skip| {
        let rest: PathBuf = parts[skip..].iter().collect();
        let found = inside(root, rest.to_str()?).ok()?;
        (root.join(&found).is_file() && !is_private(&found)).then_some(found)
    })
}

/// The files that a text mentions, in order, with the mentioned lines.
pub(super) fn mentioned(root: &Path, text: &str) -> Vec<(PathBuf, Vec<usize>)> {
    let mut found: Vec<(PathBuf, Vec<usize>)> = Vec::new();
    for (mentioned_path, line) in pack::locations(text)
        .into_iter()
        .chain(text.lines().filter_map(shell_location))
    {
        let Some(path) = locate(root, &mentioned_path) else {
            continue;
        };
        match found.iter_mut().find(|(known, _)| *known == path) {
            Some((_, lines)) => lines.push(line),
            None => found.push((path, vec![line])),
        }
    }
    found
}

/// Parses shell errors such as `run.sh: 4: cd: …` and `run.sh: line 4: cd: …`.
fn shell_location(line: &str) -> Option<(String, usize)> {
    let (file, rest) = line.trim().split_once(": ")?;
    let number = rest
        .strip_prefix("line ")
        .unwrap_or(rest)
        .split(':')
        .next()?;
    Some((file.to_owned(), number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_files_of_the_project_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        fs::create_dir_all(root.join(".git")).expect("made");
        for (name, bytes) in [
            ("a.py", &b"x = 1\n"[..]),
            (".git/config", b"k"),
            (".env", b"k"),
            ("b.bin", b"\0"),
            ("l.py", b"\xff\n"),
        ] {
            fs::write(root.join(name), bytes).expect("written");
        }
        fs::write(root.join("big"), vec![b'x'; (MAX_FILE_BYTES + 1) as usize]).expect("written");
        std::os::unix::fs::symlink("/etc/passwd", root.join("out")).expect("linked");
        assert_eq!(
            read(&root, "./a.py"),
            Ok((PathBuf::from("a.py"), String::from("x = 1\n")))
        );
        assert_eq!(
            read(&root, &root.join("a.py").display().to_string()).map(|f| f.0),
            Ok(PathBuf::from("a.py"))
        );
        assert!(read(&root, "l.py").is_ok());
        for (given, why) in [
            ("none.py", "no file `none.py`"),
            (".git/config", "not shown"),
            (".env", "not shown"),
            ("b.bin", "not text"),
            ("big", "larger than"),
            ("out", "outside"),
            ("../x", "outside"),
            (".", "not a file"),
        ] {
            let error = read(&root, given).expect_err("refused");
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn paths_under_another_root_are_resolved() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        fs::create_dir(root.join("pkg")).expect("made");
        fs::write(root.join("pkg/a.py"), "").expect("written");
        let text =
            "File \"/home/me/app/pkg/a.py\", line 3, in f\n  pkg/a.py:9: x\n  /usr/lib/b.py:1: y";
        assert_eq!(
            mentioned(&root, text),
            [(PathBuf::from("pkg/a.py"), vec![9, 3])]
        );
        let text = "pkg/a.py: 4: cd: no\n/x/pkg/a.py: line 8: no\nerror: 5: no\nnote: line x: no";
        assert_eq!(
            mentioned(&root, text),
            [(PathBuf::from("pkg/a.py"), vec![4, 8])]
        );
    }
}
