//! Stands between a build tool and the test programs it starts: lists the tests a program has before it runs,
//! keeps its output and its own report apart from all others, and notes how it ended.
//!
//! Without it, results of several programs share one stream which each of them can write what it likes into.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::session::read_report;
use supervisor_process::{RelayOutput, relay};

/// Which programs of a build are test programs; written before the tool is started.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) programs: Vec<PlannedProgram>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedProgram {
    pub(super) path: PathBuf,
    /// False if the program brings its own `main` and may not know `--list`.
    pub(super) lists: bool,
}

/// What is known of one program that was started.
#[derive(Debug)]
pub(super) struct SeenProgram {
    pub(super) program: PathBuf,
    /// The directory it ran in.
    pub(super) cwd: PathBuf,
    /// Its own list of tests, before it ran.
    pub(super) list: Option<String>,
    /// Standard output, where it was kept apart.
    pub(super) output: Option<String>,
    /// The harness's own report.
    pub(super) log: Option<String>,
    /// `None` if it never ended.
    pub(super) code: Option<i32>,
}

const PLAN: &str = "plan.json";

pub(super) fn write_plan(dir: &Path, plan: &Plan) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join(PLAN), serde_json::to_vec(plan)?)
}

/// Everything the witness saw, in no particular order.
pub(super) fn read(dir: &Path) -> Vec<SeenProgram> {
    let entries = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path());
    entries
        .filter(|p| p.is_dir())
        .filter_map(|entry| read_one(&entry))
        .collect()
}

fn read_one(entry: &Path) -> Option<SeenProgram> {
    let path = |name: &str| read_report(&entry.join(name)).map(PathBuf::from);
    let text = |name: &str| read_report(&entry.join(name));
    Some(SeenProgram {
        program: path("program")?,
        cwd: path("cwd")?,
        list: text("list"),
        output: text("output"),
        log: text("log"),
        code: text("code").and_then(|c| c.trim().parse().ok()),
    })
}

/// Runs the hidden sub-command if that is what this process was started for. Call it before arguments are parsed, because
/// those of the program it runs are not ours.
pub fn run_if_witness() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == "witness").then_some(())?;
    let arguments: Vec<OsString> = arguments.collect();
    Some(ExitCode::from(u8::try_from(run(&arguments)).unwrap_or(1)))
}

/// `witness <how> <where> <program> [arguments]`: returns the program's exit code.
fn run(arguments: &[OsString]) -> i32 {
    let [how, place, program @ ..] = arguments else {
        return 126;
    };
    let place = Path::new(place);
    match how.to_str() {
        Some("capture") => capture(place, program),
        Some("libtest") => watch(place, program, libtest),
        Some("go") => watch(place, program, go),
        _ => 126,
    }
}

fn capture(file: &Path, argv: &[OsString]) -> i32 {
    match File::create(file) {
        Ok(file) => relay(argv, RelayOutput::Into(file)),
        Err(_) => 126,
    }
}

fn watch(dir: &Path, argv: &[OsString], run: fn(&Path, &Path, &[OsString]) -> Option<i32>) -> i32 {
    let entry = tempfile::Builder::new()
        .prefix("run-")
        .tempdir_in(dir)
        .map(tempfile::TempDir::keep);
    let (Some(program), Ok(entry)) = (argv.first(), entry) else {
        return 126;
    };
    let cwd = std::env::current_dir().unwrap_or_default();
    let noted = fs::write(entry.join("program"), program.as_encoded_bytes())
        .and_then(|()| fs::write(entry.join("cwd"), cwd.as_os_str().as_encoded_bytes()));
    if noted.is_err() {
        return 126;
    }
    let code = run(dir, &entry, argv).unwrap_or(126);
    let _ = fs::write(entry.join("code"), code.to_string());
    code
}

/// A program built on Rust's test harness: its list, then the run with the harness's own log.
fn libtest(dir: &Path, entry: &Path, argv: &[OsString]) -> Option<i32> {
    let plan: Plan = serde_json::from_slice(&fs::read(dir.join(PLAN)).ok()?).ok()?;
    let Some(planned) = plan.programs.iter().find(|p| p.path.as_os_str() == argv[0]) else {
        // Doctests come through here too; their runner reads what they print.
        fs::remove_dir_all(entry).ok()?;
        return Some(relay(argv, RelayOutput::Inherited));
    };
    if !planned.lists {
        return Some(relay(
            argv,
            RelayOutput::Into(File::create(entry.join("output")).ok()?),
        ));
    }
    let list = with(argv, ["--list"]);
    relay(
        &list,
        RelayOutput::Into(File::create(entry.join("list")).ok()?),
    );
    let mut run = argv.to_vec();
    // `--logfile` is deprecated; where it is gone, the lines on standard output must do.
    let help = entry.join("help");
    relay(
        &[argv[0].clone(), "--help".into()],
        RelayOutput::Into(File::create(&help).ok()?),
    );
    if fs::read_to_string(&help).is_ok_and(|h| h.contains("--logfile")) {
        run = with(
            argv,
            [OsStr::new("--logfile"), entry.join("log").as_os_str()],
        );
    }
    Some(relay(
        &run,
        RelayOutput::Into(File::create(entry.join("output")).ok()?),
    ))
}

/// A test program of Go: its list, then the run. A heap profile is written only when every test has come to its end.
fn go(_dir: &Path, entry: &Path, argv: &[OsString]) -> Option<i32> {
    relay(
        &[argv[0].clone(), "-test.list=.".into()],
        RelayOutput::Into(File::create(entry.join("list")).ok()?),
    );
    let mut profile = OsString::from("-test.memprofile=");
    profile.push(entry.join("log"));
    // First, because flags end where the caller's own arguments begin.
    let run: Vec<_> = [argv[0].clone(), profile]
        .into_iter()
        .chain(argv[1..].iter().cloned())
        .collect();
    Some(relay(&run, RelayOutput::Inherited))
}

fn with<W: Into<OsString>>(argv: &[OsString], more: impl IntoIterator<Item = W>) -> Vec<OsString> {
    argv.iter()
        .cloned()
        .chain(more.into_iter().map(Into::into))
        .collect()
}
