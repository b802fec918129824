//! Elixir. Modules are found by their full names, independent of the file path.

use std::sync::LazyLock;

use super::cheats::CheatRule::{KnowsTheRunner, ProcessExit, RawOutput, ReachesForTheRunner};
use super::cheats::{CheatRules, text_rules};
use super::files::to_snake_case;
use super::imports::by_query;
use super::{
    CompiledDir, Dialect, Import, ImportedNames, Language, NamePatterns, ProjectFiles,
    RunnerModules, SyntaxTree, queries,
};

pub static ELIXIR: Language = Language {
    name: "elixir",
    dialects: &[&DIALECT],
    is_compiled: true,
    line_comment: "#",
    has_inline_tests: false,
    test_files: NamePatterns {
        dirs: &["test"],
        stems: &[],
        names: &["*_test.exs"],
    },
    manifests: &["mix.exs"],
    build_files: NamePatterns {
        dirs: &["_build"],
        stems: &[],
        names: &[
            "mix.exs",
            "mix.lock",
            "rebar.config",
            "rebar.lock",
            ".tool-versions",
        ],
    },
    runner_files: NamePatterns {
        dirs: &[],
        stems: &[],
        names: &["test_helper.exs"],
    },
    runner_modules: RunnerModules::NONE,
    installed_dirs: &[],
    vendored_dirs: &["deps"],
    built_dirs: &["_build"],
    compiled_dirs: &[CompiledDir {
        name: "_build",
        manifest: "mix.exs",
        own_outputs: &["*/lib/*"],
        keep: &[],
        dependency_dir: Some("deps"),
    }],
    production_env: &[("MIX_ENV", "prod")],
    missing_names: &[
        ("undefined function ", "/"),
        ("cannot import ", " because it is undefined or private"),
        ("undefined variable \"", "\""),
        ("module ", " is not loaded and could not be found"),
        (".__struct__/1 is undefined, cannot expand struct ", ","),
    ],
    unbound_name: None,
    contains_test: |place, name| {
        let module = name.split(' ').next().unwrap_or_default();
        place.source.contains(&format!("defmodule {module} "))
    },
    is_public: |_, head| {
        let head = head.trim_start();
        ["def ", "defmodule "]
            .iter()
            .any(|word| head.starts_with(word))
    },
    imports,
    implicit_imports: qualified_modules,
    package_names: |_| Vec::new(),
    programs: |_| Vec::new(),
    locate,
    child_module: |_, _, _| None,
    cheats: CheatRules {
        names: &[
            ("System.halt", ProcessExit),
            ("System.stop", ProcessExit),
            ("erlang.halt", ProcessExit),
            ("init.stop", ProcessExit),
            ("erlang.open_port", RawOutput),
            ("Port.open", RawOutput),
            ("ex_unit", ReachesForTheRunner),
            // Allows replacing a module that is already loaded.
            ("ignore_module_conflict", ReachesForTheRunner),
            ("code.load_binary", ReachesForTheRunner),
            ("Mix.env", KnowsTheRunner),
        ],
        modules: &[],
        globals: &[("ExUnit", "ExUnit", ReachesForTheRunner)],
        guarded: &[],
        texts: LazyLock::new(|| {
            text_rules(&[
                ("/dev/stdout", "^/dev/stdout", None, RawOutput),
                (
                    "MIX_ENV",
                    "^MIX_ENV$",
                    Some("System.get_env"),
                    ReachesForTheRunner,
                ),
                (
                    "MIX_ENV",
                    "^MIX_ENV$",
                    Some("System.fetch_env"),
                    ReachesForTheRunner,
                ),
                (
                    "MIX_ENV",
                    "^MIX_ENV$",
                    Some("System.fetch_env!"),
                    ReachesForTheRunner,
                ),
            ])
        }),
    },
};

static DIALECT: Dialect = Dialect {
    extensions: &["ex", "exs"],
    grammar: || tree_sitter_elixir::LANGUAGE.into(),
    opaque: &["comment", "string", "charlist", "sigil", "char"],
    // `@doc`, `@spec`, `@impl`.
    leading: &["comment", "unary_operator"],
    queries: queries!("elixir"),
};

fn imports(tree: &SyntaxTree<'_>) -> Vec<Import> {
    let mut found: Vec<Import> = Vec::new();
    for mut import in by_query(tree, |module| module.rsplit('.').next().unwrap_or(module)) {
        if !matches!(import.names, ImportedNames::Whole { .. }) {
            import.module = expand_alias(&import.module, &found);
        }
        if let ImportedNames::Named { name, .. } = &mut import.names {
            *name = name.trim_start_matches(':').to_owned();
        }
        found.push(import);
    }
    found
}

/// Resolves the alias in a module name.
fn expand_alias(name: &str, aliases: &[Import]) -> String {
    let (first, rest) = name
        .split_once('.')
        .map_or((name, None), |(f, r)| (f, Some(r)));
    let alias = aliases
        .iter()
        .find(|i| matches!(&i.names, ImportedNames::Whole { bound } if bound == first));
    match (alias, rest) {
        (Some(import), Some(rest)) => format!("{}.{rest}", import.module),
        (Some(import), None) => import.module.clone(),
        (None, _) => name.to_owned(),
    }
}

/// Modules used by their full name, such as `Shop.Cart.total(…)`.
fn qualified_modules(masked: &str) -> Vec<Import> {
    let mut found: Vec<Import> = Vec::new();
    for path in masked.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.') {
        let is_module = |p: &&str| p.starts_with(|c: char| c.is_ascii_uppercase());
        let module: Vec<&str> = path.split('.').take_while(is_module).collect();
        let called = path
            .split('.')
            .nth(module.len())
            .is_some_and(|f| !f.is_empty());
        if module.len() > 1 || (module.len() == 1 && called) {
            let module = module.join(".");
            let import = Import::whole(&module, &module);
            if !found.contains(&import) {
                found.push(import);
            }
        }
    }
    found
}

fn locate(files: &dyn ProjectFiles, _from: &str, module: &str) -> Vec<usize> {
    let path = module
        .split('.')
        .map(to_snake_case)
        .collect::<Vec<_>>()
        .join("/");
    let defining = files.defining(module);
    let conventional_path = format!("{path}.ex");
    let named: Vec<usize> = defining
        .iter()
        .copied()
        .filter(|id| files.path(*id).ends_with(&conventional_path))
        .collect();
    if named.is_empty() { defining } else { named }
}

#[cfg(test)]
mod tests {
    use super::super::imports::read;
    use super::*;

    #[test]
    fn every_alias_form_is_read() {
        let found = read(
            "a.ex",
            "defmodule X do\n  alias A.B\n  alias A.{C,\n    D}\n  alias A.E, as: F\n  import A.G, only: [f: 1]\n  defdelegate f(x), to: C, as: :g\nend\n",
        );
        let expected = [
            Import::whole("A.B", "B"),
            Import::whole("A.C", "C"),
            Import::whole("A.D", "D"),
            Import::whole("A.E", "F"),
            Import::all("A.G"),
            Import::named("A.C", "g", "f"),
        ];
        assert_eq!(found, expected);
        let full = [
            Import::whole("Shop.Cart", "Shop.Cart"),
            Import::whole("Shop", "Shop"),
        ];
        assert_eq!(
            qualified_modules("assert Shop.Cart.total(x) == Shop.sum(1)"),
            full
        );
    }
}
