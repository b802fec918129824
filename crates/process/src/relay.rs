//! Runs one program in the foreground of a small helper process, optionally with its output in a
//! file. Blocking is fine: the process does nothing else.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Output beyond this is read and dropped, so that it neither fills the disk nor blocks the
/// program.
const MAX_OUTPUT_BYTES: usize = 64 * 1024 * 1024;

/// How long to wait after the program's exit for processes that still hold its pipe.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Where the program's output goes.
#[derive(Debug)]
pub enum RelayOutput {
    Inherited,
    Into(File),
}

/// Runs `argv` and returns its exit code: 128 + n for a signal, 127 if the program does not exist.
pub fn relay(argv: &[OsString], output: RelayOutput) -> i32 {
    match run(argv, output) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(
                io::stderr(),
                "{}: {error}",
                argv.first().cloned().unwrap_or_default().to_string_lossy()
            );
            if error.kind() == io::ErrorKind::NotFound {
                127
            } else {
                126
            }
        }
    }
}

fn run(argv: &[OsString], output: RelayOutput) -> io::Result<i32> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let RelayOutput::Into(mut file) = output else {
        return Ok(exit_code(command.status()?));
    };
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (done, drained) = mpsc::channel();
    let copy = move || {
        let (mut buffer, mut kept) = ([0; 32 * 1024], 0);
        while let Ok(n @ 1..) = pipe.read(&mut buffer) {
            let len = n.min(MAX_OUTPUT_BYTES - kept);
            kept += len;
            if file.write_all(&buffer[..len]).is_err() {
                kept = MAX_OUTPUT_BYTES;
            }
        }
        let _ = done.send(());
    };
    if let Err(error) = std::thread::Builder::new().spawn(copy) {
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    let status = child.wait()?;
    let _ = drained.recv_timeout(DRAIN_TIMEOUT);
    Ok(exit_code(status))
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
