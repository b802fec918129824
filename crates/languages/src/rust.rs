//! Rust. Crates and modules follow the directory tree, and unit tests can be in the same file as the code.

use std::sync::LazyLock;

use super::cheats::CheatRule::{ProcessExit, RawOutput, ReachesForTheRunner};
use super::cheats::{CheatRules, text_rules};
use super::{
    Dialect, Import, Language, NamePatterns, ProjectFiles, RunnerModules, SyntaxTree,
    TestSourceFile, join, parent, queries,
};

pub static RUST: Language = Language {
    name: "rust",
    dialects: &[&DIALECT],
    is_compiled: true,
    line_comment: "//",
    has_inline_tests: true,
    test_files: NamePatterns {
        dirs: &["tests", "benches"],
        stems: &[],
        names: &["test.rs", "tests.rs", "*_test.rs", "*_tests.rs"],
    },
    manifests: &["Cargo.toml"],
    build_files: NamePatterns {
        dirs: &[".cargo"],
        stems: &[],
        names: &[
            "cargo.toml",
            "cargo.lock",
            "build.rs",
            "rust-toolchain",
            "rust-toolchain.toml",
            "cross.toml",
        ],
    },
    runner_files: NamePatterns {
        dirs: &[],
        stems: &[],
        names: &["nextest.toml", "tarpaulin.toml", ".tarpaulin.toml"],
    },
    runner_modules: RunnerModules::NONE,
    installed_dirs: &[],
    vendored_dirs: &["vendor"],
    built_dirs: &["target"],
    compiled_dirs: &[],
    production_env: &[("CARGO_PROFILE_DEV_DEBUG_ASSERTIONS", "false")],
    missing_names: &[
        ("cannot find function `", "`"),
        ("cannot find value `", "`"),
        ("cannot find type `", "`"),
        ("cannot find macro `", "`"),
        ("cannot find trait `", "`"),
        ("cannot find struct, variant or union type `", "`"),
        ("cannot find tuple struct or tuple variant `", "`"),
        ("cannot find function, tuple struct or tuple variant `", "`"),
        ("cannot find unit struct, unit variant or constant `", "`"),
        ("cannot find attribute `", "`"),
        ("cannot find derive macro `", "`"),
        ("cannot find module or crate `", "`"),
        ("unresolved import `", "`"),
        ("unresolved imports `", "`"),
        ("use of undeclared type `", "`"),
        ("use of undeclared crate or module `", "`"),
        ("use of unresolved module or unlinked crate `", "`"),
        ("failed to resolve: could not find `", "`"),
        ("cannot find `", "` in"),
        ("no method named `", "`"),
        ("no function or associated item named `", "`"),
        ("no associated item named `", "`"),
        ("no associated function or constant named `", "`"),
        ("no variant or associated item named `", "`"),
        ("no variant, associated function, or constant named `", "`"),
        ("no variant named `", "`"),
        ("no field `", "`"),
    ],
    unbound_name: None,
    contains_test,
    is_public: |_, head| head.trim_start().starts_with("pub "),
    imports,
    implicit_imports: qualified_paths,
    package_names,
    programs,
    locate,
    child_module,
    cheats: CheatRules {
        names: &[
            ("process.exit", ProcessExit),
            ("process.abort", ProcessExit),
            ("libc.exit", ProcessExit),
            ("libc._exit", ProcessExit),
            ("libc.abort", ProcessExit),
            ("exit_group", ProcessExit),
            ("intrinsics.abort", ProcessExit),
            ("io.stdout", RawOutput),
            ("Stdout", RawOutput),
            ("from_raw_fd", RawOutput),
            ("libc.write", RawOutput),
        ],
        modules: &[],
        globals: &[],
        guarded: &[],
        texts: LazyLock::new(|| {
            text_rules(&[
                ("/dev/stdout", "^/dev/(?:stdout|fd/)", None, RawOutput),
                ("/proc/self/fd", "^/proc/self/fd", None, RawOutput),
                (
                    "/proc/self/cmdline",
                    "^/proc/self/cmdline$",
                    None,
                    ReachesForTheRunner,
                ),
                ("--logfile", "^--logfile", None, ReachesForTheRunner),
                ("RUST_TEST_", "^RUST_TEST_", None, ReachesForTheRunner),
                ("NEXTEST", "^NEXTEST", None, ReachesForTheRunner),
            ])
        }),
    },
};

static DIALECT: Dialect = Dialect {
    extensions: &["rs"],
    grammar: || tree_sitter_rust::LANGUAGE.into(),
    opaque: &[
        "line_comment",
        "block_comment",
        "string_literal",
        "raw_string_literal",
        "char_literal",
    ],
    leading: &["line_comment", "block_comment", "attribute_item"],
    queries: queries!("rust"),
};

/// `demo::api rejects_empty` is in `tests/api.rs`, `demo parser::tests::adds` in `src/parser.rs`.
fn contains_test(place: &TestSourceFile<'_>, name: &str) -> bool {
    let Some((program, test)) = name.split_once(' ') else {
        return false;
    };
    let parts: Vec<&str> = place.path.iter().filter_map(|p| p.to_str()).collect();
    let mut path: Vec<&str> = test.split("::").collect();
    let leaf = path.pop().unwrap_or_default();
    if !place.source.contains(&format!("fn {leaf}")) {
        return false;
    }
    let modules: Vec<&str> = match parts.iter().rposition(|p| *p == "tests" || *p == "src") {
        Some(at) if parts[at] == "tests" => {
            let target = parts.get(at + 1).map_or("", |p| p.trim_end_matches(".rs"));
            if !program.ends_with(&format!("::{target}")) {
                return false;
            }
            parts.get(at + 2..).map(modules_of).unwrap_or_default()
        }
        Some(at) => parts.get(at + 1..).map(modules_of).unwrap_or_default(),
        None => return true,
    };
    // The file's path gives its outer modules; the remaining ones must be in the file.
    let Some(inside) = path.strip_prefix(modules.as_slice()) else {
        return false;
    };
    inside.iter().all(|module| {
        place.source.contains(&format!("mod {module} "))
            || place.source.contains(&format!("mod {module}{{"))
    })
}

/// `parser/mod.rs` is the module `parser`; `lib.rs` is the crate root.
fn modules_of<'a>(parts: &[&'a str]) -> Vec<&'a str> {
    let mut modules: Vec<&str> = parts.iter().map(|p| p.trim_end_matches(".rs")).collect();
    if matches!(modules.last(), Some(&("mod" | "lib" | "main"))) {
        modules.pop();
    }
    if modules.first() == Some(&"bin") {
        modules.clear();
    }
    modules
}

/// Limit for nested groups; real code does not nest deeper.
const MAX_GROUP_DEPTH: usize = 16;

fn imports(tree: &SyntaxTree<'_>) -> Vec<Import> {
    let mut found = Vec::new();
    let masked = tree.masked();
    for one in tree.matches(|q| &q.imports) {
        if let Some(module) = one.get("module").and_then(|c| masked.get(c.range.clone())) {
            expand("", module, MAX_GROUP_DEPTH, &mut found);
        }
    }
    found
}

/// Expands `a::{b, C as D}` into one import per leaf.
fn expand(prefix: &str, tree: &str, depth: usize, found: &mut Vec<Import>) {
    let tree = tree.trim();
    if depth == 0 || tree.is_empty() {
        return;
    }
    let join = |path: &str| {
        let path = path.trim().trim_matches(':');
        if prefix.is_empty() || path.is_empty() {
            format!("{prefix}{path}")
        } else {
            format!("{prefix}::{path}")
        }
    };
    if let Some((path, group)) = tree.split_once('{') {
        let group = group.rsplit_once('}').map_or(group, |(inner, _)| inner);
        for part in split_outside_braces(group) {
            expand(&join(path), part, depth - 1, found);
        }
        return;
    }
    let (path, bound) = tree
        .split_once(" as ")
        .map_or((tree, tree), |(path, bound)| (path.trim(), bound.trim()));
    let path = join(path);
    let path = path.strip_suffix("::self").unwrap_or(&path);
    let Some((module, name)) = path.rsplit_once("::") else {
        found.push(Import::whole(path, bound));
        return;
    };
    let bound = if bound.contains(':') || bound == "self" {
        bound.rsplit("::").next().unwrap_or(name)
    } else {
        bound
    };
    match name {
        "*" => found.push(Import::all(module)),
        name => found.push(Import::named(
            module,
            name,
            if bound == "self" { name } else { bound },
        )),
    }
}

fn split_outside_braces(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0i64, 0);
    for (i, b) in group.bytes().enumerate() {
        match b {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&group[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[from..]);
    parts
}

/// Qualified paths in the code, such as `demo::billing::total(…)`, as imports.
fn qualified_paths(masked: &str) -> Vec<Import> {
    let mut found: Vec<Import> = Vec::new();
    for line in masked.lines().filter(|l| !l.contains("use ")) {
        for path in line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            let path = path.trim_matches(':');
            if let Some((module, name)) = path
                .rsplit_once("::")
                .filter(|(m, n)| !m.is_empty() && !n.is_empty())
            {
                let import = Import::named(module, name, name);
                if !found.contains(&import) {
                    found.push(import);
                }
            }
        }
    }
    found
}

/// `[package] name` and `[lib] name`, with `_` instead of `-` as in code.
fn package_names(manifest: &str) -> Vec<String> {
    let Ok(manifest) = manifest.parse::<toml::Table>() else {
        return Vec::new();
    };
    let name = |table: &str| {
        manifest
            .get(table)?
            .get("name")?
            .as_str()
            .map(|n| n.replace('-', "_"))
    };
    ["package", "lib"].iter().filter_map(|t| name(t)).collect()
}

/// The paths in `[[bin]]`, and Cargo's default path.
fn programs(manifest: &str) -> Vec<String> {
    let Ok(manifest) = manifest.parse::<toml::Table>() else {
        return Vec::new();
    };
    let declared = manifest
        .get("bin")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten();
    let declared = declared.filter_map(|bin| Some(bin.get("path")?.as_str()?.to_owned()));
    declared
        .chain(
            manifest
                .contains_key("package")
                .then(|| String::from("src/main.rs")),
        )
        .collect()
}

/// The files for the first segment of a path; later segments are resolved one by one with `child_module`.
fn locate(files: &dyn ProjectFiles, from: &str, first: &str) -> Vec<usize> {
    match first {
        "crate" => crate_root(files, from),
        "self" => files.at(from).into_iter().collect(),
        // In a module inside a file, `super` is that file.
        "super" => parent_module(files, from)
            .into_iter()
            .chain(files.at(from))
            .collect(),
        name => match files
            .packages(name, ':')
            .into_iter()
            .find(|(_, rest)| rest.is_empty())
        {
            Some((dir, _)) => {
                let file = |name: &&str| join(dir, name).and_then(|p| files.at(&p));
                ["src/lib.rs", "src/main.rs"]
                    .iter()
                    .filter_map(file)
                    .collect()
            }
            None => files
                .at(from)
                .and_then(|id| child_module(files, id, name))
                .into_iter()
                .collect(),
        },
    }
}

/// The root file of the crate that `from` belongs to.
fn crate_root(files: &dyn ProjectFiles, from: &str) -> Vec<usize> {
    let mut dir = parent(from);
    loop {
        let file = |name: &&str| join(dir, name).and_then(|p| files.at(&p));
        let found: Vec<usize> = ["lib.rs", "main.rs"].iter().filter_map(file).collect();
        if !found.is_empty() {
            return found;
        }
        if dir.is_empty() {
            // A file in `tests/` is its own crate.
            return files.at(from).into_iter().collect();
        }
        dir = parent(dir);
    }
}

/// The directory of a file's child modules.
pub fn child_module_dir(path: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let name = stem.rsplit('/').next().unwrap_or(stem);
    // A file directly in `tests/` is the root of its crate.
    let is_root =
        matches!(name, "lib" | "main" | "mod") || parent(path).rsplit('/').next() == Some("tests");
    if is_root {
        parent(path).to_owned()
    } else {
        stem.to_owned()
    }
}

fn child_module(files: &dyn ProjectFiles, file: usize, name: &str) -> Option<usize> {
    let dir = child_module_dir(files.path(file));
    let at = |f: &String| files.at(&join(&dir, f)?);
    [format!("{name}.rs"), format!("{name}/mod.rs")]
        .iter()
        .find_map(at)
        .filter(|child| *child != file)
}

/// The file of the parent module.
pub fn parent_module(files: &dyn ProjectFiles, path: &str) -> Option<usize> {
    let dir = if path.ends_with("/mod.rs") {
        parent(parent(path))
    } else {
        parent(path)
    };
    let beside = (!dir.is_empty()).then(|| format!("{dir}.rs"));
    let inside = ["mod.rs", "lib.rs", "main.rs"]
        .iter()
        .filter_map(|f| join(dir, f));
    beside
        .into_iter()
        .chain(inside)
        .find_map(|p| files.at(&p))
        .filter(|id| files.path(*id) != path)
}

#[cfg(test)]
mod tests {
    use super::super::imports::read;
    use super::*;

    #[test]
    fn use_tree_is_expanded() {
        let found = read(
            "a.rs",
            "use demo::a::{self, b::{C as D, e}, *};\npub(crate) use f::G;\nuse h as i;\n// use no::no;\n",
        );
        let expected = [
            Import::named("demo", "a", "a"),
            Import::named("demo::a::b", "C", "D"),
            Import::named("demo::a::b", "e", "e"),
            Import::all("demo::a"),
            Import::named("f", "G", "G"),
            Import::whole("h", "i"),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            qualified_paths("let x = demo::a::f(1);"),
            [Import::named("demo::a", "f", "f")]
        );
    }
}
