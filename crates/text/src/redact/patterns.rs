//! Patterns of secrets: formats of provider keys, and words that precede a secret.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// One regex for all patterns. Named groups control the replacement: `keep` stays before the marker
/// and `after` behind it. A match with a `maybe` group is redacted only if it looks random, so that
/// prose is kept. A `value` is the value of a name such as `PASSWORD`.
// Only ASCII classes: Unicode's tables are left out of the build.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    let shapes = [
        r"(?P<block>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)",
        r"(?-u:\b)sk-ant-[A-Za-z0-9_-]{8,}",
        r"(?-u:\b)(?P<maybe_sk>sk-[A-Za-z0-9_-]{16,})",
        r"(?-u:\b)(?:gh[opsur]_|github_pat_|glpat-|hf_|npm_|xox[abeoprs]-)(?P<maybe_token>[A-Za-z0-9_-]{16,})",
        r"(?-u:\b)(?:AKIA|ASIA)[0-9A-Z]{16}",
        r"(?-u:\b)AIza[0-9A-Za-z_-]{30,}",
        // A signed token (JWT): header, claims, signature.
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        // A header name implies a secret; the word `bearer` alone may be prose.
        r#"(?P<keep_header>(?i-u:authorization)\\?["']?[ \t]*[:=][ \t]*\\?["']?(?i-u:bearer|basic|token)[ \t]+)[A-Za-z0-9._~+/=-]{4,}"#,
        r#"(?P<keep_key_header>(?i-u:-api-key)\\?["']?[ \t]*:[ \t]*\\?["']?)[A-Za-z0-9._~+/=-]{8,}"#,
        r"(?P<keep_scheme>(?-u:\b)(?i-u:bearer)[ \t]+)(?P<maybe_scheme>[A-Za-z0-9._~+/=-]{8,})",
        // As in an environment: no blanks around `=`. As in code and JSON: in quotes.
        r#"(?P<keep_env>(?:API_KEY|ACCESS_KEY|SECRET_KEY|TOKEN|SECRET|PASSWORD)=)(?P<value_env>[^ \t\n\r"'`$<>{}()\[\],;&\\][^ \t\n\r"'`,;&\\]{7,})"#,
        r#"(?P<keep_name>(?:(?i-u:api[_-]?key)|ACCESS_KEY|SECRET_KEY|TOKEN|SECRET|PASSWORD)\\?["']?[ \t]*[=:][ \t]*\\?["'])(?P<value_name>[^ \t\n\r"'$<{\[\\][^ \t\n\r"'\\]{7,})"#,
        r"(?P<keep_address>://[A-Za-z0-9._%+-]*:)(?P<password>[^ \t\n\r/@:\[][^ \t\n\r/@:]{2,})(?P<after>@)",
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
const VALUES: [&str; 3] = ["value_env", "value_name", "password"];

/// Names of secrets by prefix. Others are recognised by the word before them.
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

/// Describes the first secret in a text.
pub(super) fn describe(text: &str) -> Option<&'static str> {
    let mut at = 0;
    while let Some(found) = SHAPES.captures_at(text, at) {
        let matched = found.get(0).expect("group 0 is the match");
        if is_secret(&found, text) {
            let name = NAMES
                .iter()
                .find(|(start, _)| matched.as_str().starts_with(start));
            return Some(name.map_or(
                "a key, token or password behind its name (`API_KEY=…`)",
                |(_, name)| name,
            ));
        }
        at = matched.start() + 1;
    }
    None
}

/// Replaces each secret by what `mark` makes of it.
pub(super) fn replace<'a>(text: &'a str, mark: &mut dyn FnMut(&str) -> String) -> Cow<'a, str> {
    // Matching is much cheaper than capturing, and nearly all text is clean.
    if SHAPES.is_match(text) {
        replace_found(text, mark)
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether a line holds a secret that should not be in source code. `PASSWORD = "swordfish"` may be one, so it is
/// redacted, but it is no reason to blame anybody.
pub(super) fn is_certain(line: &str) -> bool {
    let mut found = SHAPES.captures_iter(line);
    found.any(|found| {
        is_secret(&found, line) && first_group(&found, &VALUES).is_none_or(looks_generated)
    })
}

/// Whether a field of this name holds a secret.
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

fn replace_found<'a>(text: &'a str, mark: &mut dyn FnMut(&str) -> String) -> Cow<'a, str> {
    let (mut out, mut done, mut at) = (String::new(), 0, 0);
    // Searched only once: text with many block starts but no end must not cost a search each.
    let last_block_end = BLOCK_END.find_iter(text).last().map_or(0, |end| end.end());
    while let Some(found) = SHAPES.captures_at(text, at) {
        let matched = found.get(0).expect("group 0 is the match");
        if !is_secret(&found, text) {
            // Not a secret, but another match may begin inside it. Patterns begin with ASCII, so
            // this is a char boundary.
            at = matched.start() + 1;
            continue;
        }
        let after = found.name("after").map_or("", |m| m.as_str());
        let kept = first_group(&found, &KEEP).map_or(0, str::len);
        let end = match found.name("block") {
            Some(_) if matched.end() < last_block_end => BLOCK_END
                .find_at(text, matched.end())
                .map_or(matched.end(), |end| end.end()),
            // A truncated block counts too.
            Some(_) => matched.end() + block_body(&text[matched.end()..]),
            None => matched.end(),
        };
        let start = matched.start() + kept;
        out.push_str(&text[done..start]);
        out.push_str(&mark(&text[start..end - after.len()]));
        out.push_str(after);
        done = end;
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

/// Whether a match is a secret and not an example or prose.
fn is_secret(found: &Captures<'_>, text: &str) -> bool {
    let is_password = |password: &str, rest: &str| {
        let is_long = password.len() >= 10 && entropy_of_steps(password) >= 1.5;
        (is_long || looks_generated(password)) && !is_example_host(rest)
    };
    first_group(found, &MAYBE).is_none_or(looks_random)
        && found
            .name("password")
            .is_none_or(|password| is_password(password.as_str(), &text[password.end() + 1..]))
}

/// Whether an address continues with a host name that RFC 2606 reserves for examples and tests.
fn is_example_host(rest: &str) -> bool {
    let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let host = rest.split(|c| !in_name(c)).next().unwrap_or_default();
    let mut labels = host.trim_end_matches('.').rsplit('.');
    match labels.next() {
        Some("example" | "test" | "invalid") => true,
        Some("com" | "net" | "org") => labels.next() == Some("example"),
        _ => false,
    }
}

/// Keys contain digits or are long. `Bearer authentication` and `sk-loading-indicator` are neither.
fn looks_random(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit()) || text.len() >= 40
}

/// Passwords contain digits or symbols, or are long, and are no sequence or repetition: not `pass`, `12345678` or
/// `xxxx-0000`.
fn looks_generated(text: &str) -> bool {
    let is_wordlike = |b: u8| b.is_ascii_alphabetic() || matches!(b, b'-' | b'_' | b'.');
    (text.len() >= 40 || !text.bytes().all(is_wordlike)) && entropy_of_steps(text) >= 1.5
}

/// Bits of entropy per step from one byte to the next. Steps instead of bytes, so that a sequence has none.
fn entropy_of_steps(text: &str) -> f64 {
    let mut counts: HashMap<u8, u32> = HashMap::new();
    let bytes = text.as_bytes();
    for step in bytes.windows(2).take(200) {
        *counts.entry(step[1].wrapping_sub(step[0])).or_default() += 1;
    }
    let total = f64::from(counts.values().sum::<u32>());
    let shares = counts.values().map(|n| f64::from(*n) / total);
    -shares.map(|share| share * share.log2()).sum::<f64>()
}

fn first_group<'t>(found: &Captures<'t>, groups: &[&str]) -> Option<&'t str> {
    groups
        .iter()
        .find_map(|group| found.name(group))
        .map(|m| m.as_str())
}
