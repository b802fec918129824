//! Builds the command line, environment and stdin of the program. Untrusted text goes to stdin
//! only.

use std::ffi::OsString;
use std::path::PathBuf;

use secrecy::ExposeSecret as _;
use serde_json::json;

use super::Program;
use super::own_server::{self, ServerAccess};
use crate::{Ask, AskError, Env, Shell, ToolAccess};
use supervisor_process::environment;
use supervisor_process::environment::Environment;
use supervisor_process::{ChildKind, CommandSpec, Confinement, LayeredDir, SandboxMode, Stdin};
use supervisor_settings as routing;
use supervisor_settings::{Tier, Worker};

/// Longer system prompts go to stdin: one argument can hold at most 128 KiB.
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;
/// Maximum number of turns of a run; 0 would mean no limit.
const MAX_TURNS: u32 = 60;
/// Retries of API requests. The default is ten, which takes three minutes.
const API_RETRIES: &str = "2";
/// Appended as the last block. The program searches only the last block of a prompt for commands
/// (`/x`) and file references (`@/path`), so everything before it, which may quote anybody, stays
/// plain text.
const LAST_BLOCK: &str =
    "Do the task above. End by giving your answer through the StructuredOutput tool.";
const LAST_BLOCK_OF_TEXT: &str = "Answer.";
const LAST_BLOCK_OF_EDITS: &str = "Do the task above by editing the files.";
/// Maximum length of a text answer in tokens, if nothing is configured.
const MAX_TEXT_TOKENS: u32 = 16_000;

/// Builds the process to start, and notes for the log.
pub(super) fn spec(
    ask: &Ask,
    tier: &Tier,
    settings: &routing::BackendSettings,
    worker: &Program,
    inherited: &Env,
    server: Option<&ServerAccess>,
) -> Result<(CommandSpec, Vec<String>), AskError> {
    let mut notes = Vec::new();
    let mut env = environment(settings, worker, inherited);
    let is_text = tier.worker() == Worker::Text;
    let is_own = settings.runs_own_models();
    // A text worker has no tools, whatever the question allows.
    let tool_access = if is_text {
        &ToolAccess::None
    } else {
        &ask.tool_access
    };
    let shell = shell(tool_access, &env, &mut notes);
    let mut argv: Vec<OsString> = vec![worker.program.clone().into()];
    argv.extend(
        [
            "--print",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--no-session-persistence",
            // Nothing in the project configures a worker: no settings, hooks, memory files or MCP
            // servers.
            "--strict-mcp-config",
            "--setting-sources",
            "",
        ]
        .map(OsString::from),
    );
    let mut option =
        |name: &str, value: String| argv.extend([OsString::from(name), OsString::from(value)]);
    option("--model", tier.model.id.clone());
    option("--tools", tools(tool_access, shell.is_some(), is_own));
    option("--permission-mode", permission_mode(tool_access, settings));
    if let Some(command) = shell {
        option("--allowedTools", format!("Bash({command}:*)"));
    }
    // Small models fail at the tool through which a schema is answered.
    if !is_text && !is_own {
        option("--json-schema", ask.schema.to_string());
    }
    let turns = ask
        .max_turns
        .map(u32::from)
        .or(settings.max_turns)
        .unwrap_or(MAX_TURNS)
        .max(1);
    option("--max-turns", if is_text { 1 } else { turns }.to_string());
    if let Some(usd) = ask.budget_usd {
        // The program rejects 0 and prints pages of its own source.
        if !(usd.is_finite() && usd >= 0.0001) {
            return Err(AskError::BudgetUsedUp {
                model: tier.name.0.clone(),
            });
        }
        // A single answer that crosses the limit would be paid for and lost.
        // What the program believes that other models cost is made up.
        if !is_text && !is_own {
            option("--max-budget-usd", format!("{usd:.4}"));
        }
    }
    let mut prompt = ask.prompt.clone();
    let is_edit = matches!(tool_access, ToolAccess::Edit { .. });
    let mut system = if is_text || (is_own && !is_edit) {
        ask.rules_with_schema()
    } else {
        ask.system.clone()
    };
    if system.len() > MAX_ARGUMENT_BYTES {
        prompt = format!("{system}\n\n---\n\n{prompt}");
        system.clear();
    }
    // Without a system prompt of ours the program sends its own, of 27,000 characters.
    if is_text || !system.is_empty() {
        // An agent also needs the program's own instructions for its tools. A verifier needs only
        // ours.
        let name = if *tool_access == ToolAccess::None {
            "--system-prompt"
        } else {
            "--append-system-prompt"
        };
        option(name, system);
    }
    if is_own || (is_text && has_api_key(&env)) {
        // It sends less; a login other than a key is not read then.
        argv.push("--bare".into());
    }
    let mut most = is_text.then_some(MAX_TEXT_TOKENS);
    if is_own {
        // Unknown models are believed to have a window of a million tokens. An answer as long as the
        // window would leave no room for the question, and nothing would be sent.
        let window = tier.model.context;
        env.insert(
            "CLAUDE_CODE_MAX_CONTEXT_TOKENS".into(),
            window.to_string().into(),
        );
        most = Some((window / 4).clamp(256, MAX_TEXT_TOKENS));
    }
    if let Some(most) = most {
        let most = match ask.max_answer_tokens(&tier.model) {
            Some(tokens) if is_own => tokens.min(tier.model.context / 2),
            Some(tokens) => tokens,
            None => most,
        };
        env.insert(
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS".into(),
            most.to_string().into(),
        );
    }
    let mut confine = confinement(tool_access, settings, &env);
    if let Some(server) = server {
        server.apply(&mut env, &mut confine);
    }
    let mut spec = CommandSpec::new(argv, &ask.root);
    spec.env = env;
    spec.stdin = Stdin::Bytes(stdin(
        &prompt,
        if is_own && is_edit {
            LAST_BLOCK_OF_EDITS
        } else if is_text || is_own {
            LAST_BLOCK_OF_TEXT
        } else {
            LAST_BLOCK
        },
    ));
    spec.limit = ask.limit;
    spec.guard = ask.guard.clone();
    spec.confine = Some(confine);
    Ok((spec, notes))
}

/// The sandbox of the program. Its configuration directory is not writable, because the user's own
/// sessions would later run what is written there. Exceptions are the files a session needs and the
/// login, which must be saved when it is renewed.
fn confinement(
    tool_access: &ToolAccess,
    settings: &routing::BackendSettings,
    env: &Environment,
) -> Confinement {
    let kind = match tool_access {
        ToolAccess::Edit { .. } => ChildKind::Agent,
        ToolAccess::None | ToolAccess::ReadOnly => ChildKind::Reader,
    };
    let variable = |name: &str| {
        env.get(std::ffi::OsStr::new(name))
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    let home = variable("HOME");
    let config = variable("CLAUDE_CONFIG_DIR").or_else(|| Some(home.as_ref()?.join(".claude")));
    let mut confine = Confinement::new(kind);
    match settings.sandbox {
        Some(SandboxMode::Off) => confine.off = true,
        Some(mode) => confine.at_least = mode,
        None => {}
    }
    if settings.is_foreign() {
        return confine;
    }
    if let Some(config) = config {
        confine.reveal.push(config.clone());
        // The program replaces its login by renaming a new file over it, so the whole directory
        // must be writable to it. Everything else it writes there is discarded, since it would
        // affect the user's own sessions.
        confine.layered = Some(LayeredDir {
            dir: config,
            saved: vec![String::from(".credentials.json")],
        });
    }
    confine
        .reveal
        .extend(home.map(|home| home.join(".claude.json")));
    confine
}

/// One message, serialized on one line.
fn stdin(prompt: &str, last_block: &str) -> Vec<u8> {
    let blocks = json!([{"type": "text", "text": prompt}, {"type": "text", "text": last_block}]);
    let mut line = json!({"type": "user", "message": {"role": "user", "content": blocks}})
        .to_string()
        .into_bytes();
    line.push(b'\n');
    line
}

/// Small models do better with few tools, and with `--bare` the program has no others.
fn tools(tool_access: &ToolAccess, shell: bool, few: bool) -> String {
    match tool_access {
        ToolAccess::ReadOnly if few => "Read",
        ToolAccess::Edit { .. } if few && shell => "Read,Edit,Bash",
        ToolAccess::Edit { .. } if few => "Read,Edit",
        ToolAccess::None => "",
        ToolAccess::ReadOnly => "Read,Glob,Grep",
        ToolAccess::Edit { .. } if shell => "Read,Edit,Write,Glob,Grep,Bash",
        ToolAccess::Edit { .. } => "Read,Edit,Write,Glob,Grep",
    }
    .into()
}

/// The configured mode applies to workers that edit. Others always get the least permissive mode.
fn permission_mode(tool_access: &ToolAccess, settings: &routing::BackendSettings) -> String {
    match tool_access {
        ToolAccess::None | ToolAccess::ReadOnly => "default".into(),
        ToolAccess::Edit { .. } => settings
            .permission_mode
            .clone()
            .unwrap_or_else(|| "acceptEdits".into()),
    }
}

/// The command the worker may run, in the syntax of the program's permission rules.
fn shell(tool_access: &ToolAccess, env: &Environment, notes: &mut Vec<String>) -> Option<String> {
    let ToolAccess::Edit { shell } = tool_access else {
        return None;
    };
    let argv = match shell {
        Shell::Never => return None,
        Shell::UnlessKey(argv) => {
            if let Some(name) = env
                .iter()
                .filter(|(_, value)| *value != own_server::NO_KEY)
                .map(|(name, _)| name.to_string_lossy())
                .find(|name| is_secret(name))
            {
                notes.push(format!("the worker could not run the tests itself, because ${name} is in its environment"));
                return None;
            }
            argv
        }
        Shell::Always(argv) => argv,
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || " _./:=@+-".contains(c);
    let command = argv.join(" ");
    // Permission rules have their own syntax. Reject a command that could end the rule early.
    if command.is_empty()
        || !command.chars().all(is_allowed)
        || argv.iter().any(|word| word.contains(' '))
    {
        notes.push(
            "the worker could not run the tests itself, because their command does not fit a permission rule".into(),
        );
        return None;
    }
    Some(command)
}

pub(super) fn environment(
    settings: &routing::BackendSettings,
    worker: &Program,
    inherited: &Env,
) -> Environment {
    let mut env = environment::agent(inherited.vars().clone(), &settings.env_pass);
    if let Some(key) = &worker.key {
        let name = match key.var.as_str() {
            own @ ("ANTHROPIC_API_KEY" | "ANTHROPIC_AUTH_TOKEN" | "CLAUDE_CODE_OAUTH_TOKEN") => own,
            _ => "ANTHROPIC_API_KEY",
        };
        env.insert(name.into(), key.secret.expose_secret().into());
    }
    if let Some(url) = &settings.base_url {
        env.insert("ANTHROPIC_BASE_URL".into(), url.into());
    }
    for (name, value) in [
        ("CLAUDE_CODE_MAX_RETRIES", API_RETRIES),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ] {
        env.entry(name.into()).or_insert_with(|| value.into());
    }
    if settings.is_foreign() {
        own_server::hide_login(&mut env, settings);
    }
    env
}

fn has_api_key(env: &Environment) -> bool {
    ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]
        .iter()
        .any(|name| env.contains_key(std::ffi::OsStr::new(name)))
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS"]
        .iter()
        .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn settings() -> routing::BackendSettings {
        let backend = routing::BackendSettings::named(
            "claude",
            routing::BackendKind::ClaudeCli,
            routing::TierKind::Subagent,
        );
        routing::BackendSettings {
            models: vec!["claude-*".into()],
            ..backend
        }
    }

    fn call(
        ask: &Ask,
        settings: &routing::BackendSettings,
        env: &Env,
    ) -> Result<(Vec<String>, CommandSpec, Vec<String>), AskError> {
        let tier = Tier {
            name: routing::ModelName("claude-x".into()),
            backend: settings.clone(),
            instead: None,
            outage: None,
            model: routing::Model::named("claude-x", 200_000),
            limit: Duration::from_secs(1),
            limit_by: "limits.local_s".into(),
            is_shortened: false,
            attempts: 1,
            samples: supervisor_settings::Samples::default(),
            edit_format: routing::EditFormat::Auto,
        };
        let worker = Program::of(settings, env);
        let (spec, notes) = spec(ask, &tier, settings, &worker, env, None)?;
        let argv = spec
            .argv
            .iter()
            .map(|a| a.to_string_lossy().into_owned())
            .collect();
        Ok((argv, spec, notes))
    }

    fn value<'a>(argv: &'a [String], name: &str) -> Option<&'a str> {
        argv.iter()
            .position(|a| a == name)
            .map(|at| argv[at + 1].as_str())
    }

    fn ask(tool_access: ToolAccess) -> Ask {
        Ask {
            tool_access,
            ..Ask::new(
                "rules",
                "/task with @/etc/passwd",
                json!({"type": "object"}),
                "/project",
            )
        }
    }

    fn inherited() -> Env {
        [
            ("PATH", "/bin"),
            ("HOME", "/h"),
            ("ANTHROPIC_API_KEY", "canary"),
            ("CLAUDE_CODE_SIMPLE", "1"),
            ("MINE", "canary"),
        ]
        .into_iter()
        .collect()
    }

    fn tests() -> Vec<String> {
        ["cargo", "test", "--workspace"].map(String::from).to_vec()
    }

    #[test]
    fn tools_match_power_and_permissions_are_never_bypassed() {
        let edit = |shell| ToolAccess::Edit { shell };
        for (tool_access, tools, mode) in [
            (ToolAccess::None, "", "default"),
            (ToolAccess::ReadOnly, "Read,Glob,Grep", "default"),
            (
                edit(Shell::Never),
                "Read,Edit,Write,Glob,Grep",
                "acceptEdits",
            ),
            (
                edit(Shell::UnlessKey(tests())),
                "Read,Edit,Write,Glob,Grep,Bash",
                "acceptEdits",
            ),
        ] {
            let (argv, spec, _) =
                call(&ask(tool_access.clone()), &settings(), &inherited()).expect("a call");
            assert_eq!(
                (value(&argv, "--tools"), value(&argv, "--permission-mode")),
                (Some(tools), Some(mode)),
                "{tool_access:?}"
            );
            assert_eq!(
                value(&argv, "--allowedTools").is_some(),
                tools.ends_with("Bash")
            );
            assert!(
                !argv
                    .iter()
                    .any(|a| a.contains("bypass") || a == "--bare" || a.contains("/task")),
                "{argv:?}"
            );
            assert_eq!(spec.cwd, std::path::Path::new("/project"));
        }
        let (argv, ..) = call(
            &ask(edit(Shell::UnlessKey(tests()))),
            &settings(),
            &inherited(),
        )
        .expect("a call");
        assert_eq!(
            value(&argv, "--allowedTools"),
            Some("Bash(cargo test --workspace:*)")
        );
        assert_eq!(value(&argv, "--append-system-prompt"), Some("rules"));
        let (argv, ..) = call(&ask(ToolAccess::None), &settings(), &inherited()).expect("a call");
        assert_eq!(value(&argv, "--system-prompt"), Some("rules"));
    }

    #[test]
    fn configured_permission_mode_applies_only_to_editing_workers() {
        let settings = routing::BackendSettings {
            permission_mode: Some("plan".into()),
            ..settings()
        };
        let (argv, ..) = call(
            &ask(ToolAccess::Edit {
                shell: Shell::Never,
            }),
            &settings,
            &inherited(),
        )
        .expect("a call");
        assert_eq!(value(&argv, "--permission-mode"), Some("plan"));
        let (argv, ..) = call(&ask(ToolAccess::ReadOnly), &settings, &inherited()).expect("a call");
        assert_eq!(value(&argv, "--permission-mode"), Some("default"));
    }

    #[test]
    fn inherited_key_needs_configuration_and_disables_the_shell() {
        let worker = ToolAccess::Edit {
            shell: Shell::UnlessKey(tests()),
        };
        let (_, spec, _) = call(&ask(worker.clone()), &settings(), &inherited()).expect("a call");
        assert!(
            !format!("{:?}", spec.env).contains("canary"),
            "{:?}",
            spec.env
        );
        assert!(
            !spec
                .env
                .contains_key(std::ffi::OsStr::new("CLAUDE_CODE_SIMPLE"))
        );

        for (var, passed_as) in [
            ("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
            ("MINE", "ANTHROPIC_API_KEY"),
        ] {
            let settings = routing::BackendSettings {
                api_key_env: Some(var.into()),
                ..settings()
            };
            let (argv, spec, notes) =
                call(&ask(worker.clone()), &settings, &inherited()).expect("a call");
            assert_eq!(
                spec.env
                    .get(std::ffi::OsStr::new(passed_as))
                    .map(|v| v == "canary"),
                Some(true)
            );
            assert_eq!(value(&argv, "--tools"), Some("Read,Edit,Write,Glob,Grep"));
            assert!(notes[0].contains("$ANTHROPIC_API_KEY"), "{notes:?}");
            assert!(!format!("{argv:?}{notes:?}{:?}", spec.stdin).contains("canary"));
            let always = ToolAccess::Edit {
                shell: Shell::Always(tests()),
            };
            let (argv, ..) = call(&ask(always), &settings, &inherited()).expect("a call");
            assert!(value(&argv, "--allowedTools").is_some());
        }
        let settings = routing::BackendSettings {
            env_pass: vec!["MINE".into()],
            ..settings()
        };
        let (_, spec, _) = call(&ask(worker), &settings, &inherited()).expect("a call");
        assert!(spec.env.contains_key(std::ffi::OsStr::new("MINE")));
    }

    #[test]
    fn command_that_could_escape_its_rule_is_dropped() {
        for argv in [
            vec!["sh", "-c", "x; y"],
            vec!["a)"],
            vec!["a,Bash"],
            vec![],
            vec!["a b"],
        ] {
            let argv = argv.into_iter().map(String::from).collect();
            let (argv, _, notes) = call(
                &ask(ToolAccess::Edit {
                    shell: Shell::Always(argv),
                }),
                &settings(),
                &inherited(),
            )
            .expect("a call");
            assert_eq!(value(&argv, "--allowedTools"), None);
            assert_eq!(notes.len(), 1);
        }
    }

    #[test]
    fn prompt_is_not_the_last_block() {
        let (_, spec, _) = call(&ask(ToolAccess::None), &settings(), &inherited()).expect("a call");
        let Stdin::Bytes(bytes) = spec.stdin else {
            panic!("nothing to read")
        };
        assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1);
        let message: serde_json::Value = serde_json::from_slice(&bytes).expect("one JSON line");
        let blocks = message["message"]["content"].as_array().expect("blocks");
        assert_eq!(blocks[0]["text"], "/task with @/etc/passwd");
        let last = blocks[1]["text"].as_str().expect("text");
        assert!(blocks.len() == 2 && !last.starts_with('/') && !last.contains('@'));
    }

    #[test]
    fn turns_and_budget_are_never_zero() {
        let mut ask = ask(ToolAccess::None);
        let (argv, ..) = call(&ask, &settings(), &inherited()).expect("a call");
        assert_eq!(
            (
                value(&argv, "--max-turns"),
                value(&argv, "--max-budget-usd")
            ),
            (Some("60"), None)
        );
        let zero = routing::BackendSettings {
            max_turns: Some(0),
            ..settings()
        };
        let (argv, ..) = call(&ask, &zero, &inherited()).expect("a call");
        assert_eq!(value(&argv, "--max-turns"), Some("1"));
        ask.budget_usd = Some(0.25);
        let (argv, ..) = call(&ask, &settings(), &inherited()).expect("a call");
        assert_eq!(value(&argv, "--max-budget-usd"), Some("0.2500"));
        for usd in [0.0, -1.0, f64::NAN, 0.000_01] {
            ask.budget_usd = Some(usd);
            assert!(
                matches!(
                    call(&ask, &settings(), &inherited()),
                    Err(AskError::BudgetUsedUp { .. })
                ),
                "{usd}"
            );
        }
    }

    #[test]
    fn long_system_prompt_goes_to_stdin() {
        let mut ask = ask(ToolAccess::None);
        ask.system = "r".repeat(MAX_ARGUMENT_BYTES + 1);
        let (argv, spec, _) = call(&ask, &settings(), &inherited()).expect("a call");
        assert!(argv.iter().all(|a| a.len() < MAX_ARGUMENT_BYTES));
        let Stdin::Bytes(bytes) = spec.stdin else {
            panic!("nothing to read")
        };
        assert!(bytes.len() > MAX_ARGUMENT_BYTES);
    }
}
