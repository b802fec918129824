//! Checks test commands: each must name a program, and the program must be able to fail. The latter
//! is judged by word lists, so it is only flagged. Nothing is run here.

use super::super::{has_content, quoted};
use supervisor_text::words::lexicon::lexicon;

/// The operators between commands.
const OPERATORS: &[&str] = &["|", "||", "&&", ";", "&"];

/// Accepts a single line that starts with a program name.
pub(super) fn parse_command(command: &str) -> Result<String, String> {
    let shown = quoted(command);
    if command.chars().any(char::is_control) {
        return Err(format!(
            "has a command of several lines or with control characters: {shown}; write one line"
        ));
    }
    let argv = split_words(command)
        .map_err(|e| format!("has a command that cannot be read, {shown}: {e}"))?;
    let program = first_program(&argv);
    let is_named = !program.is_empty()
        && program
            .chars()
            .all(|c| c.is_alphanumeric() || "_./+@:-~[".contains(c))
        && (has_content(program) || [":", "[", "[["].contains(&program));
    if !is_named {
        return Err(format!(
            "has the command {shown}, which names no program; write what one types, such as `cargo test login`"
        ));
    }
    Ok(command.to_owned())
}

/// The kind of doubt about a valid command and its explanation.
pub(in crate::answers::specification) fn find_doubt(
    command: &str,
) -> Option<(&'static str, String)> {
    let argv = split_words(command).ok()?;
    let program = first_program(&argv);
    let is_prose =
        program.len() > 1 && program.ends_with(':') || lexicon().not_a_program.has_form(program);
    if is_prose {
        return Some((
            "no_program",
            format!(
                "has the command {}, which seems to name no program",
                quoted(command)
            ),
        ));
    }
    cannot_fail(&argv).then(|| {
        let why = format!(
            "has the command {}, which shows nothing about the project",
            quoted(command)
        );
        ("idle_command", why)
    })
}

fn first_program(argv: &[String]) -> &str {
    let first = split_commands(argv)
        .into_iter()
        .next()
        .map(|(_, words)| words)
        .unwrap_or_default();
    program(first).unwrap_or_default()
}

/// Splits like a shell, with a trailing semicolon as a word of its own.
fn split_words(command: &str) -> Result<Vec<String>, shell_words::ParseError> {
    let mut words = Vec::new();
    for word in shell_words::split(command)? {
        match word.strip_suffix(';') {
            Some(bare) if !bare.is_empty() => words.extend([bare.to_owned(), String::from(";")]),
            _ => words.push(word),
        }
    }
    Ok(words)
}

/// The single commands, each with the operator before it.
fn split_commands(argv: &[String]) -> Vec<(&str, &[String])> {
    let mut found = Vec::new();
    let (mut operator, mut from) = ("", 0);
    for (at, word) in argv.iter().enumerate() {
        if OPERATORS.contains(&word.as_str()) {
            found.push((operator, &argv[from..at]));
            (operator, from) = (word, at + 1);
        }
    }
    found.push((operator, &argv[from..]));
    found.retain(|(_, words)| !words.is_empty());
    found
}

/// Whether no command can fail, or the failure is ignored.
fn cannot_fail(argv: &[String]) -> bool {
    let all = split_commands(argv);
    let ignores_failure = all
        .last()
        .is_some_and(|(operator, last)| ["||", ";"].contains(operator) && is_idle(last));
    ignores_failure || all.iter().all(|(_, words)| is_idle(words))
}

fn is_idle(given: &[String]) -> bool {
    let Some(program) = program(given) else {
        return true;
    };
    let name = program.rsplit('/').next().unwrap_or(program).to_lowercase();
    let rest = given
        .iter()
        .skip_while(|word| word.as_str() != program)
        .skip(1)
        .map(String::as_str);
    let rest: Vec<&str> = rest.collect();
    let is_about_itself = |word: &&str| lexicon().info_flag.has_form(word);
    match name.as_str() {
        "sh" | "bash" | "zsh" => {
            let inner = rest
                .iter()
                .position(|word| *word == "-c")
                .and_then(|at| rest.get(at + 1));
            inner.is_some_and(|inner| split_words(inner).is_ok_and(|argv| cannot_fail(&argv)))
        }
        "ls" => rest.iter().all(|word| word.starts_with('-')),
        "git" => match rest.as_slice() {
            ["status" | "log" | "branch", ..] => true,
            ["diff", flags @ ..] => !flags
                .iter()
                .any(|f| ["--exit-code", "--quiet", "--check"].contains(f)),
            _ => rest.iter().all(is_about_itself),
        },
        // Comparing two literals has a constant result.
        "test" | "[" | "[[" => {
            matches!(rest.as_slice(), [a, "=" | "==" | "-eq", b, ..] if !a.contains('$') && !b.contains('$'))
        }
        _ => {
            lexicon().trivial_program.has_form(&name)
                || (lexicon().tool.has_form(&name)
                    && !rest.is_empty()
                    && rest.iter().all(is_about_itself))
        }
    }
}

/// The program of a command, after variables and wrappers such as `env`.
fn program(words: &[String]) -> Option<&str> {
    let is_prefix =
        |word: &&str| is_assignment(word) || ["!", "env", "sudo", "command", "time"].contains(word);
    words
        .iter()
        .map(String::as_str)
        .find(|word| !is_prefix(word))
}

/// A variable assignment such as `RUST_LOG=debug`.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_that_cannot_fail_is_doubted() {
        for idle in [
            "true",
            "/bin/true",
            "env true",
            "echo ok",
            "sh -c true",
            "bash -c 'exit 0'",
            "pytest || true",
            "pytest; true",
            "pytest || echo failed",
            "bash -c 'pytest || :'",
            "ls",
            "ls -la",
            "git status",
            "git diff",
            "cargo --version",
            "python3 -V",
            "test 1 = 1",
            "[ a = a ]",
            "! false",
            "true && echo ok",
        ] {
            assert_eq!(
                find_doubt(idle).map(|(kind, _)| kind),
                Some("idle_command"),
                "{idle}"
            );
        }
        for prose in ["Run the tests and look at them", "Verify: it works", "TBD"] {
            assert_eq!(
                find_doubt(prose).map(|(kind, _)| kind),
                Some("no_program"),
                "{prose}"
            );
        }
    }

    #[test]
    fn ordinary_commands_are_accepted() {
        for honest in [
            "cargo test login",
            "RUST_LOG=debug ./run.sh 'a b'",
            "echo 1,2 | csv2json",
            "pytest && echo ok",
            "! grep -rn unwrap src",
            "cd api && go test ./...",
            "ls dist/app.js",
            "test -f docs/out.md",
            "[ -d dist ]",
            "git diff --exit-code",
            "sh -c 'tally merge a.log b.log | diff - want.log'",
            "test $(wc -l < out.csv) = 3",
            "tally --version",
            "cargo +1.75 check",
            "time make all",
            "npm test",
            "ruff check . && mypy --strict shelf",
            "tally report --format csv; test $? = 0",
        ] {
            assert!(
                parse_command(honest).is_ok() && find_doubt(honest).is_none(),
                "{honest}: {:?}",
                find_doubt(honest)
            );
        }
    }
}
