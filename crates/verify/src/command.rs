//! Command lines as words: what is run, split and joined, never through a shell.

mod chain;

use std::path::Path;

pub(super) use chain::{Piece, expanded, split_chain};

/// The words of a command as a person would type them.
pub(super) fn typed(argv: &[String]) -> String {
    shell_words::join(argv)
}

/// The same, with words that a shell is to replace by files: quotes would make them plain text.
pub(super) fn typed_with(argv: &[String], patterns: &[String]) -> String {
    let word = |word: &String| match patterns.contains(word) {
        true => word.clone(),
        false => shell_words::quote(word).into_owned(),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// `/usr/bin/pytest` is `pytest`.
pub(super) fn program(argv: &[String]) -> &str {
    let first = argv.first().map_or("", String::as_str);
    Path::new(first)
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or(first)
}

/// The words before and after a lone `--`.
pub(super) fn split_at_dashes(argv: &[String]) -> (&[String], &[String]) {
    match argv.iter().position(|a| a == "--") {
        Some(at) => (&argv[..at], &argv[at + 1..]),
        None => (argv, &[]),
    }
}

/// Programs that run the command behind them, changed in its surroundings alone.
const WRAPPERS: &[&str] = &[
    "npx",
    "corepack",
    "bunx",
    "pnpx",
    "cross-env",
    "cross-env-shell",
    "env",
    "c8",
    "nyc",
    "dotenv",
    "env-cmd",
    "time",
    "uv",
    "uvx",
    "poetry",
    "pipenv",
    "pdm",
    "hatch",
    "rye",
    "coverage",
    "bundle",
    "nice",
    "timeout",
    "xvfb-run",
];

/// Words of a wrapper that are neither its options nor the command it runs.
const WRAPPER_WORDS: &[&str] = &["run", "exec", "dlx", "x", "tool"];

/// Without what stands before the program that matters: `env A=1 npx --no cross-env B=2 jest` is `jest`.
pub(super) fn without_wrappers(argv: &[String]) -> &[String] {
    unwrapped(argv).next().unwrap_or_default()
}

/// The command behind its wrappers. An option of a wrapper may take a value, which nothing tells from a command: then
/// both readings are given, `tests pytest` and `pytest` for `uv run --group tests pytest`.
pub(super) fn unwrapped(argv: &[String]) -> impl Iterator<Item = &[String]> {
    let mut found = Vec::new();
    unwrap_into(argv, &mut found);
    found.into_iter()
}

fn unwrap_into<'a>(mut argv: &'a [String], found: &mut Vec<&'a [String]>) {
    while argv.first().is_some_and(|word| is_assignment(word)) {
        argv = &argv[1..];
    }
    let manager = matches!(program(argv), "pnpm" | "yarn" | "npm" | "bun")
        && matches!(argv.get(1).map(String::as_str), Some("exec" | "dlx" | "x"));
    if !manager && !WRAPPERS.contains(&program(argv)) {
        found.push(argv);
        // These also run an installed program by its bare name: `yarn jest`.
        if matches!(program(argv), "pnpm" | "yarn") && argv.len() > 1 {
            unwrap_into(&argv[1..], found);
        }
        return;
    }
    let mut rest = &argv[1..];
    while let Some(word) = rest.first() {
        let skipped =
            word.starts_with('-') || WRAPPER_WORDS.contains(&word.as_str()) || is_assignment(word);
        if !skipped {
            unwrap_into(rest, found);
            // Only what follows an option can be its value.
            let before = argv[argv.len() - rest.len() - 1].as_str();
            if !before.starts_with('-') || before == "--" {
                return;
            }
        } else if word == "-m" && program(argv) == "coverage" {
            // `coverage run -m pytest` is `python -m pytest`.
            found.push(&rest[1..]);
            return;
        }
        rest = &rest[1..];
    }
    if found.is_empty() {
        found.push(&[]);
    }
}

/// What a command starts if that is a file and no installed program: `./check.sh`, `sh -e check.sh`, `node check.js`.
pub(super) fn script(argv: &[String]) -> Option<&str> {
    const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh"];
    const INTERPRETERS: &[&str] = &[
        "python", "python3", "node", "ruby", "perl", "php", "elixir", "bun", "deno",
    ];
    let argv = without_wrappers(argv);
    let first = argv.first()?;
    let flags = if SHELLS.contains(&program(argv)) {
        argv[1..]
            .iter()
            .take_while(|a| a.starts_with('-') && *a != "-c")
            .count()
    } else if INTERPRETERS.contains(&program(argv)) {
        // Behind a flag stands a module, a line of code or what is tested.
        0
    } else {
        return first.contains('/').then_some(first);
    };
    argv.get(1 + flags)
        .map(String::as_str)
        .filter(|a| !a.starts_with('-'))
}

pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
pub(super) fn argv(words: &str) -> Vec<String> {
    shell_words::split(words).expect("well-formed words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_starts_is_told_from_what_it_is_given() {
        for (words, started) in [
            ("./check.sh -q", Some("./check.sh")),
            ("sh -e tools/check.sh", Some("tools/check.sh")),
            ("CI=1 python3 check.py tests", Some("check.py")),
            (".venv/bin/python runtests.py", Some("runtests.py")),
            ("python -m doctest calc.py", None),
            ("sh -c 'exit 0'", None),
            ("node --test calc.js", None),
            ("pytest tests", None),
        ] {
            assert_eq!(script(&argv(words)), started, "{words}");
        }
    }

    #[test]
    fn wrappers_are_seen_through() {
        for (words, inner) in [
            ("jest --ci", "jest --ci"),
            ("npx --no jest", "jest"),
            ("NODE_ENV=test cross-env A=1 mocha x", "mocha x"),
            ("uv run pytest -q", "pytest -q"),
            ("pnpm exec vitest", "vitest"),
            ("bundle exec rake test", "rake test"),
            ("npx", ""),
        ] {
            assert_eq!(without_wrappers(&argv(words)), argv(inner), "{words}");
        }
    }

    #[test]
    fn the_value_of_a_wrappers_option_does_not_hide_the_command() {
        let words = argv("uv run --group tests --frozen pytest -q");
        let read: Vec<Vec<String>> = unwrapped(&words).map(<[String]>::to_vec).collect();
        assert_eq!(read, [argv("tests --frozen pytest -q"), argv("pytest -q")]);
        let words = argv("yarn jest --ci");
        assert_eq!(unwrapped(&words).last(), Some(&argv("jest --ci")[..]));
        let words = argv("npx eslint jest");
        assert_eq!(
            unwrapped(&words).count(),
            1,
            "what a command is given is no command"
        );
    }
}
