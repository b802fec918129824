//! Any command that leaves JUnit XML behind, wherever the caller says: results from the reports that this run wrote.
//! A report from before is not evidence: it is told from a fresh one by its time and its content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::command::program;
use super::super::junit::{self, JunitCase, Naming};
use super::super::outcome::{Outcome, Tests};
use super::super::session::{Judgement, Session, agree, exit_code, output_of, read_report};
use super::super::step::SuiteStep;
use super::{Runner, by_command_alone};
use supervisor_text::words;

pub(in super::super) static RUNNER: Runner = Runner {
    name: "reports",
    ecosystem: None,
    manifests: &[],
    command: &[],
    find: by_command_alone,
    recognises: |_| false,
    run,
    select: |_, _| None,
    names_are_paths: false,
};

/// Reports of one run; a pattern that matches more is not about reports.
const MOST: usize = 2_000;

fn run<'a>(step: &'a SuiteStep, session: &'a Session<'a>) -> BoxFuture<'a, Judgement> {
    async move {
        let pattern = step.reports.as_deref().unwrap_or_default();
        let before = ReportsBefore::look(&session.files(), &[pattern]);
        let finished = session.run(&step.with_arguments(&[]), &[]).await;
        let code = exit_code(&finished);
        let written = before.after_the_run();
        let report = written
            .cases()
            .map(|cases| junit::into_report(&cases, Naming::General));
        let outcome = session
            .cut_short(&finished, program(&step.argv))
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
                Ok(report) => agree(&report.tests, code),
            });
        let notes = written.note().into_iter().collect();
        let tests = Tests::Named(report.unwrap_or_default().tests);
        Judgement {
            outcome,
            tests,
            exit_code: code,
            output: output_of(&finished),
            notes,
        }
    }
    .boxed()
}

/// The reports that lay about before a run, so that those of the run can be told from them: when each was written, and
/// what it said.
pub(super) struct ReportsBefore {
    root: PathBuf,
    patterns: Vec<String>,
    marks: BTreeMap<PathBuf, ReportMark>,
}

type ReportMark = (Option<SystemTime>, Option<blake3::Hash>);

/// The reports of one run.
pub(super) struct WrittenReports {
    root: PathBuf,
    pub(super) fresh: Vec<PathBuf>,
    stale: usize,
}

impl ReportsBefore {
    pub(super) fn look(root: &Path, patterns: &[&str]) -> Self {
        let patterns = patterns.iter().map(|p| (*p).to_owned()).collect();
        let mut before = Self {
            root: root.to_owned(),
            patterns,
            marks: BTreeMap::new(),
        };
        before.marks = before
            .matching()
            .into_iter()
            .map(|path| (path.clone(), mark(&path)))
            .collect();
        before
    }

    pub(super) fn after_the_run(&self) -> WrittenReports {
        let is_fresh = |path: &PathBuf| self.marks.get(path).is_none_or(|was| *was != mark(path));
        let (fresh, stale): (Vec<_>, Vec<_>) = self.matching().into_iter().partition(is_fresh);
        WrittenReports {
            root: self.root.clone(),
            fresh,
            stale: stale.len(),
        }
    }

    fn matching(&self) -> Vec<PathBuf> {
        let root = glob::Pattern::escape(&self.root.to_string_lossy());
        let whole = self
            .patterns
            .iter()
            .map(|pattern| format!("{root}/{}", pattern.trim_start_matches("./")));
        let found = whole.flat_map(|whole| glob::glob(&whole).into_iter().flatten().flatten());
        found.filter(|p| p.is_file()).take(MOST).collect()
    }
}

impl WrittenReports {
    /// Every case of every report; an error names the first one that is not whole.
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

    /// What a reader should know about reports of an earlier run.
    pub(super) fn note(&self) -> Option<String> {
        let is_mixed = self.stale > 0 && !self.fresh.is_empty();
        is_mixed.then(|| {
            format!(
                "{} left from an earlier run was not read",
                words::count(self.stale, "report")
            )
        })
    }
}

fn mark(path: &Path) -> ReportMark {
    let modified = path.metadata().and_then(|m| m.modified()).ok();
    (
        modified,
        read_report(path).map(|text| blake3::hash(text.as_bytes())),
    )
}
