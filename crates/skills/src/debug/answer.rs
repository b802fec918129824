//! The answer as the caller and the verifier see it: every hypothesis with what the server made of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::job::Debug;
use crate::answers::diagnosis::{Confirmation, EvidenceShelf, Experiment, Hypothesis};
use supervisor_engine::Status;
use supervisor_engine::work::{AcceptedWork, Exhibit, KeepPolicy, Verification};
use supervisor_text::words;
use supervisor_verify::{Flags, Proof, Repro, Signature};
use supervisor_workspace::ChangeSet;

/// Bytes of what the command printed that a result shows.
const OUTPUT: usize = 1_500;
/// Citations per hypothesis that a result shows.
const CITATIONS: usize = 6;
/// Names in each list of files.
const LISTED: usize = 20;

/// Files that commands of this call wrote or changed.
#[derive(Debug, Clone, Default)]
pub(super) struct WrittenFiles {
    pub(super) taken_back: BTreeSet<PathBuf>,
    /// New, and not protected: build and cache directories.
    pub(super) left_behind: BTreeSet<PathBuf>,
}

impl WrittenFiles {
    /// Adds what differs now, when only our own commands can have written it.
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

pub(super) struct DebugAnswer<'a> {
    pub(super) job: &'a Debug,
    pub(super) found: &'a [Hypothesis],
    pub(super) confirmed: &'a [Confirmation],
    /// The one that is told from all others, counted from 0.
    pub(super) cause: Option<usize>,
    pub(super) shelf: &'a EvidenceShelf,
    pub(super) flags: Flags,
    /// What the commands wrote, and what of it stays.
    pub(super) wrote: WrittenFiles,
}

impl DebugAnswer<'_> {
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
            exhibit: Exhibit::Words {
                answer: self.told(),
                material: self.material(),
            },
        }
    }

    /// `reproduced: …; 3 hypotheses, 2 of 3 confirmations came out as predicted; the likeliest: …`
    fn message(&self) -> String {
        let count = |fits: &dyn Fn(&Confirmation) -> bool| {
            self.confirmed.iter().filter(|c| fits(c)).count()
        };
        let mut message = self.seen();
        let n = self.found.len();
        let _ = write!(
            message,
            "; {n} hypotheses, {} of {n} confirmations came out as predicted",
            count(&|c| c.as_predicted() == Some(true))
        );
        let lost = count(&|c| c.outcome().is_none());
        if lost > 0 {
            let _ = write!(message, ", {lost} could not be run");
        }
        let idle = self
            .confirmed
            .iter()
            .enumerate()
            .filter(|(_, c)| c.telling().nothing.is_some());
        let idle: Vec<String> = idle.map(|(n, _)| (n + 1).to_string()).collect();
        if !idle.is_empty() {
            let _ = write!(
                message,
                ", {} told nothing about the cause",
                idle.join(" and ")
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

    fn seen(&self) -> String {
        self.job.repro.as_ref().map_or_else(
            || String::from("not reproduced: no `repro_cmd` was given"),
            Repro::sentence,
        )
    }

    /// The one that is told from the others; else the likeliest that came out as predicted, else the likeliest that nothing
    /// speaks against.
    fn best(&self) -> Option<(usize, &Hypothesis)> {
        if let Some(n) = self.cause {
            return self.found.get(n).map(|h| (n + 1, h));
        }
        let all = || self.found.iter().zip(self.confirmed).enumerate();
        let first = |wanted: Option<bool>| all().find(|(_, (_, c))| c.as_predicted() == wanted);
        first(Some(true))
            .or_else(|| first(None))
            .map(|(n, (h, _))| (n + 1, h))
    }

    /// What the server did, one line each.
    fn runs(&self) -> String {
        let mut out = format!("{}\n", self.seen());
        for (n, (hypothesis, confirmation)) in self.found.iter().zip(self.confirmed).enumerate() {
            let verdict = match confirmation.as_predicted() {
                Some(true) => "as predicted",
                Some(false) => "not as predicted",
                None => "shows nothing",
            };
            let outcome = confirmation
                .outcome()
                .map_or_else(|| String::from("could_not_run"), |o| o.to_string());
            let what =
                words::cut_end(&words::plain(&hypothesis.experiment.to_string()), 300).into_owned();
            let nothing = confirmation
                .telling()
                .nothing
                .as_ref()
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            let detail = words::plain(confirmation.detail());
            let _ = writeln!(
                out,
                "{}. {what}: {outcome} ({detail}), {verdict}{nothing}",
                n + 1
            );
        }
        out
    }

    fn details(&self) -> Value {
        let hypotheses: Vec<Value> = self
            .found
            .iter()
            .zip(self.confirmed)
            .enumerate()
            .map(|(n, (h, c))| one(n + 1, h, c))
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
                .map(|path| shown(&path.to_string_lossy(), 200))
                .collect()
        };
        for (key, list) in [
            ("not_shown", not_shown),
            ("taken_back", names(&self.wrote.taken_back)),
            ("left_behind", names(&self.wrote.left_behind)),
        ] {
            if !list.is_empty() {
                details[key] = json!(list.iter().take(LISTED).collect::<Vec<_>>());
            }
            if list.len() > LISTED {
                details[format!("{key}_left_out")] = json!(list.len() - LISTED);
            }
        }
        details
    }

    /// A test that fails for this very reason is what a fix begins with.
    fn next(&self) -> Value {
        let cause = self
            .best()
            .map(|(_, h)| format!(" (suspected: {})", headline(h)))
            .unwrap_or_default();
        let error = &self.job.error;
        let statement = Signature::of(error)
            .statement_in(error)
            .unwrap_or("this error")
            .to_owned();
        json!({"tool": "tdd_red", "arguments": {
            "project_root": self.job.root,
            "session_id": self.job.session,
            "spec": format!("what ended in `{}` works{cause}", shown(&statement, 200)),
        }})
    }

    /// The answer in words, for the verifier.
    fn told(&self) -> String {
        let mut out = String::new();
        for (n, h) in self.found.iter().enumerate() {
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
                shown(&h.title, 200),
                shown(&h.mechanism, 1_000),
                places.join(", "),
                h.experiment,
                h.expect_if_true,
                h.expect_if_false,
                shown(&h.because, 300),
            );
        }
        out
    }

    fn material(&self) -> String {
        let cited = self.found.iter().flat_map(|h| &h.evidence);
        let printed = self.job.repro.as_ref().map_or("", Repro::output);
        format!(
            "The error:\n{}\n\nWhat the server did:\n{}\nWhat the command printed:\n{}\n\nThe cited lines:\n{}",
            words::cut_middle(&words::plain(&self.job.error), 4_000),
            self.runs(),
            words::cut_middle(&words::plain(printed), 2_000),
            words::cut_middle(&self.shelf.around(cited, 4), 12_000),
        )
    }
}

fn one(rank: usize, h: &Hypothesis, c: &Confirmation) -> Value {
    let cited = h.evidence.iter().take(CITATIONS).map(|cited| {
        let mut value = json!({"file": cited.file, "line": cited.lines.start(), "text": shown(cited.text.trim(), 160)});
        if let Some(said) = cited.corrected_from {
            value["corrected_from"] = json!(said);
        }
        value
    });
    let confirm = match &h.experiment {
        Experiment::RunTest(name) => json!({"run_test": shown(name, 300)}),
        Experiment::Search { pattern, file } => {
            json!({"search": {"pattern": pattern.to_string(), "file": file}})
        }
    };
    let mut value = json!({
        "rank": rank,
        "likelihood": h.likelihood,
        "title": shown(&h.title, 200),
        "mechanism": shown(&h.mechanism, 1_000),
        "evidence": cited.collect::<Vec<_>>(),
        "confirm": confirm,
        "expect_if_true": h.expect_if_true,
        "expect_if_false": h.expect_if_false,
        "outcome": c.outcome().map_or_else(|| String::from("could_not_run"), |outcome| outcome.to_string()),
        "outcome_detail": shown(c.detail(), 300),
        "as_predicted": c.as_predicted(),
    });
    if !c.telling().against.is_empty() {
        value["tells_from"] = json!(c.telling().against);
    }
    if let Some(why) = &c.telling().nothing {
        value["told_nothing"] = json!(why);
    }
    for (key, text) in [("because", &h.because), ("command", &h.command)] {
        if !text.is_empty() {
            value[key] = json!(shown(text, 400));
        }
    }
    if h.evidence.len() > CITATIONS {
        value["evidence_left_out"] = json!(h.evidence.len() - CITATIONS);
    }
    value
}

pub(super) fn repro(repro: &Repro) -> Value {
    let mut value = json!({
        "cmd": shown(repro.command(), 500),
        "exit_code": repro.exit_code(),
        "matched_error": repro.is_reproduced(),
        "showed": repro.showed(),
        "output": words::cut_middle(&words::plain(repro.output()), OUTPUT),
    });
    if !repro.notes().is_empty() {
        value["notes"] = json!(repro.notes());
    }
    value
}

fn headline(h: &Hypothesis) -> String {
    shown(
        if h.title.is_empty() {
            &h.mechanism
        } else {
            &h.title
        },
        160,
    )
}

/// Text from outside: no escapes, and no more than this.
fn shown(text: &str, max: usize) -> String {
    words::cut_end(&words::plain(text), max).into_owned()
}
