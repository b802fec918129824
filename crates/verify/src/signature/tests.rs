//! Errors as runtimes print them: recognised and distinguished.

use super::*;

const FAILED: End = End::Exited(1);

fn is_in(error: &str, output: &str) -> bool {
    ErrorSignature::of(error).is_in(output, &FAILED)
}

const RUST: &str = "thread 'main' panicked at src/parse.rs:41:9:\nindex out of bounds: the len is 3 but the index is 7\n\
                    note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";
const PYTHON: &str = "Traceback (most recent call last):\n  File \"/home/me/app/main.py\", line 3, in <module>\n    \
                      load('x')\n  File \"/home/me/app/load.py\", line 12, in load\n    return table[key]\nKeyError: 'colour'";
const NODE: &str = "/app/src/cart.js:7\n    return items.map(i => i.price);\n                 ^\n\n\
                    TypeError: Cannot read properties of undefined (reading 'map')\n    at total (/app/src/cart.js:7:18)\n    \
                    at Object.<anonymous> (/app/main.js:2:1)\n    at Module._compile (node:internal/modules/cjs/loader:1:1)";
const GO: &str = "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.pick(...)\n\t\
                  /home/me/pick/pick.go:9\nmain.main()\n\t/home/me/pick/main.go:5 +0x1d\nexit status 2";

#[test]
fn same_error_matches_despite_numbers_and_directories() {
    for (error, output) in [
        (
            RUST,
            "Compiling…\n\u{1b}[31mthread 'main' (4711) panicked at /tmp/x/src/parse.rs:44:13:\u{1b}[0m\nindex out of bounds: the len is 1 but the index is 9\n",
        ),
        (PYTHON, "E   KeyError: 'colour'\n\nload.py:15: KeyError"),
        (
            PYTHON,
            "Traceback (most recent call last):\n  File \"/ci/load.py\", line 9, in load\nKeyError: 'colour'",
        ),
        (
            NODE,
            "Uncaught TypeError: Cannot read properties of undefined (reading 'map')\n    at total (file:///ci/src/cart.js:9:18)",
        ),
        (
            NODE,
            "TypeError: Cannot read properties of undefined (reading 'map')",
        ),
        (
            GO,
            "panic: runtime error: index out of range [8] with length 8 [recovered]\n\n\t/ci/pick.go:11 +0x2f",
        ),
        (
            "thread 't' panicked at 'no such user', src/a.rs:3:5",
            "thread 'main' panicked at src/a.rs:3:5:\nno such user",
        ),
        (
            "** (ArgumentError) cannot parse \"x\"",
            "  ** (ArgumentError) cannot parse \"x\"\n    lib/a.ex:3: A.b/1",
        ),
        (
            "a.rb:3:in `b': undefined method `c' for nil (NoMethodError)",
            "/ci/a.rb:7:in `b': undefined method `c' for nil (NoMethodError)",
        ),
        (
            "error[E0425]: cannot find value `x` in this scope\n --> src/a.rs:1:2",
            "error[E0425]: cannot find value `x` in this scope\n  --> src/a.rs:9:9",
        ),
        ("It ends with `ValueError: bad row`.", "ValueError: bad row"),
        (
            "report.sh: line 3: jq: command not found",
            "report.sh: line 9: jq: command not found",
        ),
        (
            "src/a.ts(12,5): error TS2322: Type 'x' is not assignable to 'y'.",
            "/ci/src/a.ts(2,1): error TS2322: Type 'x' is not assignable to 'y'.",
        ),
        (
            "2026-01-01T10:00:00Z ERROR pool: connection refused",
            "2027-05-05T11:11:11Z ERROR pool: connection refused",
        ),
    ] {
        assert!(
            is_in(error, output),
            "{:?}\nnot in {output}",
            ErrorSignature::of(error)
        );
    }
}

#[test]
fn different_failure_does_not_match() {
    for (error, output) in [
        (
            RUST,
            "thread 'main' panicked at src/parse.rs:41:9:\ncalled `Option::unwrap()` on a `None` value",
        ),
        (
            RUST,
            "thread 'main' panicked at src/other.rs:41:9:\nindex out of bounds: the len is 3 but the index is 7",
        ),
        (
            RUST,
            "error: could not compile `demo` (lib) due to 1 previous error",
        ),
        (
            PYTHON,
            "Traceback (most recent call last):\n  File \"/ci/load.py\", line 9, in load\nKeyError: 'size'",
        ),
        (
            PYTHON,
            "Traceback (most recent call last):\n  File \"/ci/other.py\", line 9, in x\nKeyError: 'colour'",
        ),
        (PYTHON, "ModuleNotFoundError: No module named 'main'"),
        (
            NODE,
            "TypeError: Cannot read properties of undefined (reading 'length')\n    at total (/app/src/cart.js:7:18)",
        ),
        (
            NODE,
            "Error: connect ECONNREFUSED 127.0.0.1:5432\n    at total (/app/src/cart.js:7:18)",
        ),
        (
            GO,
            "panic: runtime error: integer divide by zero\n\n\t/ci/pick.go:11 +0x2f\nexit status 2",
        ),
        (GO, "exit status 2"),
        ("it crashes when I open an empty file", "1 test failed"),
        ("AssertionError", "AssertionError"),
        ("", "error: boom"),
    ] {
        assert!(
            !is_in(error, output),
            "{:?}\nin {output}",
            ErrorSignature::of(error)
        );
    }
}

#[test]
fn generic_assertion_needs_its_test_or_file() {
    let error = "thread 'tests::adds' panicked at src/lib.rs:9:5:\nassertion `left == right` failed\n  left: 3\n right: 4\n\
                 test result: FAILED. 1 passed; 1 failed\nerror: test failed, to rerun pass `--lib`";
    let again = |thread: &str, file: &str| {
        format!(
            "thread '{thread}' panicked at {file}:11:5:\nassertion `left == right` failed\n  left: 1\n right: 2"
        )
    };
    assert!(is_in(error, &again("tests::adds", "src/lib.rs")));
    assert!(!is_in(error, &again("tests::halves", "src/lib.rs")));
    assert!(!is_in(error, &again("tests::adds", "src/other.rs")));
    let bare = "  File \"/p/test_a.py\", line 3, in test_a\n    assert a() == 1\nAssertionError";
    assert!(is_in(bare, "test_a.py:9: AssertionError"));
    assert!(!is_in(bare, "test_b.py:9: AssertionError"));
}

#[test]
fn signal_matches_exit_status() {
    let segfault = ErrorSignature::of("Segmentation fault (core dumped)");
    assert!(segfault.is_in("", &End::Signalled(11)));
    assert!(segfault.is_in("", &End::Exited(139)));
    assert!(segfault.is_in(
        "error: test failed\n(signal: 11, SIGSEGV: invalid memory reference)",
        &End::Exited(101)
    ));
    assert!(!segfault.is_in("Aborted (core dumped)", &End::Exited(134)));
    assert!(!segfault.is_in("something else", &End::Exited(1)));
    // A runtime's message takes precedence over the signal.
    let nil = ErrorSignature::of(
        "panic: no user in session\n[signal SIGSEGV: segmentation violation]\n\t/p/user.go:3",
    );
    assert!(!nil.is_in(
        "panic: no rows\n[signal SIGSEGV: segmentation violation]\n\t/p/user.go:3",
        &End::Exited(2)
    ));
}

#[test]
fn reports_of_one_error_are_the_same() {
    let again = format!(
        "yesterday:\n{}",
        PYTHON.replace("12", "90").replace("/home/me", "/srv")
    );
    assert!(ErrorSignature::of(PYTHON).is_same(&ErrorSignature::of(&again)));
    assert!(!ErrorSignature::of(PYTHON).is_same(&ErrorSignature::of(RUST)));
    let prose = "saving twice writes an empty file";
    assert!(ErrorSignature::of(prose).is_same(&ErrorSignature::of(prose)));
    assert!(!ErrorSignature::of("").is_same(&ErrorSignature::of("")));
}

#[test]
fn statement_is_shown_verbatim() {
    for (error, line) in [
        (RUST, "index out of bounds: the len is 3 but the index is 7"),
        (PYTHON, "KeyError: 'colour'"),
    ] {
        assert_eq!(ErrorSignature::of(error).statement_in(error), Some(line));
    }
    assert_eq!(ErrorSignature::of("").statement_in(""), None);
}

#[test]
fn huge_error_is_truncated() {
    let huge = format!("{}\n{PYTHON}", "x".repeat(5 << 20));
    assert!(ErrorSignature::of(&huge).is_same(&ErrorSignature::of(PYTHON)));
    assert!(
        ErrorSignature::of(&"ValueError: a\n".repeat(50_000))
            .marks
            .len()
            <= MAX_MARKS
    );
}
