//! The signals that ask a command to end.

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from construction on, so that early signals are not missed.
pub(super) struct Signals {
    /// `None` if whoever started us has us ignore it, as a script does for commands in the
    /// background: Ctrl-C in its terminal is not meant for them.
    interrupt: Option<Signal>,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    pub(super) fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("listening for signals");
        let interrupt = (!is_ignored(SignalKind::interrupt()))
            .then(|| listen(SignalKind::interrupt()))
            .transpose()?;
        Ok(Self {
            interrupt,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal and returns its number.
    pub(super) async fn next(&mut self) -> u8 {
        tokio::select! {
            () = interrupted(&mut self.interrupt) => 2,
            _ = self.terminate.recv() => 15,
            _ = self.hangup.recv() => 1,
        }
    }

    /// Waits for a second Ctrl-C. SIGTERM does not count: clients send it 100 ms after SIGINT,
    /// while calls clean up.
    pub(super) async fn second_interrupt(&mut self) {
        interrupted(&mut self.interrupt).await;
    }
}

async fn interrupted(interrupt: &mut Option<Signal>) {
    match interrupt {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Only known on Linux, and only before the first handler for this signal is installed.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 1)
}
