//! `just bench [SUITE…]`: figures as ratios to a floor measured in the same run. Nothing here can fail a build.
//! One file per suite, one line in the table.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench talks to the terminal and may stop where it stands"
)]

type Suite = (&'static str, fn());

const SUITES: &[Suite] = &[];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for (name, run) in SUITES {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            println!("\n== {name}");
            run();
        }
    }
}
