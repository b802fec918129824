//! Red that is not red: ten ways, each refused with a message of its own and the project as it was.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::case::Edit::{Change, Create, Delete, Replace};
use super::case::{Case, Does, Edit, Ends, Kind, Tool};
use super::projects;
use super::server::{Came, CheatServer};
use supervisor_test_support::programs::require;
use supervisor_test_support::suites::file;

struct Row {
    name: &'static str,
    kind: Kind,
    /// Which project it begins with: one where all passes, or one with an old failure.
    project: Tool,
    /// What is different about that project.
    first: &'static [Edit],
    adds: &'static [Edit],
}

const SUMS: &str = "tests/sums.rs";
const FIRST: &str = "#[test]\nfn doubles";

static ROWS: &[Row] = &[
    Row {
        name: "a syntax error",
        kind: Kind::Rust,
        project: Tool::Red,
        first: &[],
        adds: &[Change(
            SUMS,
            FIRST,
            "#[test]\nfn quadruples( {\n    assert_eq!(demo::double(4), 9);\n}\n\n#[test]\nfn doubles",
        )],
    },
    Row {
        name: "an import of what is not there, in Python",
        kind: Kind::Python,
        project: Tool::Red,
        first: &[],
        // In a file of its own it would take no other test along, and be red.
        adds: &[Change(
            "tests/test_calc.py",
            "from calc import double, triple\n",
            "from calc import double, quadruple, triple\n\n\ndef test_quadruples():\n    assert quadruple(2) == 8\n",
        )],
    },
    Row {
        name: "nothing but an old failure",
        kind: Kind::Rust,
        project: Tool::Green,
        first: &[],
        adds: &[Change(
            SUMS,
            FIRST,
            "#[test]\nfn doubles_four() {\n    assert_eq!(demo::double(4), 8);\n}\n\n#[test]\nfn doubles",
        )],
    },
    Row {
        name: "an assertion about nothing",
        kind: Kind::Rust,
        project: Tool::Red,
        first: &[],
        adds: &[Change(
            SUMS,
            FIRST,
            "#[test]\nfn quadruples() {\n    assert!(false, \"not written yet\");\n}\n\n#[test]\nfn doubles",
        )],
    },
    Row {
        name: "a test that passes",
        kind: Kind::Rust,
        project: Tool::Red,
        first: &[],
        adds: &[Change(
            SUMS,
            FIRST,
            "#[test]\nfn doubles_four() {\n    assert_eq!(demo::double(4), 8);\n}\n\n#[test]\nfn doubles",
        )],
    },
    Row {
        name: "two tests",
        kind: Kind::Rust,
        project: Tool::Red,
        first: &[],
        adds: &[Change(
            SUMS,
            FIRST,
            "#[test]\nfn one() {\n    assert_eq!(demo::double(4), 9);\n}\n\n#[test]\nfn two() {\n    \
             assert_eq!(demo::double(4), 10);\n}\n\n#[test]\nfn doubles",
        )],
    },
    Row {
        name: "the implementation touched",
        kind: Kind::Rust,
        project: Tool::Red,
        first: &[],
        adds: &[
            Change(
                SUMS,
                FIRST,
                "#[test]\nfn quadruples() {\n    assert_eq!(demo::quadruple(2), 8);\n}\n\n#[test]\nfn doubles",
            ),
            Change(
                "src/lib.rs",
                "pub fn double",
                "pub fn quadruple(n: i32) -> i32 {\n    n\n}\n\npub fn double",
            ),
        ],
    },
    Row {
        name: "the placeholder that npm puts in package.json",
        kind: Kind::Node,
        project: Tool::Red,
        first: &[Replace(
            "package.json",
            "{\"name\": \"demo\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"echo \\\"Error: no test specified\\\" && exit 1\"}}\n",
        )],
        adds: &[Create(
            "test/more.test.js",
            "require('node:test')('x', () => { throw new Error(); });\n",
        )],
    },
    Row {
        name: "no test is found",
        kind: Kind::Python,
        project: Tool::Red,
        first: &[Delete("tests/test_calc.py")],
        adds: &[Create(
            "tests/test_more.py",
            "import calc\n\n\ndef quadruples():\n    assert calc.double(2) == 8\n",
        )],
    },
    Row {
        name: "a test that never ends",
        kind: Kind::Rust,
        project: Tool::Red,
        first: &[],
        adds: &[Change(
            SUMS,
            FIRST,
            "#[test]\nfn quadruples() {\n    assert_eq!(demo::double(4), 8);\n    loop {\n        \
             std::thread::park();\n    }\n}\n\n#[test]\nfn doubles",
        )],
    },
];

#[test]
fn false_reds_are_refused_in_rust() {
    let rows: Vec<&Row> = ROWS.iter().filter(|row| row.kind == Kind::Rust).collect();
    assert_eq!(rows.len(), 7);
    refuse_all(&rows);
}

#[test]
#[ignore = "needs pytest, node and npm"]
fn false_reds_are_refused() {
    assert_eq!(ROWS.len(), 10);
    ROWS.iter().for_each(|row| require(row.kind.needs()));
    let refusals = refuse_all(&ROWS.iter().collect::<Vec<_>>());
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"/[^ `]*/row-\d+", "[project]");
    settings.add_filter(r"\d+ s\b", "[n] s");
    settings.bind(|| insta::assert_snapshot!("red_that_is_not_red", refusals.join("\n")));
}

/// Runs the rows: each is refused with a message of its own.
fn refuse_all(rows: &[&'static Row]) -> Vec<String> {
    let (endless, others): (Vec<&Row>, Vec<&Row>) = rows
        .iter()
        .partition(|r| r.name == "a test that never ends");
    let mut seen: Vec<(&str, Came)> = std::thread::scope(|scope| {
        // It waits for its limit and little else.
        let endless = scope.spawn(|| {
            endless
                .into_iter()
                .map(|row| (row.name, hangs(row)))
                .collect::<Vec<_>>()
        });
        let mut server = CheatServer::new("");
        let mut seen: Vec<_> = others
            .iter()
            .enumerate()
            .map(|(n, row)| (row.name, run(&mut server, row, n)))
            .collect();
        seen.extend(endless.join().expect("said what it came to"));
        seen
    });
    seen.sort_by_key(|(name, _)| ROWS.iter().position(|row| row.name == *name));
    let refusals: Vec<String> = seen
        .iter()
        .map(|(name, came)| refusal(name, came))
        .collect();
    let messages: BTreeSet<&str> = refusals
        .iter()
        .filter_map(|text| text.splitn(3, '\n').nth(2))
        .collect();
    assert_eq!(
        messages.len(),
        rows.len(),
        "each has a message of its own: {refusals:#?}"
    );
    refusals
}

/// The name, how it ended, and what was said; nothing may be accepted or changed.
fn refusal(name: &str, came: &Came) -> String {
    let (result, attempt) = (&came.result, came.attempt());
    assert!(
        result["status"] != "pass" && result["verified"] != true,
        "{name}: {result:#}"
    );
    assert_eq!(came.differences, "", "{name}: {result:#}");
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let said = if attempt.is_object() {
        &attempt["feedback"]
    } else {
        &result["message"]
    };
    format!(
        "# {name}\nstatus {}, cause {}\n{}\n",
        text(&result["status"]),
        text(&attempt["cause"]),
        text(said)
    )
}

fn run(server: &mut CheatServer, row: &Row, n: usize) -> Came {
    let root = server.here().join(format!("row-{n}"));
    projects::write(row.kind, row.project, &root);
    for edit in row.first {
        match edit {
            Create(path, text) | Replace(path, text) => file(&root, path, text),
            Delete(path) => fs::remove_file(root.join(path)).unwrap(),
            Change(..) => unreachable!("not needed so far"),
        }
    }
    let case = Case {
        name: row.name,
        kind: row.kind,
        tool: Tool::Red,
        does: Does::Edits(row.adds),
        ends: Ends::Accepted,
    };
    server.run_in(&root, &case)
}

/// With a limit that doubles until the run before the model's answer fits in it: a slow build is no proof.
fn hangs(row: &Row) -> Came {
    let mut limit = 8;
    loop {
        let mut server = CheatServer::new(&format!("[limits]\ntests_s = {limit}\n"));
        let came = run(&mut server, row, 9);
        if came.attempt().is_object() || limit > 200 {
            return came;
        }
        limit *= 2;
    }
}
