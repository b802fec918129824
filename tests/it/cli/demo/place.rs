//! Somebody's home and temporary directory, both empty, and what a demo leaves in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

pub(super) struct Place {
    home: TempDir,
    tmp: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            tmp: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn tmp(&self) -> &Path {
        self.tmp.path()
    }

    /// The demo of a user who has a toolchain and nothing else.
    pub(super) fn demo(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        command.arg("demo").env_clear().envs(self.variables());
        command
    }

    pub(super) fn variables(&self) -> Vec<(String, PathBuf)> {
        let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let mut variables = vec![
            (String::from("PATH"), var("PATH").unwrap()),
            (String::from("HOME"), self.home().to_owned()),
            (String::from("TMPDIR"), self.tmp().to_owned()),
        ];
        // `rustup` looks for its toolchains in the home directory, which is another one here.
        let rustup = var("RUSTUP_HOME")
            .or_else(|| Some(var("HOME")?.join(".rustup")))
            .filter(|dir| dir.is_dir());
        variables.extend(rustup.map(|dir| (String::from("RUSTUP_HOME"), dir)));
        variables
            .extend(var("RUSTUP_TOOLCHAIN").map(|name| (String::from("RUSTUP_TOOLCHAIN"), name)));
        variables
    }

    /// Every file and every empty directory in both.
    pub(super) fn left(&self) -> BTreeSet<PathBuf> {
        fn walk(dir: &Path, into: &mut BTreeSet<PathBuf>) {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                let is_dir = path.symlink_metadata().unwrap().is_dir();
                if is_dir && fs::read_dir(&path).unwrap().next().is_some() {
                    walk(&path, into);
                } else {
                    into.insert(path);
                }
            }
        }
        let mut left = BTreeSet::new();
        walk(self.home(), &mut left);
        walk(self.tmp(), &mut left);
        left
    }

    /// The path in the line `the log`.
    pub(super) fn log_named_in(&self, screen: &str) -> PathBuf {
        let path = screen
            .lines()
            .find_map(|line| line.trim().strip_prefix("the log "))
            .expect("a line names the log");
        match path.trim().strip_prefix("~/") {
            Some(below) => self.home().join(below),
            None => PathBuf::from(path.trim()),
        }
    }

    /// Processes that run in one of the two directories, or were started to.
    pub(super) fn running(&self) -> Vec<String> {
        let mine = |pid: &Path| {
            let cwd = fs::read_link(pid.join("cwd")).unwrap_or_default();
            let environ = fs::read(pid.join("environ")).unwrap_or_default();
            let tmp = self.tmp().as_os_str().as_encoded_bytes();
            cwd.starts_with(self.tmp()) || environ.windows(tmp.len()).any(|part| part == tmp)
        };
        let all = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let pids = all.filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .parse::<u32>()
                .is_ok()
        });
        pids.filter(|pid| mine(pid))
            .map(|pid| fs::read_to_string(pid.join("comm")).unwrap_or_default())
            .collect()
    }

    /// Models that were asked so far, in order.
    pub(super) fn asked(&self) -> Vec<String> {
        let stages = fs::read_dir(self.tmp())
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let texts =
            stages.filter_map(|stage| fs::read_to_string(stage.join("answers.jsonl.asked")).ok());
        let text: String = texts.collect();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines
            .map(|line| line["model"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Times and the name of the session are each run's own.
pub(super) fn masked(screen: &str) -> String {
    let time = regex::Regex::new(r"\d+\.\d s\b").unwrap();
    let session = regex::Regex::new("demo-[0-9a-f]{8}").unwrap();
    session
        .replace_all(&time.replace_all(screen, "N.N s"), "demo-NAME")
        .into_owned()
}

/// The output without its end, whose paths depend on the place.
pub(super) fn masked_story(screen: &str) -> Vec<String> {
    let story = screen.lines().take_while(|line| !line.starts_with("DONE"));
    story.map(|line| masked(line.trim_end())).collect()
}
