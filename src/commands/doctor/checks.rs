//! What is looked at, one function per check. Each says what it found in a line of its own, and what helps.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Case, Finding};
use supervisor_models::facts_of;
use supervisor_models::installed::{InstalledAgent, Login, NotUsable};
use supervisor_models::loaded;
use supervisor_models::loaded::LookError;
use supervisor_models::probe::{AddressRole, CLOUD_URL_VAR, ProbedAddress};
use supervisor_models::walk::{ChainWalk, ChainWalkStep};
use supervisor_models::world::{agent_hint, key_hint, login_hint, reach_hint};
use supervisor_process::{End, Spec, StartError, which};
use supervisor_settings::{Origin, RoutingError};
use supervisor_text::words;
use supervisor_verify::detect;

/// What helps where nothing better is known.
const KEYS: &str = "docs/configuration.md has every key";

pub(super) async fn routing(case: &Case) -> Vec<Finding> {
    let settings = match &case.settings {
        Ok(settings) => settings,
        Err(RoutingError::Invalid(problems)) => {
            let finding = |problem: &supervisor_settings::Problem| {
                let bare = supervisor_settings::Problem {
                    hint: None,
                    ..problem.clone()
                };
                let hint = problem.hint.clone().unwrap_or_else(|| KEYS.into());
                Finding::fail(bare.to_string(), hint)
            };
            return problems.iter().map(finding).collect();
        }
        Err(other) => return vec![Finding::fail(other.to_string(), KEYS)],
    };
    let variables: BTreeSet<_> = settings
        .routing
        .origins
        .values()
        .filter_map(|origin| {
            if let Origin::Variable(name) = origin {
                Some(name)
            } else {
                None
            }
        })
        .collect();
    let mut sources = vec!["built-in".to_owned()];
    sources.extend(settings.file.iter().map(|file| file.display().to_string()));
    if !variables.is_empty() {
        let names: Vec<_> = variables.iter().map(|name| format!("${name}")).collect();
        sources.push(names.join(", "));
    }
    let backends = words::count(settings.routing.backends.len(), "backend");
    let chains = words::count(
        settings
            .routing
            .skills
            .values()
            .filter(|s| s.chain.is_some())
            .count(),
        "chain",
    );
    let mut found = vec![Finding::ok(format!(
        "{backends}, {chains} ({})",
        sources.join("; ")
    ))];
    found.extend(
        settings
            .warnings
            .iter()
            .map(|warning| Finding::warn(warning.to_string(), "")),
    );
    found
}

pub(super) async fn agents(case: &Case) -> Vec<Finding> {
    let Some((world, walks)) = case.world().await else {
        return vec![];
    };
    let finding = |(backend, seen): (&String, &Result<InstalledAgent, NotUsable>)| {
        let mine = |step: &ChainWalkStep| step.tier.backend.name == *backend;
        let so = so_out(walks, mine);
        match seen {
            Err(trouble) => missed(
                walks,
                mine,
                &trouble.to_string(),
                agent_hint(backend, trouble),
            ),
            Ok(InstalledAgent {
                program,
                version,
                login,
            }) => {
                let at = format!("{version} at {}", program.display());
                match login {
                    Login::In { method, .. } if login.is_first_party() => {
                        Finding::ok(format!("{at}, logged in ({method})"))
                    }
                    Login::In { provider, .. } => {
                        Finding::ok(format!("{at}, by way of {provider}"))
                    }
                    Login::Out => {
                        Finding::warn(format!("{at}, not logged in{so}"), login_hint(backend))
                    }
                    Login::Unknown => Finding::warn(
                        format!("{at}, does not say whether it is logged in"),
                        "update it, or run it once by hand",
                    ),
                }
            }
        }
    };
    world.agents.iter().map(finding).collect()
}

pub(super) async fn cloud(case: &Case) -> Vec<Finding> {
    reach(case, AddressRole::Cloud, |_| format!("${CLOUD_URL_VAR}")).await
}

pub(super) async fn gateways(case: &Case) -> Vec<Finding> {
    reach(case, AddressRole::Gateway, |name| {
        format!("`backends.{name}.base_url`")
    })
    .await
}

/// Are the recorded answers there that chains are to be given again?
pub(super) async fn recorded(case: &Case) -> Vec<Finding> {
    let Some((_, walks)) = case.world().await else {
        return vec![];
    };
    let mut found: Vec<Finding> = Vec::new();
    for step in steps(walks).filter(|step| facts_of(step.tier.backend.kind).role().is_none()) {
        let mine = |other: &ChainWalkStep| other.tier.backend.name == step.tier.backend.name;
        let finding = match &step.out {
            Some(out) => Finding::warn(
                format!("{}{}", out.why, so_out(walks, mine)),
                out.hint.clone(),
            ),
            None => Finding::ok(format!("`{}` answers from a file", step.tier.backend.name)),
        };
        if !found.iter().any(|known| known.found == finding.found) {
            found.push(finding);
        }
    }
    found
}

/// Does each gateway offer what the chains ask of it?
pub(super) async fn models(case: &Case) -> Vec<Finding> {
    let Some((world, walks)) = case.world().await else {
        return vec![];
    };
    let mut found = Vec::new();
    for (name, gateway) in &world.gateways {
        let mine = steps(walks).filter(|step| step.tier.backend.name == *name);
        let asked: BTreeSet<_> = mine.map(|step| step.tier.model.id.as_str()).collect();
        found.push(match &gateway.offered {
            Err(error) if error.is_setup() => {
                let so = so_out(walks, |step| step.tier.backend.name == *name);
                Finding::warn(format!("`{name}`: {error}{so}"), key_hint(name, error))
            }
            Err(error) => Finding::warn(
                format!("`{name}` gave no list of models: {error}"),
                format!("see the log of the server at `backends.{name}.base_url`"),
            ),
            Ok(offered) => {
                let missing: Vec<_> = asked.iter().filter(|id| !loaded::offers(offered, id)).copied().collect();
                if missing.is_empty() {
                    let all = if asked.len() == 1 { "the" } else { "all" };
                    let models = words::count(asked.len(), "model");
                    Finding::ok(format!("`{name}` offers {all} {models} that chains ask of it"))
                } else {
                    Finding::warn(
                        format!("`{name}` does not offer {}", some_of(&missing)),
                        "add them to the gateway, take them out of the chains, or set `id` in [models.\"…\"]",
                    )
                }
            }
        });
    }
    found
}

/// What is in memory now.
pub(super) async fn loaded(case: &Case) -> Vec<Finding> {
    let Some((world, walks)) = case.world().await else {
        return vec![];
    };
    let Some(server) = world.endpoints.iter().find(|p| p.role == AddressRole::Warm) else {
        return vec![Finding::ok("not asked, as [warm] has it")];
    };
    let name = &server.name;
    let local = |step: &ChainWalkStep| {
        facts_of(step.tier.backend.kind).role() == Some(AddressRole::Gateway)
    };
    vec![match (&server.answer, &world.loaded) {
        (Err(why), _) if !steps(walks).any(local) => {
            Finding::ok(format!("`{name}`{}: {why}; no chain needs it", at(server)))
        }
        (Err(why), _) => Finding::warn(
            format!(
                "`{name}`{}: {why}, so a cold start cannot be told from a slow model",
                at(server)
            ),
            format!(
                "{}, or set `warm.kind` to \"none\"",
                reach_hint(AddressRole::Warm, why, "`warm.url`")
            ),
        ),
        (Ok(_), Some(Ok(models))) if models.is_empty() => {
            Finding::ok(format!("nothing, says `{name}`{}", at(server)))
        }
        (Ok(_), Some(Ok(models))) => {
            let names: Vec<_> = models
                .iter()
                .map(|m| {
                    if m.is_ready() {
                        m.id.clone()
                    } else {
                        format!("{} ({})", m.id, m.state)
                    }
                })
                .collect();
            Finding::ok(format!(
                "{}, says `{name}`{}",
                words::cut_end(&names.join(", "), 300),
                at(server)
            ))
        }
        (Ok(_), Some(Err(LookError::KeyMissing { .. }))) => Finding::warn(
            format!(
                "`{name}`{} wants a key, and none can be given for it",
                at(server)
            ),
            "let it answer without one, or set `warm.kind` to \"none\"",
        ),
        (Ok(_), Some(Err(error))) => Finding::warn(
            format!("`{name}`{}: {error}", at(server)),
            "correct `warm.kind` and `warm.url`",
        ),
        (Ok(_), None) => Finding::warn(
            format!("`{name}`{} was not asked", at(server)),
            "run it again",
        ),
    }]
}

/// Can what a local tier makes be judged?
pub(super) async fn verifier(case: &Case) -> Vec<Finding> {
    let Some((_, walks)) = case.world().await else {
        return vec![];
    };
    let mut judges: Vec<&ChainWalkStep> = Vec::new();
    for judge in walks.iter().filter_map(|walk| walk.verifier.as_ref()) {
        if !judges
            .iter()
            .any(|known| known.tier.name == judge.tier.name)
        {
            judges.push(judge);
        }
    }
    if judges.is_empty() {
        return vec![Finding::ok("none: gates alone decide")];
    }
    let finding = |judge: &ChainWalkStep| match &judge.out {
        None => Finding::ok(format!(
            "`{}` judges what local tiers make",
            judge.tier.name
        )),
        Some(out) => Finding::warn(
            format!(
                "`{}` is out, so the work of local tiers is not judged: {}",
                judge.tier.name, out.why
            ),
            format!(
                "{}, or set `verifier` to \"none\": gates alone decide then",
                out.hint
            ),
        ),
    };
    judges.into_iter().map(finding).collect()
}

/// Tells which files are ignored.
pub(super) async fn git(case: &Case) -> Vec<Finding> {
    let mut spec = Spec::new(["git", "--version"], "/");
    spec.env = case.look.env.vars().clone();
    spec.env.retain(|name, _| name == "PATH" || name == "HOME");
    spec.limit = Duration::from_secs(10);
    let seen = case
        .look
        .launcher
        .run(spec, &CancellationToken::new())
        .await;
    let missing = "install it: it tells which files are ignored";
    vec![match seen.end {
        End::Exited(0) => Finding::ok(
            seen.stdout
                .text()
                .trim()
                .trim_start_matches("git version ")
                .to_owned(),
        ),
        End::CouldNotStart(StartError::NotFound(_)) => Finding::warn("not on the PATH", missing),
        End::CouldNotStart(why) => Finding::warn(why.to_string(), missing),
        End::Exited(code) => Finding::warn(format!("`git --version` ended with {code}"), missing),
        End::Signalled(signal) => Finding::warn(
            format!("`git --version` was ended by signal {signal}"),
            missing,
        ),
        End::TimedOut | End::Cancelled => Finding::warn("`git --version` gave no answer", missing),
    }]
}

/// How would the project in the current directory be tested?
pub(super) async fn tests(case: &Case) -> Vec<Finding> {
    let suite = match detect(&case.project, None, None) {
        Ok(suite) => suite,
        Err(_) => {
            return vec![Finding::warn(
                "none recognised in the current directory",
                "run it in a project; where nothing is recognised, calls name the command as `test_cmd`",
            )];
        }
    };
    let found = format!("`{}`, because of {}", suite.command(), suite.because());
    let path = case
        .look
        .env
        .vars()
        .get(OsStr::new("PATH"))
        .map(OsString::as_os_str);
    let program = suite.argv().first().map(String::as_str).unwrap_or_default();
    // A path is the project's own affair; a name must be found.
    if !program.contains('/') && which(program, path, None).is_err() {
        return vec![Finding::warn(
            format!("{found}, but `{program}` is not on the PATH"),
            format!("install `{program}`"),
        )];
    }
    vec![Finding::ok(found)]
}

/// The sum of it all: which skills can begin?
pub(super) async fn chains(case: &Case) -> Vec<Finding> {
    let Some((_, walks)) = case.world().await else {
        return vec![Finding::fail(
            "no call can succeed before the routing is fixed",
            "see the lines above",
        )];
    };
    let stuck: Vec<_> = walks
        .iter()
        .filter(|walk| !walk.can_start())
        .map(|walk| walk.skill)
        .collect();
    let whole = walks
        .iter()
        .filter(|walk| walk.tiers.iter().all(|step| step.out.is_none()))
        .count();
    let start = walks.len() - stuck.len();
    vec![if stuck.is_empty() {
        let all = words::count(walks.len(), "skill");
        match whole {
            0 => Finding::ok(format!("all {all} can start, none with every tier")),
            n if n == walks.len() => Finding::ok(format!("all {all} can start, with every tier")),
            n => Finding::ok(format!("all {all} can start, {n} with every tier")),
        }
    } else if start > 0 {
        Finding::warn(
            format!(
                "{start} of {} can start; not {}",
                words::count(walks.len(), "skill"),
                some_of(&stuck)
            ),
            "see the lines above",
        )
    } else {
        Finding::fail(
            "no skill has a tier that can be walked now, so no call can succeed",
            "one tier is enough to begin: start a model server, or install `claude` and log in; then `supervisor init` writes the settings",
        )
    }]
}

async fn reach(case: &Case, role: AddressRole, setting: impl Fn(&str) -> String) -> Vec<Finding> {
    let Some((world, walks)) = case.world().await else {
        return vec![];
    };
    let finding = |probed: &ProbedAddress| {
        let name = &probed.name;
        match &probed.answer {
            Ok(took) => Finding::ok(format!(
                "`{name}`{} answers in {} ms",
                at(probed),
                took.as_millis()
            )),
            Err(why) => {
                let mine = |step: &ChainWalkStep| match role {
                    AddressRole::Cloud => {
                        facts_of(step.tier.backend.kind).role() == Some(AddressRole::Cloud)
                    }
                    AddressRole::Gateway | AddressRole::Warm => step.tier.backend.name == *name,
                };
                missed(
                    walks,
                    mine,
                    &format!("`{name}`{}: {why}", at(probed)),
                    reach_hint(role, why, &setting(name)),
                )
            }
        }
    };
    world
        .endpoints
        .iter()
        .filter(|p| p.role == role)
        .map(finding)
        .collect()
}

fn at(probed: &ProbedAddress) -> String {
    probed
        .url
        .as_ref()
        .map(|url| format!(" at {url}"))
        .unwrap_or_default()
}

fn steps(walks: &[ChainWalk]) -> impl Iterator<Item = &ChainWalkStep> {
    walks
        .iter()
        .flat_map(|walk| walk.tiers.iter().chain(&walk.verifier))
}

/// Something is not there: a warning with what it takes away, unless nothing would use it.
fn missed(
    walks: &[ChainWalk],
    mine: impl Fn(&ChainWalkStep) -> bool,
    found: &str,
    hint: String,
) -> Finding {
    if steps(walks).any(&mine) {
        Finding::warn(format!("{found}{}", so_out(walks, mine)), hint)
    } else {
        Finding::ok(format!("{found}; no chain needs it"))
    }
}

/// `, so `a` and `b` are out`: the models that a trouble takes away; nothing if it takes none.
fn so_out(walks: &[ChainWalk], concerned: impl Fn(&ChainWalkStep) -> bool) -> String {
    let out: BTreeSet<_> = steps(walks)
        .filter(|s| s.out.is_some() && concerned(s))
        .map(|s| s.tier.name.0.as_str())
        .collect();
    let names: Vec<_> = out.into_iter().collect();
    match names.len() {
        0 => String::new(),
        1 => format!(", so {} is out", some_of(&names)),
        _ => format!(", so {} are out", some_of(&names)),
    }
}

/// The first few by name, the others by number: `` `a`, `b` and `c` ``, `` `a`, `b`, `c` and 5 more ``.
fn some_of(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    let mut parts: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    if parts.len() > SHOWN {
        parts.truncate(SHOWN - 1);
        parts.push(format!("{} more", names.len() - parts.len()));
    }
    match parts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => parts.concat(),
    }
}
