//! A program in a process group of its own, for systems without child subreapers.
//! What calls `setsid` escapes; the result says so.

use std::process::Stdio;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::lines::Splitter;
use super::tag::{TAG_VARIABLE, Tag};
use super::{
    CapturedOutput, Containment, End, FinishedProcess, Spec, StartError, Stdin, capture, resolve,
};

/// After the leader has ended: a process that left the group may hold the pipes for ever.
const DRAIN: std::time::Duration = std::time::Duration::from_secs(2);

pub(super) async fn run(spec: Spec, stop: CancellationToken) -> FinishedProcess {
    let began = Instant::now();
    let (mut stdout, mut stderr) = (
        CapturedOutput::within(spec.capture),
        CapturedOutput::within(spec.capture),
    );
    let end = match tend(spec, &stop, &mut stdout, &mut stderr).await {
        Ok(end) => end,
        Err(e) => End::CouldNotStart(e),
    };
    let (took, containment, sandbox) = (
        began.elapsed(),
        Containment::Group,
        super::SandboxReport::off(),
    );
    FinishedProcess {
        end,
        stdout,
        stderr,
        took,
        leaked: 0,
        left: 0,
        containment,
        sandbox,
    }
}

async fn tend(
    spec: Spec,
    stop: &CancellationToken,
    stdout: &mut CapturedOutput,
    stderr: &mut CapturedOutput,
) -> Result<End, StartError> {
    let other = |e: std::io::Error| StartError::Other {
        program: spec.program(),
        why: e.to_string(),
    };
    let Some(argv0) = spec.argv.first() else {
        return Err(StartError::Other {
            program: String::new(),
            why: "no program was named".into(),
        });
    };
    let path = spec.env.get(std::ffi::OsStr::new("PATH"));
    let mut command = Command::new(resolve::command(
        argv0,
        &spec.cwd,
        path.map(|p| p.as_os_str()),
    )?);
    let tag = spec
        .guard
        .as_ref()
        .map_or_else(Tag::random, |guard| guard.tag.clone());
    command
        .arg0(argv0)
        .args(&spec.argv[1..])
        .current_dir(&spec.cwd);
    command
        .env_clear()
        .envs(&spec.env)
        .env(TAG_VARIABLE, tag.as_os_str());
    command.stdin(match spec.stdin {
        Stdin::Null => Stdio::null(),
        Stdin::Bytes(_) => Stdio::piped(),
    });
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().map_err(other)?;
    let group = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let signal = |signal| group.map(|group| kill_process_group(group, signal));
    if let (Stdin::Bytes(bytes), Some(mut stdin)) = (spec.stdin, child.stdin.take()) {
        tokio::spawn(async move { stdin.write_all(&bytes).await });
    }
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let drains = async {
        tokio::join!(
            capture::drain(out, stdout, spec.on_line.map(Splitter::new)),
            capture::drain(err, stderr, None)
        );
    };
    let mut drains = std::pin::pin!(drains);
    let mut drained = false;
    let waits = async {
        let asked = tokio::select! {
            status = child.wait() => return (status, None),
            () = tokio::time::sleep(spec.limit) => End::TimedOut,
            () = stop.cancelled() => End::Cancelled,
        };
        signal(Signal::INT);
        signal(Signal::CONT);
        match timeout(spec.grace, child.wait()).await {
            Ok(status) => (status, Some(asked)),
            Err(_) => {
                signal(Signal::KILL);
                (child.wait().await, Some(asked))
            }
        }
    };
    let mut waits = std::pin::pin!(waits);
    let (status, asked) = loop {
        tokio::select! {
            ended = &mut waits => break ended,
            () = &mut drains, if !drained => drained = true,
        }
    };
    // The leader has just been reaped; its number is not given away again within this moment.
    signal(Signal::KILL);
    if !drained {
        let _ = timeout(DRAIN, &mut drains).await;
    }
    Ok(match (asked, status) {
        (Some(end), _) => end,
        (None, Ok(status)) => match (
            status.code(),
            std::os::unix::process::ExitStatusExt::signal(&status),
        ) {
            (Some(code), _) => End::Exited(code),
            (None, signal) => End::Signalled(signal.unwrap_or(9)),
        },
        (None, Err(_)) => End::Signalled(9),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sh(script: &str) -> Spec {
        let mut spec = Spec::new(["/bin/sh", "-c", script], "/");
        spec.env
            .insert("PATH".into(), std::env::var_os("PATH").unwrap_or_default());
        spec.grace = Duration::from_millis(200);
        spec
    }

    #[tokio::test]
    async fn a_group_ends_as_it_was_told_to() {
        let stop = CancellationToken::new();
        let finished = run(sh("echo out; echo err >&2; exit 3"), stop.clone()).await;
        assert_eq!(
            (finished.end, finished.containment),
            (End::Exited(3), Containment::Group)
        );
        assert_eq!(
            (
                finished.stdout.text().as_ref(),
                finished.stderr.text().as_ref()
            ),
            ("out\n", "err\n")
        );
        assert_eq!(
            run(sh("kill -9 $$"), stop.clone()).await.end,
            End::Signalled(9)
        );
        let mut late = sh("trap '' INT; sleep 60 & wait; wait");
        late.limit = Duration::from_millis(100);
        assert_eq!(run(late, stop.clone()).await.end, End::TimedOut);
        stop.cancel();
        assert_eq!(run(sh("sleep 60"), stop).await.end, End::Cancelled);
    }
}
