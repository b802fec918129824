//! Commits the files of a call as the user would: with the user's own hooks, signing and identity.
//! A temporary index keeps everything else out of the commit, also what is staged.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use supervisor_process::{CommandSpec, End, Launcher, Stdin};
use supervisor_text::words;

/// Longer subjects are cut, and the message has the whole sentence below.
const MAX_SUBJECT_LEN: usize = 72;
/// Maximum bytes of what git or a hook printed.
const MAX_OUTPUT_BYTES: usize = 400;
/// Files and directories that exist while git waits for the user to finish something.
const UNFINISHED: &[(&str, &str)] = &[
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("BISECT_LOG", "a bisection"),
];

/// Why nothing was committed. The files stay as they are.
#[derive(Debug, Error)]
pub enum CommitError {
    #[error("this is not a git repository, or it has no working tree")]
    NoRepository,
    #[error("{0} is in progress here; finish it first")]
    Unfinished(&'static str),
    #[error("{0} had uncommitted changes of yours before")]
    OwnChanges(String),
    #[error("git ignores the changed files")]
    NothingToCommit,
    #[error("`git {what}` failed: {output}")]
    Git { what: &'static str, output: String },
    #[error("there is no temporary directory: {0}")]
    Temporary(#[from] std::io::Error),
}

/// A commit that was made.
#[derive(Debug, Clone)]
pub struct Commit {
    pub id: String,
    /// What the user has to do about the index, if it could not follow the commit.
    pub note: String,
}

/// The repository that a project is in.
#[derive(Debug)]
pub struct Repository<'a> {
    launcher: &'a Launcher,
    root: &'a Path,
    stop: &'a CancellationToken,
    /// The project's place in the working tree; empty or with `/` at the end.
    prefix: String,
}

impl<'a> Repository<'a> {
    /// The repository around `root`, if nothing is in progress in it.
    pub async fn open(
        launcher: &'a Launcher,
        root: &'a Path,
        stop: &'a CancellationToken,
    ) -> Result<Self, CommitError> {
        let mut repository = Self {
            launcher,
            root,
            stop,
            prefix: String::new(),
        };
        let prefix = repository.git("rev-parse", &["--show-prefix"]).await;
        let prefix = prefix.map_err(|_| CommitError::NoRepository)?;
        prefix
            .strip_suffix('\n')
            .unwrap_or(&prefix)
            .clone_into(&mut repository.prefix);
        for (name, what) in UNFINISHED {
            let path = repository.git("rev-parse", &["--git-path", name]).await?;
            if root.join(path.trim_end_matches('\n')).exists() {
                return Err(CommitError::Unfinished(what));
            }
        }
        Ok(repository)
    }

    /// The files of the project that differ from the last commit, staged, changed or untracked.
    pub async fn uncommitted(&self) -> Result<BTreeSet<PathBuf>, CommitError> {
        let words = [
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--",
            ".",
        ];
        let status = self.git("status", &words).await?;
        let paths = status.split('\0').filter_map(|entry| entry.get(3..));
        Ok(paths
            .filter_map(|path| path.strip_prefix(&self.prefix))
            .map(PathBuf::from)
            .collect())
    }

    /// Whether a commit is part of the current history.
    pub async fn has(&self, commit: &str) -> bool {
        let words = ["--is-ancestor", commit, "HEAD"];
        self.git("merge-base", &words).await.is_ok()
    }

    /// The first line of a commit's message.
    pub async fn subject(&self, commit: &str) -> String {
        let subject = self.git("log", &["-1", "--format=%s", commit, "--"]).await;
        subject.unwrap_or_default().trim().to_owned()
    }

    /// The files of the project that a commit changed.
    pub async fn files_of(&self, commit: &str) -> BTreeSet<PathBuf> {
        let words = [
            "-r",
            "-z",
            "--root",
            "--no-commit-id",
            "--name-only",
            commit,
        ];
        let names = self.git("diff-tree", &words).await.unwrap_or_default();
        let names = names.split('\0').filter(|name| !name.is_empty());
        names
            .filter_map(|name| name.strip_prefix(&self.prefix))
            .map(PathBuf::from)
            .collect()
    }

    /// Commits these files as they are now. `own` are those that had
    /// changes before the call: they cannot be told from the call's.
    pub async fn commit(
        &self,
        files: &[PathBuf],
        own: &BTreeSet<PathBuf>,
        message: &str,
    ) -> Result<Commit, CommitError> {
        let mixed: Vec<String> = files
            .iter()
            .filter(|file| own.contains(*file))
            .map(|file| format!("`{}`", words::plain(&file.to_string_lossy())))
            .collect();
        if !mixed.is_empty() {
            return Err(CommitError::OwnChanges(words::series(&mixed, 3)));
        }
        let directory = tempfile::tempdir()?;
        let index = directory.path().join("index");
        let has_history = self
            .git("rev-parse", &["-q", "--verify", "HEAD"])
            .await
            .is_ok();
        let start: &[&str] = if has_history { &["HEAD"] } else { &["--empty"] };
        self.with_index(&index, "read-tree", start, &[]).await?;
        let tracked = self.not_ignored(&index, files).await?;
        if tracked.is_empty() {
            return Err(CommitError::NothingToCommit);
        }
        self.with_index(&index, "add", &["--all", "--"], &tracked)
            .await?;
        self.with_index(&index, "commit", &["--quiet", "--message", message], &[])
            .await?;
        // The commit is there now, so what follows is neither cancelled nor makes it fail.
        let finishing = Repository {
            stop: &CancellationToken::new(),
            prefix: self.prefix.clone(),
            ..*self
        };
        let id = finishing.git("rev-parse", &["HEAD"]).await?;
        // These files were as in the last commit, so only they follow it.
        let reset = finishing.run(None, "reset", &["--quiet", "--"], &tracked);
        let note = match reset.await {
            Ok(_) => String::new(),
            Err(why) => {
                let names = tracked.iter().map(|name| name.to_string_lossy());
                let names = shell_words::join(names);
                format!("it is not in your index yet: {why}; run `git reset -- {names}`")
            }
        };
        Ok(Commit {
            id: id.trim().to_owned(),
            note,
        })
    }

    async fn not_ignored(
        &self,
        index: &Path,
        files: &[PathBuf],
    ) -> Result<Vec<OsString>, CommitError> {
        let mut tracked = Vec::new();
        for file in files {
            let name = [file.as_os_str().to_owned()];
            let ignored = self.with_index(index, "check-ignore", &["--quiet", "--"], &name);
            if ignored.await.is_err() {
                tracked.push(file.as_os_str().to_owned());
            }
        }
        Ok(tracked)
    }

    async fn git(&self, what: &'static str, words: &[&str]) -> Result<String, CommitError> {
        self.run(None, what, words, &[]).await
    }

    async fn with_index(
        &self,
        index: &Path,
        what: &'static str,
        words: &[&str],
        files: &[OsString],
    ) -> Result<String, CommitError> {
        self.run(Some(index), what, words, files).await
    }

    async fn run(
        &self,
        index: Option<&Path>,
        what: &'static str,
        words: &[&str],
        files: &[OsString],
    ) -> Result<String, CommitError> {
        let git = ["git", "--no-pager", what];
        let argv = git.iter().chain(words);
        let argv = argv.map(OsString::from).chain(files.iter().cloned());
        let mut spec = CommandSpec::new(argv, self.root);
        // The user's own environment: hooks, signing keys and identity are configured there.
        spec.env = std::env::vars_os()
            .filter(|(name, _)| !name.to_string_lossy().starts_with("GIT_INDEX_FILE"))
            .collect();
        spec.env.insert("GIT_LITERAL_PATHSPECS".into(), "1".into());
        spec.env.insert("GIT_TERMINAL_PROMPT".into(), "0".into());
        if let Some(index) = index {
            spec.env.insert("GIT_INDEX_FILE".into(), index.into());
        }
        spec.stdin = Stdin::Null;
        let finished = self.launcher.run(spec, self.stop).await;
        match finished.end {
            End::Exited(0) => Ok(finished.stdout.text().into_owned()),
            _ => {
                let said = format!("{}\n{}", finished.stderr.text(), finished.stdout.text());
                let said = words::one_line(&words::plain(said.trim()));
                Err(CommitError::Git {
                    what,
                    output: match said.as_str() {
                        "" => String::from("it said nothing"),
                        said => words::cut_end(said, MAX_OUTPUT_BYTES).into_owned(),
                    },
                })
            }
        }
    }
}

/// A commit message whose subject is this sentence.
pub(crate) fn message_of(sentence: &str) -> String {
    let sentence = words::one_line(sentence.trim());
    let subject = words::cut_end(&sentence, MAX_SUBJECT_LEN);
    match subject == sentence {
        true => sentence,
        false => format!("{subject}\n\n{sentence}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sentences_are_kept_below_the_subject() {
        assert_eq!(message_of(" adds two\nnumbers "), "adds two numbers");
        let long = "a sentence ".repeat(12);
        let message = message_of(&long);
        let (subject, rest) = message.split_once("\n\n").expect("two parts");
        assert!(
            subject.len() <= MAX_SUBJECT_LEN && subject.ends_with('…'),
            "{subject}"
        );
        assert_eq!(rest, long.trim());
    }
}
