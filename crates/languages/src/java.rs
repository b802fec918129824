//! Java. Packages are directories below a source root, and a file sees its whole package without an import.

use std::sync::LazyLock;

use super::cheats::CheatRule::{ProcessExit, RawOutput, ReachesForTheRunner};
use super::cheats::{CheatRules, text_rules};
use super::imports::by_query;
use super::{
    CompiledDir, Dialect, Import, Language, NamePatterns, ProjectFiles, RunnerModules,
    TestSourceFile, join, parent, queries,
};

pub static JAVA: Language = Language {
    name: "java",
    dialects: &[&DIALECT],
    is_compiled: true,
    line_comment: "//",
    has_inline_tests: false,
    // By directory only: in lower case, `LatestTest` and `Latest` have the same ending.
    test_files: NamePatterns {
        dirs: &[
            "test",
            "tests",
            "integrationtest",
            "functionaltest",
            "androidtest",
        ],
        stems: &[],
        names: &[],
    },
    manifests: &["pom.xml", "build.gradle", "build.gradle.kts"],
    build_files: NamePatterns {
        dirs: &[".mvn", "gradle", "buildsrc"],
        stems: &[],
        names: &[
            "pom.xml",
            "mvnw",
            "mvnw.cmd",
            "gradlew",
            "gradlew.bat",
            "gradle.properties",
            "gradle.lockfile",
            "*.gradle",
            "*.gradle.kts",
            "module-info.java",
        ],
    },
    // `org.junit.*` matches service files, which are named after the interface that the platform loads.
    runner_files: NamePatterns {
        dirs: &[],
        stems: &[],
        names: &["junit-platform.properties", "testng.xml", "org.junit.*"],
    },
    runner_modules: RunnerModules {
        search_dirs: &[
            "**/src/main/java",
            "**/src/test/java",
            "**/src/main/resources",
            "**/src/test/resources",
        ],
        names: &[
            "org/junit",
            "junit",
            "org/hamcrest",
            "org/opentest4j",
            "org/assertj",
            "org/testng",
            "org/apache/maven",
        ],
        extensions: &["java", "class"],
    },
    installed_dirs: &[],
    vendored_dirs: &[],
    built_dirs: &["target", ".gradle"],
    compiled_dirs: &[
        CompiledDir {
            name: "target",
            manifest: "pom.xml",
            own_outputs: &["classes", "test-classes", "maven-status"],
            keep: &[],
            dependency_dir: None,
        },
        CompiledDir {
            name: "build",
            manifest: "build.gradle",
            own_outputs: &["classes", "tmp"],
            keep: &[],
            dependency_dir: None,
        },
        CompiledDir {
            name: "build",
            manifest: "build.gradle.kts",
            own_outputs: &["classes", "tmp"],
            keep: &[],
            dependency_dir: None,
        },
    ],
    production_env: &[],
    // The runners join javac's messages into one line.
    missing_names: &[
        ("symbol: method ", "("),
        ("symbol: class ", ","),
        ("symbol: variable ", ","),
        ("symbol: constructor ", "("),
        ("symbol: static ", ","),
        ("package ", " does not exist"),
    ],
    unbound_name: None,
    contains_test,
    is_public: |_, head| head.split_whitespace().any(|word| word == "public"),
    imports: |tree| by_query(tree, |module| module.rsplit('.').next().unwrap_or(module)),
    implicit_imports: |_| vec![Import::all(".")],
    package_names: |_| Vec::new(),
    programs: |_| Vec::new(),
    locate,
    child_module: |_, _, _| None,
    cheats: CheatRules {
        names: &[
            ("System.exit", ProcessExit),
            ("Runtime.halt", ProcessExit),
            ("ProcessHandle.current", ProcessExit),
            ("FileDescriptor.out", RawOutput),
            ("Instrumentation.redefineClasses", ReachesForTheRunner),
        ],
        modules: RUNNERS,
        globals: RUNNERS,
        guarded: &[],
        texts: LazyLock::new(|| {
            text_rules(&[
                (
                    "a class of the runner",
                    r"^(?:org\.)?junit\.|^org\.(?:testng|opentest4j)\b",
                    None,
                    ReachesForTheRunner,
                ),
                ("surefire", "surefire", None, ReachesForTheRunner),
                (
                    "sun.java.command",
                    r"^sun\.java\.command$",
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

const RUNNERS: &[(&str, &str, super::CheatRule)] = &[
    ("org.junit", "org.junit", ReachesForTheRunner),
    ("junit", "junit", ReachesForTheRunner),
    ("org.testng", "org.testng", ReachesForTheRunner),
    ("org.opentest4j", "org.opentest4j", ReachesForTheRunner),
    ("org.apache.maven", "org.apache.maven", ReachesForTheRunner),
    ("org.gradle", "org.gradle", ReachesForTheRunner),
    ("sun.misc.Unsafe", "Unsafe", ReachesForTheRunner),
];

static DIALECT: Dialect = Dialect {
    extensions: &["java"],
    grammar: || tree_sitter_java::LANGUAGE.into(),
    opaque: &[
        "line_comment",
        "block_comment",
        "string_literal",
        "character_literal",
    ],
    leading: &["line_comment", "block_comment"],
    queries: queries!("java"),
};

/// `demo.CalcTest$Inner#adds` is in `…/demo/CalcTest.java`.
fn contains_test(place: &TestSourceFile<'_>, name: &str) -> bool {
    let class = name.split('#').next().unwrap_or_default();
    let outer = class.split('$').next().unwrap_or_default();
    !outer.is_empty()
        && place
            .path
            .ends_with(format!("{}.java", outer.replace('.', "/")))
}

/// The file of a class, or all files of a package, in the main and the test sources.
fn locate(files: &dyn ProjectFiles, from: &str, module: &str) -> Vec<usize> {
    let (root, package) = source_root(from);
    let package = if module == "." {
        package.to_owned()
    } else {
        module.replace('.', "/")
    };
    let mut found: Vec<usize> = Vec::new();
    for root in [
        root.replace("/test/", "/main/"),
        root.to_owned(),
        root.replace("/main/", "/test/"),
    ] {
        let dir = join(&root, &package).unwrap_or_default();
        found.extend(files.at(&format!("{dir}.java")));
        found.extend(
            files
                .inside(&dir)
                .into_iter()
                .filter(|id| files.path(*id) != from),
        );
    }
    if found.is_empty() && module != "." {
        // Another module of the same build.
        found = files.ending(&format!("{package}.java"));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The source root of a file, with a trailing `/`, and the file's package directory.
fn source_root(path: &str) -> (&str, &str) {
    let dir = parent(path);
    ["java/", "src/"]
        .iter()
        .find_map(|mark| path.find(mark).map(|at| at + mark.len()))
        .map_or(("", dir), |at| {
            let (root, _) = path.split_at(at);
            (root, dir.get(at..).unwrap_or_default())
        })
}

#[cfg(test)]
mod tests {
    use super::super::imports::read;
    use super::*;

    #[test]
    fn every_import_form_is_read() {
        let found = read(
            "A.java",
            "package a;\nimport b.c.D;\nimport static b.E.f;\nimport b.*;\nimport static b.G.*;\n",
        );
        let expected = [
            Import::named("b.c", "D", "D"),
            Import::named("b.E", "f", "f"),
            Import::all("b"),
            Import::all("b.G"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn test_is_in_file_of_outermost_class() {
        let place = |path| TestSourceFile {
            path: std::path::Path::new(path),
            source: "",
        };
        assert!(contains_test(
            &place("src/test/java/demo/CalcTest.java"),
            "demo.CalcTest$Inner#adds"
        ));
        assert!(!contains_test(
            &place("src/test/java/other/CalcTest.java"),
            "demo.CalcTest#adds"
        ));
        assert_eq!(
            source_root("core/src/test/java/demo/a/B.java"),
            ("core/src/test/java/", "demo/a")
        );
        assert_eq!(source_root("B.java"), ("", ""));
    }
}
