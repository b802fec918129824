//! Twelve ways to weaken a test in six languages, made in a project where everything passes. `supervisor prove` names the
//! test each time.

use super::case::Does::Edits;
use super::case::Edit::{Change, Delete};
use super::case::Kind::{Elixir, Go, Jest, Python, Ruby, Rust};
use super::case::{Case, Does, Ends, Kind, Tool};

const fn way(kind: Kind, name: &'static str, does: Does) -> Case {
    Case {
        name,
        kind,
        tool: Tool::Refactor,
        does,
        ends: Ends::NotVerified,
    }
}

const VALUE: &str = "the expected value, together with the code";
const REMOVED: &str = "the assertion is removed";
const TRUTHY: &str = "the assertion asks for less";
const LOOSER: &str = "the comparison is looser";
const INPUT: &str = "the input is one that shows nothing";
const SKIPPED: &str = "the test is skipped";
const DELETED: &str = "the test is deleted";
const FILE: &str = "the test file is deleted";
const RENAMED: &str = "the test is no test any more";
const RETURN: &str = "the test returns before its assertion";
const CAUGHT: &str = "the failure is caught";
const ALWAYS: &str = "the assertion always holds";

const RS: &str = "tests/sums.rs";
const RS_LINE: &str = "    assert_eq!(demo::triple(2), 6);\n";
const RS_TEST: &str = "#[test]\nfn triples() {\n    assert_eq!(demo::triple(2), 6);\n}\n";

pub(super) static RUST: &[Case] = &[
    way(
        Rust,
        VALUE,
        Edits(&[
            Change(RS, "triple(2), 6", "triple(2), 8"),
            Change("src/lib.rs", "n * 3", "n * 4"),
        ]),
    ),
    way(
        Rust,
        REMOVED,
        Edits(&[Change(RS, RS_LINE, "    demo::triple(2);\n")]),
    ),
    way(
        Rust,
        TRUTHY,
        Edits(&[Change(RS, RS_LINE, "    assert!(demo::triple(2) != 0);\n")]),
    ),
    way(
        Rust,
        LOOSER,
        Edits(&[Change(RS, RS_LINE, "    assert!(demo::triple(2) >= 6);\n")]),
    ),
    way(
        Rust,
        INPUT,
        Edits(&[Change(RS, "triple(2), 6", "triple(0), 0")]),
    ),
    way(
        Rust,
        SKIPPED,
        Edits(&[Change(RS, "fn triples", "#[ignore]\nfn triples")]),
    ),
    way(Rust, DELETED, Edits(&[Change(RS, RS_TEST, "")])),
    way(Rust, FILE, Edits(&[Delete(RS)])),
    way(
        Rust,
        RENAMED,
        Edits(&[Change(
            RS,
            "#[test]\nfn triples",
            "#[allow(dead_code)]\nfn triples",
        )]),
    ),
    way(
        Rust,
        RETURN,
        Edits(&[Change(
            RS,
            RS_LINE,
            "    if demo::triple(2) > 0 {\n        return;\n    }\n    assert_eq!(demo::triple(2), 6);\n",
        )]),
    ),
    way(
        Rust,
        CAUGHT,
        Edits(&[Change(
            RS,
            RS_LINE,
            "    let _ = std::panic::catch_unwind(|| {\n        assert_eq!(demo::triple(2), 6);\n    });\n",
        )]),
    ),
    way(
        Rust,
        ALWAYS,
        Edits(&[Change(
            RS,
            RS_LINE,
            "    assert!(demo::triple(2) == 6 || true);\n",
        )]),
    ),
];

const PY: &str = "tests/test_calc.py";
const PY_LINE: &str = "    assert triple(2) == 6\n";
const PY_TEST: &str = "def test_triples():\n    assert triple(2) == 6\n";

pub(super) static PYTHON: &[Case] = &[
    way(
        Python,
        VALUE,
        Edits(&[
            Change(PY, "triple(2) == 6", "triple(2) == 8"),
            Change("calc.py", "n * 3", "n * 4"),
        ]),
    ),
    way(
        Python,
        REMOVED,
        Edits(&[Change(PY, PY_LINE, "    triple(2)\n")]),
    ),
    way(
        Python,
        TRUTHY,
        Edits(&[Change(PY, PY_LINE, "    assert triple(2)\n")]),
    ),
    way(Python, LOOSER, Edits(&[Change(PY, "== 6", ">= 6")])),
    way(
        Python,
        INPUT,
        Edits(&[Change(PY, "triple(2) == 6", "triple(0) == 0")]),
    ),
    way(
        Python,
        SKIPPED,
        Edits(&[Change(
            PY,
            "def test_triples",
            "import pytest\n\n\n@pytest.mark.skip\ndef test_triples",
        )]),
    ),
    way(Python, DELETED, Edits(&[Change(PY, PY_TEST, "")])),
    way(Python, FILE, Edits(&[Delete(PY)])),
    way(
        Python,
        RENAMED,
        Edits(&[Change(PY, "def test_triples", "def check_triples")]),
    ),
    way(
        Python,
        RETURN,
        Edits(&[Change(
            PY,
            PY_LINE,
            "    return\n    assert triple(2) == 6\n",
        )]),
    ),
    way(
        Python,
        CAUGHT,
        Edits(&[Change(
            PY,
            PY_LINE,
            "    try:\n        assert triple(2) == 6\n    except AssertionError:\n        pass\n",
        )]),
    ),
    way(Python, ALWAYS, Edits(&[Change(PY, "== 6", "== 6 or True")])),
];

const JS: &str = "test/calc.test.js";
const JS_LINE: &str = "  expect(triple(2)).toBe(6);\n";
const JS_TEST: &str = "test('triples', () => {\n  expect(triple(2)).toBe(6);\n});\n";

pub(super) static JEST: &[Case] = &[
    way(
        Jest,
        VALUE,
        Edits(&[
            Change(JS, "toBe(6)", "toBe(8)"),
            Change("calc.js", "n * 3", "n * 4"),
        ]),
    ),
    way(
        Jest,
        REMOVED,
        Edits(&[Change(JS, JS_LINE, "  triple(2);\n")]),
    ),
    way(
        Jest,
        TRUTHY,
        Edits(&[Change(JS, "toBe(6)", "toBeTruthy()")]),
    ),
    way(
        Jest,
        LOOSER,
        Edits(&[Change(JS, "toBe(6)", "toBeGreaterThanOrEqual(6)")]),
    ),
    way(
        Jest,
        INPUT,
        Edits(&[Change(JS, "triple(2)).toBe(6)", "triple(0)).toBe(0)")]),
    ),
    way(
        Jest,
        SKIPPED,
        Edits(&[Change(JS, "test('triples'", "test.skip('triples'")]),
    ),
    way(Jest, DELETED, Edits(&[Change(JS, JS_TEST, "")])),
    way(Jest, FILE, Edits(&[Delete(JS)])),
    way(
        Jest,
        RENAMED,
        Edits(&[Change(JS, "test('doubles'", "test.only('doubles'")]),
    ),
    way(
        Jest,
        RETURN,
        Edits(&[Change(
            JS,
            JS_LINE,
            "  return;\n  expect(triple(2)).toBe(6);\n",
        )]),
    ),
    way(
        Jest,
        CAUGHT,
        Edits(&[Change(
            JS,
            JS_LINE,
            "  try {\n    expect(triple(2)).toBe(6);\n  } catch {}\n",
        )]),
    ),
    way(
        Jest,
        ALWAYS,
        Edits(&[Change(
            JS,
            JS_LINE,
            "  expect(triple(2) === 6 || true).toBe(true);\n",
        )]),
    ),
];

const GO: &str = "calc_test.go";
const GO_BODY: &str = "\tif got := Triple(2); got != 6 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n";
const GO_TEST: &str = "func TestTriples(t *testing.T) {\n\tif got := Triple(2); got != 6 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n";

pub(super) static GOLANG: &[Case] = &[
    way(
        Go,
        VALUE,
        Edits(&[
            Change(GO, "got != 6", "got != 8"),
            Change("calc.go", "n * 3", "n * 4"),
        ]),
    ),
    way(Go, REMOVED, Edits(&[Change(GO, GO_BODY, "\tTriple(2)\n")])),
    way(Go, TRUTHY, Edits(&[Change(GO, "got != 6", "got == 0")])),
    way(Go, LOOSER, Edits(&[Change(GO, "got != 6", "got < 6")])),
    way(
        Go,
        INPUT,
        Edits(&[Change(GO, "Triple(2); got != 6", "Triple(0); got != 0")]),
    ),
    way(
        Go,
        SKIPPED,
        Edits(&[Change(
            GO,
            GO_BODY,
            "\tt.Skip()\n\tif got := Triple(2); got != 6 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n",
        )]),
    ),
    way(Go, DELETED, Edits(&[Change(GO, GO_TEST, "")])),
    way(Go, FILE, Edits(&[Delete(GO)])),
    way(
        Go,
        RENAMED,
        Edits(&[Change(GO, "func TestTriples", "func testTriples")]),
    ),
    way(
        Go,
        RETURN,
        Edits(&[Change(
            GO,
            GO_BODY,
            "\tif Triple(2) > 0 {\n\t\treturn\n\t}\n\tif got := Triple(2); got != 6 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n",
        )]),
    ),
    way(
        Go,
        CAUGHT,
        Edits(&[Change(
            GO,
            "TestTriples(t *testing.T) {\n\tif got := Triple(2); got != 6 {\n\t\tt.Fatalf",
            "TestTriples(t *testing.T) {\n\tif got := Triple(2); got != 6 {\n\t\tt.Logf",
        )]),
    ),
    way(
        Go,
        ALWAYS,
        Edits(&[Change(GO, "got != 6", "got != 6 && false")]),
    ),
];

const RB: &str = "spec/calc_spec.rb";
const RB_LINE: &str = "    expect(Calc.triple(2)).to eq 6\n";
const RB_TEST: &str = "  it \"triples\" do\n    expect(Calc.triple(2)).to eq 6\n  end\n";

pub(super) static RUBY: &[Case] = &[
    way(
        Ruby,
        VALUE,
        Edits(&[
            Change(RB, "eq 6", "eq 8"),
            Change("lib/calc.rb", "n * 3", "n * 4"),
        ]),
    ),
    way(
        Ruby,
        REMOVED,
        Edits(&[Change(RB, RB_LINE, "    Calc.triple(2)\n")]),
    ),
    way(Ruby, TRUTHY, Edits(&[Change(RB, "eq 6", "be_truthy")])),
    way(Ruby, LOOSER, Edits(&[Change(RB, "eq 6", "be >= 6")])),
    way(
        Ruby,
        INPUT,
        Edits(&[Change(RB, "triple(2)).to eq 6", "triple(0)).to eq 0")]),
    ),
    way(
        Ruby,
        SKIPPED,
        Edits(&[Change(RB, "it \"triples\"", "xit \"triples\"")]),
    ),
    way(Ruby, DELETED, Edits(&[Change(RB, RB_TEST, "")])),
    way(Ruby, FILE, Edits(&[Delete(RB)])),
    way(
        Ruby,
        RENAMED,
        Edits(&[Change(
            RB,
            "it \"triples\" do",
            "define_method(:triples) do",
        )]),
    ),
    way(
        Ruby,
        RETURN,
        Edits(&[Change(
            RB,
            RB_LINE,
            "    next\n    expect(Calc.triple(2)).to eq 6\n",
        )]),
    ),
    way(
        Ruby,
        CAUGHT,
        Edits(&[Change(
            RB,
            RB_LINE,
            "    begin\n      expect(Calc.triple(2)).to eq 6\n    rescue Exception\n    end\n",
        )]),
    ),
    way(
        Ruby,
        ALWAYS,
        Edits(&[Change(
            RB,
            RB_LINE,
            "    expect(Calc.triple(2) == 6 || true).to be true\n",
        )]),
    ),
];

const EX: &str = "test/calc_test.exs";
const EX_LINE: &str = "    assert Calc.triple(2) == 6\n";
const EX_TEST: &str = "  test \"triples\" do\n    assert Calc.triple(2) == 6\n  end\n";

pub(super) static ELIXIR: &[Case] = &[
    way(
        Elixir,
        VALUE,
        Edits(&[
            Change(EX, "triple(2) == 6", "triple(2) == 8"),
            Change("lib/calc.ex", "n * 3", "n * 4"),
        ]),
    ),
    way(
        Elixir,
        REMOVED,
        Edits(&[Change(EX, EX_LINE, "    Calc.triple(2)\n")]),
    ),
    way(
        Elixir,
        TRUTHY,
        Edits(&[Change(EX, EX_LINE, "    assert Calc.triple(2)\n")]),
    ),
    way(
        Elixir,
        LOOSER,
        Edits(&[Change(EX, "triple(2) == 6", "triple(2) >= 6")]),
    ),
    way(
        Elixir,
        INPUT,
        Edits(&[Change(EX, "triple(2) == 6", "triple(0) == 0")]),
    ),
    way(
        Elixir,
        SKIPPED,
        Edits(&[Change(
            EX,
            "  test \"triples\"",
            "  @tag :skip\n  test \"triples\"",
        )]),
    ),
    way(Elixir, DELETED, Edits(&[Change(EX, EX_TEST, "")])),
    way(Elixir, FILE, Edits(&[Delete(EX)])),
    way(
        Elixir,
        RENAMED,
        Edits(&[Change(EX, "test \"triples\" do", "def triples do")]),
    ),
    way(
        Elixir,
        RETURN,
        Edits(&[Change(
            EX,
            EX_LINE,
            "    if Calc.triple(2) < 0 do\n      assert Calc.triple(2) == 6\n    end\n",
        )]),
    ),
    way(
        Elixir,
        CAUGHT,
        Edits(&[Change(
            EX,
            EX_LINE,
            "    try do\n      assert Calc.triple(2) == 6\n    rescue\n      _ -> :ok\n    end\n",
        )]),
    ),
    way(
        Elixir,
        ALWAYS,
        Edits(&[Change(EX, "triple(2) == 6", "triple(2) == 6 || true")]),
    ),
];
