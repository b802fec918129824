//! Where did each requirement go? To a criterion, an exclusion or a question that exists; a sentence that asks for nothing
//! may be called background. The map is the model's claim; it is followed here, not believed. A map with gaps is refused,
//! one that seems to lead around the work is flagged.

use super::draft::{RequirementMapping, SpecificationDraft};
use super::requirements::RequirementItems;
use super::testable::CriterionTest;
use super::{RequirementRoute, quoted, verdict};
use supervisor_text::words;
use supervisor_text::words::lexicon::Prose;
use supervisor_verify::{Check, Flags};

/// The way of each requirement, and whether each has one.
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
    let map = Map {
        draft,
        tests,
        requirements,
    };
    for given in &draft.requirement_map {
        if let Err(why) = map.follow(given, &mut routes, flags) {
            faults.push(why);
        }
    }
    for (route, (id, text)) in routes.iter().zip(requirements.iter()) {
        if route.leads_nowhere()
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
        faults.extend(around(draft, &routes, requirements, flags));
    }
    let check = verdict("mapped", &faults, || {
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

/// One criterion cannot be met and not met; from this many requirements on it is a heading.
const ONE_FOR_ALL: usize = 4;

/// Each requirement has its way, but does the whole lead around the work?
fn around(
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
    let wanted = |n: &usize| !routes[*n].background && !requirements.declines(*n);
    let wanted: Vec<&RequirementRoute> = (0..routes.len())
        .filter(wanted)
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
    if let ([only], true) = (draft.criteria.as_slice(), answered.len() >= ONE_FOR_ALL) {
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

struct Map<'a> {
    draft: &'a SpecificationDraft,
    tests: &'a [Option<CriterionTest>],
    requirements: &'a RequirementItems,
}

impl Map<'_> {
    fn follow(
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
        let mut speaks = Vec::new();
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
            speaks.push(criterion.text.clone());
            speaks.extend(test.as_ref().map(ToString::to_string));
            criteria.push(criterion.id.trim().to_owned());
        }
        if let Some(index) = given.out_of_scope {
            let Some(exclusion) = index
                .checked_sub(1)
                .and_then(|n| self.draft.out_of_scope.get(n))
            else {
                return Err(Self::no_such(
                    id,
                    "out_of_scope",
                    index,
                    self.draft.out_of_scope.len(),
                ));
            };
            speaks.push(exclusion.clone());
        }
        if let Some(index) = given.question {
            let Some(asked) = index
                .checked_sub(1)
                .and_then(|n| self.draft.questions.get(n))
            else {
                return Err(Self::no_such(
                    id,
                    "questions",
                    index,
                    self.draft.questions.len(),
                ));
            };
            if self.requirements.find(&asked.requirement) != Some(n) {
                let about = quoted(&asked.requirement);
                return Err(format!(
                    "{id} is mapped to question {index}, which is about {about}; name its own question"
                ));
            }
            // It names the requirement itself, so it speaks of it.
            speaks.push(text.to_owned());
        }
        if speaks.is_empty() && given.background {
            if self.requirements.is_listed(n) {
                return Err(format!(
                    "{id} ({}) is called background, but it is an item of a list; map it to a criterion, an exclusion or a question",
                    quoted(text)
                ));
            }
            if let Some(word) = self.requirements.demand(n) {
                flags.raise(
                    "demand",
                    id.clone(),
                    format!(
                        "{} is called background, but it says `{word}`",
                        quoted(text)
                    ),
                );
            }
            routes[n].background = true;
            return Ok(());
        }
        if speaks.is_empty() {
            return Err(format!(
                "{id} ({}) is mapped to nothing; name a criterion, an exclusion or a question",
                quoted(text)
            ));
        }
        let asked = Prose::whole(text);
        if !asked.shares_a_word(&Prose::whole(&speaks.join(" ")))
            && !self.is_spoken_of_beside(&asked)
        {
            let own = asked
                .content()
                .take(6)
                .map(|word| word.form())
                .collect::<Vec<_>>()
                .join(", ");
            let better = self
                .speaking(&asked)
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

    /// Other words may answer a requirement; then the reasons say whose. Where a criterion says its words, the map is wrong.
    fn is_spoken_of_beside(&self, asked: &Prose) -> bool {
        let draft = self.draft;
        let reasons = draft
            .approach
            .iter()
            .flat_map(|d| [&d.decision, &d.rationale]);
        let risks = draft.risks.iter().flat_map(|r| [&r.risk, &r.mitigation]);
        let mut beside = reasons.chain(risks).chain(&draft.constraints);
        self.speaking(asked).is_none()
            && beside.any(|said| asked.shares_a_word(&Prose::whole(said)))
    }

    /// The first criterion that says one of the words.
    fn speaking(&self, asked: &Prose) -> Option<&str> {
        let all = self.draft.criteria.iter().zip(self.tests);
        let mut said = all.map(|(c, test)| {
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
        said.find(|(_, said)| asked.shares_a_word(&Prose::whole(said)))
            .map(|(c, _)| c.id.trim())
    }

    fn no_such(id: &str, list: &str, index: usize, has: usize) -> String {
        format!("{id} is mapped to number {index} of `{list}`, which has {has}, counted from 1")
    }
}

impl RequirementRoute {
    fn leads_nowhere(&self) -> bool {
        self.criteria.is_empty()
            && self.out_of_scope.is_empty()
            && self.questions.is_empty()
            && !self.background
    }
}
