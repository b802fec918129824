//! Runs any command that writes JUnit XML to a path given by the caller, and reads the reports of this run. A report of an
//! earlier run is not evidence; it is recognised by its unchanged modification time and content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command::program;
use super::super::junit::{self, JunitCase, Naming};
use super::super::outcome::{Outcome, Tests};
use super::super::report::{TestRunReport, strip_ansi};
use super::super::session::{
    RunnerResult, Session, decide_outcome, exit_code, output_of, read_report,
};
use super::super::step::SuiteStep;
use super::{Runner, never_detected};
use supervisor_text::words;

pub(in super::super) static RUNNER: Runner = Runner {
    name: "reports",
    ecosystem: None,
    manifests: &[],
    command: &[],
    find: never_detected,
    recognises: |_| false,
    run,
    select: |_, _| None,
    names_are_paths: false,
};

/// Limit for the reports of one run. A glob that matches more files is probably wrong.
const MAX_REPORTS: usize = 2_000;

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, RunnerResult> {
    async move {
        let pattern = step.reports.as_deref().unwrap_or_default();
        let explain = |written: &RunReports, _: &str, code: Option<i32>| {
            let old = match written.stale {
                0 => String::from("no file matches it"),
                n => format!(
                    "{} from an earlier run, none from this one",
                    words::count(n, "report")
                ),
            };
            written.fresh.is_empty().then(|| Outcome::Unclear {
                why: format!(
                    "`{pattern}` gave no report: {old} (exit code {})",
                    code.unwrap_or(-1)
                ),
            })
        };
        let argv = step.with_arguments(&[]);
        let command = (program(&step.argv), argv.as_slice(), &[][..]);
        let root = session.files_root();
        let read = |cases: &[JunitCase]| {
            let cases: Vec<JunitCase> = cases.iter().map(|case| case.relative_to(&root)).collect();
            junit::into_report(&cases, Naming::General)
        };
        run_and_collect(session, command, &[pattern], read, explain).await
    }
    .boxed()
}

/// Runs a command, given as its name in messages, its words and its environment, and reads the new reports that match the
/// patterns. `explain` gets them, the output and the exit code, and can replace the outcome that the reports give.
pub(super) async fn run_and_collect(
    session: &Session<'_>,
    (name, argv, env): (&str, &[String], &[(&str, String)]),
    patterns: &[&str],
    read: impl Fn(&[JunitCase]) -> TestRunReport,
    explain: impl Fn(&RunReports, &str, Option<i32>) -> Option<Outcome>,
) -> RunnerResult {
    let before = ReportSnapshot::take(&session.files_root(), patterns);
    let finished = session.run(argv, env).await;
    let (code, output) = (exit_code(&finished), output_of(&finished));
    let written = before.collect_new();
    let report = written.cases().map(|cases| read(&cases));
    let outcome = session
        .abnormal_outcome(&finished, name)
        .unwrap_or_else(|| match &report {
            Err(why) => Outcome::Unclear { why: why.clone() },
            Ok(report) => explain(&written, &strip_ansi(&output), code)
                .unwrap_or_else(|| decide_outcome(&report.tests, code)),
        });
    RunnerResult {
        outcome,
        tests: Tests::Named(report.unwrap_or_default().tests),
        exit_code: code,
        output,
        notes: written.stale_note().into_iter().collect(),
    }
}

/// The reports that exist before a run, with their modification times and content hashes, so that new reports can be told
/// from old ones.
struct ReportSnapshot {
    root: PathBuf,
    patterns: Vec<String>,
    fingerprints: BTreeMap<PathBuf, ReportFingerprint>,
}

type ReportFingerprint = (Option<SystemTime>, Option<blake3::Hash>);

/// The reports of one run.
pub(super) struct RunReports {
    root: PathBuf,
    fresh: Vec<PathBuf>,
    stale: usize,
}

impl ReportSnapshot {
    fn take(root: &Path, patterns: &[&str]) -> Self {
        let patterns = patterns.iter().map(|p| (*p).to_owned()).collect();
        let mut before = Self {
            root: root.to_owned(),
            patterns,
            fingerprints: BTreeMap::new(),
        };
        before.fingerprints = before
            .matching()
            .into_iter()
            .map(|path| (path.clone(), fingerprint(&path)))
            .collect();
        before
    }

    fn collect_new(&self) -> RunReports {
        let is_fresh = |path: &PathBuf| {
            self.fingerprints
                .get(path)
                .is_none_or(|was| *was != fingerprint(path))
        };
        let (fresh, stale): (Vec<_>, Vec<_>) = self.matching().into_iter().partition(is_fresh);
        RunReports {
            root: self.root.clone(),
            fresh,
            stale: stale.len(),
        }
    }

    fn matching(&self) -> Vec<PathBuf> {
        let root = glob::Pattern::escape(&self.root.to_string_lossy());
        let full_patterns = self
            .patterns
            .iter()
            .map(|pattern| format!("{root}/{}", pattern.trim_start_matches("./")));
        let found =
            full_patterns.flat_map(|pattern| glob::glob(&pattern).into_iter().flatten().flatten());
        found.filter(|p| p.is_file()).take(MAX_REPORTS).collect()
    }
}

impl RunReports {
    /// Every case of every new report; the error names the first report that is truncated.
    fn cases(&self) -> Result<Vec<JunitCase>, String> {
        let mut cases = Vec::new();
        for path in &self.fresh {
            match read_report(path).as_deref().and_then(junit::parse) {
                Some(more) => cases.extend(more),
                None => {
                    let path = path.strip_prefix(&self.root).unwrap_or(path);
                    return Err(format!("`{}` is not a whole JUnit report", path.display()));
                }
            }
        }
        Ok(cases)
    }

    /// A note for the reader if reports of an earlier run were ignored.
    fn stale_note(&self) -> Option<String> {
        let is_mixed = self.stale > 0 && !self.fresh.is_empty();
        is_mixed.then(|| {
            format!(
                "{} left from an earlier run was not read",
                words::count(self.stale, "report")
            )
        })
    }
}

fn fingerprint(path: &Path) -> ReportFingerprint {
    let modified = path.metadata().and_then(|m| m.modified()).ok();
    (
        modified,
        read_report(path).map(|text| blake3::hash(text.as_bytes())),
    )
}
