//! Problems of settings, with origin, key, fault and a hint. Never prints possible secrets: values
//! appear only if they are names that do not look like a key.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use supervisor_text::words;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The built-in `models.toml`.
    BuiltIn,
    /// The user's file, with the line if known.
    File(PathBuf, Option<usize>),
    /// A variable, by its full name.
    Variable(String),
    /// An argument of this call, by its name.
    Call(String),
}

/// The layers in order; later ones override earlier ones.
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

/// Invalid settings, or a call that names something unknown.
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
    #[error("{}", format_problems(.0))]
    Invalid(Vec<Problem>),
    #[error(
        "there is not a skill {}; {}",
        quote_name(skill),
        suggest_known(skill, known)
    )]
    UnknownSkill { skill: String, known: Vec<String> },
    #[error(
        "no backend serves {}; they serve {}; {}",
        quote_name(model),
        words::one_of(served.iter().map(String::as_str)),
        match words::did_you_mean(model, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => String::from("add it to `models` of one of [backends.*]"),
        }
    )]
    UnknownModel {
        model: String,
        /// Patterns of all backends.
        served: Vec<String>,
        /// Names of models: those of the settings, and those that gateways offer.
        known: Vec<String>,
    },
    #[error(
        "{by} lets nothing leave this machine, and {} {} not local; name a model of a backend with `tier = \"local\"` at an address of this machine or of `local_hosts`",
        words::one_of(models.iter().map(String::as_str)),
        if models.len() == 1 { "is" } else { "are" }
    )]
    StaysLocal { by: String, models: Vec<String> },
    #[error("`{argument}` of this call {fault}")]
    Argument {
        argument: &'static str,
        fault: Fault,
    },
}

/// One problem and where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub origin: Origin,
    /// As written in TOML; `None` for the whole file.
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

/// What is wrong with a key, as the end of a sentence that begins with the key.
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
    #[error("takes {expected}, not {}", quote_name(.found))]
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
    #[error("names {}, which no backend serves", quote_name(.0))]
    NotServed(String),
    #[error("names {}, and there is no such backend", quote_name(.0))]
    NoSuchBackend(String),
    #[error("has {}, which backend `{other}` has too", quote_name(.pattern))]
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
    InvalidValue,
}

/// A problem that does not prevent loading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// A variable with our prefix that sets nothing.
    Stray {
        variable: String,
        suggestion: Option<String>,
    },
    /// A key of the first version, read as the one that replaced it.
    Renamed {
        key: &'static str,
        now: &'static str,
    },
    /// A variable that has no effect with the current settings.
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
                suggestion: Some(suggestion),
            } => {
                write!(
                    f,
                    "${} sets nothing; did you mean `{suggestion}`?",
                    words::plain(variable)
                )
            }
            Self::Stray {
                variable,
                suggestion: None,
            } => write!(f, "${} sets nothing", words::plain(variable)),
            Self::Renamed { key, now } => write!(f, "`{key}` is read as `{now}`; rename it"),
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

/// Quotes a name for a message, unless it looks like a key.
pub(crate) fn quote_name(value: &str) -> String {
    if looks_secret(value) {
        return String::from("(something that looks like a key, not shown)");
    }
    format!("`{}`", words::plain(&words::cut_end(value, 80)))
}

/// Whether a text looks like a key or token in a common format.
pub(crate) fn looks_secret(value: &str) -> bool {
    const PREFIXES: &[&str] = &[
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
    let looks_random = value.len() >= 32
        && value.chars().all(|c| c.is_ascii_alphanumeric())
        && value.chars().filter(char::is_ascii_digit).count() >= 6;
    looks_random || PREFIXES.iter().any(|prefix| value.starts_with(prefix))
}

/// Whether the name of a key says that its value is a secret.
pub(crate) fn is_secret_name(key: &str) -> bool {
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

fn format_problems(problems: &[Problem]) -> String {
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

fn suggest_known(input: &str, known: &[String]) -> String {
    match words::did_you_mean(input, known.iter().map(String::as_str)) {
        Some(suggestion) => format!("did you mean `{suggestion}`?"),
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
    fn possible_keys_are_not_shown() {
        for key in [
            "sk-ant-REDACTED",
            "ghp_REDACTED",
            "0123456789abcdef0123456789abcdef",
        ] {
            assert!(!quote_name(key).contains(key), "{key}");
        }
        for plain in [
            "ollama/qwen3-coder-30b-tuned",
            "claude-sonnet-4-6-20260101",
            "bedrock/anthropic.claude-v2:1",
        ] {
            assert!(quote_name(plain).contains(plain), "{plain}");
        }
    }

    #[test]
    fn secret_keys_are_recognized_by_name() {
        for name in [
            "api_key",
            "apiKey",
            "API-KEY",
            "token",
            "client_secret",
            "password",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        assert!(!is_secret_name("api_key_env") && !is_secret_name("call_tokens"));
    }
}
