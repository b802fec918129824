//! Ruby. `require` imports every definition of a file, and classes can be reopened.

use std::sync::LazyLock;

use super::cheats::CheatRule::{KnowsTheRunner, ProcessExit, ReachesForTheRunner};
use super::cheats::{CheatRules, text_rules};
use super::imports::by_query;
use super::{Dialect, Language, NamePatterns, ProjectFiles, RunnerModules, join, parent, queries};

pub static RUBY: Language = Language {
    name: "ruby",
    dialects: &[&DIALECT],
    is_compiled: false,
    line_comment: "#",
    has_inline_tests: false,
    test_files: NamePatterns {
        dirs: &["spec", "test", "features"],
        stems: &[],
        names: &["*_spec.rb", "*_test.rb"],
    },
    manifests: &["Gemfile"],
    build_files: NamePatterns {
        dirs: &[".bundle"],
        stems: &[],
        names: &[
            "gemfile",
            "gemfile.lock",
            "gems.rb",
            "gems.locked",
            "rakefile",
            ".ruby-version",
            ".bundle",
            "*.gemspec",
        ],
    },
    runner_files: NamePatterns {
        dirs: &[],
        stems: &[],
        names: &[
            ".rspec",
            ".rspec-local",
            ".simplecov",
            ".minitest.rb",
            "spec_helper.rb",
            "rails_helper.rb",
            "test_helper.rb",
        ],
    },
    runner_modules: RunnerModules {
        search_dirs: &["", "lib", "spec", "test"],
        names: &["rspec", "minitest", "test", "rake", "bundler", "simplecov"],
        extensions: &["rb"],
    },
    installed_dirs: &[],
    vendored_dirs: &["vendor"],
    built_dirs: &[],
    compiled_dirs: &[],
    production_env: &[],
    missing_names: &[
        ("uninitialized constant ", ""),
        ("cannot load such file -- ", ""),
    ],
    unbound_name: None,
    contains_test: |place, name| place.is_named_by_path(name, " "),
    is_public: |_, head| {
        let head = head.trim_start();
        ["def ", "class ", "module "]
            .iter()
            .any(|word| head.starts_with(word))
    },
    imports: |tree| by_query(tree, |module| module),
    implicit_imports: |_| Vec::new(),
    package_names: |_| Vec::new(),
    programs: |_| Vec::new(),
    locate,
    child_module: |_, _, _| None,
    cheats: CheatRules {
        names: &[
            // Skips everything the runner still has to do, such as correcting a forged report.
            ("exit!", ReachesForTheRunner),
            ("Process.exit", ProcessExit),
            ("Kernel.exit", ProcessExit),
            ("abort", ProcessExit),
            ("at_exit", ProcessExit),
            ("Rails.env.test?", KnowsTheRunner),
        ],
        modules: &[],
        globals: &[
            ("RSpec", "RSpec", ReachesForTheRunner),
            ("Minitest", "Minitest", ReachesForTheRunner),
        ],
        guarded: &[],
        texts: LazyLock::new(|| {
            text_rules(&[
                ("rspec", r"(?:^|/)rspec\b", None, ReachesForTheRunner),
                (
                    "the runner's report",
                    "^--out$",
                    Some("ARGV"),
                    ReachesForTheRunner,
                ),
                (
                    "the runner's report",
                    "^--out$",
                    Some("ARGV.index"),
                    ReachesForTheRunner,
                ),
            ])
        }),
    },
};

static DIALECT: Dialect = Dialect {
    extensions: &["rb", "rake"],
    grammar: || tree_sitter_ruby::LANGUAGE.into(),
    opaque: &[
        "comment",
        "string",
        "regex",
        "heredoc_body",
        "string_array",
        "subshell",
    ],
    leading: &["comment"],
    queries: queries!("ruby"),
};

fn locate(files: &dyn ProjectFiles, from: &str, module: &str) -> Vec<usize> {
    let file = if module.ends_with(".rb") {
        module.to_owned()
    } else {
        format!("{module}.rb")
    };
    if module.starts_with("./") {
        return join(parent(from), &file)
            .and_then(|p| files.at(&p))
            .into_iter()
            .collect();
    }
    let in_usual_dir = ["lib", "", "spec", "test", "app"]
        .iter()
        .find_map(|base| files.at(&join(base, &file)?));
    in_usual_dir.map_or_else(|| files.ending(&file), |id| vec![id])
}

#[cfg(test)]
mod tests {
    use super::super::Import;
    use super::super::imports::read;

    #[test]
    fn every_require_form_is_read() {
        let text = "require 'json'\nrequire_relative(\"../lib/a\")\n  autoload :B, 'x/b'\n# require 'no'\n";
        assert_eq!(
            read("a.rb", text),
            [
                Import::all("json"),
                Import::all("./../lib/a"),
                Import::all("x/b")
            ]
        );
    }
}
