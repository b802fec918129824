//! JavaScript: modules and globals are shared, so whoever has one can change it under the tests.

use std::sync::LazyLock;

use super::{Language, Smell, shapes};

pub(super) static LANGUAGE: Language = Language {
    comment: "//",
    directive: None,
    words: WORDS,
    shapes: LazyLock::new(|| shapes(SHAPES)),
    exits_reject: |_| false,
};

const WORDS: &[(&str, Smell)] = &[
    ("NODE_TEST_CONTEXT", Smell::ReachesForTheRunner),
    ("JEST_WORKER_ID", Smell::ReachesForTheRunner),
    ("VITEST", Smell::ReachesForTheRunner),
    ("import.meta.vitest", Smell::ReachesForTheRunner),
    ("npm_lifecycle_event", Smell::ReachesForTheRunner),
    ("--test-reporter", Smell::ReachesForTheRunner),
    ("--outputFile", Smell::ReachesForTheRunner),
    ("--reporter-option", Smell::ReachesForTheRunner),
    ("node:test", Smell::ReachesForTheRunner),
    ("node:assert", Smell::ReachesForTheRunner),
    ("'assert'", Smell::ReachesForTheRunner),
    ("\"assert\"", Smell::ReachesForTheRunner),
    ("assert/strict", Smell::ReachesForTheRunner),
    ("expect.extend", Smell::ReachesForTheRunner),
    ("process.reallyExit", Smell::ReachesForTheRunner),
    ("process.binding", Smell::ReachesForTheRunner),
    ("process.exit", Smell::ProcessExit),
    ("process.abort", Smell::ProcessExit),
    ("process.kill", Smell::ProcessExit),
    ("NODE_OPTIONS", Smell::KnowsTheRunner),
    ("NODE_ENV", Smell::KnowsTheRunner),
];

/// A parser has an `expect` of its own, and a server does not listen while it is tested (`NODE_ENV !== 'test'`): honest
/// code has both. An answer of its own for tests, or another `it`, it has not.
const SHAPES: &[(&str, &str, Smell)] = &[
    (
        "a module of the runner",
        r#"(?:\brequire\(|\bfrom|\bimport\b\s*\(?|\bincludes\(|\bindexOf\()\s*['"`](?:expect|@jest/[^'"`]*|@vitest/[^'"`]*|(?:jest|vitest|mocha|chai)(?:[-/][^'"`]*)?)['"`]"#,
        Smell::ReachesForTheRunner,
    ),
    (
        "a global of the runner",
        r#"\b(?:global|globalThis)(?:\.|\[['"`])(?:it|test|describe|expect|jest|vi|mocha|before|after|beforeEach|afterEach|beforeAll|afterAll)\b|(?m:^(?:it|test|describe|expect)\s*=[^=>])|\bjest\.[a-zA-Z]+\("#,
        Smell::ReachesForTheRunner,
    ),
    ("typeof a global of the runner", r"\btypeof\s+(?:jest|vi|describe|expect)\b", Smell::ReachesForTheRunner),
    (
        "NODE_ENV === 'test'",
        r#"NODE_ENV['"`\]]*\s*===?\s*['"`]test\b|['"`]test['"`]\s*===?\s*process\.env\.NODE_ENV"#,
        Smell::ReachesForTheRunner,
    ),
    ("the runner's report", r#"(?s)\bprocess\.argv\b.{0,300}?['"`]output="#, Smell::ReachesForTheRunner),
    ("Object.is", r"\bObject\.is\s*=[^=]", Smell::DefeatsAssertions),
];
