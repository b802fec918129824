//! A range of commits, read through git's plumbing: objects and nothing else. No filter, hook, pager, textconv, external
//! diff or fetch of the project's configuration can run, because nothing asked of git here has any of them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::material::{FILE, FILES, ReviewMaterial};
use supervisor_engine::skill::Preparation;
use supervisor_process::environment;
use supervisor_process::environment::Environment;
use supervisor_process::{CaptureLimits, End, Guard, Launcher, Spec, Stdin, which};
use supervisor_text::redact::{Redactor, is_secret_file};
use supervisor_text::words;

/// Bytes of all contents together, both sides of every change.
const CONTENTS: u64 = 8 << 20;
/// Bytes of the list of changes.
const LIST: usize = 4 << 20;
const LIMIT: Duration = Duration::from_secs(60);
/// Commits whose messages are shown, the newest first, and bytes of each.
const COMMITS: usize = 30;
const COMMIT_MESSAGE: usize = 1_200;

/// git, and where it is asked.
pub(super) struct Git {
    program: PathBuf,
    root: PathBuf,
    env: Environment,
    launcher: Launcher,
    guard: Option<Guard>,
}

/// One file that differs.
struct ChangedFile {
    path: PathBuf,
    /// What it was called before, if otherwise.
    was: Option<PathBuf>,
    before: Option<String>,
    after: Option<String>,
    /// Something else than a file, before or after.
    odd: Option<&'static str>,
}

impl Git {
    pub(super) fn find(call: &mut Preparation<'_>) -> Result<Self, String> {
        let root = call.root().to_owned();
        let mut env = environment::agent(call.surroundings.env.vars().clone(), &[]);
        let path = env.get(OsStr::new("PATH")).cloned();
        let program = which("git", path.as_deref(), Some(&root))
            .map_err(|e| format!("`base` needs git: {e}; or give `files` instead"))?;
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            // What is not in the repository is not fetched, by whatever program its configuration names.
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
            launcher: call.surroundings.launcher.clone(),
            guard,
        })
    }

    /// What `head` has changed since it left `base`.
    pub(super) async fn read(
        &self,
        base: &str,
        head: &str,
        redactor: &Redactor,
        stop: &CancellationToken,
    ) -> Result<ReviewMaterial, String> {
        let (asked, to) = (
            self.commit("base", base, stop).await?,
            self.commit("head", head, stop).await?,
        );
        // Commits that only `base` has are not what `head` changed. Without a common ancestor, all of it is.
        let from = match self
            .ask(&["merge-base", &asked, &to], Stdin::Null, 1 << 16, stop)
            .await
        {
            Ok(found) => String::from_utf8_lossy(&found).trim().to_owned(),
            Err(_) => asked,
        };
        let changes = self.changes(&from, &to, stop).await?;
        let mut material = ReviewMaterial::default();
        material.range = json!({"base": base, "head": head, "from": from, "to": to});
        material.commits = self.messages(&from, &to, redactor, stop).await;
        let contents = self.contents(&changes, stop).await?;
        for change in &changes {
            if is_secret_file(&change.path) || change.was.as_deref().is_some_and(is_secret_file) {
                material.leave_out(
                    &change.path,
                    "holds secrets by its name, so it is shown only if `files` names it",
                );
                continue;
            }
            let added = shown(change, &contents).and_then(|sides| match sides {
                Sides::After { before, after } => {
                    material.add_change(&change.path, before, after, redactor)
                }
                Sides::Deleted(before) => {
                    let added = material.add_deleted(&change.path, before, redactor);
                    added.map_err(|why| format!("was deleted, and {why}"))
                }
            });
            if let Err(why) = added {
                material.leave_out(&change.path, why);
            }
            if let Some(old) = &change.was {
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
            let told: Vec<String> = material.covered.iter().take(10).map(why).collect();
            let told = if told.is_empty() {
                String::from("nothing changed there")
            } else {
                told.join("; ")
            };
            return Err(format!(
                "there is nothing to review in `{}` from `{}` to `{}`: {told}; choose another `base`, or give `files`",
                self.root.display(),
                words::plain(base),
                words::plain(head),
            ));
        }
        Ok(material)
    }

    /// What the commits of the range say, the newest first. A range whose messages cannot be read is reviewed without.
    async fn messages(
        &self,
        from: &str,
        to: &str,
        redactor: &Redactor,
        stop: &CancellationToken,
    ) -> Vec<String> {
        let (range, most) = (format!("{from}..{to}"), format!("--max-count={COMMITS}"));
        let arguments = [
            "rev-list",
            "--no-commit-header",
            "--format=%h %B%x00",
            &most,
            &range,
        ];
        let Ok(told) = self.ask(&arguments, Stdin::Null, LIST, stop).await else {
            return Vec::new();
        };
        let told = String::from_utf8_lossy(&told).into_owned();
        let messages = told
            .split('\0')
            .map(str::trim)
            .filter(|message| !message.is_empty());
        let tidy = |message: &str| {
            words::cut_end(&words::plain(&redactor.redact(message)), COMMIT_MESSAGE).into_owned()
        };
        messages.map(tidy).collect()
    }

    /// The full name of a commit.
    async fn commit(
        &self,
        argument: &str,
        name: &str,
        stop: &CancellationToken,
    ) -> Result<String, String> {
        let shown = words::cut_end(&words::plain(name), 100).into_owned();
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
            .ask(
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
        // Nothing else goes into the next command line.
        if text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            Ok(text)
        } else {
            Err(format!(
                "{argument}: git says `{}` is `{shown}`, which is no commit's name",
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
                "the range changes {found}, and {FILES} is the most for one review; choose a nearer `base`, or give `files`"
            )
        };
        let ask = async |renames: &str| {
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
            self.ask(&arguments, Stdin::Null, LIST, stop).await
        };
        let list = match ask("--find-renames").await {
            // Likeness is measured on contents, which a partial clone may not have.
            Err(why) if why != TOO_LONG => ask("--no-renames").await,
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
            // Of a renamed file both names follow, the old one first.
            let renamed = meta
                .rsplit(' ')
                .next()
                .is_some_and(|kind| kind.starts_with('R'));
            match renamed.then(|| fields.next()).flatten() {
                Some(now) => {
                    changes.extend(ChangedFile::read(&meta, now).map(|c| ChangedFile {
                        was: Some(file(path)),
                        ..c
                    }));
                }
                None => changes.extend(ChangedFile::read(&meta, path)),
            }
        }
        if changes.len() > FILES {
            return Err(too_many(words::count(changes.len(), "file")));
        }
        Ok(changes)
    }

    /// The contents that are not too large, by object.
    async fn contents(
        &self,
        changes: &[ChangedFile],
        stop: &CancellationToken,
    ) -> Result<BTreeMap<String, Content>, String> {
        // What is deleted comes last: it must not take the room of what is there.
        let (there, deleted): (Vec<&ChangedFile>, Vec<&ChangedFile>) =
            changes.iter().partition(|c| c.after.is_some());
        let objects = there
            .into_iter()
            .chain(deleted)
            .flat_map(|c| [&c.before, &c.after])
            .flatten();
        let mut known = std::collections::BTreeSet::new();
        let wanted: Vec<&String> = objects.filter(|object| known.insert(*object)).collect();
        let ask = |names: Vec<&str>| {
            Stdin::Bytes(
                names
                    .iter()
                    .map(|name| format!("{name}\n"))
                    .collect::<String>()
                    .into_bytes(),
            )
        };
        let sizes = self
            .ask(
                &["cat-file", "--batch-check"],
                ask(wanted.iter().map(|s| s.as_str()).collect()),
                LIST,
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
                Some(size) if size > FILE || total + size > CONTENTS => {
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
            .ask(
                &["cat-file", "--batch"],
                ask(small.iter().map(String::as_str).collect()),
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

    /// What git prints, all of it. The error is what it says against it.
    async fn ask(
        &self,
        arguments: &[&str],
        stdin: Stdin,
        most: usize,
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
        let mut spec = Spec::new(argv, &self.root);
        spec.env = self.env.clone();
        spec.stdin = stdin;
        spec.limit = LIMIT;
        spec.capture = CaptureLimits {
            head: most,
            tail: 0,
        };
        spec.guard = self.guard.clone();
        let finished = self.launcher.run(spec, stop).await;
        let said =
            words::cut_end(words::plain(finished.stderr.text().trim()).trim(), 300).into_owned();
        match finished.end {
            End::Exited(0) if finished.stdout.is_cut() => Err(TOO_LONG.into()),
            End::Exited(0) => Ok(finished.stdout.bytes()),
            End::Exited(_) => Err(said),
            End::Signalled(signal) => Err(format!("git was ended by signal {signal}")),
            End::TimedOut => Err(format!("git gave no answer in {} s", LIMIT.as_secs())),
            End::Cancelled => Err(String::from("the call was cancelled")),
            End::CouldNotStart(error) => Err(error.to_string()),
        }
    }
}

const TOO_LONG: &str = "its answer is too long";

/// What is known of an object.
enum Content {
    Bytes(Vec<u8>),
    TooLarge(u64),
    Absent,
}

impl ChangedFile {
    /// `:100644 100644 <before> <after> M`, and the path.
    fn read(meta: &str, path: &[u8]) -> Option<Self> {
        let mut words = meta.strip_prefix(':')?.split(' ');
        let (was, is) = (words.next()?, words.next()?);
        let (before, after) = (words.next()?, words.next()?);
        let object =
            |name: &str| Some(name.to_owned()).filter(|name| name.bytes().any(|b| b != b'0'));
        let odd = [was, is].iter().find_map(|mode| match *mode {
            "120000" => Some("is a link; it is not followed"),
            "160000" => Some("is a submodule; review it by itself"),
            _ => None,
        });
        Some(Self {
            path: file(path),
            was: None,
            before: object(before),
            after: object(after),
            odd,
        })
    }
}

fn file(name: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(name)).to_owned()
}

/// What there is to show of a change.
enum Sides<'a> {
    After {
        before: Option<&'a [u8]>,
        after: &'a [u8],
    },
    Deleted(&'a [u8]),
}

/// Both sides of a change. The error reads after the file's name.
fn shown<'a>(
    change: &ChangedFile,
    contents: &'a BTreeMap<String, Content>,
) -> Result<Sides<'a>, String> {
    if let Some(odd) = change.odd {
        return Err(odd.into());
    }
    if change.path.to_str().is_none() {
        return Err(String::from("has a name that is not UTF-8"));
    }
    let bytes = |name: &String| match contents.get(name) {
        Some(Content::Bytes(bytes)) => Ok(bytes.as_slice()),
        Some(Content::TooLarge(size)) => Err(format!("has {size} bytes, and {FILE} is the most")),
        Some(Content::Absent) | None => Err(String::from(
            "is not in this clone of the repository; fetch it first",
        )),
    };
    let before = change.before.as_ref().map(bytes).transpose();
    match (&change.after, before) {
        (Some(after), before) => Ok(Sides::After {
            before: before?,
            after: bytes(after)?,
        }),
        (None, Ok(Some(before))) => Ok(Sides::Deleted(before)),
        // What it held is too large or not here; that it is gone can be said in any case.
        (None, _) => Err(String::from("was deleted")),
    }
}
