//! Decides the sandbox of a child process: what it may write, what is hidden from it and which
//! network it gets. [`plan_sandbox`] computes the plan; `inner` applies it.

mod caches;
mod refusal;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use serde::{Deserialize, Serialize};

use super::{CommandSpec, StartError};

pub use refusal::explain_refusals;

/// Whether children are sandboxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// No sandbox.
    #[default]
    Off,
    /// Use the strongest sandbox available here; the report says which it was.
    Auto,
    /// Do not start a child that cannot have the strongest sandbox.
    Require,
}

/// Which network test commands get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkRule {
    /// The most private network in which the project's own tests pass before anything is changed.
    #[default]
    Auto,
    /// A private loopback interface and nothing else.
    Private,
    Host,
}

/// `[sandbox]` in the settings, with absolute paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxRules {
    pub mode: SandboxMode,
    /// Paths that are writable besides the project and a private temporary directory.
    pub write: Vec<PathBuf>,
    /// Paths that cannot be read.
    pub hide: Vec<PathBuf>,
    pub network: NetworkRule,
    /// Tool caches that are shared with the children instead of using private ones.
    pub caches: Vec<PathBuf>,
    /// Directory for private caches.
    pub private_caches: Option<PathBuf>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
}

/// The network that a child has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkReach {
    Private,
    Host,
}

/// The kind of a child, which decides its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildKind {
    /// The project's own tests: write to the project and to private caches.
    Tests,
    /// An editing agent: writes to the project and uses the host's network for its API.
    Agent,
    /// A reviewer or verifier: only reads the project and uses the host's network for its API.
    Reader,
}

impl ChildKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Tests => "tests",
            Self::Agent => "agent",
            Self::Reader => "reader",
        }
    }
}

/// The sandbox that a program asks for. Without one it is not sandboxed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    pub kind: ChildKind,
    /// Paths that this program may write besides those of its kind.
    pub write: Vec<PathBuf>,
    /// Paths that this program may read although the settings hide them.
    pub reveal: Vec<PathBuf>,
    /// Hides the project's git directory, and so its history, from this program.
    pub hides_git: bool,
    /// (replacement, path): the program sees the first at the path of the second. Needs namespaces.
    pub replaced: Vec<(PathBuf, PathBuf)>,
    /// A directory that the program may change privately. Some files are saved when it has ended.
    pub layered: Option<LayeredDir>,
    /// Network of a test command; `None` uses the settings.
    pub network: Option<NetworkReach>,
    /// The least strict mode for this program; a backend can ask for more than the settings.
    pub at_least: SandboxMode,
    /// No sandbox, because the settings of the backend disable it.
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

/// A directory behind an overlay. The program sees its content, and its writes are discarded,
/// except for files that must outlive it, such as a renewed login. If no overlay is available, the
/// directory itself is writable, and the report says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayeredDir {
    pub dir: PathBuf,
    /// Names of the files in `dir` to save.
    pub saved: Vec<String>,
}

/// The sandboxes of all children of one call, by kind. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SandboxRecord(Arc<Mutex<BTreeMap<ChildKind, SandboxReport>>>);

impl SandboxRecord {
    /// Keeps the weakest report of each kind.
    pub(super) fn note(&self, kind: ChildKind, report: &SandboxReport) {
        let mut seen = self.0.lock();
        let weakest = seen
            .remove(&kind)
            .map_or_else(|| report.clone(), |known| known.weaker(report.clone()));
        seen.insert(kind, weakest);
    }

    /// Returns `tests: namespaces, private network; agent: namespaces, host network`, or an empty
    /// string if no child was started.
    pub fn summary(&self) -> String {
        let seen = self.0.lock();
        let parts: Vec<String> = seen
            .iter()
            .map(|(kind, report)| format!("{}: {report}", kind.as_str()))
            .collect();
        parts.join("; ")
    }
}

/// What the sandbox needs to know about the project.
#[derive(Debug, Clone)]
pub struct SandboxedProject {
    pub root: PathBuf,
    /// The repository's git directories. No child may write to them.
    pub git: Vec<PathBuf>,
    /// The process that holds the overlay which the child joins.
    pub overlay_holder: Option<u32>,
    /// Path under which this process sees the files of the overlay.
    pub overlay_files: Option<PathBuf>,
    /// The overlay is of one run of tests, which leaves nothing in the caches of build tools either.
    pub is_single_run: bool,
    /// Collects the sandbox reports of the children.
    pub record: SandboxRecord,
}

/// The sandbox level that was actually applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLevel {
    /// Private mount namespace and, if asked for, network namespace; Landlock as well if the kernel
    /// has it.
    Namespaces,
    /// Landlock only: files and, on recent kernels, signals and abstract sockets.
    Landlock,
    /// No sandbox.
    None,
}

impl SandboxLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

/// The sandbox of one child, and why it was not stronger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    pub level: SandboxLevel,
    pub network: NetworkReach,
    /// Why a stronger level was not available; empty if this is the strongest.
    pub why: String,
}

impl SandboxReport {
    /// The report of a child that runs without a sandbox.
    pub fn off() -> Self {
        Self {
            level: SandboxLevel::None,
            network: NetworkReach::Host,
            why: String::from("switched off"),
        }
    }

    /// Returns the weaker of two reports.
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
        f.write_str(self.level.as_str())?;
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

/// Everything that `inner` needs to apply the sandbox, with paths as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SandboxPlan {
    pub(super) mode: SandboxMode,
    /// The level to apply.
    pub(super) level: SandboxLevel,
    pub(super) network: NetworkReach,
    /// Shared memory, other IPC and keys of the kernel are not shared with any other run.
    pub(super) isolates_memory: bool,
    pub(super) writable: Vec<OsString>,
    pub(super) read_only: Vec<OsString>,
    pub(super) hidden: Vec<OsString>,
    pub(super) replaced: Vec<(OsString, OsString)>,
    pub(super) layered: Option<LayerMount>,
    pub(super) overlay_holder: Option<u32>,
}

/// A [`LayeredDir`] with the directories of its overlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LayerMount {
    pub(super) dir: OsString,
    pub(super) upper: OsString,
    pub(super) work: OsString,
    pub(super) saved: Vec<String>,
}

impl SandboxPlan {
    /// Returns the same plan without the overlay: the directory itself is writable then.
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

/// Plans the sandbox of one program and adjusts its environment. `tmp` is its private temporary
/// directory; `layer` is where its overlay goes, if it asks for one.
pub(super) fn plan_sandbox(
    rules: &SandboxRules,
    spec: &mut CommandSpec,
    tmp: &Path,
    layer: Option<&Path>,
) -> Result<Option<SandboxPlan>, StartError> {
    let Some(confine) = spec.confine.clone() else {
        return Ok(None);
    };
    let mode = rules.mode.max(confine.at_least);
    if mode == SandboxMode::Off || (confine.off && mode != SandboxMode::Require) {
        return Ok(None);
    }
    let project = spec.guard.as_ref().and_then(|guard| guard.project.clone());
    let root = project
        .as_ref()
        .map_or(spec.cwd.as_path(), |project| &project.root);
    let mut writable = vec![tmp.to_owned()];
    // `/` is not a project: programs without a project are started there.
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
        let private = caches::use_private(
            rules,
            &mut spec.env,
            project.as_ref().is_some_and(|p| p.overlay_holder.is_some()),
        );
        let is_layered = |dir: &PathBuf| {
            let layered = confine.layered.as_ref();
            layered.is_some_and(|layered| dir.starts_with(&layered.dir))
        };
        writable.extend(private.into_iter().filter(|dir| !is_layered(dir)));
        if network == NetworkReach::Private {
            caches::set_offline(&mut spec.env);
        }
    }
    let sockets = session_sockets();
    let git: Vec<PathBuf> = project
        .iter()
        .flat_map(|project| project.git.clone())
        .collect();
    let (hidden_git, read_only) = if confine.hides_git {
        (git, Vec::new())
    } else {
        (Vec::new(), git)
    };
    let hidden = rules.hide.iter().chain(&sockets).chain(&hidden_git);
    let hidden = hidden.filter(|hidden| !confine.reveal.iter().any(|r| r.starts_with(hidden)));
    let bytes = |paths: Vec<PathBuf>| -> Vec<OsString> {
        canonicalize_existing(paths)
            .into_iter()
            .map(PathBuf::into_os_string)
            .collect()
    };
    Ok(Some(SandboxPlan {
        mode,
        level: SandboxLevel::Namespaces,
        network,
        isolates_memory: confine.kind == ChildKind::Tests,
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
            .and_then(|(layered, parent)| create_layer(layered, parent)),
        overlay_holder: project.and_then(|project| project.overlay_holder),
    }))
}

/// Creates the directories of an overlay. Returns `None` if the directory to cover does not exist.
fn create_layer(layered: LayeredDir, parent: &Path) -> Option<LayerMount> {
    let dir = layered.dir.canonicalize().ok().filter(|dir| dir.is_dir())?;
    let make = |name: &str| {
        let path = parent.join(name);
        super::scratch::make_private(&path)
            .ok()
            .map(|()| path.into_os_string())
    };
    Some(LayerMount {
        dir: dir.into(),
        upper: make("upper")?,
        work: make("work")?,
        saved: layered.saved,
    })
}

/// Sockets of the user's session agents. A process that reaches them can act as the user.
fn session_sockets() -> Vec<PathBuf> {
    let mut sockets = vec![PathBuf::from(format!(
        "/run/user/{}",
        rustix::process::getuid().as_raw()
    ))];
    let socket_dir = |path: &str| {
        Path::new(path)
            .parent()
            .map(Path::to_owned)
            .filter(|dir| dir.components().count() > 2)
    };
    let agent = std::env::var("SSH_AUTH_SOCK").ok();
    sockets.extend(agent.as_deref().and_then(socket_dir));
    sockets
}

/// Returns the canonical paths of those that exist: a rule about a link does not apply to its
/// target.
fn canonicalize_existing(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = paths
        .into_iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Expands `~/x` and `x` to paths below the home directory; absolute paths stay.
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

    fn plan(rules: &SandboxRules, confine: Confinement) -> Option<SandboxPlan> {
        let mut spec = CommandSpec::new(["true"], "/usr");
        spec.confine = Some(confine);
        plan_sandbox(rules, &mut spec, Path::new("/tmp"), None).expect("planned")
    }

    #[test]
    fn readers_write_only_their_temp_dir() {
        let reader = plan(&rules(), Confinement::new(ChildKind::Reader)).expect("sandboxed");
        assert_eq!(reader.writable, ["/tmp"]);
        assert_eq!(
            reader.network,
            NetworkReach::Host,
            "its API is on the network"
        );
        let tests = plan(&rules(), Confinement::new(ChildKind::Tests)).expect("sandboxed");
        assert_eq!(tests.writable, ["/tmp", "/usr"]);
        assert_eq!(tests.network, NetworkReach::Private);
        assert!(tests.hidden.contains(&OsString::from("/etc")));
    }

    #[test]
    fn required_sandbox_cannot_be_switched_off() {
        let off = SandboxRules {
            mode: SandboxMode::Off,
            ..rules()
        };
        assert_eq!(plan(&off, Confinement::new(ChildKind::Agent)), None);
        let strict = Confinement {
            at_least: SandboxMode::Require,
            ..Confinement::new(ChildKind::Agent)
        };
        assert_eq!(
            plan(&off, strict).expect("sandboxed").mode,
            SandboxMode::Require
        );
        let free = Confinement {
            off: true,
            ..Confinement::new(ChildKind::Agent)
        };
        assert_eq!(plan(&rules(), free.clone()), None);
        let required = SandboxRules {
            mode: SandboxMode::Require,
            ..rules()
        };
        assert!(plan(&required, free).is_some());
    }

    #[test]
    fn paths_are_expanded_below_home() {
        let home = Some(Path::new("/home/u"));
        assert_eq!(expand_home("~/.ssh", home), Some("/home/u/.ssh".into()));
        assert_eq!(expand_home("/x", None), Some("/x".into()));
        assert_eq!(
            (expand_home("x", home), expand_home("~/x", None)),
            (Some("/home/u/x".into()), None)
        );
    }
}
