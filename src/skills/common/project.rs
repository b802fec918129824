//! Which project a directory is, as git tells it. A directory that git does not know is known by its path.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::memory::ProjectIdentity;
use crate::process::{End, Launcher, Spec, environment};

const LIMIT: Duration = Duration::from_secs(10);

pub(in crate::skills) async fn identify(launcher: &Launcher, root: &Path, stop: &CancellationToken) -> ProjectIdentity {
    let shallow = ask(launcher, root, &["rev-parse", "--is-shallow-repository"], stop).await;
    let Some(shallow) = shallow else { return ProjectIdentity::new(None, false, None, root) };
    let first = ask(launcher, root, &["rev-list", "--max-parents=0", "HEAD"], stop).await;
    // A history with several beginnings is known by the one that sorts first, which is the same in every clone.
    let first = first.and_then(|all| all.split_whitespace().min().map(str::to_owned));
    let remote = ask(launcher, root, &["config", "--get", "remote.origin.url"], stop).await;
    ProjectIdentity::new(first.as_deref(), shallow.trim() == "true", remote.as_deref(), root)
}

/// What git prints; `None` if it says no. Nothing of the project's configuration can make it run a program.
async fn ask(launcher: &Launcher, root: &Path, words: &[&str], stop: &CancellationToken) -> Option<String> {
    let fixed =
        ["git", "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
    let mut spec = Spec::new(fixed.iter().chain(words).map(OsString::from), root);
    spec.env = environment::tests(std::env::vars_os(), &[], &[]);
    spec.limit = LIMIT;
    let finished = launcher.run(spec, stop).await;
    matches!(finished.end, End::Exited(0)).then(|| finished.stdout.text().into_owned())
}
