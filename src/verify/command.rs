//! Command lines as words: what is run, split and joined, never through a shell.

use std::path::Path;

/// The words of a command as a person would type them.
pub(super) fn typed(argv: &[String]) -> String {
    shell_words::join(argv)
}

/// `/usr/bin/pytest` is `pytest`.
pub(super) fn program(argv: &[String]) -> &str {
    let first = argv.first().map_or("", String::as_str);
    Path::new(first).file_name().and_then(|n| n.to_str()).unwrap_or(first)
}

/// The words before and after a lone `--`.
pub(super) fn split_at_dashes(argv: &[String]) -> (&[String], &[String]) {
    match argv.iter().position(|a| a == "--") {
        Some(at) => (&argv[..at], &argv[at + 1..]),
        None => (argv, &[]),
    }
}

/// Without what stands before the program that matters: `env A=1 npx --no cross-env B=2 jest` is `jest`.
pub(super) fn without_wrappers(mut argv: &[String]) -> &[String] {
    const WRAPPERS: &[&str] =
        &["npx", "bunx", "pnpx", "cross-env", "env", "c8", "nyc", "dotenv", "time", "uv", "poetry", "pipenv", "hatch"];
    loop {
        match argv.first().map(String::as_str) {
            Some(word) if is_assignment(word) => argv = &argv[1..],
            Some("pnpm" | "yarn") if matches!(argv.get(1).map(String::as_str), Some("exec" | "dlx")) => {
                argv = &argv[2..];
            }
            Some(_) if WRAPPERS.contains(&program(argv)) => {
                let rest = argv[1..].iter().position(|a| !a.starts_with('-') && a != "run");
                argv = rest.map_or(&[], |at| &argv[1 + at..]);
            }
            _ => return argv,
        }
    }
}

/// What a command starts if that is a file and no installed program: `./check.sh`, `sh -e check.sh`, `node check.js`.
pub(super) fn script(argv: &[String]) -> Option<&str> {
    const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh"];
    const INTERPRETERS: &[&str] = &["python", "python3", "node", "ruby", "perl", "php", "elixir", "bun", "deno"];
    let argv = without_wrappers(argv);
    let first = argv.first()?;
    if first.contains('/') {
        return Some(first);
    }
    let flags = if SHELLS.contains(&program(argv)) {
        argv[1..].iter().take_while(|a| a.starts_with('-') && *a != "-c").count()
    } else if INTERPRETERS.contains(&program(argv)) {
        // Behind a flag stands a module, a line of code or what is tested.
        0
    } else {
        return None;
    };
    argv.get(1 + flags).map(String::as_str).filter(|a| !a.starts_with('-'))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
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
            ("npx", ""),
        ] {
            assert_eq!(without_wrappers(&argv(words)), argv(inner), "{words}");
        }
    }
}
