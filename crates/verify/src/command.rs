//! Command lines as lists of words. Splits, joins and unwraps them without starting a shell.

mod chain;

use std::path::Path;

pub(super) use chain::{ChainCommand, expand_globs, split_chain};

/// The command line as a user would type it, with quotes where needed.
pub(super) fn to_command_line(argv: &[String]) -> String {
    shell_words::join(argv)
}

/// As [`to_command_line`], but leaves the glob patterns unquoted so that a shell still expands them.
pub(super) fn to_command_line_with_globs(argv: &[String], patterns: &[String]) -> String {
    let word = |word: &String| match patterns.contains(word) {
        true => word.clone(),
        false => shell_words::quote(word).into_owned(),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The file name of the program: `pytest` for `/usr/bin/pytest`.
pub(super) fn program(argv: &[String]) -> &str {
    let first = argv.first().map_or("", String::as_str);
    Path::new(first)
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or(first)
}

/// The words before and after the first `--`.
pub(super) fn split_at_dashes(argv: &[String]) -> (&[String], &[String]) {
    match argv.iter().position(|a| a == "--") {
        Some(at) => (&argv[..at], &argv[at + 1..]),
        None => (argv, &[]),
    }
}

/// Programs that run the command given as their arguments and change only its environment.
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

/// Sub-commands of wrappers, such as `run` in `uv run`.
const WRAPPER_SUBCOMMANDS: &[&str] = &["run", "exec", "dlx", "x", "tool"];

/// The command without its wrappers: `jest` for `env A=1 npx --no cross-env B=2 jest`.
pub(super) fn strip_wrappers(argv: &[String]) -> &[String] {
    inner_commands(argv).next().unwrap_or_default()
}

/// The possible commands behind the wrappers. The value of a wrapper's option cannot be told from a command, so both
/// readings are returned: `tests pytest` and `pytest` for `uv run --group tests pytest`.
pub(super) fn inner_commands(argv: &[String]) -> impl Iterator<Item = &[String]> {
    let mut found = Vec::new();
    collect_inner_commands(argv, &mut found);
    found.into_iter()
}

fn collect_inner_commands<'a>(mut argv: &'a [String], found: &mut Vec<&'a [String]>) {
    while argv.first().is_some_and(|word| is_assignment(word)) {
        argv = &argv[1..];
    }
    let is_manager_exec = matches!(program(argv), "pnpm" | "yarn" | "npm" | "bun")
        && matches!(argv.get(1).map(String::as_str), Some("exec" | "dlx" | "x"));
    if !is_manager_exec && !WRAPPERS.contains(&program(argv)) {
        found.push(argv);
        // pnpm and yarn also run an installed program by its bare name: `yarn jest`.
        if matches!(program(argv), "pnpm" | "yarn") && argv.len() > 1 {
            collect_inner_commands(&argv[1..], found);
        }
        return;
    }
    let mut rest = &argv[1..];
    while let Some(word) = rest.first() {
        let is_skipped = word.starts_with('-')
            || WRAPPER_SUBCOMMANDS.contains(&word.as_str())
            || is_assignment(word);
        if !is_skipped {
            collect_inner_commands(rest, found);
            // Only a word right after an option can be its value.
            let previous = argv[argv.len() - rest.len() - 1].as_str();
            if !previous.starts_with('-') || previous == "--" {
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

/// The script file that a command starts, as in `./check.sh`, `sh -e check.sh` or `node check.js`. `None` for an
/// installed program.
pub(super) fn script_file(argv: &[String]) -> Option<&str> {
    const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh"];
    const INTERPRETERS: &[&str] = &[
        "python", "python3", "node", "ruby", "perl", "php", "elixir", "bun", "deno",
    ];
    let argv = strip_wrappers(argv);
    let first = argv.first()?;
    let flag_count = if SHELLS.contains(&program(argv)) {
        argv[1..]
            .iter()
            .take_while(|a| a.starts_with('-') && *a != "-c")
            .count()
    } else if INTERPRETERS.contains(&program(argv)) {
        // The word after an interpreter's flag is a module, inline code or a test file, not the script.
        0
    } else {
        return first.contains('/').then_some(first);
    };
    argv.get(1 + flag_count)
        .map(String::as_str)
        .filter(|a| !a.starts_with('-'))
}

/// Takes `A=1` and `export A=1` from the beginning of a command, with their values.
pub(super) fn take_assignments(piece: &mut ChainCommand) -> Vec<(String, String)> {
    if piece.words.first().is_some_and(|word| word == "export")
        && piece.words[1..].iter().all(|word| is_assignment(word))
    {
        piece.words.remove(0);
    }
    let count = piece
        .words
        .iter()
        .take_while(|word| is_assignment(word))
        .count();
    if count > 0 && !piece.needs_shell {
        let assigned = piece.words.drain(..count).collect::<Vec<_>>();
        piece.text = shell_words::join(&piece.words);
        return assigned
            .iter()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
    }
    Vec::new()
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
    fn started_script_is_told_from_arguments() {
        for (words, script) in [
            ("./check.sh -q", Some("./check.sh")),
            ("sh -e tools/check.sh", Some("tools/check.sh")),
            ("CI=1 python3 check.py tests", Some("check.py")),
            (".venv/bin/python runtests.py", Some("runtests.py")),
            ("python -m doctest calc.py", None),
            ("sh -c 'exit 0'", None),
            ("node --test calc.js", None),
            ("pytest tests", None),
        ] {
            assert_eq!(script_file(&argv(words)), script, "{words}");
        }
    }

    #[test]
    fn wrappers_are_stripped() {
        for (words, inner) in [
            ("jest --ci", "jest --ci"),
            ("npx --no jest", "jest"),
            ("NODE_ENV=test cross-env A=1 mocha x", "mocha x"),
            ("uv run pytest -q", "pytest -q"),
            ("pnpm exec vitest", "vitest"),
            ("bundle exec rake test", "rake test"),
            ("npx", ""),
        ] {
            assert_eq!(strip_wrappers(&argv(words)), argv(inner), "{words}");
        }
    }

    #[test]
    fn wrapper_option_value_does_not_hide_command() {
        let words = argv("uv run --group tests --frozen pytest -q");
        let candidates: Vec<Vec<String>> = inner_commands(&words).map(<[String]>::to_vec).collect();
        assert_eq!(
            candidates,
            [argv("tests --frozen pytest -q"), argv("pytest -q")]
        );
        let words = argv("yarn jest --ci");
        assert_eq!(inner_commands(&words).last(), Some(&argv("jest --ci")[..]));
        let words = argv("npx eslint jest");
        assert_eq!(
            inner_commands(&words).count(),
            1,
            "an argument is not taken for a command"
        );
    }
}
