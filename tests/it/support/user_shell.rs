//! The built program as a user starts it from a shell.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::mcp_session::{Which, command};

/// The program, with the environment of a user's shell: nothing of what cargo and nextest tell this test program.
pub(crate) fn program() -> Command {
    let mut command = command(Which::Real);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO") || name.starts_with("NEXTEST") || name.starts_with("RUST") {
            command.env_remove(name.as_ref());
        }
    }
    command
        .envs(toolchain())
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_PROFILE_DEV_DEBUG", "false");
    command
}

/// Copies the built program. Another process writes it: what this one has open for writing, a child that another test starts
/// at that moment would inherit, and then the copy could not be started ("text file busy").
pub(crate) fn copy_program(to: &Path) {
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_supervisor"))
        .arg(to)
        .status();
    assert!(copied.unwrap().success(), "cp {}", to.display());
}

/// Where Rust is installed, and which one is meant: neither the server's nor an agent's environment is ours.
pub(crate) fn toolchain() -> impl Iterator<Item = (&'static str, PathBuf)> {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let places = [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")].map(|(name, below)| {
        (
            name,
            std::env::var_os(name).map_or_else(|| home.join(below), PathBuf::from),
        )
    });
    let chosen =
        std::env::var_os("RUSTUP_TOOLCHAIN").map(|name| ("RUSTUP_TOOLCHAIN", PathBuf::from(name)));
    places.into_iter().chain(chosen)
}
