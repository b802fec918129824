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
fn spoil(fixture: &TestProject) {
    fixture.write("written", "spoilt");
    fixture.write("other", "spoilt");
    fs::rename(
        fixture.root().join("other"),
        fixture.root().join("replaced"),
    )
    .unwrap();
    fs::remove_file(fixture.root().join("deleted")).unwrap();
}

const FILES: [&str; 3] = ["written", "replaced", "deleted"];

#[tokio::test]
#[ignore = "needs a file system with extended attributes"]
async fn restore_brings_back_owner_attributes_and_acls() {
    let fixture = TestProject::with(&FILES.map(|name| (name, "kept")));
    let is_root = rustix::process::geteuid().is_root();
    for name in FILES {
        let path = fixture.root().join(name);
        setxattr(&path, NOTE, b"mine", XattrFlags::empty()).unwrap();
        // Some file systems keep notes and no ACLs.
        let _ = setxattr(&path, ACL, &acl(), XattrFlags::empty());
        if is_root {
            chown(&path, Some(12345), Some(23456)).unwrap();
        }
    }
    let seen = |name: &str| {
        let path = fixture.root().join(name);
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
    let armed = fixture.arm().await;
    spoil(&fixture);
    let (_lease, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(FILES.map(seen), before);
    assert_eq!(restored.lost, []);
}

#[tokio::test]
async fn hard_linked_file_is_restored_under_both_names() {
    let fixture = TestProject::with(&[("written", "kept")]);
    let outside = fixture.dir.path().join("outside");
    fs::hard_link(fixture.root().join("written"), &outside).unwrap();
    let inode = outside.metadata().unwrap().ino();
    let armed = fixture.arm().await;
    fixture.write("written", "spoilt through one of its names");
    assert_eq!(
        fs::read_to_string(&outside).unwrap(),
        "spoilt through one of its names"
    );
    let (_lease, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(
        (
            fixture.read("written").as_str(),
            fs::read_to_string(&outside).unwrap().as_str()
        ),
        ("kept", "kept")
    );
    let now = fixture.root().join("written").metadata().unwrap();
    assert_eq!((now.ino(), now.nlink()), (inode, 2));
    assert_eq!(restored.lost, []);
    let kept: Vec<String> = fixture
        .kept()
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(kept, ["spoilt through one of its names"]);
}

#[tokio::test]
async fn lost_hard_links_are_reported() {
    let fixture = TestProject::with(&FILES.map(|name| (name, "kept")));
    for name in FILES {
        fs::hard_link(fixture.root().join(name), fixture.dir.path().join(name)).unwrap();
    }
    let armed = fixture.arm().await;
    spoil(&fixture);
    let (_lease, restored) = armed.restore(Scope::Everything).unwrap();
    assert_eq!(FILES.map(|name| fixture.read(name)), ["kept"; 3]);
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
async fn file_with_unchanged_bytes_keeps_its_inode() {
    let fixture = TestProject::with(&[("a", "kept")]);
    let path = fixture.root().join("a");
    let outside = fixture.dir.path().join("outside");
    fs::hard_link(&path, &outside).unwrap();
    let _ = setxattr(&path, NOTE, b"mine", XattrFlags::empty());
    let before = (path.metadata().unwrap().ino(), attribute(&path, NOTE));
    let armed = fixture.arm().await;
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
