use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const A: &str = "fn first() -> u32 {\n    second(1).unwrap()\n}\n\nfn second(n: u32) -> Option<u32> {\n    n.checked_sub(2)\n}\n";
const B: &str = "def main():\n    run(input())\n";

fn scope() -> (ReviewScope, Vec<ScopePart>) {
    let mut scope = ReviewScope::default();
    scope.add("src/a.rs", A, LineRanges::all(7));
    scope.add("b.py", B, LineRanges::all(2));
    let span = |file: &str, lines| LineSpan {
        file: file.into(),
        lines,
    };
    (
        scope,
        vec![ScopePart {
            spans: vec![span("src/a.rs", 1..=7), span("b.py", 1..=2)],
        }],
    )
}

fn finding(file: &str, line: usize, quote: &str, why: &str) -> Value {
    json!({"severity": "warning", "file": file, "line": line, "quote": quote, "why": why})
}

fn reviewed() -> Value {
    json!([{"file": "src/a.rs", "checks": ["security", "swallowed errors"]},
           {"file": "./b.py", "checks": ["boundary validation", "tests"]}])
}

fn good() -> Value {
    json!({"reviewed": reviewed(), "findings": [
        finding("src/a.rs", 2, "    second(1).unwrap()", "panics, because second(1) is None"),
        finding("b.py", 2, "run(input())", "runs whatever is typed"),
        finding("src/a.rs", 5, "fn second(n: u32) -> Option<u32> {\n    n.checked_sub(2)", "says too little by its name"),
    ]})
}

fn judged(reply: &Value) -> JudgedReview {
    let (scope, parts) = scope();
    judge(&scope, &parts, &RequirementList::default(), &[reply])
}

fn refusal(judged: &JudgedReview) -> Option<(&'static str, &str)> {
    judged
        .checks
        .iter()
        .find(|check| !check.passed())
        .map(|check| (check.id(), check.detail()))
}

#[test]
fn correct_citations_are_kept() {
    let judged = judged(&good());
    assert_eq!(refusal(&judged), None);
    assert_eq!((judged.findings.len(), judged.dropped.len()), (3, 0));
    assert_eq!(
        (judged.findings[2].line, judged.findings[2].end_line),
        (5, Some(6))
    );
    let mut ranges = good();
    ranges["findings"][2]["line"] = json!("5-6");
    ranges["findings"][0]["line"] = json!(" 2 ");
    assert_eq!(
        self::judged(&ranges).findings,
        judged.findings,
        "as text, and as a range"
    );
    assert!(supervisor_verify::Proof::of_checks(judged.checks).is_ok());
}

#[test]
fn invalid_finding_names_the_reason() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut finding = finding("src/a.rs", 2, "second(1).unwrap()", "panics on every call");
        change(&mut finding);
        judged(&json!({"reviewed": reviewed(), "findings": [finding]}))
    };
    assert_eq!(
        refusal(&with(&|_| ())),
        None,
        "the unchanged finding is kept"
    );
    type Row<'a> = (&'a dyn Fn(&mut Value), &'a str);
    let rows: [Row<'_>; 12] = [
        (
            &|f| f["line"] = json!(12),
            "`src/a.rs` has 7 lines, so there is no line 12",
        ),
        (
            &|f| f["line"] = json!(6),
            "`src/a.rs:6` does not say `second(1).unwrap()` but `n.checked_sub(2)`",
        ),
        (&|f| f["line"] = json!(-2), "names no `line`"),
        (
            &|f| f["quote"] = json!("second(2).unwrap()"),
            "does not say `second(2).unwrap()`",
        ),
        (&|f| f["quote"] = json!(""), "cited without a quote"),
        (
            &|f| f["file"] = json!("src/c.rs"),
            "`src/c.rs` is not among the files that were shown, so it is out of scope",
        ),
        (&|f| f["file"] = json!("../etc/passwd"), "out of scope"),
        (
            &|f| f["severity"] = json!("blocker"),
            "its severity is `blocker` instead of `critical`, `warning` or `suggestion`",
        ),
        (&|f| f["why"] = json!(" "), "its `why` is empty"),
        (
            &|f| (f["line"], f["quote"]) = (json!(3), json!("}")),
            "holds no word",
        ),
        (&|f| *f = json!("line 2 panics"), "is not an object"),
        (&|f| f["file"] = json!(""), "names no `file`"),
    ];
    for (change, words) in rows {
        let judged = with(change);
        let (id, detail) = refusal(&judged).unwrap_or_else(|| panic!("`{words}` was accepted"));
        assert_eq!(
            (id, judged.findings.len(), judged.dropped.len()),
            ("citations", 0, 1)
        );
        assert!(
            detail.contains("1 of 1 findings do not hold: finding 1: ") && detail.contains(words),
            "{detail}"
        );
    }
}

#[test]
fn only_shown_lines_may_be_cited() {
    let mut scope = ReviewScope::default();
    scope.add("src/a.rs", A, LineRanges::around([2], 1, 7));
    let parts = [ScopePart {
        spans: vec![LineSpan {
            file: "src/a.rs".into(),
            lines: 1..=3,
        }],
    }];
    let reply = |line: usize, quote: &str| {
        let findings = [finding("src/a.rs", line, quote, "is not what it says")];
        json!({"reviewed": reviewed(), "findings": findings})
    };
    let holds = |reply: &Value| judge(&scope, &parts, &RequirementList::default(), &[reply]);
    assert_eq!(refusal(&holds(&reply(1, "fn first() -> u32 {"))), None);
    let unseen = holds(&reply(6, "n.checked_sub(2)"));
    assert!(
        refusal(&unseen)
            .expect("refused")
            .1
            .contains("`src/a.rs:6` was not shown")
    );
}

#[test]
fn review_fails_if_most_findings_are_dropped() {
    let wrong = finding("src/a.rs", 2, "invented", "is not there at all");
    let mut reply = good();
    for (n, is_accepted) in [(1, true), (2, true), (3, true), (4, false)] {
        reply["findings"]
            .as_array_mut()
            .expect("a list")
            .push(wrong.clone());
        let judged = judged(&reply);
        assert_eq!((judged.findings.len(), judged.dropped.len()), (3, n));
        assert_eq!(
            refusal(&judged).is_none(),
            is_accepted,
            "{n} of {} dropped",
            n + 3
        );
    }
}

#[test]
fn duplicate_findings_are_dropped() {
    let mut reply = good();
    let copy = finding(
        "src/a.rs",
        2,
        "second(1).unwrap()",
        "Panics because second(1)  is `None`!",
    );
    reply["findings"]
        .as_array_mut()
        .expect("a list")
        .push(copy.clone());
    let once = judged(&reply);
    assert_eq!(
        (once.findings.len(), once.dropped[0].because.as_str()),
        (3, "says the same as one before it")
    );
    reply["findings"] = json!(vec![copy; 5]);
    let copies = judged(&reply);
    let (id, detail) = refusal(&copies).expect("refused");
    assert_eq!(id, "citations");
    assert!(
        detail.contains(
            "4 of 5 findings do not hold: findings 2, 3, 4, 5: says the same as one before it. "
        ),
        "{detail}"
    );
}

#[test]
fn identical_findings_are_merged() {
    let mut scope = ReviewScope::default();
    scope.add(
        "a.py",
        "try:\n    x()\nexcept:\n    pass\ntry:\n    y()\nexcept:\n    pass\n",
        LineRanges::all(8),
    );
    let parts = [ScopePart {
        spans: vec![LineSpan {
            file: "a.py".into(),
            lines: 1..=8,
        }],
    }];
    let one = |line: usize| finding("a.py", line, "except:\n    pass", "the error is swallowed");
    let reply = |findings: Value| json!({"reviewed": [{"file": "a.py", "checks": ["errors"]}], "findings": findings});
    let judge = |reply: &Value| judge(&scope, &parts, &RequirementList::default(), &[reply]);
    let both = judge(&reply(json!([one(3), one(7)])));
    assert_eq!(
        (refusal(&both), both.findings.len(), both.dropped.len()),
        (None, 1, 0)
    );
    assert_eq!(both.findings[0].also, ["a.py:7"]);
    let more_severe = judge(&reply(
        json!([one(3), {"severity": "critical", "file": "a.py", "line": 7, "quote": "except:", "why": "the error is swallowed"}]),
    ));
    assert_eq!(
        more_severe.findings.len(),
        2,
        "a more severe finding is not merged into a lesser one"
    );
    assert_eq!(
        judge(&reply(json!([one(3), one(3), one(3)]))).dropped.len(),
        2,
        "at one place it is a duplicate"
    );
}

#[test]
fn removed_lines_are_cited_by_following_line() {
    let mut scope = ReviewScope::default();
    scope.add(
        "a.py",
        "def f(n):\n    g(n)\n    return n\n",
        LineRanges::all(3),
    );
    scope.add_removed(
        "a.py",
        2,
        &[
            String::from("    if n < 1:"),
            String::from("        raise ValueError(n)"),
        ],
    );
    scope.add_removed("a.py", 4, &[String::from("print(f(3))")]);
    let parts = [ScopePart {
        spans: vec![LineSpan {
            file: "a.py".into(),
            lines: 1..=3,
        }],
    }];
    let holds = |line: usize, quote: &str| {
        let reply = json!({"reviewed": [{"file": "a.py", "checks": ["errors"]}],
            "findings": [finding("a.py", line, quote, "the guard against small numbers is gone")]});
        let judged = judge(&scope, &parts, &RequirementList::default(), &[&reply]);
        judged
            .findings
            .first()
            .map(|finding| (finding.line, finding.corrected_from, finding.quote.clone()))
    };
    assert_eq!(
        holds(2, "if n < 1:"),
        Some((2, None, String::from("-     if n < 1:")))
    );
    for (line, quote) in [
        (2, "-     if n < 1:\n-         raise ValueError(n)"),
        (2, "raise ValueError(n)"),
        (2, "- raise ValueError(n)"),
    ] {
        assert!(holds(line, quote).is_some(), "{line} {quote}");
    }
    assert!(
        holds(3, "print(f(3))").is_some(),
        "nothing follows, so by the last line"
    );
    for (line, quote, there) in [
        (1, "if n < 1:", 2),
        (3, "if n < 1:", 2),
        (2, "print(f(3))", 3),
        (4, "print(f(3))", 3),
    ] {
        let found = holds(line, quote).map(|(at, from, _)| (at, from));
        assert_eq!(
            found,
            Some((there, Some(line))),
            "{line} {quote}: corrected and marked"
        );
    }
    for (line, quote) in [
        (9, "if n < 1:"),
        (2, "if n < 2:"),
        (2, "raise KeyError(n)"),
        (3, "raise KeyError(n)"),
        (7, "print(f(3))"),
    ] {
        assert_eq!(holds(line, quote), None, "{line} {quote}");
    }
}

#[test]
fn empty_review_must_cover_all_files_and_laws() {
    let reply = |reviewed: Value| judged(&json!({"findings": [], "reviewed": reviewed}));
    assert_eq!(refusal(&reply(reviewed())), None);
    let one = reply(json!([{"file": "src/a.rs", "checks": IRON_LAWS}]));
    assert!(
        matches!(refusal(&one), Some(("coverage", detail)) if detail.contains("`b.py`")),
        "{:?}",
        one.checks
    );
    let unchecked =
        reply(json!([{"file": "src/a.rs", "checks": IRON_LAWS}, {"file": "b.py", "checks": []}]));
    assert!(matches!(refusal(&unchecked), Some(("coverage", _))));
    let named = |check: &str| {
        reply(
            json!([{"file": "src/a.rs", "checks": IRON_LAWS}, {"file": "b.py", "checks": [check]}]),
        )
    };
    assert!(
        matches!(refusal(&named("-")), Some(("coverage", _))),
        "no word at all"
    );
    let incomplete = reply(
        json!([{"file": "src/a.rs", "checks": ["style"]}, {"file": "b.py", "checks": ["tests"]}]),
    );
    let (id, detail) = refusal(&incomplete).expect("refused");
    assert!(
        id == "checks" && detail.contains("leave out `security`, `errors`, `validation`:"),
        "{detail}"
    );
    for (reply, words) in [
        (json!({"findings": []}), "`reviewed` is missing"),
        (json!({"reviewed": reviewed()}), "`findings` is missing"),
        (
            json!({"findings": "none", "reviewed": []}),
            "`findings` is not a list",
        ),
    ] {
        assert!(
            matches!(refusal(&judged(&reply)), Some(("shape", detail)) if detail.contains(words)),
            "{reply}"
        );
    }
}

#[test]
fn shifted_lines_are_corrected_changed_quotes_dropped() {
    let good = good();
    let count = good["findings"].as_array().expect("a list").len();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut reply = good.clone();
        reply["findings"]
            .as_array_mut()
            .expect("a list")
            .iter_mut()
            .for_each(change);
        judged(&reply)
    };
    let shifted = |by: i64| {
        changed(&|finding| {
            finding["line"] = json!(finding["line"].as_i64().expect("a number") + by);
        })
    };
    for by in [-1, 1, 2, 3] {
        let corrected = shifted(by);
        assert_eq!(
            (refusal(&corrected), corrected.dropped.len()),
            (None, 0),
            "{by}"
        );
        assert!(
            corrected
                .findings
                .iter()
                .all(|finding| finding.corrected_from.is_some()),
            "{by}"
        );
        let lines = |review: &JudgedReview| {
            review
                .findings
                .iter()
                .map(|f| (f.line, f.end_line))
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(&corrected), lines(&judged(&good)), "{by}");
        assert!(
            corrected
                .checks
                .iter()
                .any(|check| check.detail().contains("3 line numbers corrected"))
        );
    }
    let far = shifted(4);
    assert_eq!(
        (far.findings.len(), far.dropped.len()),
        (0, count),
        "four lines off is another line"
    );
    let each = |change: &dyn Fn(&mut Value)| {
        let judged = changed(change);
        assert_eq!(
            (judged.findings.len(), judged.dropped.len()),
            (0, count),
            "{:?}",
            judged.findings
        );
        assert_eq!(refusal(&judged).map(|(id, _)| id), Some("citations"));
    };
    let mut classes = BTreeSet::new();
    for at in 0..80 {
        for to in ['x', '7', '(', 'é'] {
            each(&|finding| {
                let mut letters: Vec<char> =
                    finding["quote"].as_str().expect("a text").chars().collect();
                let solid: Vec<usize> = (0..letters.len())
                    .filter(|i| !letters[*i].is_whitespace())
                    .collect();
                let at = solid[at % solid.len()];
                letters[at] = if letters[at] == to { '#' } else { to };
                finding["quote"] = json!(letters.iter().collect::<String>());
            });
            classes.insert(to);
        }
    }
    assert_eq!(classes.len(), 4);
}

proptest! {
    #[test]
    fn arbitrary_reply_does_not_panic(text in "\\PC{0,60}", line in any::<i64>(), list in any::<bool>()) {
        let finding = json!({"severity": text, "file": text, "line": line, "end_line": line, "quote": text, "why": text});
        let finding = if list { json!([finding]) } else { finding };
        let checks = json!({"file": text, "checks": [text, line]});
        let _ = judged(&json!({"findings": [finding, text, line], "reviewed": [checks, text]}));
    }
}
