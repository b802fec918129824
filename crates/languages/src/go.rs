//! Go. A package is a directory that contains its tests.

use std::sync::LazyLock;

use super::cheats::CheatRule::{ProcessExit, ReachesForTheRunner};
use super::cheats::{CheatRules, text_rules};
use super::imports::by_query;
use super::{
    Dialect, Import, Language, NamePatterns, ProjectFiles, RunnerModules, TestSourceFile, join,
    parent, queries,
};

pub static GO: Language = Language {
    name: "go",
    dialects: &[&DIALECT],
    is_compiled: true,
    line_comment: "//",
    has_inline_tests: false,
    test_files: NamePatterns {
        dirs: &[],
        stems: &[],
        names: &["*_test.go"],
    },
    manifests: &["go.mod"],
    build_files: NamePatterns {
        dirs: &[],
        stems: &[],
        names: &["go.mod", "go.sum", "go.work", "go.work.sum"],
    },
    runner_files: NamePatterns::NONE,
    runner_modules: RunnerModules::NONE,
    installed_dirs: &[],
    vendored_dirs: &["vendor"],
    built_dirs: &[],
    compiled_dirs: &[],
    production_env: &[],
    missing_names: &[
        ("undefined: ", ""),
        (" undefined (type ", " has no field or method"),
        ("no required module provides package ", ";"),
        ("cannot find package \"", "\""),
    ],
    unbound_name: None,
    contains_test,
    is_public: |definition, _| definition.name.starts_with(char::is_uppercase),
    imports: |tree| by_query(tree, package_name),
    implicit_imports: |_| vec![Import::all(".")],
    programs: |_| Vec::new(),
    package_names: |manifest| {
        let name = manifest
            .lines()
            .find_map(|l| l.trim().strip_prefix("module "));
        name.map(|n| n.trim().trim_matches('"').to_owned())
            .into_iter()
            .collect()
    },
    locate,
    child_module: |_, _, _| None,
    cheats: CheatRules {
        // Other exit codes are not mistaken for a pass.
        names: &[
            ("os.Exit(0)", ProcessExit),
            ("syscall.Exit(0)", ProcessExit),
            ("unix.Exit(0)", ProcessExit),
        ],
        modules: &[("testing", "testing", ReachesForTheRunner)],
        globals: &[("testing", "testing", ReachesForTheRunner)],
        guarded: &[],
        // `"test.db"` and `"my-test.json"` are not flags. The name of the test program ends in `.test`.
        texts: LazyLock::new(|| {
            text_rules(&[
                (
                    "a flag of the test program",
                    r"^-{0,2}test\.(?:v|run|skip|list|short|count|failfast|timeout|parallel|shuffle|bench|fuzz|memprofile|testlogfile|paniconexit0)\b",
                    None,
                    ReachesForTheRunner,
                ),
                (
                    "the name of the test program",
                    r"[./_]test$",
                    Some("os.Args"),
                    ReachesForTheRunner,
                ),
                (
                    "the name of the test program",
                    r"[./_]test$",
                    Some("os.Executable"),
                    ReachesForTheRunner,
                ),
                (
                    "the runner on the stack",
                    "tRunner$",
                    None,
                    ReachesForTheRunner,
                ),
                (
                    "/proc/self/cmdline",
                    "^/proc/self/cmdline$",
                    None,
                    ReachesForTheRunner,
                ),
            ])
        }),
    },
};

static DIALECT: Dialect = Dialect {
    extensions: &["go"],
    grammar: || tree_sitter_go::LANGUAGE.into(),
    opaque: &[
        "comment",
        "interpreted_string_literal",
        "raw_string_literal",
        "rune_literal",
    ],
    leading: &["comment"],
    queries: queries!("go"),
};

/// `example.com/x/calc TestA/one` is in `calc/a_test.go`.
fn contains_test(place: &TestSourceFile<'_>, name: &str) -> bool {
    let Some((package, test)) = name.split_once(' ') else {
        return false;
    };
    let outer = test.split('/').next().unwrap_or(test);
    let dir = place
        .path
        .parent()
        .map(|d| d.to_string_lossy().into_owned())
        .unwrap_or_default();
    (dir.is_empty() || package == dir || package.ends_with(&format!("/{dir}")))
        && place.source.contains(&format!("func {outer}("))
}

/// The last part of the path that is not a major version.
fn package_name(path: &str) -> &str {
    let is_version = |p: &str| {
        p.strip_prefix('v')
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    path.rsplit('/').find(|p| !is_version(p)).unwrap_or(path)
}

/// All files of the package. For the file's own package, this includes other test files, which may define helpers.
fn locate(files: &dyn ProjectFiles, from: &str, module: &str) -> Vec<usize> {
    let dir = if module == "." {
        Some(parent(from).to_owned())
    } else {
        files
            .packages(module, '/')
            .into_iter()
            .find_map(|(dir, rest)| join(dir, &rest))
    };
    let found = dir.map(|d| files.inside(&d)).unwrap_or_default();
    let is_candidate = |id: &usize| {
        files.path(*id) != from && (module == "." || !files.path(*id).ends_with("_test.go"))
    };
    found.into_iter().filter(is_candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::super::imports::read;
    use super::*;

    #[test]
    fn every_import_form_is_read() {
        let found = read(
            "a.go",
            "package a\nimport \"testing\"\nimport (\n\t\"m/pkg/v2\"\n\tx \"m/y\"\n\t. \"m/z\"\n\t_ \"m/no\"\n)\nfunc F() {}\n",
        );
        let expected = [
            Import::whole("testing", "testing"),
            Import::whole("m/pkg/v2", "pkg"),
            Import::whole("m/y", "x"),
            Import::all("m/z"),
        ];
        assert_eq!(found, expected);
    }
}
