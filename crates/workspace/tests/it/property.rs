//! Random trees, random damage: a restore gives the same bytes, modes and types, and the same hooks and configuration.
//! Where the repository stands is never moved back.
//! 256 cases by default; `SUPERVISOR_TEST_LONG=1` runs thousands, `PROPTEST_CASES` any number.

pub(crate) mod overlays;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde::{Deserialize, Serialize};
use supervisor_workspace::{ChangeKind, Edit, Scope};

use supervisor_test_support::picture::{Picture, picture, same};

use supervisor_test_support::project::{TestProject, git};

/// Names that have broken somebody's program.
const NAMES: &[&[u8]] = &[
    b"a",
    b"b.txt",
    b"with space",
    b"new\nline",
    b"\xff\xfe",
    "é".as_bytes(),
    b"-rf",
    b".hidden",
    b"50%",
    b"\"quoted\"",
    b"src",
    b"keep.log",
    b"big.bin",
    b"$(x)",
];

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Content {
    Empty,
    Text(u8),
    Crlf(u8),
    Binary(u8),
}

impl Content {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Empty => Vec::new(),
            Self::Text(n) => format!("line one\nline {n}\n")
                .repeat(usize::from(*n) % 40 + 1)
                .into_bytes(),
            Self::Crlf(n) => format!("one\r\ntwo {n}\r\nmixed\n").into_bytes(),
            Self::Binary(n) => (0..200u16).map(|i| (i as u8).wrapping_mul(*n)).collect(),
        }
    }
}

#[derive(Debug, Clone)]
enum Item {
    File(Content, u32),
    EmptyDir,
    Link(u8),
    Fifo,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Damage {
    Write(Content),
    /// The same size and, as far as one can, the same time.
    Forge,
    Append,
    Chmod(u32),
    Delete,
    ToLink,
    ToDir,
    ToFile(Content),
    Rename,
    Add(Content),
    GitCommit,
    GitAdd,
    GitStash,
    GitBranch,
    GitPackRefs,
    GitHook,
    GitConfig,
    GitStatus,
    HideBehindGitignore,
    GitInit,
}

#[derive(Debug, Clone)]
struct Case {
    items: Vec<(Vec<u8>, Item)>,
    flavour: Flavour,
    damage: Vec<(Vec<u8>, Damage)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flavour {
    Plain,
    Git {
        dirty_index: bool,
        stash: bool,
        embedded: bool,
        ignores: bool,
    },
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..NAMES.len(), 1..=3).prop_map(|parts| {
        parts
            .iter()
            .map(|i| NAMES[*i])
            .collect::<Vec<_>>()
            .join(&b'/')
    })
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        Just(Content::Empty),
        any::<u8>().prop_map(Content::Text),
        any::<u8>().prop_map(Content::Crlf),
        any::<u8>().prop_map(Content::Binary),
    ]
}

fn mode() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0o644, 0o600, 0o444, 0o755, 0o770, 0o4755])
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        6 => (content(), mode()).prop_map(|(c, m)| Item::File(c, m)),
        1 => Just(Item::EmptyDir),
        2 => any::<u8>().prop_map(Item::Link),
        1 => Just(Item::Fifo),
    ]
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        3 => content().prop_map(Damage::Write),
        2 => Just(Damage::Forge),
        2 => Just(Damage::Append),
        2 => mode().prop_map(Damage::Chmod),
        3 => Just(Damage::Delete),
        1 => Just(Damage::ToLink),
        1 => Just(Damage::ToDir),
        1 => content().prop_map(Damage::ToFile),
        1 => Just(Damage::Rename),
        3 => content().prop_map(Damage::Add),
        1 => Just(Damage::GitCommit),
        1 => Just(Damage::GitAdd),
        1 => Just(Damage::GitStash),
        1 => Just(Damage::GitBranch),
        1 => Just(Damage::GitPackRefs),
        1 => Just(Damage::GitHook),
        1 => Just(Damage::GitConfig),
        1 => Just(Damage::GitStatus),
        1 => Just(Damage::HideBehindGitignore),
        1 => Just(Damage::GitInit),
    ]
}

fn flavour() -> impl Strategy<Value = Flavour> {
    prop_oneof![
        Just(Flavour::Plain),
        any::<(bool, bool, bool, bool)>().prop_map(|(dirty_index, stash, embedded, ignores)| {
            Flavour::Git {
                dirty_index,
                stash,
                embedded,
                ignores,
            }
        }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let items = prop::collection::vec((path(), item()), 1..10);
    (items, flavour()).prop_flat_map(|(items, flavour)| {
        // Most damage hits what is there; some hits anything.
        let there: Vec<_> = items.iter().map(|(p, _)| p.clone()).collect();
        let target = prop_oneof![3 => prop::sample::select(there), 1 => path()];
        let damage = prop::collection::vec((target, damage()), 1..8);
        damage.prop_map(move |damage| Case {
            items: items.clone(),
            flavour,
            damage,
        })
    })
}

fn cases(default: u32, long: u32) -> Config {
    let wanted = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok());
    let cases = wanted.unwrap_or(if std::env::var_os("SUPERVISOR_TEST_LONG").is_some() {
        long
    } else {
        default
    });
    Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    }
}

/// The long form waits for the disk, the short one does not.
fn test_project() -> TestProject {
    if std::env::var_os("SUPERVISOR_TEST_LONG").is_some() {
        TestProject::new()
    } else {
        TestProject::quick()
    }
}

fn at(root: &Path, path: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(path))
}

/// An empty repository, made once and copied: starting git for every case would take longer than the test.
fn empty_repository() -> PathBuf {
    static TEMPLATE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let template = TEMPLATE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "--template="]);
        dir
    });
    template.path().join(".git")
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn build(root: &Path, case: &Case) {
    for (path, item) in &case.items {
        let path = at(root, path);
        if fs::create_dir_all(path.parent().unwrap()).is_err()
            || fs::symlink_metadata(&path).is_ok()
        {
            continue; // an earlier item has taken the place
        }
        match item {
            Item::File(content, mode) => {
                fs::write(&path, content.bytes()).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            }
            Item::EmptyDir => fs::create_dir(&path).unwrap(),
            Item::Link(n) => symlink(
                OsStr::from_bytes(NAMES[usize::from(*n) % NAMES.len()]),
                &path,
            )
            .unwrap(),
            Item::Fifo => make_fifo(&path),
        }
    }
    let Flavour::Git {
        dirty_index,
        stash,
        embedded,
        ignores,
    } = case.flavour
    else {
        return;
    };
    let empty = empty_repository();
    copy_dir(&empty, &root.join(".git"));
    fs::write(root.join("tracked.txt"), "tracked\n").unwrap();
    if !root.join(".gitattributes").exists() {
        fs::write(root.join(".gitattributes"), "* text=auto\n").unwrap();
    }
    if ignores {
        fs::write(root.join(".gitignore"), "*.log\nsrc/\n").unwrap();
    }
    if embedded {
        let inner = root.join("embedded");
        copy_dir(&empty, &inner.join(".git"));
        fs::write(inner.join("inner.txt"), "inner\n").unwrap();
    }
    git(root, &["add", "tracked.txt"]);
    git(root, &["commit", "-q", "-m", "first"]);
    if stash {
        fs::write(root.join("tracked.txt"), "stashed\n").unwrap();
        git(root, &["stash", "-q"]);
    }
    if dirty_index {
        fs::write(root.join("tracked.txt"), "staged\n").unwrap();
        git(root, &["add", "tracked.txt"]);
        fs::write(root.join("tracked.txt"), "and more\n").unwrap();
    }
}

fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Does the damage as far as it can be done.
fn apply_damage(root: &Path, path: &[u8], damage: &Damage) {
    let target = at(root, path);
    let is_file = fs::symlink_metadata(&target).is_ok_and(|m| m.is_file());
    let has_git = root.join(".git/HEAD").exists();
    let git = |arguments: &[&str]| {
        if has_git {
            let _ = std::process::Command::new("git")
                .args([
                    "-c",
                    "user.name=w",
                    "-c",
                    "user.email=w@w",
                    "-c",
                    "core.hooksPath=/dev/null",
                ])
                .args(arguments)
                .current_dir(root)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .output();
        }
    };
    let put = |content: &Content| {
        if let Some(dir) = target.parent()
            && fs::create_dir_all(dir).is_ok()
            && fs::symlink_metadata(&target).map_or(true, |m| m.is_file())
        {
            let _ = fs::write(&target, content.bytes());
        }
    };
    match damage {
        Damage::Write(content) | Damage::Add(content) => put(content),
        Damage::Forge if is_file => {
            let before = fs::metadata(&target).unwrap();
            let bytes: Vec<u8> = fs::read(&target)
                .unwrap()
                .iter()
                .map(|b| b.wrapping_add(1))
                .collect();
            let _ = fs::write(&target, bytes);
            let file = fs::File::open(&target).unwrap();
            let _ = file.set_modified(before.modified().unwrap());
        }
        Damage::Append if is_file => {
            use std::io::Write;
            let file = fs::OpenOptions::new().append(true).open(&target);
            let _ = file.and_then(|mut f| f.write_all(b"more"));
        }
        Damage::Chmod(mode) if is_file => {
            fs::set_permissions(&target, fs::Permissions::from_mode(*mode)).unwrap();
        }
        Damage::Chmod(_) if fs::symlink_metadata(&target).is_ok_and(|m| m.is_dir()) => {
            fs::set_permissions(&target, fs::Permissions::from_mode(0o500)).unwrap();
        }
        Damage::Delete => remove(&target),
        Damage::ToLink if target.parent().is_some_and(Path::is_dir) => {
            remove(&target);
            let _ = symlink("/nowhere", &target);
        }
        Damage::ToDir if target.parent().is_some_and(Path::is_dir) => {
            remove(&target);
            let _ = fs::create_dir(&target);
            let _ = fs::write(target.join("inside"), "x");
        }
        Damage::ToFile(content) if target.parent().is_some_and(Path::is_dir) => {
            remove(&target);
            let _ = fs::write(&target, content.bytes());
        }
        Damage::Rename => {
            let _ = fs::rename(&target, root.join("moved"));
        }
        Damage::GitCommit => {
            git(&["add", "-A"]);
            git(&["commit", "-q", "-m", "sneaky"]);
        }
        Damage::GitAdd => git(&["add", "-A"]),
        Damage::GitStash => git(&["stash", "-q"]),
        Damage::GitBranch => git(&["checkout", "-q", "-b", "elsewhere/deep"]),
        Damage::GitPackRefs => git(&["pack-refs", "--all"]),
        Damage::GitHook if has_git => {
            let _ = fs::create_dir_all(root.join(".git/hooks"));
            let _ = fs::write(root.join(".git/hooks/pre-commit"), "#!/bin/sh\nexit 1\n");
        }
        Damage::GitConfig => git(&["config", "core.fsmonitor", "/bin/false"]),
        Damage::GitStatus => git(&["status"]),
        Damage::HideBehindGitignore => {
            let _ = fs::write(root.join(".gitignore"), "*\n");
            let _ = fs::write(root.join("hidden.bin"), vec![7; (1 << 20) + 1]);
        }
        Damage::GitInit if !has_git => {
            copy_dir(&empty_repository(), &root.join(".git"));
        }
        _ => {}
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

#[test]
fn restore_undoes_any_damage() {
    proptest!(cases(256, 5000), |(case in case())| {
        let fixture = test_project();
        build(&fixture.root(), &case);
        let before = picture(&fixture.root());
        let armed = run(fixture.arm());
        prop_assert!(armed.changes().unwrap().is_empty(), "{:?}", armed.changes());
        for (path, damage) in &case.damage {
            apply_damage(&fixture.root(), path, damage);
        }
        let damaged = picture(&fixture.root());
        let seen = armed.changes().unwrap();
        prop_assert!(before == damaged || !seen.is_empty() || !seen.others.is_empty(), "a change went unseen");
        let (lease, restored) = armed.restore(Scope::Everything).unwrap();
        prop_assert!(restored.others.iter().all(|other| other.kind == ChangeKind::Git), "{:?}", restored.others);
        let after = picture(&fixture.root());
        same(&before, &after)?;
        if before.git.len() > 1 && damaged.git.len() > 1 {
            prop_assert_eq!(&damaged.git, &after.git, "where the repository stands is never moved back");
        }
        // And the next tier starts from there.
        let armed = lease.take_snapshot().unwrap();
        prop_assert!(armed.changes().unwrap().is_empty());
        armed.accept().unwrap();
    });
}

#[test]
fn restore_of_own_edits_keeps_others() {
    proptest!(cases(128, 2000), |(case in case(), text in any::<u8>())| {
        let fixture = test_project();
        fixture.write("ours/one.txt", "one\n");
        fixture.write("ours/two.txt", "two\n");
        build(&fixture.root(), &case);
        let before = picture(&fixture.root());
        let mut armed = run(fixture.arm());
        let edits = [
            Edit::Replace { path: "ours/one.txt".into(), contents: Content::Text(text).bytes() },
            Edit::Delete { path: "ours/two.txt".into() },
            Edit::Create { path: "ours/new/three.txt".into(), contents: b"three".to_vec() },
        ];
        armed.apply(&edits, &|_| Ok(())).unwrap();
        for (path, damage) in &case.damage {
            apply_damage(&fixture.root(), path, damage);
        }
        let theirs = picture(&fixture.root());
        let (_lease, _) = armed.restore(Scope::Applied).unwrap();
        let after = picture(&fixture.root());
        for (path, was) in before.files.iter().filter(|(p, _)| p.starts_with("ours")) {
            prop_assert_eq!(Some(was), after.files.get(path), "{}", path.display());
        }
        prop_assert!(!after.files.contains_key(Path::new("ours/new")));
        let others = |p: &Picture| -> BTreeMap<_, _> {
            p.files.clone().into_iter().filter(|(path, _)| !path.starts_with("ours")).collect()
        };
        prop_assert_eq!(others(&theirs), others(&after));
        prop_assert_eq!(theirs.git, after.git);
        prop_assert_eq!(theirs.steering, after.steering);
    });
}
