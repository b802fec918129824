//! What `--help` says, whole: people read it first.

use std::process::Command;

/// The commands that `-h` shows, in its order.
fn commands() -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_supervisor"))
        .arg("-h")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let listed = text
        .split("Commands:\n")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    let name = |line: &str| {
        line.strip_prefix("  ")?
            .split(' ')
            .next()
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
    };
    listed.lines().filter_map(name).collect()
}

#[test]
fn help_of_each_command_is_complete() {
    let mut page = String::new();
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    for command in std::iter::once("").chain(commands.iter().map(String::as_str)) {
        for flag in ["-h", "--help"] {
            let words: Vec<&str> = [command, flag]
                .into_iter()
                .filter(|word| !word.is_empty())
                .collect();
            let output = Command::new(env!("CARGO_BIN_EXE_supervisor"))
                .args(&words)
                .env("COLUMNS", "100")
                .output()
                .unwrap();
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{words:?}"
            );
            page += &format!(
                "$ supervisor {}\n{}\n",
                words.join(" "),
                String::from_utf8(output.stdout).unwrap()
            );
        }
    }
    insta::assert_snapshot!("help", page);
}

#[test]
fn the_command_page_has_every_option_and_no_other() {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands.md")).unwrap();
    let options = |text: &str| -> std::collections::BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
        let ours = |word: &&str| {
            word.len() > 2 && word.starts_with("--") && !["--help", "--config"].contains(word)
        };
        words.filter(ours).map(str::to_owned).collect()
    };
    for command in commands() {
        let row = |line: &&str| {
            line.starts_with("| `supervisor")
                && line
                    .split('|')
                    .nth(1)
                    .unwrap()
                    .contains(&format!("supervisor {command}"))
        };
        let row = readme
            .lines()
            .find(row)
            .unwrap_or_else(|| panic!("no row for `{command}`"));
        let output = Command::new(env!("CARGO_BIN_EXE_supervisor"))
            .args([command.as_str(), "-h"])
            .output()
            .unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let taken = help
            .lines()
            .filter(|line| line.trim_start().starts_with('-'))
            .collect::<Vec<_>>()
            .join("\n");
        assert_eq!(options(row), options(&taken), "{command}");
    }
}
