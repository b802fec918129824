//! A shim without a command, which stands by an armed project between the commands: the server may die while it waits for
//! a model as well as while it runs the tests.

use std::path::Path;
use std::process::Stdio;

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
}

impl Watch {
    pub(super) async fn start(
        shim: &Path,
        guard: &Guard,
        tracker: &TaskTracker,
    ) -> Result<Self, StartError> {
        let failed = |e: std::io::Error| StartError::Other {
            program: shim.display().to_string(),
            why: e.to_string(),
        };
        let pledge = Pledge::of(guard, Share::None).map_err(failed)?;
        let order = Order {
            command: None,
            ticket: guard.ticket.clone(),
            descriptors: pledge.names(),
        };
        let (control, mut child) = Control::start(shim, Stdio::null).map_err(failed)?;
        control.order(&order, &pledge.fds()).await.map_err(failed)?;
        tracker.spawn(async move { child.wait().await });
        Ok(Self { control })
    }

    /// Nothing is open any more. Returns when the locks it shared have been let go.
    pub async fn dismiss(self) {
        self.control.dismiss().await;
    }
}
