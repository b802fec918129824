//! Tells failures caused by the sandbox from failures caused by the code. A refusal is visible only
//! as text, so this matches the usual error messages and names the setting that would allow the
//! access.

use std::sync::LazyLock;

use regex::Regex;

use super::{NetworkReach, SandboxLevel, SandboxReport};

/// A refused file: the system's error message and the path beside it.
static REFUSED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)(?:['"`]?(/[^\s'"`:,)]+)['"`]?[^\n]{0,80}?(?:permission denied|read-only file ?system|EACCES|EROFS)|(?:permission denied|read-only file ?system|EACCES|EROFS)[^\n]{0,120}?['"` ](/[^\s'"`:,)]+))"#,
    )
    .expect("the pattern is part of the program")
});

/// Error messages of programs without a network.
const UNREACHABLE: &[&str] = &[
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "network is unreachable",
    "getaddrinfo eai_again",
    "enetunreach",
    "no matching package named",
    "you're using offline mode",
    "--offline was specified",
    "cache mode is 'only-if-cached'",
    "dial tcp: lookup",
];

/// Explains what the sandbox refused. Returns `None` if the output does not mention a refusal.
pub fn explain_refusals(report: &SandboxReport, output: &str) -> Option<String> {
    if report.level == SandboxLevel::None {
        return None;
    }
    if let Some(found) = REFUSED.captures(output) {
        let path = found
            .get(1)
            .or(found.get(2))
            .map_or("", |path| path.as_str());
        return Some(format!(
            "the sandbox may have refused `{path}`; if the tests need it, name it under `write` in [sandbox]"
        ));
    }
    let lower = output.to_lowercase();
    let offline = report.network == NetworkReach::Private
        && UNREACHABLE.iter().any(|words| lower.contains(words));
    offline.then(|| {
        String::from(
            "the sandbox gives the tests a private network; fetch dependencies beforehand, or set `network = \"host\"` \
             in [sandbox] and name the tool's cache under `caches`",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(network: NetworkReach) -> SandboxReport {
        SandboxReport {
            level: SandboxLevel::Namespaces,
            network,
            why: String::new(),
        }
    }

    #[test]
    fn refused_path_and_setting_are_named() {
        for output in [
            "PermissionError: [Errno 13] Permission denied: '/home/u/.cache/x'",
            "Error: EROFS: read-only file system, open '/home/u/.cache/x'",
            "touch: cannot touch '/home/u/.cache/x': Read-only file system",
            "open /home/u/.cache/x: permission denied",
        ] {
            let explanation =
                explain_refusals(&report(NetworkReach::Private), output).expect(output);
            assert!(
                explanation.contains("`/home/u/.cache/x`")
                    && explanation.contains("`write` in [sandbox]"),
                "{output}: {explanation}"
            );
        }
    }

    #[test]
    fn missing_network_is_explained_only_when_private() {
        let output = "curl: (6) Could not resolve host: example.org";
        assert!(
            explain_refusals(&report(NetworkReach::Private), output)
                .is_some_and(|t| t.contains("network = \"host\""))
        );
        assert_eq!(explain_refusals(&report(NetworkReach::Host), output), None);
        assert_eq!(
            explain_refusals(&SandboxReport::off(), "'/x': Permission denied"),
            None
        );
        assert_eq!(
            explain_refusals(
                &report(NetworkReach::Private),
                "assertion failed: left == right"
            ),
            None
        );
    }
}
