//! The checks, one function each. Each returns its findings with hints.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{DoctorContext, Finding, Fix};
use supervisor_models::availability::{agent_hint, key_hint, login_hint, reach_hint};
use supervisor_models::chain_status::{ChainStatus, TierStatus};
use supervisor_models::discover::SMALL_WINDOW;
use supervisor_models::facts_of;
use supervisor_models::installed::{InstalledAgent, Login, NotUsable};
use supervisor_models::model_list;
use supervisor_models::model_list::ModelListError;
use supervisor_models::probe::{AddressRole, CLOUD_URL_VAR, ProbedAddress};
use supervisor_process::{CommandSpec, End, StartError, which};
use supervisor_settings::{Origin, RoutingError, TierKind};
use supervisor_text::words;
use supervisor_verify::detect;

/// Fallback hint.
const KEYS_HINT: &str = "docs/configuration.md has every key";

pub(super) async fn routing(context: &DoctorContext) -> Vec<Finding> {
    let settings = match &context.settings {
        Ok(settings) => settings,
        Err(RoutingError::Invalid(problems)) => {
            let finding = |problem: &supervisor_settings::Problem| {
                let bare = supervisor_settings::Problem {
                    hint: None,
                    ..problem.clone()
                };
                let hint = problem.hint.clone().unwrap_or_else(|| KEYS_HINT.into());
                Finding::fail(bare.to_string(), hint)
            };
            return problems.iter().map(finding).collect();
        }
        Err(other) => return vec![Finding::fail(other.to_string(), KEYS_HINT)],
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

pub(super) async fn agents(context: &DoctorContext) -> Vec<Finding> {
    let Some((availability, walks)) = context.availability().await else {
        return vec![];
    };
    let finding = |(backend, installed): (&String, &Result<InstalledAgent, NotUsable>)| {
        let is_affected = |step: &TierStatus| step.tier.backend.name == *backend;
        let suffix = disabled_models_suffix(walks, is_affected);
        match installed {
            Err(trouble) => missing_finding(
                walks,
                is_affected,
                &trouble.to_string(),
                agent_hint(backend, trouble),
            ),
            Ok(InstalledAgent {
                program,
                version,
                login,
            }) => {
                let program_info = format!("{version} at {}", program.display());
                match login {
                    Login::In { method, .. } if login.is_first_party() => {
                        Finding::ok(format!("{program_info}, logged in ({method})"))
                    }
                    Login::In { provider, .. } => {
                        Finding::ok(format!("{program_info}, through {provider}"))
                    }
                    Login::NotNeeded => {
                        Finding::ok(format!("{program_info}, for the server of `{backend}`"))
                    }
                    Login::Out if suffix.is_empty() => {
                        Finding::ok(format!("{program_info}, not logged in; no chain needs it"))
                    }
                    Login::Out => Finding::warn(
                        format!("{program_info}, not logged in{suffix}"),
                        login_hint(backend),
                    ),
                    Login::Unknown => Finding::warn(
                        format!("{program_info}, does not say whether it is logged in"),
                        "update it, or run it once by hand",
                    ),
                }
            }
        }
    };
    availability.agents.iter().map(finding).collect()
}

pub(super) async fn cloud(context: &DoctorContext) -> Vec<Finding> {
    check_reachability(context, AddressRole::Cloud, |_| format!("${CLOUD_URL_VAR}")).await
}

pub(super) async fn gateways(context: &DoctorContext) -> Vec<Finding> {
    check_reachability(context, AddressRole::Gateway, |name| {
        format!("`backends.{name}.base_url`")
    })
    .await
}

/// Checks that the recorded answers of replay backends are available.
pub(super) async fn recorded(context: &DoctorContext) -> Vec<Finding> {
    let Some((_, walks)) = context.availability().await else {
        return vec![];
    };
    let mut found: Vec<Finding> = Vec::new();
    for step in steps(walks).filter(|step| facts_of(step.tier.backend.kind).role().is_none()) {
        let is_affected = |other: &TierStatus| other.tier.backend.name == step.tier.backend.name;
        let finding = match &step.outage {
            Some(out) => Finding::warn(
                format!("{}{}", out.why, disabled_models_suffix(walks, is_affected)),
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

/// Checks that each gateway offers the models that the chains use.
pub(super) async fn models(context: &DoctorContext) -> Vec<Finding> {
    let Some((availability, walks)) = context.availability().await else {
        return vec![];
    };
    let mut found = Vec::new();
    for (name, gateway) in &availability.gateways {
        let gateway_steps = steps(walks).filter(|step| step.tier.backend.name == *name);
        let requested: BTreeSet<_> = gateway_steps
            .map(|step| step.tier.model.id.as_str())
            .collect();
        // It serves others' models, if at all: no chain misses it.
        if requested.is_empty()
            && gateway
                .offered
                .as_ref()
                .is_err_and(ModelListError::is_setup)
        {
            continue;
        }
        found.push(match &gateway.offered {
            Err(error) if error.is_setup() => {
                let suffix = disabled_models_suffix(walks, |step| step.tier.backend.name == *name);
                Finding::warn(format!("`{name}`: {error}{suffix}"), key_hint(name, error))
            }
            Err(error) => Finding::warn(
                format!("`{name}` gave no list of models: {error}"),
                format!("see the log of the server at `backends.{name}.base_url`"),
            ),
            Ok(offered) => {
                let missing: Vec<_> = requested.iter().filter(|id| !model_list::offers(offered, id)).copied().collect();
                if missing.is_empty() {
                    let all = if requested.len() == 1 { "the" } else { "all" };
                    let models = words::count(requested.len(), "model");
                    Finding::ok(format!("`{name}` offers {all} {models} that chains ask of it"))
                } else {
                    Finding::warn(
                        format!("`{name}` does not offer {}", join_names(&missing)),
                        "add them to the gateway, take them out of the chains, or set `id` in [models.\"…\"]",
                    )
                }
            }
        });
    }
    found
}

/// Warns about local models that take in too little to work.
pub(super) async fn windows(context: &DoctorContext) -> Vec<Finding> {
    let Some((_, walks)) = context.availability().await else {
        return vec![];
    };
    let narrow: BTreeSet<(&str, u32)> = steps(walks)
        .filter(|step| step.outage.is_none() && step.tier.backend.tier == TierKind::Local)
        .map(|step| (step.tier.name.0.as_str(), step.tier.model.context))
        .filter(|(_, tokens)| *tokens < SMALL_WINDOW)
        .collect();
    let finding = |(name, tokens): (&str, u32)| {
        Finding::warn(
            format!("`{name}` has a context window of {tokens} tokens, too small for most files"),
            "give it more at the server (Ollama: OLLAMA_CONTEXT_LENGTH=32768), then run `supervisor init --force`",
        )
        .fixed_by(Fix::Init)
    };
    narrow.into_iter().map(finding).collect()
}

/// Lists the models that are loaded now.
pub(super) async fn loaded(context: &DoctorContext) -> Vec<Finding> {
    let Some((availability, walks)) = context.availability().await else {
        return vec![];
    };
    let Some(server) = availability
        .endpoints
        .iter()
        .find(|p| p.role == AddressRole::Warm)
    else {
        return vec![Finding::ok("not checked: [warm] is switched off")];
    };
    let name = &server.name;
    let is_local =
        |step: &TierStatus| facts_of(step.tier.backend.kind).role() == Some(AddressRole::Gateway);
    vec![match (&server.answer, &availability.loaded) {
        (Err(why), _) if !steps(walks).any(is_local) => Finding::ok(format!(
            "`{name}`{}: {why}; no chain needs it",
            at_url(server)
        )),
        (Err(_), _) if is_spared(context, walks, "warm.url") => {
            Finding::ok("not checked: no server is set up in [warm]")
        }
        (Err(why), _) => Finding::warn(
            format!(
                "`{name}`{}: {why}, so slow first answers cannot be explained",
                at_url(server)
            ),
            format!(
                "{}, or set `warm.kind` to \"none\"",
                reach_hint(AddressRole::Warm, why, "`warm.url`")
            ),
        ),
        (Ok(_), Some(Ok(models))) if models.is_empty() => {
            Finding::ok(format!("`{name}`{} has no model loaded", at_url(server)))
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
                at_url(server)
            ))
        }
        (Ok(_), Some(Err(ModelListError::KeyMissing { .. }))) => Finding::warn(
            format!(
                "`{name}`{} requires a key, and none can be set for it",
                at_url(server)
            ),
            "let it answer without one, or set `warm.kind` to \"none\"",
        ),
        (Ok(_), Some(Err(error))) => Finding::warn(
            format!("`{name}`{}: {error}", at_url(server)),
            "correct `warm.kind` and `warm.url`",
        ),
        (Ok(_), None) => Finding::warn(
            format!("`{name}`{} was not asked", at_url(server)),
            "run it again",
        ),
    }]
}

/// Checks that the work of local tiers can be verified.
pub(super) async fn verifier(context: &DoctorContext) -> Vec<Finding> {
    let Some((_, walks)) = context.availability().await else {
        return vec![];
    };
    let mut verifiers: Vec<&TierStatus> = Vec::new();
    for verifier_step in walks.iter().filter_map(|walk| walk.verifier.as_ref()) {
        if !verifiers
            .iter()
            .any(|known| known.tier.name == verifier_step.tier.name)
        {
            verifiers.push(verifier_step);
        }
    }
    if verifiers.is_empty() {
        return vec![Finding::ok("none: tests and other checks decide alone")];
    }
    let finding = |verifier_step: &TierStatus| match &verifier_step.outage {
        None => Finding::ok(format!(
            "`{}` reviews the work of local models",
            verifier_step.tier.name
        )),
        Some(out) => Finding::warn(
            format!(
                "`{}` cannot be reached, so nothing reviews the work of local models: {}",
                verifier_step.tier.name, out.why
            ),
            format!(
                "{}, or set `verifier` to \"none\" to rely on tests alone",
                out.hint
            ),
        ),
    };
    verifiers.into_iter().map(finding).collect()
}

/// Checks for git, which says which files are ignored.
pub(super) async fn git(context: &DoctorContext) -> Vec<Finding> {
    let mut spec = CommandSpec::new(["git", "--version"], "/");
    spec.env = context.probe_config.env.vars().clone();
    spec.env.retain(|name, _| name == "PATH" || name == "HOME");
    spec.limit = Duration::from_secs(10);
    let output = context
        .probe_config
        .launcher
        .run(spec, &CancellationToken::new())
        .await;
    let missing = "install it: without git, ignored files cannot be told apart";
    vec![match output.end {
        End::Exited(0) => Finding::ok(
            output
                .stdout
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

/// Shows how the project in the current directory would be tested.
pub(super) async fn tests(context: &DoctorContext) -> Vec<Finding> {
    let suite = match detect(&context.project, None, None) {
        Ok(suite) => suite,
        Err(_) => {
            return vec![Finding::warn(
                "none recognised in the current directory",
                "run it in a project; where nothing is recognised, calls name the command as `test_cmd`",
            )];
        }
    };
    let found = format!("`{}`, because of {}", suite.command(), suite.found_by());
    let path = context
        .probe_config
        .env
        .vars()
        .get(OsStr::new("PATH"))
        .map(OsString::as_os_str);
    let program = suite.argv().first().map(String::as_str).unwrap_or_default();
    // A path belongs to the project; a bare name must be on the PATH.
    if !program.contains('/') && which(program, path, None).is_err() {
        return vec![Finding::warn(
            format!("{found}, but `{program}` is not on the PATH"),
            format!("install `{program}`"),
        )];
    }
    vec![Finding::ok(found)]
}

/// Summary: which skills can start.
pub(super) async fn chains(context: &DoctorContext) -> Vec<Finding> {
    let Some((_, walks)) = context.availability().await else {
        return vec![Finding::fail(
            "no call can succeed until the settings are fixed",
            "see the lines above",
        )];
    };
    let blocked: Vec<_> = walks
        .iter()
        .filter(|walk| !walk.can_start())
        .map(|walk| walk.skill)
        .collect();
    let complete = walks
        .iter()
        .filter(|walk| walk.tiers.iter().all(|step| step.outage.is_none()))
        .count();
    let start = walks.len() - blocked.len();
    vec![if blocked.is_empty() {
        let all = words::count(walks.len(), "skill");
        match complete {
            0 => Finding::ok(format!(
                "all {all} can start; in each, some models cannot be reached"
            )),
            n if n == walks.len() => Finding::ok(format!(
                "all {all} can start, and every model can be reached"
            )),
            n => Finding::ok(format!(
                "all {all} can start; every model can be reached in {n} of them"
            )),
        }
    } else if start > 0 {
        Finding::warn(
            format!(
                "{start} of {} can start; not {}",
                words::count(walks.len(), "skill"),
                join_names(&blocked)
            ),
            "see the lines above",
        )
    } else {
        Finding::fail(
            "no model can be reached, so every call would fail",
            "start a model server, or install `claude` and log in; then run `supervisor init`",
        )
        .fixed_by(Fix::Init)
    }]
}

async fn check_reachability(
    context: &DoctorContext,
    role: AddressRole,
    setting: impl Fn(&str) -> String,
) -> Vec<Finding> {
    let Some((availability, walks)) = context.availability().await else {
        return vec![];
    };
    let finding = |probed: &ProbedAddress| {
        let name = &probed.name;
        match &probed.answer {
            Ok(took) => Finding::ok(format!(
                "`{name}`{} answers in {} ms",
                at_url(probed),
                took.as_millis()
            )),
            Err(_)
                if role == AddressRole::Gateway
                    && is_spared(context, walks, &format!("backends.{name}.base_url")) =>
            {
                Finding::ok(format!(
                    "`{name}` is not set up, and other models can be reached"
                ))
            }
            Err(why) => {
                let is_affected = |step: &TierStatus| match role {
                    AddressRole::Cloud => {
                        facts_of(step.tier.backend.kind).role() == Some(AddressRole::Cloud)
                    }
                    AddressRole::Gateway | AddressRole::Warm => step.tier.backend.name == *name,
                };
                missing_finding(
                    walks,
                    is_affected,
                    &format!("`{name}`{}: {why}", at_url(probed)),
                    reach_hint(role, why, &setting(name)),
                )
            }
        }
    };
    availability
        .endpoints
        .iter()
        .filter(|p| p.role == role)
        .map(finding)
        .collect()
}

/// Whether nobody has set this address, and every skill can start without it.
fn is_spared(context: &DoctorContext, walks: &[ChainStatus], key: &str) -> bool {
    let is_built_in = context.settings.as_ref().is_ok_and(|settings| {
        let origin = settings.routing.origins.get(key);
        matches!(origin, None | Some(Origin::BuiltIn))
    });
    is_built_in && walks.iter().all(ChainStatus::can_start)
}

fn at_url(probed: &ProbedAddress) -> String {
    probed
        .url
        .as_ref()
        .map(|url| format!(" at {url}"))
        .unwrap_or_default()
}

fn steps(walks: &[ChainStatus]) -> impl Iterator<Item = &TierStatus> {
    walks
        .iter()
        .flat_map(|walk| walk.tiers.iter().chain(&walk.verifier))
}

/// A warning about something missing and the models it disables, or an `ok` if no chain needs it.
fn missing_finding(
    walks: &[ChainStatus],
    is_affected: impl Fn(&TierStatus) -> bool,
    found: &str,
    hint: String,
) -> Finding {
    if steps(walks).any(&is_affected) {
        Finding::warn(
            format!("{found}{}", disabled_models_suffix(walks, is_affected)),
            hint,
        )
    } else {
        Finding::ok(format!("{found}; no chain needs it"))
    }
}

/// Text such as `, so `a` and `b` cannot be used` about the affected models that cannot be used; empty if
/// there are none.
fn disabled_models_suffix(
    walks: &[ChainStatus],
    is_affected: impl Fn(&TierStatus) -> bool,
) -> String {
    let out: BTreeSet<_> = steps(walks)
        .filter(|s| s.outage.is_some() && is_affected(s))
        .map(|s| s.tier.name.0.as_str())
        .collect();
    let names: Vec<_> = out.into_iter().collect();
    match names.len() {
        0 => String::new(),
        _ => format!(", so {} cannot be used", join_names(&names)),
    }
}

/// Lists the first few names and counts the rest: `` `a`, `b` and `c` ``, `` `a`, `b`, `c` and 5
/// more ``.
fn join_names(names: &[&str]) -> String {
    const MAX_NAMES: usize = 4;
    let mut parts: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    if parts.len() > MAX_NAMES {
        parts.truncate(MAX_NAMES - 1);
        parts.push(format!("{} more", names.len() - parts.len()));
    }
    match parts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => parts.concat(),
    }
}
