//! Which walls stand around a child: what it may write, what it cannot see, how far its network reaches.
//! Knows settings, kinds of children and paths. Does not know how a wall is put up: `inner` does.

mod caches;
mod refusal;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Spec, StartError};

pub use refusal::explain_refusals;

/// Whether walls are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// No walls.
    #[default]
    Off,
    /// The strongest walls that this system can put up, and the result says which.
    Auto,
    /// The strongest or nothing: a child that cannot have them is not started.
    Require,
}

/// How far the network of test commands may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkRule {
    /// Whatever lets the project's own tests pass before anything is changed: a private loopback if that is enough.
    #[default]
    Auto,
    /// A loopback of the child's own and nothing else.
    Private,
    Host,
}

/// `[sandbox]` in the settings, with absolute paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxRules {
    pub mode: SandboxMode,
    /// Writable besides the project and a private temporary directory.
    pub write: Vec<PathBuf>,
    /// Cannot be read, wherever it lies.
    pub hide: Vec<PathBuf>,
    pub network: NetworkRule,
    /// Caches of tools that may be shared with the children, instead of private ones.
    pub caches: Vec<PathBuf>,
    /// Where private caches are kept.
    pub private_caches: Option<PathBuf>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
}

/// How a child's network is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkReach {
    Private,
    Host,
}

/// What kind of child a program is, which decides its walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildKind {
    /// The project's own tests: they write to the project and to private caches.
    Tests,
    /// An agent that edits: it writes to the project and keeps the host's network for its API.
    Agent,
    /// A reviewer or verifier: it reads the project and keeps the host's network for its API.
    Reader,
}

impl ChildKind {
    fn word(self) -> &'static str {
        match self {
            Self::Tests => "tests",
            Self::Agent => "agent",
            Self::Reader => "reader",
        }
    }
}

/// The walls that a program asks for. Without one of these it runs free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    pub kind: ChildKind,
    /// Writable for this program besides what its kind may write.
    pub write: Vec<PathBuf>,
    /// Readable for this program although the settings hide it.
    pub reveal: Vec<PathBuf>,
    /// The repository of the project is hidden from this program, history and all.
    pub hides_git: bool,
    /// The file or directory on the left stands at the path on the right, for this program alone. Needs namespaces.
    pub replaced: Vec<(PathBuf, PathBuf)>,
    /// A directory that this program may change as it likes, for itself alone; some of it is saved when it has ended.
    pub layered: Option<LayeredDir>,
    /// For test commands; the settings decide if this is empty.
    pub network: Option<NetworkReach>,
    /// Stricter than the settings, if so wished for this backend.
    pub at_least: SandboxMode,
    /// Runs free, because the settings of its backend say so.
    pub off: bool,
}

impl Confinement {
    pub fn new(kind: ChildKind) -> Self {
        let (write, reveal, replaced) = Default::default();
        let (hides_git, off) = (false, false);
        Self {
            kind,
            write,
            reveal,
            hides_git,
            replaced,
            layered: None,
            network: None,
            at_least: SandboxMode::Off,
            off,
        }
    }
}

/// A directory behind a layer of its own: the program sees it as it is, and what it writes there is thrown away, but for
/// files that have to outlive it, such as a renewed login. Without a layer the directory itself can be written, and the
/// report says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayeredDir {
    pub dir: PathBuf,
    /// Names in the directory.
    pub saved: Vec<String>,
}

/// Which walls stood around the children of one call, by kind. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SandboxRecord(Arc<Mutex<BTreeMap<ChildKind, SandboxReport>>>);

impl SandboxRecord {
    /// Of several children of one kind the weakest walls count.
    pub(super) fn note(&self, kind: ChildKind, report: &SandboxReport) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let weakest = seen
            .remove(&kind)
            .map_or_else(|| report.clone(), |known| known.weaker(report.clone()));
        seen.insert(kind, weakest);
    }

    /// `tests: namespaces, private network; agent: namespaces, host network`, or nothing if no child was started.
    pub fn sentence(&self) -> String {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told: Vec<String> = seen
            .iter()
            .map(|(kind, report)| format!("{}: {report}", kind.word()))
            .collect();
        told.join("; ")
    }
}

/// The project that a child works in, as far as its walls are concerned.
#[derive(Debug, Clone)]
pub struct WalledProject {
    pub root: PathBuf,
    /// Directories of the repository: no child writes to them.
    pub git: Vec<PathBuf>,
    /// The process whose view of the project the child shares.
    pub view: Option<u32>,
    /// Where this process finds the files of that view.
    pub view_files: Option<PathBuf>,
    /// Where it is written down which walls stood.
    pub record: SandboxRecord,
}

/// Which walls really stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLevel {
    /// Own namespaces for mounts and, where asked for, network; Landlock besides where the kernel has it.
    Namespaces,
    /// Landlock alone: files, and with a recent kernel signals and abstract sockets.
    Landlock,
    /// Nothing holds.
    None,
}

impl SandboxLevel {
    pub fn word(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

/// What stood around one child, and why it was not more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    pub level: SandboxLevel,
    pub network: NetworkReach,
    /// Why a stronger level was not to be had; empty if there is none.
    pub why: String,
}

impl SandboxReport {
    /// For a child that needs no walls.
    pub fn off() -> Self {
        Self {
            level: SandboxLevel::None,
            network: NetworkReach::Host,
            why: String::from("switched off"),
        }
    }

    /// The lesser of two, for several children of one run.
    pub fn weaker(self, other: Self) -> Self {
        let rank = |report: &Self| match report.level {
            SandboxLevel::Namespaces => 2,
            SandboxLevel::Landlock => 1,
            SandboxLevel::None => 0,
        };
        if rank(&other) < rank(&self) {
            other
        } else {
            self
        }
    }
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.level.word())?;
        if self.level == SandboxLevel::Namespaces {
            f.write_str(match self.network {
                NetworkReach::Private => ", private network",
                NetworkReach::Host => ", host network",
            })?;
        }
        if self.why.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", self.why)
        }
    }
}

/// Everything `inner` needs to know, with paths as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Walls {
    pub(super) demand: SandboxMode,
    /// The strongest level worth trying.
    pub(super) level: SandboxLevel,
    pub(super) network: NetworkReach,
    pub(super) writable: Vec<OsString>,
    pub(super) read_only: Vec<OsString>,
    pub(super) hidden: Vec<OsString>,
    pub(super) replaced: Vec<(OsString, OsString)>,
    pub(super) layered: Option<WalledLayer>,
    pub(super) view: Option<u32>,
}

/// A [`LayeredDir`], with the place of its layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WalledLayer {
    pub(super) dir: OsString,
    pub(super) upper: OsString,
    pub(super) work: OsString,
    pub(super) saved: Vec<String>,
}

impl Walls {
    /// The same without a layer: the directory itself can be written then.
    pub(super) fn without_layer(&self) -> Option<Self> {
        let layered = self.layered.as_ref()?;
        let mut writable = self.writable.clone();
        writable.push(layered.dir.clone());
        Some(Self {
            layered: None,
            writable,
            ..self.clone()
        })
    }
}

/// The walls of one program, and what they change in its environment. `tmp` is its private temporary directory, and `layer`
/// the place for a layer, if it asks for one.
pub(super) fn build_walls(
    rules: &SandboxRules,
    spec: &mut Spec,
    tmp: &Path,
    layer: Option<&Path>,
) -> Result<Option<Walls>, StartError> {
    let Some(confine) = spec.confine.clone() else {
        return Ok(None);
    };
    let demand = rules.mode.max(confine.at_least);
    if demand == SandboxMode::Off || (confine.off && demand != SandboxMode::Require) {
        return Ok(None);
    }
    let project = spec.guard.as_ref().and_then(|guard| guard.project.clone());
    let root = project
        .as_ref()
        .map_or(spec.cwd.as_path(), |project| &project.root);
    let mut writable = vec![tmp.to_owned()];
    // The whole file system is not a project: programs without one are started there.
    if confine.kind != ChildKind::Reader && root.parent().is_some() {
        writable.push(root.to_owned());
    }
    writable.extend(rules.write.iter().chain(&confine.write).cloned());
    let network = match (confine.kind, confine.network, rules.network) {
        (ChildKind::Agent | ChildKind::Reader, ..) | (_, _, NetworkRule::Host) => {
            NetworkReach::Host
        }
        (ChildKind::Tests, _, NetworkRule::Private) => NetworkReach::Private,
        (ChildKind::Tests, chosen, NetworkRule::Auto) => chosen.unwrap_or(NetworkReach::Private),
    };
    for (name, value) in [("TMPDIR", tmp), ("TMP", tmp), ("TEMP", tmp)] {
        spec.env.insert(name.into(), value.into());
    }
    for name in [
        "XDG_RUNTIME_DIR",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "DBUS_SYSTEM_BUS_ADDRESS",
    ] {
        spec.env.remove(std::ffi::OsStr::new(name));
    }
    if confine.kind == ChildKind::Tests {
        writable.extend(rules.caches.iter().cloned());
        writable.extend(caches::private(
            rules,
            &mut spec.env,
            project.as_ref().is_some_and(|p| p.view.is_some()),
        ));
        if network == NetworkReach::Private {
            caches::tell_offline(&mut spec.env);
        }
    }
    let sockets = session_sockets();
    let git: Vec<PathBuf> = project
        .iter()
        .flat_map(|project| project.git.clone())
        .collect();
    let (masked, read_only) = if confine.hides_git {
        (git, Vec::new())
    } else {
        (Vec::new(), git)
    };
    let hidden = rules.hide.iter().chain(&sockets).chain(&masked);
    let hidden = hidden.filter(|hidden| !confine.reveal.iter().any(|r| r.starts_with(hidden)));
    let bytes = |paths: Vec<PathBuf>| -> Vec<OsString> {
        real(paths)
            .into_iter()
            .map(PathBuf::into_os_string)
            .collect()
    };
    Ok(Some(Walls {
        demand,
        level: SandboxLevel::Namespaces,
        network,
        hidden: bytes(hidden.cloned().collect()),
        writable: bytes(writable),
        read_only: bytes(read_only),
        replaced: confine
            .replaced
            .into_iter()
            .map(|(new, old)| (new.into(), old.into()))
            .collect(),
        layered: confine
            .layered
            .zip(layer)
            .and_then(|(layered, place)| place_layer(layered, place)),
        view: project.and_then(|project| project.view),
    }))
}

/// `None` for a directory that is not there: nothing can be kept in it.
fn place_layer(layered: LayeredDir, place: &Path) -> Option<WalledLayer> {
    let dir = layered.dir.canonicalize().ok().filter(|dir| dir.is_dir())?;
    let make = |name: &str| {
        let path = place.join(name);
        super::scratch::make_private(&path)
            .ok()
            .map(|()| path.into_os_string())
    };
    Some(WalledLayer {
        dir: dir.into(),
        upper: make("upper")?,
        work: make("work")?,
        saved: layered.saved,
    })
}

/// Where agents of the user's session listen: who reaches these acts as the user.
fn session_sockets() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from(format!(
        "/run/user/{}",
        rustix::process::getuid().as_raw()
    ))];
    let beside = |path: &str| {
        Path::new(path)
            .parent()
            .map(Path::to_owned)
            .filter(|dir| dir.components().count() > 2)
    };
    let agent = std::env::var("SSH_AUTH_SOCK").ok();
    found.extend(agent.as_deref().and_then(beside));
    found
}

/// What exists, without links: a rule about a link says nothing about what it leads to.
fn real(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = paths
        .into_iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// `~/x` and `x` are below the home directory; every other path is absolute.
pub fn expand_home(written: &str, home: Option<&Path>) -> Option<PathBuf> {
    match written.strip_prefix("~/") {
        Some(rest) => Some(home?.join(rest)),
        None if written == "~" => home.map(Path::to_owned),
        None if Path::new(written).is_absolute() => Some(PathBuf::from(written)),
        None => Some(home?.join(written)),
    }
}

type Variables = BTreeMap<OsString, OsString>;

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> SandboxRules {
        SandboxRules {
            mode: SandboxMode::Auto,
            hide: vec!["/etc".into()],
            ..SandboxRules::default()
        }
    }

    fn walls(rules: &SandboxRules, confine: Confinement) -> Option<Walls> {
        let mut spec = Spec::new(["true"], "/usr");
        spec.confine = Some(confine);
        build_walls(rules, &mut spec, Path::new("/tmp"), None).expect("built")
    }

    #[test]
    fn a_reader_writes_nothing_but_its_temporary_directory() {
        let reader = walls(&rules(), Confinement::new(ChildKind::Reader)).expect("walls");
        assert_eq!(reader.writable, ["/tmp"]);
        assert_eq!(
            reader.network,
            NetworkReach::Host,
            "its API is on the network"
        );
        let tests = walls(&rules(), Confinement::new(ChildKind::Tests)).expect("walls");
        assert_eq!(tests.writable, ["/tmp", "/usr"]);
        assert_eq!(tests.network, NetworkReach::Private);
        assert!(tests.hidden.contains(&OsString::from("/etc")));
    }

    #[test]
    fn a_call_may_be_stricter_than_the_settings_and_a_backend_may_not_undo_a_requirement() {
        let off = SandboxRules {
            mode: SandboxMode::Off,
            ..rules()
        };
        assert_eq!(walls(&off, Confinement::new(ChildKind::Agent)), None);
        let strict = Confinement {
            at_least: SandboxMode::Require,
            ..Confinement::new(ChildKind::Agent)
        };
        assert_eq!(
            walls(&off, strict).expect("walls").demand,
            SandboxMode::Require
        );
        let free = Confinement {
            off: true,
            ..Confinement::new(ChildKind::Agent)
        };
        assert_eq!(walls(&rules(), free.clone()), None);
        let required = SandboxRules {
            mode: SandboxMode::Require,
            ..rules()
        };
        assert!(walls(&required, free).is_some());
    }

    #[test]
    fn a_path_is_absolute_or_below_home() {
        let home = Some(Path::new("/home/u"));
        assert_eq!(expand_home("~/.ssh", home), Some("/home/u/.ssh".into()));
        assert_eq!(expand_home("/x", None), Some("/x".into()));
        assert_eq!(
            (expand_home("x", home), expand_home("~/x", None)),
            (Some("/home/u/x".into()), None)
        );
    }
}
