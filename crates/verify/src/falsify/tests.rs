use super::*;

mod names;
mod rows;

fn tests(file: &str, source: &str, names: &[&str]) -> FalsifiableTests {
    let names: Vec<TestName> = names.iter().map(|name| TestName::from(*name)).collect();
    FalsifiableTests::find(Path::new(file), source, &names).expect("a language we know")
}

/// Every possible change of an expectation, as the lines that differ.
fn changed(file: &str, source: &str, name: &str) -> Vec<String> {
    let tests = tests(file, source, &[name]);
    assert!(
        tests.missing.is_empty(),
        "{file}: {name} was not found\n{:#?}",
        tests.source.sites
    );
    let challenges = tests.challenges(&mut fastrand::Rng::with_seed(3));
    let mut in_order: Vec<usize> = (0..challenges.len()).collect();
    in_order.sort_by_key(|at| challenges[*at].range.start);
    let mut all = Vec::new();
    for at in in_order {
        let challenge = &challenges[at];
        if challenge.changes.is_empty() {
            all.push(String::from("not understood"));
        }
        for (way, change) in challenge.changes.iter().enumerate() {
            let made = tests.with_changes(&challenges, &[(at, way)]).files;
            let sure = if change.is_sure { "" } else { "? " };
            let lines: Vec<&str> = made
                .text
                .lines()
                .zip(source.lines())
                .filter(|(new, old)| new != old)
                .map(|(new, _)| new.trim())
                .collect();
            all.push(format!("{sure}{}", lines.join(" | ")));
        }
    }
    all
}

fn failing(file: &str, source: &str, name: &str) -> String {
    let tests = tests(file, source, &[name]);
    assert!(
        tests.missing.is_empty(),
        "{file}: {name} was not found\n{:#?}",
        tests.source.sites
    );
    tests
        .with_failing_assertions(&mut fastrand::Rng::with_seed(3), &[0])
        .files
        .text
}

const RUST: &str = r#"
const LIMIT: u32 = 40;
mod roman {
    #[test]
    fn nine_is_ix() {
        assert_eq!(demo::roman(9), "IX");
    }
    #[test]
    fn bound() {
        let expected = vec![1, 2];
        let input = 7;
        assert_eq!(demo::list(input), expected);
        assert_eq!(demo::same(input), input);
    }
    #[test]
    fn table() -> Result<(), String> {
        for (input, expected) in [(1, "I"), (5, "V")] {
            assert_eq!(demo::roman(input), expected, "for {input}");
        }
        assert!(demo::is_roman("X"));
        Ok(())
    }
    #[test]
    #[should_panic(expected = "too large")]
    fn panics() {
        demo::roman(4000);
    }
    #[test]
    fn limits() {
        if cfg!(windows) {
            assert_eq!(demo::limit(), 3);
        }
        assert_eq!(demo::limit(), LIMIT)
    }
}
"#;

#[test]
fn rust_expectations_are_changed() {
    let of = |name: &str| changed("tests/a.rs", RUST, &format!("demo::a roman::{name}"));
    insta::assert_snapshot!(
        ["nine_is_ix", "bound", "table", "panics", "limits"]
            .map(|name| format!("{name}: {:?}", of(name)))
            .join("\n")
    );
    insta::assert_snapshot!(
        ["nine_is_ix", "table", "panics", "limits"]
            .map(|name| failing("tests/a.rs", RUST, &format!("demo::a roman::{name}")))
            .join("\n----\n")
    );
}

/// A value that is both input and expectation can only be changed in the assertion.
#[test]
fn round_trip_value_is_not_changed_in_table() {
    let python = "import pytest\n\n@pytest.mark.parametrize(\"value\", [1, \"a\"])\ndef test_same(value):\n    assert loads(dumps(value)) == value\n";
    let all = changed("tests/test_a.py", python, "tests/test_a.py::test_same[1]");
    assert!(
        !all.is_empty() && all.iter().all(|line| line.starts_with("assert ")),
        "{all:?}"
    );
    let before = "import pytest\n\n@pytest.mark.parametrize(\"value\", [1, 2])\ndef test_same(value):\n    text = dumps(value)\n    assert loads(text) == value\n";
    let all = changed("tests/test_a.py", before, "tests/test_a.py::test_same[1]");
    assert!(
        !all.is_empty() && all.iter().all(|line| line.starts_with("assert ")),
        "{all:?}"
    );
    // A message that repeats the expected value is not an input.
    let go = "package a\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\ttests := []struct{ in, want int }{\n\t\t{in: 1, want: 2},\n\t}\n\tfor _, tt := range tests {\n\t\tif got := Double(tt.in); got != tt.want {\n\t\t\tt.Errorf(\"got %d, want %d\", got, tt.want)\n\t\t}\n\t}\n}\n";
    let all = changed("a_test.go", go, "a::TestDouble");
    assert!(
        all.iter().any(|line| line.starts_with("{in: 1, want: ")),
        "{all:?}"
    );
}

#[test]
fn rows_between_comments_are_changed() {
    let python = "import pytest\n\n@pytest.mark.parametrize(\n    \"n, expected\",\n    [\n        (1, \"I\"),\n        # Larger, \"even\" (2, 4), ones.\n        (2, \"II\"),  # both, or one\n        (3, \"III\"),\n    ],\n)\ndef test_rows(n, expected):\n    assert roman(n) == expected\n";
    let all = changed("tests/test_a.py", python, "tests/test_a.py::test_rows[1-I]");
    let rows = ["(1, \"I", "(2, \"II", "(3, \"III"];
    assert!(
        all.iter()
            .all(|change| rows.iter().all(|row| change.contains(row))),
        "{all:?}"
    );
    assert!(
        !all.is_empty() && !all.concat().contains("Larger"),
        "{all:?}"
    );
}

const PYTHON: &str = r#"
import pytest, unittest

CASES = [(1, "I"), (2, "II")]

def test_plain():
    assert roman(9) == "IX"

@pytest.mark.parametrize("n, expected", [(1, "I"), (2, "II")])
def test_rows(n, expected):
    assert roman(n) == expected

def test_loop():
    for n, expected in CASES:
        assert roman(n) == expected

def test_raises():
    with pytest.raises(ValueError):
        roman(-1)

def test_truth():
    assert is_roman("X")
    assert roman(None) is None

class RomanTest(unittest.TestCase):
    def test_method(self):
        expected = {"a": [1, 2]}
        self.assertEqual(parse("a"), expected)

    def test_skips(self):
        if not ready():
            return
        self.assertTrue(parse("b"))
"#;

#[test]
fn python_expectations_are_changed() {
    let names = [
        "test_plain",
        "test_rows[1-I]",
        "test_loop",
        "test_raises",
        "test_truth",
        "RomanTest::test_method",
        "RomanTest::test_skips",
    ];
    let of = |name: &str| {
        changed(
            "tests/test_a.py",
            PYTHON,
            &format!("tests/test_a.py::{name}"),
        )
    };
    insta::assert_snapshot!(
        names
            .map(|name| format!("{name}: {:?}", of(name)))
            .join("\n")
    );
    insta::assert_snapshot!(
        [
            "test_plain",
            "test_raises",
            "RomanTest::test_method",
            "RomanTest::test_skips"
        ]
        .map(|name| failing(
            "tests/test_a.py",
            PYTHON,
            &format!("tests/test_a.py::{name}")
        ))
        .join("\n----\n")
    );
}

/// A value without literals is replaced as a whole: on the side that the form of the assertion defines, or on the one
/// without a call. If both sides are calls, each is replaced.
#[test]
fn expectation_without_literal_is_replaced() {
    for (file, source, name, wanted) in [
        (
            "test_a.py",
            "def test_t():\n    assert rows(3) == TABLE[:3]\n",
            "test_a.py::test_t",
            "assert rows(3) == '",
        ),
        (
            "test_a.py",
            "def test_t():\n    assert f(1) == g(1)\n",
            "test_a.py::test_t",
            "assert f(1) == '",
        ),
        (
            "a.test.js",
            "test('t', () => {\n  expect(f()).toEqual(g());\n});\n",
            "a.test.js > t",
            "expect(f()).toEqual('",
        ),
        (
            "a_test.rb",
            "def test_t\n  assert_equal TABLE, rows\nend\n",
            "ATest#test_t",
            "assert_equal '",
        ),
        (
            "a_test.exs",
            "test \"t\" do\n  assert rows(3) == table\nend\n",
            "ATest test t",
            "assert rows(3) == \"",
        ),
    ] {
        let all = changed(file, source, name);
        assert!(
            all.iter().any(|line| line.starts_with(wanted)),
            "{source}: {all:?}"
        );
    }
}

#[test]
fn self_skipping_test_is_detected() {
    let go = "package a\n\nfunc TestA(t *testing.T) {\n\tfor _, c := range cases {\n\t\tt.Run(c.name, func(t *testing.T) {\n\t\t\t\
              t.Skip(\"later\")\n\t\t})\n\t}\n}\n\nfunc TestB(t *testing.T) {\n\tif A() != 1 {\n\t\tt.Fail()\n\t}\n}\n";
    let python = "@pytest.mark.skip\ndef test_a():\n    assert f() == 1\n\n\ndef test_b():\n    assert f() == 1\n";
    for (file, source, skips, runs) in [
        (
            "a_test.go",
            go,
            "example.com/a TestA/one",
            "example.com/a TestB",
        ),
        (
            "test_a.py",
            python,
            "test_a.py::test_a",
            "test_a.py::test_b",
        ),
    ] {
        let tests =
            FalsifiableTests::whole_file(Path::new(file), source).expect("a language we know");
        assert!(
            tests.may_skip(&TestName::from(skips)) && !tests.may_skip(&TestName::from(runs)),
            "{source}"
        );
    }
}

/// A condition may keep an assertion from running for some rows, but at least one row reaches it.
#[test]
fn conditional_assertion_is_uncertain() {
    let source = "package a\n\nvar cases = []struct {\n\tin   string\n\tout  int\n\tfails bool\n}{\n\t{\"1\", 1, false},\n\t\
                  {\"x\", 0, true},\n}\n\nfunc TestA(t *testing.T) {\n\tfor _, c := range cases {\n\t\tout, err := Parse(c.in)\n\t\t\
                  if c.fails {\n\t\t\tif err == nil {\n\t\t\t\tt.Error(\"no error\")\n\t\t\t}\n\t\t} else {\n\t\t\t\
                  if out != c.out {\n\t\t\t\tt.Error(out)\n\t\t\t}\n\t\t}\n\t}\n}\n";
    let name = "example.com/a TestA";
    assert!(
        changed("a_test.go", source, name)
            .iter()
            .all(|line| line.starts_with("? "))
    );
    let text = changed("a_test.go", source, name).join("\n");
    assert!(
        !text.contains("{\"1\", 1, false}") && !text.contains("{\"x\", 0, true}"),
        "{text}"
    );
}

const JAVASCRIPT: &str = r#"
import { roman } from './roman';
const test = require('node:test');

describe('roman', () => {
  test('nine', () => assert.equal(roman(9), 'IX'));
  it('bound', async () => {
    const expected = [1, { a: null }];
    expect(await list()).toEqual(expected);
  });
  test.each([[1, 'I'], [2, 'II']])('gives %i', (n, expected) => {
    expect(roman(n)).toBe(expected);
  });
  it('throws', function () {
    expect(() => roman(-1)).toThrow('too small');
  });
  it(`truth`, () => {
    expect(isRoman('X')).toBeTruthy();
    expect(roman('')).not.toBe(4);
    assert(isRoman('V'))
  });
});
"#;

#[test]
fn javascript_expectations_are_changed() {
    let names = ["nine", "bound", "gives 1", "throws", "truth"];
    let of = |name: &str| {
        changed(
            "a.test.js",
            JAVASCRIPT,
            &format!("a.test.js > roman > {name}"),
        )
    };
    insta::assert_snapshot!(
        names
            .map(|name| format!("{name}: {:?}", of(name)))
            .join("\n")
    );
    insta::assert_snapshot!(
        ["nine", "bound", "truth"]
            .map(|name| failing(
                "a.test.js",
                JAVASCRIPT,
                &format!("a.test.js > roman > {name}")
            ))
            .join("\n----\n")
    );
}

const GO: &str = "package a

func TestNine(t *testing.T) {
	if got := Roman(9); got != \"IX\" {
		t.Fatalf(\"got %s\", got)
	}
}

func TestRows(t *testing.T) {
	cases := []struct{ n int; want string }{{n: 1, want: \"I\"}, {n: 2, want: \"II\"}}
	for _, tc := range cases {
		t.Run(tc.want, func(t *testing.T) {
			if got := Roman(tc.n); got != tc.want {
				t.Errorf(\"got %s\", got)
			}
		})
	}
}
";

const RUBY: &str = "
RSpec.describe Roman do
  context \"with units\" do
    it \"knows nine\" do
      expect(Roman.of(9)).to eq \"IX\"
    end

    it(\"is nil\") { expect(Roman.of(nil)).to be_nil }
  end
end

class RomanTest < Minitest::Test
  def test_nine
    expected = 'IX'
    assert_equal expected, Roman.of(9)
  end
end
";

const ELIXIR: &str = "
defmodule RomanTest do
  use ExUnit.Case

  describe \"units\" do
    test \"nine\" do
      assert Roman.of(9) == \"IX\"
    end

    test \"match\" do
      assert {:ok, 5} = Roman.parse(\"V\")
    end
  end
end
";

#[test]
fn go_ruby_and_elixir_expectations_are_changed() {
    let rows = [
        ("a_test.go", GO, "example.com/a TestNine"),
        ("a_test.go", GO, "example.com/a TestRows/I"),
        (
            "spec/a_spec.rb",
            RUBY,
            "spec/a_spec.rb Roman with units knows nine",
        ),
        (
            "spec/a_spec.rb",
            RUBY,
            "spec/a_spec.rb Roman with units is nil",
        ),
        ("spec/a_spec.rb", RUBY, "RomanTest#test_nine"),
        ("test/a_test.exs", ELIXIR, "RomanTest test units nine"),
        ("test/a_test.exs", ELIXIR, "RomanTest test units match"),
    ];
    insta::assert_snapshot!(
        rows.map(|(file, source, name)| format!("{name}: {:?}", changed(file, source, name)))
            .join("\n")
    );
    insta::assert_snapshot!(
        rows.map(|(file, source, name)| failing(file, source, name))
            .join("\n----\n")
    );
}

#[test]
fn neutral_edit_only_adds_spaces() {
    let quoted = "def test_a():\n    assert f() == \"\"\"x\n    y\n    \"\"\"\n    assert g() \\\n        == 2\n";
    let found = tests("tests/test_a.py", quoted, &["tests/test_a.py::test_a"]);
    for seed in 0..100 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let text = found.with_neutral_edit(quoted, &mut rng);
        assert_ne!(text, quoted);
        assert!(text.lines().map(str::trim_end).eq(quoted.lines()), "{text}");
        for kept in ["\"\"\"x\n    y\n    \"\"\"", "g() \\\n"] {
            assert!(text.contains(kept), "{text}");
        }
    }
}

/// Measures how many tests of a checked-out track can be falsified, and whether the results still parse.
/// `FALSIFY_TRACKS=DIR:DIR cargo test -p supervisor-verify --lib real_tracks -- --ignored --nocapture`
#[test]
#[ignore = "needs checked-out tracks: FALSIFY_TRACKS"]
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
fn real_tracks_can_be_falsified() {
    let tracks = std::env::var("FALSIFY_TRACKS").expect("FALSIFY_TRACKS names checked-out tracks");
    for track in tracks.split(':') {
        let (mut tests, mut by_value, mut sure, mut by_assertion, mut neither, mut broken) =
            (0, 0, 0, 0, 0, Vec::new());
        for file in test_files(Path::new(track)) {
            let Ok(text) = std::fs::read_to_string(&file) else {
                continue;
            };
            let Some(found) = FalsifiableTests::whole_file(&file, &text) else {
                continue;
            };
            let has_assertion = |site: &usize| {
                let whole = &found.source.sites[*site].whole;
                found
                    .source
                    .assertions
                    .iter()
                    .any(|a| test_source::contains(whole, &a.range))
            };
            let all: Vec<usize> = (0..found.targets.len())
                .filter(|t| has_assertion(&found.targets[*t].site))
                .collect();
            let parses = |text: &str| {
                let language = Language::of_path(&file).expect("it was read before");
                language
                    .parse(&file, text)
                    .is_some_and(|tree| !tree.has_errors())
            };
            let was_whole = parses(&text);
            let mut rng = fastrand::Rng::with_seed(11);
            let challenges = found.challenges(&mut rng);
            let added = found.with_failing_assertions(&mut rng, &all);
            tests += all.len();
            let has = |target: &usize, is_wanted: &dyn Fn(&challenge::Challenge) -> bool| {
                challenges
                    .iter()
                    .any(|challenge| challenge.target == *target && is_wanted(challenge))
            };
            let is_sure = |challenge: &challenge::Challenge| {
                challenge
                    .changes
                    .first()
                    .is_some_and(|change| change.is_sure)
            };
            by_value += all
                .iter()
                .filter(|t| has(t, &|c| !c.changes.is_empty()))
                .count();
            sure += all.iter().filter(|t| has(t, &is_sure)).count();
            by_assertion += added.tests.len();
            neither += all
                .iter()
                .filter(|t| !has(t, &|c| !c.changes.is_empty()))
                .count();
            let mut made = vec![
                ("assertion", added.files.text.clone()),
                ("placebo", found.with_neutral_edit(&text, &mut rng)),
            ];
            for (at, challenge) in challenges.iter().enumerate() {
                if !challenge.changes.is_empty() {
                    made.push((
                        "value",
                        found.with_changes(&challenges, &[(at, 0)]).files.text,
                    ));
                }
            }
            for (what, made) in &made {
                if was_whole && !parses(made) {
                    broken.push(format!("{what} {}", file.display()));
                }
            }
        }
        assert!(tests > 0, "{track} has no tests");
        println!(
            "{track}: {tests} tests, {by_value} by value ({sure} surely), {by_assertion} by assertion, {neither} by neither; broken: {broken:#?}"
        );
    }
}

fn test_files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != ".meta" && name != "node_modules" {
                files.extend(test_files(&path));
            }
        } else if name.contains("_test.")
            || name.contains("test_")
            || name.contains(".spec.")
            || path.parent().is_some_and(|p| p.ends_with("tests"))
        {
            files.push(path);
        }
    }
    files
}

const JAVA: &str = r#"
class RomanTest {
    @Test
    public void nine() {
        assertEquals("IX", Roman.of(9));
    }

    @Test
    public void told() {
        assertEquals("nine is IX", "IX", Roman.of(9));
    }

    @Test(expected = IllegalArgumentException.class)
    public void below() {
        Roman.of(-1);
    }

    @Nested
    class Signs {
        @Test
        void thrown() {
            assertThrows(IllegalArgumentException.class, () -> Roman.of(-1));
        }
    }
}
"#;

const CPP: &str = r#"
TEST(RomanTest, Nine) {
    EXPECT_EQ(roman(9), "IX");
}

TEST(OtherTest, Nine) {
    EXPECT_EQ(roman(9), "VIIII");
}

TEST_CASE("ten") {
    REQUIRE(roman(10) == "X");
}

int main() {
    assert(roman(1) == "I");
    return 0;
}
"#;

#[test]
fn java_and_cpp_expectations_are_changed() {
    let (java, cpp) = ("src/test/java/demo/RomanTest.java", "tests/roman_test.cpp");
    for (file, source, name, before, after) in [
        (
            java,
            JAVA,
            "demo.RomanTest#nine",
            "assertEquals(\"IX",
            "\", Roman.of(9));",
        ),
        // A message is not an expectation.
        (
            java,
            JAVA,
            "demo.RomanTest#told",
            "assertEquals(\"nine is IX\", \"IX",
            "\", Roman.of(9));",
        ),
        (java, JAVA, "demo.RomanTest#below", "@Test", ""),
        (
            java,
            JAVA,
            "demo.RomanTest$Signs#thrown",
            "assertThrows(ArrayStoreException.class",
            "Roman.of(-1));",
        ),
        (
            cpp,
            CPP,
            "RomanTest.Nine",
            "EXPECT_EQ(roman(9), \"IX",
            "\");",
        ),
        (
            cpp,
            CPP,
            "Values/OtherTest.Nine/0",
            "EXPECT_EQ(roman(9), \"VIIII",
            "\");",
        ),
        (cpp, CPP, "ten", "REQUIRE(roman(10) == \"X", "\");"),
        (cpp, CPP, "roman_test", "assert(roman(1) == \"I", "\");"),
    ] {
        let lines = changed(file, source, name);
        assert!(!lines.is_empty(), "{name} cannot be made wrong");
        assert!(
            lines
                .iter()
                .all(|line| line.starts_with(before) && line.ends_with(after)),
            "{name}: {lines:?}"
        );
    }
    assert!(failing(java, JAVA, "demo.RomanTest#nine").contains("assertEquals("));
    assert_eq!(
        failing(java, JAVA, "demo.RomanTest#below"),
        JAVA,
        "one more exception would change nothing"
    );
    assert!(failing(cpp, CPP, "roman_test").contains("int main() { if ("));
}

#[test]
fn computed_titles_are_found() {
    let source = "const { test, expect } = require('vitest');\n\
         for (const t of tests) {\n  test(t.input.toString() + ' filter \"bar\"', () => {\n    expect(f(t.input)).toBe('x');\n  });\n}\n\
         test('a' + name + 'b', () => {\n  expect(f(1)).toBe(2);\n});\n";
    let name = |text: &str| TestName(text.to_owned());
    let tests = [
        name("q.test.js > /foo?bar=1 filter \"bar\""),
        name("q.test.js > a-1-b"),
    ];
    let found = FalsifiableTests::find(Path::new("q.test.js"), source, &tests).unwrap();
    assert!(found.has_all(), "{found:#?}");
    assert_ne!(found.range_of(&tests[0]), found.range_of(&tests[1]));
}
