//! Finding the test of a file that has a given name in a run.

use super::*;

#[test]
fn test_is_found_in_nested_groups() {
    let javascript = "describe('A', () => {\n  describe('list when:', () => {\n    describe('c', () => {\n      \
                      test('says \\'x\\'', () => {\n        expect(f()).toBe(1);\n      });\n    });\n  });\n});\n";
    let elixir =
        "defmodule ATest do\n  test \"says 'Hello'\" do\n    assert f() == 1\n  end\nend\n";
    let ruby = "describe A do\n  context \"when: b\" do\n    it \"gives 'c'\" do\n      expect(f).to eq 1\n    end\n  end\nend\n";
    for (file, source, name) in [
        (
            "a.test.js",
            javascript,
            "a.test.js > A > list when: > c > says 'x'",
        ),
        ("test/a_test.exs", elixir, "ATest test says 'Hello'"),
        ("spec/a_spec.rb", ruby, "spec/a_spec.rb A when: b gives 'c'"),
    ] {
        assert!(!changed(file, source, name).is_empty(), "{name}");
    }
}

#[test]
fn title_with_common_suffix_is_not_confused() {
    let javascript = "test('hours and minutes', () => assert.equal(f('1h1m'), 61));\ntest('minutes', () => assert.equal(f('1m'), 1));\n\
                      test.each(rows)('%s and minutes', (a) => {\n  assert.equal(f(a), 7);\n});\n";
    let ruby = "describe A do\n  it \"gives back b\" do\n    expect(f).to eq 1\n  end\n  it \"b\" do\n    expect(f).to eq 2\n  end\nend\n";
    for (file, source, name, expected) in [
        (
            "a.test.js",
            javascript,
            "a.test.js > hours and minutes",
            "test('hours",
        ),
        (
            "a.test.js",
            javascript,
            "a.test.js > minutes",
            "test('minutes",
        ),
        (
            "spec/a_spec.rb",
            ruby,
            "spec/a_spec.rb A gives back b",
            "it \"gives back b\"",
        ),
        ("spec/a_spec.rb", ruby, "spec/a_spec.rb A b", "it \"b\""),
    ] {
        let tests = tests(file, source, &[name]);
        let site = &tests.source.sites[tests.targets[0].site];
        assert!(
            tests.source.slice(&site.whole).starts_with(expected),
            "{name}: {}",
            tests.source.slice(&site.whole)
        );
    }
    let rows = tests("a.test.js", javascript, &["a.test.js > days and minutes"]);
    assert!(
        rows.source
            .slice(&rows.source.sites[rows.targets[0].site].whole)
            .starts_with("test.each")
    );
}
