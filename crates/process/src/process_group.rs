//! Runs a program in its own process group, for systems without child subreapers. A process that
//! calls `setsid` escapes, which [`Containment::Group`] records.

use std::process::Stdio;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::lines::LineSplitter;
use super::tag::{ProcessTag, TAG_VARIABLE};
use super::{
    CapturedOutput, CommandSpec, Containment, End, FinishedProcess, StartError, Stdin, capture,
    resolve,
};

/// Time to drain the pipes after the leader has exited: a process that left the group may hold them
/// open for ever.
const DRAIN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

pub(super) async fn run(spec: CommandSpec, stop: CancellationToken) -> FinishedProcess {
    let began = Instant::now();
    let (mut stdout, mut stderr) = (
        CapturedOutput::with_limits(spec.capture),
        CapturedOutput::with_limits(spec.capture),
    );
    let end = match supervise(spec, &stop, &mut stdout, &mut stderr).await {
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
        survivors: 0,
        containment,
        sandbox,
    }
}

async fn supervise(
    spec: CommandSpec,
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
    let mut command = Command::new(resolve::program_path(
        argv0,
        &spec.cwd,
        path.map(|p| p.as_os_str()),
    )?);
    let tag = spec
        .guard
        .as_ref()
        .map_or_else(ProcessTag::random, |guard| guard.tag.clone());
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
            capture::drain(out, stdout, spec.on_line.map(LineSplitter::new)),
            capture::drain(err, stderr, None)
        );
    };
    let mut drains = std::pin::pin!(drains);
    let mut drained = false;
    let wait = async {
        let requested_end = tokio::select! {
            status = child.wait() => return (status, None),
            () = tokio::time::sleep(spec.limit) => End::TimedOut,
            () = stop.cancelled() => End::Cancelled,
        };
        signal(Signal::INT);
        signal(Signal::CONT);
        match timeout(spec.grace, child.wait()).await {
            Ok(status) => (status, Some(requested_end)),
            Err(_) => {
                signal(Signal::KILL);
                (child.wait().await, Some(requested_end))
            }
        }
    };
    let mut wait = std::pin::pin!(wait);
    let (status, requested_end) = loop {
        tokio::select! {
            ended = &mut wait => break ended,
            () = &mut drains, if !drained => drained = true,
        }
    };
    // The leader was reaped only now; its pid is not reused within this moment.
    signal(Signal::KILL);
    if !drained {
        let _ = timeout(DRAIN_TIMEOUT, &mut drains).await;
    }
    Ok(match (requested_end, status) {
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

    fn sh(script: &str) -> CommandSpec {
        let mut spec = CommandSpec::new(["/bin/sh", "-c", script], "/");
        spec.env
            .insert("PATH".into(), std::env::var_os("PATH").unwrap_or_default());
        spec.grace = Duration::from_millis(200);
        spec
    }

    #[tokio::test]
    async fn group_run_reports_how_it_ended() {
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
