//! The training files: one JSON Lines file per month and kind. An append is all or nothing.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::training::ExampleKind;

/// The training data folder.
#[derive(Debug, Clone)]
pub(super) struct TrainingFolder {
    path: PathBuf,
}

/// The outcome of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AppendedFile {
    pub(super) path: PathBuf,
    /// Lines that should have been written.
    pub(super) expected_lines: usize,
    /// Lines added to the file, counted by reading it back.
    pub(super) added_lines: usize,
    /// Whether each added line is valid JSON.
    pub(super) is_readable: bool,
}

impl TrainingFolder {
    pub(super) fn below(data: &Path) -> Self {
        Self {
            path: data.join("training"),
        }
    }

    /// The digests of all examples written so far.
    pub(super) fn digests(&self) -> BTreeSet<String> {
        let mut digests = BTreeSet::new();
        for kind in [ExampleKind::Sft, ExampleKind::Dpo] {
            for entry in fs::read_dir(self.path.join(dir_name(kind)))
                .into_iter()
                .flatten()
                .flatten()
            {
                let Ok(file) = File::open(entry.path()) else {
                    continue;
                };
                for line in BufReader::new(file).lines().map_while(Result::ok) {
                    let row: Value = serde_json::from_str(&line).unwrap_or_default();
                    digests.extend(row["digest"].as_str().map(str::to_owned));
                }
            }
        }
        digests
    }

    /// Appends the rows of one kind.
    pub(super) fn append(
        &self,
        kind: ExampleKind,
        month: &str,
        rows: &[Value],
    ) -> Result<AppendedFile, String> {
        let folder = self.path.join(dir_name(kind));
        let path = folder.join(format!("{month}.jsonl"));
        let fail = |error: io::Error| {
            format!(
                "`{}` cannot be written: {error}; free some space, or make it writable",
                path.display()
            )
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(fail)?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(fail)?;
        file.lock().map_err(fail)?;
        let before = file.metadata().map_err(fail)?.len();
        let mut text = String::new();
        if before > 0 && !ends_in_newline(&mut file).map_err(fail)? {
            text.push('\n');
        }
        let separator_len = text.len() as u64;
        rows.iter().for_each(|row| text += &format!("{row}\n"));
        if let Err(error) = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
        {
            // Undo a partial write.
            let _ = file.set_len(before);
            return Err(fail(error));
        }
        let mut added = String::new();
        file.seek(SeekFrom::Start(before + separator_len))
            .and_then(|_| file.read_to_string(&mut added))
            .map_err(fail)?;
        let is_readable = added
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok());
        Ok(AppendedFile {
            path,
            expected_lines: rows.len(),
            added_lines: added.lines().count(),
            is_readable,
        })
    }
}

fn dir_name(kind: ExampleKind) -> &'static str {
    match kind {
        ExampleKind::Sft => "sft",
        ExampleKind::Dpo => "dpo",
    }
}

fn ends_in_newline(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
