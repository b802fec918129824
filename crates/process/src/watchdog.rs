//! A shim without a command that watches over a project with an active snapshot: the server may die
//! between two commands, for example while it waits for a model.

use std::path::Path;
use std::process::Stdio;

use tokio_util::task::TaskTracker;

use super::control::{Control, InheritedFds, TreeLockMode};
use super::protocol::StartRequest;
use super::{ProjectGuard, StartError};

/// A process that restores the project when the server dies or drops this handle.
///
/// If it is dropped without [`Watchdog::dismiss`], the process waits until the project's trees have
/// ended and then recovers, as after a crash. So a panicking or abandoned call is restored too.
#[derive(Debug)]
#[must_use = "dropping it at once starts the restore"]
pub struct Watchdog {
    control: Control,
}

impl Watchdog {
    pub(super) async fn start(
        shim: &Path,
        guard: &ProjectGuard,
        tracker: &TaskTracker,
    ) -> Result<Self, StartError> {
        let failed = |e: std::io::Error| StartError::Other {
            program: shim.display().to_string(),
            why: e.to_string(),
        };
        let inherited = InheritedFds::for_guard(guard, TreeLockMode::Unlocked).map_err(failed)?;
        let request = StartRequest {
            command: None,
            recovery_dir: guard.recovery_dir.clone(),
            descriptors: inherited.kinds(),
        };
        let (control, mut child) = Control::start(shim, Stdio::null).map_err(failed)?;
        control
            .send_start(&request, &inherited.fds())
            .await
            .map_err(failed)?;
        tracker.spawn(async move { child.wait().await });
        Ok(Self { control })
    }

    /// Ends the process without a restore. Returns when it has released its locks.
    pub async fn dismiss(self) {
        self.control.dismiss().await;
    }
}
