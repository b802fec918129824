# List the recipes
default:
    @just --list

# What CI runs, in that order: format, clippy with warnings denied, tests
check:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    cargo test

# Figures as ratios to a floor in the same run: `just bench`, or `just bench start`
bench *suites:
    cargo bench --bench bench -- {{suites}}

# Drive the built server with real clients: `just interop`, or `just interop inspector python claude`
interop *clients:
    tests/interop/run {{clients}}
