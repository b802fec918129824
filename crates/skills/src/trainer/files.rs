//! The files of examples: one a month and kind, lines of JSON, appended whole or not at all.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::answers::training::ExampleKind;

/// The folder of training data.
#[derive(Debug, Clone)]
pub(super) struct TrainingFolder {
    path: PathBuf,
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GrownFile {
    pub(super) path: PathBuf,
    /// Lines that were to be written.
    pub(super) written: usize,
    /// Lines by which the file grew, counted by reading it again.
    pub(super) grown: usize,
    /// Each of them is JSON.
    pub(super) readable: bool,
}

impl TrainingFolder {
    pub(super) fn below(data: &Path) -> Self {
        Self {
            path: data.join("training"),
        }
    }

    /// The digests of everything that was written before.
    pub(super) fn digests(&self) -> BTreeSet<String> {
        let mut digests = BTreeSet::new();
        for kind in [ExampleKind::Sft, ExampleKind::Dpo] {
            for entry in fs::read_dir(self.path.join(word(kind)))
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
    ) -> Result<GrownFile, String> {
        let folder = self.path.join(word(kind));
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
        let own = text.len() as u64;
        rows.iter().for_each(|row| text += &format!("{row}\n"));
        if let Err(error) = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
        {
            // Whole or not at all.
            let _ = file.set_len(before);
            return Err(fail(error));
        }
        let mut added = String::new();
        file.seek(SeekFrom::Start(before + own))
            .and_then(|_| file.read_to_string(&mut added))
            .map_err(fail)?;
        let readable = added
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok());
        Ok(GrownFile {
            path,
            written: rows.len(),
            grown: added.lines().count(),
            readable,
        })
    }
}

fn word(kind: ExampleKind) -> &'static str {
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
