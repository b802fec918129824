//! Runs one command and its process tree through a shim, from the server's side. Enforces the time
//! limit, observes the stop token and reads the pipes; the shim ends the tree.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::control::{Control, InheritedFds, TreeLockMode};
use super::lines::LineSplitter;
use super::protocol::{self, ChildStatus, EndCause, Request, ShimReport, StartRequest};
use super::sandbox::{SandboxPlan, SandboxReport};
use super::tag::{ProcessTag, TAG_VARIABLE, kill_orphaned_tree};
use super::{
    CapturedOutput, CommandSpec, Containment, End, FinishedProcess, StartError, Stdin, capture,
    resolve,
};

/// Time to drain the pipes after the tree has ended. They close by themselves, unless a process
/// outside the tree holds one.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Time beyond the grace period for the shim to end a tree, before it is considered lost.
const SHIM_TIMEOUT: Duration = Duration::from_secs(15);

/// Runs a command. The future must be polled to completion: dropping it looks like the death of the
/// server, and the shim then finishes on its own, including the restore.
pub(super) async fn run(
    shim: &Path,
    spec: CommandSpec,
    sandbox: Option<SandboxPlan>,
    stop: CancellationToken,
) -> (FinishedProcess, Option<Child>) {
    let began = Instant::now();
    let mut observed = ObservedProcess::new(&spec);
    let (end, child) = match StartedProcess::new(shim, &spec, sandbox, &stop).await {
        Ok((started, child)) => {
            started
                .finish(child, spec, stop, began, &mut observed)
                .await
        }
        Err(end) => (end, None),
    };
    let finished = FinishedProcess {
        end,
        stdout: observed.stdout,
        stderr: observed.stderr,
        took: began.elapsed(),
        leaked: observed.leaked,
        survivors: observed.survivors,
        containment: Containment::Tree,
        sandbox: observed.sandbox,
    };
    (finished, child)
}

impl From<StartError> for End {
    fn from(error: StartError) -> Self {
        Self::CouldNotStart(error)
    }
}

struct ObservedProcess {
    stdout: CapturedOutput,
    stderr: CapturedOutput,
    leaked: usize,
    survivors: usize,
    sandbox: SandboxReport,
}

impl ObservedProcess {
    fn new(spec: &CommandSpec) -> Self {
        let (stdout, stderr) = (
            CapturedOutput::with_limits(spec.capture),
            CapturedOutput::with_limits(spec.capture),
        );
        Self {
            stdout,
            stderr,
            leaked: 0,
            survivors: 0,
            sandbox: SandboxReport::off(),
        }
    }
}

struct StartedProcess {
    control: Control,
    stdin: Option<OwnedFd>,
    tag: ProcessTag,
}

impl StartedProcess {
    async fn new(
        shim: &Path,
        spec: &CommandSpec,
        sandbox: Option<SandboxPlan>,
        stop: &CancellationToken,
    ) -> Result<(Self, Child), End> {
        let other = |why: std::io::Error| StartError::Other {
            program: spec.program(),
            why: why.to_string(),
        };
        let tag = spec
            .guard
            .as_ref()
            .map_or_else(ProcessTag::random, |guard| guard.tag.clone());
        let mut request = StartRequest {
            command: Some(protocol::Command {
                sandbox,
                ..build_command(spec, &tag)?
            }),
            recovery_dir: spec
                .guard
                .as_ref()
                .and_then(|guard| guard.recovery_dir.clone()),
            descriptors: Vec::new(),
        };
        let mut inherited = match &spec.guard {
            Some(guard) => InheritedFds::for_guard(guard, TreeLockMode::Shared).map_err(other)?,
            None => InheritedFds::default(),
        };
        let stdin = match spec.stdin {
            Stdin::Null => None,
            Stdin::Bytes(_) => {
                let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                    .map_err(|e| other(e.into()))?;
                inherited.add_stdin(read);
                Some(write)
            }
        };
        request.descriptors = inherited.kinds();
        let no_shim = |e: std::io::Error| StartError::Other {
            program: spec.program(),
            why: format!("its shim `{}`: {e}", shim.display()),
        };
        let (control, mut child) = Control::start(shim, Stdio::piped).map_err(no_shim)?;
        let descriptors = inherited.fds();
        // A long request does not fit into the channel's buffer, and a stopped shim does not read
        // it.
        let sent = tokio::select! {
            biased;
            sent = control.send_start(&request, &descriptors) => sent.map_err(|e| no_shim(e).into()),
            () = tokio::time::sleep(spec.limit) => Err(End::TimedOut),
            () = stop.cancelled() => Err(End::Cancelled),
        };
        if let Err(end) = sent {
            // It has started nothing, but may already hold the locks.
            control.kill();
            let _ = child.wait().await;
            return Err(end);
        }
        Ok((
            Self {
                control,
                stdin,
                tag,
            },
            child,
        ))
    }

    async fn finish(
        self,
        mut child: Child,
        spec: CommandSpec,
        stop: CancellationToken,
        began: Instant,
        observed: &mut ObservedProcess,
    ) -> (End, Option<Child>) {
        let program = spec.program();
        let lines = spec.on_line.map(LineSplitter::new);
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let drain = async {
            tokio::join!(
                capture::drain(out, &mut observed.stdout, lines),
                capture::drain(err, &mut observed.stderr, None)
            );
        };
        let input = match spec.stdin {
            Stdin::Null => Vec::new(),
            Stdin::Bytes(bytes) => bytes,
        };
        let mut drain = pin!(drain);
        let mut write_stdin = pin!(write_stdin(self.stdin, input));
        let limit = spec.limit.saturating_sub(began.elapsed());
        let mut wait_for_report = pin!(wait_for_report(
            &self.control,
            limit,
            spec.grace,
            &stop,
            &mut observed.sandbox
        ));
        let (mut drained, mut stdin_written) = (false, false);
        let (report, requested_end) = loop {
            tokio::select! {
                outcome = &mut wait_for_report => break outcome,
                () = &mut drain, if !drained => drained = true,
                () = &mut write_stdin, if !stdin_written => stdin_written = true,
            }
        };
        if report.is_none() {
            // The shim was killed or is stuck. Find its processes by tag and session. `child` must
            // not be waited for before that.
            self.control.kill();
            let (tag, shim) = (self.tag, self.control.shim);
            let _ = tokio::task::spawn_blocking(move || kill_orphaned_tree(&tag, shim)).await;
        }
        if !drained {
            let _ = timeout(DRAIN_TIMEOUT, &mut drain).await;
        }
        if report.is_some() {
            self.control.dismiss().await;
        }
        let end = match report {
            Some(ShimReport::ExecFailed { errno }) => {
                End::CouldNotStart(exec_error(program, errno))
            }
            Some(ShimReport::NoSandbox { why }) => {
                End::CouldNotStart(StartError::NoSandbox { program, why })
            }
            Some(ShimReport::Done {
                status,
                cause,
                leaked,
                survivors,
            }) => {
                (observed.leaked, observed.survivors) = (leaked as usize, survivors as usize);
                match (cause, requested_end, status) {
                    (EndCause::Requested, Some(end), _) => end,
                    (_, _, ChildStatus::Exited(code)) => End::Exited(code),
                    (_, _, ChildStatus::Signalled(signal)) => End::Signalled(signal),
                }
            }
            // How it ended is unknown, except that it was killed in the end.
            Some(ShimReport::Started { .. }) | None => requested_end.unwrap_or(End::Signalled(9)),
        };
        (end, Some(child))
    }
}

/// Waits for the shim's final report, and asks it to end the tree when the time is up or the call
/// is cancelled. Returns no report if the shim is gone or does not answer.
async fn wait_for_report(
    control: &Control,
    limit: Duration,
    grace: Duration,
    stop: &CancellationToken,
    sandbox: &mut SandboxReport,
) -> (Option<ShimReport>, Option<End>) {
    let mut report = pin!(async {
        loop {
            match control.next_report().await {
                Some(ShimReport::Started { sandbox: applied }) => *sandbox = applied,
                other => return other,
            }
        }
    });
    let why = tokio::select! {
        report = &mut report => return (report, None),
        () = tokio::time::sleep(limit) => End::TimedOut,
        () = stop.cancelled() => End::Cancelled,
    };
    // A failed send means that the shim is gone, which `report` shows too.
    let _ = control.send_request(Request::Stop).await;
    let report = timeout(grace.saturating_add(SHIM_TIMEOUT), report).await;
    (report.ok().flatten(), Some(why))
}

/// Writes everything and closes the pipe. This does not wait for a program that does not read: its
/// exit closes the pipe.
async fn write_stdin(to: Option<OwnedFd>, bytes: Vec<u8>) {
    let Some(Ok(mut to)) = to.map(|fd| {
        rustix::io::ioctl_fionbio(&fd, true)?;
        pipe::Sender::from_owned_fd(fd)
    }) else {
        return;
    };
    let _ = to.write_all(&bytes).await;
}

fn build_command(spec: &CommandSpec, tag: &ProcessTag) -> Result<protocol::Command, StartError> {
    let other = |why: &str| StartError::Other {
        program: spec.program(),
        why: why.to_owned(),
    };
    let Some(argv0) = spec.argv.first() else {
        return Err(other("no program was named"));
    };
    let strings = spec
        .argv
        .iter()
        .chain(spec.env.keys())
        .chain(spec.env.values());
    if strings.map(|s| s.as_bytes()).any(|s| s.contains(&0)) {
        return Err(other("an argument or variable contains a NUL byte"));
    }
    let cwd = std::path::absolute(&spec.cwd)
        .map_err(|_| StartError::NoDirectory(spec.cwd.display().to_string()))?;
    let path = spec.env.get(std::ffi::OsStr::new("PATH"));
    let program = resolve::program_path(argv0, &cwd, path.map(OsString::as_os_str))?;
    let mut env: Vec<_> = spec
        .env
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    env.retain(|(name, _)| name != TAG_VARIABLE);
    env.push((TAG_VARIABLE.into(), tag.as_os_str().into()));
    Ok(protocol::Command {
        program,
        argv: spec.argv.clone(),
        cwd,
        env,
        grace: spec.grace,
        sandbox: None,
    })
}

/// Maps the error for a program that was found but could not be executed.
fn exec_error(program: String, errno: i32) -> StartError {
    let why = std::io::Error::from_raw_os_error(errno);
    match why.kind() {
        std::io::ErrorKind::PermissionDenied => StartError::NotExecutable(program),
        std::io::ErrorKind::NotFound => StartError::Other {
            program,
            why: "its interpreter, named in its first line, was not found".into(),
        },
        _ => StartError::Other {
            program,
            why: why.to_string(),
        },
    }
}
