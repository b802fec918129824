//! The files that a suite needs on another machine: the project as it is now, the environments its commands name, and the
//! request.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use supervisor_verify::{RunEnvironment, Suite};
use supervisor_workspace::{
    FileStamp, ProjectFile, ProjectFileKind, SnapshotLimits, project_files,
};

use crate::digest::DigestFunction;
use crate::error::RemoteError;
use crate::hashes::FileHashes;
use crate::storage::Blobs;
use crate::suite_run::{PROJECT_DIR, REQUEST_FILE, SuiteRequest, version};
use crate::tree::TreeBuilder;

/// Larger projects stay on this machine.
const MAX_TREE_BYTES: u64 = 2 << 30;
const MAX_FILES: usize = 200_000;
/// Programs here are taken to be on the workers, too.
const SYSTEM_DIRS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/opt", "/nix"];
/// Variables that are sent besides those of the settings.
const SENT_VARIABLES: &[&str] = &["CI", "LANG", "LC_ALL", "TZ"];
/// Variables that are always the worker's own.
const WORKER_VARIABLES: &[&str] = &["HOME", "PATH", "TMPDIR", "TMP", "TEMP"];

/// What is sent, with the digest of its root.
pub(crate) struct Inputs {
    pub(crate) root: bazel_remote_apis::build::bazel::remote::execution::v2::Digest,
    pub(crate) blobs: Blobs,
}

/// The project of a run: where it is for its commands, and where its files are for this process.
pub(crate) struct ProjectPaths {
    pub(crate) root: PathBuf,
    pub(crate) files: PathBuf,
}

impl ProjectPaths {
    /// The project that is locked for this run; without one, the repository around the suite.
    pub(crate) fn of(suite: &Suite, environment: &RunEnvironment) -> Self {
        let guard = environment.guard.as_ref();
        if let Some(project) = guard.and_then(|guard| guard.project.as_ref())
            && suite.root().starts_with(&project.root)
        {
            let overlay = project.overlay_files.clone();
            return Self {
                root: project.root.clone(),
                files: overlay.unwrap_or_else(|| project.root.clone()),
            };
        }
        let mut above = suite.root().ancestors();
        let top = above.find(|dir| dir.join(".git").exists());
        let root = top.unwrap_or(suite.root()).to_owned();
        Self {
            files: root.clone(),
            root,
        }
    }
}

/// Collects the files and computes their digests. Blocks.
pub(crate) fn collect(
    suite: &Suite,
    environment: &RunEnvironment,
    project: &ProjectPaths,
    env_names: &[String],
    function: DigestFunction,
    hashes: &FileHashes,
) -> Result<Inputs, RemoteError> {
    let mut files = project_files(&project.files, &SnapshotLimits::default())?;
    let environments = installed_environments(suite, project, &files)?;
    for dir in &environments {
        list_all(&project.files, dir, &mut files)?;
    }
    refuse_if_large(&files)?;
    let mut tree = TreeBuilder::new(function);
    tree.add_project(PROJECT_DIR, &project.files, &files, hashes)?;
    for (replacement, path) in &environment.sandbox.replaced {
        let inside = path.strip_prefix(&project.root).map_err(|_| {
            let path = path.display();
            RemoteError::NotPortable(format!("`{path}` is replaced and outside the project"))
        })?;
        tree.add_bytes(
            &Path::new(PROJECT_DIR).join(inside),
            std::fs::read(replacement)?,
        )?;
    }
    hashes.save();
    let request = SuiteRequest {
        version: version(),
        suite: suite.clone(),
        root: project.root.clone(),
        needs_root: environments
            .iter()
            .any(|dir| project.files.join(dir).join("pyvenv.cfg").is_file()),
        variables: sent_variables(environment, env_names),
        limit_s: environment.limit.as_secs().max(1),
        network: environment.sandbox.network,
        links: std::mem::take(&mut tree.absolute_links),
    };
    let request = serde_json::to_vec(&request).map_err(io::Error::other)?;
    tree.add_bytes(Path::new(REQUEST_FILE), request)?;
    Ok(Inputs {
        root: tree.finish(),
        blobs: tree.blobs,
    })
}

/// Directories of installed packages that the suite's commands name and that are not among the project's files, such as
/// `.venv` and `node_modules`.
fn installed_environments(
    suite: &Suite,
    project: &ProjectPaths,
    files: &[ProjectFile],
) -> Result<BTreeSet<PathBuf>, RemoteError> {
    let known: BTreeSet<&Path> = files.iter().map(|file| file.path.as_path()).collect();
    let mut found = BTreeSet::new();
    for path in suite.absolute_paths() {
        if let Ok(inside) = path.strip_prefix(&project.root) {
            let prefixes: Vec<&Path> = inside.ancestors().collect();
            let is_missing = |prefix: &&&Path| {
                !prefix.as_os_str().is_empty()
                    && !known.contains(**prefix)
                    && project.files.join(prefix).is_dir()
            };
            found.extend(
                prefixes
                    .iter()
                    .rev()
                    .find(is_missing)
                    .map(|p| p.to_path_buf()),
            );
        } else if path.exists() && !SYSTEM_DIRS.iter().any(|dir| path.starts_with(dir)) {
            return Err(RemoteError::NotPortable(format!(
                "its command uses `{}`, which is outside the project",
                path.display()
            )));
        }
    }
    Ok(found)
}

/// Lists a directory of the project completely.
fn list_all(root: &Path, dir: &Path, files: &mut Vec<ProjectFile>) -> io::Result<()> {
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(root.join(&dir))? {
            let entry = entry?;
            let (path, meta) = (dir.join(entry.file_name()), entry.metadata()?);
            let kind = if meta.is_dir() {
                dirs.push(path.clone());
                ProjectFileKind::Directory
            } else if meta.is_symlink() {
                ProjectFileKind::Link {
                    target: std::fs::read_link(entry.path())?,
                }
            } else if meta.is_file() {
                ProjectFileKind::File {
                    size: meta.len(),
                    is_executable: meta.mode() & 0o100 != 0,
                    stamp: stamp(&meta),
                }
            } else {
                continue;
            };
            files.push(ProjectFile { path, kind });
        }
        if files.len() > MAX_FILES {
            break; // refused by the caller
        }
    }
    Ok(())
}

fn stamp(meta: &std::fs::Metadata) -> FileStamp {
    let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000) + nanos;
    FileStamp {
        size: meta.len(),
        mtime: nanos(meta.mtime(), meta.mtime_nsec()),
        ctime: nanos(meta.ctime(), meta.ctime_nsec()),
        ino: meta.ino(),
    }
}

fn refuse_if_large(files: &[ProjectFile]) -> Result<(), RemoteError> {
    let sizes = files.iter().map(|file| match file.kind {
        ProjectFileKind::File { size, .. } => size,
        _ => 0,
    });
    let bytes: u64 = sizes.sum();
    if files.len() > MAX_FILES || bytes > MAX_TREE_BYTES {
        return Err(RemoteError::NotPortable(format!(
            "the project has {} files with {} MB, and {MAX_FILES} files with {} MB are the most that is sent",
            files.len(),
            bytes >> 20,
            MAX_TREE_BYTES >> 20
        )));
    }
    Ok(())
}

/// The client's variables mean little on another machine, and it should not get more of them than it needs: those that are
/// named, and those that were set for this run.
fn sent_variables(environment: &RunEnvironment, names: &[String]) -> BTreeMap<String, String> {
    let is_sent = |name: &str, value: &std::ffi::OsStr| {
        let is_set_for_run = std::env::var_os(name).as_deref() != Some(value);
        !WORKER_VARIABLES.contains(&name)
            && (is_set_for_run
                || SENT_VARIABLES.contains(&name)
                || names.iter().any(|listed| listed == name))
    };
    let all = environment.env.iter();
    all.filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| is_sent(name, value))?;
        Some((name.to_owned(), value.to_str()?.to_owned()))
    })
    .collect()
}
