//! The demo's temporary directory: a small project, recorded answers, and its own settings and
//! state. None of the user's settings are read, and everything but the log is removed at the end.

use crate::built_in;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

use supervisor_engine::session::SessionId;
use supervisor_models::Env;
use supervisor_models::availability::ProbeConfig;
use supervisor_process as process;
use supervisor_process::{Launcher, ScratchDir};
use supervisor_settings::Sources;
use supervisor_skills::App;
use supervisor_workspace::state::{StateDir, StateError};

const PROJECT: &[(&str, &str)] = &[
    // Stored under other names: cargo would take a directory with a manifest for a package.
    ("Cargo.toml", include_str!("project/manifest.toml")),
    ("Cargo.lock", include_str!("project/lock.toml")),
    ("src/lib.rs", include_str!("project/lib.rs")),
    ("tests/roman.rs", include_str!("project/roman.rs")),
];
/// The models' answers, in order.
pub(super) const SCRIPT: &str = include_str!("script.jsonl");
const SETTINGS: &str = include_str!("settings.toml");

#[derive(Debug, thiserror::Error)]
pub(super) enum DemoFixtureError {
    #[error(
        "the demo runs real tests with `cargo`, which is not on the PATH; install Rust from https://rustup.rs, or add the \
         directory of `cargo` to the PATH"
    )]
    NoCargo,
    #[error("no temporary project can be made in `{}`: {source}; set $TMPDIR to a directory that can be written", .place.display())]
    CannotCreate { place: PathBuf, source: io::Error },
    #[error(
        "no program can be run in `{}`, which is mounted with `noexec`, and the demo's tests are programs; set $TMPDIR to \
         another directory", .0.display()
    )]
    NoExec(PathBuf),
    #[error("the log cannot be kept: {0}")]
    Log(io::Error),
}

/// Dropping it removes the directory.
pub(super) struct DemoFixture {
    dir: ScratchDir,
    /// Canonical path, as the engine reports it.
    root: PathBuf,
    session: SessionId,
    launcher: Launcher,
    env: Env,
}

/// Where the log was saved.
#[derive(Debug)]
pub(super) struct SavedLog {
    pub(super) path: PathBuf,
    /// Why it is not in the state directory.
    pub(super) fallback_reason: Option<StateError>,
}

impl DemoFixture {
    pub(super) fn create() -> Result<Self, DemoFixtureError> {
        if process::which("cargo", std::env::var_os("PATH").as_deref(), None).is_err() {
            return Err(DemoFixtureError::NoCargo);
        }
        let place = std::env::temp_dir();
        let failed = |source| DemoFixtureError::CannotCreate {
            place: place.clone(),
            source,
        };
        if is_mounted_noexec(&place) {
            return Err(DemoFixtureError::NoExec(place));
        }
        let dir = ScratchDir::new("demo-").map_err(failed)?;
        let root = dir.path().canonicalize().map_err(failed)?;
        let session = new_session_id().map_err(failed)?;
        let env = environment(std::env::vars_os(), &root);
        let fixture = Self {
            dir,
            root,
            session,
            launcher: Launcher::this_program(),
            env,
        };
        fixture.write_files().map_err(failed)?;
        Ok(fixture)
    }

    fn write_files(&self) -> io::Result<()> {
        for (path, text) in PROJECT {
            let path = self.project().join(path);
            fs::create_dir_all(path.parent().expect("every file has a parent directory"))?;
            fs::write(path, text)?;
        }
        fs::create_dir(self.root.join("tmp"))?;
        fs::write(self.script(), SCRIPT)?;
        let script = self
            .script()
            .display()
            .to_string()
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        fs::write(
            self.root.join("models.toml"),
            SETTINGS.replace("{script}", &script),
        )
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    /// A server that uses only this directory.
    pub(super) fn app(&self) -> App {
        let sources = Sources {
            user_file: Some(self.root.join("models.toml")),
            ..Sources::built_in(built_in::MODELS_TOML)
        };
        let state = StateDir::at(self.state()).expect("a temporary directory has an absolute path");
        App::new(
            sources,
            built_in::PROMPTS,
            ProbeConfig::new(self.env.clone(), self.launcher.clone()),
        )
        .with_state_dir(state)
    }

    /// All prompts sent to a model so far.
    pub(super) fn prompts_for(&self, model: &str) -> Vec<String> {
        let text =
            fs::read_to_string(self.script().with_extension("jsonl.asked")).unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines
            .filter(|line| line["model"] == model)
            .filter_map(|line| Some(line["prompt"].as_str()?.to_owned()))
            .collect()
    }

    pub(super) fn log(&self) -> PathBuf {
        self.state()
            .join("sessions")
            .join(format!("{}.jsonl", self.session))
    }

    /// Saves the log next to the user's own sessions. It is not put among them, because no real
    /// model made it.
    pub(super) fn save_log(&self) -> Result<SavedLog, DemoFixtureError> {
        let name = format!("{}.jsonl", self.session);
        let state_sessions =
            || StateDir::at(StateDir::locate()?.path().join("demo"))?.sub("sessions");
        let fallback_reason = match state_sessions() {
            Ok(sessions) => match self.copy_log(&sessions.join(&name)) {
                Ok(path) => {
                    return Ok(SavedLog {
                        path,
                        fallback_reason: None,
                    });
                }
                Err(source) => StateError::Unusable {
                    path: sessions,
                    source,
                },
            },
            Err(why) => why,
        };
        let dir = tempfile::Builder::new()
            .prefix("supervisor-demo-log-")
            .tempdir()
            .map_err(DemoFixtureError::Log)?;
        let sessions = dir.path().join("sessions");
        let copied = fs::create_dir(&sessions).and_then(|()| self.copy_log(&sessions.join(name)));
        let path = copied.map_err(DemoFixtureError::Log)?;
        let _ = dir.keep();
        Ok(SavedLog {
            path,
            fallback_reason: Some(fallback_reason),
        })
    }

    fn copy_log(&self, to: &Path) -> io::Result<PathBuf> {
        let text = fs::read(self.log())?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to)?
            .write_all(&text)?;
        Ok(to.to_owned())
    }

    /// Waits for every program started here, then removes the directory.
    pub(super) async fn remove(self) -> io::Result<()> {
        self.launcher.wait_for_all().await;
        let mut tries = 0;
        loop {
            match fs::remove_dir_all(self.dir.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                // A call that was not awaited may still be writing its last file.
                Err(_) if tries < 50 => tokio::time::sleep(Duration::from_millis(20)).await,
                done => return done,
            }
            tries += 1;
        }
    }

    fn script(&self) -> PathBuf {
        self.root.join("answers.jsonl")
    }

    fn state(&self) -> PathBuf {
        self.root.join("state")
    }
}

/// `/tmp` is often mounted `noexec` on servers. Without this check the build would succeed and
/// every test fail for no visible reason.
fn is_mounted_noexec(place: &Path) -> bool {
    statvfs(place).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// A name like `demo-1f3a09c2`: short enough for the log's path to fit on one line.
fn new_session_id() -> io::Result<SessionId> {
    let random = getrandom::u32().map_err(io::Error::other)?;
    Ok(format!("demo-{random:08x}")
        .parse()
        .expect("letters, digits and a hyphen are a name"))
}

/// Environment for `cargo test`: the caller's, without variables that would change what is built or
/// where.
fn environment(inherited: impl IntoIterator<Item = (OsString, OsString)>, root: &Path) -> Env {
    let is_kept = |name: &OsStr| {
        let name = name.to_string_lossy();
        let is_cargo = name.starts_with("CARGO") && name != "CARGO_HOME";
        let is_rust = name.starts_with("RUST") && !name.starts_with("RUSTUP_");
        !(is_cargo || is_rust)
    };
    let mut vars: BTreeMap<OsString, OsString> = inherited
        .into_iter()
        .filter(|(name, _)| is_kept(name))
        .collect();
    let cargo_home = vars.get(OsStr::new("CARGO_HOME")).map(PathBuf::from);
    let home = cargo_home.or_else(|| Some(Path::new(vars.get(OsStr::new("HOME"))?).join(".cargo")));
    let usable =
        |dir: &PathBuf| dir.is_dir() && access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    if !home.as_ref().is_some_and(usable) {
        vars.insert("CARGO_HOME".into(), root.join("cargo").into());
    }
    for (name, place) in [
        ("CARGO_TARGET_DIR", "target"),
        ("CARGO_BUILD_BUILD_DIR", "target"),
        ("TMPDIR", "tmp"),
    ] {
        vars.insert(name.into(), root.join(place).into());
    }
    // An empty wrapper also overrides one from the user's cargo configuration.
    for (name, value) in [
        ("CARGO_NET_OFFLINE", "true"),
        ("CARGO_INCREMENTAL", "0"),
        ("RUSTC_WRAPPER", ""),
    ] {
        vars.insert(name.into(), value.into());
    }
    vars.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_cargo_variables_are_dropped() {
        let home = tempfile::tempdir().expect("a directory");
        fs::create_dir(home.path().join(".cargo")).expect("made");
        let home = home.path().display().to_string();
        let given = [
            ("HOME", home.as_str()),
            ("PATH", "/bin"),
            ("CARGO_TARGET_DIR", "/elsewhere"),
            ("CARGO_BUILD_TARGET", "wasm32-unknown-unknown"),
            ("RUSTFLAGS", "-Dwarnings"),
            ("RUST_TEST_THREADS", "1"),
            ("RUSTUP_TOOLCHAIN", "stable"),
        ];
        let env = environment(
            given.map(|(k, v)| (k.into(), v.into())),
            Path::new("/stage"),
        );
        let names: Vec<String> = env
            .vars()
            .keys()
            .map(|k| k.to_string_lossy().into_owned())
            .collect();
        let expected = [
            "CARGO_BUILD_BUILD_DIR",
            "CARGO_INCREMENTAL",
            "CARGO_NET_OFFLINE",
            "CARGO_TARGET_DIR",
            "HOME",
            "PATH",
            "RUSTC_WRAPPER",
            "RUSTUP_TOOLCHAIN",
            "TMPDIR",
        ];
        assert_eq!(names, expected);
        assert_eq!(
            env.get("CARGO_TARGET_DIR").as_deref(),
            Some("/stage/target")
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn noexec_mount_is_detected() {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let mut options = mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            (fields.next()? == "/proc").then(|| fields.nth(1)).flatten()
        });
        let noexec = options
            .next_back()
            .expect("/proc is mounted")
            .split(',')
            .any(|option| option == "noexec");
        assert_eq!(is_mounted_noexec(Path::new("/proc")), noexec);
        let here = std::env::current_exe().expect("this program");
        assert!(
            !is_mounted_noexec(&here),
            "this program is executable where it is"
        );
    }

    #[test]
    fn unwritable_cargo_home_is_replaced() {
        for given in [
            vec![],
            vec![("HOME", "/proc")],
            vec![("CARGO_HOME", "/proc/none")],
        ] {
            let env = environment(
                given.iter().map(|(k, v)| (k.into(), v.into())),
                Path::new("/stage"),
            );
            assert_eq!(
                env.get("CARGO_HOME").as_deref(),
                Some("/stage/cargo"),
                "{given:?}"
            );
        }
    }
}
