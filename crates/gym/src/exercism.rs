//! Reads tasks from a checked-out Exercism track.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::task::{FileTexts, GymTask, TaskKind};

/// Larger files are not part of an exercise.
const MAX_FILE_BYTES: u64 = 1 << 20;

#[derive(Deserialize)]
struct ExerciseConfig {
    files: ExerciseFiles,
}

#[derive(Deserialize)]
struct ExerciseFiles {
    #[serde(default)]
    solution: Vec<String>,
    #[serde(default)]
    test: Vec<String>,
    /// Concept exercises call their reference an exemplar.
    #[serde(default, alias = "exemplar")]
    example: Vec<String>,
}

/// Per extension of test files: the language, and how the track marks tests to skip with the
/// replacement that enables them.
struct SkipMarks {
    extension: &'static str,
    language: &'static str,
    marks: &'static [(&'static str, &'static str)],
}

const UNSKIP: &[SkipMarks] = &[
    SkipMarks {
        extension: "rs",
        language: "rust",
        marks: &[("#[ignore]\n", "\n")],
    },
    SkipMarks {
        extension: "js",
        language: "javascript",
        marks: &[
            ("xtest(", "test("),
            ("xit(", "it("),
            ("xdescribe(", "describe("),
            ("test.skip(", "test("),
            ("it.skip(", "it("),
        ],
    },
    SkipMarks {
        extension: "rb",
        language: "ruby",
        marks: &[
            ("    skip\n", "\n"),
            ("    skip unless", "    # skip unless"),
        ],
    },
    SkipMarks {
        extension: "exs",
        language: "elixir",
        marks: &[("@tag :pending\n", "\n"), ("    @tag :skip\n", "\n")],
    },
    SkipMarks {
        extension: "py",
        language: "python",
        marks: &[],
    },
    SkipMarks {
        extension: "go",
        language: "go",
        marks: &[],
    },
];

/// Files of a track that are not part of the task.
const IGNORED_FILES: &[&str] = &[
    ".meta",
    ".docs",
    ".approaches",
    ".articles",
    "node_modules",
    "eslint.config.mjs",
    "LICENSE",
];

/// Whether this directory is a checked-out track.
pub fn is_track(dir: &Path) -> bool {
    exercise_folders(dir).iter().any(|folder| folder.is_dir())
}

/// The tasks of a track that have one solution file and one reference, sorted by name. If there are
/// more than `max_tasks`, an evenly spread selection.
pub fn read_track(track: &Path, max_tasks: usize) -> Vec<GymTask> {
    let listed = exercise_folders(track)
        .into_iter()
        .flat_map(fs::read_dir)
        .flatten()
        .flatten();
    let mut dirs: Vec<PathBuf> = listed.map(|entry| entry.path()).collect();
    dirs.sort_by_key(|dir| dir.file_name().map(OsStr::to_owned));
    let all: Vec<GymTask> = dirs.iter().filter_map(|dir| read_exercise(dir)).collect();
    let step = all.len().div_ceil(max_tasks.max(1)).max(1);
    all.into_iter().step_by(step).collect()
}

/// Exercise names are unique across both folders.
fn exercise_folders(track: &Path) -> [PathBuf; 2] {
    ["practice", "concept"].map(|kind| track.join("exercises").join(kind))
}

/// `None` unless solution and reference are one file each.
fn read_exercise(dir: &Path) -> Option<GymTask> {
    let config: ExerciseConfig =
        serde_json::from_slice(&fs::read(dir.join(".meta/config.json")).ok()?).ok()?;
    let mut files = BTreeMap::new();
    collect_files(dir, dir, &mut files);
    let ExerciseFiles {
        solution,
        test,
        example,
    } = config.files;
    for path in &test {
        let text = String::from_utf8(files.get(path)?.clone()).ok()?;
        files.insert(path.clone(), unskip(path, text).into_bytes());
    }
    let code: Vec<&String> = solution
        .iter()
        .filter(|path| !path.ends_with(".toml") && !path.ends_with(".mod"))
        .collect();
    let examples: Vec<&String> = example
        .iter()
        .filter(|path| !path.ends_with(".toml"))
        .collect();
    let ([path], [example]) = (code.as_slice(), examples.as_slice()) else {
        return None;
    };
    let mut reference =
        FileTexts::from([((*path).clone(), fs::read_to_string(dir.join(example)).ok()?)]);
    // The crates that a reference solution of the Rust track needs.
    let manifest = fs::read_to_string(dir.join(".meta/Cargo-example.toml")).ok();
    let allow_dependencies = manifest.is_some();
    reference.extend(manifest.map(|text| (String::from("Cargo.toml"), text)));
    // The test file that a caller would name: the one named after the solution, not test data or
    // bonus tests.
    let stem = Path::new(path.as_str()).file_stem()?.to_str()?;
    let is_named_after_solution = |test: &&String| {
        Path::new(test.as_str())
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(stem))
    };
    let test_path = test
        .iter()
        .find(is_named_after_solution)
        .or_else(|| test.first())?
        .clone();
    let language = skip_marks(&test_path)?.language;
    Some(GymTask {
        name: format!("{language}/{}", dir.file_name()?.to_string_lossy()),
        language: language.to_owned(),
        kind: TaskKind::Write,
        level: None,
        spec: String::new(),
        files,
        test_path,
        solution_path: (*path).clone(),
        reference,
        hidden: FileTexts::new(),
        wrong: Vec::new(),
        allow_dependencies,
        check: None,
    })
}

fn skip_marks(path: &str) -> Option<&'static SkipMarks> {
    let extension = path.rsplit('.').next().unwrap_or_default();
    UNSKIP.iter().find(|marks| marks.extension == extension)
}

fn unskip(path: &str, text: String) -> String {
    let marks = skip_marks(path)
        .map(|marks| marks.marks)
        .unwrap_or_default();
    marks
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
}

fn collect_files(root: &Path, dir: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (
            entry.path(),
            entry.file_name().to_string_lossy().into_owned(),
        );
        if IGNORED_FILES.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            collect_files(root, &path, into);
        } else if entry
            .metadata()
            .is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_FILE_BYTES)
            && let (Ok(below), Ok(bytes)) = (path.strip_prefix(root), fs::read(&path))
        {
            into.insert(below.to_string_lossy().into_owned(), bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn track_is_read_with_all_tests_enabled() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let whole = dir.path().join("exercises/practice/sum").join(path);
            fs::create_dir_all(whole.parent().expect("below")).expect("made");
            fs::write(whole, text).expect("written");
        };
        write(
            ".meta/config.json",
            r#"{"files": {"solution": ["src/lib.rs", "Cargo.toml"], "test": ["tests/sum.rs"], "example": [".meta/example.rs"]}}"#,
        );
        write(".meta/example.rs", "pub fn sum() {}");
        write(".docs/instructions.md", "add");
        write("src/lib.rs", "// todo");
        write("Cargo.toml", "[package]");
        write("tests/sum.rs", "#[test]\n#[ignore]\nfn adds() {}");
        assert!(is_track(dir.path()));
        let tasks = read_track(dir.path(), 10);
        let [task] = tasks.as_slice() else {
            panic!("{} tasks", tasks.len())
        };
        assert_eq!(
            (task.name.as_str(), task.language.as_str()),
            ("rust/sum", "rust")
        );
        assert_eq!(
            task.files.keys().collect::<Vec<_>>(),
            ["Cargo.toml", "src/lib.rs", "tests/sum.rs"]
        );
        assert_eq!(
            String::from_utf8_lossy(&task.files["tests/sum.rs"]),
            "#[test]\n\nfn adds() {}"
        );
        assert_eq!(
            task.reference,
            FileTexts::from([("src/lib.rs".into(), "pub fn sum() {}".into())])
        );
        assert_eq!(
            (task.test_path.as_str(), task.tool()),
            ("tests/sum.rs", "tdd_green")
        );

        let (practice, concept) = (
            dir.path().join("exercises/practice"),
            dir.path().join("exercises/concept"),
        );
        fs::rename(practice, &concept).expect("moved");
        let exemplar = r#"{"files": {"solution": ["src/lib.rs"], "test": ["tests/sum.rs"], "exemplar": [".meta/example.rs"]}}"#;
        fs::write(concept.join("sum/.meta/config.json"), exemplar).expect("written");
        assert!(is_track(dir.path()));
        assert_eq!(read_track(dir.path(), 10)[0].reference, task.reference);
    }
}
