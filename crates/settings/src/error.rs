//! What can be wrong with the settings, said so that the next step is plain: where, which key, what, and a hint.
//! Never prints what may be a secret: values appear only where they are names, and not if they look like a key.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use supervisor_text::words;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The `models.toml` compiled in.
    BuiltIn,
    /// The user's file, with the line where it is known.
    File(PathBuf, Option<usize>),
    /// A variable, by its full name.
    Variable(String),
    /// An argument of this call, by its name.
    Call(String),
}

/// The layers, from the first to the one that wins over all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingsLayer {
    BuiltIn,
    File,
    Variable,
    Call,
}

impl Origin {
    pub fn layer(&self) -> SettingsLayer {
        match self {
            Self::BuiltIn => SettingsLayer::BuiltIn,
            Self::File(..) => SettingsLayer::File,
            Self::Variable(_) => SettingsLayer::Variable,
            Self::Call(_) => SettingsLayer::Call,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File(path, None) => write!(f, "{}", path.display()),
            Self::File(path, Some(line)) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Call(argument) => write!(f, "`{argument}` of this call"),
        }
    }
}

/// Settings that cannot be used, or a call that asks for what is not there.
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
    #[error("{}", sentences(.0))]
    Invalid(Vec<Problem>),
    #[error("there is no skill {}; {}", name(skill), known_or_meant(skill, known))]
    UnknownSkill { skill: String, known: Vec<String> },
    #[error(
        "no backend serves {}; they serve {}; add it to `models` of one of [backends.*]",
        name(model),
        words::one_of(served.iter().map(String::as_str))
    )]
    UnknownModel { model: String, served: Vec<String> },
    #[error("`{argument}` of this call {fault}")]
    Argument {
        argument: &'static str,
        fault: Fault,
    },
}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub origin: Origin,
    /// As written in TOML; `None` when the whole file is meant.
    pub key: Option<String>,
    pub fault: Fault,
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{}: `{key}` {}", self.origin, self.fault)?,
            None => write!(f, "{} {}", self.origin, self.fault)?,
        }
        self.hint
            .iter()
            .try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}

/// What is wrong with one key, as the rest of a sentence that begins with the key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    #[error("is not a known key")]
    UnknownKey,
    #[error("is not a known skill")]
    UnknownSkill,
    #[error("must not hold a secret; the value was not read")]
    Secret,
    #[error("takes {expected}, not {found}")]
    WrongType {
        expected: String,
        found: &'static str,
    },
    #[error("takes {expected}, not {}", name(.found))]
    NotOneOf { expected: String, found: String },
    #[error("takes {expected}{}", .found.as_ref().map(|found| format!(", not {found}")).unwrap_or_default())]
    OutOfBounds {
        expected: String,
        found: Option<String>,
    },
    #[error(
        "takes the name of a variable, in capitals; what is there is not one (and is not shown)"
    )]
    NotAVariable,
    #[error(
        "takes an address such as `http://localhost:4000`, without user, password, query or fragment"
    )]
    NotAnAddress,
    #[error("takes an absolute path")]
    NotAbsolute,
    #[error("takes a name found on the PATH or an absolute path")]
    NotAProgram,
    #[error("takes exact model names, without `*`")]
    NotAName,
    #[error("takes model names; `*` may stand at the end of one and nowhere else")]
    NotAPattern,
    #[error("is empty")]
    Empty,
    #[error("is missing")]
    Missing,
    #[error("names {}, which no backend serves", name(.0))]
    NotServed(String),
    #[error("names {}, and there is no such backend", name(.0))]
    NoSuchBackend(String),
    #[error("has {}, which backend `{other}` has too", name(.pattern))]
    ServedTwice { pattern: String, other: String },
    #[error("could mean {}", words::one_of(.0.iter().map(String::as_str)))]
    Ambiguous(Vec<String>),
    #[error("means nothing to a backend of kind \"{0}\"")]
    NotForKind(&'static str),
    #[error("is not valid UTF-8")]
    NotUtf8,
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("is larger than 1 MiB, which no settings are")]
    TooLarge,
    #[error("is not TOML: {0}")]
    NotToml(String),
    #[error("is not an absolute path")]
    RelativeFile,
    #[error("cannot be taken in")]
    Unfit,
}

/// Something odd that stops nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// A variable with our prefix that sets nothing.
    Stray {
        variable: String,
        meant: Option<String>,
    },
    /// A variable that would set something, but not with these settings.
    Unused { variable: String, why: &'static str },
    /// Chains with more tiers than a call may ask.
    NeverReached {
        skills: Vec<String>,
        tiers: usize,
        reached: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stray {
                variable,
                meant: Some(meant),
            } => {
                write!(
                    f,
                    "${} sets nothing; did you mean `{meant}`?",
                    words::plain(variable)
                )
            }
            Self::Stray {
                variable,
                meant: None,
            } => write!(f, "${} sets nothing", words::plain(variable)),
            Self::Unused { variable, why } => write!(f, "${variable} sets nothing: {why}"),
            Self::NeverReached {
                skills,
                tiers,
                reached,
            } => write!(
                f,
                "`max_attempts` ends a call of `{}` after {reached} of its {tiers} tiers; raise it, or shorten the chain",
                skills.join("`, `")
            ),
        }
    }
}

/// A value that should be a name, for a message; left out when it looks like a key.
pub fn name(value: &str) -> String {
    if looks_secret(value) {
        return String::from("(something that looks like a key, not shown)");
    }
    format!("`{}`", words::plain(&words::cut_end(value, 80)))
}

/// Whether a text looks like a key or token of one of the usual makes.
pub fn looks_secret(value: &str) -> bool {
    const MAKES: &[&str] = &[
        "sk-",
        "sk_",
        "pk_",
        "ghp_",
        "gho_",
        "github_pat_",
        "glpat-",
        "xox",
        "AKIA",
        "AIza",
        "hf_",
        "eyJ",
        "Bearer ",
    ];
    let random = value.len() >= 32
        && value.chars().all(|c| c.is_ascii_alphanumeric())
        && value.chars().filter(char::is_ascii_digit).count() >= 6;
    random || MAKES.iter().any(|make| value.starts_with(make))
}

/// Whether a key's own name says that its value is a secret.
pub fn names_secret(key: &str) -> bool {
    let key: String = key
        .to_lowercase()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    [
        "apikey",
        "key",
        "token",
        "secret",
        "password",
        "passwd",
        "authorization",
        "bearer",
        "credential",
        "credentials",
    ]
    .iter()
    .any(|word| key.ends_with(word))
}

fn sentences(problems: &[Problem]) -> String {
    match problems {
        [one] => one.to_string(),
        many => {
            let list: Vec<String> = many
                .iter()
                .map(|p| format!("- {}", p.to_string().replace('\n', "\n  ")))
                .collect();
            format!(
                "{} in the settings:\n{}",
                words::count(many.len(), "problem"),
                list.join("\n")
            )
        }
    }
}

fn known_or_meant(written: &str, known: &[String]) -> String {
    match words::did_you_mean(written, known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!(
            "there is {}",
            words::one_of(known.iter().map(String::as_str))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_key_is_not_repeated() {
        for key in [
            "sk-ant-REDACTED",
            "ghp_REDACTED",
            "0123456789abcdef0123456789abcdef",
        ] {
            assert!(!name(key).contains(key), "{key}");
        }
        for plain in [
            "ollama/qwen3-coder-30b-tuned",
            "claude-sonnet-4-6-20260101",
            "bedrock/anthropic.claude-v2:1",
        ] {
            assert!(name(plain).contains(plain), "{plain}");
        }
    }

    #[test]
    fn a_key_that_asks_for_a_secret_is_known_by_its_name() {
        for name in [
            "api_key",
            "apiKey",
            "API-KEY",
            "token",
            "client_secret",
            "password",
        ] {
            assert!(names_secret(name), "{name}");
        }
        assert!(!names_secret("api_key_env") && !names_secret("call_tokens"));
    }
}
