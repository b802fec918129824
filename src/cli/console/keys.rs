//! While a line is replaced in place, the terminal does not show `^C`: it would land on the row below, and the live line
//! would stay for ever.

use std::os::fd::{AsFd, OwnedFd};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcgetpgrp, tcsetattr};

/// Shown again when dropped. Killed before that, only the two characters are missing.
pub(super) struct QuietKeys {
    terminal: OwnedFd,
}

impl QuietKeys {
    /// `None` where there is nothing to keep quiet.
    pub(super) fn on(terminal: &impl AsFd) -> Option<Self> {
        let terminal = terminal.as_fd().try_clone_to_owned().ok()?;
        let quiet = Self { terminal };
        let shows = tcgetattr(&quiet.terminal).ok()?.local_modes.contains(LocalModes::ECHOCTL);
        (shows && quiet.set(false)).then_some(quiet)
    }

    fn set(&self, shown: bool) -> bool {
        // In the background the attempt alone would stop us.
        if tcgetpgrp(&self.terminal) != Ok(getpgrp()) {
            return false;
        }
        let Ok(mut modes) = tcgetattr(&self.terminal) else { return false };
        modes.local_modes.set(LocalModes::ECHOCTL, shown);
        tcsetattr(&self.terminal, OptionalActions::Now, &modes).is_ok()
    }
}

impl Drop for QuietKeys {
    fn drop(&mut self) {
        self.set(true);
    }
}
