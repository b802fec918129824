//! Shows the passports of the models in the chains. Models that were never measured are not
//! mentioned.

use std::collections::BTreeMap;

use super::{DoctorContext, Finding};
use supervisor_gym::passport::PassportBook;
use supervisor_settings::{CallOverrides, PolicyMode, Routing};

pub(super) async fn passports(context: &DoctorContext) -> Vec<Finding> {
    let (Ok(settings), Ok(state)) = (&context.settings, &context.state) else {
        return Vec::new();
    };
    let (routing, book) = (&settings.routing, PassportBook::of(state));
    let mut models: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for skill in Routing::known_skills() {
        let Ok(route) = routing.route(skill, &CallOverrides::default()) else {
            continue;
        };
        for tier in route.chain.tiers() {
            models.entry(tier.name.to_string()).or_default().push(skill);
        }
    }
    let mut found = Vec::new();
    for (model, skills) in models {
        let passport = match book.newest(&model) {
            Ok(Some(passport)) => passport,
            Ok(None) => continue,
            Err(error) => {
                found.push(Finding::warn(
                    error.to_string(),
                    "remove the file, and the model is measured anew",
                ));
                continue;
            }
        };
        let unfit: Vec<String> = skills
            .iter()
            .filter_map(|skill| passport.unfit_for(skill))
            .collect();
        let line = format!("{model}: {}", passport.summary());
        found.push(match unfit.first() {
            None => Finding::ok(line),
            Some(why) if routing.policy.mode == PolicyMode::Learned => {
                Finding::ok(format!("{line}; asked last or not at all: {why}"))
            }
            Some(why) => Finding::warn(
                format!("{line}; hardly ever right: {why}"),
                "leave it out of the chain, or set `mode = \"learned\"` in [policy], which skips it by itself",
            ),
        });
    }
    found
}
