//! C++. Headers are found by their include path, and test frameworks consist of macros.

use std::path::Path;
use std::sync::LazyLock;

use super::cheats::CheatRule::{ProcessExit, RawOutput, ReachesForTheRunner};
use super::cheats::{CheatRules, text_rules};
use super::imports::by_query;
use super::{
    CompiledDir, Dialect, Language, NamePatterns, ProjectFiles, RunnerModules, TestSourceFile,
    join, parent, queries,
};

pub static CPP: Language = Language {
    name: "cpp",
    dialects: &[&DIALECT],
    is_compiled: true,
    line_comment: "//",
    has_inline_tests: false,
    test_files: NamePatterns {
        dirs: &["test", "tests", "unittest", "unittests"],
        stems: &["*_test", "*_tests", "*_unittest", "test_*"],
        names: &[],
    },
    manifests: &["CMakeLists.txt"],
    build_files: NamePatterns {
        dirs: &["cmake"],
        stems: &[],
        names: &[
            "cmakelists.txt",
            "*.cmake",
            "cmakepresets.json",
            "cmakeuserpresets.json",
            "cmakecache.txt",
            "conanfile.txt",
            "conanfile.py",
            "vcpkg.json",
            "meson.build",
        ],
    },
    runner_files: NamePatterns {
        dirs: &[],
        stems: &[],
        names: &["ctestconfig.cmake", "ctestcustom.cmake"],
    },
    runner_modules: RunnerModules {
        search_dirs: &["", "**/include", "**/src", "**/test", "**/tests"],
        names: &[
            "gtest",
            "gmock",
            "catch2",
            "catch.hpp",
            "doctest",
            "boost/test",
            "cassert",
            "assert.h",
        ],
        extensions: &["h", "hpp", "hh", "hxx", ""],
    },
    installed_dirs: &["_deps"],
    vendored_dirs: &[],
    built_dirs: &["cmakefiles", "CMakeFiles"],
    compiled_dirs: &[CompiledDir {
        name: "build",
        manifest: "CMakeLists.txt",
        own_outputs: &["*"],
        // The project's configuration and its downloaded dependencies.
        keep: &["CMakeCache.txt", "_deps"],
        dependency_dir: None,
    }],
    production_env: &[],
    // The runner converts the compiler's quotes to straight ones.
    missing_names: &[
        ("'", "' was not declared in this scope"),
        ("'", "' is not a member of"),
        ("'", "' has not been declared"),
        ("'", "' does not name a type"),
        ("has no member named '", "'"),
        ("use of undeclared identifier '", "'"),
        ("no member named '", "' in"),
        ("unknown type name '", "'"),
        ("undefined reference to '", "("),
        ("header not found: ", ""),
    ],
    unbound_name: None,
    contains_test,
    is_public: |definition, head| {
        let head = head.trim_start();
        definition.name != "main" && !head.starts_with("static ") && !head.starts_with("namespace ")
    },
    imports: |tree| by_query(tree, |module| module),
    implicit_imports: |_| Vec::new(),
    package_names: |_| Vec::new(),
    programs: |_| Vec::new(),
    locate,
    child_module: |_, _, _| None,
    cheats: CheatRules {
        names: &[
            ("std.exit", ProcessExit),
            ("std._Exit", ProcessExit),
            ("std.quick_exit", ProcessExit),
            ("STDOUT_FILENO", RawOutput),
            ("ptrace", ReachesForTheRunner),
        ],
        modules: &[],
        globals: &[
            ("testing.UnitTest", "testing::UnitTest", ReachesForTheRunner),
            ("testing.internal", "testing::internal", ReachesForTheRunner),
            (
                "testing.InitGoogleTest",
                "testing::InitGoogleTest",
                ReachesForTheRunner,
            ),
            ("Catch", "Catch", ReachesForTheRunner),
            ("doctest", "doctest", ReachesForTheRunner),
        ],
        guarded: &[],
        texts: LazyLock::new(|| {
            text_rules(&[
                (
                    "a header of the test framework",
                    r"^<?(?:gtest|gmock|catch2|doctest|boost/test)/",
                    None,
                    ReachesForTheRunner,
                ),
                (
                    "a variable of the test framework",
                    "^(?:GTEST|CTEST|CATCH)_|^--gtest",
                    None,
                    ReachesForTheRunner,
                ),
                (
                    "/proc/self",
                    "^/proc/self/(?:cmdline|exe|maps|comm)$",
                    None,
                    ReachesForTheRunner,
                ),
            ])
        }),
    },
};

static DIALECT: Dialect = Dialect {
    extensions: &[
        "cpp", "cc", "cxx", "c++", "c", "h", "hpp", "hh", "hxx", "ipp", "tpp",
    ],
    grammar: || tree_sitter_cpp::LANGUAGE.into(),
    opaque: &[
        "comment",
        "string_literal",
        "raw_string_literal",
        "char_literal",
        "system_lib_string",
    ],
    leading: &["comment"],
    queries: queries!("cpp"),
};

/// Matches `CalcTest.Doubles`, `Values/CalcTest.Doubles/0`, the title of a test case, or a program named like its file.
fn contains_test(place: &TestSourceFile<'_>, name: &str) -> bool {
    let has_text = |word: &str| place.source.contains(word);
    let suite_and_test = name.split('/').find_map(|part| part.split_once('.'));
    if suite_and_test.is_some_and(|(suite, test)| has_text(suite) && has_text(test)) {
        return true;
    }
    let stem = place.path.file_stem().unwrap_or_default().to_string_lossy();
    let is_program =
        has_text("main(") && (stem == name || stem.contains(name) || name.contains(&*stem));
    has_text(&format!("\"{name}\"")) || has_text(&format!("({name})")) || is_program
}

/// The included header, relative to the file or by path suffix, and the source files of the same name, which implement
/// what it declares.
fn locate(files: &dyn ProjectFiles, from: &str, module: &str) -> Vec<usize> {
    let header = module.trim_matches(['<', '>', '"']);
    if !Path::new(header)
        .extension()
        .is_some_and(|ending| DIALECT.extensions.iter().any(|known| ending == *known))
    {
        return Vec::new();
    }
    let beside = join(parent(from), header).and_then(|path| files.at(&path));
    let mut found: Vec<usize> = beside.map_or_else(|| files.ending(header), |id| vec![id]);
    let stem = header.rsplit_once('.').map_or(header, |(stem, _)| stem);
    let name = stem.rsplit('/').next().unwrap_or(stem);
    for ending in ["cpp", "cc", "cxx", "c"] {
        let sources = files.ending(&format!("{name}.{ending}"));
        found.extend(sources.into_iter().filter(|id| files.path(*id) != from));
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::super::Import;
    use super::super::imports::read;
    use super::*;

    #[test]
    fn every_include_form_is_read() {
        let found = read(
            "a.cpp",
            "#include \"b/c.h\"\n#include <d.h>\nusing e::f;\nnamespace g = h::i;\n",
        );
        let expected = [
            Import::all("b/c.h"),
            Import::all("<d.h>"),
            Import::named("e", "f", "f"),
            Import::whole("h::i", "g"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn test_is_found_by_macro_title_or_program() {
        let holds = |path: &str, source: &str, name: &str| {
            contains_test(
                &TestSourceFile {
                    path: Path::new(path),
                    source,
                },
                name,
            )
        };
        assert!(holds(
            "tests/a.cpp",
            "TEST(CalcTest, Doubles) {}",
            "CalcTest.Doubles"
        ));
        assert!(holds(
            "tests/a.cpp",
            "TEST_P(CalcTest, Doubles) {}",
            "Values/CalcTest.Doubles/0"
        ));
        assert!(!holds(
            "tests/a.cpp",
            "TEST(OtherTest, Doubles) {}",
            "CalcTest.Doubles"
        ));
        assert!(holds("tests/a.cpp", "TEST_CASE(\"doubles\") {}", "doubles"));
        assert!(holds("tests/calc_test.cpp", "int main() {}", "calc"));
        assert!(!holds("tests/calc_test.cpp", "int main() {}", "text"));
    }
}
