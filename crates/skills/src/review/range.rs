//! Reads a range of commits with git's plumbing commands, which only access objects. None of them
//! runs filters, hooks, pagers, textconv, external diffs or fetches from the project's
//! configuration.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::material::{MAX_FILE_BYTES, MAX_FILES, ReviewMaterial};
use supervisor_engine::skill::Preparation;
use supervisor_process::environment;
use supervisor_process::environment::Environment;
use supervisor_process::{CaptureLimits, CommandSpec, End, Launcher, ProjectGuard, Stdin, which};
use supervisor_text::redact::{Redactor, is_secret_file};
use supervisor_text::words;

/// Max bytes of all contents, counting both sides of every change.
const MAX_CONTENT_BYTES: u64 = 8 << 20;
/// Max bytes of the list of changes.
const MAX_LIST_BYTES: usize = 4 << 20;
const GIT_TIMEOUT: Duration = Duration::from_secs(60);
/// Max commit messages shown, and max bytes of each.
const MAX_COMMITS: usize = 30;
const MAX_MESSAGE_BYTES: usize = 1_200;

/// The git program and the environment it runs in.
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
    before: Option<String>,
    after: Option<String>,
    /// Set if either side is not a regular file: says what it is.
    not_regular: Option<&'static str>,
}

impl Git {
    pub(super) fn find(call: &mut Preparation<'_>) -> Result<Self, String> {
        let root = call.root().to_owned();
        let mut env = environment::agent(call.environment.env.vars().clone(), &[]);
        let path = env.get(OsStr::new("PATH")).cloned();
        let program = which("git", path.as_deref(), Some(&root))
            .map_err(|e| format!("`base` needs git: {e}; or give `files` instead"))?;
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

    /// Reads what `head` changed since it diverged from `base`.
    pub(super) async fn read(
        &self,
        base: &str,
        head: &str,
        redactor: &Redactor,
        stop: &CancellationToken,
    ) -> Result<ReviewMaterial, String> {
        let (base_commit, to) = (
            self.commit("base", base, stop).await?,
            self.commit("head", head, stop).await?,
        );
        // Compare with the merge base: commits that only `base` has are not changes of `head`.
        // Without a common ancestor, compare with `base` itself.
        let from = match self
            .git(
                &["merge-base", &base_commit, &to],
                Stdin::Null,
                1 << 16,
                stop,
            )
            .await
        {
            Ok(found) => String::from_utf8_lossy(&found).trim().to_owned(),
            Err(_) => base_commit,
        };
        let changes = self.changes(&from, &to, stop).await?;
        let mut material = ReviewMaterial::default();
        material.range = json!({"base": base, "head": head, "from": from, "to": to});
        material.commits = self.messages(&from, &to, redactor, stop).await;
        let contents = self.contents(&changes, stop).await?;
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
            let reasons = if reasons.is_empty() {
                String::from("nothing changed there")
            } else {
                reasons.join("; ")
            };
            return Err(format!(
                "there is nothing to review in `{}` from `{}` to `{}`: {reasons}; choose another `base`, or give `files`",
                self.root.display(),
                words::plain(base),
                words::plain(head),
            ));
        }
        Ok(material)
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
                    "`base` needs a git repository, and `{}` is in none; give `files` instead",
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

    async fn changes(
        &self,
        from: &str,
        to: &str,
        stop: &CancellationToken,
    ) -> Result<Vec<ChangedFile>, String> {
        let too_many = |found: String| {
            format!(
                "the range changes {found}, and {MAX_FILES} is the most for one review; choose a nearer `base`, or give `files`"
            )
        };
        let diff_tree = async |renames: &str| {
            let arguments = [
                "diff-tree",
                "-r",
                "-z",
                "--raw",
                "--no-abbrev",
                renames,
                "--relative",
                "--no-ext-diff",
                "--no-textconv",
                from,
                to,
            ];
            self.git(&arguments, Stdin::Null, MAX_LIST_BYTES, stop)
                .await
        };
        let list = match diff_tree("--find-renames").await {
            // Rename detection compares contents, which a partial clone may not have.
            Err(why) if why != TOO_LONG => diff_tree("--no-renames").await,
            list => list,
        };
        let list = list.map_err(|why| match why.as_str() {
            TOO_LONG => too_many(String::from("more files than git can list here")),
            _ => format!("git cannot compare the two: {why}"),
        })?;
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
        if changes.len() > MAX_FILES {
            return Err(too_many(words::count(changes.len(), "file")));
        }
        Ok(changes)
    }

    /// Reads the objects that are not too large, by hash.
    async fn contents(
        &self,
        changes: &[ChangedFile],
        stop: &CancellationToken,
    ) -> Result<BTreeMap<String, Content>, String> {
        // Deleted files come last, so that they do not use up the limit.
        let (there, deleted): (Vec<&ChangedFile>, Vec<&ChangedFile>) =
            changes.iter().partition(|c| c.after.is_some());
        let objects = there
            .into_iter()
            .chain(deleted)
            .flat_map(|c| [&c.before, &c.after])
            .flatten();
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
                None => drop(known.insert(name.to_owned(), Content::Absent)),
                Some(size) if size > MAX_FILE_BYTES || total + size > MAX_CONTENT_BYTES => {
                    known.insert(name.to_owned(), Content::TooLarge(size));
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
            known.insert(name, Content::Bytes(bytes.to_vec()));
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

/// The content of a git object.
enum Content {
    Bytes(Vec<u8>),
    TooLarge(u64),
    Absent,
}

impl ChangedFile {
    /// Parses `:100644 100644 <before> <after> M` and the path.
    fn read(meta: &str, path: &[u8]) -> Option<Self> {
        let mut words = meta.strip_prefix(':')?.split(' ');
        let (old_mode, new_mode) = (words.next()?, words.next()?);
        let (before, after) = (words.next()?, words.next()?);
        let object =
            |name: &str| Some(name.to_owned()).filter(|name| name.bytes().any(|b| b != b'0'));
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
    contents: &'a BTreeMap<String, Content>,
) -> Result<ChangeSides<'a>, String> {
    if let Some(not_regular) = change.not_regular {
        return Err(not_regular.into());
    }
    if change.path.to_str().is_none() {
        return Err(String::from("has a name that is not UTF-8"));
    }
    let bytes = |name: &String| match contents.get(name) {
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
