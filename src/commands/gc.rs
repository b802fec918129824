//! `supervisor gc`: removes what exceeds the limits of the state directory now, and reports how
//! much that freed.

use crate::built_in;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use supervisor_engine::call::bounds_of;
use supervisor_settings::load;
use supervisor_text::words;
use supervisor_workspace::state::{StateDir, allocated_bytes};
use supervisor_workspace::{Garbage, GarbageKind, find_garbage, remove_garbage};

/// Remove what the state directory no longer needs
///
/// Snapshots and undo records beyond `days` and `mb` under [state], and rejected work older than 7 days. Never the session
/// log, nor anything of a project that is at work or has to be restored. A server does the same once a day.
#[derive(Debug, Default, Args)]
pub(super) struct GcCommand {
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

impl GcCommand {
    pub(super) fn run(
        self,
        config: Option<PathBuf>,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let state = StateDir::locate()?;
        let routing = load(&built_in::sources(config))?.routing;
        let found = find_garbage(&state, bounds_of(routing.state));
        let removed = if self.dry_run {
            found
        } else {
            remove_garbage(found)
        };
        let word = if self.dry_run { "would free" } else { "freed" };
        let mut text = String::new();
        for (kind, what) in [
            (GarbageKind::Snapshot, "project at rest"),
            (GarbageKind::OldReserve, "reserve of an earlier version"),
            (GarbageKind::Undo, "undo record"),
            (GarbageKind::Rejected, "call's rejected work"),
        ] {
            let of_kind: Vec<&Garbage> = removed
                .iter()
                .filter(|garbage| garbage.kind == kind)
                .collect();
            if !of_kind.is_empty() {
                let bytes = of_kind.iter().map(|garbage| garbage.bytes).sum();
                let _ = writeln!(
                    text,
                    "{word} {}: {} × {what}",
                    format_megabytes(bytes),
                    of_kind.len()
                );
            }
        }
        let freed: u64 = removed.iter().map(|garbage| garbage.bytes).sum();
        let left =
            allocated_bytes(state.path()).saturating_sub(if self.dry_run { freed } else { 0 });
        let dir = words::plain(&state.path().to_string_lossy()).into_owned();
        let _ = match removed.is_empty() {
            true => writeln!(
                text,
                "nothing to remove; {dir} holds {}",
                format_megabytes(left)
            ),
            false => writeln!(
                text,
                "{word} {} in all; {dir} then holds {}",
                format_megabytes(freed),
                format_megabytes(left)
            ),
        };
        super::print(out, &text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Formats bytes in the unit of `mb` in the settings.
pub(super) fn format_megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}
