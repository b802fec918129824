//! Checks which sandbox is available for test commands and agents, by starting a program in it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{DoctorContext, Finding};
use supervisor_process::{
    ChildKind, CommandSpec, Confinement, End, Launcher, OverlayLayers, OverlayMount, SandboxLevel,
    SandboxMode, ScratchDir,
};
use supervisor_workspace::state::StateDir;

/// Checks whether a project overlay works, by mounting one where calls do.
fn probe_overlay(launcher: &Launcher, state: Option<&Path>, lower: &Path) -> String {
    let dir = tempfile::Builder::new()
        .prefix("doctor-")
        .tempdir_in(state.unwrap_or(lower));
    let mounted = dir.and_then(|dir| {
        let layers = OverlayLayers {
            lower: lower.to_owned(),
            between: None,
            upper: dir.path().join("upper"),
            work: dir.path().join("work"),
        };
        std::fs::create_dir(&layers.upper)?;
        std::fs::create_dir(&layers.work)?;
        let mounted = OverlayMount::mount(launcher, &layers).map(drop);
        // The kernel leaves an unreadable directory there, which could not be removed otherwise.
        let writable = std::fs::Permissions::from_mode(0o700);
        let _ = std::fs::set_permissions(layers.work.join("work"), writable);
        mounted.map_err(std::io::Error::other)
    });
    match mounted {
        Ok(()) => String::from("files: private view"),
        Err(why) => format!("files: in place ({why})"),
    }
}

pub(super) async fn sandbox(context: &DoctorContext) -> Vec<Finding> {
    let Ok(settings) = &context.settings else {
        return Vec::new();
    };
    let sandbox_settings = &settings.routing.sandbox;
    if sandbox_settings.mode == SandboxMode::Off {
        let text = "off: test commands and agents may read and write whatever you may; `mode` under [sandbox] sets it";
        return vec![Finding::ok(text)];
    }
    let Ok(scratch) = ScratchDir::new("doctor-") else {
        return Vec::new();
    };
    let home = context.probe_config.env.get("HOME").map(PathBuf::from);
    let state = context.state.as_ref().ok().map(StateDir::path);
    let launcher = context
        .probe_config
        .launcher
        .with_rules(sandbox_settings.rules(home.as_deref(), state));
    let mut spec = CommandSpec::new(
        [launcher.executable().into_os_string(), "--version".into()],
        scratch.path(),
    );
    spec.limit = Duration::from_secs(20);
    spec.confine = Some(Confinement::new(ChildKind::Tests));
    let output = launcher.run(spec, &CancellationToken::new()).await;
    let hint = "docs/configuration.md says what each level holds";
    vec![match output.end {
        End::Exited(0) if output.sandbox.level == SandboxLevel::Namespaces => {
            let overlay = probe_overlay(&launcher, state, scratch.path());
            Finding::ok(format!("{}; {}", output.sandbox, overlay))
        }
        End::Exited(0) => Finding::warn(output.sandbox.to_string(), hint),
        End::CouldNotStart(why) => Finding::fail(why.to_string(), ""),
        other => Finding::warn(format!("a program inside it ended with {other:?}"), hint),
    }]
}
