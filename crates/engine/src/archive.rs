//! Writes complete results to files, so that replies can be short: everything in the caller's
//! context is paid for in every later turn. The files are private to the user and kept for a week.
//! If a result cannot be written, the reply contains all of it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::project_access::blocking;
use super::result::CallResult;
use supervisor_workspace::state::StateDir;

/// Directory below the state directory.
const FOLDER: &str = "results";
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Longer diffs are written to a file; the reply only contains the path.
pub const INLINE_DIFF: usize = 600;

/// Writes the result to a file and adds its path.
pub async fn archive(state: &StateDir, mut result: CallResult) -> CallResult {
    let (state, whole) = (state.clone(), result.clone());
    match blocking(move || write(&state, &whole)).await {
        Ok(paths) => {
            result.more.full_result = paths.whole.display().to_string();
            result.more.diff_path = paths
                .diff
                .map(|path| path.display().to_string())
                .unwrap_or_default();
        }
        Err(error) => tracing::warn!("a result could not be kept: {error}"),
    }
    result
}

struct ArchivedPaths {
    whole: PathBuf,
    /// Set if the diff is too long for a reply.
    diff: Option<PathBuf>,
}

/// The complete results that are still kept, newest first.
pub fn kept(state: &StateDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(state.path().join(FOLDER))
        .into_iter()
        .flatten();
    let mut found: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|e| e == "json"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Writes a text that is too long for a reply to its own file and returns the path.
pub fn write_text(state: &StateDir, ending: &str, text: &str) -> io::Result<PathBuf> {
    let folder = state.sub(FOLDER).map_err(io::Error::other)?;
    prune(&folder);
    let path = folder.join(format!(
        "{:016x}.{ending}",
        getrandom::u64().map_err(io::Error::other)?
    ));
    create(&path, text.as_bytes())?;
    Ok(path)
}

fn write(state: &StateDir, result: &CallResult) -> io::Result<ArchivedPaths> {
    let folder = state.sub(FOLDER).map_err(io::Error::other)?;
    prune(&folder);
    let number = getrandom::u64().map_err(io::Error::other)?;
    let whole = folder.join(format!("{number:016x}.json"));
    let mut text = serde_json::to_vec_pretty(result).map_err(io::Error::other)?;
    text.push(b'\n');
    create(&whole, &text)?;
    let diff = (result.more.diff.len() > INLINE_DIFF).then(|| whole.with_extension("diff"));
    if let Some(diff) = &diff {
        create(diff, result.more.diff.as_bytes())?;
    }
    Ok(ArchivedPaths { whole, diff })
}

fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(bytes)
}

/// Removes files older than a week. Failures are retried the next time.
fn prune(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let now = SystemTime::now();
    for entry in entries.flatten() {
        let age = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .map(|then| now.duration_since(then));
        if matches!(age, Ok(Ok(age)) if age > MAX_AGE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::result::{More, Status};

    #[tokio::test]
    async fn results_and_long_diffs_expire_after_a_week() {
        let dir = tempfile::tempdir().expect("a directory");
        let state = StateDir::at(dir.path().join("state")).expect("absolute");
        let result = CallResult {
            status: Status::Pass,
            message: "green".into(),
            phase: "green".into(),
            skill: "tdd_green".into(),
            file_path: String::new(),
            runner_output: "1 passed".into(),
            verified: true,
            model_used: "m".into(),
            more: More {
                diff: "+line\n".repeat(200),
                ..More::default()
            },
        };
        let first = archive(&state, result.clone()).await;
        assert_eq!(
            fs::read_to_string(&first.more.diff_path).expect("kept"),
            result.more.diff
        );
        let kept = fs::read_to_string(&first.more.full_result).expect("kept");
        assert_eq!(
            serde_json::from_str::<CallResult>(&kept).expect("JSON"),
            result
        );
        assert_eq!(
            fs::metadata(&first.more.full_result)
                .expect("there")
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
        fs::File::options()
            .write(true)
            .open(&first.more.full_result)
            .expect("ours")
            .set_modified(old)
            .expect("set");
        let second = archive(
            &state,
            CallResult {
                more: More::default(),
                ..result
            },
        )
        .await;
        assert!(
            !Path::new(&first.more.full_result).exists(),
            "a week is over"
        );
        assert!(Path::new(&second.more.full_result).exists() && second.more.diff_path.is_empty());
    }
}
