//! The tests of a change: in which files they are, and in which versions of a file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use supervisor_languages::{Language, TestSourceFile};
use supervisor_verify::falsify::FalsifiableTests;
use supervisor_verify::protected::{FileRole, role};
use supervisor_verify::{Suite, TestName, TestRun, TestState, rust_regions};

use crate::change::{Change, Versions};
use crate::prove::ProofRun;

/// Finds the test code of files of one suite.
pub(crate) struct TestFinder<'a> {
    pub(crate) root: &'a Path,
    pub(crate) suite: &'a Suite,
}

/// A test file, or a file with tests, and the names of its tests in a run.
pub(crate) struct TestFile {
    pub(crate) path: PathBuf,
    pub(crate) source: String,
    pub(crate) tests: Vec<TestName>,
}

impl TestFinder<'_> {
    pub(crate) fn role(&self, path: &Path) -> FileRole {
        role(self.suite.ecosystem(), path)
    }

    /// The test code of a file: all of a test file, the test modules of a Rust file.
    pub(crate) fn tests_in(&self, path: &Path, contents: Option<&[u8]>) -> Option<String> {
        let text = std::str::from_utf8(contents?).ok()?;
        if self.role(path).belongs_to_tests() {
            return Some(text.to_owned());
        }
        let regions = is_rust(path).then(|| rust_regions(text)).flatten()?;
        let tests = regions.texts(text).join("\n");
        (!tests.is_empty()).then_some(tests)
    }

    /// Files of the change whose test code is new or different, with their tests in `run`, in the version that `pick`
    /// chooses.
    pub(crate) fn changed_test_files(
        &self,
        change: &Change,
        run: &TestRun,
        pick: impl Fn(&Versions) -> Option<&[u8]>,
    ) -> Vec<TestFile> {
        let mut found = Vec::new();
        for (path, versions) in change.changed() {
            let tests = |contents| self.tests_in(path, contents);
            if tests(versions.base.as_deref()) == tests(versions.change.as_deref()) {
                continue;
            }
            let source = pick(versions).and_then(|bytes| std::str::from_utf8(bytes).ok());
            if let Some(source) = source {
                found.push(self.test_file(path, source, run));
            }
        }
        found
    }

    /// A file with its tests in `run`.
    pub(crate) fn test_file(&self, path: &Path, source: &str, run: &TestRun) -> TestFile {
        let relative = self.suite_relative(path);
        let place = TestSourceFile {
            path: &relative,
            source,
        };
        let language = Language::of_path(path);
        let is_here = |name: &TestName| {
            language.is_some_and(|language| language.contains_test(&place, &name.0))
        };
        TestFile {
            path: path.to_owned(),
            source: source.to_owned(),
            tests: run
                .named()
                .map(|(name, _)| name)
                .filter(|name| is_here(name))
                .cloned()
                .collect(),
        }
    }

    pub(crate) fn suite_relative(&self, path: &Path) -> PathBuf {
        let full = self.root.join(path);
        full.strip_prefix(self.suite.root())
            .map_or_else(|_| path.to_owned(), Path::to_owned)
    }
}

impl ProofRun<'_> {
    /// Files with test code that the change leaves as they are.
    pub(crate) fn unchanged_test_files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let finder = self.finder();
        self.tracked.iter().map(PathBuf::from).filter(move |path| {
            (finder.role(path).belongs_to_tests() || is_rust(path))
                && Language::of_path(path).is_some()
                && !self.change.files.contains_key(path)
        })
    }

    pub(crate) fn read_unchanged(&self, path: &Path) -> Option<String> {
        const MAX_TEST_FILE: u64 = 4 << 20;
        let full = self.request.root.join(path);
        let is_file = full
            .symlink_metadata()
            .is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_TEST_FILE);
        is_file
            .then(|| std::fs::read_to_string(full).ok())
            .flatten()
    }

    /// Tests of the base whose source the change edits.
    pub(crate) fn edited_tests(&self, before: &TestRun, after: &TestRun) -> Vec<TestName> {
        let finder = self.finder();
        let files = finder.changed_test_files(&self.change, after, |v| v.change.as_deref());
        let mut found = Vec::new();
        for mut file in files {
            let passed = |name: &TestName| after.state(name) == Some(&TestState::Passed);
            file.tests
                .retain(|name| before.state(name).is_some() && passed(name));
            let base = self.change.files[&file.path].base.as_deref();
            let Some(base) = base.and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
                continue;
            };
            let relative = finder.suite_relative(&file.path);
            let find = |source: &str| FalsifiableTests::find(&relative, source, &file.tests);
            let (Some(old), Some(new)) = (find(base), find(&file.source)) else {
                continue;
            };
            let is_edited = |name: &TestName| match (old.range_of(name), new.range_of(name)) {
                (Some(a), Some(b)) => base[a] != file.source[b],
                _ => false,
            };
            found.extend(file.tests.iter().filter(|name| is_edited(name)).cloned());
        }
        found
    }
}

/// Extensions of documentation and data. Everything else in a project is code, also in a language without a grammar here.
const TEXT_AND_DATA: [&str; 46] = [
    "adoc",
    "asciidoc",
    "md",
    "mdx",
    "org",
    "pdf",
    "rst",
    "tex",
    "txt", // documentation
    "cfg",
    "conf",
    "csv",
    "ini",
    "json",
    "json5",
    "jsonc",
    "jsonl",
    "lock",
    "po",
    "pot",
    "properties",
    "toml",
    "tsv",
    "xml",
    "yaml",
    "yml", // data
    "avif",
    "bmp",
    "eot",
    "gif",
    "ico",
    "jpeg",
    "jpg",
    "mp3",
    "mp4",
    "ogg",
    "otf",
    "png",
    "svg",
    "ttf",
    "wav",
    "webm",
    "webp",
    "woff",
    "woff2",
    "zip", // media
];
/// Documentation without an extension.
const TEXT_NAMES: [&str; 9] = [
    "authors",
    "changelog",
    "changes",
    "codeowners",
    "contributing",
    "copying",
    "license",
    "notice",
    "readme",
];

/// Whether a file is documentation or data by its name: a change of it needs no test.
pub(crate) fn is_text_or_data(path: &Path) -> bool {
    let lower = |name: Option<&OsStr>| name.map(|name| name.to_string_lossy().to_lowercase());
    match lower(path.extension()) {
        Some(end) => TEXT_AND_DATA.contains(&end.as_str()),
        // Such as `.editorconfig`.
        None => lower(path.file_name())
            .is_none_or(|name| name.starts_with('.') || TEXT_NAMES.contains(&name.as_str())),
    }
}

pub(crate) fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "rs")
}

/// A Rust file with the code of one version and the test modules of another; other files: `code`.
pub(crate) fn with_tests_of(
    path: &Path,
    code: Option<&[u8]>,
    tests: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let merged = || {
        if !is_rust(path) {
            return None;
        }
        let (code, tests) = (
            std::str::from_utf8(code?).ok()?,
            std::str::from_utf8(tests?).ok()?,
        );
        let (of_code, of_tests) = (rust_regions(code)?, rust_regions(tests)?);
        let mut text = of_code.rest(code);
        for region in of_tests.texts(tests) {
            text.push('\n');
            text.push_str(region);
            text.push('\n');
        }
        Some(text.into_bytes())
    };
    merged().or_else(|| code.map(<[u8]>::to_vec))
}

/// A file without its test modules.
pub(crate) fn code_of(path: &Path, contents: Option<&[u8]>) -> Option<Vec<u8>> {
    let without_tests = || {
        if !is_rust(path) {
            return None;
        }
        let text = std::str::from_utf8(contents?).ok()?;
        Some(
            rust_regions(text)?
                .rest(text)
                .trim_end()
                .as_bytes()
                .to_vec(),
        )
    };
    without_tests().or_else(|| contents.map(<[u8]>::to_vec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_without_a_grammar_is_code() {
        for (path, is_data) in [
            ("docs/guide.md", true),
            ("LICENSE", true),
            (".editorconfig", true),
            ("locale/de.JSON", true),
            ("src/Cart.php", false),
            ("deploy.sh", false),
            ("bin/deploy", false),
            ("db/001_users.sql", false),
            ("templates/page.html.j2", false),
            ("lib/native.so", false),
        ] {
            assert_eq!(is_text_or_data(Path::new(path)), is_data, "{path}");
        }
    }
}
