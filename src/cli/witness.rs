//! `supervisor witness`: started by build tools in place of a test program, never by people.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs as a witness if so asked. Before the arguments are parsed, because those of the program it runs are not ours.
pub(super) fn dispatch() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == "witness").then_some(())?;
    let arguments: Vec<OsString> = arguments.collect();
    let code = crate::verify::witness::main(&arguments);
    Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
