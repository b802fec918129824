//! A program in a process group of its own.

use std::process::Stdio;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::{Captured, Containment, End, Finished, Spec, StartError, Stdin};

pub(super) async fn run(spec: Spec, stop: &CancellationToken) -> Finished {
    let began = Instant::now();
    let program = spec.argv.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let mut command = Command::new(spec.argv.first().cloned().unwrap_or_default());
    command.args(spec.argv.iter().skip(1)).current_dir(&spec.cwd).env_clear().envs(&spec.env);
    command.stdin(match spec.stdin {
        Stdin::Null => Stdio::null(),
        Stdin::Bytes(_) => Stdio::piped(),
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let finished = |end, stdout, stderr| Finished {
        end,
        stdout,
        stderr,
        took: began.elapsed(),
        leaked: 0,
        containment: Containment::Group,
    };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let why = match e.kind() {
                std::io::ErrorKind::NotFound if !spec.cwd.is_dir() => {
                    StartError::NoDirectory(spec.cwd.display().to_string())
                }
                std::io::ErrorKind::NotFound => StartError::NotFound(program),
                std::io::ErrorKind::PermissionDenied => StartError::NotExecutable(program),
                _ => StartError::Other { program, why: e.to_string() },
            };
            return finished(End::CouldNotStart(why), Captured::default(), Captured::default());
        }
    };
    if let (Stdin::Bytes(bytes), Some(mut stdin)) = (spec.stdin, child.stdin.take()) {
        tokio::spawn(async move { stdin.write_all(&bytes).await });
    }
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
    let end = tokio::select! {
        (status, (), ()) = async { tokio::join!(child.wait(), drain(out, &mut stdout), drain(err, &mut stderr)) } => {
            match status.ok().and_then(|s| s.code()) {
                Some(code) => End::Exited(code),
                None => End::Signalled(9),
            }
        }
        () = tokio::time::sleep(spec.limit) => End::TimedOut,
        () = stop.cancelled() => End::Cancelled,
    };
    finished(end, stdout, stderr)
}

async fn drain(from: Option<impl AsyncRead + Unpin>, into: &mut Captured) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        into.push(&buffer[..n]);
    }
}
