//! The roles in which this test program is started again to write to a log: under a limit, as another user, or to be
//! killed.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use supervisor_engine::session::SessionLog;
use supervisor_workspace::state::StateDir;

use super::many::{self, Part};
use super::{attempt, entry};

const ROLE: &str = "SUPERVISOR_TEST_ROLE";
const SCENE: &str = "SUPERVISOR_TEST_SCENE";

#[derive(Clone, Copy)]
pub(super) enum Role {
    WriteOnce,
    WriteUntilRefused,
    WriteMany(Part),
    DieInTheMiddle(usize),
}

/// Which log a role writes to.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) state: &'a Path,
    pub(super) session: &'a str,
}

impl Role {
    /// What the process said before it ended.
    pub(super) fn play(self, scene: Scene<'_>) -> String {
        said(self.command(&std::env::current_exe().unwrap(), scene))
    }

    /// As another user. The binary is put where that user can reach it; if privileges cannot be dropped, this panics.
    pub(super) fn play_as(self, user: u32, scene: Scene<'_>) -> String {
        let stage = tempfile::Builder::new()
            .permissions(permissions(0o755))
            .tempdir()
            .unwrap();
        let exe = stage.path().join("it");
        std::fs::copy(std::env::current_exe().unwrap(), &exe).unwrap();
        std::fs::set_permissions(&exe, permissions(0o755)).unwrap();
        let mut command = self.command(&exe, scene);
        command.current_dir("/").uid(user).gid(user);
        said(command)
    }

    /// With files cut off at 1 MiB.
    pub(super) fn play_limited(self, scene: Scene<'_>) -> String {
        let plain = self.command(&std::env::current_exe().unwrap(), scene);
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                r#"trap "" XFSZ; ulimit -f 2048 || exit 9; exec "$0" "$@""#,
            ])
            .arg(plain.get_program());
        command
            .args(plain.get_args())
            .envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))))
            .stderr(Stdio::piped());
        said(command)
    }

    /// Runs beside the test, which will wait for it or kill it.
    pub(super) fn start(self, scene: Scene<'_>) -> Child {
        self.command(&std::env::current_exe().unwrap(), scene)
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    }

    fn command(self, exe: &Path, scene: Scene<'_>) -> Command {
        let role = match self {
            Self::WriteOnce => "once".to_owned(),
            Self::WriteUntilRefused => "until-refused".to_owned(),
            Self::WriteMany(Part {
                writer,
                run,
                from,
                to,
            }) => format!("many {writer} {run} {from} {to}"),
            Self::DieInTheMiddle(n) => format!("die {n}"),
        };
        let mut command = Command::new(exe);
        command
            .env(ROLE, role)
            .env(
                SCENE,
                format!("{}\n{}", scene.state.display(), scene.session),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Acts in the role that the environment names, and exits; without one, does nothing.
pub(crate) fn act_in_role() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let scene = std::env::var(SCENE).unwrap();
    let (state, session) = scene.split_once('\n').unwrap();
    let log = StateDir::at(state.into())
        .map_err(Into::into)
        .and_then(|state| SessionLog::open(&state));
    let words: Vec<&str> = role.split(' ').collect();
    let numbers: Vec<usize> = words[1..].iter().map(|n| n.parse().unwrap()).collect();
    match (words[0], &numbers[..]) {
        ("once", []) => {
            let written = log.and_then(|log| {
                log.ready(&session.parse().unwrap())?;
                log.append(&entry(session, vec![]))
            });
            say(&written.map_or_else(|error| error.to_string(), |_| "written".to_owned()));
        }
        ("until-refused", []) => {
            let log = log.unwrap();
            let mut long = attempt(
                "m",
                supervisor_settings::TierKind::Local,
                supervisor_engine::Cause::Rejected,
                1,
                None,
            );
            long.runner_output = "a line of output\n".repeat(3000);
            let refusal =
                (0..1000).find_map(|_| log.append(&entry(session, vec![long.clone()])).err());
            say(&refusal.expect("1000 entries do not fit").to_string());
        }
        ("many", [writer, run, from, to]) => {
            many::write(
                &log.unwrap(),
                session,
                Part {
                    writer: *writer,
                    run: *run,
                    from: *from,
                    to: *to,
                },
            );
        }
        ("die", [n]) => many::die_in_the_middle(&log.unwrap().path(&session.parse().unwrap()), *n),
        _ => panic!("no role `{role}`"),
    }
    std::process::exit(0);
}

/// Appends one short line to a file that the test watches.
pub(super) fn append_line(file: &mut File, line: &str) {
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

pub(super) fn open_append(path: &Path) -> File {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap()
}

const SAID: &str = "SAID: ";

fn say(words: &str) {
    std::io::stdout()
        .write_all(format!("\n{SAID}{words}\n").as_bytes())
        .unwrap();
}

fn said(mut command: Command) -> String {
    let output = command.output().expect("the process must start as asked");
    let text = String::from_utf8_lossy(&output.stdout);
    let said = text
        .lines()
        .find_map(|line| line.strip_prefix(SAID))
        .map(str::to_owned);
    said.unwrap_or_else(|| {
        panic!(
            "{}: {text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

fn permissions(mode: u32) -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(mode)
}
