//! Where does a module lie? From the name a file uses to the files that could be meant, by the habits of each language.
//! Build settings are not read: where a habit fails, a path that ends like the name will do.

use std::collections::HashMap;

use super::lang::Lang;
use super::tree::{Id, Tree, join, parent};

/// Names under which parts of this project are known: crates, packages of a workspace, the Go module.
pub(super) struct Packages {
    /// The name, and the directory it stands for.
    dirs: HashMap<String, String>,
}

/// More manifests than this are fixtures.
const MOST: usize = 200;
const NODE_ENDINGS: &[&str] = &["ts", "tsx", "js", "jsx", "mjs", "cjs", "mts", "cts"];

impl Packages {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut dirs = HashMap::new();
        for path in tree.manifests().iter().take(MOST) {
            let Some(text) = tree.read(path) else { continue };
            let names = match path.rsplit('/').next() {
                Some("Cargo.toml") => crate_names(&text),
                Some("package.json") => serde_json::from_str::<serde_json::Value>(&text)
                    .ok()
                    .and_then(|v| Some(vec![v.get("name")?.as_str()?.to_owned()]))
                    .unwrap_or_default(),
                Some("go.mod") => {
                    let name = text.lines().find_map(|l| l.trim().strip_prefix("module "));
                    name.map(|n| n.trim().trim_matches('"').to_owned()).into_iter().collect()
                }
                _ => Vec::new(),
            };
            for name in names {
                dirs.entry(name).or_insert_with(|| parent(path).to_owned());
            }
        }
        Self { dirs }
    }

    /// The files that `module`, as written in the file `from`, could mean.
    pub(super) fn locate(&self, tree: &Tree, lang: Lang, from: &str, module: &str) -> Vec<Id> {
        match lang {
            Lang::Python => python(tree, from, module),
            Lang::Node => self.node(tree, from, module),
            Lang::Go => self.go(tree, from, module),
            Lang::Ruby => ruby(tree, from, module),
            Lang::Elixir => elixir(tree, module),
            Lang::Rust => self.rust_start(tree, from, module),
        }
    }

    /// Rust names are walked segment by segment; this is where the first one leads.
    fn rust_start(&self, tree: &Tree, from: &str, first: &str) -> Vec<Id> {
        let roots = |dir: &str| -> Vec<Id> {
            let file = |name: &str| join(dir, name).and_then(|p| tree.at(&p));
            ["src/lib.rs", "src/main.rs"].iter().filter_map(|n| file(n)).collect()
        };
        match first {
            "crate" => crate_root(tree, from),
            "self" => tree.at(from).into_iter().collect(),
            // In a module inside a file, `super` is that file.
            "super" => rust_parent(tree, from).into_iter().chain(tree.at(from)).collect(),
            name => match self.dirs.get(name) {
                Some(dir) => roots(dir),
                None => tree.at(from).and_then(|id| rust_child(tree, id, name)).into_iter().collect(),
            },
        }
    }

    fn node(&self, tree: &Tree, from: &str, module: &str) -> Vec<Id> {
        if module.starts_with('.') {
            return join(parent(from), module).map(|p| node_file(tree, &p)).unwrap_or_default();
        }
        let whole = self.dirs.iter().filter_map(|(name, dir)| {
            let rest = module.strip_prefix(name.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| (dir, rest.trim_start_matches('/')))
        });
        for (dir, rest) in whole {
            for base in ["", "src", "lib"] {
                let found =
                    join(dir, base).and_then(|d| join(&d, rest)).map(|p| node_file(tree, &p)).unwrap_or_default();
                if !found.is_empty() {
                    return found;
                }
            }
        }
        // `@/billing/total` and the like: an alias for a source folder.
        let Some(inside) = ["@/", "~/", "#"].iter().find_map(|mark| module.strip_prefix(mark)) else {
            return Vec::new();
        };
        let endings = NODE_ENDINGS.iter().flat_map(|e| [format!("{inside}.{e}"), format!("{inside}/index.{e}")]);
        endings.flat_map(|suffix| tree.ending(&suffix)).collect()
    }

    fn go(&self, tree: &Tree, from: &str, module: &str) -> Vec<Id> {
        let dir = if module == "." {
            Some(parent(from).to_owned())
        } else {
            self.dirs.iter().find_map(|(name, dir)| {
                let rest = module.strip_prefix(name.as_str())?;
                (rest.is_empty() || rest.starts_with('/')).then(|| join(dir, rest)).flatten()
            })
        };
        let files = dir.map(|d| tree.inside(&d).collect::<Vec<_>>()).unwrap_or_default();
        files.into_iter().filter(|id| !tree.path(*id).ends_with("_test.go") && tree.path(*id) != from).collect()
    }
}

/// `[package] name` and `[lib] name`, as they are written in code.
fn crate_names(text: &str) -> Vec<String> {
    let Ok(manifest) = text.parse::<toml::Table>() else { return Vec::new() };
    let name = |table: &str| manifest.get(table)?.get("name")?.as_str().map(|n| n.replace('-', "_"));
    ["package", "lib"].iter().filter_map(|t| name(t)).collect()
}

/// The file at the top of the crate that `from` belongs to.
fn crate_root(tree: &Tree, from: &str) -> Vec<Id> {
    let mut dir = parent(from);
    loop {
        let file = |name: &str| join(dir, name).and_then(|p| tree.at(&p));
        let found: Vec<Id> = ["lib.rs", "main.rs"].iter().filter_map(|n| file(n)).collect();
        if !found.is_empty() {
            return found;
        }
        if dir.is_empty() {
            // A file in `tests/` is a crate of its own.
            return tree.at(from).into_iter().collect();
        }
        dir = parent(dir);
    }
}

/// The directory in which a file's child modules lie.
pub(super) fn rust_children(path: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let name = stem.rsplit('/').next().unwrap_or(stem);
    // A file directly in `tests/` is the root of its crate.
    let is_root = matches!(name, "lib" | "main" | "mod") || parent(path).rsplit('/').next() == Some("tests");
    if is_root { parent(path).to_owned() } else { stem.to_owned() }
}

pub(super) fn rust_child(tree: &Tree, id: Id, name: &str) -> Option<Id> {
    let dir = rust_children(tree.path(id));
    [format!("{name}.rs"), format!("{name}/mod.rs")].iter().find_map(|f| tree.at(&join(&dir, f)?)).filter(|c| *c != id)
}

pub(super) fn rust_parent(tree: &Tree, path: &str) -> Option<Id> {
    let dir = if path.ends_with("/mod.rs") { parent(parent(path)) } else { parent(path) };
    let beside = (!dir.is_empty()).then(|| format!("{dir}.rs"));
    let inside = ["mod.rs", "lib.rs", "main.rs"].iter().filter_map(|f| join(dir, f));
    beside.into_iter().chain(inside).find_map(|p| tree.at(&p)).filter(|id| tree.path(*id) != path)
}

fn python(tree: &Tree, from: &str, module: &str) -> Vec<Id> {
    let dots = module.len() - module.trim_start_matches('.').len();
    let path = module[dots..].replace('.', "/");
    let files = |base: &str| -> Vec<Id> {
        let names = if path.is_empty() {
            vec![String::from("__init__.py")]
        } else {
            vec![format!("{path}.py"), format!("{path}/__init__.py"), format!("{path}.pyi")]
        };
        names.iter().filter_map(|n| tree.at(&join(base, n)?)).collect()
    };
    if dots > 0 {
        let mut base = parent(from);
        for _ in 1..dots {
            base = parent(base);
        }
        return files(base);
    }
    // The root, `src/`, then wherever the test lies, as runners put those on the path.
    let mut bases = vec![String::new(), String::from("src"), String::from("lib")];
    let mut dir = parent(from);
    while !dir.is_empty() {
        bases.push(dir.to_owned());
        bases.push(format!("{dir}/src"));
        dir = parent(dir);
    }
    let found = bases.iter().map(|b| files(b)).find(|f| !f.is_empty());
    // A package below a folder that is no package: only if the name is long enough to mean it.
    found.unwrap_or_else(|| {
        let far = |name: String| tree.ending(&name);
        if path.contains('/') {
            [far(format!("{path}.py")), far(format!("{path}/__init__.py"))].concat()
        } else {
            Vec::new()
        }
    })
}

/// Packages import their modules by name.
pub(super) fn python_child(tree: &Tree, id: Id, name: &str) -> Option<Id> {
    let path = tree.path(id);
    let dir = path.strip_suffix("/__init__.py").or_else(|| (path == "__init__.py").then_some(""))?;
    [format!("{name}.py"), format!("{name}/__init__.py")].iter().find_map(|f| tree.at(&join(dir, f)?))
}

fn node_file(tree: &Tree, path: &str) -> Vec<Id> {
    if let Some(id) = tree.at(path) {
        return vec![id];
    }
    // TypeScript is imported by the name its output will have.
    let stem = path.rsplit_once('.').filter(|(_, e)| NODE_ENDINGS.contains(e)).map_or(path, |(stem, _)| stem);
    let ends = |base: &str, slash: &str| -> Option<Id> {
        NODE_ENDINGS.iter().find_map(|e| tree.at(format!("{base}{slash}.{e}").trim_start_matches('/')))
    };
    ends(path, "").or_else(|| ends(stem, "")).or_else(|| ends(path, "/index")).into_iter().collect()
}

fn ruby(tree: &Tree, from: &str, module: &str) -> Vec<Id> {
    let file = if module.ends_with(".rb") { module.to_owned() } else { format!("{module}.rb") };
    if module.starts_with("./") {
        return join(parent(from), &file).and_then(|p| tree.at(&p)).into_iter().collect();
    }
    let near = ["lib", "", "spec", "test", "app"].iter().find_map(|base| tree.at(&join(base, &file)?));
    near.map_or_else(|| tree.ending(&file), |id| vec![id])
}

fn elixir(tree: &Tree, module: &str) -> Vec<Id> {
    let path = module.split('.').map(underscored).collect::<Vec<_>>().join("/");
    let named = |id: &Id| tree.source(*id).is_some_and(|s| s.items.iter().any(|i| i.name == module));
    let usual: Vec<Id> = tree.ending(&format!("{path}.ex")).into_iter().filter(named).collect();
    if usual.is_empty() && module.contains('.') { tree.ids().filter(named).collect() } else { usual }
}

/// `LineItem` as files are named: `line_item`.
pub(super) fn underscored(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 && !out.ends_with('_') {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}
