//! Which walls can stand around test commands and agents here? Found out by putting them up.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Case, Finding};
use supervisor_process::{
    ChildKind, Confinement, End, Launcher, SandboxLevel, SandboxMode, Scratch, Spec, View,
    ViewLayers,
};
use supervisor_workspace::state::StateDir;

/// Whether work can happen in private views, found out by mounting one where calls do.
fn mount_view(launcher: &Launcher, state: Option<&Path>, lower: &Path) -> String {
    let place = tempfile::Builder::new()
        .prefix("doctor-")
        .tempdir_in(state.unwrap_or(lower));
    let mounted = place.and_then(|place| {
        let layers = ViewLayers {
            lower: lower.to_owned(),
            upper: place.path().join("upper"),
            work: place.path().join("work"),
        };
        std::fs::create_dir(&layers.upper)?;
        std::fs::create_dir(&layers.work)?;
        let mounted = View::mount(launcher, &layers).map(drop);
        // The kernel leaves an unreadable directory there.
        let left = std::fs::Permissions::from_mode(0o700);
        let _ = std::fs::set_permissions(layers.work.join("work"), left);
        mounted.map_err(std::io::Error::other)
    });
    match mounted {
        Ok(()) => String::from("files: private view"),
        Err(why) => format!("files: in place ({why})"),
    }
}

pub(super) async fn sandbox(case: &Case) -> Vec<Finding> {
    let Ok(settings) = &case.settings else {
        return Vec::new();
    };
    let wanted = &settings.routing.sandbox;
    if wanted.mode == SandboxMode::Off {
        let free = "off: test commands and agents may read and write whatever you may; `mode` under [sandbox] sets it";
        return vec![Finding::ok(free)];
    }
    let Ok(scratch) = Scratch::new("doctor-") else {
        return Vec::new();
    };
    let home = case.look.env.get("HOME").map(PathBuf::from);
    let state = case.state.as_ref().ok().map(StateDir::path);
    let launcher = case
        .look
        .launcher
        .under(wanted.rules(home.as_deref(), state));
    let mut spec = Spec::new(
        [launcher.program().into_os_string(), "--version".into()],
        scratch.path(),
    );
    spec.limit = Duration::from_secs(20);
    spec.confine = Some(Confinement::new(ChildKind::Tests));
    let seen = launcher.run(spec, &CancellationToken::new()).await;
    let how = "docs/configuration.md says what each level holds";
    vec![match seen.end {
        End::Exited(0) if seen.sandbox.level == SandboxLevel::Namespaces => {
            let views = mount_view(&launcher, state, scratch.path());
            Finding::ok(format!("{}; {}", seen.sandbox, views))
        }
        End::Exited(0) => Finding::warn(seen.sandbox.to_string(), how),
        End::CouldNotStart(why) => Finding::fail(why.to_string(), ""),
        other => Finding::warn(format!("a program inside it ended with {other:?}"), how),
    }]
}
