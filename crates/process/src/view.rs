//! A private view of a project: the project at its own path, writable, with every change in a layer beside it.
//! Knows overlays and the process that keeps one mounted. Does not know what is changed in it, or why.
//!
//! A small process of this same program holds the namespace in which the overlay is mounted. Children join it, and this
//! process reads and writes through the directory handle that the holder hands out. Nothing stays when it ends: the
//! namespace goes with its last process.

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

use super::inner::{Obstacle, enter_user_namespace};
use super::shim::ShimError;
use super::{Launcher, environment, protocol};

/// The hidden sub-command.
pub const COMMAND: &str = "view";

/// What an overlay is made of. All three exist; the upper two are on one file system.
#[derive(Debug, Clone)]
pub struct ViewLayers {
    /// The project, which is never written through the view.
    pub lower: PathBuf,
    /// Where changes land.
    pub upper: PathBuf,
    /// For the kernel's own use, empty.
    pub work: PathBuf,
}

/// Why there is no private view here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no private view of the project: {0}")]
pub struct ViewError(String);

impl ViewError {
    /// Children are led into a view by their walls.
    pub fn without_walls() -> Self {
        Self(String::from("it needs the sandbox, which is switched off"))
    }

    /// The kernel cannot copy such a file for us.
    pub fn other_owner(path: &std::path::Path) -> Self {
        Self(format!(
            "`{}` belongs to another user or group",
            path.display()
        ))
    }
}

/// A mounted view. It ends when this is dropped; what was written stays in the upper layer.
#[derive(Debug)]
pub struct View {
    root: OwnedFd,
    holder: Child,
    /// The holder leaves when this closes, also when this process dies.
    control: Option<OwnedFd>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ViewOrder {
    lower: OsString,
    upper: OsString,
    work: OsString,
}

/// The holder may take this long before it is given up.
const PATIENCE: i64 = 20;

impl View {
    /// Mounts a view. Blocks for some milliseconds.
    pub fn mount(launcher: &Launcher, layers: &ViewLayers) -> Result<Self, ViewError> {
        let failed = |error: io::Error| ViewError(error.to_string());
        if let Some(inside) = mounts_inside(&layers.lower) {
            return Err(ViewError(format!(
                "something is mounted inside it, at `{}`",
                inside.display()
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
        // The command keeps its end of the pair otherwise, and the holder's death would not be seen.
        drop(command);
        let mut view = Starting {
            holder: Some(holder),
        };
        let order = ViewOrder {
            lower: layers.lower.clone().into(),
            upper: layers.upper.clone().into(),
            work: layers.work.clone().into(),
        };
        let packet = postcard::to_stdvec(&order).map_err(|error| ViewError(error.to_string()))?;
        protocol::send(&ours, &packet, &[]).map_err(failed)?;
        let mut ready = [PollFd::from_borrowed_fd(ours.as_fd(), PollFlags::IN)];
        let limit = Timespec {
            tv_sec: PATIENCE,
            tv_nsec: 0,
        };
        while poll(&mut ready, Some(&limit)) == Err(rustix::io::Errno::INTR) {}
        if ready[0].revents().is_empty() {
            return Err(ViewError(String::from(
                "the process that mounts it does not answer",
            )));
        }
        let (said, mut descriptors) = protocol::receive(&ours).map_err(failed)?;
        match (descriptors.pop(), view.holder.take()) {
            (Some(root), Some(holder)) => Ok(Self {
                root,
                holder,
                control: Some(ours),
            }),
            (_, holder) => {
                view.holder = holder;
                let why = String::from_utf8_lossy(&said).into_owned();
                Err(ViewError(if why.is_empty() {
                    "the process that mounts it ended".into()
                } else {
                    why
                }))
            }
        }
    }

    /// The project as it looks in the view, for this process alone: a path through its own descriptor.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.root.as_raw_fd()))
    }

    /// The process whose namespaces a child joins.
    pub fn holder(&self) -> u32 {
        self.holder.id()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        drop(self.control.take());
        // It has nothing to put away; and one that was stopped would never see the channel close.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A holder that has not mounted anything yet.
struct Starting {
    holder: Option<Child>,
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(mut holder) = self.holder.take() {
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// The holder's side: mounts, hands the root out, and waits to be left.
pub fn run() -> Result<(), ShimError> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return Err(ShimError::NotForPeople);
    }
    super::keep_inherited_descriptors();
    // Stopped, it would outlive this server's death, and the mount with it.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::CONT));
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3).map_err(io::Error::from)?;
    let (packet, _) = protocol::receive(&control)?;
    let Ok(order) = postcard::from_bytes::<ViewOrder>(&packet) else {
        return Ok(());
    };
    match hold(&order) {
        Ok(root) => protocol::send(&control, b"mounted", &[root.as_fd()])?,
        Err(obstacle) => {
            return Ok(protocol::send(
                &control,
                obstacle.to_string().as_bytes(),
                &[],
            )?);
        }
    }
    // Nothing is ever said: the channel's end is the sign.
    let _ = protocol::receive(&control);
    Ok(())
}

fn hold(order: &ViewOrder) -> Result<OwnedFd, Obstacle> {
    let (lower, upper, work) = (
        Path::new(&order.lower),
        Path::new(&order.upper),
        Path::new(&order.work),
    );
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || nix::sched::unshare(CloneFlags::CLONE_NEWNS).is_err() {
        enter_user_namespace(CloneFlags::CLONE_NEWNS)?;
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(Obstacle::at("private mounts"))?;
    // Through descriptors, because options are separated by characters that paths may hold.
    let open = |path: &Path| {
        rustix::fs::open(
            path,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(Obstacle::at(format!("opening `{}`", path.display())))
    };
    let layers = [open(lower)?, open(upper)?, open(work)?];
    let [low, up, wk] = layers
        .each_ref()
        .map(|fd| format!("/proc/self/fd/{}", fd.as_raw_fd()));
    // `volatile`: nothing in the layer is worth waiting for a disk.
    let mut mounted = Err(rustix::io::Errno::INVAL);
    for more in [",volatile", ""] {
        let options = format!("lowerdir={low},upperdir={up},workdir={wk},userxattr{more}");
        let options = std::ffi::CString::new(options).expect("numbers and letters");
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
    mounted.map_err(Obstacle::at("an overlay"))?;
    rustix::fs::open(
        lower,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(Obstacle::at("opening the overlay"))
}

/// Joins the namespaces of a holder.
pub(super) fn enter(holder: u32) -> Result<(), Obstacle> {
    let open = |kind: &str| {
        let path = format!("/proc/{holder}/ns/{kind}");
        File::open(&path)
            .map_err(|source| Obstacle::new(format!("joining the view through `{path}`"), source))
    };
    let (user, mounts) = (open("user")?, open("mnt")?);
    let identity = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    let own = File::open("/proc/self/ns/user").ok();
    let joined =
        |errno: nix::errno::Errno| Obstacle::new("joining the view", io::Error::from(errno));
    if own.as_ref().and_then(identity) != identity(&user) {
        nix::sched::setns(user, CloneFlags::CLONE_NEWUSER).map_err(joined)?;
    }
    nix::sched::setns(mounts, CloneFlags::CLONE_NEWNS).map_err(joined)
}

/// The first place inside the directory where something else is mounted: an overlay would not show it.
fn mounts_inside(root: &Path) -> Option<PathBuf> {
    super::mount_points()
        .into_iter()
        .find(|point| point != root && point.starts_with(root))
}
