//! What files have besides bytes, modes and times: owners, extended attributes, ACLs, further names. A restore gives it
//! back, or names the file.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

use rustix::fs::{XattrFlags, getxattr, setxattr};
use supervisor_workspace::Scope;

use supervisor_test_support::project::TestProject;

const NOTE: &str = "user.note";
const ACL: &str = "system.posix_acl_access";

/// `user::rw-, user:1234:r--, group::r--, mask::r--, other::r--` as the kernel takes it.
fn acl() -> Vec<u8> {
    let nobody_in_particular = u32::MAX;
    let entries = [
        (1_u16, 6_u16, nobody_in_particular),
        (2, 4, 1234),
        (4, 4, u32::MAX),
        (16, 4, u32::MAX),
        (32, 4, u32::MAX),
    ];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(
            tag.to_le_bytes()
                .into_iter()
                .chain(permissions.to_le_bytes())
                .chain(id.to_le_bytes()),
        );
    }
    bytes
}

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 1024];
    let length = getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

/// Overwritten, replaced by another file, deleted: three ways in which a worker can take a file's bytes away.
fn spoil(bench: &TestProject) {
    bench.write("written", "spoilt");
    bench.write("other", "spoilt");
    fs::rename(bench.root().join("other"), bench.root().join("replaced")).unwrap();
    fs::remove_file(bench.root().join("deleted")).unwrap();
}

const FILES: [&str; 3] = ["written", "replaced", "deleted"];

#[tokio::test]
async fn restored_files_have_their_owner_attributes_and_acls_again() {
    let bench = TestProject::with(&FILES.map(|name| (name, "kept")));
    let is_root = rustix::process::geteuid().is_root();
    for name in FILES {
        let path = bench.root().join(name);
        if setxattr(&path, NOTE, b"mine", XattrFlags::empty()).is_err() {
            return skip("this file system keeps no extended attributes");
        }
        // Some file systems keep notes and no ACLs.
        let _ = setxattr(&path, ACL, &acl(), XattrFlags::empty());
        if is_root {
            chown(&path, Some(12345), Some(23456)).unwrap();
        }
    }
    let seen = |name: &str| {
        let path = bench.root().join(name);
        let meta = path.metadata().unwrap();
        (
            meta.uid(),
            meta.gid(),
            meta.mode(),
            attribute(&path, NOTE),
            attribute(&path, ACL),
            fs::read(&path).unwrap(),
        )
    };
    let before = FILES.map(seen);
    let armed = bench.arm().await;
    spoil(&bench);
    let (_lease, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(FILES.map(seen), before);
    assert_eq!(restored.lost, []);
}

#[tokio::test]
async fn a_file_with_two_names_is_restored_under_both_of_them() {
    let bench = TestProject::with(&[("written", "kept")]);
    let outside = bench.dir.path().join("outside");
    fs::hard_link(bench.root().join("written"), &outside).unwrap();
    let inode = outside.metadata().unwrap().ino();
    let armed = bench.arm().await;
    bench.write("written", "spoilt through one of its names");
    assert_eq!(
        fs::read_to_string(&outside).unwrap(),
        "spoilt through one of its names"
    );
    let (_lease, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(
        (
            bench.read("written").as_str(),
            fs::read_to_string(&outside).unwrap().as_str()
        ),
        ("kept", "kept")
    );
    let now = bench.root().join("written").metadata().unwrap();
    assert_eq!((now.ino(), now.nlink()), (inode, 2));
    assert_eq!(restored.lost, []);
    let kept: Vec<String> = bench
        .kept()
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(kept, ["spoilt through one of its names"]);
}

#[tokio::test]
async fn a_file_that_cannot_have_its_other_names_again_is_named() {
    let bench = TestProject::with(&FILES.map(|name| (name, "kept")));
    for name in FILES {
        fs::hard_link(bench.root().join(name), bench.dir.path().join(name)).unwrap();
    }
    let armed = bench.arm().await;
    spoil(&bench);
    let (_lease, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(FILES.map(|name| bench.read(name)), ["kept"; 3]);
    let lost: Vec<_> = restored
        .lost
        .iter()
        .map(|(path, what)| (path.to_str().unwrap(), *what))
        .collect();
    assert_eq!(
        lost,
        [
            ("deleted", "its other names"),
            ("replaced", "its other names")
        ]
    );
}

#[tokio::test]
async fn a_file_whose_bytes_stayed_keeps_all_it_has() {
    let bench = TestProject::with(&[("a", "kept")]);
    let path = bench.root().join("a");
    let outside = bench.dir.path().join("outside");
    fs::hard_link(&path, &outside).unwrap();
    let _ = setxattr(&path, NOTE, b"mine", XattrFlags::empty());
    let before = (path.metadata().unwrap().ino(), attribute(&path, NOTE));
    let armed = bench.arm().await;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    File::open(&path).unwrap().set_permissions(mode).unwrap();
    let (_lease, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(
        (path.metadata().unwrap().ino(), attribute(&path, NOTE)),
        before
    );
    assert_eq!(
        (path.metadata().unwrap().mode() & 0o777, restored.lost),
        (0o644, vec![])
    );
}
