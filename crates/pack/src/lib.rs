//! Chooses the files to show to a model that cannot open files itself, and packs them into a byte
//! limit. [`files`] is the entry point; it lists the steps in order. `signals` decides which files
//! are relevant, `resolve` which definitions, and `show` how much of each is shown.

#![expect(
    clippy::single_range_in_vec_init,
    reason = "a slice of one line range is intended"
)]

mod failure;
mod output;
mod page;
mod project;
mod resolve;
mod show;
mod signals;
mod similarity;

pub use failure::locations;
pub use output::cut as cut_output;
pub use project::{ParsedFiles, ProjectIndex};

use std::path::{Path, PathBuf};

use failure::Failure;
use page::Page;
use project::{Project, SourceFile, relative};
use resolve::names_used_by;
use show::Packer;
use supervisor_languages::{Language, ProjectFiles as _};
use supervisor_text::redact::Redactor;

/// Input for choosing files.
#[derive(Debug, Clone, Copy)]
pub struct PackRequest<'a> {
    pub project: &'a ProjectIndex,
    pub ecosystem: Option<&'static Language>,
    /// Relative to the root. The test is the first file shown.
    pub test_path: &'a Path,
    /// The whole file or its relevant part; empty if there is no test yet.
    pub test_source: &'a str,
    pub failing_output: &'a str,
    /// Names of the tests that must pass, as the runner writes them; empty if unknown.
    pub failing: &'a [String],
    /// Text written by the caller, such as specification and context. Files and names in it are
    /// relevant.
    pub caller_text: &'a str,
    /// Files named by the caller, for example where the implementation goes. Relative to the root.
    pub extra_files: &'a [PathBuf],
    /// Files that recent commits changed together with the test, relative to the root, with a
    /// weight.
    pub co_changed: &'a [(PathBuf, f64)],
    /// Space for the files, in bytes.
    pub window_bytes: usize,
    /// Takes secrets out of what is shown.
    pub redactor: &'a Redactor,
}

/// The chosen files as text, and their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedFiles {
    /// Never longer than the limit. Untrusted, like the files.
    pub text: String,
    /// Files shown, whole or in part.
    pub shown: Vec<PathBuf>,
    /// Files shown only by their signatures.
    pub outlined: Vec<PathBuf>,
    /// Number of source files that are not shown at all.
    pub left_out: usize,
    /// Whether the test is included. Without it no question can be asked.
    pub holds_test: bool,
}

/// Chooses files for a test and packs them.
pub fn files(request: &PackRequest<'_>) -> PackedFiles {
    let project = Project::open(
        request.project,
        language_of(request.ecosystem, request.test_path),
        request.test_path,
        request.extra_files,
    );
    let test_path = relative(request.test_path).unwrap_or_default();
    let manifest = project.manifest_above(&test_path);
    let test = SourceFile::new(&test_path, request.test_source.to_owned());
    let on_disk = project.at(&test_path).map(|id| project.source(id));
    let whole_test = on_disk.filter(|s| !s.text.is_empty()).unwrap_or(&test);
    let failure = Failure::read(&project, request, &test, whole_test);
    let texts = [
        (request.test_source, 0.5),
        (request.failing_output, 1.0),
        (request.caller_text, 1.0),
        (failure.text.as_str(), 2.0),
    ];
    let ranked = similarity::rank_files(&project, &test_path, &texts);
    let used = project
        .language
        .map(|language| names_used_by(&test, &project, language));
    let used = used.unwrap_or_default();
    let likely = signals::likely_files(&project, request, &test, &failure, &used, &ranked);

    let mut packer = Packer {
        project: &project,
        request,
        failure: &failure,
        likely: &likely,
        test_path: &test_path,
        mentioned: similarity::words(test.masked()).collect(),
        page: Page::new(request.window_bytes, request.redactor),
    };
    packer.show_test(whole_test);
    packer.show_given();
    packer.show_likely_files(&used);
    if request.test_source.is_empty() {
        let target = likely.files.first().copied();
        let example = signals::nearest_test(&project, request, &test_path, target, &ranked);
        example.into_iter().for_each(|id| packer.show_example(id));
    }
    packer.show_definitions(&used);
    packer.show_locations(None, 85);
    if let Some((path, text)) = &manifest {
        packer.show_manifest(path, text);
    }
    packer.fill_remaining();
    packer.finish(&ranked)
}

/// Whether this file could be among the chosen ones.
pub fn is_candidate(language: Option<&'static Language>, test_path: &Path, path: &Path) -> bool {
    project::is_source(language_of(language, test_path), test_path, path)
}

/// The language of the test; if there is none yet, the project's.
fn language_of(project: Option<&'static Language>, test_path: &Path) -> Option<&'static Language> {
    Language::of_path(test_path).or(project)
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
