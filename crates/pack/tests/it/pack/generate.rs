//! Projects of 300 files by seed, made to mislead: the same symbol names elsewhere, files with nearly the same name,
//! definitions deep in large files, front doors that only pass names on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::generated_language::GeneratedLanguage;

pub(super) struct Generated {
    pub(super) root: tempfile::TempDir,
    pub(super) language: GeneratedLanguage,
    pub(super) files: usize,
    pub(super) test_path: PathBuf,
    pub(super) test_source: String,
    /// What the test imports, and every line of it.
    pub(super) definitions: Vec<Definition>,
}

pub(super) struct Definition {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) lines: Vec<String>,
}

const VERBS: &[&str] = &[
    "settle", "merge", "price", "count", "close", "open", "ship", "void", "audit", "split",
    "round", "sum",
];
const NOUNS: &[&str] = &[
    "invoice", "order", "cart", "ledger", "refund", "parcel", "quota", "tax", "batch", "label",
    "route", "claim",
];
const AREAS: &[&str] = &[
    "billing", "orders", "stock", "people", "legacy", "shared", "reports", "search",
];
const SUBS: &[&str] = &["core", "rules", "store", "web"];

/// A small generator with a fixed stream per seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

pub(super) fn project(seed: u64) -> Generated {
    let mut dice = Dice(seed.wrapping_mul(7919) + 1);
    let language = GeneratedLanguage::all()[seed as usize % 6];
    // Module path → its definitions. Only the wanted ones are remembered line by line.
    let mut modules: BTreeMap<Vec<String>, Vec<Vec<String>>> = BTreeMap::new();
    let mut definitions = Vec::new();
    let mut imports = Vec::new();
    let mut doors: Vec<(String, String)> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut tag = 0;
    let ways = language.ways();
    for (n, means) in ways.iter().enumerate() {
        let name = loop {
            let name = language.name(dice.pick(VERBS), dice.pick(NOUNS));
            if !names.contains(&name) {
                break name;
            }
        };
        names.push(name.clone());
        // Each from an area of its own, so that no two modules are called the same in the test.
        let module: Vec<String> = [
            AREAS[n],
            dice.pick(SUBS),
            &format!("{}_{n}", dice.pick(NOUNS)),
        ]
        .map(str::to_owned)
        .to_vec();
        tag += 1;
        let lines = language.definition(&name, tag, 6 + dice.roll(20), n % 2 == 0);
        let mut all = Vec::new();
        // One file in three is far larger than the window, the definition somewhere in it.
        let before = if n % 3 == 1 {
            120 + dice.roll(120)
        } else {
            dice.roll(5)
        };
        let after = if n % 3 == 1 {
            60 + dice.roll(60)
        } else {
            dice.roll(4)
        };
        for i in 0..before + after {
            if i == before {
                all.push(lines.clone());
            }
            tag += 1;
            all.push(language.definition(
                &format!("{}{tag}", language.name("other", dice.pick(NOUNS))),
                tag,
                4 + dice.roll(8),
                false,
            ));
        }
        if !all.contains(&lines) {
            all.push(lines.clone());
        }
        modules.insert(module.clone(), all);
        let (import, more) = language.import(*means, &module, &name);
        imports.push(import);
        doors.extend(more);
        definitions.push(Definition {
            name: name.clone(),
            path: language.file(&module),
            lines,
        });
        // Decoys: the same symbol in other places, among them files of nearly or exactly the same name.
        let home = module[2].clone();
        for file in [
            home.clone(),
            format!("{home}_old"),
            format!("{home}s"),
            format!("new_{home}"),
        ] {
            let area = AREAS[(n + 1 + dice.roll(AREAS.len() - 1)) % AREAS.len()];
            let decoy = vec![area.to_owned(), dice.pick(SUBS).to_owned(), file];
            if modules.contains_key(&decoy) || language.same_package(&decoy, &module) {
                continue;
            }
            tag += 1;
            let length = 6 + dice.roll(20);
            modules.insert(
                decoy,
                vec![language.definition(&name, tag, length, n % 2 == 0)],
            );
        }
    }
    let (test_path, test_source) = language.test(&imports);
    let mut written: BTreeMap<String, String> = BTreeMap::new();
    for (path, text) in language.always(AREAS, SUBS).into_iter().chain(doors) {
        written
            .entry(path)
            .and_modify(|all| all.push_str(&text))
            .or_insert(text);
    }
    for (module, defs) in &modules {
        written.insert(language.file(module), language.wrap(module, defs));
    }
    written.insert(test_path.clone(), test_source.clone());
    while written.len() < 300 {
        tag += 1;
        let module = vec![
            dice.pick(AREAS).to_owned(),
            dice.pick(SUBS).to_owned(),
            format!("{}_x{tag}", dice.pick(NOUNS)),
        ];
        let defs: Vec<_> = (0..2 + dice.roll(6))
            .map(|i| {
                let name = format!(
                    "{}{}",
                    language.name(dice.pick(VERBS), dice.pick(NOUNS)),
                    tag * 10 + i
                );
                language.definition(&name, tag * 100 + i, 3 + dice.roll(10), false)
            })
            .collect();
        written.insert(language.file(&module), language.wrap(&module, &defs));
        modules.insert(module, defs);
    }
    for module in modules.keys() {
        if let Some((path, line)) = language.declared(module) {
            written.get_mut(&path).unwrap().push_str(&line);
        }
    }
    let root = tempfile::tempdir().unwrap();
    for (path, text) in &written {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Generated {
        root,
        language,
        files: written.len(),
        test_path: test_path.into(),
        test_source,
        definitions,
    }
}
