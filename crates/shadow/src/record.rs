//! Records one proven change: the project's files with its code as it was before, and the tests of the change.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use jiff::Timestamp;
use supervisor_languages::Language;
use supervisor_process::Launcher;
use supervisor_prove::{Report, Verdict, files_at_commit, messages_since};
use supervisor_text::redact::Redactor;
use supervisor_text::words;
use supervisor_verify::protected::{FileRole, role};
use tokio_util::sync::CancellationToken;

use crate::store::{HostUsage, ShadowStore, ShadowTask};

/// Larger projects are not recorded: a copy of each task is kept.
const MAX_FILES: usize = 5_000;
const MAX_BYTES: u64 = 64 << 20;
const MAX_FILE_BYTES: u64 = 2 << 20;
const MAX_DESCRIPTION_BYTES: usize = 2_000;

/// A change that was proven.
pub struct RecordRequest<'a> {
    pub root: &'a Path,
    /// The commit that it was compared with.
    pub base: &'a str,
    pub report: &'a Report,
    /// What was asked for; if that is not known, the messages of the commits are taken.
    pub description: &'a str,
    pub test_cmd: Option<&'a str>,
    pub host: Option<HostUsage>,
    pub now: Timestamp,
    pub redactor: &'a Redactor,
    pub launcher: &'a Launcher,
    pub env: &'a BTreeMap<OsString, OsString>,
}

/// Why a change is no task for a replay. None of them is a fault.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("shadow mode is off")]
    Off,
    #[error("the change is not proven")]
    NotProven,
    #[error("no test fails without the change, so there is nothing to replay")]
    NoTest,
    #[error("the change has no code beside its tests")]
    NoCode,
    #[error("what the change replaced cannot be read from git")]
    NoBase,
    #[error("the project has more than {MAX_FILES} files or {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    #[error("the task cannot be stored: {0}")]
    Io(#[from] io::Error),
}

/// Stores the change as a task. The same change is stored once.
pub async fn record(
    store: &ShadowStore,
    request: &RecordRequest<'_>,
    stop: &CancellationToken,
) -> Result<ShadowTask, RecordError> {
    if store.settings().is_none() {
        return Err(RecordError::Off);
    }
    let report = request.report;
    if report.verdict != Verdict::Proven {
        return Err(RecordError::NotProven);
    }
    if report.fail_without_change.is_empty() {
        return Err(RecordError::NoTest);
    }
    let base = files_at_commit(
        request.launcher,
        request.env,
        request.root,
        request.base,
        stop,
    )
    .await
    .ok_or(RecordError::NoBase)?;
    let commits = match request.description.trim().is_empty() {
        true => {
            let (launcher, env) = (request.launcher, request.env);
            messages_since(launcher, env, request.root, request.base, stop).await
        }
        false => String::new(),
    };
    let request = &RecordRequest {
        description: match commits.is_empty() {
            true => request.description,
            false => &commits,
        },
        ..*request
    };
    let task = describe(request, &base)?;
    store.expire(request.now)?;
    let files = project_files(request.root)?;
    store.add(&task, |tree| write_tree(request, &files, &base, tree))?;
    Ok(task)
}

type BaseFiles = BTreeMap<PathBuf, Option<Vec<u8>>>;

fn describe(request: &RecordRequest<'_>, base: &BaseFiles) -> Result<ShadowTask, RecordError> {
    let report = request.report;
    let language = base
        .keys()
        .filter(|path| is_code(path))
        .find_map(|path| Language::of_path(path));
    let is_test = |path: &Path| role(language, path) == FileRole::Test;
    let mut lines = 0;
    for (path, before) in base.iter().filter(|(path, _)| is_code(path)) {
        let before = String::from_utf8_lossy(before.as_deref().unwrap_or_default()).into_owned();
        let after = fs::read_to_string(request.root.join(path)).unwrap_or_default();
        lines += changed_lines(&before, &after);
    }
    if lines == 0 {
        return Err(RecordError::NoCode);
    }
    // Of several changed test files the one that names a test that fails without the change.
    let names = || {
        report
            .fail_without_change
            .iter()
            .map(|name| short_name(&name.0))
    };
    let test_path = base
        .keys()
        .filter(|path| is_test(path))
        .max_by_key(|path| {
            let text = fs::read_to_string(request.root.join(path)).unwrap_or_default();
            names().filter(|name| text.contains(name)).count()
        })
        .and_then(|path| path.to_str())
        .ok_or(RecordError::NoTest)?;
    let tests: Vec<String> = report
        .fail_without_change
        .iter()
        .map(|name| name.0.clone())
        .collect();
    let description = request.redactor.redact(request.description);
    let seed = format!(
        "{}\0{}\0{}\0{lines}",
        request.root.display(),
        request.base,
        tests.join("\0")
    );
    Ok(ShadowTask {
        id: format!("{:016x}", fnv(&seed)),
        recorded_at: request.now,
        project_root: request.root.to_owned(),
        language: language.map_or("any", |language| language.name).to_owned(),
        lines,
        description: words::cut_end(&description, MAX_DESCRIPTION_BYTES).into_owned(),
        test_path: test_path.to_owned(),
        tests,
        test_cmd: request.test_cmd.map(str::to_owned),
        host: request.host,
        replayed: None,
    })
}

/// Whether a worker would have to write this file.
fn is_code(path: &Path) -> bool {
    role(Language::of_path(path), path) == FileRole::Source
}

/// `tests/a.py::test_x[1]` is written as `test_x`.
fn short_name(name: &str) -> &str {
    let name = name.split('[').next().unwrap_or(name);
    name.rsplit([':', '.', '#', ' ', '/'])
        .next()
        .unwrap_or(name)
}

/// Lines that are in one of the texts only.
fn changed_lines(before: &str, after: &str) -> usize {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    before
        .lines()
        .for_each(|line| *counts.entry(line).or_default() -= 1);
    after
        .lines()
        .for_each(|line| *counts.entry(line).or_default() += 1);
    let changed: u64 = counts.values().map(|n| n.unsigned_abs()).sum();
    usize::try_from(changed).unwrap_or(usize::MAX)
}

/// What git would track, with untracked files.
fn project_files(root: &Path) -> Result<BTreeSet<PathBuf>, RecordError> {
    let mut files = BTreeSet::new();
    let mut bytes = 0;
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    for entry in walk.flatten() {
        let Some(meta) = entry.metadata().ok().filter(std::fs::Metadata::is_file) else {
            continue;
        };
        if meta.len() > MAX_FILE_BYTES {
            continue;
        }
        bytes += meta.len();
        if files.len() == MAX_FILES || bytes > MAX_BYTES {
            return Err(RecordError::TooLarge);
        }
        if let Ok(path) = entry.path().strip_prefix(root) {
            files.insert(path.to_owned());
        }
    }
    Ok(files)
}

/// Code as it was, everything else as it is, secrets taken out.
fn write_tree(
    request: &RecordRequest<'_>,
    files: &BTreeSet<PathBuf>,
    base: &BaseFiles,
    tree: &Path,
) -> io::Result<()> {
    let code_before = |path: &Path| base.get(path).filter(|_| is_code(path));
    let gone = base
        .iter()
        .filter(|(path, before)| is_code(path) && before.is_some() && !files.contains(*path))
        .map(|(path, _)| path);
    for path in files.iter().chain(gone) {
        let bytes = match code_before(path) {
            Some(Some(before)) => before.clone(),
            // The change added it.
            Some(None) => continue,
            None => fs::read(request.root.join(path))?,
        };
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => request.redactor.redact(&text).into_owned().into_bytes(),
            Err(binary) => binary.into_bytes(),
        };
        let to = tree.join(path);
        fs::create_dir_all(to.parent().unwrap_or(tree))?;
        fs::write(&to, bytes)?;
        let mode = fs::metadata(request.root.join(path)).map_or(0o600, |m| m.permissions().mode());
        fs::set_permissions(&to, fs::Permissions::from_mode(mode & 0o700))?;
    }
    Ok(())
}

/// FNV-1a: an id that is the same for the same change.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
