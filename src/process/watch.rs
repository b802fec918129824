//! A shim without a command, which stands by an armed project between the commands: the server may die while it waits for
//! a model as well as while it runs the tests.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::control::{Control, Pledge, Share};
use super::protocol::Order;
use super::{Guard, StartError};

/// A process that finishes what is open when the server dies, or drops this.
///
/// Dropped without [`Watch::dismiss`], it waits until the trees of the project have ended and then does what the ticket
/// says, just as after a death. So a panicking or abandoned call leaves nothing open either.
#[derive(Debug)]
#[must_use = "dropping it at once starts the restore"]
pub struct Watch {
    control: Control,
    /// Says that the shim did not leave when it was told to: it has been stopped.
    overdue: oneshot::Sender<()>,
}

impl Watch {
    pub(super) async fn start(shim: &Path, guard: &Guard, tracker: &TaskTracker) -> Result<Self, StartError> {
        let failed = |e: std::io::Error| StartError::Other { program: shim.display().to_string(), why: e.to_string() };
        let pledge = Pledge::of(guard, Share::None).map_err(failed)?;
        let order = Order { command: None, ticket: guard.ticket.clone(), descriptors: pledge.names() };
        let (control, mut child) = Control::start(shim, Stdio::null).map_err(failed)?;
        control.order(&order, &pledge.fds()).await.map_err(failed)?;
        let (overdue, is_overdue) = oneshot::channel();
        tracker.spawn(async move {
            tokio::select! {
                _ = child.wait() => return,
                overdue = is_overdue => match overdue {
                    Ok(()) => drop(child.start_kill()),
                    // Dropped: it has work to do, for which it must not be stopped.
                    Err(_) => wake(&child),
                },
            }
            let _ = child.wait().await;
        });
        Ok(Self { control, overdue })
    }

    /// Nothing is open any more. Returns when the locks it shared have been let go.
    pub async fn dismiss(self) {
        if !self.control.dismiss().await {
            let _ = self.overdue.send(());
        }
    }
}

fn wake(child: &Child) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let Some(pid) = pid {
        let _ = kill_process(pid, Signal::CONT);
    }
}
