//! Identifies a project by its git history, or by its path outside of git.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use supervisor_memory::ProjectIdentity;
use supervisor_process::{CommandSpec, End, Launcher, environment};

const GIT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) async fn identify(
    launcher: &Launcher,
    root: &Path,
    stop: &CancellationToken,
) -> ProjectIdentity {
    let shallow = git(
        launcher,
        root,
        &["rev-parse", "--is-shallow-repository"],
        stop,
    )
    .await;
    let Some(shallow) = shallow else {
        return ProjectIdentity::new(None, false, None, root);
    };
    let first = git(
        launcher,
        root,
        &["rev-list", "--max-parents=0", "HEAD"],
        stop,
    )
    .await;
    // A history can have several root commits. The smallest hash is the same in every clone.
    let first = first.and_then(|all| all.split_whitespace().min().map(str::to_owned));
    let remote = git(
        launcher,
        root,
        &["config", "--get", "remote.origin.url"],
        stop,
    )
    .await;
    ProjectIdentity::new(
        first.as_deref(),
        shallow.trim() == "true",
        remote.as_deref(),
        root,
    )
}

/// The files that recent commits changed together with this one, with a weight: a small commit says
/// more than a large one. Paths are relative to the root. Empty without a history.
pub(crate) async fn changed_with(
    launcher: &Launcher,
    root: &Path,
    file: &Path,
    stop: &CancellationToken,
) -> Vec<(PathBuf, f64)> {
    let Some(path) = file.to_str().filter(|path| !path.is_empty()) else {
        return Vec::new();
    };
    let path = format!(":(literal){path}");
    let words = [
        "log",
        "--max-count=60",
        "--no-merges",
        "--no-show-signature",
        "--no-ext-diff",
        "--no-renames",
    ];
    let more = [
        "--full-diff",
        "--relative",
        "--name-only",
        "-z",
        "--format=%x01",
        "--",
        &path,
    ];
    let log = git(launcher, root, &[&words[..], &more].concat(), stop)
        .await
        .unwrap_or_default();
    weigh_commits(&log, file)
}

/// Parses `git log` output in which commits start with `\u{1}` and names end with NUL.
fn weigh_commits(log: &str, file: &Path) -> Vec<(PathBuf, f64)> {
    /// Larger commits say nothing about which files belong together.
    const MAX_FILES_PER_COMMIT: usize = 12;
    let mut found: BTreeMap<PathBuf, f64> = BTreeMap::new();
    for commit in log.split('\u{1}') {
        let names = commit
            .split('\0')
            .map(|name| Path::new(name.trim_matches('\n')))
            .filter(|name| *name != file);
        let names: Vec<&Path> = names.filter(|name| !name.as_os_str().is_empty()).collect();
        if names.len() <= MAX_FILES_PER_COMMIT {
            names.iter().for_each(|name| {
                *found.entry((*name).to_owned()).or_default() += 1.0 / names.len() as f64;
            });
        }
    }
    let mut found: Vec<(PathBuf, f64)> = found.into_iter().collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found
}

/// Runs git and returns its output, or `None` if it fails. No project configuration can make git
/// run a program.
async fn git(
    launcher: &Launcher,
    root: &Path,
    words: &[&str],
    stop: &CancellationToken,
) -> Option<String> {
    let fixed = [
        "git",
        "--no-pager",
        "--no-optional-locks",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
    ];
    let mut spec = CommandSpec::new(fixed.iter().chain(words).map(OsString::from), root);
    spec.env = environment::tests(std::env::vars_os(), &[], &[]);
    spec.limit = GIT_TIMEOUT;
    let finished = launcher.run(spec, stop).await;
    matches!(finished.end, End::Exited(0)).then(|| finished.stdout.text().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_commits_weigh_more() {
        let log = "\u{1}\0\na.py\0t.py\0\u{1}\0\nb.py\0c.py\0t.py\0\u{1}\0\nt.py\0";
        let found = weigh_commits(log, Path::new("t.py"));
        assert_eq!(
            found,
            [
                ("a.py".into(), 1.0),
                ("b.py".into(), 0.5),
                ("c.py".into(), 0.5)
            ]
        );
        assert!(weigh_commits("", Path::new("t.py")).is_empty());
    }
}
