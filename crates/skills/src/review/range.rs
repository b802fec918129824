//! Reads a change with git's plumbing commands: a range of commits, what is staged, or the working
//! tree. None of them runs filters, hooks, pagers, textconv, external diffs or fetches from the
//! project's configuration: files on disk are read here, not by git.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::material::{MAX_FILE_BYTES, MAX_FILES, ReviewMaterial};
use super::params::ChangeEnd;
use supervisor_engine::skill::Preparation;
use supervisor_process::environment;
use supervisor_process::environment::Environment;
use supervisor_process::{CaptureLimits, CommandSpec, End, Launcher, ProjectGuard, Stdin, which};
use supervisor_text::redact::{Redactor, is_secret_file};
use supervisor_text::words;
use supervisor_workspace::{FileReadError, Workspace};

/// Max bytes of all contents, counting both sides of every change.
const MAX_CONTENT_BYTES: u64 = 8 << 20;
/// Max bytes of the list of changes.
const MAX_LIST_BYTES: usize = 4 << 20;
const GIT_TIMEOUT: Duration = Duration::from_secs(60);
/// Max commit messages shown, and max bytes of each.
const MAX_COMMITS: usize = 30;
const MAX_MESSAGE_BYTES: usize = 1_200;

/// The git program and the environment it runs in.
#[derive(Clone)]
pub(super) struct Git {
    program: PathBuf,
    root: PathBuf,
    env: Environment,
    launcher: Launcher,
    guard: Option<ProjectGuard>,
}

/// One changed file.
struct ChangedFile {
    path: PathBuf,
    /// The old path, if the file was renamed.
    old_path: Option<PathBuf>,
    before: Option<Version>,
    after: Option<Version>,
    /// Set if either side is not a regular file: says what it is.
    not_regular: Option<&'static str>,
}

/// Where the content of one side of a change is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    Object(String),
    /// A file of the project.
    OnDisk(PathBuf),
}

impl Git {
    pub(super) fn find(call: &mut Preparation<'_>) -> Result<Self, String> {
        let root = call.root().to_owned();
        let mut env = environment::agent(call.environment.env.vars().clone(), &[]);
        let path = env.get(OsStr::new("PATH")).cloned();
        let program = which("git", path.as_deref(), Some(&root))
            .map_err(|e| format!("a review of changes needs git: {e}; or give `files` instead"))?;
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            // Never fetch missing objects, whatever program the configuration names for it.
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("LC_ALL", "C"),
        ] {
            env.insert(name.into(), value.into());
        }
        let guard = call
            .site
            .guard()
            .map_err(|e| format!("the project's lock cannot be shared with git: {e}"))?;
        Ok(Self {
            program,
            root,
            env,
            launcher: call.environment.launcher.clone(),
            guard,
        })
    }

    /// Reads what changed since `until` diverged from `base`; without a `base`, since the last
    /// commit.
    pub(super) async fn read(
        &self,
        base: Option<&str>,
        until: &ChangeEnd,
        workspace: &Workspace,
        redactor: &Redactor,
        stop: &CancellationToken,
    ) -> Result<ReviewMaterial, String> {
        let last_commit = match until {
            ChangeEnd::Commit(head) => Some(self.commit("head", head, stop).await?),
            // Without a commit, everything is new.
            ChangeEnd::Staged | ChangeEnd::WorkingTree => self.head(stop).await?,
        };
        let from = match (base, &last_commit) {
            (Some(base), Some(to)) => self.merge_base(base, to, stop).await?,
            (Some(base), None) => self.commit("base", base, stop).await?,
            (None, Some(head)) => head.clone(),
            (None, None) => self.empty_tree(stop).await?,
        };
        let (head, to) = match (until, &last_commit) {
            (ChangeEnd::Commit(head), Some(to)) => (head.as_str(), to.as_str()),
            (ChangeEnd::Staged, _) => ("what is staged", "what is staged"),
            _ => ("the working tree", "the working tree"),
        };
        let mut changes = match until {
            ChangeEnd::Commit(_) => {
                self.changes(&["diff-tree", "-r"], &[&from, to], stop)
                    .await?
            }
            ChangeEnd::Staged => self.staged(&from, stop).await?,
            ChangeEnd::WorkingTree => {
                let staged = self.staged(&from, stop).await?;
                let git = self.without_filters(stop).await?;
                git.add_working_tree(staged, &from, workspace, stop).await?
            }
        };
        if changes.len() > MAX_FILES {
            return Err(too_many(&words::count(changes.len(), "file")));
        }
        let mut material = ReviewMaterial::default();
        let base = base.unwrap_or("HEAD");
        material.range = json!({"base": base, "head": head, "from": from, "to": to});
        if let Some(last) = &last_commit {
            material.commits = self.messages(&from, last, redactor, stop).await;
        }
        let mut contents = self.contents(&changes, stop).await?;
        read_from_disk(&changes, workspace, &mut contents);
        // A file that was only touched did not change.
        changes.retain(|change| !is_same(change, &contents));
        for change in &changes {
            if is_secret_file(&change.path)
                || change.old_path.as_deref().is_some_and(is_secret_file)
            {
                material.leave_out(
                    &change.path,
                    "holds secrets by its name, so it is shown only if `files` names it",
                );
                continue;
            }
            let added = sides(change, &contents).and_then(|sides| match sides {
                ChangeSides::After { before, after } => {
                    material.add_change(&change.path, before, after, redactor)
                }
                ChangeSides::Deleted(before) => {
                    let added = material.add_deleted(&change.path, before, redactor);
                    added.map_err(|why| format!("was deleted, and {why}"))
                }
            });
            if let Err(why) = added {
                material.leave_out(&change.path, why);
            }
            if let Some(old) = &change.old_path {
                material.was(old);
            }
        }
        if material.shown() == 0 {
            let why = |file: &super::material::CoveredFile| {
                format!(
                    "`{}` {}",
                    words::plain(&file.file),
                    file.note.as_deref().unwrap_or_default()
                )
            };
            let reasons: Vec<String> = material.covered.iter().take(10).map(why).collect();
            let base = words::plain(base);
            let mut message = match until {
                ChangeEnd::Commit(head) => {
                    format!("`{}` changes nothing since `{base}`.", words::plain(head))
                }
                ChangeEnd::Staged => String::from("Nothing is staged."),
                ChangeEnd::WorkingTree => format!("There are no changes since `{base}`."),
            };
            if !reasons.is_empty() {
                message = format!("There is nothing to review: {}.", reasons.join("; "));
            } else if *until != ChangeEnd::WorkingTree {
                message += &self.uncommitted(&from, workspace, stop).await;
            }
            return Err(format!(
                "{message} Name `base` to review commits, or `files` to review whole files."
            ));
        }
        Ok(material)
    }

    /// A sentence about files with uncommitted changes; empty if there are none or they cannot be read.
    async fn uncommitted(
        &self,
        from: &str,
        workspace: &Workspace,
        stop: &CancellationToken,
    ) -> String {
        let changes = async {
            let staged = self.staged(from, stop).await?;
            let git = self.without_filters(stop).await?;
            git.add_working_tree(staged, from, workspace, stop).await
        };
        let changes = changes.await.unwrap_or_default();
        let names: Vec<String> = changes
            .iter()
            .map(|change| change.path.display().to_string())
            .collect();
        let has = if names.len() == 1 { "has" } else { "have" };
        match names.is_empty() {
            true => String::new(),
            false => format!(
                " {} {has} uncommitted changes: {}.",
                words::count(names.len(), "file"),
                words::list(names.iter().map(String::as_str), 5)
            ),
        }
    }

    /// Where `to` diverged from `base`: commits that only `base` has are not changes of `to`.
    /// Without a common ancestor, `base` itself.
    async fn merge_base(
        &self,
        base: &str,
        to: &str,
        stop: &CancellationToken,
    ) -> Result<String, String> {
        let base = self.commit("base", base, stop).await?;
        let arguments = ["merge-base", &base, to];
        let found = self.git(&arguments, Stdin::Null, 1 << 16, stop).await;
        Ok(found.map_or(base, |found| {
            String::from_utf8_lossy(&found).trim().to_owned()
        }))
    }

    /// The last commit; `None` before the first one.
    async fn head(&self, stop: &CancellationToken) -> Result<Option<String>, String> {
        match self.commit("head", "HEAD", stop).await {
            Ok(commit) => Ok(Some(commit)),
            Err(_) if self.has_no_commit(stop).await => Ok(None),
            Err(why) => Err(why),
        }
    }

    async fn has_no_commit(&self, stop: &CancellationToken) -> bool {
        let arguments = ["rev-list", "-n", "1", "--all"];
        let commits = self.git(&arguments, Stdin::Null, 1 << 16, stop).await;
        commits.is_ok_and(|commits| commits.is_empty())
    }

    async fn empty_tree(&self, stop: &CancellationToken) -> Result<String, String> {
        let arguments = ["hash-object", "-t", "tree", "--stdin"];
        let name = self
            .git(&arguments, Stdin::Bytes(Vec::new()), 1 << 16, stop)
            .await?;
        Ok(String::from_utf8_lossy(&name).trim().to_owned())
    }

    async fn staged(
        &self,
        from: &str,
        stop: &CancellationToken,
    ) -> Result<Vec<ChangedFile>, String> {
        self.changes(&["diff-index", "--cached"], &[from], stop)
            .await
    }

    /// The same git with every configured filter switched off. Files that are as old as the index are
    /// compared by contents, and git would run the filters for that.
    async fn without_filters(&self, stop: &CancellationToken) -> Result<Self, String> {
        let list = ["config", "-z", "--list", "--name-only"];
        let names = self.git(&list, Stdin::Null, MAX_LIST_BYTES, stop).await?;
        let names = String::from_utf8_lossy(&names).into_owned();
        let mut git = self.clone();
        let mut count = 0;
        for name in names.split('\0') {
            if !name.starts_with("filter.") {
                continue;
            }
            let value = match name.ends_with(".required") {
                true => "false",
                false => "",
            };
            for (key, text) in [("KEY", name), ("VALUE", value)] {
                let variable = format!("GIT_CONFIG_{key}_{count}");
                git.env.insert(variable.into(), text.into());
            }
            count += 1;
        }
        git.env
            .insert("GIT_CONFIG_COUNT".into(), count.to_string().into());
        Ok(git)
    }

    /// Adds what differs on disk from the index to what is staged, and untracked files.
    async fn add_working_tree(
        &self,
        staged: Vec<ChangedFile>,
        from: &str,
        workspace: &Workspace,
        stop: &CancellationToken,
    ) -> Result<Vec<ChangedFile>, String> {
        let arguments = [
            "diff-files",
            "-z",
            "--name-only",
            "--no-renames",
            "--relative",
            "--ignore-submodules=all",
        ];
        let list = async |arguments: &[&str]| {
            let list = self
                .git(arguments, Stdin::Null, MAX_LIST_BYTES, stop)
                .await
                .map_err(|why| cannot_compare(&why))?;
            let names = list
                .split(|byte| *byte == 0)
                .filter(|name| !name.is_empty());
            Ok::<Vec<PathBuf>, String>(names.map(file).collect())
        };
        let mut unstaged = list(&arguments).await?;
        let untracked = ["ls-files", "-z", "--others", "--exclude-standard"];
        unstaged.extend(list(&untracked).await?);
        let mut by_path: BTreeMap<PathBuf, ChangedFile> = staged
            .into_iter()
            .map(|change| (change.path.clone(), change))
            .collect();
        let unknown: Vec<&PathBuf> = unstaged
            .iter()
            .filter(|path| !by_path.contains_key(*path))
            // git answers in lines.
            .filter(|path| !path.as_os_str().as_bytes().contains(&b'\n'))
            .collect();
        if by_path.len() + unknown.len() > 10 * MAX_FILES {
            return Err(too_many(&words::count(unknown.len(), "file")));
        }
        let at_base = self.objects_at(from, &unknown, stop).await?;
        for path in unstaged {
            let after = match workspace.size(&path) {
                Err(FileReadError::Absent) => None,
                _ => Some(Version::OnDisk(path.clone())),
            };
            if let Some(known) = by_path.get_mut(&path) {
                known.after = after;
                continue;
            }
            let before = at_base.get(&path).cloned().map(Version::Object);
            let change = ChangedFile {
                path: path.clone(),
                old_path: None,
                before,
                after,
                not_regular: None,
            };
            by_path.insert(path, change);
        }
        let is_change = |change: &ChangedFile| change.before.is_some() || change.after.is_some();
        Ok(by_path.into_values().filter(is_change).collect())
    }

    /// The objects that these files are in a commit or tree; others are left out.
    async fn objects_at(
        &self,
        tree: &str,
        paths: &[&PathBuf],
        stop: &CancellationToken,
    ) -> Result<BTreeMap<PathBuf, String>, String> {
        let mut input = Vec::new();
        for path in paths {
            input.extend_from_slice(tree.as_bytes());
            input.extend_from_slice(b":./");
            input.extend_from_slice(path.as_os_str().as_bytes());
            input.push(0);
        }
        let arguments = ["cat-file", "--batch-check", "-z"];
        let list = self
            .git(&arguments, Stdin::Bytes(input), MAX_LIST_BYTES, stop)
            .await?;
        let list = String::from_utf8_lossy(&list).into_owned();
        let object = |(line, path): (&str, &&PathBuf)| {
            let (name, kind) = line.split_once(' ')?;
            kind.starts_with("blob ")
                .then(|| ((*path).clone(), name.to_owned()))
        };
        Ok(list.lines().zip(paths).filter_map(object).collect())
    }

    /// The commit messages, newest first. Empty if they cannot be read; the review goes on without
    /// them.
    async fn messages(
        &self,
        from: &str,
        to: &str,
        redactor: &Redactor,
        stop: &CancellationToken,
    ) -> Vec<String> {
        let (range, max_count) = (
            format!("{from}..{to}"),
            format!("--max-count={MAX_COMMITS}"),
        );
        let arguments = [
            "rev-list",
            "--no-commit-header",
            "--format=%h %B%x00",
            &max_count,
            &range,
        ];
        let Ok(log) = self
            .git(&arguments, Stdin::Null, MAX_LIST_BYTES, stop)
            .await
        else {
            return Vec::new();
        };
        let log = String::from_utf8_lossy(&log).into_owned();
        let messages = log
            .split('\0')
            .map(str::trim)
            .filter(|message| !message.is_empty());
        let tidy = |message: &str| words::short(&redactor.redact(message), MAX_MESSAGE_BYTES);
        messages.map(tidy).collect()
    }

    /// Resolves a name to a full commit hash.
    async fn commit(
        &self,
        argument: &str,
        name: &str,
        stop: &CancellationToken,
    ) -> Result<String, String> {
        let shown = words::short(name, 100);
        if name.starts_with('-')
            || name.chars().any(|c| c.is_control() || c.is_whitespace())
            || name.contains("..")
        {
            return Err(format!(
                "{argument}: `{shown}` names no commit; give a branch, a tag or a commit, such as `main` or `HEAD~3`"
            ));
        }
        let wanted = format!("{name}^{{commit}}");
        let found = self
            .git(
                &[
                    "rev-parse",
                    "--verify",
                    "--quiet",
                    "--end-of-options",
                    &wanted,
                ],
                Stdin::Null,
                1 << 16,
                stop,
            )
            .await;
        let text = match found {
            Ok(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            Err(why) if why.contains("not a git repository") => {
                return Err(format!(
                    "a review of changes needs a git repository, and `{}` is in none; give `files` instead",
                    self.root.display()
                ));
            }
            Err(why) if why.is_empty() => {
                return Err(format!(
                    "{argument}: there is no commit `{shown}` in this repository; give a branch, a tag or a commit"
                ));
            }
            Err(why) => return Err(format!("{argument}: git cannot find `{shown}`: {why}")),
        };
        // Only a hash may go into the next command line.
        if text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            Ok(text)
        } else {
            Err(format!(
                "{argument}: git says `{}` is `{shown}`, which is not a commit",
                words::plain(&text)
            ))
        }
    }

    /// The changes between two trees, or a tree and the index, as `command` lists them.
    async fn changes(
        &self,
        command: &[&str],
        trees: &[&str],
        stop: &CancellationToken,
    ) -> Result<Vec<ChangedFile>, String> {
        let diff = async |renames: &str| {
            let options = [
                "-z",
                "--raw",
                "--no-abbrev",
                renames,
                "--relative",
                "--no-ext-diff",
                "--no-textconv",
            ];
            self.git(
                &[command, &options, trees].concat(),
                Stdin::Null,
                MAX_LIST_BYTES,
                stop,
            )
            .await
        };
        let list = match diff("--find-renames").await {
            // Rename detection compares contents, which a partial clone may not have.
            Err(why) if why != TOO_LONG => diff("--no-renames").await,
            list => list,
        };
        let list = list.map_err(|why| cannot_compare(&why))?;
        let mut fields = list
            .split(|byte| *byte == 0)
            .filter(|field| !field.is_empty());
        let mut changes = Vec::new();
        while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
            let meta = String::from_utf8_lossy(meta);
            // A renamed file has two names, the old one first.
            let renamed = meta
                .rsplit(' ')
                .next()
                .is_some_and(|kind| kind.starts_with('R'));
            match renamed.then(|| fields.next()).flatten() {
                Some(now) => {
                    changes.extend(ChangedFile::read(&meta, now).map(|c| ChangedFile {
                        old_path: Some(file(path)),
                        ..c
                    }));
                }
                None => changes.extend(ChangedFile::read(&meta, path)),
            }
        }
        Ok(changes)
    }

    /// Reads the objects that are not too large, by hash.
    async fn contents(
        &self,
        changes: &[ChangedFile],
        stop: &CancellationToken,
    ) -> Result<BTreeMap<Version, Content>, String> {
        // Deleted files come last, so that they do not use up the limit.
        let (there, deleted): (Vec<&ChangedFile>, Vec<&ChangedFile>) =
            changes.iter().partition(|c| c.after.is_some());
        let objects = there
            .into_iter()
            .chain(deleted)
            .flat_map(|c| [&c.before, &c.after])
            .flatten()
            .filter_map(|version| match version {
                Version::Object(name) => Some(name),
                Version::OnDisk(_) => None,
            });
        let mut known = std::collections::BTreeSet::new();
        let wanted: Vec<&String> = objects.filter(|object| known.insert(*object)).collect();
        let stdin = |names: Vec<&str>| {
            Stdin::Bytes(
                names
                    .iter()
                    .map(|name| format!("{name}\n"))
                    .collect::<String>()
                    .into_bytes(),
            )
        };
        let sizes = self
            .git(
                &["cat-file", "--batch-check"],
                stdin(wanted.iter().map(|s| s.as_str()).collect()),
                MAX_LIST_BYTES,
                stop,
            )
            .await?;
        let (mut known, mut small, mut total) = (BTreeMap::new(), Vec::new(), 0);
        for line in String::from_utf8_lossy(&sizes).lines() {
            let mut words = line.split(' ');
            let (name, kind, size) = (words.next().unwrap_or_default(), words.next(), words.next());
            let size: Option<u64> = size
                .and_then(|size| size.parse().ok())
                .filter(|_| kind == Some("blob"));
            match size {
                None => drop(known.insert(Version::Object(name.to_owned()), Content::Absent)),
                Some(size) if size > MAX_FILE_BYTES || total + size > MAX_CONTENT_BYTES => {
                    known.insert(Version::Object(name.to_owned()), Content::TooLarge(size));
                }
                Some(size) => {
                    total += size;
                    small.push(name.to_owned());
                }
            }
        }
        if small.is_empty() {
            return Ok(known);
        }
        let most = usize::try_from(total).unwrap_or(usize::MAX) + small.len() * 128;
        let all = self
            .git(
                &["cat-file", "--batch"],
                stdin(small.iter().map(String::as_str).collect()),
                most,
                stop,
            )
            .await?;
        let mut rest = all.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let head = String::from_utf8_lossy(&rest[..end]).into_owned();
            let mut words = head.split(' ');
            let name = words.next().unwrap_or_default().to_owned();
            let size = words.nth(1).and_then(|size| size.parse::<usize>().ok());
            let Some(bytes) = size.and_then(|size| rest.get(end + 1..end + 1 + size)) else {
                return Err(String::from("git ended in the middle of a file; try again"));
            };
            known.insert(Version::Object(name), Content::Bytes(bytes.to_vec()));
            rest = rest.get(end + 2 + bytes.len()..).unwrap_or_default();
        }
        Ok(known)
    }

    /// Runs git and returns its whole output. The error is git's error message.
    async fn git(
        &self,
        arguments: &[&str],
        stdin: Stdin,
        max_bytes: usize,
        stop: &CancellationToken,
    ) -> Result<Vec<u8>, String> {
        let mut argv: Vec<OsString> = vec![self.program.clone().into()];
        for setting in [
            "core.fsmonitor=false",
            "core.hooksPath=/dev/null",
            "core.pager=cat",
            "core.sshCommand=false",
            "diff.external=",
        ] {
            argv.extend(["-c".into(), setting.into()]);
        }
        argv.extend(arguments.iter().map(OsString::from));
        let mut spec = CommandSpec::new(argv, &self.root);
        spec.env = self.env.clone();
        spec.stdin = stdin;
        spec.limit = GIT_TIMEOUT;
        spec.capture = CaptureLimits {
            head: max_bytes,
            tail: 0,
        };
        spec.guard = self.guard.clone();
        let finished = self.launcher.run(spec, stop).await;
        let stderr =
            words::cut_end(words::plain(finished.stderr.text().trim()).trim(), 300).into_owned();
        match finished.end {
            End::Exited(0) if finished.stdout.is_cut() => Err(TOO_LONG.into()),
            End::Exited(0) => Ok(finished.stdout.bytes()),
            End::Exited(_) => Err(stderr),
            End::Signalled(signal) => Err(format!("git was ended by signal {signal}")),
            End::TimedOut => Err(format!("git gave no answer in {} s", GIT_TIMEOUT.as_secs())),
            End::Cancelled => Err(String::from("the call was cancelled")),
            End::CouldNotStart(error) => Err(error.to_string()),
        }
    }
}

const TOO_LONG: &str = "its answer is too long";

fn too_many(found: &str) -> String {
    format!(
        "the change has {found}, and {MAX_FILES} is the most for one review; choose a nearer `base`, have git ignore what is not source, or give `files`"
    )
}

fn cannot_compare(why: &str) -> String {
    match why {
        TOO_LONG => too_many("more files than git can list here"),
        _ => format!("git cannot compare the two: {why}"),
    }
}

/// The content of one side of a change.
enum Content {
    Bytes(Vec<u8>),
    TooLarge(u64),
    Absent,
    /// Why it cannot be read.
    Unreadable(String),
}

fn is_same(change: &ChangedFile, contents: &BTreeMap<Version, Content>) -> bool {
    let bytes = |version: &Option<Version>| match contents.get(version.as_ref()?) {
        Some(Content::Bytes(bytes)) => Some(bytes),
        _ => None,
    };
    matches!(change.after, Some(Version::OnDisk(_)))
        && change.old_path.is_none()
        && bytes(&change.before).is_some_and(|before| Some(before) == bytes(&change.after))
}

/// Adds the contents of the files on disk. Links are not followed.
fn read_from_disk(
    changes: &[ChangedFile],
    workspace: &Workspace,
    contents: &mut BTreeMap<Version, Content>,
) {
    let mut total = 0;
    for version in changes.iter().filter_map(|change| change.after.as_ref()) {
        let Version::OnDisk(path) = version else {
            continue;
        };
        let content = match workspace.size(path) {
            Ok(size) if size > MAX_FILE_BYTES || total + size > MAX_CONTENT_BYTES => {
                Content::TooLarge(size)
            }
            Ok(size) => {
                total += size;
                match workspace.peek(path, MAX_FILE_BYTES) {
                    Ok(bytes) => Content::Bytes(bytes),
                    Err(error) => Content::Unreadable(error.to_string()),
                }
            }
            Err(error) => Content::Unreadable(error.to_string()),
        };
        contents.insert(version.clone(), content);
    }
}

impl ChangedFile {
    /// Parses `:100644 100644 <before> <after> M` and the path.
    fn read(meta: &str, path: &[u8]) -> Option<Self> {
        let mut words = meta.strip_prefix(':')?.split(' ');
        let (old_mode, new_mode) = (words.next()?, words.next()?);
        let (before, after) = (words.next()?, words.next()?);
        let object = |name: &str| {
            name.bytes()
                .any(|b| b != b'0')
                .then(|| Version::Object(name.to_owned()))
        };
        let not_regular = [old_mode, new_mode].iter().find_map(|mode| match *mode {
            "120000" => Some("is a link; it is not followed"),
            "160000" => Some("is a submodule; review it by itself"),
            _ => None,
        });
        Some(Self {
            path: file(path),
            old_path: None,
            before: object(before),
            after: object(after),
            not_regular,
        })
    }
}

fn file(name: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(name)).to_owned()
}

/// The sides of a change that can be shown.
enum ChangeSides<'a> {
    After {
        before: Option<&'a [u8]>,
        after: &'a [u8],
    },
    Deleted(&'a [u8]),
}

/// Both sides of a change. The error is phrased to follow the file's name.
fn sides<'a>(
    change: &ChangedFile,
    contents: &'a BTreeMap<Version, Content>,
) -> Result<ChangeSides<'a>, String> {
    if let Some(not_regular) = change.not_regular {
        return Err(not_regular.into());
    }
    if change.path.to_str().is_none() {
        return Err(String::from("has a name that is not UTF-8"));
    }
    let bytes = |version: &Version| match contents.get(version) {
        Some(Content::Unreadable(why)) => Err(why.clone()),
        Some(Content::Bytes(bytes)) => Ok(bytes.as_slice()),
        Some(Content::TooLarge(size)) => Err(format!(
            "has {size} bytes, and {MAX_FILE_BYTES} is the most"
        )),
        Some(Content::Absent) | None => Err(String::from(
            "is not in this clone of the repository; fetch it first",
        )),
    };
    let before = change.before.as_ref().map(bytes).transpose();
    match (&change.after, before) {
        (Some(after), before) => Ok(ChangeSides::After {
            before: before?,
            after: bytes(after)?,
        }),
        (None, Ok(Some(before))) => Ok(ChangeSides::Deleted(before)),
        // The old content is too large or missing, but the deletion itself can be reported.
        (None, _) => Err(String::from("was deleted")),
    }
}
