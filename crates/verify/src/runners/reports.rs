//! Runs any command that writes JUnit XML to a path given by the caller, and reads the reports of this run. A report of an
//! earlier run is not evidence; it is recognised by its unchanged modification time and content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command::program;
use super::super::junit::{self, JunitCase, Naming};
use super::super::outcome::{Outcome, Tests};
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
        let before = ReportSnapshot::take(&session.files_root(), &[pattern]);
        let finished = session.run(&step.with_arguments(&[]), &[]).await;
        let code = exit_code(&finished);
        let written = before.collect_new();
        let report = written
            .cases()
            .map(|cases| junit::into_report(&cases, Naming::General));
        let outcome = session
            .abnormal_outcome(&finished, program(&step.argv))
            .unwrap_or_else(|| match &report {
                Err(why) => Outcome::Unclear { why: why.clone() },
                Ok(_) if written.fresh.is_empty() => {
                    let old = match written.stale {
                        0 => String::from("no file matches it"),
                        n => format!(
                            "{} from an earlier run, none from this one",
                            words::count(n, "report")
                        ),
                    };
                    Outcome::Unclear {
                        why: format!(
                            "`{pattern}` gave no report: {old} (exit code {})",
                            code.unwrap_or(-1)
                        ),
                    }
                }
                Ok(report) => decide_outcome(&report.tests, code),
            });
        let notes = written.stale_note().into_iter().collect();
        let tests = Tests::Named(report.unwrap_or_default().tests);
        RunnerResult {
            outcome,
            tests,
            exit_code: code,
            output: output_of(&finished),
            notes,
        }
    }
    .boxed()
}

/// The reports that exist before a run, with their modification times and content hashes, so that new reports can be told
/// from old ones.
pub(super) struct ReportSnapshot {
    root: PathBuf,
    patterns: Vec<String>,
    fingerprints: BTreeMap<PathBuf, ReportFingerprint>,
}

type ReportFingerprint = (Option<SystemTime>, Option<blake3::Hash>);

/// The reports of one run.
pub(super) struct RunReports {
    root: PathBuf,
    pub(super) fresh: Vec<PathBuf>,
    stale: usize,
}

impl ReportSnapshot {
    pub(super) fn take(root: &Path, patterns: &[&str]) -> Self {
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

    pub(super) fn collect_new(&self) -> RunReports {
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
    pub(super) fn cases(&self) -> Result<Vec<JunitCase>, String> {
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
    pub(super) fn stale_note(&self) -> Option<String> {
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
