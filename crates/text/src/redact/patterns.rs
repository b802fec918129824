//! Secrets known by their shape: what providers' keys look like, and the words that announce one.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::REDACTED;

/// One automaton for all shapes. Named groups say how a find is treated: `keep` stays before the mark and `after`
/// behind it; what is in `maybe` goes only if it looks random, so that prose stays as it is.
// Only ASCII classes: Unicode's tables are left out of the build.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    let shapes = [
        r"(?P<block>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)",
        r"(?-u:\b)sk-ant-[A-Za-z0-9_-]{8,}",
        r"(?-u:\b)(?P<maybe_sk>sk-[A-Za-z0-9_-]{16,})",
        r"(?-u:\b)(?:gh[opsur]_|github_pat_|glpat-|hf_|npm_|xox[abeoprs]-)(?P<maybe_token>[A-Za-z0-9_-]{16,})",
        r"(?-u:\b)(?:AKIA|ASIA)[0-9A-Z]{16}",
        r"(?-u:\b)AIza[0-9A-Za-z_-]{30,}",
        // A signed token: header, claims, signature.
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        // A header says by its name that a secret follows; the word `bearer` alone may be prose.
        r#"(?P<keep_header>(?i-u:authorization)\\?["']?[ \t]*[:=][ \t]*\\?["']?(?i-u:bearer|basic|token)[ \t]+)[A-Za-z0-9._~+/=-]{4,}"#,
        r#"(?P<keep_key_header>(?i-u:-api-key)\\?["']?[ \t]*:[ \t]*\\?["']?)[A-Za-z0-9._~+/=-]{8,}"#,
        r"(?P<keep_scheme>(?-u:\b)(?i-u:bearer)[ \t]+)(?P<maybe_scheme>[A-Za-z0-9._~+/=-]{8,})",
        // As in an environment: no blanks around `=`. As in code and JSON: in quotes.
        r#"(?P<keep_env>(?:API_KEY|ACCESS_KEY|SECRET_KEY|TOKEN|SECRET|PASSWORD)=)[^ \t\n\r"'`$<>{}()\[\],;&\\][^ \t\n\r"'`,;&\\]{7,}"#,
        r#"(?P<keep_name>(?:(?i-u:api[_-]?key)|ACCESS_KEY|SECRET_KEY|TOKEN|SECRET|PASSWORD)\\?["']?[ \t]*[=:][ \t]*\\?["'])[^ \t\n\r"'$<{\[\\][^ \t\n\r"'\\]{7,}"#,
        r"(?P<keep_address>://[A-Za-z0-9._%+-]*:)[^ \t\n\r/@:\[][^ \t\n\r/@:]{2,}(?P<after>@)",
    ];
    Regex::new(&shapes.join("|")).expect("the shapes are constant and tested")
});

static BLOCK_END: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
        .expect("the shape is constant and tested")
});

const KEEP: [&str; 6] = [
    "keep_header",
    "keep_key_header",
    "keep_scheme",
    "keep_env",
    "keep_name",
    "keep_address",
];
const MAYBE: [&str; 3] = ["maybe_sk", "maybe_token", "maybe_scheme"];

/// What begins like this is named so; the rest is known by the word before it.
const NAMES: &[(&str, &str)] = &[
    (
        "-----BEGIN",
        "a private key (`-----BEGIN … PRIVATE KEY-----`)",
    ),
    ("sk-ant-", "an Anthropic key (`sk-ant-…`)"),
    ("sk-", "an API key (`sk-…`)"),
    ("gh", "a GitHub token (`ghp_…`)"),
    ("github_pat_", "a GitHub token (`github_pat_…`)"),
    ("glpat-", "a GitLab token (`glpat-…`)"),
    ("hf_", "a Hugging Face token (`hf_…`)"),
    ("npm_", "an npm token (`npm_…`)"),
    ("xox", "a Slack token (`xox…-`)"),
    ("AKIA", "an AWS key (`AKIA…`)"),
    ("ASIA", "an AWS key (`ASIA…`)"),
    ("AIza", "a Google key (`AIza…`)"),
    ("eyJ", "a signed token (`eyJ….eyJ…`)"),
    ("://", "a password in an address (`://user:…@`)"),
];

/// What the first secret in a text is called.
pub(super) fn name(text: &str) -> Option<&'static str> {
    let mut at = 0;
    while let Some(found) = SHAPES.captures_at(text, at) {
        let whole = found.get(0).expect("group 0 is the match");
        if first(&found, &MAYBE).is_none_or(looks_random) {
            let name = NAMES
                .iter()
                .find(|(start, _)| whole.as_str().starts_with(start));
            return Some(name.map_or(
                "a key, token or password behind its name (`API_KEY=…`)",
                |(_, name)| name,
            ));
        }
        at = whole.start() + 1;
    }
    None
}

pub(super) fn redact(text: &str) -> Cow<'_, str> {
    // Looking is much cheaper than capturing, and nearly all text is clean.
    if SHAPES.is_match(text) {
        redact_found(text)
    } else {
        Cow::Borrowed(text)
    }
}

/// Does a field of this name hold a secret?
pub(super) fn names_a_secret(name: &str) -> bool {
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .map(|c| c.to_ascii_lowercase())
        .collect();
    [
        "apikey",
        "authorization",
        "password",
        "passwd",
        "secret",
        "secretkey",
        "accesskey",
        "accesstoken",
        "authtoken",
        "privatekey",
    ]
    .iter()
    .any(|end| name.ends_with(end))
}

fn redact_found(text: &str) -> Cow<'_, str> {
    let (mut out, mut done, mut at) = (String::new(), 0, 0);
    // Looked for once only: text full of beginnings without an end must not cost a search each.
    let last_block_end = BLOCK_END.find_iter(text).last().map_or(0, |end| end.end());
    while let Some(found) = SHAPES.captures_at(text, at) {
        let whole = found.get(0).expect("group 0 is the match");
        if first(&found, &MAYBE).is_some_and(|rest| !looks_random(rest)) {
            // Not one, but another may begin inside it. Shapes begin with ASCII, so this is a boundary.
            at = whole.start() + 1;
            continue;
        }
        out.push_str(&text[done..whole.start()]);
        out.push_str(first(&found, &KEEP).unwrap_or_default());
        out.push_str(REDACTED);
        out.push_str(found.name("after").map_or("", |m| m.as_str()));
        done = match found.name("block") {
            Some(_) if whole.end() < last_block_end => BLOCK_END
                .find_at(text, whole.end())
                .map_or(whole.end(), |end| end.end()),
            // A block that was cut off before its end is one too.
            Some(_) => whole.end() + block_body(&text[whole.end()..]),
            None => whole.end(),
        };
        at = done;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

fn block_body(text: &str) -> usize {
    let inside =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '\\' | '\n' | '\r');
    text.find(|c| !inside(c)).unwrap_or(text.len())
}

/// Keys have digits or are long; `Bearer authentication` and `sk-loading-indicator` have none and are not.
fn looks_random(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit()) || text.len() >= 40
}

fn first<'t>(found: &Captures<'t>, groups: &[&str]) -> Option<&'t str> {
    groups
        .iter()
        .find_map(|group| found.name(group))
        .map(|m| m.as_str())
}
