//! The map in `src/lib.rs`, kept: who may use whom, and which crate is known where.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// For each top-level module, the modules it may name, from the top of the map to its leaves.
const MAY_USE: &[(&str, &str)] = &[
    (
        "cli",
        "server skills gym engine answers backend verify workspace memory team routing session prompts languages process redact state words",
    ),
    (
        "server",
        "skills gym engine answers backend verify workspace memory team routing session prompts languages process redact state words",
    ),
    (
        "skills",
        "server gym engine answers backend verify workspace memory team routing session prompts languages process redact state words",
    ),
    (
        "testing",
        "fuzz cli server skills gym engine answers backend verify workspace memory team routing session prompts languages process redact state words",
    ),
    (
        "fuzz",
        "server answers backend verify workspace routing session",
    ),
    // What was measured is read from what the engine wrote; tasks are mutated by what `languages` knows.
    ("gym", "session engine routing languages redact state words"),
    ("session", "engine redact state words"),
    (
        "engine",
        "answers backend verify workspace routing prompts languages process redact state words",
    ),
    // `routing` is data that a backend reads: which address, which variable holds the key.
    ("backend", "routing process redact words"),
    // What a model said is compared with what was read; whether it works is for `verify` to say.
    // Edits are made for the workspace, which alone says whether they may be.
    ("answers", "verify workspace languages words"),
    ("verify", "languages process words"),
    ("workspace", "process state words"),
    ("memory", "workspace words"),
    ("team", "workspace words"),
    ("routing", "process words"),
    ("prompts", "words"),
    ("languages", "words"),
    // Which variables a child gets depends on what looks like a secret in them.
    ("process", "redact words"),
    ("redact", ""),
    ("state", ""),
    ("words", ""),
];

/// A crate or path, and the only modules that may name it.
const KNOWN_TO: &[(&str, &[&str])] = &[
    ("rmcp::", &["server", "skills"]),
    ("figment::", &["routing"]),
    ("reqwest::", &["backend"]),
    ("tokio::process", &["process"]),
    ("std::process::Command", &["process"]),
    ("clap::", &["cli"]),
    ("maud::", &["cli"]),
    ("ratatui::", &["cli"]),
    ("tree_sitter::", &["languages"]),
];

#[test]
fn dependencies_point_down_the_map() {
    let allowed: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let mut wrong = Vec::new();
    for source in sources() {
        let module = source.module.as_str();
        if module == "lib" || module == "main" {
            continue;
        }
        let Some(may) = allowed.get(module) else {
            wrong.push(format!(
                "{}: module `{module}` has no line in MAY_USE",
                source.path.display()
            ));
            continue;
        };
        for (line, used) in source.uses_of_own_modules() {
            if used != module && !may.split(' ').any(|name| name == used) {
                wrong.push(format!(
                    "{}:{line}: `{module}` may not use `{used}`",
                    source.path.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn each_outside_crate_is_known_where_the_map_says() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (number, line) in source.code_lines() {
            for (name, homes) in KNOWN_TO {
                if line.contains(name) && !homes.contains(&source.module.as_str()) {
                    wrong.push(format!(
                        "{}:{number}: only {homes:?} may know `{name}`",
                        source.path.display()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_map_in_lib_names_every_module() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    for module in lib
        .lines()
        .filter_map(|l| l.trim_start_matches("pub ").strip_prefix("mod "))
        .map(|m| m.trim_end_matches(';'))
    {
        assert!(
            lib.contains(&format!("`{module}`")),
            "`{module}` is missing in the table of src/lib.rs"
        );
        assert!(
            MAY_USE.iter().any(|(m, _)| *m == module),
            "`{module}` has no line in MAY_USE"
        );
    }
}

#[test]
fn no_source_file_outgrows_its_story() {
    let long: Vec<_> = sources()
        .into_iter()
        .filter(|s| s.text.lines().count() > 500)
        .map(|s| format!("{} has {} lines", s.path.display(), s.text.lines().count()))
        .collect();
    assert!(
        long.is_empty(),
        "look for the second noun hiding inside:\n{}",
        long.join("\n")
    );
}

#[test]
fn every_source_file_is_part_of_the_program() {
    let all = sources();
    let is_stray = |source: &&Source| {
        let root = ["lib.rs", "main.rs"]
            .iter()
            .any(|root| source.path == Path::new(root));
        !root && !all.iter().any(|other| other.brings_in(source))
    };
    let strays: Vec<_> = all
        .iter()
        .filter(is_stray)
        .map(|source| &source.path)
        .collect();
    assert!(strays.is_empty(), "no `mod` leads to {strays:?}");
}

struct Source {
    path: PathBuf,
    module: String,
    text: String,
}

impl Source {
    /// As a module below this one, or as a file that this one names.
    fn brings_in(&self, other: &Self) -> bool {
        let name = other.path.file_stem().unwrap().to_string_lossy();
        let above = match other.path.parent() {
            Some(dir) if dir != Path::new("") => self.path == dir.with_extension("rs"),
            _ => self.path == Path::new("lib.rs"),
        };
        above
            && self.text.lines().any(|line| {
                line.trim()
                    .trim_start_matches("pub ")
                    .ends_with(&format!("mod {name};"))
            })
            || self.text.contains(&format!("/{name}.rs\""))
    }

    /// Lines that are neither comment nor documentation, numbered from 1.
    fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(i, l)| (i + 1, l))
            .filter(|(_, l)| !l.trim_start().starts_with("//"))
    }

    fn uses_of_own_modules(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (number, line) in self.code_lines() {
            for (at, _) in line.match_indices("crate::") {
                let rest = &line[at + "crate::".len()..];
                if let Some(group) = rest.strip_prefix('{') {
                    let names = group.split(['}', ';']).next().unwrap_or_default();
                    found.extend(names.split(',').map(|n| (number, first_segment(n))));
                } else {
                    found.push((number, first_segment(rest)));
                }
            }
        }
        found.retain(|(_, name)| name.chars().next().is_some_and(|c| c.is_ascii_lowercase()));
        found
    }
}

fn first_segment(path: &str) -> String {
    path.trim()
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let (mut found, mut dirs) = (Vec::new(), vec![root().join("src")]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let inside = path.strip_prefix(root().join("src")).unwrap();
                let module = inside
                    .components()
                    .next()
                    .unwrap()
                    .as_os_str()
                    .to_string_lossy();
                let module = module.trim_end_matches(".rs").to_owned();
                let text = fs::read_to_string(&path).unwrap();
                found.push(Source {
                    path: inside.to_owned(),
                    module,
                    text,
                });
            }
        }
    }
    assert!(found.len() > 5, "the sources were not found");
    found
}
