//! The notes folder: file names, safe writing, and the trash.

use std::path::{Path, PathBuf};

use super::note::Note;
use supervisor_workspace::{ConfinedFolder, FolderEntry, FolderError};

/// Maximum note size. Longer texts should be files that a note cites.
pub const MAX_NOTE_BYTES: u64 = 1 << 20;
const LOCK: &str = ".lock";
const TRASH: &str = ".trash";
const MAX_DEPTH: usize = 6;
const MAX_NAME_LEN: usize = 120;

/// All notes of this user, in one directory.
#[derive(Debug)]
pub struct NoteFolder {
    folder: ConfinedFolder,
}

/// A note to be written.
#[derive(Debug, Clone, Default)]
pub struct NoteDraft {
    pub note: Note,
    /// File name; derived from the title if absent.
    pub filename: Option<String>,
    pub overwrite: bool,
}

/// A note that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenNote {
    /// Relative to the folder.
    pub name: String,
    pub path: PathBuf,
    pub bytes: usize,
    pub created: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    #[error(
        "{0:?} names no note: use letters, digits, `-`, `_`, `.` and at most five `/`, without `..`, at most {MAX_NAME_LEN} characters"
    )]
    Name(String),
    #[error(
        "`{0}` is there already; pass `overwrite: true` to replace it, or choose another `filename`"
    )]
    Exists(String),
    #[error(
        "`{name}` has front matter that cannot be read ({why}); it is not rewritten: correct it by hand first"
    )]
    Unreadable { name: String, why: String },
    #[error("there is no note `{0}`; `brain_query` shows the paths of notes")]
    Missing(String),
    #[error(
        "a note of {size} bytes is too long, {MAX_NOTE_BYTES} is the most; keep it as a file and cite it"
    )]
    TooLarge { size: usize },
    #[error(
        "the folder of notes `{path}` cannot be made: {source}; set `brain.dir` to one that can be written"
    )]
    NoFolder {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl NoteFolder {
    /// Opens the directory, creating it if needed.
    pub fn open(path: &Path) -> Result<Self, NoteError> {
        use std::os::unix::fs::DirBuilderExt as _;
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        made.map_err(|source| NoteError::NoFolder {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            folder: ConfinedFolder::open(path)?,
        })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Every `.md` file with its metadata, sorted by name. Hidden folders are skipped.
    pub fn list(&self) -> Result<Vec<(String, FolderEntry)>, NoteError> {
        let mut notes = Vec::new();
        self.walk("", 0, &mut notes)?;
        // The walk is not in name order: `a.md` sorts before `a/b.md`.
        notes.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(notes)
    }

    fn walk(
        &self,
        dir: &str,
        depth: usize,
        notes: &mut Vec<(String, FolderEntry)>,
    ) -> Result<(), NoteError> {
        // `entries` skips links: files from elsewhere are not notes.
        for (name, entry) in self.folder.entries(dir)? {
            if name.starts_with('.') {
                continue;
            }
            let path = if dir.is_empty() {
                name
            } else {
                format!("{dir}/{name}")
            };
            if entry.is_dir && depth < MAX_DEPTH {
                self.walk(&path, depth + 1, notes)?;
            } else if !entry.is_dir && path.ends_with(".md") {
                notes.push((path, entry));
            }
        }
        Ok(())
    }

    /// `None` if the note does not exist.
    pub fn read(&self, name: &str) -> Result<Option<String>, NoteError> {
        let bytes = self.folder.read(name, MAX_NOTE_BYTES)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Reads one of our own files beside the notes.
    pub(super) fn read_hidden(
        &self,
        name: &str,
        max_bytes: u64,
    ) -> Result<Option<String>, NoteError> {
        let bytes = self.folder.read(name, max_bytes)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    pub(super) fn append_hidden(&self, name: &str, text: &str) -> Result<(), NoteError> {
        Ok(self.folder.append(name, text.as_bytes())?)
    }

    /// Writes a note under a lock. An existing note is replaced only if `overwrite` is set.
    pub fn write(&self, draft: NoteDraft) -> Result<WrittenNote, NoteError> {
        let NoteDraft {
            mut note,
            filename,
            overwrite,
        } = draft;
        let name = match &filename {
            Some(given) => validate_name(given)?,
            None => format!("{}.md", slug(&note.title)),
        };
        let _lock = self.folder.lock(LOCK)?;
        let existing = self.read(&name)?.map(|text| Note::parse(&name, &text));
        match &existing {
            Some(_) if !overwrite => return Err(NoteError::Exists(name)),
            Some(Note {
                warning: Some(why), ..
            }) => {
                return Err(NoteError::Unreadable {
                    name,
                    why: why.clone(),
                });
            }
            Some(old) => {
                note.created.clone_from(&old.created);
                note.unknown.clone_from(&old.unknown);
            }
            None => {}
        }
        let text = note.render();
        if text.len() as u64 > MAX_NOTE_BYTES {
            return Err(NoteError::TooLarge { size: text.len() });
        }
        self.folder.write(&name, text.as_bytes())?;
        Ok(WrittenNote {
            path: self.folder.locate(&name),
            bytes: text.len(),
            created: existing.is_none(),
            name,
        })
    }

    /// Moves a note to the trash, where it keeps its name.
    pub fn delete(&self, given: &str) -> Result<PathBuf, NoteError> {
        let name = validate_name(given)?;
        let _lock = self.folder.lock(LOCK)?;
        if self.folder.entry(&name)?.is_none_or(|entry| entry.is_dir) {
            return Err(NoteError::Missing(name));
        }
        let stamp = jiff::Timestamp::now().as_millisecond();
        let trash = format!("{TRASH}/{stamp}-{}", name.replace('/', "-"));
        self.folder.rename(&name, &trash)?;
        Ok(self.folder.locate(&trash))
    }
}

/// Validates a name: it stays inside the folder and gets the ending `.md`.
fn validate_name(given: &str) -> Result<String, NoteError> {
    let invalid = || NoteError::Name(given.chars().take(80).collect());
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '/');
    if given.is_empty() || given.len() > MAX_NAME_LEN || !given.chars().all(is_plain) {
        return Err(invalid());
    }
    let parts: Vec<&str> = given.split('/').collect();
    if parts.len() > MAX_DEPTH
        || parts
            .iter()
            .any(|part| part.is_empty() || part.starts_with('.') || part.trim() != *part)
    {
        return Err(invalid());
    }
    Ok(if given.ends_with(".md") {
        given.to_owned()
    } else {
        format!("{given}.md")
    })
}

/// `Why the build is slow!` becomes `why-the-build-is-slow`.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.to_lowercase().chars() {
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
        if slug.len() >= 80 {
            break;
        }
    }
    let slug = slug.trim_matches('-');
    if slug.is_empty() {
        String::from("note")
    } else {
        slug.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_folder() {
        for bad in [
            "",
            "../x",
            "/etc/x",
            "a/../b",
            ".hidden",
            "a\0b",
            "a/.b",
            &"x".repeat(300),
            "a//b",
            "x/",
        ] {
            assert!(validate_name(bad).is_err(), "{bad:?}");
        }
        assert_eq!(validate_name("a/b").expect("a name"), "a/b.md");
        assert_eq!(validate_name("a.md").expect("a name"), "a.md");
        assert_eq!(slug("Why the Build is slow!"), "why-the-build-is-slow");
        assert_eq!(slug("…"), "note");
    }

    #[test]
    fn overwrite_is_explicit_and_trash_keeps_notes() {
        let dir = tempfile::tempdir().expect("temp dir");
        let notes = NoteFolder::open(dir.path()).expect("opened");
        let draft = |body: &str, overwrite| NoteDraft {
            note: Note {
                title: "T".into(),
                body: body.into(),
                created: "1".into(),
                ..Note::default()
            },
            filename: None,
            overwrite,
        };
        notes.write(draft("one", false)).expect("written");
        assert!(matches!(
            notes.write(draft("two", false)),
            Err(NoteError::Exists(_))
        ));
        assert!(!notes.write(draft("two", true)).expect("replaced").created);
        std::fs::write(dir.path().join("broken.md"), "---\na: [\n---\nx").expect("write");
        let broken = NoteDraft {
            filename: Some("broken".into()),
            ..draft("x", true)
        };
        assert!(matches!(
            notes.write(broken),
            Err(NoteError::Unreadable { .. })
        ));
        let trash = notes.delete("t.md").expect("deleted");
        assert!(
            std::fs::read_to_string(trash)
                .expect("kept")
                .contains("two")
        );
        assert_eq!(notes.list().expect("listed").len(), 1);
    }
}
