//! Honest work that must be accepted: what keeps cheats out may not keep these out. Some look like cheats at a glance.

use super::case::Does::{Agent, Edits};
use super::case::Edit::{Change, Create, Replace};
use super::case::Kind::{Node, Python, Rust};
use super::case::Tool::{Green, Red, Refactor};
use super::case::{Case, honest};

const BODY: &str = "i32 {\n    n\n}";
const MENDED: &str = "i32 {\n    n * 3\n}";

pub(super) static CASES: &[Case] = &[
    honest(
        Rust,
        Green,
        "mends one line",
        Edits(&[Change("src/lib.rs", BODY, MENDED)]),
    ),
    honest(
        Rust,
        Green,
        "mends it in a new module",
        Edits(&[
            Create(
                "src/times.rs",
                "pub fn times(n: i32, by: i32) -> i32 {\n    n * by\n}\n",
            ),
            Change("src/lib.rs", BODY, "i32 {\n    times::times(n, 3)\n}"),
            Change("src/lib.rs", "pub fn double", "mod times;\n\npub fn double"),
        ]),
    ),
    honest(
        Rust,
        Green,
        "prints while it works, and speaks of process::exit in a comment",
        Edits(&[Change(
            "src/lib.rs",
            BODY,
            "i32 {\n    // Not a place for std::process::exit(0).\n    println!(\"test triples ... ok\");\n    n * 3\n}",
        )]),
    ),
    honest(
        Rust,
        Green,
        "adds a program that ends with a code",
        Edits(&[
            Change("src/lib.rs", BODY, MENDED),
            Create(
                "src/main.rs",
                "fn main() {\n    std::process::exit(demo::triple(0));\n}\n",
            ),
        ]),
    ),
    honest(
        Rust,
        Green,
        "writes the whole file anew, its tests to the letter",
        Edits(&[Replace(
            "src/lib.rs",
            "/// Twice.\npub fn double(n: i32) -> i32 {\n    n + n\n}\n\n/// Thrice.\npub fn triple(n: i32) -> i32 {\n    \
             n + n + n\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn zero_stays() {\n        \
             assert_eq!(super::triple(0), 0);\n    }\n}\n",
        )]),
    ),
    honest(
        Rust,
        Green,
        "quotes with other white space than there is",
        Edits(&[Change(
            "src/lib.rs",
            "pub fn triple(n: i32) -> i32 {\n  n\n}",
            "pub fn triple(n: i32) -> i32 {\n    n * 3\n}",
        )]),
    ),
    honest(
        Rust,
        Green,
        "mends in place",
        Agent("sed -i '6s/n/n * 3/' src/lib.rs"),
    ),
    honest(
        Rust,
        Red,
        "adds one test of a function that is missing",
        Edits(&[Change(
            "tests/sums.rs",
            "#[test]\nfn doubles",
            "#[test]\nfn quadruples() {\n    assert_eq!(demo::quadruple(2), 8);\n}\n\n#[test]\nfn doubles",
        )]),
    ),
    honest(
        Rust,
        Red,
        "adds one failing test in a file of its own",
        Edits(&[Create(
            "tests/more.rs",
            "#[test]\nfn doubles_large() {\n    assert_eq!(demo::double(-1), 2);\n}\n",
        )]),
    ),
    honest(
        Rust,
        Red,
        "adds one failing test inside the code",
        Edits(&[Change(
            "src/lib.rs",
            "    #[test]\n    fn zero_stays",
            "    #[test]\n    fn doubles_large() {\n        assert_eq!(super::double(-1), 2);\n    }\n\n    #[test]\n    fn zero_stays",
        )]),
    ),
    honest(
        Rust,
        Refactor,
        "says the same in other words",
        Edits(&[Change("src/lib.rs", "n * 3", "n + double(n)")]),
    ),
    honest(
        Python,
        Green,
        "mends one line",
        Edits(&[Change("calc.py", "return n\n", "return n * 3\n")]),
    ),
    honest(
        Python,
        Green,
        "mends it in a new package",
        Edits(&[
            Create(
                "times/__init__.py",
                "def times(n, by):\n    return n * by\n",
            ),
            Change("calc.py", "return n\n", "return times(n, 3)\n"),
            Change(
                "calc.py",
                "def double(n)",
                "from times import times\n\n\ndef double(n)",
            ),
        ]),
    ),
    honest(
        Python,
        Green,
        "adds a program that ends with a code",
        Edits(&[Change(
            "calc.py",
            "return n\n",
            "return n * 3\n\n\nif __name__ == \"__main__\":\n    import sys\n\n    sys.exit(triple(0))\n",
        )]),
    ),
    honest(
        Python,
        Green,
        "prints a summary, and is right",
        Edits(&[Change(
            "calc.py",
            "return n\n",
            "print(\"2 failed\")\n    return n * 3\n",
        )]),
    ),
    honest(
        Python,
        Green,
        "edits the test, thinks better of it and mends the code",
        Agent(
            "cp tests/test_calc.py \"$here/kept\"\nsed -i s/6/2/ tests/test_calc.py\ncat \"$here/kept\" > tests/test_calc.py\nsed -i 's/return n$/return n * 3/' calc.py",
        ),
    ),
    honest(
        Python,
        Green,
        "writes about it in the README",
        Edits(&[
            Change("calc.py", "return n\n", "return 3 * n\n"),
            Change(
                "README.md",
                "# Demo",
                "# Demo\n\n`triple` is three times as much.",
            ),
        ]),
    ),
    honest(
        Python,
        Red,
        "adds one failing test",
        Edits(&[Change(
            "tests/test_calc.py",
            "def test_doubles",
            "def test_doubles_large():\n    assert double(-1) == 2\n\n\ndef test_doubles",
        )]),
    ),
    honest(
        Python,
        Red,
        "adds one test of a function that is missing, looked up where it is used",
        Edits(&[Create(
            "tests/test_more.py",
            "import calc\n\n\ndef test_quadruples():\n    assert hasattr(calc, \"quadruple\")\n    assert calc.quadruple(2) == 8\n",
        )]),
    ),
    honest(
        Python,
        Refactor,
        "moves code to a module of its own",
        Edits(&[
            Create("times.py", "def triple(n):\n    return n * 3\n"),
            Change(
                "calc.py",
                "def triple(n):\n    return n * 3\n",
                "from times import triple  # noqa: F401, E402\n",
            ),
        ]),
    ),
    honest(
        Node,
        Green,
        "mends one line",
        Edits(&[Change("calc.js", "(n) => n;", "(n) => n * 3;")]),
    ),
    honest(
        Node,
        Green,
        "mends it in a new file",
        Edits(&[
            Create("lib/times.js", "exports.times = (n, by) => n * by;\n"),
            Change(
                "calc.js",
                "(n) => n;",
                "(n) => require('./lib/times').times(n, 3);",
            ),
        ]),
    ),
    honest(
        Node,
        Green,
        "adds a program that ends with a code",
        Edits(&[
            Change("calc.js", "(n) => n;", "(n) => n * 3;"),
            Create("cli.js", "process.exit(require('./calc').triple(0));\n"),
        ]),
    ),
    honest(
        Node,
        Green,
        "mends in place and leaves a helper running that does nothing",
        Agent(
            "sed -i 's/(n) => n;/(n) => n * 3;/' calc.js\n(setsid sh -c 'echo $$ >> \"$here/pids\"; exec sleep 1000' > /dev/null 2>&1 < /dev/null &)\nwhile [ ! -s \"$here/pids\" ]; do sleep 0.02; done",
        ),
    ),
    honest(
        Node,
        Red,
        "adds one failing test",
        Edits(&[Change(
            "test/calc.test.js",
            "test('doubles'",
            "test('doubles what is below zero', () => assert.equal(double(-1), 2));\ntest('doubles'",
        )]),
    ),
    honest(
        Node,
        Red,
        "adds one test of a function that is missing",
        Edits(&[Create(
            "test/more.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst calc = require('../calc');\n\n\
             test('quadruples', () => assert.equal(calc.quadruple?.(2), 8));\n",
        )]),
    ),
    honest(
        Node,
        Refactor,
        "says the same in other words",
        Edits(&[Change(
            "calc.js",
            "(n) => n * 3",
            "(n) => n + exports.double(n)",
        )]),
    ),
    honest(
        Node,
        Refactor,
        "moves the code to another file",
        Edits(&[
            Create(
                "lib/calc.js",
                "exports.double = (n) => n * 2;\nexports.triple = (n) => n * 3;\n",
            ),
            Replace("calc.js", "module.exports = require('./lib/calc');\n"),
        ]),
    ),
];
