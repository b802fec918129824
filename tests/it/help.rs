//! What `--help` says, whole: people read it first.

use std::process::Command;

#[test]
fn each_command_says_what_it_does_and_what_it_takes() {
    let mut page = String::new();
    for command in ["", "serve", "demo", "doctor", "explain", "call", "verify", "recover", "stats"] {
        for flag in ["-h", "--help"] {
            let words: Vec<&str> = [command, flag].into_iter().filter(|word| !word.is_empty()).collect();
            let output =
                Command::new(env!("CARGO_BIN_EXE_supervisor")).args(&words).env("COLUMNS", "100").output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{words:?}");
            page += &format!("$ supervisor {}\n{}\n", words.join(" "), String::from_utf8(output.stdout).unwrap());
        }
    }
    insta::assert_snapshot!("help", page);
}

#[test]
fn every_command_that_is_shown_is_in_that_page() {
    let output = Command::new(env!("CARGO_BIN_EXE_supervisor")).arg("-h").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let commands = text.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: Vec<&str> = commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["serve", "demo", "doctor", "explain", "call", "verify", "recover", "stats"]);
}

#[test]
fn the_readme_has_every_option_and_no_other() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let options = |text: &str| -> std::collections::BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
        let ours = |word: &&str| word.len() > 2 && word.starts_with("--") && !["--help", "--config"].contains(word);
        words.filter(ours).map(str::to_owned).collect()
    };
    for command in ["serve", "demo", "doctor", "explain", "call", "verify", "recover", "stats"] {
        let row = |line: &&str| {
            line.starts_with("| `supervisor")
                && line.split('|').nth(1).unwrap().contains(&format!("supervisor {command}"))
        };
        let row = readme.lines().find(row).unwrap_or_else(|| panic!("no row for `{command}`"));
        let output = Command::new(env!("CARGO_BIN_EXE_supervisor")).args([command, "-h"]).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let taken = help.lines().filter(|line| line.trim_start().starts_with('-')).collect::<Vec<_>>().join("\n");
        assert_eq!(options(row), options(&taken), "{command}");
    }
}
