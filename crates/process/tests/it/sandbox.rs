//! What the sandbox of a child prevents and allows.

mod escapes;

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use supervisor_process::{
    ChildKind, CommandSpec, Confinement, End, FinishedProcess, LayeredDir, NetworkReach,
    NetworkRule, ProcessTag, ProjectGuard, SandboxLevel, SandboxMode, SandboxRecord, SandboxRules,
    SandboxedProject, ScratchDir, StartError,
};
use tokio_util::sync::CancellationToken;

use supervisor_test_support::process::{LONG, launcher, sandbox_level};
use supervisor_test_support::programs::require;
use supervisor_verify::KnownNetwork;

/// A project with a repository, something outside of it, a home with a secret, and a process that is somebody else's.
pub(crate) struct SandboxFixture {
    dir: tempfile::TempDir,
    stranger: Child,
    /// One with an abstract name, one in a hidden directory.
    _listeners: [UnixListener; 2],
    pub(crate) rules: SandboxRules,
}

impl SandboxFixture {
    pub(crate) fn new(mode: SandboxMode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for place in ["project/.git/hooks", "outside", "home/.ssh"] {
            fs::create_dir_all(dir.path().join(place)).unwrap();
        }
        fs::write(dir.path().join("outside/victim"), "kept").unwrap();
        fs::write(dir.path().join("home/.ssh/id"), "canary-in-a-file").unwrap();
        fs::write(dir.path().join("home/.profile"), "kept").unwrap();
        let mut stranger = Command::new("cat");
        stranger
            .env("SECRET_OF_STRANGER", "canary-in-an-environment")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let rules = SandboxRules {
            mode,
            hide: vec![dir.path().join("home/.ssh")],
            network: NetworkRule::Auto,
            ..SandboxRules::default()
        };
        let abstract_name =
            SocketAddr::from_abstract_name(dir.path().join("outside").as_os_str().as_bytes())
                .unwrap();
        let hidden = SocketAddr::from_pathname(dir.path().join("home/.ssh/agent")).unwrap();
        let _listeners =
            [abstract_name, hidden].map(|address| UnixListener::bind_addr(&address).unwrap());
        Self {
            stranger: stranger.spawn().unwrap(),
            _listeners,
            rules,
            dir,
        }
    }

    pub(crate) fn at(&self, place: &str) -> PathBuf {
        self.dir.path().join(place)
    }

    pub(crate) fn spec(&self, kind: ChildKind, script: &str) -> CommandSpec {
        let mut spec = CommandSpec::new(["sh", "-c", script], self.at("project"));
        spec.limit = LONG;
        for (name, value) in [
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("HOME", self.at("home").into()),
            ("OUT", self.at("outside").into()),
            ("STRANGER", OsString::from(self.stranger.id().to_string())),
        ] {
            spec.env.insert(name.into(), value);
        }
        spec.confine = Some(Confinement::new(kind));
        spec
    }

    pub(crate) async fn run(&self, spec: CommandSpec) -> FinishedProcess {
        launcher()
            .with_rules(self.rules.clone())
            .run(spec, &CancellationToken::new())
            .await
    }

    /// Works in the project as a call does: what is run knows where the repository is.
    pub(crate) fn guarded(&self, mut spec: CommandSpec) -> (CommandSpec, tempfile::TempDir) {
        let locks = tempfile::tempdir().unwrap();
        let lock = |name: &str| {
            std::sync::Arc::new(fs::File::create(locks.path().join(name)).unwrap().into())
        };
        let (root, git) = (self.at("project"), vec![self.at("project/.git")]);
        spec.guard = Some(ProjectGuard {
            project_lock: lock("project"),
            tree_lock: lock("trees"),
            recovery_dir: None,
            tag: ProcessTag::random(),
            project: Some(SandboxedProject {
                root,
                git,
                overlay_holder: None,
                overlay_files: None,
                is_single_run: false,
                record: SandboxRecord::default(),
            }),
        });
        (spec, locks)
    }

    /// Asked, not looked at: a process that was sent a kill may still be in the table, but it never answers again.
    pub(crate) fn stranger_is_alive(&mut self) -> bool {
        let asked = self.stranger.stdin.as_mut().expect("piped").write_all(b"?");
        let mut answer = [0];
        asked.is_ok()
            && self
                .stranger
                .stdout
                .as_mut()
                .expect("piped")
                .read_exact(&mut answer)
                .is_ok()
    }

    fn text(&self, place: &str) -> String {
        fs::read_to_string(self.at(place)).unwrap_or_default()
    }
}

impl Drop for SandboxFixture {
    fn drop(&mut self) {
        let _ = self.stranger.kill();
        let _ = self.stranger.wait();
    }
}

async fn require_namespaces() {
    assert_eq!(sandbox_level().await, SandboxLevel::Namespaces);
}

async fn require_sandbox() {
    assert_ne!(sandbox_level().await, SandboxLevel::None);
}

#[tokio::test]
async fn sandboxed_child_behaves_as_usual() {
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    for (script, end) in [
        ("exit 7", End::Exited(7)),
        ("kill -9 $$", End::Signalled(9)),
    ] {
        assert_eq!(
            fixture
                .run(fixture.spec(ChildKind::Tests, script))
                .await
                .end,
            end
        );
    }
    let mut talks = fixture.spec(ChildKind::Tests, "cat; echo err >&2; pwd");
    talks.stdin = supervisor_process::Stdin::Bytes(b"in\n".to_vec());
    let finished = fixture.run(talks).await;
    let root = fixture.at("project").canonicalize().unwrap();
    assert_eq!(finished.stdout.text(), format!("in\n{}\n", root.display()));
    assert_eq!(finished.stderr.text(), "err\n");
    let mut missing = fixture.spec(ChildKind::Tests, "");
    missing.argv = vec!["/no/such/program".into()];
    assert_eq!(
        fixture.run(missing).await.end,
        End::CouldNotStart(StartError::NotFound(String::from("/no/such/program")))
    );
    fs::write(fixture.at("project/bad"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(
        fixture.at("project/bad"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let mut bad = fixture.spec(ChildKind::Tests, "");
    bad.argv = vec!["./bad".into()];
    assert!(matches!(
        fixture.run(bad).await.end,
        End::CouldNotStart(StartError::Other { .. })
    ));
}

#[tokio::test]
async fn project_and_temporary_directories_are_writable() {
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    let script = "echo x > made && mkdir d && mv made d/moved && ln -s d/moved l && chmod 600 d/moved && \
                  echo x > \"$TMPDIR/f\" && mv \"$TMPDIR/f\" d/ && echo $TMPDIR && echo x > /dev/null && \
                  f=/dev/shm/supervisor-test-$$ && echo x > $f && rm $f";
    let finished = fixture.run(fixture.spec(ChildKind::Tests, script)).await;
    assert_eq!(finished.end, End::Exited(0), "{}", finished.stderr.text());
    let told = finished.stdout.text();
    assert!(
        !Path::new(told.trim()).exists(),
        "the temporary directory goes with the child: {told}"
    );
    // With a long temporary directory and no other, there is no short one to be had.
    let room = std::env::temp_dir().as_os_str().len().min(24) + 48;
    assert!(
        told.trim().len() < room,
        "a socket's name has 108 bytes: {told}"
    );
}

#[tokio::test]
#[ignore = "needs Landlock or user namespaces"]
async fn reader_cannot_write_to_the_project() {
    require_sandbox().await;
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    let finished = fixture
        .run(fixture.spec(ChildKind::Reader, "cat ../outside/victim; echo x > made"))
        .await;
    assert!(!fixture.at("project/made").exists());
    assert_eq!(finished.stdout.text(), "kept");
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn git_directory_is_read_only() {
    require_namespaces().await;
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    let script = "echo x > .git/hooks/post-commit; rm -rf .git/hooks; mv .git .gone; echo x > kept";
    let (spec, _locks) = fixture.guarded(fixture.spec(ChildKind::Agent, script));
    fixture.run(spec).await;
    assert!(
        fixture.at("project/.git/hooks").is_dir()
            && !fixture.at("project/.git/hooks/post-commit").exists()
    );
    assert_eq!(fixture.text("project/kept"), "x\n");
}

#[tokio::test]
#[ignore = "needs bash and user namespaces"]
async fn private_network_has_only_its_own_loopback() {
    require(&["bash"]);
    require_namespaces().await;
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!(
        "exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/{}'",
        host.local_addr().unwrap().port()
    );
    let connects = async |network| {
        let mut spec = fixture.spec(ChildKind::Tests, &script);
        spec.confine.as_mut().unwrap().network = Some(network);
        let finished = fixture.run(spec).await;
        assert_eq!(finished.sandbox.network, network);
        finished.end == End::Exited(0)
    };
    assert!(connects(NetworkReach::Host).await);
    assert!(!connects(NetworkReach::Private).await);
    assert_eq!(
        fixture
            .run(fixture.spec(ChildKind::Agent, &script))
            .await
            .end,
        End::Exited(0),
        "agents need their API"
    );
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let script = format!(
        "exec bash -c 'echo x > /dev/udp/127.0.0.1/{}'",
        datagrams.local_addr().unwrap().port()
    );
    for (network, arrives) in [(NetworkReach::Private, false), (NetworkReach::Host, true)] {
        let mut spec = fixture.spec(ChildKind::Tests, &script);
        spec.confine.as_mut().unwrap().network = Some(network);
        fixture.run(spec).await;
        // On the host's loopback it is there when the sender has ended.
        assert_eq!(datagrams.recv(&mut [0; 8]).is_ok(), arrives, "{network:?}");
    }
    // The kernel answers on a loopback that is up, and refuses on one that is down with another word.
    let up = fixture
        .run(fixture.spec(
            ChildKind::Tests,
            "cat /proc/net/if_inet6 /proc/net/fib_trie",
        ))
        .await;
    assert!(
        up.stdout.text().contains("127.0.0.1"),
        "{}",
        up.stdout.text()
    );
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn file_is_replaced_for_one_child_only() {
    require_namespaces().await;
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    fs::write(fixture.at("project/test.py"), "original").unwrap();
    let scratch = ScratchDir::new("replaced-").unwrap();
    let other = scratch.path().join("other");
    fs::write(&other, "falsified").unwrap();
    let mut spec = fixture.spec(ChildKind::Tests, "cat test.py; echo x > test.py");
    spec.confine.as_mut().unwrap().replaced = vec![(other.clone(), fixture.at("project/test.py"))];
    let finished = fixture.run(spec).await;
    assert_eq!(
        finished.stdout.text(),
        "falsified",
        "{}",
        finished.stderr.text()
    );
    assert_eq!(
        (
            fixture.text("project/test.py"),
            fs::read_to_string(other).unwrap()
        ),
        ("original".into(), "falsified".into())
    );
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn writes_to_tmp_stay_in_the_sandbox() {
    require_namespaces().await;
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    let name = format!("/tmp/supervisor-sandbox-{}", std::process::id());
    fs::write(&name, "outside").unwrap();
    let script = format!(
        "cat {name}; echo inside > {name}; cat {name}; echo x > {name}.new && rm {name}.new; rm {name}"
    );
    let finished = fixture.run(fixture.spec(ChildKind::Tests, &script)).await;
    assert_eq!(
        (finished.end, finished.stdout.text().as_ref()),
        (End::Exited(0), "outsideinside\n")
    );
    assert_eq!(fs::read_to_string(&name).unwrap(), "outside");
    fs::remove_file(name).unwrap();
}

#[tokio::test]
#[ignore = "needs user namespaces"]
async fn only_the_login_file_is_saved() {
    require_namespaces().await;
    for mode in [SandboxMode::Auto, SandboxMode::Require] {
        let fixture = SandboxFixture::new(mode);
        fs::create_dir_all(fixture.at("home/.claude/agents")).unwrap();
        fs::write(
            fixture.at("home/.claude/.credentials.json"),
            "{\"token\": 1}",
        )
        .unwrap();
        fs::write(fixture.at("home/.claude/settings.json"), "{}").unwrap();
        let script = "cd \"$HOME/.claude\" && cat .credentials.json && echo '{\"token\": 2}' > .new && \
                      mv .new .credentials.json && echo '{\"hooks\": 1}' > settings.json && echo x > agents/planted && \
                      mkdir session-env && rm -r session-env";
        let mut spec = fixture.spec(ChildKind::Agent, script);
        let (dir, saved) = (
            fixture.at("home/.claude"),
            vec![String::from(".credentials.json")],
        );
        spec.confine.as_mut().unwrap().layered = Some(LayeredDir { dir, saved });
        let finished = fixture.run(spec).await;
        assert_eq!(finished.end, End::Exited(0), "{}", finished.stderr.text());
        assert_eq!(finished.stdout.text(), "{\"token\": 1}");
        assert_eq!(finished.sandbox.why, "");
        assert_eq!(
            fixture.text("home/.claude/.credentials.json"),
            "{\"token\": 2}\n"
        );
        assert_eq!(fixture.text("home/.claude/settings.json"), "{}");
        assert!(!fixture.at("home/.claude/agents/planted").exists());
        let left: Vec<_> = fs::read_dir(fixture.at("home/.claude"))
            .unwrap()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert_eq!(left.len(), 3, "{left:?}");
    }
}

fn suite_of(
    fixture: &SandboxFixture,
    command: &str,
) -> (supervisor_verify::Suite, supervisor_verify::RunEnvironment) {
    let suite = supervisor_verify::detect(&fixture.at("project"), None, Some(command)).unwrap();
    let env = [
        ("PATH", std::env::var_os("PATH").unwrap()),
        ("HOME", fixture.at("home").into()),
    ];
    let bench = supervisor_verify::RunEnvironment {
        launcher: launcher().with_rules(fixture.rules.clone()),
        env: env
            .into_iter()
            .map(|(name, value)| (OsString::from(name), value))
            .collect(),
        limit: LONG,
        guard: None,
        sandbox: supervisor_verify::TestSandbox::default(),
        execution: supervisor_verify::Execution::default(),
    };
    (suite, bench)
}

#[tokio::test]
#[ignore = "needs bash and user namespaces"]
async fn first_test_run_decides_the_network() {
    require(&["bash"]);
    require_namespaces().await;
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = host.local_addr().unwrap().port();
    fs::write(
        fixture.at("project/ask.sh"),
        format!("printf x >> runs\nexec 3<>/dev/tcp/127.0.0.1/{port}\n"),
    )
    .unwrap();
    let (suite, mut bench) = suite_of(&fixture, "bash ask.sh");
    let run =
        supervisor_verify::run_first(&suite, &mut bench, None, &CancellationToken::new()).await;
    assert!(run.outcome().is_passed(), "{}", run.output());
    assert_eq!(bench.sandbox.network, Some(NetworkReach::Host));
    assert!(
        run.notes()
            .iter()
            .any(|note| note.contains("`network` under [sandbox]")),
        "{run:?}"
    );
    // It is remembered for later calls.
    let known = KnownNetwork::in_folder(&fixture.at("project"), &suite);
    for _ in 0..2 {
        let (_, mut bench) = suite_of(&fixture, "bash ask.sh");
        let stop = CancellationToken::new();
        let run = supervisor_verify::run_first(&suite, &mut bench, Some(&known), &stop).await;
        assert!(run.outcome().is_passed(), "{}", run.output());
        assert_eq!(bench.sandbox.network, Some(NetworkReach::Host));
    }
    let runs = fs::read_to_string(fixture.at("project/runs")).unwrap();
    assert_eq!(runs.len(), 5, "private and host twice, then host alone");
    // What fails on the host's network too is no reason to open it.
    drop(host);
    let (suite, mut bench) = suite_of(&fixture, "bash ask.sh");
    let run =
        supervisor_verify::run_first(&suite, &mut bench, None, &CancellationToken::new()).await;
    assert!(!run.outcome().is_passed());
    assert_eq!(bench.sandbox.network, Some(NetworkReach::Private));
}

#[tokio::test]
#[ignore = "needs Landlock or user namespaces"]
async fn failure_caused_by_the_sandbox_is_reported() {
    require_sandbox().await;
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    fs::write(
        fixture.at("project/write.sh"),
        "echo x > /usr/supervisor-sandbox-test\n",
    )
    .unwrap();
    let (suite, mut bench) = suite_of(&fixture, "sh write.sh");
    let run =
        supervisor_verify::run_first(&suite, &mut bench, None, &CancellationToken::new()).await;
    assert!(!run.outcome().is_passed());
    let told = run.notes();
    assert!(
        told.iter()
            .any(|n| n.contains("`/usr/supervisor-sandbox-test`")
                && n.contains("`write` in [sandbox]")),
        "{told:?}"
    );
}

#[tokio::test]
async fn required_but_unavailable_sandbox_prevents_start() {
    let fixture = SandboxFixture::new(SandboxMode::Require);
    let mut spec = fixture.spec(ChildKind::Tests, "echo ran > ran");
    // No system can put a file where no directory is.
    spec.confine.as_mut().unwrap().replaced = vec![("/dev/null".into(), "/no/such/place".into())];
    let End::CouldNotStart(StartError::NoSandbox { why, .. }) = fixture.run(spec).await.end else {
        panic!("it ran")
    };
    assert!(why.contains("/no/such/place"), "{why}");
    assert!(!fixture.at("project/ran").exists());
}

#[tokio::test]
async fn sandboxed_tree_is_ended_completely() {
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    let mut spec = fixture.spec(
        ChildKind::Tests,
        "setsid sleep 600 & (setsid sleep 600 &) ; echo started; wait",
    );
    spec.limit = std::time::Duration::from_secs(2);
    let finished = fixture.run(spec).await;
    assert_eq!((finished.end, finished.survivors), (End::TimedOut, 0));
}

/// Leaves something wherever the kernel keeps it for later processes, and prints what an earlier run left there.
const LEAVES_TRACES: &str = r#"
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
name, key = "/dev/shm/" + sys.argv[1], int(sys.argv[2])
add_key = {"x86_64": 248}.get(platform.machine(), 217)
keyctl = {"x86_64": 250}.get(platform.machine(), 219)
USER_KEYRING, SEARCH = -4, 10
found = []
if os.path.exists(name):
    found.append("shm")
open(name, "w").close()
if libc.shmget(key, 16, 0) >= 0:
    found.append("sysv")
libc.shmget(key, 16, 0o1600)
if libc.syscall(keyctl, SEARCH, USER_KEYRING, b"user", sys.argv[1].encode(), 0) >= 0:
    found.append("key")
if libc.syscall(add_key, b"user", sys.argv[1].encode(), b"x", 1, USER_KEYRING) >= 0:
    found.append("can add keys")
print(*found, sep=", ")
"#;

#[tokio::test]
#[ignore = "needs python3 and user namespaces"]
async fn test_runs_share_no_memory_or_keys() {
    require(&["python3"]);
    require_namespaces().await;
    let fixture = SandboxFixture::new(SandboxMode::Auto);
    let name = format!("supervisor-test-{}", std::process::id());
    let run = async |kind| {
        let mut spec = fixture.spec(kind, "");
        let arguments = [
            "python3",
            "-c",
            LEAVES_TRACES,
            &name,
            &std::process::id().to_string(),
        ];
        spec.argv = arguments.map(OsString::from).to_vec();
        let finished = fixture.run(spec).await;
        assert_eq!(finished.end, End::Exited(0), "{}", finished.stderr.text());
        finished.stdout.text().trim().to_owned()
    };
    for _ in 0..2 {
        assert_eq!(run(ChildKind::Tests).await, "");
    }
    // The script would notice: agents share what the host has.
    run(ChildKind::Agent).await;
    let seen = run(ChildKind::Agent).await;
    assert_eq!(run(ChildKind::Tests).await, "");
    drop(fs::remove_file(format!("/dev/shm/{name}")));
    assert!(seen.contains("sysv") && seen.contains("shm"), "{seen}");
}
