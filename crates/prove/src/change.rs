//! The change under test: the contents of every file that differs between the base, the change and the working tree.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervisor_edits::Edit;
use supervisor_process::{CaptureLimits, CommandSpec, End, Launcher, Stdin};
use supervisor_text::words;
use tokio_util::sync::CancellationToken;

/// More changed files than this are not one change.
const MAX_FILES: usize = 2_000;
/// All contents together.
const MAX_BYTES: usize = 256 * 1024 * 1024;
const GIT_LIMIT: Duration = Duration::from_secs(60);

/// What is compared with the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparand {
    /// The files as they are: staged, unstaged and untracked.
    WorkingTree,
    /// The index.
    Staged,
    /// A commit.
    Commit(String),
}

/// Why a change cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error(
        "{root} is not in a git repository; `prove` compares with a commit, so run `git init` and commit a base first"
    )]
    NoRepository { root: PathBuf },
    #[error("`{name}` is not a commit; name one with --base, for example --base HEAD~1")]
    NoBase { name: String },
    #[error("nothing differs from `{base}`, so there is nothing to prove")]
    Nothing { base: String },
    #[error(
        "{count} files differ from `{base}`; the limit is {MAX_FILES}: prove it in parts, or name a nearer --base"
    )]
    TooLarge { count: usize, base: String },
    #[error("git failed: {message}")]
    Git { message: String },
}

/// One file in its versions; `None`: it does not exist there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Versions {
    pub(crate) working: Option<Vec<u8>>,
    pub(crate) base: Option<Vec<u8>>,
    pub(crate) change: Option<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) struct Change {
    /// By path relative to the project.
    pub(crate) files: BTreeMap<PathBuf, Versions>,
    /// Changed paths that are not plain files (links, submodules) and stay as they are in the working tree.
    pub(crate) not_files: Vec<PathBuf>,
}

impl Change {
    pub(crate) async fn read(
        git: &Git<'_>,
        base: &str,
        comparand: &Comparand,
    ) -> Result<Self, ChangeError> {
        git.ensure_repository().await?;
        let base_commit = git.commit(base).await?;
        let (change_diff, change_tree): (Vec<&str>, Option<String>) = match comparand {
            Comparand::WorkingTree => (vec![], None),
            Comparand::Staged => (vec!["diff"], Some(String::new())),
            Comparand::Commit(name) => {
                let commit = git.commit(name).await?;
                (vec!["diff"], Some(commit))
            }
        };
        let mut paths = git.differing(&["diff", &base_commit]).await?;
        let untracked = git.untracked().await?;
        if let Some(tree) = &change_tree {
            let mut arguments = change_diff;
            if !tree.is_empty() {
                arguments.push(tree);
            }
            paths.extend(git.differing(&arguments).await?);
        }
        paths.extend(untracked.iter().cloned());
        if paths.len() > MAX_FILES {
            return Err(ChangeError::TooLarge {
                count: paths.len(),
                base: base.to_owned(),
            });
        }
        let mut files: BTreeMap<PathBuf, Versions> = BTreeMap::new();
        let mut not_files = Vec::new();
        for path in &paths {
            let full = git.root.join(path);
            match full.symlink_metadata() {
                Ok(meta) if !meta.is_file() => {
                    not_files.push(path.clone());
                    continue;
                }
                _ => {}
            }
            let versions = Versions {
                working: std::fs::read(&full).ok(),
                ..Versions::default()
            };
            files.insert(path.clone(), versions);
        }
        let names: Vec<PathBuf> = files.keys().cloned().collect();
        let at_base = git.contents(&base_commit, &names).await?;
        let at_change = match &change_tree {
            Some(tree) => Some(git.contents(tree, &names).await?),
            None => None,
        };
        for (index, path) in names.iter().enumerate() {
            let versions = files.get_mut(path).expect("it was inserted above");
            versions.base = at_base[index].clone();
            versions.change = match &at_change {
                Some(contents) => contents[index].clone(),
                None => versions.working.clone(),
            };
        }
        files.retain(|_, v| v.base != v.change || v.working != v.change);
        if !files.values().any(|v| v.base != v.change) {
            return Err(ChangeError::Nothing {
                base: base.to_owned(),
            });
        }
        Ok(Self { files, not_files })
    }

    /// The files that the change itself touches.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&Path, &Versions)> {
        self.files
            .iter()
            .filter(|(_, versions)| versions.base != versions.change)
            .map(|(path, versions)| (path.as_path(), versions))
    }

    /// The edits that turn the working tree into a state that has `pick` of each file.
    pub(crate) fn edits_to(&self, pick: impl Fn(&Path, &Versions) -> Option<Vec<u8>>) -> Vec<Edit> {
        let edit = |(path, versions): (&PathBuf, &Versions)| {
            let name = path.to_str()?.to_owned();
            match (&versions.working, pick(path, versions)) {
                (Some(now), Some(wanted)) if *now == wanted => None,
                (Some(_), Some(contents)) => Some(Edit::Replace {
                    path: name,
                    contents,
                }),
                (None, Some(contents)) => Some(Edit::Create {
                    path: name,
                    contents,
                }),
                (Some(_), None) => Some(Edit::Delete { path: name }),
                (None, None) => None,
            }
        };
        self.files.iter().filter_map(edit).collect()
    }
}

/// The full id of a commit of the project, such as that of `HEAD`.
pub async fn commit_id(
    root: &Path,
    name: &str,
    launcher: &Launcher,
    env: &BTreeMap<OsString, OsString>,
    stop: &CancellationToken,
) -> Result<String, ChangeError> {
    let git = Git {
        root,
        launcher,
        env,
        stop,
    };
    git.ensure_repository().await?;
    git.commit(name).await
}

/// The files that the working tree changes, as they were at a commit; `None` if that cannot be told, as outside of git.
pub async fn files_at_commit(
    launcher: &Launcher,
    env: &BTreeMap<OsString, OsString>,
    root: &Path,
    commit: &str,
    stop: &CancellationToken,
) -> Option<BTreeMap<PathBuf, Option<Vec<u8>>>> {
    let git = Git {
        root,
        launcher,
        env,
        stop,
    };
    let change = Change::read(&git, commit, &Comparand::WorkingTree).await;
    let files = change.ok()?.files.into_iter();
    Some(
        files
            .map(|(path, versions)| (path, versions.base))
            .collect(),
    )
}

/// The messages of the commits since `base`, oldest first. Empty if there are none or they cannot be read.
pub async fn messages_since(
    launcher: &Launcher,
    env: &BTreeMap<OsString, OsString>,
    root: &Path,
    base: &str,
    stop: &CancellationToken,
) -> String {
    let git = Git {
        root,
        launcher,
        env,
        stop,
    };
    let Ok(base) = git.commit(base).await else {
        return String::new();
    };
    let range = format!("{base}..HEAD");
    let log = ["log", "--reverse", "--format=%B", "--max-count=20", &range];
    let out = git.run(&log, Stdin::Null).await.unwrap_or_default();
    String::from_utf8_lossy(&out).trim().to_owned()
}

/// Runs git in the project.
pub(crate) struct Git<'a> {
    pub(crate) root: &'a Path,
    pub(crate) launcher: &'a Launcher,
    pub(crate) env: &'a BTreeMap<OsString, OsString>,
    pub(crate) stop: &'a CancellationToken,
}

impl Git<'_> {
    pub(crate) async fn run(
        &self,
        arguments: &[&str],
        stdin: Stdin,
    ) -> Result<Vec<u8>, ChangeError> {
        let mut argv: Vec<OsString> = [
            "git",
            "-c",
            "core.quotePath=false",
            "-c",
            "core.fsmonitor=false",
        ]
        .map(OsString::from)
        .to_vec();
        argv.extend(arguments.iter().map(OsString::from));
        let mut spec = CommandSpec::new(argv, self.root);
        spec.env.clone_from(self.env);
        // Nothing from the repository may start a program of its own choice.
        spec.env.insert("GIT_OPTIONAL_LOCKS".into(), "0".into());
        spec.env.insert("GIT_EXTERNAL_DIFF".into(), "".into());
        spec.env.insert("GIT_TERMINAL_PROMPT".into(), "0".into());
        spec.stdin = stdin;
        spec.limit = GIT_LIMIT;
        spec.capture = CaptureLimits {
            head: MAX_BYTES,
            tail: 0,
        };
        let finished = self.launcher.run(spec, self.stop).await;
        if finished.end == End::Exited(0) {
            return Ok(finished.stdout.bytes());
        }
        let error = finished.stderr.text();
        let line = error.lines().next().unwrap_or("it did not end well");
        Err(ChangeError::Git {
            message: words::cut_end(&words::plain(line), 200).into_owned(),
        })
    }

    async fn ensure_repository(&self) -> Result<(), ChangeError> {
        self.run(&["rev-parse", "--git-dir"], Stdin::Null)
            .await
            .map(drop)
            .map_err(|_| ChangeError::NoRepository {
                root: self.root.to_owned(),
            })
    }

    pub(crate) async fn commit(&self, name: &str) -> Result<String, ChangeError> {
        let no_base = || ChangeError::NoBase {
            name: words::plain(name).into_owned(),
        };
        if name.is_empty() || name.starts_with('-') {
            return Err(no_base());
        }
        let revision = format!("{name}^{{commit}}");
        let out = self
            .run(
                &["rev-parse", "--verify", "--quiet", &revision],
                Stdin::Null,
            )
            .await
            .map_err(|_| no_base())?;
        Ok(String::from_utf8_lossy(&out).trim().to_owned())
    }

    /// The id of a commit's tree.
    pub(crate) async fn tree(&self, name: &str) -> Result<String, ChangeError> {
        let commit = self.commit(name).await?;
        let revision = format!("{commit}^{{tree}}");
        let out = self
            .run(&["rev-parse", "--verify", &revision], Stdin::Null)
            .await?;
        Ok(String::from_utf8_lossy(&out).trim().to_owned())
    }

    /// The files that git knows, below the project.
    pub(crate) async fn tracked(&self) -> Result<Vec<String>, ChangeError> {
        let out = self.run(&["ls-files", "-z"], Stdin::Null).await?;
        let names = paths_in(&out).into_iter();
        Ok(names
            .filter_map(|path| path.to_str().map(str::to_owned))
            .collect())
    }

    /// Paths below the project at which the working tree differs.
    async fn differing(&self, arguments: &[&str]) -> Result<BTreeSet<PathBuf>, ChangeError> {
        let (command, revisions) = arguments.split_first().expect("a command");
        let mut all = vec![
            *command,
            "--name-only",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--relative",
            "--ignore-submodules=none",
        ];
        all.extend(revisions);
        all.push("--");
        Ok(paths_in(&self.run(&all, Stdin::Null).await?))
    }

    async fn untracked(&self) -> Result<BTreeSet<PathBuf>, ChangeError> {
        let arguments = ["ls-files", "--others", "--exclude-standard", "-z"];
        Ok(paths_in(&self.run(&arguments, Stdin::Null).await?))
    }

    /// The contents of these files in a commit, or in the index if `tree` is empty. Links are not contents.
    async fn contents(
        &self,
        tree: &str,
        paths: &[PathBuf],
    ) -> Result<Vec<Option<Vec<u8>>>, ChangeError> {
        let mut input = Vec::new();
        for path in paths {
            input.extend_from_slice(tree.as_bytes());
            input.extend_from_slice(b":./");
            input.extend_from_slice(path.as_os_str().as_bytes());
            input.push(b'\0');
        }
        let out = self
            .run(&["cat-file", "--batch", "-z"], Stdin::Bytes(input))
            .await?;
        parse_batch(&out, paths.len())
    }
}

fn paths_in(out: &[u8]) -> BTreeSet<PathBuf> {
    out.split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| PathBuf::from(OsString::from_vec(name.to_vec())))
        // The names become edits, which are text.
        .filter(|path| OsStr::to_str(path.as_os_str()).is_some())
        .collect()
}

/// Reads the output of `git cat-file --batch`: `<id> blob <size>\n<contents>\n`, or `<name> missing\n`.
fn parse_batch(mut out: &[u8], count: usize) -> Result<Vec<Option<Vec<u8>>>, ChangeError> {
    let damaged = || ChangeError::Git {
        message: String::from("`git cat-file` gave fewer objects than asked for"),
    };
    let mut contents = Vec::with_capacity(count);
    for _ in 0..count {
        let end = out.iter().position(|b| *b == b'\n').ok_or_else(damaged)?;
        let (line, rest) = (String::from_utf8_lossy(&out[..end]), &out[end + 1..]);
        let mut fields = line.rsplit(' ');
        let (size, kind) = (fields.next().unwrap_or_default(), fields.next());
        let Some(size) = size.parse::<usize>().ok().filter(|_| kind.is_some()) else {
            contents.push(None);
            out = rest;
            continue;
        };
        let blob = rest.get(..size).ok_or_else(damaged)?;
        contents.push((kind == Some("blob")).then(|| blob.to_vec()));
        out = rest.get(size + 1..).ok_or_else(damaged)?;
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_output_with_missing_and_binary_objects_is_read() {
        let out = b"aa blob 3\na\nb\n:./gone missing\nbb blob 0\n\ncc tree 2\nxx\n";
        let contents = parse_batch(out, 4).expect("whole");
        assert_eq!(contents, [Some(b"a\nb".to_vec()), None, Some(vec![]), None]);
        assert!(parse_batch(b"aa blob 9\nab", 1).is_err());
    }
}
