//! The stage: a temporary directory with a little project, recorded answers, settings and state of its own.
//! Nothing of the user's settings is read, and everything here goes when the curtain falls; the log alone is kept.

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
use supervisor_models::world::Look;
use supervisor_process as process;
use supervisor_process::{Launcher, Scratch};
use supervisor_settings::Sources;
use supervisor_skills::App;
use supervisor_workspace::state::{StateDir, StateError};

const PROJECT: &[(&str, &str)] = &[
    // Not under their own names: a directory with a manifest would be a package of its own to cargo.
    ("Cargo.toml", include_str!("project/manifest.toml")),
    ("Cargo.lock", include_str!("project/lock.toml")),
    ("src/lib.rs", include_str!("project/lib.rs")),
    ("tests/roman.rs", include_str!("project/roman.rs")),
];
/// What the models answer, in this order.
pub(super) const SCRIPT: &str = include_str!("script.jsonl");
const SETTINGS: &str = include_str!("settings.toml");

#[derive(Debug, thiserror::Error)]
pub(super) enum StageError {
    #[error(
        "the demo runs real tests with `cargo`, which is not on the PATH; install Rust from https://rustup.rs, or add the \
         directory of `cargo` to the PATH"
    )]
    NoCargo,
    #[error("no temporary project can be made in `{}`: {source}; set $TMPDIR to a directory that can be written", .place.display())]
    NoPlace { place: PathBuf, source: io::Error },
    #[error(
        "no program can be run in `{}`, which is mounted with `noexec`, and the demo's tests are programs; set $TMPDIR to \
         another directory", .0.display()
    )]
    NoPrograms(PathBuf),
    #[error("the log cannot be kept: {0}")]
    Log(io::Error),
}

/// Dropping it removes all of it.
pub(super) struct Stage {
    dir: Scratch,
    /// Without links, as the engine names it.
    root: PathBuf,
    session: SessionId,
    launcher: Launcher,
    env: Env,
}

/// Where the log is now.
#[derive(Debug)]
pub(super) struct KeptLog {
    pub(super) path: PathBuf,
    /// Why it is not in the state directory.
    pub(super) instead: Option<StateError>,
}

impl Stage {
    pub(super) fn set() -> Result<Self, StageError> {
        if process::which("cargo", std::env::var_os("PATH").as_deref(), None).is_err() {
            return Err(StageError::NoCargo);
        }
        let place = std::env::temp_dir();
        let failed = |source| StageError::NoPlace {
            place: place.clone(),
            source,
        };
        if forbids_programs(&place) {
            return Err(StageError::NoPrograms(place));
        }
        let dir = Scratch::new("demo-").map_err(failed)?;
        let root = dir.path().canonicalize().map_err(failed)?;
        let session = session().map_err(failed)?;
        let env = environment(std::env::vars_os(), &root);
        let stage = Self {
            dir,
            root,
            session,
            launcher: Launcher::this_program(),
            env,
        };
        stage.furnish().map_err(failed)?;
        Ok(stage)
    }

    fn furnish(&self) -> io::Result<()> {
        for (path, text) in PROJECT {
            let path = self.project().join(path);
            fs::create_dir_all(path.parent().expect("a file lies in a directory"))?;
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

    /// A server for this stage, and for nothing else.
    pub(super) fn app(&self) -> App {
        let sources = Sources {
            user_file: Some(self.root.join("models.toml")),
            ..Sources::built_in(built_in::MODELS_TOML)
        };
        let state = StateDir::at(self.state()).expect("a temporary directory has an absolute path");
        App::new(
            sources,
            built_in::PROMPTS,
            Look::new(self.env.clone(), self.launcher.clone()),
        )
        .keeping_state_in(state)
    }

    /// The questions that were put to a model so far.
    pub(super) fn asked_of(&self, model: &str) -> Vec<String> {
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

    /// Puts the log where it stays: beside the user's own sessions, not among them, for no real model made it.
    pub(super) fn keep_log(&self) -> Result<KeptLog, StageError> {
        let name = format!("{}.jsonl", self.session);
        let own = || StateDir::at(StateDir::locate()?.path().join("demo"))?.sub("sessions");
        let instead = match own() {
            Ok(sessions) => match self.copy_log(&sessions.join(&name)) {
                Ok(path) => {
                    return Ok(KeptLog {
                        path,
                        instead: None,
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
            .map_err(StageError::Log)?;
        let sessions = dir.path().join("sessions");
        let copied = fs::create_dir(&sessions).and_then(|()| self.copy_log(&sessions.join(name)));
        let path = copied.map_err(StageError::Log)?;
        let _ = dir.keep();
        Ok(KeptLog {
            path,
            instead: Some(instead),
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

    /// Waits for every program that was started here, then removes it all.
    pub(super) async fn strike(self) -> io::Result<()> {
        self.launcher.settled().await;
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

/// Common for `/tmp` on servers. Without this the build succeeds, and every test fails in a riddle.
fn forbids_programs(place: &Path) -> bool {
    statvfs(place).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// `demo-1f3a09c2`: short enough for a path on one line.
fn session() -> io::Result<SessionId> {
    let chance = getrandom::u32().map_err(io::Error::other)?;
    Ok(format!("demo-{chance:08x}")
        .parse()
        .expect("letters, digits and a hyphen are a name"))
}

/// What `cargo test` gets: the caller's environment, but for what would make it build something else or elsewhere.
fn environment(inherited: impl IntoIterator<Item = (OsString, OsString)>, root: &Path) -> Env {
    let told = |name: &OsStr| {
        let name = name.to_string_lossy();
        let cargos = name.starts_with("CARGO") && name != "CARGO_HOME";
        let rusts = name.starts_with("RUST") && !name.starts_with("RUSTUP_");
        !(cargos || rusts)
    };
    let mut vars: BTreeMap<OsString, OsString> = inherited
        .into_iter()
        .filter(|(name, _)| told(name))
        .collect();
    let own_home = vars.get(OsStr::new("CARGO_HOME")).map(PathBuf::from);
    let home = own_home.or_else(|| Some(Path::new(vars.get(OsStr::new("HOME"))?).join(".cargo")));
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
    // An empty wrapper is none, also where the user's own configuration names one.
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
    fn what_the_caller_says_to_cargo_does_not_reach_the_demo() {
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
    fn a_place_where_no_program_runs_is_known_by_its_mount() {
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
        assert_eq!(forbids_programs(Path::new("/proc")), noexec);
        let here = std::env::current_exe().expect("this program");
        assert!(!forbids_programs(&here), "this program runs where it lies");
    }

    #[test]
    fn without_a_home_that_can_be_written_cargo_gets_one_that_goes_again() {
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
