//! Arguments in, exit code out. The shim is dispatched before any thread exists.

use std::process::ExitCode;

fn main() -> ExitCode {
    supervisor::main()
}
