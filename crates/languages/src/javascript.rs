//! JavaScript and TypeScript: treated as one language with three grammars. Modules are imported by path, and code can
//! modify an imported module.

use std::sync::LazyLock;

use super::cheats::CheatRule::{KnowsTheRunner, ProcessExit, ReachesForTheRunner};
use super::cheats::{CheatRules, text_rules};
use super::imports::by_query;
use super::{Dialect, Language, NamePatterns, ProjectFiles, RunnerModules, join, parent, queries};

pub static JAVASCRIPT: Language = Language {
    name: "javascript",
    dialects: &[&JS, &TS, &TSX],
    is_compiled: false,
    line_comment: "//",
    has_inline_tests: false,
    test_files: NamePatterns {
        dirs: &[
            "__tests__",
            "__test__",
            "test",
            "tests",
            "spec",
            "e2e",
            "cypress",
        ],
        stems: &[
            "*.test", "*.spec", "*-test", "*_test", "*-spec", "*_spec", "*.cy", "*.e2e", "test-*",
            "test", "*.test-d",
        ],
        names: &[],
    },
    manifests: &["package.json"],
    build_files: NamePatterns {
        dirs: &["node_modules", ".yarn"],
        stems: &[],
        names: &[
            "package.json",
            "package-lock.json",
            "npm-shrinkwrap.json",
            "yarn.lock",
            "pnpm-lock.yaml",
            "pnpm-workspace.yaml",
            "bun.lock",
            "bun.lockb",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            ".nvmrc",
            ".node-version",
            "lerna.json",
            "nx.json",
            "turbo.json",
            "deno.json",
            "deno.jsonc",
            "deno.lock",
            "bunfig.toml",
            "tsconfig*.json",
        ],
    },
    runner_files: NamePatterns {
        dirs: &[],
        stems: &[],
        names: &[
            "node.config.json",
            ".nycrc",
            ".nycrc.json",
            ".c8rc.json",
            "jest.*",
            "vitest.*",
            "vite.config.*",
            ".mocharc*",
            "karma.conf.*",
            "ava.config.*",
            "playwright.config.*",
            "cypress.config.*",
            "babel.config.*",
            ".babelrc*",
            ".swcrc*",
            "setuptests.*",
            "setup-tests.*",
            "wallaby.*",
            "c8.config.*",
        ],
    },
    runner_modules: RunnerModules {
        search_dirs: &[""],
        // Only a file in the root is found by its bare name.
        names: &[
            "jest.js",
            "mocha.js",
            "vitest.js",
            "chai.js",
            "ava.js",
            "tap.js",
            "tape.js",
            "jasmine.js",
        ],
        extensions: &["js"],
    },
    installed_dirs: &["node_modules"],
    vendored_dirs: &[],
    built_dirs: &[],
    compiled_dirs: &[],
    production_env: &[("NODE_ENV", "production")],
    missing_names: &[
        ("Cannot find module '", "'"),
        ("does not provide an export named '", "'"),
        ("ReferenceError: ", " is not defined"),
        // TypeScript
        ("Cannot find name '", "'"),
        ("has no exported member '", "'"),
        ("has no exported member named '", "'"),
        ("Property '", "' does not exist on type"),
    ],
    unbound_name: Some(("ReferenceError: ", " is not defined")),
    contains_test: |place, name| place.is_named_by_path(name, " > "),
    is_public: |_, head| {
        let head = head.trim_start();
        ["export ", "exports.", "module.exports"]
            .iter()
            .any(|word| head.starts_with(word))
    },
    imports: |tree| by_query(tree, |module| module),
    implicit_imports: |_| Vec::new(),
    programs,
    package_names: |manifest| {
        let manifest: Option<serde_json::Value> = serde_json::from_str(manifest).ok();
        manifest
            .and_then(|m| Some(m.get("name")?.as_str()?.to_owned()))
            .into_iter()
            .collect()
    },
    locate,
    child_module: |_, _, _| None,
    cheats: CheatRules {
        names: &[
            ("NODE_TEST_CONTEXT", ReachesForTheRunner),
            ("JEST_WORKER_ID", ReachesForTheRunner),
            ("VITEST", ReachesForTheRunner),
            ("import.meta.vitest", ReachesForTheRunner),
            ("npm_lifecycle_event", ReachesForTheRunner),
            ("expect.extend", ReachesForTheRunner),
            ("process.reallyExit", ReachesForTheRunner),
            ("process.binding", ReachesForTheRunner),
            ("process.exit", ProcessExit),
            ("process.abort", ProcessExit),
            ("process.kill", ProcessExit),
            ("NODE_OPTIONS", KnowsTheRunner),
            ("NODE_ENV", KnowsTheRunner),
        ],
        modules: &[
            ("node:test", "node:test", ReachesForTheRunner),
            ("expect", "a module of the runner", ReachesForTheRunner),
            ("@jest", "a module of the runner", ReachesForTheRunner),
            ("@vitest", "a module of the runner", ReachesForTheRunner),
            ("jest", "a module of the runner", ReachesForTheRunner),
            ("vitest", "a module of the runner", ReachesForTheRunner),
            ("mocha", "a module of the runner", ReachesForTheRunner),
            ("chai", "a module of the runner", ReachesForTheRunner),
        ],
        globals: &[],
        guarded: &["assert", "node:assert"],
        texts: LazyLock::new(|| {
            text_rules(&[
                (
                    "NODE_TEST_CONTEXT",
                    "^NODE_TEST_CONTEXT$",
                    None,
                    ReachesForTheRunner,
                ),
                (
                    "JEST_WORKER_ID",
                    "^JEST_WORKER_ID$",
                    None,
                    ReachesForTheRunner,
                ),
                ("VITEST", "^VITEST", None, ReachesForTheRunner),
                (
                    "npm_lifecycle_event",
                    "^npm_lifecycle_event$",
                    None,
                    ReachesForTheRunner,
                ),
                (
                    "--test-reporter",
                    "^--test-reporter",
                    None,
                    ReachesForTheRunner,
                ),
                ("--outputFile", "^--outputFile", None, ReachesForTheRunner),
                ("--reporter", "^--reporter", None, ReachesForTheRunner),
                ("NODE_ENV", "^NODE_ENV$", None, KnowsTheRunner),
            ])
        }),
    },
};

const OPAQUE: &[&str] = &["comment", "string", "template_string", "regex"];

static JS: Dialect = Dialect {
    extensions: &["js", "jsx", "mjs", "cjs"],
    grammar: || tree_sitter_javascript::LANGUAGE.into(),
    opaque: OPAQUE,
    leading: &["comment", "decorator"],
    queries: queries!("javascript"),
};

static TS: Dialect = Dialect {
    extensions: &["ts", "mts", "cts"],
    grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
    opaque: OPAQUE,
    leading: &["comment", "decorator"],
    queries: queries!("javascript", "typescript"),
};

static TSX: Dialect = Dialect {
    extensions: &["tsx"],
    grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
    opaque: OPAQUE,
    leading: &["comment", "decorator"],
    queries: queries!("javascript", "typescript"),
};

/// Extensions in the order in which they are tried.
const EXTENSIONS: &[&str] = &["ts", "tsx", "js", "jsx", "mjs", "cjs", "mts", "cts"];

fn locate(files: &dyn ProjectFiles, from: &str, module: &str) -> Vec<usize> {
    if module.is_empty() {
        return files.at(from).into_iter().collect();
    }
    if module.starts_with('.') {
        return join(parent(from), module)
            .map(|p| file_at(files, &p))
            .unwrap_or_default();
    }
    for (dir, rest) in files.packages(module, '/') {
        for base in ["", "src", "lib"] {
            let path = join(dir, base).and_then(|d| join(&d, &rest));
            let found = path.map(|p| file_at(files, &p)).unwrap_or_default();
            if !found.is_empty() {
                return found;
            }
        }
    }
    // `@/billing/total` and similar: an alias for a source folder.
    let Some(path) = ["@/", "~/", "#"]
        .iter()
        .find_map(|alias| module.strip_prefix(alias))
    else {
        return Vec::new();
    };
    let suffixes = EXTENSIONS
        .iter()
        .flat_map(|e| [format!("{path}.{e}"), format!("{path}/index.{e}")]);
    suffixes.flat_map(|suffix| files.ending(&suffix)).collect()
}

fn file_at(files: &dyn ProjectFiles, path: &str) -> Vec<usize> {
    if let Some(id) = files.at(path) {
        return vec![id];
    }
    // TypeScript files may be imported by the name of their compiled output.
    let stem = path
        .rsplit_once('.')
        .filter(|(_, e)| EXTENSIONS.contains(e))
        .map_or(path, |(stem, _)| stem);
    let with_extension = |base: &str, suffix: &str| -> Option<usize> {
        EXTENSIONS
            .iter()
            .find_map(|e| files.at(format!("{base}{suffix}.{e}").trim_start_matches('/')))
    };
    with_extension(path, "")
        .or_else(|| with_extension(stem, ""))
        .or_else(|| with_extension(path, "/index"))
        .into_iter()
        .collect()
}

/// `bin` is one file, or a map from command names to files.
fn programs(manifest: &str) -> Vec<String> {
    let manifest: serde_json::Value = serde_json::from_str(manifest).unwrap_or_default();
    let several = manifest["bin"]
        .as_object()
        .map(|files| files.values().cloned().collect());
    let files: Vec<serde_json::Value> = several.unwrap_or_else(|| vec![manifest["bin"].clone()]);
    files
        .iter()
        .filter_map(|file| Some(file.as_str()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Import;
    use super::super::imports::read;

    #[test]
    fn every_import_form_is_read() {
        for (text, expected) in [
            (
                "import d, { a as b,\n  type c } from '../src/x';",
                vec![
                    Import::named("../src/x", "default", "d"),
                    Import::named("../src/x", "a", "b"),
                    Import::named("../src/x", "c", "c"),
                ],
            ),
            (
                "import * as m from \"./m\"",
                vec![Import::whole("./m", "m")],
            ),
            (
                "export * from './a';\nexport { b } from './b';",
                vec![Import::all("./a"), Import::named("./b", "b", "b")],
            ),
            (
                "export function f() { return 1; }\nconst from = 'x';",
                vec![],
            ),
            (
                "const {\n  a,\n  b: c,\n} = require('./x');",
                vec![
                    Import::named("./x", "a", "a"),
                    Import::named("./x", "b", "c"),
                ],
            ),
            (
                "module.exports = { ...require('./x') };",
                vec![Import::all("./x")],
            ),
            ("export { a as b };", vec![Import::named("", "a", "b")]),
            (
                "module.exports = total;",
                vec![Import::named("", "total", "default")],
            ),
            (
                "module.exports = { sum: total };",
                vec![Import::named("", "total", "sum")],
            ),
            ("// import a from './no'\n", vec![]),
        ] {
            assert_eq!(read("a.ts", text), expected, "{text}");
        }
        let member = read("a.js", "const x = require('./x').y;");
        assert!(
            member.contains(&Import::named("./x", "y", "x")),
            "{member:?}"
        );
        let whole = read("a.js", "var x = require('./x');");
        assert!(
            whole.contains(&Import::whole("./x", "x"))
                && whole.contains(&Import::named("./x", "default", "x"))
        );
    }
}
