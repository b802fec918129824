//! An overlay over a project: the project at its own path, writable, with every change in a layer
//! beside it.
//!
//! A small process of this same program, the holder, owns the mount namespace with the overlay.
//! Children join that namespace; this process reads and writes through a directory descriptor that
//! the holder sends. The namespace disappears with its last process, so nothing has to be cleaned
//! up.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sched::CloneFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::net::SocketType;
use serde::{Deserialize, Serialize};

use super::inner::{SandboxError, enter_user_namespace};
use super::shim::ShimError;
use super::{Launcher, environment, protocol};

/// The hidden sub-command of the holder.
pub const COMMAND: &str = "view";

/// The directories of an overlay. All three exist; `upper` and `work` are on the same file system.
#[derive(Debug, Clone)]
pub struct OverlayLayers {
    /// The project. It is never written through the overlay.
    pub lower: PathBuf,
    /// The upper layer of another overlay of the same project, if this one shows what is in it. It must not be written
    /// while this overlay is mounted.
    pub between: Option<PathBuf>,
    /// Receives the changes.
    pub upper: PathBuf,
    /// Empty; used by the kernel.
    pub work: PathBuf,
}

/// Why an overlay is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no private view of the project: {0}")]
pub struct OverlayError(String);

impl OverlayError {
    /// Children join an overlay through their sandbox.
    pub fn sandbox_disabled() -> Self {
        Self(String::from("it needs the sandbox, which is switched off"))
    }

    /// The kernel cannot copy such a file up with our permissions.
    pub fn other_owner(path: &std::path::Path) -> Self {
        Self(format!(
            "`{}` belongs to another user or group",
            path.display()
        ))
    }
}

/// A mounted overlay. It is unmounted on drop; changes stay in the upper layer.
#[derive(Debug)]
pub struct OverlayMount {
    root: OwnedFd,
    holder: Child,
    /// The holder exits when this closes, also when this process dies.
    control: Option<OwnedFd>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OverlayRequest {
    lower: OsString,
    between: Option<OsString>,
    upper: OsString,
    work: OsString,
}

/// How long to wait for the holder, in seconds.
const MOUNT_TIMEOUT_SECS: i64 = 20;

impl OverlayMount {
    /// Mounts an overlay. Blocks for some milliseconds.
    pub fn mount(launcher: &Launcher, layers: &OverlayLayers) -> Result<Self, OverlayError> {
        let failed = |error: io::Error| OverlayError(error.to_string());
        if let Some(mount_point) = find_mount_inside(&layers.lower) {
            return Err(OverlayError(format!(
                "something is mounted inside it, at `{}`",
                mount_point.display()
            )));
        }
        let (ours, theirs) = protocol::pair().map_err(failed)?;
        let mut command = Command::new(launcher.shim_program());
        command
            .arg0("supervisor")
            .arg(COMMAND)
            .env_clear()
            .envs(environment::shim(std::env::vars_os()));
        command
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let holder = command.spawn().map_err(failed)?;
        // The command holds the other end of the pair, which would hide the holder's death.
        drop(command);
        let mut starting = StartingHolder {
            holder: Some(holder),
        };
        let request = OverlayRequest {
            lower: layers.lower.clone().into(),
            between: layers.between.clone().map(PathBuf::into_os_string),
            upper: layers.upper.clone().into(),
            work: layers.work.clone().into(),
        };
        let packet =
            postcard::to_stdvec(&request).map_err(|error| OverlayError(error.to_string()))?;
        protocol::send(&ours, &packet, &[]).map_err(failed)?;
        let mut ready = [PollFd::from_borrowed_fd(ours.as_fd(), PollFlags::IN)];
        let limit = Timespec {
            tv_sec: MOUNT_TIMEOUT_SECS,
            tv_nsec: 0,
        };
        while poll(&mut ready, Some(&limit)) == Err(rustix::io::Errno::INTR) {}
        if ready[0].revents().is_empty() {
            return Err(OverlayError(String::from(
                "the process that mounts it does not answer",
            )));
        }
        let (reply, mut descriptors) = protocol::receive(&ours).map_err(failed)?;
        match (descriptors.pop(), starting.holder.take()) {
            (Some(root), Some(holder)) => Ok(Self {
                root,
                holder,
                control: Some(ours),
            }),
            (_, holder) => {
                starting.holder = holder;
                let why = String::from_utf8_lossy(&reply).into_owned();
                Err(OverlayError(if why.is_empty() {
                    "the process that mounts it ended".into()
                } else {
                    why
                }))
            }
        }
    }

    /// Returns the path of the overlay. It goes through a descriptor and is valid only in this
    /// process.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.root.as_raw_fd()))
    }

    /// Returns the process whose namespaces children join.
    pub fn holder(&self) -> u32 {
        self.holder.id()
    }
}

impl Drop for OverlayMount {
    fn drop(&mut self) {
        drop(self.control.take());
        // The holder has nothing to clean up, and if it was stopped it would never see the channel
        // close.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A holder that has not mounted yet. Killed on drop.
struct StartingHolder {
    holder: Option<Child>,
}

impl Drop for StartingHolder {
    fn drop(&mut self) {
        if let Some(mut holder) = self.holder.take() {
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// Runs the holder: mounts the overlay, sends its root and waits until the channel closes.
pub fn run() -> Result<(), ShimError> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return Err(ShimError::NotStartedByServer);
    }
    super::close_inherited_fds_on_exec();
    // Wakes a stopped holder when the server dies, so that the mount does not outlive it.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::CONT));
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3).map_err(io::Error::from)?;
    let (packet, _) = protocol::receive(&control)?;
    let Ok(request) = postcard::from_bytes::<OverlayRequest>(&packet) else {
        return Ok(());
    };
    match mount_overlay(&request) {
        Ok(root) => protocol::send(&control, b"mounted", &[root.as_fd()])?,
        Err(error) => {
            return Ok(protocol::send(&control, error.to_string().as_bytes(), &[])?);
        }
    }
    // No message is expected; this returns when the channel closes.
    let _ = protocol::receive(&control);
    Ok(())
}

fn mount_overlay(request: &OverlayRequest) -> Result<OwnedFd, SandboxError> {
    let (lower, upper, work) = (
        Path::new(&request.lower),
        Path::new(&request.upper),
        Path::new(&request.work),
    );
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || nix::sched::unshare(CloneFlags::CLONE_NEWNS).is_err() {
        enter_user_namespace(CloneFlags::CLONE_NEWNS)?;
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(SandboxError::at("private mounts"))?;
    // Through descriptors, because paths may contain the characters that separate options.
    let open = |path: &Path| {
        rustix::fs::open(
            path,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(SandboxError::at(format!("opening `{}`", path.display())))
    };
    let layers = [open(lower)?, open(upper)?, open(work)?];
    let path_of = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let [mut low, up, wk] = layers.each_ref().map(path_of);
    let between = request
        .between
        .as_ref()
        .map(Path::new)
        .map(open)
        .transpose()?;
    if let Some(between) = &between {
        low = format!("{}:{low}", path_of(between));
    }
    // `volatile`: nothing in the layer is worth waiting for the disk.
    let mut mounted = Err(rustix::io::Errno::INVAL);
    for extra in [",volatile", ""] {
        let options = format!("lowerdir={low},upperdir={up},workdir={wk},userxattr{extra}");
        let options = std::ffi::CString::new(options).expect("the options contain no NUL byte");
        mounted = mount(
            "overlay",
            lower,
            "overlay",
            MountFlags::empty(),
            options.as_c_str(),
        );
        if mounted.is_ok() {
            break;
        }
    }
    mounted.map_err(SandboxError::at("an overlay"))?;
    rustix::fs::open(
        lower,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(SandboxError::at("opening the overlay"))
}

/// Joins the namespaces of a holder.
pub(super) fn join_namespaces(holder: u32) -> Result<(), SandboxError> {
    let open = |kind: &str| {
        let path = format!("/proc/{holder}/ns/{kind}");
        File::open(&path).map_err(|source| {
            SandboxError::new(format!("joining the view through `{path}`"), source)
        })
    };
    let (user, mounts) = (open("user")?, open("mnt")?);
    let identity = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    let own = File::open("/proc/self/ns/user").ok();
    let failed =
        |errno: nix::errno::Errno| SandboxError::new("joining the view", io::Error::from(errno));
    if own.as_ref().and_then(identity) != identity(&user) {
        nix::sched::setns(user, CloneFlags::CLONE_NEWUSER).map_err(failed)?;
    }
    nix::sched::setns(mounts, CloneFlags::CLONE_NEWNS).map_err(failed)
}

/// Returns the first mount point inside the directory: the overlay would not show what is mounted
/// there.
fn find_mount_inside(root: &Path) -> Option<PathBuf> {
    super::mount_points()
        .into_iter()
        .find(|point| point != root && point.starts_with(root))
}
