//! With a real Postgres, started by each test for itself as an ordinary user.

#![expect(
    clippy::disallowed_methods,
    reason = "the launcher starts the programs of calls, and this is a server"
)]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use supervisor_engine::budget::SharedBudget as _;
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_settings::{SharedPart, TeamSettings, WhenDown};
use supervisor_shared_state::{SharedState, TeamBudget, TeamConfig};
use supervisor_workspace::state::StateDir;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// A longer wait is a hang.
const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(600);

/// A server of its own, ended when dropped.
struct Postgres {
    dir: TempDir,
    port: u16,
    process: Child,
}

/// Where the programs of the server are: not on the PATH in Debian.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let debian = versions
        .flatten()
        .map(|version| version.path().join("bin").join(name));
    let found = debian.filter(|path| path.exists()).max();
    found.unwrap_or_else(|| PathBuf::from(name))
}

/// The server refuses to run as root, so root becomes the user of the package.
fn command(name: &str) -> Command {
    let is_root = Command::new("id").arg("-u").output().expect("id").stdout == b"0\n";
    if !is_root {
        return Command::new(program(name));
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=postgres",
        "--regid=postgres",
        "--clear-groups",
        "--",
    ]);
    command.arg(program(name));
    command
}

fn run(command: &mut Command) {
    let done = command.output().expect("it starts");
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

impl Postgres {
    async fn start() -> Self {
        let dir = TempDir::new().expect("a directory");
        run(Command::new("chmod").arg("777").arg(dir.path()));
        let data = dir.path().join("data");
        run(command("initdb")
            .args(["-A", "trust", "-U", "me", "-N", "-D"])
            .arg(&data));
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let process = Self::spawn(&data, port);
        let postgres = Self { dir, port, process };
        postgres.ready().await;
        postgres
    }

    fn spawn(data: &Path, port: u16) -> Child {
        command("postgres")
            .arg("-D")
            .arg(data)
            .args([
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "unix_socket_directories=",
            ])
            .args(["-c", "max_connections=120", "-c", &format!("port={port}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts")
    }

    /// Waits until it takes connections.
    async fn ready(&self) {
        let connected = async {
            while self.try_connect().await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, connected)
            .await
            .expect("it starts in time");
    }

    async fn try_connect(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    async fn client(&self) -> Client {
        self.try_connect().await.expect("connected")
    }

    async fn count(&self, query: &str) -> i64 {
        self.client()
            .await
            .query_one(query, &[])
            .await
            .expect(query)
            .get(0)
    }

    fn url(&self) -> String {
        format!("postgres://me@127.0.0.1:{}/postgres", self.port)
    }

    fn stop(&mut self) {
        // Fast shutdown: running transactions are rolled back.
        let id = self.process.id().to_string();
        run(Command::new("kill").args(["-INT", &id]));
        self.process.wait().expect("it ended");
    }

    async fn start_again(&mut self) {
        self.process = Self::spawn(&self.dir.path().join("data"), self.port);
        self.ready().await;
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let id = self.process.id().to_string();
        let _ = Command::new("kill").args(["-QUIT", &id]).status();
        let _ = self.process.wait();
    }
}

/// One person's machine.
struct Machine {
    _dir: TempDir,
    log: SessionLog,
    state: Arc<SharedState>,
}

fn settings(postgres: &Postgres, person: &str) -> TeamSettings {
    TeamSettings {
        database: Some(postgres.url()),
        password_env: None,
        name: "team".into(),
        person: Some(person.into()),
        share: SharedPart::Counts,
        when_down: WhenDown::Stop,
    }
}

fn machine_with(settings: &TeamSettings) -> Machine {
    let dir = TempDir::new().expect("a directory");
    let state = StateDir::at(dir.path().join("state")).expect("absolute");
    let log = SessionLog::open(&state).expect("opened");
    let config = TeamConfig::new(settings, |_| None)
        .expect("valid")
        .expect("a database");
    let folder = state.sub("shared").expect("made");
    Machine {
        state: SharedState::new(config, SessionLog::to_read(&state), folder),
        log,
        _dir: dir,
    }
}

impl Machine {
    fn new(postgres: &Postgres, person: &str) -> Self {
        machine_with(&settings(postgres, person))
    }

    fn log(&self, session: &str, call: &str) {
        let id: SessionId = session.parse().expect("an id");
        let attempt = json!({"model": "small", "tier": "local", "cause": "accepted", "verified": true, "cost_usd": 0.25, "tokens_in": 10, "tokens_out": 2, "duration_ms": 5});
        let entry = json!({
            "v": 2, "session_id": session, "call": call, "timestamp": "2026-01-02T03:04:05Z", "skill": "tdd", "tool": "tdd_green",
            "final_status": "pass", "message": "private \u{0} words", "attempts": [attempt], "duration_ms": 7,
        });
        self.log.append_value(&id, entry).expect("written");
    }

    /// Sends until all is sent, also while the database comes and goes.
    async fn send_all(&self) {
        let sent = async {
            while self.state.send().await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, sent)
            .await
            .expect("sent in time");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs postgres"]
async fn fifty_clients_never_overspend() {
    let postgres = Postgres::start().await;
    let first = Machine::new(&postgres, "p0");
    first.state.connect().await.expect("migrated");
    let client = postgres.client().await;
    let caps = "insert into supervisor.cap values ('team', '', 10), ('team', 'p1', 0.5)";
    client.execute(caps, &[]).await.expect("capped");
    let mut clients = tokio::task::JoinSet::new();
    for n in 0..50 {
        let machine = Machine::new(&postgres, &format!("p{n}"));
        clients.spawn(async move {
            let budget = TeamBudget(Arc::clone(&machine.state));
            let mut granted = 0;
            for round in 0..10 {
                let Ok(held) = budget.reserve(0.1, LEASE).await else {
                    continue;
                };
                granted += 1;
                // A third is charged in full, a third by half, and a third dies with its reservation.
                match (n + round) % 3 {
                    0 => held.settle(0.1),
                    1 => held.settle(0.05),
                    _ => drop(held),
                }
                machine.send_all().await;
            }
            (n, granted)
        });
    }
    let all = clients.join_all().await;
    let granted: i32 = all.iter().map(|(_, granted)| granted).sum();
    let of_p1 = all.iter().find(|(n, _)| *n == 1).expect("it ran").1;
    let row = client
        .query_one(
            "select (select sum(usd) from supervisor.spent)::float8, (select sum(usd) from supervisor.spend where not settled)::float8",
            &[],
        )
        .await
        .expect("counted");
    let (spent, open): (f64, f64) = (row.get(0), row.get::<_, Option<f64>>(1).unwrap_or(0.0));
    assert!(spent + open <= 10.0 + 1e-6, "{spent} and {open}");
    assert!(
        spent + open > 9.8,
        "and the budget is used: {spent} and {open}"
    );
    assert!((100..500).contains(&granted), "{granted}");
    assert!(of_p1 <= 10, "{of_p1} of a cap of their own");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs postgres"]
async fn reservation_of_the_dead_is_free_after_its_lease() {
    let postgres = Postgres::start().await;
    let machine = Machine::new(&postgres, "ada");
    machine.state.connect().await.expect("migrated");
    let client = postgres.client().await;
    client
        .execute("insert into supervisor.cap values ('team', '', 1)", &[])
        .await
        .expect("capped");
    let budget = TeamBudget(Arc::clone(&machine.state));
    drop(budget.reserve(0.8, LEASE).await.expect("granted"));
    let error = budget
        .reserve(0.8, LEASE)
        .await
        .expect_err("it is reserved");
    assert!(error.contains("the team's budget for today"), "{error}");
    let over = "update supervisor.spend set expires = now() - interval '1 second'";
    client.execute(over, &[]).await.expect("over");
    let held = budget.reserve(0.8, LEASE).await.expect("free again");
    held.settle(0.9);
    machine.send_all().await;
    let spent = "select (sum(usd) * 100)::bigint from supervisor.spent";
    assert_eq!(postgres.count(spent).await, 90);
    let again =
        "select supervisor.settle('team', 'ada', id, 0.9) from supervisor.spend where settled";
    client.execute(again, &[]).await.expect("settled again");
    assert_eq!(postgres.count(spent).await, 90, "once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs postgres"]
async fn migrations_at_once_make_one_schema() {
    let postgres = Postgres::start().await;
    let mut clients = tokio::task::JoinSet::new();
    for n in 0..8 {
        let machine = Machine::new(&postgres, &format!("p{n}"));
        clients.spawn(async move { machine.state.connect().await.map_err(|e| e.to_string()) });
    }
    for done in clients.join_all().await {
        assert_eq!(done, Ok(()));
    }
    assert_eq!(
        postgres
            .count("select count(*) from supervisor.migration")
            .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs postgres"]
async fn restart_during_a_reservation_loses_no_cost() {
    let mut postgres = Postgres::start().await;
    let machine = Machine::new(&postgres, "ada");
    machine.state.connect().await.expect("migrated");
    let budget = TeamBudget(Arc::clone(&machine.state));
    let held = budget.reserve(2.0, LEASE).await.expect("granted");
    postgres.stop();
    let error = budget.reserve(1.0, LEASE).await.expect_err("it is down");
    assert!(error.contains("`team.when_down` is `stop`"), "{error}");
    let mut careless = settings(&postgres, "bob");
    careless.when_down = WhenDown::LocalCaps;
    let other = machine_with(&careless);
    let in_the_dark = TeamBudget(Arc::clone(&other.state))
        .reserve(1.0, LEASE)
        .await;
    in_the_dark.expect("within local caps").settle(0.25);
    held.settle(1.5);
    postgres.start_again().await;
    machine.send_all().await;
    other.send_all().await;
    let spent = "select (sum(usd) * 100)::bigint from supervisor.spent where person = ";
    assert_eq!(postgres.count(&format!("{spent}'ada'")).await, 150);
    assert_eq!(
        postgres.count(&format!("{spent}'bob'")).await,
        25,
        "what was spent meanwhile counts"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs postgres"]
async fn stops_under_load_lose_and_double_nothing() {
    const CALLS: usize = 400;
    let mut postgres = Postgres::start().await;
    let machines: Vec<_> = ["ada", "bob", "eve"]
        .map(|person| Arc::new(Machine::new(&postgres, person)))
        .into();
    let mut writers = tokio::task::JoinSet::new();
    for machine in &machines {
        let machine = Arc::clone(machine);
        writers.spawn(async move {
            for n in 0..CALLS {
                machine.log(&format!("session-{}", n % 5), &format!("{n:016x}"));
                if n % 10 == 0 {
                    // Fails while the database is away.
                    let _ = machine.state.send().await;
                }
            }
        });
    }
    for _ in 0..3 {
        postgres.stop();
        postgres.start_again().await;
    }
    writers.join_all().await;
    for machine in &machines {
        machine.send_all().await;
        assert_eq!(machine.state.send().await.expect("up"), 0, "all is sent");
    }
    for machine in &machines {
        let sessions = machine.log.sessions().expect("listed");
        let lines = |id| {
            std::fs::read_to_string(machine.log.path(id))
                .expect("read")
                .lines()
                .count()
        };
        assert_eq!(sessions.iter().map(lines).sum::<usize>(), CALLS);
    }
    let all = i64::try_from(3 * CALLS).expect("few");
    assert_eq!(
        postgres
            .count("select count(*) from supervisor.entry")
            .await,
        all
    );
    assert_eq!(
        postgres
            .count("select count(*) from supervisor.attempt")
            .await,
        all
    );
    assert_eq!(
        postgres
            .count("select (sum(cost_usd) * 100)::bigint from supervisor.entry")
            .await,
        all * 25
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs postgres"]
async fn counts_share_no_words() {
    let postgres = Postgres::start().await;
    let ada = Machine::new(&postgres, "ada");
    ada.log("s", "0000000000000001");
    assert_eq!(ada.state.send().await.expect("sent"), 1);
    assert_eq!(
        ada.state.send().await.expect("sent"),
        0,
        "known by how far it was sent"
    );
    let mut open = settings(&postgres, "bob");
    open.share = SharedPart::Entries;
    let bob = machine_with(&open);
    bob.log("s", "0000000000000001");
    assert_eq!(
        bob.state.send().await.expect("sent"),
        1,
        "an id is a person's own"
    );
    let with_words = |person: &str| {
        format!(
            "select count(*) from supervisor.entry where person = '{person}' and body::text like '%private%'"
        )
    };
    assert_eq!(postgres.count(&with_words("ada")).await, 0);
    assert_eq!(postgres.count(&with_words("bob")).await, 1);
    assert_eq!(
        postgres
            .count("select accepted from supervisor.models where model = 'small'")
            .await,
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs postgres"]
async fn damaged_progress_doubles_nothing() {
    let postgres = Postgres::start().await;
    let ada = Machine::new(&postgres, "ada");
    for n in 0..5 {
        ada.log("s", &format!("{n:016x}"));
    }
    assert_eq!(ada.state.send().await.expect("sent"), 5);
    let progress = ada._dir.path().join("state/shared/sent.json");
    std::fs::write(&progress, "{").expect("damaged");
    assert_eq!(
        ada.state.send().await.expect("sent"),
        0,
        "the database knows them"
    );
    assert_eq!(
        postgres
            .count("select count(*) from supervisor.entry")
            .await,
        5
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs postgres"]
async fn figures_are_of_the_whole_team() {
    let postgres = Postgres::start().await;
    let (ada, bob) = (
        Machine::new(&postgres, "ada"),
        Machine::new(&postgres, "bob"),
    );
    for (machine, calls) in [(&ada, 2), (&bob, 3)] {
        for n in 0..calls {
            machine.log("s", &format!("{n:016x}"));
        }
        machine.send_all().await;
    }
    let caps = "insert into supervisor.cap values ('team', '', 10), ('team', 'ada', 2)";
    postgres
        .client()
        .await
        .execute(caps, &[])
        .await
        .expect("capped");
    for machine in [&ada, &bob] {
        let budget = TeamBudget(Arc::clone(&machine.state));
        budget
            .reserve(1.0, LEASE)
            .await
            .expect("granted")
            .settle(0.5);
        machine.send_all().await;
    }
    let figures = ada.state.figures(0.0).await.expect("read");
    assert_eq!((figures.people, figures.calls, figures.passed), (2, 5, 5));
    assert_eq!(
        (figures.models[0].attempts, figures.models[0].accepted),
        (5, 5)
    );
    let today = figures.today;
    assert_eq!((today.team_usd, today.team_cap_usd), (1.0, Some(10.0)));
    assert_eq!((today.own_usd, today.own_cap_usd), (0.5, Some(2.0)));
    let later = ada.state.figures(4_000_000_000.0).await.expect("read");
    assert_eq!(later.calls, 0);
}
