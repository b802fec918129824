//! The verdict and the evidence for it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};
use supervisor_text::words;
use supervisor_verify::{Flags, TestName};

use crate::mutants::{Mutants, SurvivingMutant};
use crate::test_changes::TestChange;

/// More are counted, not shown.
const MAX_SURVIVORS: usize = 10;

/// Whether a change does what it claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing regressed, and the tests of the change fail without it and when their expectations are changed.
    Proven,
    /// Nothing regressed, but something that a proof needs is missing: see [`Report::gaps`].
    Unproven,
    /// Something that worked on the base no longer works.
    Broken,
}

/// One test run or check, with its evidence.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// `change`, `base`, `red`, `old_tests`, `falsification`.
    pub name: &'static str,
    pub command: String,
    pub result: String,
    #[serde(rename = "took_ms", serialize_with = "milliseconds")]
    pub took: Duration,
}

/// Something that is missing for a proof, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub what: String,
    pub next: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub verdict: Verdict,
    /// One sentence.
    pub summary: String,
    /// The commit that the change was compared with, as the user named it.
    pub base: String,
    pub steps: Vec<Step>,
    /// Tests that passed on the base and fail with the change, or checks that do.
    pub regressions: Vec<String>,
    /// Tests that failed in one run and passed in others of the same files.
    pub flaky: Vec<TestName>,
    /// Tests that pass with the change and fail without it.
    pub fail_without_change: Vec<TestName>,
    /// New tests that pass without the change too.
    pub pass_without_change: Vec<TestName>,
    /// How many tests failed when their expectations were changed, of how many.
    pub falsified: (usize, usize),
    /// How many of them were not tried for want of time.
    pub not_falsified: usize,
    /// `None` if none were run.
    pub mutants: Option<Mutants>,
    pub test_changes: Vec<TestChange>,
    /// Details of the new code that no run can judge, for a reader.
    pub flags: Flags,
    pub gaps: Vec<Gap>,
    pub changed_files: Vec<PathBuf>,
    /// Where the runs happened.
    pub isolation: String,
    pub notes: Vec<String>,
}

impl Report {
    /// A report before anything was run.
    pub fn new(base: &str) -> Self {
        Self {
            verdict: Verdict::Unproven,
            summary: String::new(),
            base: base.to_owned(),
            steps: Vec::new(),
            regressions: Vec::new(),
            flaky: Vec::new(),
            fail_without_change: Vec::new(),
            pass_without_change: Vec::new(),
            falsified: (0, 0),
            not_falsified: 0,
            mutants: None,
            test_changes: Vec::new(),
            flags: Flags::default(),
            gaps: Vec::new(),
            changed_files: Vec::new(),
            isolation: String::new(),
            notes: Vec::new(),
        }
    }

    /// Decides between proven and unproven after the last step.
    pub(crate) fn conclude(&mut self) {
        match self.gaps.first() {
            None => {
                self.verdict = Verdict::Proven;
                self.summary = self.proven_sentence();
            }
            // A failure that was found stays one if the time ran out afterwards.
            Some(_) if self.verdict == Verdict::Broken => {}
            Some(gap) => {
                self.summary = format!("nothing regressed, but {}", lower_first(&gap.what));
            }
        }
    }

    fn proven_sentence(&self) -> String {
        let left = match self.not_falsified {
            0 => String::new(),
            left => format!(", {left} not tried, time ran out"),
        };
        let (shown, all) = self.falsified;
        match (self.fail_without_change.len(), shown, &self.mutants) {
            (0, 0, Some(mutants)) => format!(
                "nothing regressed and no test fails without the change, as in a refactoring; {}",
                mutants.sentence()
            ),
            (0, 0, None) => String::from("no code changed, and the suite gives the same results"),
            (0, n, _) => format!(
                "no code changed; {} added or edited and can fail{left}",
                words::count(n, "test")
            ),
            (n, shown, _) => format!(
                "nothing regressed; {} {} without the change; {shown} of {all} seen failing with a changed expectation{left}",
                words::count(n, "test"),
                if n == 1 { "fails" } else { "fail" },
            ),
        }
    }

    /// The first mutants that no test noticed.
    fn survivors(&self) -> &[SurvivingMutant] {
        let all = self.mutants.as_ref().map_or(&[][..], |m| &m.survived);
        &all[..all.len().min(MAX_SURVIVORS)]
    }

    /// The report for a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!("{:<9} {}\n", self.verdict.word(), self.summary);
        for step in &self.steps {
            text += &format!(
                "  {:<14} {} ({:.1} s)\n",
                step.name,
                words::plain(&step.result),
                step.took.as_secs_f64()
            );
        }
        for regression in &self.regressions {
            text += &format!("  regressed      {}\n", words::plain(regression));
        }
        for test in &self.flaky {
            text += &format!("  flaky          {}\n", words::plain(&test.0));
        }
        for change in &self.test_changes {
            text += &format!("  test changed   {}\n", words::plain(&change.to_string()));
        }
        for gap in &self.gaps {
            text += &format!("  missing        {}\n", words::plain(&gap.what));
            text += &format!("                 next: {}\n", words::plain(&gap.next));
        }
        for mutant in self.survivors() {
            let place = format!("{}:{}", mutant.file.display(), mutant.line);
            text += &format!("  not noticed    {}\n", words::plain(&place));
            text += &format!("                 - {}\n", words::plain(&mutant.before));
            text += &format!("                 + {}\n", words::plain(&mutant.after));
        }
        for flag in self.flags.iter() {
            let flag = format!("{}: {}", flag.place, flag.detail);
            text += &format!("  look at        {}\n", words::plain(&flag));
        }
        for note in &self.notes {
            text += &format!("  note           {}\n", words::plain(note));
        }
        text
    }

    /// The report as a comment for a reviewer.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("**{}**: {}\n\n", self.verdict.word(), self.summary);
        text += "| step | result | seconds |\n| --- | --- | --: |\n";
        for step in &self.steps {
            text += &format!(
                "| {} | {} | {:.1} |\n",
                step.name,
                escape_markdown(&step.result),
                step.took.as_secs_f64()
            );
        }
        let mut list = |title: &str, items: Vec<String>| {
            if !items.is_empty() {
                text += &format!("\n{title}\n");
                text.extend(
                    items
                        .iter()
                        .map(|item| format!("- {}\n", escape_markdown(item))),
                );
            }
        };
        list("Regressed:", self.regressions.clone());
        list(
            "Flaky, failed in one of several runs of the same files:",
            self.flaky.iter().map(|name| name.0.clone()).collect(),
        );
        list(
            "Existing tests changed:",
            self.test_changes.iter().map(ToString::to_string).collect(),
        );
        list(
            "Missing for a proof:",
            self.gaps
                .iter()
                .map(|gap| format!("{} Next: {}", gap.what, gap.next))
                .collect(),
        );
        list(
            "Fail without the change, pass with it:",
            self.fail_without_change
                .iter()
                .map(|name| name.0.clone())
                .collect(),
        );
        list(
            "Mutants that no test noticed (the next test to write):",
            self.survivors()
                .iter()
                .map(|m| {
                    format!(
                        "{}:{}: `{}` became `{}`",
                        m.file.display(),
                        m.line,
                        m.before,
                        m.after
                    )
                })
                .collect(),
        );
        list(
            "Worth a look, because no run can judge it:",
            self.flags
                .iter()
                .map(|flag| format!("{}: {}", flag.place, flag.detail))
                .collect(),
        );
        list("Notes:", self.notes.clone());
        text
    }
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Unproven => "unproven",
            Self::Broken => "broken",
        }
    }
}

/// Text from a project or a model that must not become markup.
pub fn escape_markdown(text: &str) -> String {
    words::plain(text)
        .replace(['\n', '|'], " ")
        .replace('<', "&lt;")
        .replace('@', "&#64;")
}

fn milliseconds<S: Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
}

pub(crate) fn names(tests: &[TestName]) -> String {
    const MAX_NAMED: usize = 5;
    let mut text: Vec<String> = tests
        .iter()
        .take(MAX_NAMED)
        .map(|name| format!("`{name}`"))
        .collect();
    if tests.len() > MAX_NAMED {
        text.push(format!("and {} more", tests.len() - MAX_NAMED));
    }
    text.join(", ")
}

fn lower_first(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars
        .next()
        .map(|c| c.to_lowercase().to_string())
        .unwrap_or_default();
    (first + chars.as_str()).trim_end_matches('.').to_owned()
}
