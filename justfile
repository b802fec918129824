# List the recipes
default:
    @just --list

# Run the server, again after each change where cargo-watch or bacon is installed
dev:
    if command -v cargo-watch >/dev/null; then cargo watch --clear --exec run; \
    elif command -v bacon >/dev/null; then bacon run; \
    else cargo run; fi

# The program as users build it
build:
    cargo build --release

# The program as packages ship it: linked so that start-up code is contiguous, for less idle memory
build-ordered:
    npm/ordered

# The piped `tools/list` of the built program
smoke: build
    tests/smoke target/release/supervisor

# Archive with checksum, completions and manual page, and the npm packages: `just dist`, or `just dist linux-arm64`
dist platform="linux-x64": build-ordered
    npm/dist target/ordered/supervisor {{platform}}
    npm/pack target/ordered/supervisor {{platform}} target/dist

# Format, clippy with warnings denied, tests with nothing but Rust
check:
    cargo fmt --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test

# Figures as ratios to a floor in the same run: `just bench`, or `just bench start`
bench *suites: build-ordered
    SUPERVISOR_BIN=$PWD/target/ordered/supervisor cargo bench --bench bench -- {{suites}}

# What must hold before anything lands: `just ci`, or `just ci toolchains` for one step
ci *steps:
    .ci/run {{steps}}

# Every table, campaign, client, backend and figure: hours
long:
    .ci/run long

# Drive the built server with real clients: `just interop`, or `just interop inspector python claude`
interop *clients:
    tests/interop/run {{clients}}

# Install go, rspec, mix, pytest and the JavaScript runners, then print the table of real test runs
ecosystems:
    tests/ecosystems/install
    tests/ecosystems/table

# Ask real model servers: `just backends`, or `just backends claude litellm llama`
backends *names:
    tests/interop/backends {{names}}

# Calls while gateway, agent, tests and client misbehave, then kills: `just faults 300 60`; docs/reliability.md says more
faults count="300" kills="60":
    SUPERVISOR_FAULTS={{count}} SUPERVISOR_KILLS={{kills}} cargo test --test it -- engine::campaign:: --include-ignored --nocapture

# Look for bytes that a reader does not survive: `just fuzz edits 60`; the targets are those of fuzz/corpus
fuzz target seconds="60":
    fuzz/run {{target}} {{seconds}}

# Write the demo's screen and its picture for the README again: docs/demo.txt and docs/demo.svg
demo-screen:
    SUPERVISOR_UPDATE_DOCS=1 cargo test --test it -- cli::demo::without_a_terminal

# The pictures in the docs again: docs/watch.txt (needs tmux) and docs/report.png (needs chromium and chromedriver)
pictures:
    SUPERVISOR_UPDATE_DOCS=1 cargo test --test it -- --ignored cli::watch_tmux:: cli::report::pictures::

# A newcomer's first minutes on a clean clone, typed and recorded: docs/first-run.txt
first-run:
    tests/interop/first_run

# Claude Code with and without the plugin on the tasks of plugins/supervisor/evals; asks real models: docs/evaluation.md
eval *options:
    plugins/supervisor/evals/run --supervisor target/release/supervisor --results target/evals.jsonl --table docs/evaluation.md {{options}}
