//! Adds measurements to a report: the models' passports and what the learned policy decides from
//! them.

use super::report::ExplainReport;
use supervisor_engine::policy::{Draw, TaskClass, choose, policy_tiers};
use supervisor_gym::passport::PassportBook;
use supervisor_settings::{Choices, PolicyMode, Routing};

/// Adds the passports and, for each known class of tasks, the usual decision of the policy.
pub(super) fn add_measurements(
    report: &mut ExplainReport,
    skills: &[Choices],
    routing: &Routing,
    book: &PassportBook,
) {
    for (shown, choices) in report.skills.iter_mut().zip(skills) {
        let mut classes: Vec<TaskClass> = Vec::new();
        for tier in shown
            .chain
            .value
            .iter_mut()
            .chain(shown.verifier.value.iter_mut())
        {
            let Ok(Some(passport)) = book.newest(&tier.model) else {
                continue;
            };
            tier.passport = Some(passport.summary());
            let of_skill = passport
                .classes
                .iter()
                .map(|record| &record.class)
                .filter(|c| c.skill == shown.skill);
            classes.extend(of_skill.cloned());
        }
        if routing.policy.mode == PolicyMode::Static || choices.route.pinned {
            continue;
        }
        classes.sort();
        classes.dedup();
        let decide = |class: &TaskClass| {
            choose(
                &policy_tiers(&choices.route, book, class),
                class,
                routing.policy.minute_usd,
                Draw::Mean,
            )
        };
        shown.policy = classes
            .iter()
            .filter_map(decide)
            .map(|decision| decision.sentence)
            .collect();
        if shown.policy.is_empty() {
            shown.policy = vec![String::from(
                "learned: nothing is known yet, so the chain is walked as it is written",
            )];
        }
    }
}
