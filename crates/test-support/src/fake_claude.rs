//! A `claude` that is a shell script, first on a PATH of its own. It tells the truth, or fails in one chosen way.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::agent::{result, run};

const LOGGED_IN: &str = r#"echo '{"loggedIn":true,"authMethod":"claude.ai","apiProvider":"firstParty","email":"person@example.org"}'"#;

/// A directory that holds the program, and a home.
pub struct FakeClaude {
    dir: tempfile::TempDir,
}

impl FakeClaude {
    /// `version` and `status` are what the script does for `--version` and `auth status`.
    pub fn new(version: &str, status: &str) -> Self {
        Self::at_work(version, status, "echo \"unexpected: $*\" >&2; exit 64")
    }

    /// Logged in, and with each prompt it does this in the project, then answers as a run that went well.
    pub fn that_does(work: &str) -> Self {
        let answer = run(&result(|result| {
            result["structured_output"] = json!({"notes": "done"})
        }));
        // The model that was asked is the one that answers.
        let model =
            r#"case "$*" in *haiku*) model=claude-haiku-5 ;; *) model=claude-sonnet-5 ;; esac"#;
        let work = format!(
            "cat > /dev/null\n{work}\n{model}\nsed \"s/claude-x/$model/g\" <<'ANSWER'\n{answer}ANSWER\n"
        );
        Self::at_work("echo '2.1.325 (Claude Code)'", LOGGED_IN, &work)
    }

    fn at_work(version: &str, status: &str, work: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let script = format!(
            "#!/bin/sh\nenv > '{}/env.'$$\npwd > '{}/cwd'\ncase \"$*\" in\n\
             --version)\n{version}\n;;\n'auth status')\n{status}\n;;\n*)\n{work}\n;;\nesac\n",
            dir.path().display(),
            dir.path().display()
        );
        std::fs::write(dir.path().join("script"), script).unwrap();
        // Written by a child: a descriptor of ours that is open for writing could leak into a parallel fork,
        // and the program would be "busy".
        let made = Command::new("sh")
            .args([
                "-c",
                "mkdir bin && cat script > bin/claude && chmod 755 bin/claude",
            ])
            .current_dir(dir.path())
            .status();
        assert!(made.unwrap().success());
        Self { dir }
    }

    /// Version 2.1.197, logged in with an account.
    pub fn logged_in() -> Self {
        Self::new("echo '2.1.197 (Claude Code)'", LOGGED_IN)
    }

    pub fn logged_out() -> Self {
        let status =
            r#"echo '{"loggedIn":false,"authMethod":"none","apiProvider":"firstParty"}'; exit 1"#;
        Self::new("echo '2.1.197 (Claude Code)'", status)
    }

    pub fn program(&self) -> PathBuf {
        self.bin().join("claude")
    }

    pub fn bin(&self) -> PathBuf {
        self.dir.path().join("bin")
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A PATH with this program first, and what a shell script needs.
    pub fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.bin().display())
    }

    /// Everything its runs were given.
    pub fn environments(&self) -> String {
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let entries = std::fs::read_dir(self.dir.path())
            .unwrap()
            .map(|e| e.unwrap().path());
        entries
            .filter(|p| p.to_string_lossy().contains("/env."))
            .map(|p| read(&p))
            .collect()
    }

    pub fn ran_in(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("cwd"))
            .unwrap()
            .trim()
            .to_owned()
    }
}
