//! Java: packages are directories below a source root, and a test sees its whole package without a word.

use std::sync::LazyLock;

use super::cheats::CheatRule::{ProcessExit, RawOutput, ReachesForTheRunner};
use super::cheats::{CheatRules, texts};
use super::imports::by_query;
use super::{
    CompiledDir, Dialect, Import, Language, NamePatterns, ProjectFiles, RunnerModules, TestPlace,
    join, parent, queries,
};

pub static JAVA: Language = Language {
    name: "java",
    dialects: &[&DIALECT],
    compiled: true,
    line_comment: "//",
    tests_beside_code: false,
    // By directory alone: in small letters `LatestTest` and `Latest` end alike.
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
    // Services that the platform loads by the name of their interface are named so too.
    runner_files: NamePatterns {
        dirs: &[],
        stems: &[],
        names: &["junit-platform.properties", "testng.xml", "org.junit.*"],
    },
    runner_modules: RunnerModules {
        places: &[
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
        endings: &["java", "class"],
    },
    installed_dirs: &[],
    built_dirs: &["target", ".gradle"],
    compiled_dirs: &[
        CompiledDir {
            name: "target",
            beside: "pom.xml",
            own: &["classes", "test-classes", "maven-status"],
            kept: &[],
            fetched: None,
        },
        CompiledDir {
            name: "build",
            beside: "build.gradle",
            own: &["classes", "tmp"],
            kept: &[],
            fetched: None,
        },
        CompiledDir {
            name: "build",
            beside: "build.gradle.kts",
            own: &["classes", "tmp"],
            kept: &[],
            fetched: None,
        },
    ],
    // As the runners put what javac says on one line.
    production: &[],
    missing_names: &[
        ("symbol: method ", "("),
        ("symbol: class ", ","),
        ("symbol: variable ", ","),
        ("symbol: constructor ", "("),
        ("symbol: static ", ","),
        ("package ", " does not exist"),
    ],
    unbound_name: None,
    holds_test,
    is_public: |_, head| head.split_whitespace().any(|word| word == "public"),
    imports: |tree| by_query(tree, |module| module.rsplit('.').next().unwrap_or(module)),
    unspoken_imports: |_| vec![Import::all(".")],
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
            texts(&[
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
    endings: &["java"],
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

/// `demo.CalcTest$Inner#adds` stands in `…/demo/CalcTest.java`.
fn holds_test(place: &TestPlace<'_>, name: &str) -> bool {
    let class = name.split('#').next().unwrap_or_default();
    let outer = class.split('$').next().unwrap_or_default();
    !outer.is_empty()
        && place
            .path
            .ends_with(format!("{}.java", outer.replace('.', "/")))
}

/// A class, or all files of a package: beside the code and beside the tests.
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

/// The directory in which packages begin, with a `/` behind it, and the package of the file.
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
    fn each_form_of_import_is_read() {
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
    fn a_test_stands_in_the_file_of_its_outermost_class() {
        let place = |path| TestPlace {
            path: std::path::Path::new(path),
            source: "",
        };
        assert!(holds_test(
            &place("src/test/java/demo/CalcTest.java"),
            "demo.CalcTest$Inner#adds"
        ));
        assert!(!holds_test(
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
