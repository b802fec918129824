//! The `spec` skill: checks one answer and, if it passes, writes the document.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::brief::SpecBrief;
use super::params::SpecParams;
use super::specification;
use super::specification::{
    ExaminedSpecification, RequirementRoute, Specification, SpecificationAnswer,
};
use super::target::{PreviousDocument, Target};
use super::{call, details, render};
use crate::common::{Gates, SHAPE, named};
use supervisor_engine::Cause;
use supervisor_engine::evidence::Evidence;
use supervisor_engine::project_access::SiteError;
use supervisor_engine::result::Status;
use supervisor_engine::skill::{
    Access, Preparation, PreparedCall, Question, RefusedCall, Skill, TierUnfit,
};
use supervisor_engine::work::{
    AcceptedWork, KeepPolicy, RefusedWork, SubmittedWork, Verification, VerifierMaterial,
};
use supervisor_models::Edits;
use supervisor_settings::Tier;
use supervisor_text::words;
use supervisor_verify::{Check, Flags, Proof};
use supervisor_workspace::{Edit, EditError};

/// A prepared `spec` call.
pub(super) struct SpecSkill {
    pub(super) brief: SpecBrief,
    pub(super) root: PathBuf,
    /// The arguments of the suggested next call.
    pub(super) next: Value,
}

/// Max bytes of requirements shown to a verifier.
const MAX_MATERIAL_BYTES: usize = 16 * 1024;

impl Skill for SpecSkill {
    type Params = SpecParams;
    type Shown = ();

    fn access(params: &SpecParams) -> Result<Access, RefusedCall> {
        // A bad root is reported when the workspace is opened.
        if let Ok(root) = Path::new(&params.project_root).canonicalize() {
            Target::resolve(&root, &params.output(), params.overwrite)?;
        }
        Ok(Access::Edit)
    }

    async fn prepare(
        params: &SpecParams,
        call: &mut Preparation<'_>,
    ) -> Result<PreparedCall<Self>, RefusedCall> {
        call::prepare(params, call)
    }

    fn ask(
        &self,
        tier: &Tier,
        _: Edits,
        evidence: &Evidence,
    ) -> Result<(Vec<Question>, ()), TierUnfit> {
        Ok((vec![self.brief.question(tier, evidence)], ()))
    }

    async fn check(
        &self,
        mut work: SubmittedWork<'_>,
        (): (),
    ) -> Result<AcceptedWork, RefusedWork> {
        let (mut gates, replies) = (Gates::default(), work.replies);
        let judged = self.judge(&mut work, &mut gates);
        gates.close_text(judged, replies)
    }
}

impl SpecSkill {
    fn judge(
        &self,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
    ) -> Result<AcceptedWork, RefusedWork> {
        check_untouched(work, gates)?;
        let answer = specification::read(&work.reply().body).map_err(|check| {
            gates.refuse_with(check.id(), Cause::Rejected, check.detail(), check.detail())
        })?;
        gates.pass(SHAPE, "the answer has the form asked for");
        match answer {
            SpecificationAnswer::Questions(questions) => {
                let check = specification::examine_questions(&questions, &self.brief.requirements);
                gates.check_all(&[check])?;
                Ok(self.accept_questions(&questions))
            }
            SpecificationAnswer::Draft(draft) => {
                work.checking("the specification");
                let ExaminedSpecification {
                    mut checks,
                    flags,
                    specification,
                } = draft.examine(&self.brief.requirements);
                gates.check_all(&checks)?;
                let spec = specification.expect("all checks passed");
                let document = render::markdown(&spec, &self.brief.requirements);
                checks.push(self.write(work, gates, &document)?);
                let proof = Proof::of_checks(checks)
                    .map_err(|why| gates.refuse("proof", Cause::Rejected, why.to_string()))?;
                Ok(AcceptedWork {
                    flags,
                    ..self.accept_specification(&spec, document, proof)
                })
            }
        }
    }

    /// Writes the document and reads it back.
    fn write(
        &self,
        work: &mut SubmittedWork<'_>,
        gates: &mut Gates,
        document: &str,
    ) -> Result<Check, RefusedWork> {
        let path = &self.brief.target.path;
        let name = path.to_string_lossy().into_owned();
        let contents = document.as_bytes().to_vec();
        let edit = match self.brief.target.previous {
            PreviousDocument::None => Edit::Create {
                path: name,
                contents,
            },
            PreviousDocument::Document(_) => Edit::Replace {
                path: name,
                contents,
            },
        };
        let only_this = |other: &Path| {
            if other == path {
                Ok(())
            } else {
                Err(String::from("only the document is written"))
            }
        };
        match work.site.apply(&[edit], &only_this) {
            Ok(_) => {}
            Err(SiteError::Edit(
                error @ (EditError::Exists { .. }
                | EditError::Missing { .. }
                | EditError::Changed { .. }),
            )) => {
                let why = format!(
                    "another process changed {} during the call: {error}; call again",
                    named(path)
                );
                return Err(gates.refuse("written", Cause::CannotVerify, why));
            }
            Err(error) => return gates.site(Err(error)),
        }
        let check = specification::check_written(
            document.as_bytes(),
            fs::read(work.site.files_root().join(path)),
        );
        if !check.passed() {
            return Err(gates.refuse(
                "written",
                Cause::CannotVerify,
                format!("{}: {}", named(path), check.detail()),
            ));
        }
        gates.check(&check)?;
        Ok(check)
    }

    fn accept_specification(
        &self,
        spec: &Specification,
        document: String,
        proof: Proof,
    ) -> AcceptedWork {
        let path = &self.brief.target.path;
        let verb = if self.brief.target.previous == PreviousDocument::None {
            "written"
        } else {
            "updated"
        };
        let open = match spec.questions.len() {
            0 => String::new(),
            n => format!(", {}", words::count(n, "open question")),
        };
        let message = format!(
            "{} {verb}: {}, each with a test; {} mapped, {}{open}{}",
            named(path),
            crate::common::count_criteria(spec.criteria.len()),
            words::count(spec.requirement_map.len(), "requirement"),
            words::count(spec.out_of_scope.len(), "exclusion"),
            unanswered(spec),
        );
        let mut next = self.next.clone();
        // Start with a scenario: a limit or a whole command is rarely a single test.
        let scenario = spec
            .criteria
            .iter()
            .find(|criterion| criterion.test.kind() == "scenario");
        if let Some(first) = scenario.or(spec.criteria.first()) {
            next["tool"] = json!("tdd_red");
            next["arguments"]["spec"] = json!(details::task(first));
        }
        AcceptedWork {
            verification: Verification::Proven(proof),
            keeps: KeepPolicy::Changes,
            status: Status::Pass,
            message,
            file_path: self.root.join(path).display().to_string(),
            runner_output: String::new(),
            gates: Vec::new(),
            flags: Flags::default(),
            details: details::of(spec, &document),
            next,
            exhibit: VerifierMaterial::Text {
                answer: document,
                material: self.material(),
            },
        }
    }

    /// The requirements are too vague: returns the questions and writes nothing.
    fn accept_questions(&self, questions: &[specification::OpenQuestion]) -> AcceptedWork {
        let listed: Vec<String> = questions
            .iter()
            .enumerate()
            .map(|(n, q)| {
                let text = q.question.split_whitespace().collect::<Vec<_>>().join(" ");
                format!(
                    "{}. ({}) {}",
                    n + 1,
                    q.requirement.trim(),
                    words::cut_end(&words::plain(&text), 400)
                )
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
        AcceptedWork {
            verification: Verification::Unproven {
                why: String::from("questions are no specification; nothing was written"),
            },
            keeps: KeepPolicy::Nothing,
            status: Status::Error,
            message,
            file_path: String::new(),
            runner_output: String::new(),
            gates: Vec::new(),
            flags: Flags::default(),
            details: details::of_questions(questions, &self.brief.requirements),
            next: Value::Null,
            exhibit: VerifierMaterial::Text {
                answer: format!(
                    "No specification was written, because these questions are open:\n{listed}"
                ),
                material: self.material(),
            },
        }
    }

    fn material(&self) -> String {
        format!(
            "The requirements, by id:\n{}",
            self.brief.listed(MAX_MATERIAL_BYTES)
        )
    }
}

/// Lists the requirements that no criterion covers, so that the reader does not expect them to be
/// built.
fn unanswered(spec: &Specification) -> String {
    let without = |is: fn(&RequirementRoute) -> bool| {
        let routes = spec
            .requirement_map
            .iter()
            .filter(|route| route.criteria.is_empty() && is(route));
        routes
            .map(|route| route.requirement.as_str())
            .collect::<Vec<_>>()
    };
    let groups = [
        (
            "waiting for an answer",
            without(|r| !r.questions.is_empty()),
        ),
        (
            "left out",
            without(|r| r.questions.is_empty() && !r.out_of_scope.is_empty()),
        ),
        ("taken as background", without(|r| r.background)),
    ];
    let groups = groups.iter().filter(|(_, ids)| !ids.is_empty());
    groups
        .map(|(what, ids)| format!("; {what}: {}", ids.join(", ")))
        .collect()
}

/// Fails if the agent edited files. Only the server writes here, and an agent that wrote anyway is
/// not trusted.
fn check_untouched(work: &SubmittedWork<'_>, gates: &mut Gates) -> Result<(), RefusedWork> {
    let changed: Vec<String> = work
        .changed
        .changes
        .iter()
        .map(|change| named(&change.path))
        .collect();
    if work.edits == Edits::InPlace && !changed.is_empty() {
        let shown = changed
            .iter()
            .take(8)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        let why = format!(
            "this may not be touched here: {shown}; answer with the specification as data, the server writes it"
        );
        return Err(gates.refuse("untouched", Cause::Tampered, why));
    }
    gates.pass("untouched", "the worker changed nothing");
    Ok(())
}
