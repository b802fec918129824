//! Elixir: the formatter reports by itself, but runs inside the very process that it reports on.

use std::sync::LazyLock;

use super::{Language, Smell, shapes};

pub(super) static LANGUAGE: Language = Language {
    comment: "#",
    directive: None,
    words: WORDS,
    shapes: LazyLock::new(|| shapes(SHAPES)),
    exits_reject: |_| true,
};

const WORDS: &[(&str, Smell)] = &[
    ("System.halt", Smell::ProcessExit),
    ("System.stop", Smell::ProcessExit),
    (":erlang.halt", Smell::ProcessExit),
    (":init.stop", Smell::ProcessExit),
    (":erlang.open_port", Smell::RawOutput),
    ("Port.open", Smell::RawOutput),
    ("/dev/stdout", Smell::RawOutput),
    ("ExUnit", Smell::ReachesForTheRunner),
    (":ex_unit", Smell::ReachesForTheRunner),
    // Puts another module in place of one that is loaded already.
    ("ignore_module_conflict", Smell::ReachesForTheRunner),
    (":code.load_binary", Smell::ReachesForTheRunner),
    ("Mix.env", Smell::KnowsTheRunner),
];

/// Routes for `[:dev, :test]` are what generators write; an answer of its own for `:test` is not.
const SHAPES: &[(&str, &str, Smell)] = &[
    ("Mix.env == :test", r"(?s)\bMix\.env\b.{0,400}?==\s*:test\b|:test\s*==\s*Mix\.env\b", Smell::ReachesForTheRunner),
    ("case Mix.env", r"(?s)\bcase\s+Mix\.env(?:\(\))?\s+do\b.{0,300}?:test\s*->", Smell::ReachesForTheRunner),
    ("MIX_ENV", r#"System\.(?:get|fetch)_env!?\(\s*"MIX_ENV""#, Smell::ReachesForTheRunner),
    ("defmodule Kernel", r"\bdefmodule\s+Kernel\s", Smell::DefeatsAssertions),
    ("defmodule Mix.Tasks.Test", r"\bdefmodule\s+Mix\.Tasks\.Test\s", Smell::ReachesForTheRunner),
];
