//! Honest tests of every style that people write: exceptions, tables, parametrised and generated tests, properties,
//! approximations, orders, asynchronous tests, snapshots, matchers and helpers of one's own. One file of them for each
//! runner; honest code makes all of them pass, each can be made wrong, and so the work is verified.

use std::fs;

use super::case::Edit::Replace;
use super::case::{Case, Does, Kind, Tool, honest};
use super::picture::git;
use super::server::CheatServer;
use supervisor_test_support::programs::require;
use supervisor_test_support::suites::file;

/// The tests of one runner, and the code that makes them pass.
struct StyledTests {
    kind: Kind,
    tests: &'static str,
    code: &'static str,
    /// How many of them there are, rows counted.
    count: usize,
    /// What they read besides.
    more: &'static [(&'static str, &'static str)],
}

const PYTHON: StyledTests = StyledTests {
    kind: Kind::Python,
    tests: r#"import asyncio
import doctest
import math
import pathlib
import random
import unittest

import pytest

import calc
from calc import triple

ROWS = [(1, 3), (2, 6), (5, 15)]
TABLE = [0, 3, 6, 9]


@pytest.fixture
def six():
    return 6


def check(given, wanted):
    assert triple(given) == wanted


def test_error():
    with pytest.raises(ValueError, match="below zero"):
        triple(-1)


@pytest.mark.parametrize("given, wanted", [(1, 3), (2, 6), pytest.param(7, 21, id="seven")])
def test_parametrised(given, wanted):
    assert triple(given) == wanted


def test_table():
    for given, wanted in ROWS:
        assert triple(given) == wanted


def test_property():
    for _ in range(20):
        n = random.randrange(1, 1000)
        assert triple(n) - n == n + n


def test_approximation():
    assert triple(0.1) == pytest.approx(0.3)
    assert math.isclose(triple(0.5), 1.5)


def test_order():
    assert triple(4) > 4


def test_asynchronous():
    async def later():
        await asyncio.sleep(0)
        return triple(3)

    assert asyncio.run(later()) == 9


def test_helper():
    check(3, 9)


def test_fixture(six):
    assert triple(2) == six


def test_slice():
    assert [triple(n) for n in range(3)] == TABLE[:3]


def test_snapshot():
    recorded = pathlib.Path(__file__).with_name("snapshots") / "three.txt"
    assert f"{triple(1)}\n" == recorded.read_text()


def test_documentation():
    assert doctest.testmod(calc).attempted == 1
    assert doctest.testmod(calc).failed == 0


class TestClass(unittest.TestCase):
    def test_rows(self):
        for given, wanted in ROWS:
            with self.subTest(given):
                self.assertEqual(triple(given), wanted)

    def test_error(self):
        with self.assertRaises(ValueError) as caught:
            triple(-2)
        self.assertEqual(caught.exception.args[0], "below zero")

    def test_almost(self):
        self.assertAlmostEqual(triple(0.1), 0.3)

    def test_in(self):
        self.assertIn(triple(2), {6, 7})
"#,
    code: "def double(n):\n    return n * 2\n\n\ndef triple(n):\n    \"\"\"Three times n.\n\n    >>> triple(2)\n    6\n    \"\"\"\n    \
           if n < 0:\n        raise ValueError(\"below zero\")\n    return n * 3\n",
    count: 18,
    more: &[("tests/snapshots/three.txt", "3\n")],
};

const RUST: StyledTests = StyledTests {
    kind: Kind::Rust,
    tests: r#"use demo::triple;

fn check(given: i32, wanted: i32) {
    assert_eq!(triple(given), wanted, "of {given}");
}

#[test]
#[should_panic(expected = "below zero")]
fn panics() {
    triple(-1);
}

#[test]
fn table() {
    for (given, wanted) in [(1, 3), (2, 6)] {
        assert_eq!(triple(given), wanted);
    }
}

#[test]
fn property() {
    for n in 1..50 {
        assert_eq!(triple(n) - n, n + n);
    }
}

#[test]
fn order() {
    assert!(triple(4) > 4);
    assert!(triple(4) < 4 * 4);
}

#[test]
fn approximation() {
    assert!((f64::from(triple(1)) - 3.0).abs() < 1e-9);
}

#[test]
fn helper() {
    check(3, 9);
}

#[test]
fn fallible() -> Result<(), std::num::ParseIntError> {
    let n: i32 = "4".parse()?;
    assert_eq!(triple(n), 12);
    Ok(())
}

#[test]
fn matching() {
    assert!(matches!(triple(2), 6));
}

#[test]
fn elsewhere() {
    let all: Vec<i32> = std::thread::spawn(|| (1..4).map(triple).collect()).join().unwrap();
    assert_eq!(all, vec![3, 6, 9]);
}
"#,
    code: "pub fn double(n: i32) -> i32 {\n    n * 2\n}\n\npub fn triple(n: i32) -> i32 {\n    assert!(n >= 0, \"below zero\");\n    \
           n * 3\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn zero_stays() {\n        \
           assert_eq!(super::triple(0), 0);\n    }\n}\n",
    count: 9,
    more: &[],
};

const NODE: StyledTests = StyledTests {
    kind: Kind::Node,
    tests: r"const test = require('node:test');
const { describe, it } = test;
const assert = require('node:assert/strict');
const { triple } = require('../calc');

const check = (given, wanted) => assert.equal(triple(given), wanted);

test('error', () => {
  assert.throws(() => triple(-1), /below zero/);
});

describe('rows', () => {
  for (const [given, wanted] of [[1, 3], [2, 6]]) {
    it(`triples ${given}`, () => {
      assert.equal(triple(given), wanted);
    });
  }
});

test('asynchronous', async () => {
  const given = await Promise.resolve(2);
  assert.equal(triple(given), 6);
});

test('rejects', async () => {
  await assert.rejects(async () => triple(-1), { message: 'below zero' });
});

test('approximation', () => {
  assert.ok(Math.abs(triple(0.1) - 0.3) < 1e-9);
});

test('order', () => assert.ok(triple(4) > 4));

test('helper', () => check(3, 9));

test('list', () => assert.deepEqual([1, 2].map(triple), [3, 6]));

test('nested', async (t) => {
  await t.test('inside', () => {
    assert.equal(triple(5), 15);
  });
});
",
    code: "exports.double = (n) => n * 2;\nexports.triple = (n) => {\n  if (n < 0) throw new Error('below zero');\n  return n * 3;\n};\n",
    count: 11,
    more: &[],
};

const JEST: StyledTests = StyledTests {
    kind: Kind::Jest,
    tests: r"const { triple } = require('../calc');

expect.extend({
  toBeThreeTimes(received, given) {
    return { pass: received === given * 3, message: () => `${received} is not three times ${given}` };
  },
});

describe('triple', () => {
  test.each([[1, 3], [2, 6]])('of %i is %i', (given, wanted) => {
    expect(triple(given)).toBe(wanted);
  });

  test('error', () => {
    expect(() => triple(-1)).toThrow('below zero');
  });

  test('asynchronous', async () => {
    await expect(Promise.resolve(2).then(triple)).resolves.toBe(6);
  });

  test('approximation', () => {
    expect(triple(0.1)).toBeCloseTo(0.3);
  });

  test('order', () => {
    expect(triple(4)).toBeGreaterThan(4);
  });

  test('matcher', () => {
    expect(triple(5)).toBeThreeTimes(5);
  });

  test('list', () => {
    expect([1, 2].map(triple)).toEqual([3, 6]);
  });

  test('snapshot', () => {
    expect(triple(7)).toMatchSnapshot();
  });

  test('inline snapshot', () => {
    expect(triple(8)).toMatchInlineSnapshot(`24`);
  });
});
",
    code: "exports.double = (n) => n * 2;\nexports.triple = (n) => {\n  if (n < 0) throw new Error('below zero');\n  return n * 3;\n};\n",
    count: 10,
    more: &[(
        "test/__snapshots__/calc.test.js.snap",
        "// Jest Snapshot v1, https://jestjs.io/docs/snapshot-testing\n\nexports[`triple snapshot 1`] = `21`;\n",
    )],
};

const GO: StyledTests = StyledTests {
    kind: Kind::Go,
    tests: r#"package calc

import (
	"math"
	"reflect"
	"testing"
)

func check(t *testing.T, given, want int) {
	t.Helper()
	if got := Triple(given); got != want {
		t.Errorf("Triple(%d) = %d, want %d", given, got, want)
	}
}

func TestTable(t *testing.T) {
	for _, tc := range []struct {
		name  string
		given int
		want  int
	}{
		{"one", 1, 3},
		{"two", 2, 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Triple(tc.given); got != tc.want {
				t.Fatalf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestHelper(t *testing.T) {
	check(t, 3, 9)
}

func TestPanics(t *testing.T) {
	defer func() {
		if r := recover(); r != "below zero" {
			t.Errorf("recovered %v", r)
		}
	}()
	Triple(-1)
}

func TestProperty(t *testing.T) {
	for n := 1; n < 50; n++ {
		if Triple(n)-n != n+n {
			t.Fatalf("not for %d", n)
		}
	}
}

func TestApproximation(t *testing.T) {
	if math.Abs(float64(Triple(1))-3.0) > 1e-9 {
		t.Error("too far away")
	}
}

func TestOrder(t *testing.T) {
	if Triple(4) <= 4 {
		t.Error("not more")
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	got := []int{Triple(1), Triple(2)}
	if want := []int{3, 6}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
"#,
    code: "package calc\n\nfunc Double(n int) int {\n\treturn n * 2\n}\n\nfunc Triple(n int) int {\n\tif n < 0 {\n\t\tpanic(\"below zero\")\n\t}\n\t\
           return n * 3\n}\n",
    count: 9,
    more: &[],
};

const RUBY: StyledTests = StyledTests {
    kind: Kind::Ruby,
    tests: r#"RSpec::Matchers.define :be_three_times do |given|
  match { |actual| actual == given * 3 }
end

RSpec.describe Calc do
  subject(:six) { Calc.triple(2) }

  [[1, 3], [2, 6]].each do |given, wanted|
    it "triples #{given}" do
      expect(Calc.triple(given)).to eq(wanted)
    end
  end

  it "raises" do
    expect { Calc.triple(-1) }.to raise_error(ArgumentError, "below zero")
  end

  it "is near" do
    expect(Calc.triple(0.1)).to be_within(1e-9).of(0.3)
  end

  it "is more" do
    expect(Calc.triple(4)).to be > 4
  end

  it "matches" do
    expect(Calc.triple(5)).to be_three_times(5)
  end

  it "has a subject" do
    expect(six).to eq 6
  end

  it "gives lists" do
    expect([1, 2].map { |n| Calc.triple(n) }).to contain_exactly(3, 6)
  end
end
"#,
    code: "module Calc\n  def self.double(n)\n    n * 2\n  end\n\n  def self.triple(n)\n    raise ArgumentError, \"below zero\" if n < 0\n\n    \
           n * 3\n  end\nend\n",
    count: 8,
    more: &[],
};

const ELIXIR: StyledTests = StyledTests {
    kind: Kind::Elixir,
    tests: r#"defmodule CalcTest do
  use ExUnit.Case, async: true
  import Calc

  defp check(given, wanted), do: assert(triple(given) == wanted)

  for {given, wanted} <- [{1, 3}, {2, 6}] do
    test "triples #{given}" do
      assert triple(unquote(given)) == unquote(wanted)
    end
  end

  test "raises" do
    assert_raise ArgumentError, "below zero", fn -> triple(-1) end
  end

  test "is near" do
    assert_in_delta triple(0.1), 0.3, 1.0e-9
  end

  test "is more" do
    assert triple(4) > 4
  end

  test "holds for many" do
    for n <- 1..20, do: assert(triple(n) - n == n + n)
  end

  test "in a task" do
    assert Task.await(Task.async(fn -> triple(3) end)) == 9
  end

  test "matches" do
    assert [3, second] = Enum.map([1, 2], &triple/1)
    assert second == 6
  end

  test "with a helper" do
    check(3, 9)
  end
end
"#,
    code: "defmodule Calc do\n  def double(n) do\n    n * 2\n  end\n\n  def triple(n) when n < 0, do: raise(ArgumentError, \"below zero\")\n\n  \
           def triple(n) do\n    n * 3\n  end\nend\n",
    count: 9,
    more: &[],
};

#[test]
fn honest_styles_in_rust_are_verified() {
    assert_accepted(&RUST, true);
}

#[test]
#[ignore = "needs pytest"]
fn honest_styles_in_python_are_verified() {
    assert_accepted(&PYTHON, true);
}

#[test]
#[ignore = "needs node and npm"]
fn honest_styles_in_node_are_accepted() {
    assert_accepted(&NODE, false);
}

#[test]
#[ignore = "needs go"]
fn honest_styles_in_go_are_accepted() {
    assert_accepted(&GO, false);
}

#[test]
#[ignore = "needs rspec"]
fn honest_styles_in_ruby_are_verified() {
    assert_accepted(&RUBY, true);
}

#[test]
#[ignore = "needs elixir"]
fn honest_styles_in_elixir_are_accepted() {
    assert_accepted(&ELIXIR, false);
}

#[test]
#[ignore = "needs jest"]
fn honest_styles_in_jest_are_accepted() {
    assert_accepted(&JEST, false);
}

/// Not verified where one of the tests compares in a way whose expectation could not be changed: in a helper, a property or a
/// pattern.
fn assert_accepted(styled: &'static StyledTests, is_verified: bool) {
    let kind = styled.kind;
    require(kind.needs());
    let mut server = CheatServer::new("");
    let root = server.project(kind, Tool::Green);
    fs::write(root.join(kind.test_path()), styled.tests).unwrap();
    styled
        .more
        .iter()
        .for_each(|(path, text)| file(&root, path, text));
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "Tests"]);
    let edits: &'static [super::case::Edit] =
        Box::leak(Box::new([Replace(kind.impl_path(), styled.code)]));
    let case: Case = honest(kind, Tool::Green, "styles", Does::Edits(edits));
    let came = server.run_in(&root, &case);
    assert_eq!(
        (&came.result["status"], &came.result["verified"]),
        (&"pass".into(), &is_verified.into()),
        "{:#}",
        came.result
    );
    let targets = came.result["details"]["target"]
        .as_array()
        .map_or(0, Vec::len);
    assert_eq!(targets, styled.count, "{:#}", came.result["details"]);
}
