//! The chain of one call: this call > the skill > its family > the default, resolved anew each time.

use std::time::Duration;

use supervisor_settings::{
    BackendKind, CallOverrides, EditFormat, LoadedRouting, ModelName, Origin, RoutingError,
    Sources, TierKind, load,
};

use supervisor_test_support::settings_files::{config, names, with};

fn shipped() -> LoadedRouting {
    load(&Sources::built_in(supervisor_test_support::MODELS_TOML)).unwrap()
}

#[test]
fn built_in_chains_are_as_documented() {
    let qwen = "ollama/qwen3.6:27b";
    let with_claude = |local: &[&'static str], last: &'static str| {
        [local, &["haiku-text", "sonnet-text", last]].concat()
    };
    let tdd = || with_claude(&[qwen], "sonnet");
    for (skill, chain) in [
        ("tdd", tdd()),
        ("tdd_red", tdd()),
        ("tdd_green", tdd()),
        ("tdd_refactor", tdd()),
        (
            "review",
            with_claude(&["ollama/devstral-small-2", "ollama/gemma4"], "sonnet"),
        ),
        ("debug", with_claude(&["ollama/glm-4.7-flash"], "sonnet")),
        (
            "spec",
            with_claude(&["ollama/phi4", "ollama/gemma4"], "opus"),
        ),
        ("retrospective", tdd()),
        ("trainer", tdd()),
    ] {
        let route = shipped()
            .routing
            .route(skill, &CallOverrides::default())
            .unwrap();
        assert_eq!(names(&route), chain, "{skill}");
        assert!(!route.pinned);
        assert_eq!(route.verifier.unwrap().name.0, "sonnet");
        assert!(
            route.max_attempts as usize >= chain.len(),
            "{skill}: its last tier would never be asked"
        );
    }
    assert!(shipped().warnings.is_empty(), "{:?}", shipped().warnings);
}

#[test]
fn built_in_tier_has_backend_limit_and_window() {
    let route = shipped()
        .routing
        .route("tdd_green", &CallOverrides::default())
        .unwrap();
    let local = &route.chain.first;
    assert_eq!(
        (local.backend.kind, local.backend.tier),
        (BackendKind::Openai, TierKind::Local)
    );
    assert_eq!(
        local.backend.base_url.as_deref(),
        Some("http://localhost:4000")
    );
    assert_eq!(local.limit, Duration::from_secs(300));
    assert_eq!(local.model.id, "ollama/qwen3.6:27b");
    let agent = &route.chain.rest[0];
    assert_eq!(
        (agent.backend.kind, agent.backend.tier),
        (BackendKind::ClaudeCli, TierKind::Subagent)
    );
    assert_eq!(agent.limit, Duration::from_secs(600));
    assert_eq!(
        agent.backend.permission_mode.as_deref(),
        Some("acceptEdits")
    );
    assert_eq!(route.verifier.unwrap().limit, Duration::from_secs(60));
}

#[test]
fn model_override_replaces_chain_and_verifier() {
    for model in ["ollama/gemma4", "claude-opus-4-6", "opus"] {
        let call = CallOverrides {
            model: Some(model.into()),
            ..Default::default()
        };
        let route = shipped().routing.route("spec", &call).unwrap();
        assert_eq!(names(&route), [model]);
        assert!(route.pinned && route.verifier.is_none(), "{model}");
    }
}

#[test]
fn override_does_not_affect_later_calls() {
    let loaded = shipped();
    let pinned = CallOverrides {
        model: Some("ollama/phi4".into()),
        ..Default::default()
    };
    assert_eq!(
        names(&loaded.routing.route("spec", &pinned).unwrap()).len(),
        1
    );
    // The default never travels in the override: not naming the first model is not the same as naming it.
    assert_eq!(
        names(
            &loaded
                .routing
                .route("spec", &CallOverrides::default())
                .unwrap()
        )
        .len(),
        5
    );
}

#[test]
fn changed_chain_copy_affects_no_later_call() {
    let loaded = shipped();
    let mut route = loaded
        .routing
        .route("review", &CallOverrides::default())
        .unwrap();
    route.chain.rest.clear();
    assert_eq!(
        names(
            &loaded
                .routing
                .route("review", &CallOverrides::default())
                .unwrap()
        )
        .len(),
        5
    );
}

#[test]
fn empty_chain_is_the_default_chain() {
    let loaded = config("default_chain = [\"opus\"]\n[skills.review]\nchain = []\n").unwrap();
    let route = loaded
        .routing
        .route("review", &CallOverrides::default())
        .unwrap();
    assert_eq!(names(&route), ["opus"]);
    let by_variable = with(
        "default_chain = [\"opus\"]\n",
        &[("SUPERVISOR_SKILLS__REVIEW__CHAIN", "[]")],
    )
    .unwrap();
    let route = by_variable
        .routing
        .route("review", &CallOverrides::default())
        .unwrap();
    assert_eq!(names(&route), ["opus"]);
}

#[test]
fn unserved_override_lists_served_models() {
    let call = CallOverrides {
        model: Some("gpt-5".into()),
        ..Default::default()
    };
    let error = shipped().routing.route("review", &call).unwrap_err();
    assert!(matches!(error, RoutingError::UnknownModel { .. }));
    let text = error.to_string();
    assert!(
        text.contains("`gpt-5`") && text.contains("`ollama/*`") && text.contains("`claude-*`"),
        "{text}"
    );
}

#[test]
fn skill_family_provides_chain_or_default() {
    let loaded = config(
        r#"
        default_chain = ["opus"]
        [backends.lab]
        kind = "openai"
        tier = "managed"
        base_url = "http://lab:1/"
        models = ["lab/*"]
        [skills.tdd_red]
        chain = ["lab/red"]
        [skills.tdd]
        max_attempts = 7
        limit_s = 12.5
        [skills.tdd_green]
        max_attempts = 2
        verifier = "none"
        "#,
    )
    .unwrap();
    let route = |skill| {
        loaded
            .routing
            .route(skill, &CallOverrides::default())
            .unwrap()
    };
    assert_eq!(names(&route("tdd_red")), ["lab/red"]);
    assert_eq!(
        route("tdd_red").chain.first.backend.base_url.as_deref(),
        Some("http://lab:1")
    );
    assert_eq!(route("tdd_red").max_attempts, 7);
    assert_eq!(route("tdd_green").max_attempts, 2);
    assert_eq!(
        route("tdd_green").chain.first.limit,
        Duration::from_millis(12_500)
    );
    assert!(route("tdd_green").verifier.is_none() && !route("tdd_green").pinned);
    assert!(route("tdd_red").verifier.is_some());
}

#[test]
fn unlisted_skill_uses_default_chain() {
    let mut loaded = shipped();
    loaded.routing.skills.remove("review");
    let choices = loaded
        .routing
        .choices("review", &CallOverrides::default())
        .unwrap();
    assert_eq!(
        names(&choices.route),
        ["ollama/qwen3.6:27b", "haiku-text", "sonnet-text", "sonnet"]
    );
    assert_eq!(choices.chain.key, "default_chain");
}

#[test]
fn call_beats_skill_beats_model_beats_tier() {
    let loaded = config(
        r#"
        [models."ollama/phi4"]
        limit_s = 20
        [skills.debug]
        chain = ["ollama/phi4", "ollama/gemma4"]
        [skills.spec]
        chain = ["ollama/phi4"]
        limit_s = 30
        "#,
    )
    .unwrap();
    let limits = |skill: &str, call: &CallOverrides| -> Vec<u64> {
        loaded
            .routing
            .route(skill, call)
            .unwrap()
            .chain
            .tiers()
            .map(|t| t.limit.as_secs())
            .collect()
    };
    let call = CallOverrides {
        timeout: Some(Duration::from_secs(5)),
        ..Default::default()
    };
    assert_eq!(limits("debug", &CallOverrides::default()), [20, 300]);
    assert_eq!(limits("spec", &CallOverrides::default()), [30]);
    assert_eq!(limits("spec", &call), [5]);
    assert_eq!(limits("debug", &call), [5, 5]);
}

#[test]
fn samples_of_call_beat_those_of_skill_and_model() {
    let loaded = config(
        r#"
        [models."ollama/phi4"]
        samples = 4
        [models."ollama/gemma4"]
        samples = "auto"
        [skills.debug]
        chain = ["ollama/phi4", "ollama/gemma4", "opus"]
        [skills.spec]
        chain = ["ollama/phi4"]
        samples = 2
        "#,
    )
    .unwrap();
    let samples = |skill: &str, call: &CallOverrides| -> Vec<String> {
        let route = loaded.routing.route(skill, call).unwrap();
        route.chain.tiers().map(|t| t.samples.to_string()).collect()
    };
    let call = |samples| CallOverrides {
        samples: Some(samples),
        ..Default::default()
    };
    assert_eq!(
        samples("debug", &CallOverrides::default()),
        ["4", "auto", "1"]
    );
    assert_eq!(samples("spec", &CallOverrides::default()), ["2"]);
    assert_eq!(samples("debug", &call(3)), ["3", "3", "3"]);
    for wrong in [0, 17, 50] {
        let error = loaded.routing.route("spec", &call(wrong)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("`samples`") && error.contains("from 1 to 16"),
            "{error}"
        );
    }
    let text = "[models.opus]\nsamples = 50\n";
    let error = config(text).unwrap_err().to_string();
    assert!(error.contains("a whole number from 1 to 16"), "{error}");
}

#[test]
fn call_overrides_are_used_or_refused() {
    let call = CallOverrides {
        max_attempts: Some(1),
        budget_usd: Some(0.25),
        ..Default::default()
    };
    let choices = shipped().routing.choices("spec", &call).unwrap();
    assert_eq!(
        (choices.route.max_attempts, choices.route.budget_usd),
        (1, Some(0.25))
    );
    assert_eq!(choices.route.budget.usd, Some(0.25));
    assert_eq!(choices.max_attempts.key, "skills.spec.max_attempts");
    assert_eq!(
        choices.max_attempts.origin,
        Origin::Call("max_attempts".into())
    );
    assert_eq!(choices.budget_usd.origin, Origin::Call("budget_usd".into()));
    assert_eq!(choices.chain.origin, Origin::BuiltIn);

    for (call, field) in [
        (
            CallOverrides {
                model: Some(" ".into()),
                ..Default::default()
            },
            "`model`",
        ),
        (
            CallOverrides {
                timeout: Some(Duration::ZERO),
                ..Default::default()
            },
            "`timeout_s`",
        ),
        (
            CallOverrides {
                max_attempts: Some(0),
                ..Default::default()
            },
            "`max_attempts`",
        ),
        (
            CallOverrides {
                budget_usd: Some(-1.0),
                ..Default::default()
            },
            "`budget_usd`",
        ),
        (
            CallOverrides {
                budget_usd: Some(f64::NAN),
                ..Default::default()
            },
            "`budget_usd`",
        ),
    ] {
        let error = shipped()
            .routing
            .route("spec", &call)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(field), "{error}");
    }
}

#[test]
fn unknown_skill_lists_known_ones() {
    let error = |skill| {
        shipped()
            .routing
            .route(skill, &CallOverrides::default())
            .unwrap_err()
            .to_string()
    };
    assert!(
        error("reveiw").contains("did you mean `review`?"),
        "{}",
        error("reveiw")
    );
    assert!(error("zzz").contains("`tdd_red`"), "{}", error("zzz"));
}

#[test]
fn longest_pattern_wins() {
    let loaded = config(
        r#"
        [backends.near]
        kind = "openai"
        tier = "local"
        base_url = "http://near"
        models = ["ollama/qwen*", "ollama/exact"]
        [models."ollama/qwen-far"]
        backend = "litellm"
        id = "qwen-far-q4"
        "#,
    )
    .unwrap();
    let backend = |model: &str| loaded.routing.backend_for(model).map(|b| b.name.clone());
    assert_eq!(backend("ollama/qwen3").as_deref(), Some("near"));
    assert_eq!(backend("ollama/exact").as_deref(), Some("near"));
    assert_eq!(backend("ollama/exactly").as_deref(), Some("litellm"));
    assert_eq!(backend("ollama/qwen-far").as_deref(), Some("litellm"));
    assert_eq!(
        backend("my/claude-sonnet-5"),
        None,
        "a prefix in the middle is not a match"
    );
    let call = CallOverrides {
        model: Some("ollama/qwen-far".into()),
        ..Default::default()
    };
    assert_eq!(
        loaded
            .routing
            .route("debug", &call)
            .unwrap()
            .chain
            .first
            .model
            .id,
        "qwen-far-q4"
    );
}

#[test]
fn unknown_model_gets_default_window() {
    let call = CallOverrides {
        model: Some("ollama/new".into()),
        ..Default::default()
    };
    let tier = shipped().routing.route("debug", &call).unwrap().chain.first;
    assert_eq!(
        (tier.model.context, tier.model.id.as_str()),
        (8192, "ollama/new")
    );
}

#[test]
fn address_version_suffix_is_optional() {
    for url in [
        "http://gate:4000",
        "http://gate:4000/",
        "http://gate:4000/v1",
        "http://gate:4000/v1/",
    ] {
        let loaded = config(&format!("[backends.litellm]\nbase_url = \"{url}\"\n")).unwrap();
        assert_eq!(
            loaded.routing.backends["litellm"].base_url.as_deref(),
            Some("http://gate:4000"),
            "{url}"
        );
    }
}

#[test]
fn too_long_chain_is_warned_about_once() {
    let loaded =
        config("max_attempts = 2\nattempts_per_tier = 2\n[skills.review]\nmax_attempts = 9\n[skills.spec]\nmax_attempts = 3\n")
            .unwrap();
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "`max_attempts` ends a call of `tdd`, `tdd_red`, `tdd_green`, `tdd_refactor`, `debug`, `supervise`, `retrospective`, `trainer` after 2 of its 4 tiers; raise it, or shorten the chain",
            "`max_attempts` ends a call of `spec` after 3 of its 5 tiers; raise it, or shorten the chain",
        ]
    );
}

#[test]
fn attempts_and_formats_have_three_levels() {
    let loaded = config(
        r#"
        [tiers.local]
        attempts_per_tier = 3
        edit_format = "json"
        [models."ollama/gemma4"]
        attempts_per_tier = 4
        edit_format = "search-replace"
        temperature = 0.2
        seed = 7
        [skills.debug]
        attempts_per_tier = 5
        edit_format = "whole"
        "#,
    )
    .unwrap();
    let tiers = |skill: &str| -> Vec<(u32, EditFormat)> {
        let route = loaded
            .routing
            .route(skill, &CallOverrides::default())
            .unwrap();
        route
            .chain
            .tiers()
            .map(|tier| (tier.attempts, tier.edit_format))
            .collect()
    };
    use EditFormat::{Auto, Json, SearchReplace, Whole};
    assert_eq!(
        tiers("review"),
        [
            (3, Json),
            (4, SearchReplace),
            (2, Auto),
            (2, Auto),
            (1, Auto)
        ]
    );
    assert_eq!(tiers("debug"), [(5, Whole); 4]);
    let gemma = &loaded.routing.models[&ModelName("ollama/gemma4".into())];
    assert_eq!((gemma.temperature, gemma.seed), (Some(0.2), Some(7)));
}

#[test]
fn replay_backend_is_a_file() {
    let loaded = config(
        r#"
        default_chain = ["recorded/one"]
        [backends.recorded]
        kind = "replay"
        tier = "local"
        file = "/answers.jsonl"
        models = ["recorded/*"]
        "#,
    )
    .unwrap();
    let backend = loaded.routing.backend_for("recorded/one").unwrap();
    assert_eq!(
        (backend.kind, backend.file.as_deref()),
        (BackendKind::Replay, Some("/answers.jsonl"))
    );
}

#[test]
fn origin_of_each_value_is_kept() {
    let loaded = with(
        "[limits]\nlocal_s = 10\n\n[models.\"ollama/Qwen3.5:30B\"]\ncontext = 999\n",
        &[
            ("SUPERVISOR_LIMITS__AGENT_S", "20"),
            ("LITELLM_BASE_URL", "http://gate:1"),
        ],
    )
    .unwrap();
    let file = loaded.file.clone().unwrap();
    assert_eq!(
        loaded.origin("limits.local_s"),
        Some(&Origin::File(file.clone(), Some(2)))
    );
    assert_eq!(
        loaded.origin("models.\"ollama/Qwen3.5:30B\".context"),
        Some(&Origin::File(file, Some(5)))
    );
    assert_eq!(
        loaded.origin("limits.agent_s"),
        Some(&Origin::Variable("SUPERVISOR_LIMITS__AGENT_S".into()))
    );
    assert_eq!(
        loaded.origin("backends.litellm.base_url"),
        Some(&Origin::Variable("LITELLM_BASE_URL".into()))
    );
    assert_eq!(loaded.origin("limits.tests_s"), Some(&Origin::BuiltIn));
    assert_eq!(loaded.origin("limits.nothing"), None);
}

#[test]
fn user_settings_beat_built_in_ones() {
    let loaded =
        config("default_chain = [\"opus\", \"haiku\"]\nmax_attempts = 2\nattempts_per_tier = 3\n")
            .unwrap();
    for skill in supervisor_settings::Routing::known_skills() {
        let choices = loaded
            .routing
            .choices(skill, &CallOverrides::default())
            .unwrap();
        assert_eq!(names(&choices.route), ["opus", "haiku"], "{skill}");
        assert_eq!(choices.chain.key, "default_chain", "{skill}");
        assert_eq!(choices.route.max_attempts, 2, "{skill}");
        assert!(
            choices.route.chain.tiers().all(|tier| tier.attempts == 3),
            "{skill}"
        );
    }
    // In one layer the more specific key decides, and a later layer wins over both.
    let own = "default_chain = [\"opus\"]\n[skills.review]\nchain = [\"haiku\"]\n[skills.tdd]\nchain = [\"sonnet\"]\n";
    let chain = |loaded: &LoadedRouting, skill: &str| -> Vec<String> {
        let route = loaded
            .routing
            .route(skill, &CallOverrides::default())
            .unwrap();
        names(&route).into_iter().map(String::from).collect()
    };
    let loaded = config(own).unwrap();
    assert_eq!(chain(&loaded, "review"), ["haiku"]);
    assert_eq!(chain(&loaded, "tdd_green"), ["sonnet"]);
    assert_eq!(chain(&loaded, "debug"), ["opus"]);
    let loaded = with(own, &[("SUPERVISOR_DEFAULT_CHAIN", "claude-opus-4-6")]).unwrap();
    assert_eq!(chain(&loaded, "review"), ["claude-opus-4-6"]);
}

#[test]
fn replaced_chain_need_not_be_served() {
    let loaded = config(
        r#"
        default_chain = ["qwen3.6:27b"]
        verifier = "none"
        [backends.litellm]
        models = ["qwen*"]
        "#,
    )
    .unwrap();
    let route = loaded
        .routing
        .route("spec", &CallOverrides::default())
        .unwrap();
    assert_eq!(
        (names(&route), route.verifier.is_none()),
        (vec!["qwen3.6:27b"], true)
    );
}

#[test]
fn user_backend_takes_over_a_pattern() {
    let loaded = config(
        r#"
        [backends.ollama]
        kind = "openai"
        tier = "local"
        base_url = "http://localhost:11434"
        models = ["ollama/*"]
        "#,
    )
    .unwrap();
    assert_eq!(
        loaded.routing.backend_for("ollama/x").unwrap().name,
        "ollama"
    );
}

#[test]
fn unknown_instead_is_refused() {
    let error = config("[backends.claude]\ninstead = \"antropic\"\n").unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("backends.claude.instead") && error.contains("`anthropic`"),
        "{error}"
    );
}

/// Settings with a backend of each kind, near and far.
fn with_projects(more: &str) -> LoadedRouting {
    let text = format!(
        r#"
verifier = "judge"
local_hosts = ["gpu.lan"]
default_chain = ["near", "hosted", "lan", "agent", "near-agent", "api", "near-api", "recorded"]
[backends.near]
kind = "openai"
tier = "local"
base_url = "http://127.0.0.1:9"
models = ["near"]
instead = "hosted"
[backends.hosted]
kind = "openai"
tier = "local"
base_url = "https://models.example.org"
models = ["hosted"]
[backends.lan]
kind = "openai"
tier = "local"
base_url = "http://gpu.lan:8000"
models = ["lan"]
[backends.agent]
kind = "claude-cli"
tier = "subagent"
program = "claude"
models = ["agent", "judge"]
[backends.near-agent]
kind = "claude-cli"
tier = "local"
program = "claude"
base_url = "http://localhost:11434"
models = ["near-agent"]
[backends.api]
kind = "anthropic"
tier = "managed"
api_key_env = "ANTHROPIC_API_KEY"
models = ["api"]
[backends.near-api]
kind = "anthropic"
tier = "local"
base_url = "http://[::1]:9"
models = ["near-api"]
[backends.recorded]
kind = "replay"
tier = "local"
file = "/answers.jsonl"
models = ["recorded"]
{more}"#
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("models.toml");
    std::fs::write(&file, text).unwrap();
    let sources = Sources {
        user_file: Some(file),
        env: [("HOME".into(), "/home/me".into())].into(),
        ..Sources::built_in(supervisor_test_support::MODELS_TOML)
    };
    load(&sources).unwrap_or_else(|e| panic!("{e}"))
}

fn in_project(root: &str) -> CallOverrides {
    CallOverrides {
        project_root: Some(root.into()),
        ..CallOverrides::default()
    }
}

#[test]
fn stay_local_keeps_only_local_tiers() {
    let loaded = with_projects("[projects.\"~/shop\"]\nstay_local = true\n");
    let routing = &loaded.routing;
    let local = ["near", "lan", "near-agent", "near-api", "recorded"];
    let per_call = CallOverrides {
        stay_local: true,
        ..in_project("/elsewhere")
    };
    for call in [in_project("/home/me/shop/api"), per_call] {
        let route = routing.route("spec", &call);
        // `spec` has a built-in chain of its own; the default one is that of no skill.
        assert!(
            matches!(&route, Err(RoutingError::StaysLocal { .. })) || route.is_ok(),
            "{route:?}"
        );
        let route = routing.route("supervise", &call).unwrap();
        assert_eq!(names(&route), local);
        assert!(route.verifier.is_none() && route.stay_local);
        assert!(
            route.chain.first.instead.is_none(),
            "the backend that stands in is elsewhere"
        );
    }
    let elsewhere = routing
        .route("supervise", &in_project("/home/me/shopping"))
        .unwrap();
    assert_eq!(elsewhere.chain.tiers().count(), 8);
    assert!(elsewhere.verifier.is_some() && !elsewhere.stay_local);

    let pinned = CallOverrides {
        model: Some("api".into()),
        ..in_project("/home/me/shop")
    };
    let refused = routing.route("supervise", &pinned).unwrap_err().to_string();
    assert!(
        refused.starts_with("`projects.\"~/shop\".stay_local` lets nothing leave this machine, and `api` is not local"),
        "{refused}"
    );
}

#[test]
fn innermost_project_decides() {
    let loaded = with_projects(
        "[projects.\"~/shop\"]\ntest_cmd = \"make test\"\ntest_report = \"out/*.xml\"\nchain = [\"lan\"]\n\
         [projects.\"/home/me/shop/api\"]\nchecks = [\"mypy\"]\n[skills.review]\nchain = [\"near\"]\n",
    );
    let routing = &loaded.routing;
    let command = |root: &str, given: Option<&str>| {
        routing.test_command(root.as_ref(), given.map(str::to_owned), None)
    };
    let own = (Some("make test".into()), Some("out/*.xml".into()));
    assert_eq!(command("/home/me/shop", None), own);
    assert_eq!(
        command("/home/me/shop", Some("x")),
        (Some("x".into()), None)
    );
    assert_eq!(command("/home/me/shop/api", None), (None, None));
    assert_eq!(command("/home/me", None), (None, None));
    assert_eq!(routing.checks("/home/me/shop/api/v1".as_ref()), ["mypy"]);
    let route = |root: &str| {
        let route = routing.route("review", &in_project(root)).unwrap();
        names(&route).join(" ")
    };
    assert_eq!(
        route("/home/me/shop"),
        "lan",
        "before the skill's own chain"
    );
    assert_eq!(route("/home/me/shop/api"), "near");
    let by = routing
        .choices("review", &in_project("/home/me/shop"))
        .unwrap();
    assert_eq!(by.chain.key, "projects.\"~/shop\".chain");
}
