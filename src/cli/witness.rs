//! `supervisor witness`: started by build tools in place of a test program, never by people.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

/// Stand between a build tool and a test program
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct Witness {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 1..)]
    arguments: Vec<OsString>,
}

impl Witness {
    pub(super) fn run(self) -> ExitCode {
        let code = crate::verify::witness::main(&self.arguments);
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }
}
