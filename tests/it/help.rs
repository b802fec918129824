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
