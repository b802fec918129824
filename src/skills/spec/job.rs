//! One answer, looked at: what it is, whether it holds, and only then the document.

use std::fs;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::brief::Brief;
use super::target::Before;
use super::{details, render};
use crate::backend::Edits;
use crate::engine::Cause;
use crate::engine::evidence::Evidence;
use crate::engine::job::{Checked, Exhibit, Failed, Held, Job, Keeps, Question, Shown, Work};
use crate::engine::result::Status;
use crate::engine::site::SiteError;
use crate::routing::Tier;
use crate::skills::common::{Gates, named};
use crate::verify::specification::{self, Answer, Examined, Route, Specification};
use crate::verify::{Check, Proof};
use crate::words;
use crate::workspace::{Edit, EditError};

/// A specification, ready to be asked for.
pub(super) struct Spec {
    pub(super) brief: Brief,
    pub(super) root: PathBuf,
    /// The arguments that the next call shares with this one.
    pub(super) next: Value,
}

/// Bytes of requirements that a verifier is shown beside the answer.
const MATERIAL: usize = 16 * 1024;

impl Job for Spec {
    fn discipline(&self) -> &str {
        &self.brief.discipline
    }

    fn task(&self) -> &str {
        &self.brief.task
    }

    fn question(&self, tier: &Tier, _: Edits, evidence: &Evidence) -> Question {
        self.brief.question(tier, evidence)
    }

    fn check<'a>(&'a self, mut work: Work<'a>) -> BoxFuture<'a, Checked> {
        Box::pin(async move {
            let mut gates = Gates::default();
            let judged = self.judge(&mut work, &mut gates);
            gates.close(judged)
        })
    }
}

impl Spec {
    fn judge(&self, work: &mut Work<'_>, gates: &mut Gates) -> Result<Held, Failed> {
        untouched(work, gates)?;
        let answer = specification::read(&work.reply.body)
            .map_err(|check| gates.refuse_with(check.id(), Cause::Rejected, check.detail(), check.detail()))?;
        gates.pass("shape", "the answer has the form asked for");
        match answer {
            Answer::Questions(questions) => {
                let check = specification::examine_questions(&questions, &self.brief.requirements);
                gates.all(&[check])?;
                Ok(self.asks(&questions))
            }
            Answer::Draft(draft) => {
                work.checking("the specification");
                let Examined { mut checks, specification } = draft.examine(&self.brief.requirements);
                gates.all(&checks)?;
                let spec = specification.expect("all checks held");
                let document = render::markdown(&spec, &self.brief.requirements);
                checks.push(self.write(work, gates, &document)?);
                let proof =
                    Proof::of_checks(checks).map_err(|why| gates.refuse("proof", Cause::Rejected, why.to_string()))?;
                Ok(self.holds(&spec, document, proof))
            }
        }
    }

    /// Puts the document in its place and reads it back.
    fn write(&self, work: &mut Work<'_>, gates: &mut Gates, document: &str) -> Result<Check, Failed> {
        let path = &self.brief.target.path;
        let name = path.to_string_lossy().into_owned();
        let contents = document.as_bytes().to_vec();
        let edit = match self.brief.target.before {
            Before::Nothing => Edit::Create { path: name, contents },
            Before::Document(_) => Edit::Replace { path: name, contents },
        };
        let only_this =
            |other: &Path| if other == path { Ok(()) } else { Err(String::from("only the document is written")) };
        match work.site.apply(&[edit], &only_this) {
            Ok(_) => {}
            Err(SiteError::Edit(
                error @ (EditError::Exists { .. } | EditError::Missing { .. } | EditError::Changed { .. }),
            )) => {
                let why = format!("somebody else worked on {} during the call: {error}; call again", named(path));
                return Err(gates.refuse("written", Cause::CannotVerify, why));
            }
            Err(error) => return Err(gates.broken(&error)),
        }
        let check = specification::written(document.as_bytes(), fs::read(self.root.join(path)));
        if !check.passed() {
            return Err(gates.refuse("written", Cause::CannotVerify, format!("{}: {}", named(path), check.detail())));
        }
        gates.check(&check)?;
        Ok(check)
    }

    fn holds(&self, spec: &Specification, document: String, proof: Proof) -> Held {
        let path = &self.brief.target.path;
        let done = if self.brief.target.before == Before::Nothing { "written" } else { "updated" };
        let open = match spec.questions.len() {
            0 => String::new(),
            n => format!(", {}", words::count(n, "open question")),
        };
        let message = format!(
            "{} {done}: {}, each with a test; {} mapped, {}{open}{}",
            named(path),
            specification::criteria(spec.criteria.len()),
            words::count(spec.requirement_map.len(), "requirement"),
            words::count(spec.out_of_scope.len(), "exclusion"),
            unanswered(spec),
        );
        let mut next = self.next.clone();
        // What can be acted out is the easiest to begin with: a limit or a whole command is rarely one test.
        let scenario = spec.criteria.iter().find(|criterion| criterion.test.kind() == "scenario");
        if let Some(first) = scenario.or(spec.criteria.first()) {
            next["tool"] = json!("tdd_red");
            next["arguments"]["spec"] = json!(details::task(first));
        }
        Held {
            shown: Shown::Proven(proof),
            keeps: Keeps::Changes,
            status: Status::Pass,
            message,
            file_path: self.root.join(path).display().to_string(),
            runner_output: String::new(),
            gates: Vec::new(),
            details: details::of(spec, &document),
            next,
            exhibit: Exhibit::Words { answer: document, material: self.material() },
        }
    }

    /// Too vague: the questions are the answer, and nothing is written.
    fn asks(&self, questions: &[specification::Question]) -> Held {
        let listed: Vec<String> = questions
            .iter()
            .enumerate()
            .map(|(n, q)| {
                let text = q.question.split_whitespace().collect::<Vec<_>>().join(" ");
                format!("{}. ({}) {}", n + 1, q.requirement.trim(), words::cut_end(&words::plain(&text), 400))
            })
            .collect();
        let listed = listed.join("\n");
        let message = format!(
            "the requirements are too vague to specify, so nothing was written; answer {} and call again with the answers \
             in `requirements` or `context`:\n{listed}",
            if questions.len() == 1 {
                String::from("this question")
            } else {
                format!("these {} questions", questions.len())
            },
        );
        Held {
            shown: Shown::Unproven { why: String::from("questions are no specification; nothing was written") },
            keeps: Keeps::Nothing,
            status: Status::Error,
            message,
            file_path: String::new(),
            runner_output: String::new(),
            gates: Vec::new(),
            details: details::of_questions(questions, &self.brief.requirements),
            next: Value::Null,
            exhibit: Exhibit::Words {
                answer: format!("No specification was written, because these questions are open:\n{listed}"),
                material: self.material(),
            },
        }
    }

    fn material(&self) -> String {
        format!("The requirements, by id:\n{}", self.brief.listed(MATERIAL))
    }
}

/// The requirements that no criterion answers, so that nobody thinks that all of them will be built.
fn unanswered(spec: &Specification) -> String {
    let without = |is: fn(&Route) -> bool| {
        let routes = spec.requirement_map.iter().filter(|route| route.criteria.is_empty() && is(route));
        routes.map(|route| route.requirement.as_str()).collect::<Vec<_>>()
    };
    let told = [
        ("waiting for an answer", without(|r| !r.questions.is_empty())),
        ("left out", without(|r| r.questions.is_empty() && !r.out_of_scope.is_empty())),
        ("taken as background", without(|r| r.background)),
    ];
    let told = told.iter().filter(|(_, ids)| !ids.is_empty());
    told.map(|(what, ids)| format!("; {what}: {}", ids.join(", "))).collect()
}

/// The server writes; an agent that did is not believed in anything else either.
fn untouched(work: &Work<'_>, gates: &mut Gates) -> Result<(), Failed> {
    let changed: Vec<String> = work.changed.changes.iter().map(|change| named(&change.path)).collect();
    if work.edits == Edits::InPlace && !changed.is_empty() {
        let shown = changed.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
        let why = format!(
            "this may not be touched here: {shown}; answer with the specification as data, the server writes it"
        );
        return Err(gates.refuse("untouched", Cause::Tampered, why));
    }
    gates.pass("untouched", "the worker changed nothing");
    Ok(())
}
