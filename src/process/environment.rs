//! Who gets which variables. Pure: the inherited environment comes in as data.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// For agent CLIs: only what is named here, and what the backend asks for by name.
pub(crate) fn agent(inherited: impl IntoIterator<Item = (OsString, OsString)>, extra_allow: &[String]) -> Environment {
    keep(inherited, |name| is_allowed(name) || names(extra_allow, name))
}

/// For test commands: what the user has, without keys. `key_vars` are the variables our own keys come from;
/// `env_pass` re-admits by name.
pub(crate) fn tests(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    key_vars: &[String],
    env_pass: &[String],
) -> Environment {
    keep(inherited, |name| names(env_pass, name) || !(is_secret(name) || names(key_vars, name)))
}

/// Does a variable of this name hold something that should not be read?
pub(crate) fn names_a_key(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    KEY_ENDINGS
        .iter()
        .any(|ending| name.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('_')))
}

/// Our own shims: enough to finish a restore, and no keys.
pub(super) fn shim(inherited: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
    keep(inherited, |name| is_allowed(name) || name == "SUPERVISOR_STATE_DIR")
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
const KEY_ENDINGS: &[&str] = &["KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS"];
const SECRET_ENDINGS: &[&str] = &["API_KEY", "TOKEN", "SECRET"];

fn is_allowed(name: &str) -> bool {
    ALLOWED.contains(&name)
        || (ALLOWED_PREFIXES.iter().any(|p| name.starts_with(p)) && !SESSION.contains(&name))
        || PROXIES.iter().any(|p| name.eq_ignore_ascii_case(p))
}

/// In any case of letters; `_TOKEN` and a bare `TOKEN`, but not `BROKEN`.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_PREFIXES.iter().any(|p| name.starts_with(p))
        || SECRET_ENDINGS
            .iter()
            .any(|ending| name.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('_')))
}

fn names(list: &[String], name: &str) -> bool {
    list.iter().any(|listed| listed == name)
}

/// A name that is not text cannot be on any list, so it is judged by what can be read of it.
fn keep(inherited: impl IntoIterator<Item = (OsString, OsString)>, wanted: impl Fn(&str) -> bool) -> Environment {
    inherited.into_iter().filter(|(name, _)| wanted(&OsStr::to_string_lossy(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inherited(names: &[&str]) -> Vec<(OsString, OsString)> {
        names.iter().map(|n| (OsString::from(n), OsString::from("v"))).collect()
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
            ["CLAUDE_CONFIG_DIR", "HOME", "HTTPS_PROXY", "LC_ALL", "PATH", "no_proxy"]
        );
        assert!(agent(all, &["ANTHROPIC_API_KEY".into()]).contains_key(OsStr::new("ANTHROPIC_API_KEY")));
    }

    #[test]
    fn a_key_is_known_by_the_last_word_of_its_name() {
        for name in ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "github_token", "SECRET", "OPENAI_APIKEY"] {
            assert!(names_a_key(name), "{name}");
        }
        for name in ["HOME", "MONKEY", "BROKEN", "TOKENIZER", "CLAUDE_CONFIG_DIR", "SUPERVISOR_STATE_DIR"] {
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
        assert_eq!(kept(&tests(all.clone(), &["MY_LLM".into()], &[])), ["BROKEN", "DATABASE_URL", "HOME", "TOKENIZER"]);
        assert_eq!(
            kept(&tests(all, &["MY_LLM".into()], &["GITHUB_TOKEN".into(), "MY_LLM".into()])),
            ["BROKEN", "DATABASE_URL", "GITHUB_TOKEN", "HOME", "MY_LLM", "TOKENIZER"]
        );
    }
}
