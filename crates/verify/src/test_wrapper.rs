//! A wrapper between a build tool and the test programs it starts. It lists the tests of a program before running it,
//! captures its output and report separately, and records its exit code.
//!
//! Without it, all programs share one stream, and each of them could forge the results of the others.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::compare::run_query;
use super::session::read_report;
use supervisor_process::{RelayOutput, relay};

/// The test programs of a build; written before the build tool is started.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) programs: Vec<PlannedProgram>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedProgram {
    pub(super) path: PathBuf,
    /// False if the program has its own `main` and may not support `--list`.
    pub(super) can_list: bool,
}

/// The record of one program that was started.
#[derive(Debug)]
pub(super) struct ObservedProgram {
    pub(super) program: PathBuf,
    /// The directory it ran in.
    pub(super) cwd: PathBuf,
    /// Its list of tests, from before it ran.
    pub(super) list: Option<String>,
    /// Standard output, if it was captured.
    pub(super) output: Option<String>,
    /// The report of the test harness.
    pub(super) log: Option<String>,
    /// `None` if it never exited.
    pub(super) code: Option<i32>,
}

const PLAN_FILE: &str = "plan.json";

pub(super) fn write_plan(dir: &Path, plan: &Plan) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join(PLAN_FILE), serde_json::to_vec(plan)?)
}

/// Reads the records of all programs, in no particular order.
pub(super) fn read_programs(dir: &Path) -> Vec<ObservedProgram> {
    let entries = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path());
    entries
        .filter(|p| p.is_dir())
        .filter_map(|entry| read_program(&entry))
        .collect()
}

fn read_program(entry: &Path) -> Option<ObservedProgram> {
    let path = |name: &str| read_report(&entry.join(name)).map(PathBuf::from);
    let text = |name: &str| read_report(&entry.join(name));
    Some(ObservedProgram {
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

/// `witness <mode> <path> <program> [arguments]`: returns the program's exit code.
fn run(arguments: &[OsString]) -> i32 {
    let [mode, path, program @ ..] = arguments else {
        return 126;
    };
    let path = Path::new(path);
    match mode.to_str() {
        Some("capture") => capture(path, program),
        Some("libtest") => run_recorded(path, program, run_libtest),
        Some("go") => run_recorded(path, program, run_go),
        Some("rows") => run_query(path, program),
        _ => 126,
    }
}

fn capture(file: &Path, argv: &[OsString]) -> i32 {
    match File::create(file) {
        Ok(file) => relay(argv, RelayOutput::Into(file)),
        Err(_) => 126,
    }
}

fn run_recorded(
    dir: &Path,
    argv: &[OsString],
    run: fn(&Path, &Path, &[OsString]) -> Option<i32>,
) -> i32 {
    let entry = tempfile::Builder::new()
        .prefix("run-")
        .tempdir_in(dir)
        .map(tempfile::TempDir::keep);
    let (Some(program), Ok(entry)) = (argv.first(), entry) else {
        return 126;
    };
    let cwd = std::env::current_dir().unwrap_or_default();
    let written = fs::write(entry.join("program"), program.as_encoded_bytes())
        .and_then(|()| fs::write(entry.join("cwd"), cwd.as_os_str().as_encoded_bytes()));
    if written.is_err() {
        return 126;
    }
    let code = run(dir, &entry, argv).unwrap_or(126);
    let _ = fs::write(entry.join("code"), code.to_string());
    code
}

/// Lists the tests of a program built on Rust's test harness, then runs it with the harness's log file.
fn run_libtest(dir: &Path, entry: &Path, argv: &[OsString]) -> Option<i32> {
    let plan: Plan = serde_json::from_slice(&fs::read(dir.join(PLAN_FILE)).ok()?).ok()?;
    let Some(planned) = plan.programs.iter().find(|p| p.path.as_os_str() == argv[0]) else {
        // Doctests are started through this wrapper too; their runner reads their output.
        fs::remove_dir_all(entry).ok()?;
        return Some(relay(argv, RelayOutput::Inherited));
    };
    if !planned.can_list {
        return Some(relay(
            argv,
            RelayOutput::Into(File::create(entry.join("output")).ok()?),
        ));
    }
    let list = with_arguments(argv, ["--list"]);
    relay(
        &list,
        RelayOutput::Into(File::create(entry.join("list")).ok()?),
    );
    let mut run = argv.to_vec();
    // `--logfile` is deprecated. Where it no longer exists, the lines on standard output are used instead.
    let help = entry.join("help");
    relay(
        &[argv[0].clone(), "--help".into()],
        RelayOutput::Into(File::create(&help).ok()?),
    );
    if fs::read_to_string(&help).is_ok_and(|h| h.contains("--logfile")) {
        run = with_arguments(
            argv,
            [OsStr::new("--logfile"), entry.join("log").as_os_str()],
        );
    }
    Some(relay(
        &run,
        RelayOutput::Into(File::create(entry.join("output")).ok()?),
    ))
}

/// Lists the tests of a Go test program, then runs it. The heap profile marks completion: it is written only after all
/// tests have finished.
fn run_go(_dir: &Path, entry: &Path, argv: &[OsString]) -> Option<i32> {
    relay(
        &[argv[0].clone(), "-test.list=.".into()],
        RelayOutput::Into(File::create(entry.join("list")).ok()?),
    );
    let mut profile = OsString::from("-test.memprofile=");
    profile.push(entry.join("log"));
    // The profile flag comes first, because flags end where the caller's arguments begin.
    let run: Vec<_> = [argv[0].clone(), profile]
        .into_iter()
        .chain(argv[1..].iter().cloned())
        .collect();
    Some(relay(&run, RelayOutput::Inherited))
}

fn with_arguments<W: Into<OsString>>(
    argv: &[OsString],
    more: impl IntoIterator<Item = W>,
) -> Vec<OsString> {
    argv.iter()
        .cloned()
        .chain(more.into_iter().map(Into::into))
        .collect()
}
