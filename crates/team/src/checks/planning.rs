//! Checks of the plan: coverage of must-haves, size, and feasibility.

use super::super::check::CheckContext;
use super::super::definition::CheckDefinition;
use super::super::document::TeamDocument;
use super::super::plan::PipelinePlan;
use super::super::verdict::{CheckFinding, EvidenceLocation};
use supervisor_text::words;

fn plan_of(
    context: &CheckContext<'_>,
    check: &CheckDefinition,
) -> Result<PipelinePlan, CheckFinding> {
    context.sources(check, ["plan"])?;
    let plan = PipelinePlan::of(context.documents.of("plan"));
    match plan.broken.as_slice() {
        [] => Ok(plan),
        broken => Err(check.fail("the plan cannot be read as JSON", broken.to_vec())),
    }
}

/// Checks that every must-have requirement has a task.
pub(super) fn plan_coverage(context: &CheckContext<'_>, check: &CheckDefinition) -> CheckFinding {
    let plan_documents = match context.sources(check, ["plan"]) {
        Ok(documents) => documents,
        Err(missing) => return missing,
    };
    let musts = must_haves(context);
    if musts.is_empty() {
        return check.not_applicable("no requirement has priority Must");
    }
    let uncovered: Vec<_> = musts
        .iter()
        .filter(|(id, _)| !plan_documents.iter().any(|d| d.text.contains(id.as_str())))
        .collect();
    if uncovered.is_empty() {
        return check.pass(format!(
            "{} covered",
            words::count(musts.len(), "must-have")
        ));
    }
    let names = words::series(uncovered.iter().map(|(id, _)| id.as_str()), 8);
    let details = format!(
        "{} of {} must-haves without a task: {names}",
        uncovered.len(),
        musts.len()
    );
    check.fail(
        details,
        uncovered.into_iter().map(|(_, place)| place.clone()),
    )
}

/// Ids of requirements with priority Must, from their own files or from the table of the index.
fn must_haves(context: &CheckContext<'_>) -> Vec<(String, EvidenceLocation)> {
    let is_must = |text: &str| text.trim().to_lowercase().starts_with("must");
    let mut musts: Vec<(String, EvidenceLocation)> = Vec::new();
    let mut add = |id: String, place: EvidenceLocation| {
        if !musts.iter().any(|(known, _)| *known == id) {
            musts.push((id, place));
        }
    };
    for document in context.documents.of("requirements") {
        let at = |line, text: String| EvidenceLocation {
            file: document.path.clone(),
            line,
            text,
        };
        if document.front_text("priority").is_some_and(|p| is_must(&p))
            && let Some(id) = document
                .front_text("id")
                .or_else(|| requirement_id(&document.name))
        {
            add(
                id,
                at(document.line_with("priority:"), heading_of(document)),
            );
        }
        for row in &document.rows {
            if row.cell("priority").is_some_and(is_must)
                && let Some(id) = row.cell("id").and_then(requirement_id)
            {
                add(id, at(row.line, row.text()));
            }
        }
    }
    musts
}

fn heading_of(document: &TeamDocument) -> String {
    document
        .headings
        .first()
        .map_or_else(|| document.name.clone(), |heading| heading.title.clone())
}

/// `REQ-001` in `[REQ-001](REQ-001-login.md)` or `requirements/FR-001-login.md`.
fn requirement_id(text: &str) -> Option<String> {
    for prefix in ["REQ-", "NFR-", "FR-"] {
        let Some(at) = text.find(prefix) else {
            continue;
        };
        let id: String = text[at..]
            .chars()
            .take_while(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '-')
            .collect();
        return Some(id.trim_end_matches('-').to_owned())
            .filter(|id| id.ends_with(|c: char| c.is_ascii_digit()));
    }
    None
}

/// A plan's complexity label.
enum PlanSize {
    Low,
    Medium,
    High,
}

impl PlanSize {
    fn of_label(label: &str) -> Option<Self> {
        match label.trim().to_lowercase().as_str() {
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            _ => None,
        }
    }
}

/// Checks the complexity label: a small plan does not touch five modules, and a large one touches
/// more than one.
pub(super) fn complexity(context: &CheckContext<'_>, check: &CheckDefinition) -> CheckFinding {
    let plan = match plan_of(context, check) {
        Ok(plan) => plan,
        Err(finding) => return finding,
    };
    let (Some(label), modules) = (&plan.complexity, plan.modules().len()) else {
        return check.not_applicable("the plan states no `complexity`");
    };
    if modules == 0 {
        return check.not_applicable("the tasks name no modules or files");
    }
    let details = format!("{label} with {}", words::count(modules, "module"));
    match PlanSize::of_label(label) {
        None => check.warn(
            format!("complexity `{label}` is none of Low, Medium, High"),
            plan.place,
        ),
        Some(PlanSize::Low) if modules >= 5 => check.fail(details, plan.place),
        Some(PlanSize::High) if modules == 1 => check.fail(details, plan.place),
        Some(PlanSize::Low) if modules > 2 => check.warn(details, plan.place),
        Some(PlanSize::High) if modules < 5 => check.warn(details, plan.place),
        Some(_) => check.pass(details),
    }
}

/// Checks that the tasks can be ordered by their dependencies.
pub(super) fn dependency_chain(
    context: &CheckContext<'_>,
    check: &CheckDefinition,
) -> CheckFinding {
    let plan = match plan_of(context, check) {
        Ok(plan) => plan,
        Err(finding) => return finding,
    };
    if plan.tasks.is_empty() {
        return check.fail(
            "the plan has no tasks",
            [EvidenceLocation {
                file: context
                    .documents
                    .of("plan")
                    .first()
                    .map(|d| d.path.clone())
                    .unwrap_or_default(),
                line: 1,
                text: String::from("no tasks"),
            }],
        );
    }
    if let Some(cycle) = plan.cycle() {
        let places = plan
            .tasks
            .iter()
            .filter(|task| cycle.contains(&task.id.as_str()))
            .map(|task| task.place.clone());
        let round = cycle
            .iter()
            .chain(cycle.first())
            .copied()
            .collect::<Vec<_>>()
            .join(" → ");
        return check.fail(format!("cycle: {round}"), places);
    }
    let dangling = plan.dangling();
    if !dangling.is_empty() {
        let details = words::series(
            dangling
                .iter()
                .map(|(task, on)| format!("{} on {on}", task.id)),
            5,
        );
        return check.fail(
            format!("depends on what is not in the plan: {details}"),
            dangling.iter().map(|(t, _)| t.place.clone()),
        );
    }
    check.pass(format!(
        "{} in an order that works",
        words::count(plan.tasks.len(), "task")
    ))
}

/// Checks the execution method: an agent for small work, a command-line tool for the rest.
pub(super) fn execution_method(
    context: &CheckContext<'_>,
    check: &CheckDefinition,
) -> CheckFinding {
    let plan = match plan_of(context, check) {
        Ok(plan) => plan,
        Err(finding) => return finding,
    };
    let (Some(size), Some(method)) = (
        plan.complexity.as_deref().and_then(PlanSize::of_label),
        &plan.execution,
    ) else {
        return check
            .not_applicable("the plan states no `complexity` with a `recommended_execution`");
    };
    let is_agent = method.to_lowercase().contains("agent");
    let fits = match size {
        PlanSize::Low => is_agent,
        PlanSize::Medium | PlanSize::High => !is_agent,
    };
    let details = format!(
        "{method} for {} complexity",
        plan.complexity.unwrap_or_default()
    );
    if fits {
        check.pass(details)
    } else {
        check.warn(details, plan.place)
    }
}

/// Checks that the plan refers to the architecture.
pub(super) fn upstream_consumed(
    context: &CheckContext<'_>,
    check: &CheckDefinition,
) -> CheckFinding {
    let plan = match context.sources(check, ["plan"]) {
        Ok(plan) => plan,
        Err(missing) => return missing,
    };
    let architecture = context.documents.of("architecture");
    if architecture.is_empty() {
        return check.not_applicable("there is no architecture to refer to");
    }
    let ids = architecture.iter().filter_map(|d| d.front_text("id"));
    let names = architecture.iter().filter_map(|d| {
        d.name
            .rsplit('/')
            .next()?
            .strip_suffix(".md")
            .map(str::to_owned)
    });
    let references: Vec<String> = ids
        .chain(names)
        .filter(|reference| reference != "_index")
        .chain([String::from("architecture/")])
        .collect();
    let text = plan.iter().map(|d| d.text.as_str()).collect::<String>();
    let found = references
        .iter()
        .filter(|reference| text.contains(reference.as_str()))
        .count();
    if found > 0 {
        return check.pass(format!(
            "refers to {}",
            words::count(found, "architecture document")
        ));
    }
    let place = plan.first().map(|d| EvidenceLocation {
        file: d.path.clone(),
        line: 1,
        text: String::from("no reference"),
    });
    check.fail("the plan names no decision of the architecture", place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirement_ids_are_read_from_links_and_names() {
        assert_eq!(
            requirement_id("[REQ-001](REQ-001-login.md)").as_deref(),
            Some("REQ-001")
        );
        assert_eq!(
            requirement_id("requirements/NFR-SC-002-speed.md").as_deref(),
            Some("NFR-SC-002")
        );
        assert_eq!(requirement_id("FR-7").as_deref(), Some("FR-7"));
        assert_eq!(requirement_id("nothing"), None);
    }
}
