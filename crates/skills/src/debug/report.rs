//! Formats a diagnosis for the caller and for the verifier: every hypothesis with the outcome of
//! its experiment.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::diagnosis::{Confirmation, EvidenceSources, Experiment, Hypothesis};
use super::job::DebugSkill;
use supervisor_engine::Status;
use supervisor_engine::work::{AcceptedWork, KeepPolicy, Verification, VerifierMaterial};
use supervisor_text::words;
use supervisor_verify::{ErrorSignature, Flags, Proof, Repro};
use supervisor_workspace::ChangeSet;

/// Max bytes of command output in a result.
const MAX_OUTPUT_BYTES: usize = 1_500;
/// Max citations per hypothesis in a result.
const MAX_CITATIONS: usize = 6;
/// Max names in each file list.
const MAX_LISTED_FILES: usize = 20;

/// Files that commands of this call created or changed.
#[derive(Debug, Clone, Default)]
pub(super) struct WrittenFiles {
    pub(super) taken_back: BTreeSet<PathBuf>,
    /// New and outside the snapshot: build and cache directories.
    pub(super) left_behind: BTreeSet<PathBuf>,
}

impl WrittenFiles {
    /// Adds the current changes. Only valid when nothing but our own commands can have made them.
    pub(super) fn add(&mut self, now: &ChangeSet) {
        self.taken_back
            .extend(now.changes.iter().map(|change| change.path.clone()));
        self.taken_back.extend(
            now.by_products
                .iter()
                .map(|by_product| by_product.path.clone()),
        );
        self.left_behind
            .extend(now.unprotected.iter().map(|left| left.path.clone()));
    }
}

pub(super) struct DebugReport<'a> {
    pub(super) job: &'a DebugSkill,
    pub(super) hypotheses: &'a [Hypothesis],
    pub(super) confirmed: &'a [Confirmation],
    /// The hypothesis that the experiments single out, counted from 0.
    pub(super) cause: Option<usize>,
    pub(super) sources: &'a EvidenceSources,
    pub(super) flags: Flags,
    /// The files that commands wrote.
    pub(super) wrote: WrittenFiles,
}

impl DebugReport<'_> {
    pub(super) fn accepted_with(&self, proof: Result<Proof, String>) -> AcceptedWork {
        AcceptedWork {
            verification: match proof {
                Ok(proof) => Verification::Proven(proof),
                Err(why) => Verification::Unproven { why },
            },
            keeps: KeepPolicy::Nothing,
            status: Status::Pass,
            message: self.message(),
            file_path: String::new(),
            runner_output: self.runs(),
            gates: Vec::new(),
            flags: self.flags.clone(),
            details: self.details(),
            next: self.next(),
            exhibit: VerifierMaterial::Text {
                answer: self.as_text(),
                material: self.material(),
            },
        }
    }

    /// `reproduced: …; 3 hypotheses, 2 of 3 confirmations came out as predicted; the likeliest: …`
    fn message(&self) -> String {
        let count = |fits: &dyn Fn(&Confirmation) -> bool| {
            self.confirmed.iter().filter(|c| fits(c)).count()
        };
        let mut message = self.repro_sentence();
        let n = self.hypotheses.len();
        let _ = write!(
            message,
            "; {n} hypotheses, {} of {n} confirmations came out as predicted",
            count(&|c| c.as_predicted() == Some(true))
        );
        let not_run = count(&|c| c.outcome().is_none());
        if not_run > 0 {
            let _ = write!(message, ", {not_run} could not be run");
        }
        let inconclusive = self
            .confirmed
            .iter()
            .enumerate()
            .filter(|(_, c)| c.discrimination().why_inconclusive.is_some());
        let inconclusive: Vec<String> = inconclusive.map(|(n, _)| (n + 1).to_string()).collect();
        if !inconclusive.is_empty() {
            let _ = write!(
                message,
                ", {} told nothing about the cause",
                inconclusive.join(" and ")
            );
        }
        if let Some((n, best)) = self.best() {
            let _ = write!(message, "; look at {n} first: {}", headline(best));
        }
        if let Some(advice) = self.job.visit.advice() {
            let _ = write!(message, "; {advice}");
        }
        message
    }

    fn repro_sentence(&self) -> String {
        self.job.repro.as_ref().map_or_else(
            || String::from("not reproduced: no `repro_cmd` was given"),
            Repro::sentence,
        )
    }

    /// The hypothesis to look at first: the one singled out, else the likeliest that came out as
    /// predicted, else the likeliest that is not refuted.
    fn best(&self) -> Option<(usize, &Hypothesis)> {
        if let Some(n) = self.cause {
            return self.hypotheses.get(n).map(|h| (n + 1, h));
        }
        let all = || self.hypotheses.iter().zip(self.confirmed).enumerate();
        let first =
            |as_predicted: Option<bool>| all().find(|(_, (_, c))| c.as_predicted() == as_predicted);
        first(Some(true))
            .or_else(|| first(None))
            .map(|(n, (h, _))| (n + 1, h))
    }

    /// One line per experiment the server ran.
    fn runs(&self) -> String {
        let mut out = format!("{}\n", self.repro_sentence());
        for (n, (hypothesis, confirmation)) in
            self.hypotheses.iter().zip(self.confirmed).enumerate()
        {
            let verdict = match confirmation.as_predicted() {
                Some(true) => "as predicted",
                Some(false) => "not as predicted",
                None => "shows nothing",
            };
            let outcome = confirmation
                .outcome()
                .map_or_else(|| String::from("could_not_run"), |o| o.to_string());
            let what = words::short(&hypothesis.experiment.to_string(), 300);
            let why_inconclusive = confirmation
                .discrimination()
                .why_inconclusive
                .as_ref()
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            let detail = words::plain(confirmation.detail());
            let _ = writeln!(
                out,
                "{}. {what}: {outcome} ({detail}), {verdict}{why_inconclusive}",
                n + 1
            );
        }
        out
    }

    fn details(&self) -> Value {
        let hypotheses: Vec<Value> = self
            .hypotheses
            .iter()
            .zip(self.confirmed)
            .enumerate()
            .map(|(n, (h, c))| hypothesis_json(n + 1, h, c))
            .collect();
        let mut details = json!({
            "reproduced": self.job.repro.as_ref().is_some_and(Repro::is_reproduced),
            "hypotheses": hypotheses,
            "repro": self.job.repro.as_ref().map(repro),
            "visit": self.job.visit.0,
        });
        if let Some(advice) = self.job.visit.advice() {
            details["advice"] = json!(advice);
        }
        let not_shown = self.job.brief.material.not_shown.clone();
        let names = |paths: &BTreeSet<PathBuf>| {
            paths
                .iter()
                .map(|path| words::short(&path.to_string_lossy(), 200))
                .collect()
        };
        for (key, list) in [
            ("not_shown", not_shown),
            ("taken_back", names(&self.wrote.taken_back)),
            ("left_behind", names(&self.wrote.left_behind)),
        ] {
            if !list.is_empty() {
                details[key] = json!(list.iter().take(MAX_LISTED_FILES).collect::<Vec<_>>());
            }
            if list.len() > MAX_LISTED_FILES {
                details[format!("{key}_left_out")] = json!(list.len() - MAX_LISTED_FILES);
            }
        }
        details
    }

    /// Suggests `tdd_red` next: a fix starts with a test that fails for this reason.
    fn next(&self) -> Value {
        let cause = self
            .best()
            .map(|(_, h)| format!(" (suspected: {})", headline(h)))
            .unwrap_or_default();
        let error = &self.job.error;
        let statement = ErrorSignature::of(error)
            .statement_in(error)
            .unwrap_or("this error")
            .to_owned();
        json!({"tool": "tdd_red", "arguments": {
            "project_root": self.job.root,
            "session_id": self.job.session,
            "spec": format!("what ended in `{}` works{cause}", words::short(&statement, 200)),
        }})
    }

    /// The hypotheses as text, for the verifier.
    fn as_text(&self) -> String {
        let mut out = String::new();
        for (n, h) in self.hypotheses.iter().enumerate() {
            let places: Vec<String> = h
                .evidence
                .iter()
                .map(|c| format!("{}:{}", c.file.display(), c.lines.start()))
                .collect();
            let _ = writeln!(
                out,
                "{}. {} {}\n   mechanism: {}\n   evidence: {}\n   {}: {} if true, {} if false {}",
                n + 1,
                serde_json::to_value(h.likelihood)
                    .ok()
                    .as_ref()
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
                words::short(&h.title, 200),
                words::short(&h.mechanism, 1_000),
                places.join(", "),
                h.experiment,
                h.expect_if_true,
                h.expect_if_false,
                words::short(&h.because, 300),
            );
        }
        out
    }

    fn material(&self) -> String {
        let cited = self.hypotheses.iter().flat_map(|h| &h.evidence);
        let printed = self.job.repro.as_ref().map_or("", Repro::output);
        format!(
            "The error:\n{}\n\nWhat the server did:\n{}\nWhat the command printed:\n{}\n\nThe cited lines:\n{}",
            words::cut_middle(&words::plain(&self.job.error), 4_000),
            self.runs(),
            words::cut_middle(&words::plain(printed), 2_000),
            words::cut_middle(&self.sources.excerpts(cited, 4), 12_000),
        )
    }
}

fn hypothesis_json(rank: usize, h: &Hypothesis, c: &Confirmation) -> Value {
    let cited = h.evidence.iter().take(MAX_CITATIONS).map(|cited| {
        let mut value = json!({"file": cited.file, "line": cited.lines.start(), "text": words::short(cited.text.trim(), 160)});
        if let Some(given) = cited.corrected_from {
            value["corrected_from"] = json!(given);
        }
        value
    });
    let confirm = match &h.experiment {
        Experiment::RunTest(name) => json!({"run_test": words::short(name, 300)}),
        Experiment::Search { pattern, file } => {
            json!({"search": {"pattern": pattern.to_string(), "file": file}})
        }
    };
    let mut value = json!({
        "rank": rank,
        "likelihood": h.likelihood,
        "title": words::short(&h.title, 200),
        "mechanism": words::short(&h.mechanism, 1_000),
        "evidence": cited.collect::<Vec<_>>(),
        "confirm": confirm,
        "expect_if_true": h.expect_if_true,
        "expect_if_false": h.expect_if_false,
        "outcome": c.outcome().map_or_else(|| String::from("could_not_run"), |outcome| outcome.to_string()),
        "outcome_detail": words::short(c.detail(), 300),
        "as_predicted": c.as_predicted(),
    });
    if !c.discrimination().rules_out.is_empty() {
        value["tells_from"] = json!(c.discrimination().rules_out);
    }
    if let Some(why) = &c.discrimination().why_inconclusive {
        value["told_nothing"] = json!(why);
    }
    for (key, text) in [("because", &h.because), ("command", &h.command)] {
        if !text.is_empty() {
            value[key] = json!(words::short(text, 400));
        }
    }
    if h.evidence.len() > MAX_CITATIONS {
        value["evidence_left_out"] = json!(h.evidence.len() - MAX_CITATIONS);
    }
    value
}

pub(super) fn repro(repro: &Repro) -> Value {
    let mut value = json!({
        "cmd": words::short(repro.command(), 500),
        "exit_code": repro.exit_code(),
        "matched_error": repro.is_reproduced(),
        "showed": repro.outcome(),
        "output": words::cut_middle(&words::plain(repro.output()), MAX_OUTPUT_BYTES),
    });
    if !repro.notes().is_empty() {
        value["notes"] = json!(repro.notes());
    }
    value
}

fn headline(h: &Hypothesis) -> String {
    words::short(
        if h.title.is_empty() {
            &h.mechanism
        } else {
            &h.title
        },
        160,
    )
}
