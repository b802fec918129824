//! Could a command show that a criterion is met? It names a program, and that program could fail. Whether a name is a
//! program and whether it could fail is knowledge of words, so it is only doubted. Nothing is run here.

use super::super::{quoted, says};
use supervisor_text::words::lexicon::lexicon;

/// What joins two commands.
const JOINTS: &[&str] = &["|", "||", "&&", ";", "&"];

/// Is this one line that begins with the name of a program?
pub(super) fn read_command(command: &str) -> Result<String, String> {
    let shown = quoted(command);
    if command.chars().any(char::is_control) {
        return Err(format!(
            "has a command of several lines or with control characters: {shown}; write one line"
        ));
    }
    let argv =
        words(command).map_err(|e| format!("has a command that cannot be read, {shown}: {e}"))?;
    let program = first_program(&argv);
    let is_named = !program.is_empty()
        && program
            .chars()
            .all(|c| c.is_alphanumeric() || "_./+@:-~[".contains(c))
        && (says(program) || [":", "[", "[["].contains(&program));
    if !is_named {
        return Err(format!(
            "has the command {shown}, which names no program; write what one types, such as `cargo test login`"
        ));
    }
    Ok(command.to_owned())
}

/// What speaks against a command that can be read.
pub(in crate::answers::specification) fn doubt(command: &str) -> Option<(&'static str, String)> {
    let argv = words(command).ok()?;
    let program = first_program(&argv);
    let is_prose =
        program.len() > 1 && program.ends_with(':') || lexicon().no_program.has_form(program);
    if is_prose {
        return Some((
            "no_program",
            format!(
                "has the command {}, which seems to name no program",
                quoted(command)
            ),
        ));
    }
    shows_nothing(&argv).then(|| {
        let why = format!(
            "has the command {}, which shows nothing about the project",
            quoted(command)
        );
        ("idle_command", why)
    })
}

fn first_program(argv: &[String]) -> &str {
    let first = simple(argv)
        .into_iter()
        .next()
        .map(|(_, words)| words)
        .unwrap_or_default();
    program(first).unwrap_or_default()
}

/// As a shell would, where a semicolon ends a word.
fn words(command: &str) -> Result<Vec<String>, shell_words::ParseError> {
    let mut words = Vec::new();
    for word in shell_words::split(command)? {
        match word.strip_suffix(';') {
            Some(bare) if !bare.is_empty() => words.extend([bare.to_owned(), String::from(";")]),
            _ => words.push(word),
        }
    }
    Ok(words)
}

/// The commands that are joined, each with what joins it to the one before.
fn simple(argv: &[String]) -> Vec<(&str, &[String])> {
    let mut found = Vec::new();
    let (mut joint, mut from) = ("", 0);
    for (at, word) in argv.iter().enumerate() {
        if JOINTS.contains(&word.as_str()) {
            found.push((joint, &argv[from..at]));
            (joint, from) = (word, at + 1);
        }
    }
    found.push((joint, &argv[from..]));
    found.retain(|(_, words)| !words.is_empty());
    found
}

/// Nothing that was run could have failed, or its failure is thrown away.
fn shows_nothing(argv: &[String]) -> bool {
    let all = simple(argv);
    let thrown_away = all
        .last()
        .is_some_and(|(joint, last)| ["||", ";"].contains(joint) && is_idle(last));
    thrown_away || all.iter().all(|(_, words)| is_idle(words))
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
    let about = |word: &&str| lexicon().about_itself.has_form(word);
    match name.as_str() {
        "sh" | "bash" | "zsh" => {
            let inner = rest
                .iter()
                .position(|word| *word == "-c")
                .and_then(|at| rest.get(at + 1));
            inner.is_some_and(|inner| words(inner).is_ok_and(|argv| shows_nothing(&argv)))
        }
        "ls" => rest.iter().all(|word| word.starts_with('-')),
        "git" => match rest.as_slice() {
            ["status" | "log" | "branch", ..] => true,
            ["diff", flags @ ..] => !flags
                .iter()
                .any(|f| ["--exit-code", "--quiet", "--check"].contains(f)),
            _ => rest.iter().all(about),
        },
        // Two words that are written out are always, or never, the same.
        "test" | "[" | "[[" => {
            matches!(rest.as_slice(), [a, "=" | "==" | "-eq", b, ..] if !a.contains('$') && !b.contains('$'))
        }
        _ => {
            lexicon().idle_program.has_form(&name)
                || (lexicon().tool.has_form(&name) && !rest.is_empty() && rest.iter().all(about))
        }
    }
}

/// The program of a command: after variables, and after what only starts another.
fn program(words: &[String]) -> Option<&str> {
    let starts =
        |word: &&str| is_assignment(word) || ["!", "env", "sudo", "command", "time"].contains(word);
    words.iter().map(String::as_str).find(|word| !starts(word))
}

/// `RUST_LOG=debug`, before the program.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fail_shows_nothing() {
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
                doubt(idle).map(|(kind, _)| kind),
                Some("idle_command"),
                "{idle}"
            );
        }
        for prose in ["Run the tests and look at them", "Verify: it works", "TBD"] {
            assert_eq!(
                doubt(prose).map(|(kind, _)| kind),
                Some("no_program"),
                "{prose}"
            );
        }
    }

    #[test]
    fn what_people_type_is_taken() {
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
                read_command(honest).is_ok() && doubt(honest).is_none(),
                "{honest}: {:?}",
                doubt(honest)
            );
        }
    }
}
