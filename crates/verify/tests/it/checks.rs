//! Result checks: right work passes, wrong work does not, and what only holds the result is found.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use supervisor_process::{Launcher, environment};
use supervisor_verify::{
    Execution, Outcome, Proof, ResultCheck, RunEnvironment, Suite, TestRun, TestSandbox, Trial,
};
use tokio_util::sync::CancellationToken;

struct Place(tempfile::TempDir);

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        files
            .iter()
            .for_each(|(path, text)| place.write(path, text.as_bytes()));
        place
    }

    fn root(&self) -> PathBuf {
        self.0.path().canonicalize().expect("it exists")
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    async fn run(&self, suite: &Suite) -> TestRun {
        let environment = RunEnvironment {
            launcher: Launcher::this_program(),
            env: environment::tests(std::env::vars_os(), &[], &[]),
            limit: Duration::from_secs(60),
            guard: None,
            sandbox: TestSandbox::default(),
            execution: Execution::default(),
        };
        suite.run(&environment, &CancellationToken::new()).await
    }

    async fn check(&self, check: &ResultCheck) -> TestRun {
        self.run(&Suite::of_check(&self.root(), check)).await
    }

    /// The names of the trials that passed, though they must fail.
    async fn surviving(&self, check: &ResultCheck, changed: &[&str]) -> Vec<&'static str> {
        let changed: Vec<PathBuf> = changed.iter().map(PathBuf::from).collect();
        let mut surviving = Vec::new();
        for Trial {
            name,
            reduction,
            edits,
            ..
        } in check.trials(self.0.path(), &changed, 7)
        {
            let originals: Vec<(PathBuf, Vec<u8>)> = edits
                .iter()
                .map(|(path, _)| {
                    (
                        path.clone(),
                        fs::read(self.0.path().join(path)).expect("read"),
                    )
                })
                .collect();
            let write = |files: &[(PathBuf, Vec<u8>)]| {
                let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
                files
                    .iter()
                    .for_each(|(path, bytes)| self.write(&text(path), bytes));
            };
            write(&edits);
            let suite = Suite::of_reduced_check(&self.root(), check, reduction);
            if *self.run(&suite).await.outcome() == Outcome::Passed {
                surviving.push(name);
                surviving.dedup();
            }
            write(&originals);
        }
        surviving
    }
}

const SHOP: &str = "CREATE TABLE orders (customer TEXT, total REAL);\n\
    INSERT INTO orders VALUES ('ann', 10), ('bob', 4), ('ann', 2.5), ('cid', 1), ('dan', 9), ('eve', 8), ('eve', 7);\n";
const TOP: &str = "customer,total\neve,15\nann,12.5\n";

fn rows() -> ResultCheck {
    serde_json::from_value(serde_json::json!({
        "kind": "rows", "query": "top.sql", "database": "shop.sql", "expected": "top.csv", "ordered": true,
    }))
    .expect("a check")
}

#[tokio::test]
async fn query_is_judged_by_its_rows() {
    let place = Place::new(&[("shop.sql", SHOP), ("top.csv", TOP)]);
    let check = rows();
    assert_eq!(check.validate(&place.root()), Ok(()));
    let missing = place.check(&check).await;
    assert_eq!(*missing.outcome(), Outcome::Failed, "{missing:?}");
    for (query, passes) in [
        (
            "SELECT customer, sum(total) AS t FROM orders GROUP BY 1 ORDER BY t DESC LIMIT 2",
            true,
        ),
        (
            "CREATE VIEW v AS SELECT customer c, sum(total) t FROM orders GROUP BY 1; SELECT * FROM v ORDER BY t DESC LIMIT 2;",
            true,
        ),
        (
            "SELECT customer, max(total) AS t FROM orders GROUP BY 1 ORDER BY t DESC LIMIT 2",
            false,
        ),
        (
            "SELECT customer, sum(total) AS t FROM orders GROUP BY 1 ORDER BY t LIMIT 2",
            false,
        ),
        ("SELECT nothing FROM orders", false),
        ("DROP TABLE orders", false),
        ("SELECT 'eve', 15 UNION ALL SELECT 'ann', 12.5", true),
    ] {
        place.write("top.sql", query.as_bytes());
        let run = place.check(&check).await;
        assert_eq!(
            Proof::of_tests(&run).is_ok(),
            passes,
            "{query}: {}",
            run.output()
        );
    }
    assert_eq!(
        fs::read_to_string(place.root().join("shop.sql")).expect("read"),
        SHOP
    );
}

#[tokio::test]
async fn query_that_holds_its_rows_survives_without_data() {
    let place = Place::new(&[("shop.sql", SHOP), ("top.csv", TOP)]);
    place.write("top.sql", b"SELECT 'eve', 15 UNION ALL SELECT 'ann', 12.5");
    assert_eq!(
        place.surviving(&rows(), &[]).await,
        ["no data", "less data"]
    );
    place.write(
        "top.sql",
        b"SELECT customer, sum(total) AS t FROM orders GROUP BY 1 ORDER BY t DESC LIMIT 2",
    );
    assert_eq!(place.surviving(&rows(), &[]).await, Vec::<&str>::new());
}

const DATA: &str = "name,n\na,1\nb,2\na,3\nc,4\nb,5\na,6\n";

#[tokio::test]
async fn transformation_is_judged_by_what_it_writes() {
    let place = Place::new(&[
        ("in.csv", DATA),
        ("want.json", r#"{"a": 10, "b": 7, "c": 4}"#),
    ]);
    let check: ResultCheck = serde_json::from_value(serde_json::json!({
        "kind": "files", "command": "sh sum.sh", "actual": "out.json", "expected": "want.json", "input": "in.csv",
        "tolerance": 0.01,
    }))
    .expect("a check");
    let sums = "awk -F, 'NR>1 {s[$1]+=$2} END {printf \"{\\\"a\\\": %d.001, \\\"b\\\": %d, \\\"c\\\": %d}\", s[\"a\"], s[\"b\"], s[\"c\"]}' in.csv > out.json";
    place.write("sum.sh", b"true");
    place.write("out.json", br#"{"a": 10, "b": 7, "c": 4}"#);
    let stale = place.check(&check).await;
    assert_eq!(
        *stale.outcome(),
        Outcome::Failed,
        "an old file is no output"
    );
    place.write("sum.sh", sums.as_bytes());
    assert_eq!(*place.check(&check).await.outcome(), Outcome::Passed);
    assert_eq!(
        place.surviving(&check, &["sum.sh"]).await,
        Vec::<&str>::new()
    );
    place.write("sum.sh", br#"echo '{"a": 10, "b": 7, "c": 4}' > out.json"#);
    assert_eq!(*place.check(&check).await.outcome(), Outcome::Passed);
    assert_eq!(
        place.surviving(&check, &["sum.sh"]).await,
        ["no data", "less data"]
    );
    place.write("sum.sh", b"cp want.json out.json");
    assert_eq!(
        place.surviving(&check, &["sum.sh"]).await,
        ["another expected value", "no data", "less data"]
    );
    place.write("sum.sh", b"echo '{}' > want.json; echo '{}' > out.json");
    assert_eq!(
        *place.check(&check).await.outcome(),
        Outcome::Failed,
        "expected is read first"
    );
}

#[tokio::test]
async fn validator_and_document_are_judged() {
    let place = Place::new(&[
        ("app.conf", "port=no\n"),
        ("validate.sh", "grep -qx 'port=[0-9]*' app.conf\n"),
    ]);
    let check: ResultCheck = serde_json::from_value(serde_json::json!({
        "kind": "command", "command": "sh validate.sh", "paths": ["app.conf"],
    }))
    .expect("a check");
    assert_eq!(*place.check(&check).await.outcome(), Outcome::Failed);
    place.write("app.conf", b"port=80\n");
    assert_eq!(*place.check(&check).await.outcome(), Outcome::Passed);
    assert_eq!(
        place.surviving(&check, &["app.conf"]).await,
        Vec::<&str>::new()
    );
    assert_eq!(check.sealed(&place.root()), [PathBuf::from("validate.sh")]);
    assert_eq!(check.may_change(Path::new("validate.sh")), Some(false));

    let docs: ResultCheck = serde_json::from_value(
        serde_json::json!({"kind": "docs", "path": "guide.md", "command": "test -s guide.md"}),
    )
    .expect("a check");
    place.write("guide.md", b"# Guide\n[settings](conf.md)\n");
    let dead = place.check(&docs).await;
    assert!(
        dead.output()
            .contains("the link `conf.md` leads to no file"),
        "{dead:?}"
    );
    place.write("guide.md", b"# Guide\n[settings](app.conf) [top](#guide)\n");
    assert_eq!(*place.check(&docs).await.outcome(), Outcome::Passed);
}

#[test]
fn check_that_cannot_be_made_is_refused() {
    let place = Place::new(&[("shop.sql", SHOP), ("top.csv", "a,b\n")]);
    let why = rows().validate(&place.root()).expect_err("no rows");
    assert!(why.to_string().contains("holds no row"), "{why}");
    let outside: ResultCheck = serde_json::from_value(
        serde_json::json!({"kind": "files", "command": "x", "expected": "../x"}),
    )
    .expect("a check");
    assert!(outside.validate(&place.root()).is_err());
}
