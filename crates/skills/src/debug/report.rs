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

    /// `Most likely: … (`src/a.py:6`); the other 2 causes are ruled out. Reproduced: …`
    fn message(&self) -> String {
        let Some((first, best)) = self.best() else {
            return format!(
                "No cause fits: the experiments ruled out all {}. {}",
                self.hypotheses.len(),
                self.repro_sentence()
            );
        };
        let place = best
            .evidence
            .first()
            .map(|cited| format!(" (`{}:{}`)", cited.file.display(), cited.lines.start()))
            .unwrap_or_default();
        let mut message = format!("Most likely: {}{place}", headline(best));
        let others = self.hypotheses.len() - 1;
        // Numbers of the other causes whose experiment ended in this way.
        let numbers = |fits: &dyn Fn(&Confirmation) -> bool| -> Vec<String> {
            let all = self.confirmed.iter().enumerate();
            all.filter(|(n, one)| n + 1 != first && fits(one))
                .map(|(n, _)| (n + 1).to_string())
                .collect()
        };
        let ruled_out = numbers(&|one| one.as_predicted() == Some(false));
        if others > 0 && (self.cause.is_some() || ruled_out.len() == others) {
            let _ = match others {
                1 => write!(message, "; the other cause is ruled out"),
                n => write!(message, "; the other {n} causes are ruled out"),
            };
        } else if !ruled_out.is_empty() {
            let _ = write!(message, "; ruled out: {}", ruled_out.join(" and "));
        }
        let not_run = numbers(&|one| one.outcome().is_none());
        if !not_run.is_empty() {
            let _ = write!(message, "; could not be run: {}", not_run.join(" and "));
        }
        let inconclusive = numbers(&|one| one.discrimination().why_inconclusive.is_some());
        if !inconclusive.is_empty() {
            let list = inconclusive.join(" and ");
            let _ = write!(message, "; tells nothing about the cause: {list}");
        }
        let _ = write!(message, ". {}", self.repro_sentence());
        if let Some(advice) = self.job.visit.advice() {
            let _ = write!(message, " {advice}.");
        }
        message
    }

    fn repro_sentence(&self) -> String {
        self.job.repro.as_ref().map_or_else(
            || String::from("Pass `repro_cmd` to have it reproduced."),
            |repro| capitalized(&repro.sentence()) + ".",
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
            .map(|(_, h)| format!(" Suspected cause: {}.", headline(h)))
            .unwrap_or_default();
        let error = &self.job.error;
        let statement = ErrorSignature::of(error)
            .statement_in(error)
            .unwrap_or("this error")
            .to_owned();
        json!({"tool": "tdd_red", "arguments": {
            "project_root": self.job.root,
            "session_id": self.job.session,
            "spec": format!("This no longer happens: `{}`.{cause}", words::short(&statement, 200)),
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
    if c.as_predicted() == Some(false) {
        value["refuted"] = json!(true);
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

fn capitalized(sentence: &str) -> String {
    let mut chars = sentence.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
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
