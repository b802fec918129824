//! Who gets which variables. Pure: the inherited environment comes in as data.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use supervisor_text::redact::Redactor;

pub type Environment = BTreeMap<OsString, OsString>;

/// For agent CLIs: only what is named here, and what the backend asks for by name.
pub fn agent(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    extra_allow: &[String],
) -> Environment {
    keep(inherited, |name| {
        is_allowed(name) || names(extra_allow, name)
    })
}

/// For test commands: what the user has, without keys. `key_vars` are the variables our own keys come from;
/// `env_pass` re-admits by name.
pub fn tests(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    key_vars: &[String],
    env_pass: &[String],
) -> Environment {
    let shapes = Redactor::by_shape();
    let is_kept = |name: &str, value: &str| {
        names(env_pass, name)
            || !(names(key_vars, name) || is_secret(name, value) || holds_secret(&shapes, value))
    };
    let text = OsStr::to_string_lossy;
    inherited
        .into_iter()
        .filter(|(name, value)| is_kept(&text(name), &text(value)))
        .collect()
}

/// Does a variable of this name hold something that should not be read?
pub fn names_a_key(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    KEY_ENDINGS.iter().any(|ending| {
        name.strip_suffix(ending)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    })
}

/// Our own shims: enough to finish a restore, and no keys.
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
/// Leads to the sockets of the user's session, at which a program acts as the user.
const SESSION: &[&str] = &["XDG_RUNTIME_DIR"];
/// Programs disagree about the case of these.
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
/// A word of a name that ends like this announces a secret, wherever it stands.
const ANNOUNCING: &[&str] = &[
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
        || (ALLOWED_PREFIXES.iter().any(|p| name.starts_with(p)) && !SESSION.contains(&name))
        || PROXIES.iter().any(|p| name.eq_ignore_ascii_case(p))
}

/// In any case of letters; `_TOKEN` and a bare `TOKEN`, but not `BROKEN`. The last word of a name says what its value is;
/// an earlier one may speak about something else (`TOKEN_LIMIT`, `PASSWORD_STORE_DIR`), so there the value decides, too.
fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let Some((last, before)) = words.split_last() else {
        return false;
    };
    let announces = |word: &str| ANNOUNCING.iter().any(|ending| word.ends_with(ending));
    SECRET_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || announces(last)
        || (*last == "KEY" && (before.last() == Some(&"API") || looks_random(value)))
        || (["PASS", "PWD"].contains(last) && !before.is_empty() && !is_place(value))
        || (before.iter().any(|word| announces(word)) && looks_chosen(value))
}

/// A key or a password inside the value itself: `postgres://user:password@host`, `-----BEGIN PRIVATE KEY-----`.
fn holds_secret(shapes: &Redactor, value: &str) -> bool {
    shapes.name_of_secret(value).is_some()
}

fn is_place(value: &str) -> bool {
    value.starts_with(['/', '~', '.'])
}

/// Neither a place nor a number nor a plain word of a setting, such as `bearer` or `on`.
fn looks_chosen(value: &str) -> bool {
    let is_word = value
        .chars()
        .all(|c| c.is_ascii_lowercase() || c == '-' || c == '_');
    let is_number = value.chars().all(|c| c.is_ascii_digit() || c == '.');
    value.len() >= 6 && !is_place(value) && !is_word && !is_number
}

/// As programs make keys: long, letters and digits, in one piece.
fn looks_random(value: &str) -> bool {
    let has = |test: fn(&char) -> bool| value.chars().any(|c| test(&c));
    value.len() >= 16
        && !is_place(value)
        && !value.contains(char::is_whitespace)
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
}

fn names(list: &[String], name: &str) -> bool {
    list.iter().any(|listed| listed == name)
}

/// A name that is not text cannot be on any list, so it is judged by what can be read of it.
fn keep(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    wanted: impl Fn(&str) -> bool,
) -> Environment {
    inherited
        .into_iter()
        .filter(|(name, _)| wanted(&OsStr::to_string_lossy(name)))
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
    fn an_agent_gets_what_is_listed_and_nothing_else() {
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
    fn a_key_is_known_by_the_last_word_of_its_name() {
        for name in [
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "github_token",
            "SECRET",
            "OPENAI_APIKEY",
        ] {
            assert!(names_a_key(name), "{name}");
        }
        for name in [
            "HOME",
            "MONKEY",
            "BROKEN",
            "TOKENIZER",
            "CLAUDE_CONFIG_DIR",
            "SUPERVISOR_STATE_DIR",
        ] {
            assert!(!names_a_key(name), "{name}");
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
    fn a_secret_does_not_reach_the_tests_whatever_its_variable_is_called() {
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
