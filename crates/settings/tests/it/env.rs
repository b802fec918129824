//! Settings from variables: whatever a shell can hold reaches the key it is meant for, or is named.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use supervisor_settings::{CallOverrides, ModelName, Origin, Sources, load};

use supervisor_test_support::settings_files::{config, env, names, variables_of, with};

#[test]
fn variables_beat_file_beats_built_in() {
    let file = "[limits]\nlocal_s = 1\nagent_s = 2\n";
    let limits = with(file, &[("SUPERVISOR_LIMITS__AGENT_S", "3")])
        .unwrap()
        .routing
        .limits;
    assert_eq!(
        (limits.local, limits.agent, limits.tests),
        (secs(1), secs(3), secs(900))
    );
}

#[test]
fn empty_variable_counts_as_unset() {
    let loaded = env(&[
        ("SUPERVISOR_VERIFIER", ""),
        ("SUPERVISOR_LIMITS__LOCAL_S", ""),
        ("LITELLM_BASE_URL", ""),
        ("SUPERVISOR_MODELS_FILE", ""),
        ("SUPERVISOR_NONSENSE", ""),
    ])
    .unwrap();
    assert_eq!(loaded.origin("limits.local_s"), Some(&Origin::BuiltIn));
    assert_eq!(
        loaded.origin("backends.litellm.base_url"),
        Some(&Origin::BuiltIn)
    );
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn number_like_values_work_as_text() {
    let file = "[backends.litellm]\nmodels = [\"ollama/*\", \"123\", \"true\", \"007\", \"1e5\"]\n";
    for text in ["123", "true", "007", "1e5"] {
        let loaded = with(
            file,
            &[
                ("SUPERVISOR_VERIFIER", text),
                ("SUPERVISOR_DEFAULT_CHAIN", text),
            ],
        )
        .unwrap();
        assert_eq!(
            loaded.routing.verifier,
            Some(ModelName(text.into())),
            "{text}"
        );
        assert_eq!(
            loaded.routing.default_chain,
            [ModelName(text.into())],
            "{text}"
        );
    }
    let loaded = env(&[("SUPERVISOR_MODELS__OLLAMA_PHI4__ID", "42")]).unwrap();
    assert_eq!(
        loaded.routing.models[&ModelName("ollama/phi4".into())].id,
        "42"
    );
}

#[test]
fn list_brackets_are_optional() {
    for text in [
        "ollama/a,claude-b",
        "[ollama/a, claude-b]",
        r#"["ollama/a", "claude-b"]"#,
        " ollama/a , claude-b ",
    ] {
        let loaded = env(&[("SUPERVISOR_SKILLS__REVIEW__CHAIN", text)]).unwrap();
        let route = loaded
            .routing
            .route("review", &CallOverrides::default())
            .unwrap();
        assert_eq!(names(&route), ["ollama/a", "claude-b"], "{text}");
    }
    let one = env(&[("SUPERVISOR_DEFAULT_CHAIN", "opus")]).unwrap();
    assert_eq!(one.routing.default_chain, [ModelName("opus".into())]);
}

#[test]
fn model_names_with_punctuation_can_be_overridden() {
    let name = ModelName("ollama/Qwen3.5:30B".into());
    let file = r#"
        [models."ollama/Qwen3.5:30B"]
        context = 4096
        price_in = 1.5
    "#;
    let plain = config(file).unwrap();
    assert_eq!(plain.routing.models[&name].context, 4096);
    let loaded = with(
        file,
        &[("SUPERVISOR_MODELS__OLLAMA_QWEN3_5_30B__CONTEXT", "65536")],
    )
    .unwrap();
    let model = &loaded.routing.models[&name];
    assert_eq!(
        (model.context, model.price_in, model.id.as_str()),
        (65_536, Some(1.5), "ollama/Qwen3.5:30B")
    );
    assert_eq!(
        loaded.routing.models.len(),
        plain.routing.models.len(),
        "no second model was made"
    );
    let origin = Origin::Variable("SUPERVISOR_MODELS__OLLAMA_QWEN3_5_30B__CONTEXT".into());
    assert_eq!(
        loaded.origin(r#"models."ollama/Qwen3.5:30B".context"#),
        Some(&origin)
    );
}

#[test]
fn model_from_a_chain_can_be_described() {
    let loaded = env(&[
        ("SUPERVISOR_DEFAULT_CHAIN", "ollama/New__Model"),
        ("SUPERVISOR_MODELS__OLLAMA_NEW__MODEL__LIMIT_S", "7"),
        ("SUPERVISOR_MODELS__OPUS__CONTEXT", "1000"),
    ])
    .unwrap();
    assert_eq!(
        loaded.routing.models[&ModelName("ollama/New__Model".into())].limit,
        Some(secs(7))
    );
    assert_eq!(
        loaded.routing.models[&ModelName("opus".into())].context,
        1000
    );
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn ambiguous_model_variable_is_refused() {
    let file = "[models.\"ollama/a.b\"]\ncontext = 1000\n[models.\"ollama/a:b\"]\ncontext = 2000\n";
    assert!(config(file).is_ok(), "two such names alone are no problem");
    let error = with(file, &[("SUPERVISOR_MODELS__OLLAMA_A_B__CONTEXT", "3000")])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("$SUPERVISOR_MODELS__OLLAMA_A_B__CONTEXT"),
        "{error}"
    );
    assert!(
        error.contains("ollama/a.b") && error.contains("ollama/a:b"),
        "{error}"
    );
}

#[test]
fn unknown_variable_is_a_warning() {
    let loaded = env(&[
        ("SUPERVISOR_FOO", "canary-value"),
        ("SUPERVISOR_LIMITS__LOCL_S", "5"),
        ("SUPERVISOR_BUDGETS__CALL_TOKEN", "5"),
        ("SUPERVISOR_MODELS__OLLAMA_PHI5__CONTEXT", "5"),
        ("SUPERVISOR_verifier", "x"),
        ("SUPERVISOR_BACKENDS__LITELM__BASE_URL", "http://x"),
        ("SUPERVISORY", "not ours"),
        ("OTHER", "not ours"),
    ])
    .unwrap();
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "$SUPERVISOR_BACKENDS__LITELM__BASE_URL sets nothing; did you mean `SUPERVISOR_BACKENDS__LITELLM__BASE_URL`?",
            "$SUPERVISOR_BUDGETS__CALL_TOKEN sets nothing; did you mean `SUPERVISOR_BUDGETS__CALL_TOKENS`?",
            "$SUPERVISOR_FOO sets nothing",
            "$SUPERVISOR_LIMITS__LOCL_S sets nothing; did you mean `SUPERVISOR_LIMITS__LOCAL_S`?",
            "$SUPERVISOR_verifier sets nothing; did you mean `SUPERVISOR_VERIFIER`?",
            "$SUPERVISOR_MODELS__OLLAMA_PHI5__CONTEXT sets nothing; did you mean `SUPERVISOR_MODELS__OLLAMA_PHI4__CONTEXT`?",
        ]
    );
}

#[test]
fn variables_of_other_parts_are_known() {
    let loaded = env(&[
        ("SUPERVISOR_STATE_DIR", "/x"),
        ("SUPERVISOR_LOG", "debug"),
        ("SUPERVISOR_TEST_LONG", "1"),
        ("SUPERVISOR_TEST_ANYTHING", "1"),
        ("SUPERVISOR_TREE", "abc"),
        ("SUPERVISOR_FAULT", "x"),
        ("LITELLM_API_KEY", "sk-canary"),
    ])
    .unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert!(
        !format!("{loaded:?}").contains("canary"),
        "the key was read"
    );
}

#[test]
fn non_unicode_variable_is_named() {
    let bad = || OsString::from_vec(vec![b'x', 0xff]);
    let load_with = |pairs: Vec<(OsString, OsString)>| {
        load(&Sources {
            env: pairs.into_iter().collect::<BTreeMap<_, _>>(),
            ..Sources::built_in(supervisor_test_support::MODELS_TOML)
        })
    };
    assert!(
        load_with(vec![(bad(), bad()), ("OTHER".into(), bad())])
            .unwrap()
            .warnings
            .is_empty()
    );
    let mut stray = OsString::from("SUPERVISOR_");
    stray.push(bad());
    assert_eq!(
        load_with(vec![(stray, "1".into())]).unwrap().warnings.len(),
        1
    );
    let error = load_with(vec![("SUPERVISOR_VERIFIER".into(), bad())])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("$SUPERVISOR_VERIFIER") && error.contains("UTF-8"),
        "{error}"
    );
}

#[test]
fn own_prefix_beats_common_variable_names() {
    let loaded = env(&[
        ("LITELLM_BASE_URL", "http://gate:1/"),
        ("LLAMA_SWAP_URL", "http://swap:2/"),
    ])
    .unwrap();
    assert_eq!(
        loaded.routing.backends["litellm"].base_url.as_deref(),
        Some("http://gate:1")
    );
    assert_eq!(loaded.routing.warm.as_ref().unwrap().url, "http://swap:2");
    let both = env(&[
        ("LITELLM_BASE_URL", "http://a"),
        ("SUPERVISOR_BACKENDS__LITELLM__BASE_URL", "http://b"),
    ]);
    assert_eq!(
        both.unwrap().routing.backends["litellm"]
            .base_url
            .as_deref(),
        Some("http://b")
    );
}

#[test]
fn llama_swap_address_is_not_used_for_ollama() {
    let file = "[warm]\nkind = \"ollama\"\nurl = \"http://localhost:11434\"\n";
    let loaded = with(file, &[("LLAMA_SWAP_URL", "http://swap")]).unwrap();
    assert_eq!(loaded.routing.warm.unwrap().url, "http://localhost:11434");
    assert_eq!(loaded.warnings.len(), 1);
    assert!(
        config("[warm]\nkind = \"none\"\n")
            .unwrap()
            .routing
            .warm
            .is_none()
    );
}

#[test]
fn every_number_can_be_set() {
    let loaded = env(&[
        ("SUPERVISOR_BUDGETS__CALL_USD", "0"),
        ("SUPERVISOR_BUDGETS__SESSION_USD", "12.5"),
        ("SUPERVISOR_BUDGETS__CALL_TOKENS", "1000"),
        ("SUPERVISOR_BUDGETS__SESSION_S", "60"),
        ("SUPERVISOR_LIMITS__LOCK_WAIT_S", "0"),
        ("SUPERVISOR_LIMITS__TESTS_S", "0.5"),
        ("SUPERVISOR_SKILLS__TDD_RED__BUDGET_USD", "0.1"),
    ])
    .unwrap()
    .routing;
    assert_eq!(
        (loaded.budgets.call.usd, loaded.budgets.call.tokens),
        (None, Some(1000))
    );
    assert_eq!(
        (loaded.budgets.session.usd, loaded.budgets.session.time),
        (Some(12.5), Some(secs(60)))
    );
    assert_eq!(
        (loaded.limits.lock_wait, loaded.limits.tests),
        (Duration::ZERO, Duration::from_millis(500))
    );
    let route = |skill| loaded.route(skill, &CallOverrides::default()).unwrap();
    assert_eq!(
        (route("tdd_red").budget_usd, route("tdd_green").budget_usd),
        (Some(0.1), None)
    );
    assert_eq!(route("tdd_red").budget.tokens, Some(1000));
}

#[test]
fn option_beats_file_variable() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two, platform) = (
        dir.path().join("1.toml"),
        dir.path().join("2.toml"),
        dir.path().join("supervisor"),
    );
    std::fs::write(&one, "max_attempts = 11\n").unwrap();
    std::fs::write(&two, "max_attempts = 22\n").unwrap();
    std::fs::create_dir(&platform).unwrap();
    std::fs::write(platform.join("models.toml"), "max_attempts = 33\n").unwrap();
    let variable = variables_of(&[("SUPERVISOR_MODELS_FILE", one.to_str().unwrap())]);
    let config_dir = Some(dir.path().to_owned());
    let attempts = |sources: Sources| load(&sources).unwrap().routing.max_attempts;
    assert_eq!(
        attempts(Sources {
            config_dir: config_dir.clone(),
            ..Sources::built_in(supervisor_test_support::MODELS_TOML)
        }),
        33
    );
    assert_eq!(
        attempts(Sources {
            config_dir: config_dir.clone(),
            env: variable.clone(),
            ..Sources::built_in(supervisor_test_support::MODELS_TOML)
        }),
        11
    );
    assert_eq!(
        attempts(Sources {
            user_file: Some(two),
            env: variable,
            config_dir,
            ..Sources::built_in(supervisor_test_support::MODELS_TOML)
        }),
        22
    );
}

#[test]
fn former_key_of_llama_swap_is_read() {
    let loaded = config("llama_swap_url = \"http://swap:9\"\n").unwrap();
    assert_eq!(loaded.routing.warm.as_ref().unwrap().url, "http://swap:9");
    let notes: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(
        notes.iter().any(|note| note.contains("read as `warm.url`")),
        "{notes:?}"
    );
    let both = "llama_swap_url = \"http://old:9\"\n[warm]\nurl = \"http://new:9\"\n";
    let loaded = config(both).unwrap();
    assert_eq!(loaded.routing.warm.unwrap().url, "http://new:9");
    let wrong = config("llama_swap_url = \"nonsense\"\n")
        .unwrap_err()
        .to_string();
    assert!(wrong.contains("models.toml:1: `warm.url`"), "{wrong}");
}

#[test]
fn sessions_directory_can_be_set() {
    let loaded = config("sessions_dir = \"/brain/sessions\"\n").unwrap();
    assert_eq!(loaded.routing.sessions_dir, Some("/brain/sessions".into()));
    let by_variable = with("", &[("SUPERVISOR_SESSIONS_DIR", "/mine")]).unwrap();
    assert_eq!(by_variable.routing.sessions_dir, Some("/mine".into()));
}

#[test]
fn prompts_directory_can_be_set() {
    let dir = tempfile::tempdir().unwrap();
    let sources = Sources {
        config_dir: Some(dir.path().to_owned()),
        ..Sources::built_in(supervisor_test_support::MODELS_TOML)
    };
    assert_eq!(load(&sources).unwrap().routing.prompts_dir, None);
    let prompts = dir.path().join("supervisor/prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    assert_eq!(load(&sources).unwrap().routing.prompts_dir, Some(prompts));
    let env = variables_of(&[("SUPERVISOR_PROMPTS_DIR", "/mine")]);
    assert_eq!(
        load(&Sources { env, ..sources })
            .unwrap()
            .routing
            .prompts_dir,
        Some("/mine".into())
    );
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
#[cfg(not(feature = "database"))]
fn database_names_the_build_it_needs() {
    let refused = env(&[(
        "SUPERVISOR_TEAM__DATABASE",
        "postgres://me@db.example.com/x",
    )]);
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("`team.database`") && message.contains("--features database"),
        "{message}"
    );
}

#[test]
fn password_in_a_database_address_is_refused() {
    for address in [
        "postgres://me:hunter2@db.example.com/x",
        "postgres://me@db.example.com/x?password=hunter2",
        "https://db.example.com/x",
    ] {
        let refused = env(&[("SUPERVISOR_TEAM__DATABASE", address)]);
        let message = refused.unwrap_err().to_string();
        assert!(
            message.contains("`team.password_env`") && !message.contains("hunter2"),
            "{message}"
        );
    }
}
