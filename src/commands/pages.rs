//! `supervisor completions` and `supervisor man`: generated from the argument parser, so they
//! cannot get out of date.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Arguments;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let mut text = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut Arguments::command(),
            "supervisor",
            &mut text,
        );
        super::print(out, &String::from_utf8(text)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the manual page in roff format.
pub(super) fn manual(out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut text)?;
    super::print(out, &String::from_utf8(text)?)?;
    Ok(ExitCode::SUCCESS)
}
