//! Briefs judged by history: for a commit that changed a test and one or two sources, is the source among the files that
//! a model would have been shown before the change? Needs clones of public repositories, named in an environment
//! variable; nothing of them is kept here.
//!
//!   SUPERVISOR_FIELD_REPOS="/p/express/.git /p/pflag/.git" cargo nextest run --test it --run-ignored all pack::field

use std::path::{Path, PathBuf};
use std::process::Command;

use supervisor_languages::Language;
use supervisor_pack as pack;
use supervisor_pack::PackRequest;
use supervisor_text::redact::Redactor;
use supervisor_verify::protected::{FileRole, role};

/// Commits looked at, and commits that are tried, per repository.
const LOOKED_AT: usize = 1_500;
const TRIED: usize = 12;

struct Change {
    commit: String,
    subject: String,
    language: &'static Language,
    test: String,
    sources: Vec<String>,
}

fn git(repository: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let out = Command::new("git")
        .arg("--git-dir")
        .arg(repository)
        .args(arguments)
        .output()
        .ok()?;
    out.status.success().then_some(out.stdout)
}

/// Commits that changed one test file and one or two sources of the same language, all of which were there before.
fn changes(repository: &Path) -> Vec<Change> {
    let count = format!("-n{LOOKED_AT}");
    let log = [
        "log",
        "--no-merges",
        &count,
        "--name-status",
        "--pretty=format:\u{1}%H\u{2}%s",
    ];
    let log = git(repository, &log).unwrap_or_default();
    let mut found = Vec::new();
    for entry in String::from_utf8_lossy(&log).split('\u{1}').skip(1) {
        let Some((head, files)) = entry.split_once('\n') else {
            continue;
        };
        let Some((commit, subject)) = head.split_once('\u{2}') else {
            continue;
        };
        let files: Vec<(&str, &str)> = files
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .collect();
        let of_language = |path: &str| Language::of_path(Path::new(path));
        let known: Vec<_> = files
            .iter()
            .filter_map(|(how, path)| Some((*how, *path, of_language(path)?)))
            .collect();
        let Some(language) = known.first().map(|(.., language)| *language) else {
            continue;
        };
        if known
            .iter()
            .any(|(how, _, own)| *own != language || *how != "M")
        {
            continue;
        }
        let is = |path: &str, wanted: FileRole| role(Some(language), Path::new(path)) == wanted;
        let tests: Vec<&str> = known
            .iter()
            .map(|(_, p, _)| *p)
            .filter(|p| is(p, FileRole::Test))
            .collect();
        let sources: Vec<&str> = known
            .iter()
            .map(|(_, p, _)| *p)
            .filter(|p| is(p, FileRole::Source))
            .collect();
        if let ([test], 1..=2) = (tests.as_slice(), sources.len()) {
            found.push(Change {
                commit: commit.to_owned(),
                subject: subject.to_owned(),
                language,
                test: (*test).to_owned(),
                sources: sources.into_iter().map(str::to_owned).collect(),
            });
        }
    }
    found.truncate(TRIED);
    found
}

/// The project as it was, with the test as it became.
fn lay_out(repository: &Path, change: &Change, into: &Path) -> Option<String> {
    let archive = git(repository, &["archive", &format!("{}^", change.commit)])?;
    let tar = into.with_extension("tar");
    std::fs::write(&tar, archive).ok()?;
    Command::new("tar")
        .arg("-xf")
        .arg(&tar)
        .arg("-C")
        .arg(into)
        .status()
        .ok()?
        .success()
        .then_some(())?;
    let test = git(
        repository,
        &["show", &format!("{}:{}", change.commit, change.test)],
    )?;
    std::fs::write(into.join(&change.test), &test).ok()?;
    String::from_utf8(test).ok()
}

#[expect(clippy::print_stdout, reason = "the table is what it is for")]
#[test]
#[ignore = "needs clones of public repositories: SUPERVISOR_FIELD_REPOS"]
fn real_changes_are_in_the_brief() {
    let repositories =
        std::env::var("SUPERVISOR_FIELD_REPOS").expect("SUPERVISOR_FIELD_REPOS names clones");
    let (mut all, mut held) = ([0_usize; 2], [0_usize; 2]);
    for repository in repositories.split_whitespace().map(PathBuf::from) {
        let (mut tried, mut whole) = ([0_usize; 2], [0_usize; 2]);
        let mut missed = Vec::new();
        for change in changes(&repository) {
            let dir = tempfile::tempdir().expect("a directory");
            let root = dir.path().join("project");
            std::fs::create_dir(&root).expect("made");
            let Some(test_source) = lay_out(&repository, &change, &root) else {
                continue;
            };
            for (size, window_bytes) in [18_000, 72_000].into_iter().enumerate() {
                let packed = pack::files(&PackRequest {
                    co_changed: &[],
                    redactor: &Redactor::patterns_only(),
                    project: &pack::ProjectIndex::of(&root),
                    ecosystem: Some(change.language),
                    test_path: Path::new(&change.test),
                    test_source: &test_source,
                    failing_output: "",
                    failing: &[],
                    caller_text: "",
                    extra_files: &[],
                    window_bytes,
                });
                tried[size] += 1;
                let is_shown =
                    |source: &String| packed.shown.iter().any(|p| p == Path::new(source));
                if change.sources.iter().any(is_shown) {
                    whole[size] += 1;
                } else {
                    missed.push(format!(
                        "{} {window_bytes} {} {:?}",
                        &change.commit[..9],
                        change.subject,
                        change.sources
                    ));
                }
            }
        }
        println!("{}: {whole:?} of {tried:?}", repository.display());
        missed.iter().for_each(|m| println!("    missed {m}"));
        for size in 0..2 {
            all[size] += tried[size];
            held[size] += whole[size];
        }
    }
    println!(
        "windows of 18,000 and 72,000 bytes: {held:?} of {all:?} briefs hold a file that was changed"
    );
    assert!(all[0] > 0, "no commit could be tried");
}
