//! Every way settings can be wrong, and the sentence that tells it: where, which key, what helps.
//! All sentences are in one snapshot, to be read by a person.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use supervisor_settings::{CallOverrides, LoadedRouting, RoutingError, Sources, load};

use supervisor_test_support::settings_files::{config, env, variables_of, with};

const NEW_BACKEND: &str =
    "[backends.lab]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"http://lab\"\n";

#[test]
fn each_mistake_has_its_message() {
    let mut book = String::new();
    let mut tell = |title: &str, outcome: Result<LoadedRouting, RoutingError>| {
        let error = outcome.expect_err(title);
        writeln!(book, "# {title}\n{error}\n").unwrap();
    };

    tell("a misspelt key", config("[limits]\nlocl_s = 5\n"));
    tell(
        "a misspelt count of tokens",
        config("[budgets]\ncall_token = 5\n"),
    );
    tell("a misspelt table", config("[limit]\nlocal_s = 5\n"));
    tell("a key in the wrong place", config("local_s = 5\n"));
    tell("a key nobody knows", config("[warm]\nzzz = 5\n"));
    tell(
        "a misspelt skill",
        config("[skills.reveiw]\nmax_attempts = 2\n"),
    );
    tell(
        "a skill nobody plans",
        config("[skills.cook]\nmax_attempts = 2\n"),
    );
    tell("an empty default chain", config("default_chain = []\n"));
    tell(
        "a model no backend serves",
        config("[skills.review]\nchain = [\"ollama/x\", \"gpt-5\"]\n"),
    );
    tell(
        "a misspelt model",
        config("default_chain = [\"cluade-sonnet-4-6\"]\n"),
    );
    tell(
        "a verifier no backend serves",
        config("verifier = \"nobody\"\n"),
    );
    tell(
        "a skill's verifier no backend serves",
        config("[skills.spec]\nverifier = \"gpt-5\"\n"),
    );
    tell(
        "a pattern in a chain",
        config("default_chain = [\"claude-*\"]\n"),
    );
    tell(
        "a star in the middle",
        config(&format!("{NEW_BACKEND}models = [\"a*b\"]\n")),
    );
    tell(
        "a pattern two backends have",
        config(&format!(
            "{NEW_BACKEND}models = [\"x/*\"]\n[backends.litellm]\nmodels = [\"x/*\"]\n"
        )),
    );
    tell(
        "an unknown kind",
        config("[backends.lab]\nkind = \"opnai\"\ntier = \"local\"\nmodels = [\"lab/*\"]\n"),
    );
    tell("a backend without anything", config("[backends.lab]\n"));
    tell(
        "a backend without an address",
        config("[backends.lab]\nkind = \"openai\"\ntier = \"local\"\nmodels = [\"lab/*\"]\n"),
    );
    tell(
        "a replay without a file",
        config("[backends.lab]\nkind = \"replay\"\ntier = \"local\"\nmodels = [\"lab/*\"]\n"),
    );
    tell(
        "a key of another kind",
        config(&format!(
            "{NEW_BACKEND}models = [\"lab/*\"]\nmax_turns = 5\n"
        )),
    );
    tell(
        "a backend that is not there",
        config("[models.opus]\nbackend = \"litelm\"\n"),
    );
    tell(
        "a quota with nobody",
        config("[backends.claude]\nshares_quota_with = [\"zzz\"]\n"),
    );
    tell(
        "a text for a number",
        config("[limits]\nlocal_s = \"300\"\n"),
    );
    tell("a number for a text", config("verifier = 5\n"));
    tell(
        "a text for a list",
        config("default_chain = \"claude-sonnet-4-6\"\n"),
    );
    tell(
        "a list with a number",
        config("default_chain = [\"opus\", 5]\n"),
    );
    tell("a fraction for a count", config("max_attempts = 2.5\n"));
    tell("a value for a table", config("limits = 5\n"));
    tell(
        "a table for a value",
        config("[verifier]\nmodel = \"opus\"\n"),
    );
    tell("a negative limit", config("[limits]\nlocal_s = -5\n"));
    tell("a limit of zero", config("[limits]\nlocal_s = 0\n"));
    tell(
        "a limit that is not a number",
        config("[limits]\nlocal_s = nan\n"),
    );
    tell("no attempts", config("max_attempts = 0\n"));
    tell(
        "a negative price",
        config("[models.opus]\nprice_in = -1.0\n"),
    );
    tell("a relative path", config("prompts_dir = \"prompts\"\n"));
    tell(
        "a program in the current directory",
        config("[backends.claude]\nprogram = \"./claude\"\n"),
    );
    tell(
        "not an address",
        config("[backends.litellm]\nbase_url = \"localhost:4000\"\n"),
    );
    tell(
        "not a port",
        config("[backends.litellm]\nbase_url = \"http://localhost:99999\"\n"),
    );
    tell(
        "a negative limit by variable",
        env(&[("SUPERVISOR_LIMITS__LOCAL_S", "-5")]),
    );
    tell(
        "a word for a number by variable",
        env(&[("SUPERVISOR_MAX_ATTEMPTS", "many")]),
    );
    tell(
        "an unknown kind by variable",
        env(&[("SUPERVISOR_WARM__KIND", "olama")]),
    );
    tell(
        "not an address by variable",
        env(&[("LITELLM_BASE_URL", "nowhere")]),
    );
    tell(
        "a model no backend serves by variable",
        env(&[("SUPERVISOR_DEFAULT_CHAIN", "gpt-5")]),
    );
    tell(
        "a variable for two models",
        with(
            "[models.\"ollama/a.b\"]\nid = \"x\"\n[models.\"ollama/a:b\"]\nid = \"y\"\n",
            &[("SUPERVISOR_MODELS__OLLAMA_A_B__CONTEXT", "3000")],
        ),
    );
    tell(
        "a key in the file",
        config("[backends.litellm]\napi_key = \"sk-canary\"\n"),
    );
    tell(
        "a key where its variable belongs",
        config("[backends.litellm]\napi_key_env = \"sk-canary\"\n"),
    );
    tell(
        "a key in an address",
        config("[backends.litellm]\nbase_url = \"http://me:sk-canary@host\"\n"),
    );
    tell(
        "a key by variable",
        env(&[("SUPERVISOR_BACKENDS__LITELLM__API_KEY", "sk-canary")]),
    );
    tell("a key as a model", config("verifier = \"sk-canary\"\n"));
    tell(
        "not TOML",
        config("verifier = \"opus\"\napi_key = sk-canary\n"),
    );
    tell(
        "a key twice",
        config("max_attempts = 1\nmax_attempts = 2\n"),
    );
    tell(
        "several at once",
        with(
            "verifer = \"opus\"\n[limits]\nlocal_s = -1\n[skills.reveiw]\nchain = []\n",
            &[("SUPERVISOR_MAX_WORKERS", "none")],
        ),
    );
    tell(
        "several that do not fit together",
        config(
            "default_chain = []\nverifier = \"gpt-5\"\n[skills.spec]\nchain = [\"gpt-5\", \"cluade-opus-4-6\"]\n",
        ),
    );

    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| -> PathBuf {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let option = |path: &Path| {
        load(&Sources {
            user_file: Some(path.to_owned()),
            ..Sources::built_in(supervisor_test_support::MODELS_TOML)
        })
    };
    tell("a missing file", option(&dir.path().join("gone.toml")));
    tell("a directory", option(dir.path()));
    tell(
        "a file that is not text",
        option(&file("binary.toml", b"a = \xff\n")),
    );
    tell("a file without end", option(Path::new("/dev/zero")));
    let variable = |path: &str| env(&[("SUPERVISOR_MODELS_FILE", path)]);
    tell(
        "a missing file by variable",
        variable(dir.path().join("gone.toml").to_str().unwrap()),
    );
    tell("a relative file by variable", variable("models.toml"));
    tell(
        "a file by variable that is not TOML",
        variable(file("bad.toml", b"\n\n= 1\n").to_str().unwrap()),
    );
    let bad = file("bad.toml", b"[");
    let platform = dir.path().join("supervisor");
    std::fs::create_dir(&platform).unwrap();
    std::fs::rename(bad, platform.join("models.toml")).unwrap();
    tell(
        "the file in the config directory is not TOML",
        load(&Sources {
            config_dir: Some(dir.path().to_owned()),
            ..Sources::built_in(supervisor_test_support::MODELS_TOML)
        }),
    );

    let routing = load(&Sources::built_in(supervisor_test_support::MODELS_TOML))
        .unwrap()
        .routing;
    let mut tell_call = |title: &str, skill: &str, model: Option<&str>| {
        let call = CallOverrides {
            model: model.map(str::to_owned),
            ..CallOverrides::default()
        };
        let error = routing.route(skill, &call).expect_err(title);
        writeln!(book, "# {title}\n{error}\n").unwrap();
    };
    tell_call("a call for a misspelt skill", "reveiw", None);
    tell_call("a call for no skill", "cook", None);
    tell_call("a call for a model nobody serves", "review", Some("gpt-5"));
    tell_call("a call with a key for a model", "review", Some("sk-canary"));
    tell_call("a call with no model", "review", Some(""));

    assert!(!book.contains("canary"), "a secret was printed:\n{book}");
    insta::with_settings!({ filters => vec![(r"/\S*/\.tmp\w+", "DIR")] }, {
        insta::assert_snapshot!("each_mistake_has_its_message", book);
    });
}

#[test]
fn every_message_names_source_and_key() {
    for (file, key, line) in [
        ("[limits]\nlocl_s = 5\n", "`limits.locl_s`", 2),
        ("\n\n[skills.reveiw]\n", "`skills.reveiw`", 3),
        ("\n\ndefault_chain = []\n", "`default_chain`", 3),
        ("verifier = \"nobody\"\n", "`verifier`", 1),
        (
            "[backends.x]\nkind = \"openai\"\n",
            "`backends.x.base_url`",
            1,
        ),
        (
            "models = { opus = { context = -1 } }\n",
            "`models.opus.context`",
            1,
        ),
    ] {
        let error = config(file).unwrap_err().to_string();
        assert!(
            error.contains(key) && error.contains(&format!("models.toml:{line}: ")),
            "{file}: {error}"
        );
    }
}

#[test]
fn all_problems_are_reported_together() {
    let error = with(
        "verifer = 1\n[limits]\nlocal_s = -1\n",
        &[("SUPERVISOR_MAX_WORKERS", "none")],
    )
    .unwrap_err();
    let RoutingError::Invalid(problems) = error else {
        panic!("{error}")
    };
    assert_eq!(problems.len(), 3, "{problems:?}");
}

#[test]
fn only_an_explicit_file_must_exist() {
    let dir = tempfile::tempdir().unwrap();
    let sources = Sources {
        config_dir: Some(dir.path().to_owned()),
        ..Sources::built_in(supervisor_test_support::MODELS_TOML)
    };
    assert_eq!(load(&sources).unwrap().file, None);
    let gone = dir.path().join("gone.toml");
    assert!(
        load(&Sources {
            user_file: Some(gone.clone()),
            ..sources.clone()
        })
        .is_err()
    );
    let env = variables_of(&[("SUPERVISOR_MODELS_FILE", gone.to_str().unwrap())]);
    assert!(load(&Sources { env, ..sources }).is_err());
}

#[test]
fn secret_values_are_never_printed() {
    const CANARY: &str = "c4n4ry";
    let slots = [
        "[backends.litellm]\napi_key = \"c4n4ry\"\n",
        "[backends.litellm]\napi_key_env = \"c4n4ry\"\n",
        "[backends.litellm]\ntoken = \"c4n4ry\"\n",
        "[backends.litellm]\nheaders = { Authorization = \"Bearer c4n4ry\" }\n",
        "[backends.litellm]\nbase_url = \"https://user:c4n4ry@host/\"\n",
        "[backends.litellm]\nbase_url = \"https://host/?key=c4n4ry\"\n",
        "[backends.claude]\nenv_pass = [\"KEY=c4n4ry\"]\n",
        "api_key = \"c4n4ry\"\n",
        "api_key = c4n4ry\n",
        "password = \"c4n4ry\n",
        "[limits]\nlocal_s = \"c4n4ry\"\n",
    ];
    for file in slots {
        let error = config(file).unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains(CANARY),
            "{file}: {error}"
        );
    }
    for name in [
        "SUPERVISOR_BACKENDS__LITELLM__API_KEY",
        "SUPERVISOR_BACKENDS__LITELLM__API_KEY_ENV",
        "LITELLM_BASE_URL",
    ] {
        let error = env(&[(name, CANARY)]).unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains(CANARY),
            "{name}: {error}"
        );
        assert!(error.to_string().contains(name), "{error}");
    }
    let loaded = env(&[("LITELLM_API_KEY", CANARY), ("SUPERVISOR_API_KEY", CANARY)]).unwrap();
    assert!(!format!("{loaded:?}").contains(CANARY));
}
