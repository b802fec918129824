//! Checks the requirement map. Each requirement must lead to an existing criterion, exclusion or
//! question; a sentence that asks for nothing may be marked as background. Gaps are rejected; a map
//! that seems to avoid the work is flagged.

use super::draft::{RequirementMapping, SpecificationDraft};
use super::requirements::RequirementItems;
use super::testable::CriterionTest;
use super::{RequirementRoute, check_from, quoted};
use crate::common::prose::Prose;
use supervisor_text::words;
use supervisor_verify::{Check, Flags};

/// The targets of each requirement, and the check that each has one.
pub(super) fn examine(
    draft: &SpecificationDraft,
    tests: &[Option<CriterionTest>],
    requirements: &RequirementItems,
    flags: &mut Flags,
) -> (Vec<RequirementRoute>, Check) {
    let mut faults = Vec::new();
    let mut routes: Vec<RequirementRoute> = requirements
        .iter()
        .map(|(id, _)| RequirementRoute {
            requirement: id,
            ..RequirementRoute::default()
        })
        .collect();
    let mapper = RequirementMapper {
        draft,
        tests,
        requirements,
    };
    for given in &draft.requirement_map {
        if let Err(why) = mapper.add_route(given, &mut routes, flags) {
            faults.push(why);
        }
    }
    for (route, (id, text)) in routes.iter().zip(requirements.iter()) {
        if route.is_unmapped()
            && !draft
                .requirement_map
                .iter()
                .any(|m| m.requirement.trim().eq_ignore_ascii_case(&id))
        {
            faults.push(format!(
                "requirement {id} ({}) is not in `requirement_map`; map it to a criterion, an exclusion or a question",
                quoted(text)
            ));
        }
    }
    if faults.is_empty() {
        faults.extend(find_evasions(draft, &routes, requirements, flags));
    }
    let check = check_from("mapped", &faults, || {
        let count =
            |is: fn(&RequirementRoute) -> bool| routes.iter().filter(|route| is(route)).count();
        let background = match count(|r| r.background) {
            0 => String::new(),
            n => format!(", {n} called background"),
        };
        format!(
            "{} mapped: {} to criteria, {} to exclusions, {} to questions{background}",
            words::count(routes.len(), "requirement"),
            count(|r| !r.criteria.is_empty()),
            count(|r| !r.out_of_scope.is_empty()),
            count(|r| !r.questions.is_empty())
        )
    });
    (routes, check)
}

/// A single criterion that answers this many requirements is a heading rather than a criterion.
const CATCH_ALL_MIN: usize = 4;

/// Looks for maps that are complete but avoid the work. Returns faults and raises flags.
fn find_evasions(
    draft: &SpecificationDraft,
    routes: &[RequirementRoute],
    requirements: &RequirementItems,
    flags: &mut Flags,
) -> Vec<String> {
    let mut faults = Vec::new();
    let ids = |of: &[&RequirementRoute]| {
        of.iter()
            .take(6)
            .map(|r| r.requirement.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let background: Vec<&RequirementRoute> = routes.iter().filter(|r| r.background).collect();
    if background.len() * 2 > routes.len() {
        faults.push(format!(
            "{} of {} sentences are called background ({}); most of what is written there asks for something",
            background.len(),
            routes.len(),
            ids(&background)
        ));
    }
    if !draft.criteria.is_empty() && routes.iter().all(|r| r.criteria.is_empty()) {
        faults.push(String::from(
            "no requirement leads to a criterion, so nothing that was asked for is specified; write criteria that answer \
             them or, if all are too vague, leave every list but `questions` empty",
        ));
        return faults;
    }
    let is_wanted = |n: &usize| !routes[*n].background && !requirements.asks_for_exclusion(*n);
    let wanted: Vec<&RequirementRoute> = (0..routes.len())
        .filter(is_wanted)
        .map(|n| &routes[n])
        .collect();
    let excluded: Vec<&RequirementRoute> = wanted
        .iter()
        .copied()
        .filter(|r| r.criteria.is_empty() && r.questions.is_empty())
        .collect();
    if excluded.len() * 3 > wanted.len() * 2 {
        let why = format!(
            "{} of {} requirements are put out of scope",
            excluded.len(),
            wanted.len()
        );
        flags.raise("mostly_excluded", ids(&excluded), why);
    }
    let answered: Vec<&RequirementRoute> =
        routes.iter().filter(|r| !r.criteria.is_empty()).collect();
    if let ([only], true) = (draft.criteria.as_slice(), answered.len() >= CATCH_ALL_MIN) {
        let why = format!(
            "alone answers for {} requirements ({})",
            answered.len(),
            ids(&answered)
        );
        flags.raise(
            "one_for_all",
            format!("criterion {}", quoted(only.id.trim())),
            why,
        );
    }
    faults
}

struct RequirementMapper<'a> {
    draft: &'a SpecificationDraft,
    tests: &'a [Option<CriterionTest>],
    requirements: &'a RequirementItems,
}

impl RequirementMapper<'_> {
    fn add_route(
        &self,
        given: &RequirementMapping,
        routes: &mut [RequirementRoute],
        flags: &mut Flags,
    ) -> Result<(), String> {
        let Some(n) = self.requirements.find(&given.requirement) else {
            let range = self.requirements.range();
            return Err(format!(
                "`requirement_map` names {}; the requirements are {range}",
                quoted(&given.requirement)
            ));
        };
        let (id, text) = (
            &routes[n].requirement,
            self.requirements.iter().nth(n).map_or("", |(_, text)| text),
        );
        let mut target_texts = Vec::new();
        let mut criteria = Vec::new();
        for named in &given.criteria {
            let found = self.draft.criteria.iter().zip(self.tests);
            let mut found = found.filter(|(c, _)| c.id.trim().eq_ignore_ascii_case(named.trim()));
            let Some((criterion, test)) = found.next() else {
                let named = quoted(named);
                return Err(format!(
                    "{id} is mapped to {named}, but there is no such criterion; name one that exists"
                ));
            };
            target_texts.push(criterion.text.clone());
            target_texts.extend(test.as_ref().map(ToString::to_string));
            criteria.push(criterion.id.trim().to_owned());
        }
        if let Some(index) = given.out_of_scope {
            let Some(exclusion) = index
                .checked_sub(1)
                .and_then(|n| self.draft.out_of_scope.get(n))
            else {
                return Err(Self::no_such_entry(
                    id,
                    "out_of_scope",
                    index,
                    self.draft.out_of_scope.len(),
                ));
            };
            target_texts.push(exclusion.clone());
        }
        if let Some(index) = given.question {
            let Some(question) = index
                .checked_sub(1)
                .and_then(|n| self.draft.questions.get(n))
            else {
                return Err(Self::no_such_entry(
                    id,
                    "questions",
                    index,
                    self.draft.questions.len(),
                ));
            };
            if self.requirements.find(&question.requirement) != Some(n) {
                let about = quoted(&question.requirement);
                return Err(format!(
                    "{id} is mapped to question {index}, which is about {about}; name its own question"
                ));
            }
            // A question names its requirement, so it is related to it.
            target_texts.push(text.to_owned());
        }
        if target_texts.is_empty() && given.background {
            if self.requirements.is_listed(n) {
                return Err(format!(
                    "{id} ({}) is called background, but it is an item of a list; map it to a criterion, an exclusion or a question",
                    quoted(text)
                ));
            }
            routes[n].background = true;
            return Ok(());
        }
        if target_texts.is_empty() {
            return Err(format!(
                "{id} ({}) is mapped to nothing; name a criterion, an exclusion or a question",
                quoted(text)
            ));
        }
        let requirement = Prose::new(text);
        if !requirement.shares_word(&Prose::new(&target_texts.join(" ")))
            && !self.is_explained_elsewhere(&requirement)
        {
            let own = requirement.forms().take(6).collect::<Vec<_>>().join(", ");
            let better = self
                .criterion_mentioning(&requirement)
                .map(|id| format!("; {} does", quoted(id)))
                .unwrap_or_default();
            let why = format!("is mapped to what has none of its words ({own}){better}");
            flags.raise("unrelated", id.clone(), why);
        }
        let route = &mut routes[n];
        route.background = false;
        route.criteria.extend(
            criteria
                .into_iter()
                .filter(|c| !route.criteria.contains(c))
                .collect::<Vec<_>>(),
        );
        route.out_of_scope.extend(
            given
                .out_of_scope
                .filter(|n| !route.out_of_scope.contains(n)),
        );
        route
            .questions
            .extend(given.question.filter(|n| !route.questions.contains(n)));
        Ok(())
    }

    /// Whether the reasons, risks or constraints share a word with the requirement. Then a
    /// criterion may answer it in other words, unless another criterion uses its words.
    fn is_explained_elsewhere(&self, requirement: &Prose) -> bool {
        let draft = self.draft;
        let reasons = draft
            .approach
            .iter()
            .flat_map(|d| [&d.decision, &d.rationale]);
        let risks = draft.risks.iter().flat_map(|r| [&r.risk, &r.mitigation]);
        let mut other_texts = reasons.chain(risks).chain(&draft.constraints);
        self.criterion_mentioning(requirement).is_none()
            && other_texts.any(|text| requirement.shares_word(&Prose::new(text)))
    }

    /// The first criterion that shares a word with the requirement.
    fn criterion_mentioning(&self, requirement: &Prose) -> Option<&str> {
        let all = self.draft.criteria.iter().zip(self.tests);
        let mut texts = all.map(|(c, test)| {
            (
                c,
                format!(
                    "{} {}",
                    c.text,
                    test.as_ref()
                        .map(CriterionTest::to_string)
                        .unwrap_or_default()
                ),
            )
        });
        texts
            .find(|(_, texts)| requirement.shares_word(&Prose::new(texts)))
            .map(|(c, _)| c.id.trim())
    }

    fn no_such_entry(id: &str, list: &str, index: usize, has: usize) -> String {
        format!("{id} is mapped to number {index} of `{list}`, which has {has}, counted from 1")
    }
}

impl RequirementRoute {
    fn is_unmapped(&self) -> bool {
        self.criteria.is_empty()
            && self.out_of_scope.is_empty()
            && self.questions.is_empty()
            && !self.background
    }
}
