//! Selects the environment variables that child processes inherit. Pure: the inherited environment
//! is an argument.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use supervisor_text::redact::Redactor;

pub type Environment = BTreeMap<OsString, OsString>;

/// Environment of agent CLIs: the allow list below plus the variables that the backend names.
pub fn agent(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    extra_allow: &[String],
) -> Environment {
    keep(inherited, |name| {
        is_allowed(name) || contains(extra_allow, name)
    })
}

/// Environment of test commands: the user's environment without secrets. `key_vars` are the
/// variables that our own keys come from; `env_pass` lets variables through by name.
pub fn tests(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    key_vars: &[String],
    env_pass: &[String],
) -> Environment {
    let shapes = Redactor::patterns_only();
    let is_kept = |name: &str, value: &str| {
        contains(env_pass, name)
            || !(contains(key_vars, name)
                || is_secret(name, value)
                || contains_secret(&shapes, value))
    };
    let text = OsStr::to_string_lossy;
    inherited
        .into_iter()
        .filter(|(name, value)| is_kept(&text(name), &text(value)))
        .collect()
}

/// Returns true if a variable of this name holds a secret.
pub fn is_key_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    KEY_ENDINGS.iter().any(|ending| {
        name.strip_suffix(ending)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    })
}

/// Environment of our shims: enough to finish a restore, without secrets.
pub(super) fn shim(inherited: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
    keep(inherited, |name| {
        is_allowed(name) || name == "SUPERVISOR_STATE_DIR"
    })
}

const ALLOWED: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "LANG",
    "LANGUAGE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "CLAUDE_CONFIG_DIR",
];
const ALLOWED_PREFIXES: &[&str] = &["LC_", "XDG_"];
/// Leads to the sockets of the user's session, through which a program could act as the user.
const SESSION_VARS: &[&str] = &["XDG_RUNTIME_DIR"];
/// Matched in any case: programs disagree about it.
const PROXIES: &[&str] = &["http_proxy", "https_proxy", "no_proxy", "all_proxy"];

const SECRET_PREFIXES: &[&str] = &["ANTHROPIC_", "CLAUDE", "SUPERVISOR_"];
const KEY_ENDINGS: &[&str] = &[
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "CREDENTIALS",
];
/// A word with one of these endings marks a secret, wherever it is in the name.
const SECRET_WORDS: &[&str] = &[
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "APIKEY",
    "CREDENTIAL",
    "CREDENTIALS",
];

fn is_allowed(name: &str) -> bool {
    ALLOWED.contains(&name)
        || (ALLOWED_PREFIXES.iter().any(|p| name.starts_with(p)) && !SESSION_VARS.contains(&name))
        || PROXIES.iter().any(|p| name.eq_ignore_ascii_case(p))
}

/// Decides by name, ignoring case: `_TOKEN` and a bare `TOKEN`, but not `BROKEN`. The last word of
/// a name describes its value. An earlier word may describe something else (`TOKEN_LIMIT`,
/// `PASSWORD_STORE_DIR`), so the value has to look like a secret too.
fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let Some((last, before)) = words.split_last() else {
        return false;
    };
    let is_secret_word = |word: &str| SECRET_WORDS.iter().any(|ending| word.ends_with(ending));
    SECRET_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || is_secret_word(last)
        || (*last == "KEY" && (before.last() == Some(&"API") || looks_random(value)))
        || (["PASS", "PWD"].contains(last) && !before.is_empty() && !is_path(value))
        || (before.iter().any(|word| is_secret_word(word)) && looks_like_password(value))
}

/// Finds a key or a password inside the value: `postgres://user:password@host`, `-----BEGIN PRIVATE
/// KEY-----`.
fn contains_secret(shapes: &Redactor, value: &str) -> bool {
    shapes.describe_secret(value).is_some()
}

fn is_path(value: &str) -> bool {
    value.starts_with(['/', '~', '.'])
}

/// Not a path, a number or a plain setting word such as `bearer` or `on`.
fn looks_like_password(value: &str) -> bool {
    let is_word = value
        .chars()
        .all(|c| c.is_ascii_lowercase() || c == '-' || c == '_');
    let is_number = value.chars().all(|c| c.is_ascii_digit() || c == '.');
    value.len() >= 6 && !is_path(value) && !is_word && !is_number
}

/// Looks like a generated key: long, letters and digits, no white space.
fn looks_random(value: &str) -> bool {
    let has = |test: fn(&char) -> bool| value.chars().any(|c| test(&c));
    value.len() >= 16
        && !is_path(value)
        && !value.contains(char::is_whitespace)
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
}

fn contains(list: &[String], name: &str) -> bool {
    list.iter().any(|listed| listed == name)
}

/// Names that are not UTF-8 are matched in their lossy form; no list contains such a name.
fn keep(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    is_wanted: impl Fn(&str) -> bool,
) -> Environment {
    inherited
        .into_iter()
        .filter(|(name, _)| is_wanted(&OsStr::to_string_lossy(name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inherited(names: &[&str]) -> Vec<(OsString, OsString)> {
        names
            .iter()
            .map(|n| (OsString::from(n), OsString::from("v")))
            .collect()
    }

    fn kept(environment: &Environment) -> Vec<&str> {
        environment.keys().map(|k| k.to_str().unwrap()).collect()
    }

    #[test]
    fn agents_get_only_listed_variables() {
        let all = inherited(&[
            "HOME",
            "PATH",
            "LC_ALL",
            "HTTPS_PROXY",
            "no_proxy",
            "XDG_RUNTIME_DIR",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_SIMPLE",
            "CLAUDECODE",
            "ANTHROPIC_API_KEY",
            "AWS_PROFILE",
            "LITELLM_API_KEY",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "SUPERVISOR_STATE_DIR",
        ]);
        assert_eq!(
            kept(&agent(all.clone(), &[])),
            [
                "CLAUDE_CONFIG_DIR",
                "HOME",
                "HTTPS_PROXY",
                "LC_ALL",
                "PATH",
                "no_proxy"
            ]
        );
        assert!(
            agent(all, &["ANTHROPIC_API_KEY".into()]).contains_key(OsStr::new("ANTHROPIC_API_KEY"))
        );
    }

    #[test]
    fn last_word_of_name_marks_a_key() {
        for name in [
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "github_token",
            "SECRET",
            "OPENAI_APIKEY",
        ] {
            assert!(is_key_name(name), "{name}");
        }
        for name in [
            "HOME",
            "MONKEY",
            "BROKEN",
            "TOKENIZER",
            "CLAUDE_CONFIG_DIR",
            "SUPERVISOR_STATE_DIR",
        ] {
            assert!(!is_key_name(name), "{name}");
        }
    }

    #[test]
    fn tests_get_everything_but_keys() {
        let all = inherited(&[
            "HOME",
            "DATABASE_URL",
            "BROKEN",
            "TOKENIZER",
            "MY_LLM",
            "ANTHROPIC_BASE_URL",
            "CLAUDECODE",
            "CLAUDE_CONFIG_DIR",
            "OPENAI_API_KEY",
            "openai_api_key",
            "GITHUB_TOKEN",
            "TOKEN",
            "CLIENT_SECRET",
            "SUPERVISOR_TREE",
            "SUPERVISOR_MODELS_FILE",
        ]);
        assert_eq!(
            kept(&tests(all.clone(), &["MY_LLM".into()], &[])),
            ["BROKEN", "DATABASE_URL", "HOME", "TOKENIZER"]
        );
        assert_eq!(
            kept(&tests(
                all,
                &["MY_LLM".into()],
                &["GITHUB_TOKEN".into(), "MY_LLM".into()]
            )),
            [
                "BROKEN",
                "DATABASE_URL",
                "GITHUB_TOKEN",
                "HOME",
                "MY_LLM",
                "TOKENIZER"
            ]
        );
    }

    #[test]
    fn secrets_never_reach_test_commands() {
        let one = |name: &str, value: &str| vec![(OsString::from(name), OsString::from(value))];
        for (name, value) in [
            (
                "AWS_SECRET_ACCESS_KEY",
                "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            ),
            ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
            ("MY_PASSWORD", "hunter2"),
            ("PGPASSWORD", "hunter2"),
            ("MYSQL_PWD", "hunter2"),
            (
                "DATABASE_URL",
                "postgres://app:hunter2@db.internal:5432/app",
            ),
            ("CELERY_BROKER", "amqp://app:hunter2@mq//"),
            ("DEPLOY_CERT", "-----BEGIN PRIVATE KEY-----\nMIIE"),
            ("ENCRYPTION_KEY", "0f3a9c77d2e84b1f0f3a9c77d2e84b1f"),
            ("SECRET_PROD", "Tr0ub4dor&3"),
            ("npm_config_password", "hunter2"),
        ] {
            assert!(tests(one(name, value), &[], &[]).is_empty(), "{name}");
            assert_eq!(
                tests(one(name, value), &[], &[name.to_owned()]).len(),
                1,
                "{name}: `env_pass` names it"
            );
        }
        for (name, value) in [
            ("DATABASE_URL", "postgres://localhost/app_test"),
            ("PASSWORD_STORE_DIR", "/home/x/.password-store"),
            ("TOKEN_LIMIT", "4096"),
            ("SECRET_BACKEND", "local-files"),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("PWD", "/home/x"),
            ("OLDPWD", "/home/x"),
            ("GIT_ASKPASS", "/usr/bin/askpass"),
            ("SORT_KEY", "created"),
            ("RUSTFLAGS", "-C debuginfo=0"),
            ("HTTPS_PROXY", "http://proxy:3128"),
            ("RUSTC_BOOTSTRAP_KEY", "1"),
        ] {
            assert_eq!(tests(one(name, value), &[], &[]).len(), 1, "{name}");
        }
    }
}
