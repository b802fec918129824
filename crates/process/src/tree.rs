//! One command with everything it starts, tended by a shim; seen from the server.
//! Knows limits, the stop token and the pipes. Does not know how a tree is ended: the shim does.

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

use super::control::{Control, Pledge, Share};
use super::lines::Splitter;
use super::protocol::{self, Because, ChildStatus, Order, Request, ShimReport};
use super::sandbox::{SandboxReport, Walls};
use super::tag::{TAG_VARIABLE, Tag, sweep_deserted};
use super::{
    CapturedOutput, Containment, End, FinishedProcess, Spec, StartError, Stdin, capture, resolve,
};

/// After the tree has ended, for what is still in the pipes. They close by themselves, unless a process outside the
/// tree was given one.
const DRAIN: Duration = Duration::from_secs(2);
/// What a shim may take beyond the grace to end a tree, before it is taken for lost.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs a command to its end. The future must be polled to completion: dropping it looks like the death of the server,
/// and the shim then finishes alone, restore included.
pub(super) async fn run(
    shim: &Path,
    spec: Spec,
    walls: Option<Walls>,
    stop: CancellationToken,
) -> (FinishedProcess, Option<Child>) {
    let began = Instant::now();
    let mut seen = SeenProcess::new(&spec);
    let (end, child) = match StartedProcess::new(shim, &spec, walls, &stop).await {
        Ok((started, child)) => started.finish(child, spec, stop, began, &mut seen).await,
        Err(end) => (end, None),
    };
    let finished = FinishedProcess {
        end,
        stdout: seen.stdout,
        stderr: seen.stderr,
        took: began.elapsed(),
        leaked: seen.leaked,
        left: seen.left,
        containment: Containment::Tree,
        sandbox: seen.sandbox,
    };
    (finished, child)
}

impl From<StartError> for End {
    fn from(error: StartError) -> Self {
        Self::CouldNotStart(error)
    }
}

struct SeenProcess {
    stdout: CapturedOutput,
    stderr: CapturedOutput,
    leaked: usize,
    left: usize,
    sandbox: SandboxReport,
}

impl SeenProcess {
    fn new(spec: &Spec) -> Self {
        let (stdout, stderr) = (
            CapturedOutput::within(spec.capture),
            CapturedOutput::within(spec.capture),
        );
        Self {
            stdout,
            stderr,
            leaked: 0,
            left: 0,
            sandbox: SandboxReport::off(),
        }
    }
}

struct StartedProcess {
    control: Control,
    stdin: Option<OwnedFd>,
    tag: Tag,
}

impl StartedProcess {
    async fn new(
        shim: &Path,
        spec: &Spec,
        walls: Option<Walls>,
        stop: &CancellationToken,
    ) -> Result<(Self, Child), End> {
        let other = |why: std::io::Error| StartError::Other {
            program: spec.program(),
            why: why.to_string(),
        };
        let tag = spec
            .guard
            .as_ref()
            .map_or_else(Tag::random, |guard| guard.tag.clone());
        let mut order = Order {
            command: Some(protocol::Command {
                walls,
                ..command(spec, &tag)?
            }),
            ticket: spec.guard.as_ref().and_then(|guard| guard.ticket.clone()),
            descriptors: Vec::new(),
        };
        let mut pledge = match &spec.guard {
            Some(guard) => Pledge::of(guard, Share::Tree).map_err(other)?,
            None => Pledge::default(),
        };
        let stdin = match spec.stdin {
            Stdin::Null => None,
            Stdin::Bytes(_) => {
                let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                    .map_err(|e| other(e.into()))?;
                pledge.add_stdin(read);
                Some(write)
            }
        };
        order.descriptors = pledge.names();
        let no_shim = |e: std::io::Error| StartError::Other {
            program: spec.program(),
            why: format!("its shim `{}`: {e}", shim.display()),
        };
        let (control, mut child) = Control::start(shim, Stdio::piped).map_err(no_shim)?;
        let descriptors = pledge.fds();
        // A long order does not fit into the channel, and a shim that is stopped does not take it.
        let ordered = tokio::select! {
            biased;
            ordered = control.order(&order, &descriptors) => ordered.map_err(|e| no_shim(e).into()),
            () = tokio::time::sleep(spec.limit) => Err(End::TimedOut),
            () = stop.cancelled() => Err(End::Cancelled),
        };
        if let Err(end) = ordered {
            // It has begun nothing, but may hold the locks already.
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
        spec: Spec,
        stop: CancellationToken,
        began: Instant,
        seen: &mut SeenProcess,
    ) -> (End, Option<Child>) {
        let program = spec.program();
        let lines = spec.on_line.map(Splitter::new);
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let drains = async {
            tokio::join!(
                capture::drain(out, &mut seen.stdout, lines),
                capture::drain(err, &mut seen.stderr, None)
            );
        };
        let input = match spec.stdin {
            Stdin::Null => Vec::new(),
            Stdin::Bytes(bytes) => bytes,
        };
        let mut drains = pin!(drains);
        let mut feed = pin!(feed(self.stdin, input));
        let limit = spec.limit.saturating_sub(began.elapsed());
        let mut watch = pin!(watch(
            &self.control,
            limit,
            spec.grace,
            &stop,
            &mut seen.sandbox
        ));
        let (mut drained, mut fed) = (false, false);
        let (report, asked) = loop {
            tokio::select! {
                heard = &mut watch => break heard,
                () = &mut drains, if !drained => drained = true,
                () = &mut feed, if !fed => fed = true,
            }
        };
        if report.is_none() {
            // The shim was killed or is stuck; what it tended is found by its mark and its session. `child` is not waited for.
            self.control.kill();
            let (tag, shim) = (self.tag, self.control.shim);
            let _ = tokio::task::spawn_blocking(move || sweep_deserted(&tag, shim)).await;
        }
        if !drained {
            let _ = timeout(DRAIN, &mut drains).await;
        }
        if report.is_some() {
            self.control.dismiss().await;
        }
        let end = match report {
            Some(ShimReport::Refused { errno }) => End::CouldNotStart(refused(program, errno)),
            Some(ShimReport::NoWalls { why }) => {
                End::CouldNotStart(StartError::NoWalls { program, why })
            }
            Some(ShimReport::Done {
                status,
                because,
                leaked,
                left,
            }) => {
                (seen.leaked, seen.left) = (leaked as usize, left as usize);
                match (because, asked, status) {
                    (Because::WeAsked, Some(end), _) => end,
                    (_, _, ChildStatus::Exited(code)) => End::Exited(code),
                    (_, _, ChildStatus::Signalled(signal)) => End::Signalled(signal),
                }
            }
            // How it ended was not seen; it is certain only that it was killed in the end.
            Some(ShimReport::Started { .. }) | None => asked.unwrap_or(End::Signalled(9)),
        };
        (end, Some(child))
    }
}

/// Until the shim reports; on the way it is asked to end the tree when time is up or the call is cancelled.
/// No report: the shim is gone or does not answer.
async fn watch(
    control: &Control,
    limit: Duration,
    grace: Duration,
    stop: &CancellationToken,
    sandbox: &mut SandboxReport,
) -> (Option<ShimReport>, Option<End>) {
    let mut report = pin!(async {
        loop {
            match control.report().await {
                Some(ShimReport::Started { walls }) => *sandbox = walls,
                other => return other,
            }
        }
    });
    let why = tokio::select! {
        report = &mut report => return (report, None),
        () = tokio::time::sleep(limit) => End::TimedOut,
        () = stop.cancelled() => End::Cancelled,
    };
    // If it cannot be told, it is gone, and the report says so.
    let _ = control.ask(Request::End).await;
    let report = timeout(grace.saturating_add(PATIENCE), report).await;
    (report.ok().flatten(), Some(why))
}

/// Writes everything and closes. A program that does not read is no reason to wait: its end closes the pipe.
async fn feed(to: Option<OwnedFd>, bytes: Vec<u8>) {
    let Some(Ok(mut to)) = to.map(|fd| {
        rustix::io::ioctl_fionbio(&fd, true)?;
        pipe::Sender::from_owned_fd(fd)
    }) else {
        return;
    };
    let _ = to.write_all(&bytes).await;
}

fn command(spec: &Spec, tag: &Tag) -> Result<protocol::Command, StartError> {
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
    let program = resolve::command(argv0, &cwd, path.map(OsString::as_os_str))?;
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
        walls: None,
    })
}

/// The program was found and yet could not be executed.
fn refused(program: String, errno: i32) -> StartError {
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
