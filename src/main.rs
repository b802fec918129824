//! Entry point of the binary; everything is in [`supervisor::main`].

use std::process::ExitCode;

fn main() -> ExitCode {
    supervisor::main()
}
