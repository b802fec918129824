//! The same small step in every ecosystem: there is `add`, and `double` is wanted. None needs the network.

use supervisor_test_support::suites::{GTEST, MAVEN_PARTS};

pub(super) struct Cycle {
    pub(super) needs: &'static [&'static str],
    /// The project before, green.
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) test_path: &'static str,
    /// The test file with the new test.
    pub(super) red: &'static str,
    /// The new test, as the red names it.
    pub(super) new_test: &'static str,
    pub(super) code_path: &'static str,
    /// Builds, and answers 1201 where 2400 is right.
    pub(super) wrong: &'static str,
    pub(super) right: &'static str,
    pub(super) neat: &'static str,
    pub(super) new_item: &'static str,
    /// In what the test said when it was red.
    pub(super) symbol: &'static str,
}

pub(super) static RUST: Cycle = Cycle {
    needs: &["cargo"],
    files: &[
        (
            "Cargo.toml",
            "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        (
            "src/lib.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n",
        ),
        (
            "tests/add.rs",
            "#[test]\nfn adds() {\n    assert_eq!(demo::add(1, 2), 3);\n}\n",
        ),
    ],
    test_path: "tests/double.rs",
    red: "#[test]\nfn doubles() {\n    assert_eq!(demo::double(1200), 2400);\n}\n",
    new_test: "doubles",
    code_path: "src/lib.rs",
    wrong: "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\npub fn double(n: i32) -> i32 {\n    n + 1\n}\n",
    right: "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\npub fn double(n: i32) -> i32 {\n    n + n\n}\n",
    neat: "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\npub fn double(n: i32) -> i32 {\n    add(n, n)\n}\n",
    new_item: "double",
    symbol: "cannot find function `double`",
};

pub(super) static GO: Cycle = Cycle {
    needs: &["go"],
    files: &[
        ("go.mod", "module example.com/demo\n\ngo 1.19\n"),
        (
            "calc.go",
            "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n",
        ),
        (
            "calc_test.go",
            "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n",
        ),
    ],
    test_path: "calc_test.go",
    red: "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n\nfunc TestDouble(t *testing.T) {\n\tif got := Double(1200); got != 2400 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n",
    new_test: "TestDouble",
    code_path: "calc.go",
    wrong: "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n\nfunc Double(n int) int {\n\treturn n + 1\n}\n",
    right: "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n\nfunc Double(n int) int {\n\treturn n + n\n}\n",
    neat: "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n\nfunc Double(n int) int {\n\treturn Add(n, n)\n}\n",
    new_item: "Double",
    symbol: "undefined: Double",
};

pub(super) static PYTHON: Cycle = Cycle {
    needs: &["python3", "pytest"],
    files: &[
        (
            "pyproject.toml",
            "[project]\nname = \"demo\"\nversion = \"0.1.0\"\n",
        ),
        ("conftest.py", ""),
        ("calc.py", "def add(a, b):\n    return a + b\n"),
        (
            "tests/test_calc.py",
            "import calc\n\n\ndef test_adds():\n    assert calc.add(1, 2) == 3\n",
        ),
    ],
    test_path: "tests/test_calc.py",
    red: "import calc\n\n\ndef test_adds():\n    assert calc.add(1, 2) == 3\n\n\ndef test_doubles():\n    assert calc.double(1200) == 2400\n",
    new_test: "tests/test_calc.py::test_doubles",
    code_path: "calc.py",
    wrong: "def add(a, b):\n    return a + b\n\n\ndef double(n):\n    return n + 1\n",
    right: "def add(a, b):\n    return a + b\n\n\ndef double(n):\n    return n + n\n",
    neat: "def add(a, b):\n    return a + b\n\n\ndef double(n):\n    return add(n, n)\n",
    new_item: "double",
    symbol: "has no attribute 'double'",
};

pub(super) static NODE: Cycle = Cycle {
    needs: &["node", "npm"],
    files: &[
        (
            "package.json",
            "{\"name\": \"demo\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node --test\"}}\n",
        ),
        ("calc.js", "exports.add = (a, b) => a + b;\n"),
        (
            "test/calc.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst calc = require('../calc');\n\ntest('adds', () => {\n  assert.equal(calc.add(1, 2), 3);\n});\n",
        ),
    ],
    test_path: "test/calc.test.js",
    red: "const test = require('node:test');\nconst assert = require('node:assert');\nconst calc = require('../calc');\n\ntest('adds', () => {\n  assert.equal(calc.add(1, 2), 3);\n});\n\ntest('doubles', () => {\n  assert.equal(calc.double(1200), 2400);\n});\n",
    new_test: "test/calc.test.js > doubles",
    code_path: "calc.js",
    wrong: "exports.add = (a, b) => a + b;\nexports.double = (n) => n + 1;\n",
    right: "exports.add = (a, b) => a + b;\nexports.double = (n) => n + n;\n",
    neat: "exports.add = (a, b) => a + b;\nexports.double = (n) => exports.add(n, n);\n",
    new_item: "double",
    symbol: "double is not a function",
};

pub(super) static RUBY: Cycle = Cycle {
    needs: &["bundle", "rspec"],
    files: &[
        (
            "Gemfile",
            "source \"https://rubygems.org\"\ngem \"rspec\"\n",
        ),
        (
            "lib/calc.rb",
            "module Calc\n  def self.add(a, b)\n    a + b\n  end\nend\n",
        ),
        (
            "spec/calc_spec.rb",
            "require_relative \"../lib/calc\"\n\nRSpec.describe Calc do\n  it \"adds\" do\n    expect(Calc.add(1, 2)).to eq 3\n  end\nend\n",
        ),
    ],
    test_path: "spec/calc_spec.rb",
    red: "require_relative \"../lib/calc\"\n\nRSpec.describe Calc do\n  it \"adds\" do\n    expect(Calc.add(1, 2)).to eq 3\n  end\n\n  it \"doubles\" do\n    expect(Calc.double(1200)).to eq 2400\n  end\nend\n",
    new_test: "spec/calc_spec.rb Calc doubles",
    code_path: "lib/calc.rb",
    wrong: "module Calc\n  def self.add(a, b)\n    a + b\n  end\n\n  def self.double(n)\n    n + 1\n  end\nend\n",
    right: "module Calc\n  def self.add(a, b)\n    a + b\n  end\n\n  def self.double(n)\n    n + n\n  end\nend\n",
    neat: "module Calc\n  def self.add(a, b)\n    a + b\n  end\n\n  def self.double(n)\n    add(n, n)\n  end\nend\n",
    new_item: "double",
    symbol: "undefined method",
};

pub(super) static ELIXIR: Cycle = Cycle {
    needs: &["mix", "elixir"],
    files: &[
        (
            "mix.exs",
            "defmodule Demo.MixProject do\n  use Mix.Project\n  def project, do: [app: :demo, version: \"0.1.0\", deps: []]\n  def application, do: []\nend\n",
        ),
        (
            "lib/calc.ex",
            "defmodule Calc do\n  def add(a, b) do\n    a + b\n  end\nend\n",
        ),
        ("test/test_helper.exs", "ExUnit.start()\n"),
        (
            "test/calc_test.exs",
            "defmodule CalcTest do\n  use ExUnit.Case\n\n  test \"adds\" do\n    assert Calc.add(1, 2) == 3\n  end\nend\n",
        ),
    ],
    test_path: "test/calc_test.exs",
    red: "defmodule CalcTest do\n  use ExUnit.Case\n\n  test \"adds\" do\n    assert Calc.add(1, 2) == 3\n  end\n\n  test \"doubles\" do\n    assert Calc.double(1200) == 2400\n  end\nend\n",
    new_test: "CalcTest test doubles",
    code_path: "lib/calc.ex",
    wrong: "defmodule Calc do\n  def add(a, b) do\n    a + b\n  end\n\n  def double(n) do\n    n + 1\n  end\nend\n",
    right: "defmodule Calc do\n  def add(a, b) do\n    a + b\n  end\n\n  def double(n) do\n    n + n\n  end\nend\n",
    neat: "defmodule Calc do\n  def add(a, b) do\n    a + b\n  end\n\n  def double(n) do\n    add(n, n)\n  end\nend\n",
    new_item: "double",
    symbol: "Calc.double/1 is undefined",
};

pub(super) static JAVA: Cycle = Cycle {
    needs: &["mvn", MAVEN_PARTS],
    files: &[
        (
            "pom.xml",
            "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>demo</groupId>\n  <artifactId>demo</artifactId>\n  <version>1</version>\n  <properties>\n    <maven.compiler.source>17</maven.compiler.source>\n    <maven.compiler.target>17</maven.compiler.target>\n    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>\n  </properties>\n  <dependencies>\n    <dependency>\n      <groupId>junit</groupId>\n      <artifactId>junit</artifactId>\n      <version>4.x</version>\n      <scope>test</scope>\n    </dependency>\n  </dependencies>\n</project>\n",
        ),
        (
            ".mvn/maven.config",
            "-DforkCount=0\n-o\n-Dmaven.repo.local=/usr/share/maven-repo\n",
        ),
        (
            "src/main/java/demo/Calc.java",
            "package demo;\n\npublic class Calc {\n    public static int add(int a, int b) {\n        return a + b;\n    }\n}\n",
        ),
        (
            "src/test/java/demo/CalcTest.java",
            "package demo;\n\nimport static org.junit.Assert.assertEquals;\n\nimport org.junit.Test;\n\npublic class CalcTest {\n    @Test\n    public void adds() {\n        assertEquals(3, Calc.add(1, 2));\n    }\n}\n",
        ),
    ],
    test_path: "src/test/java/demo/CalcTest.java",
    red: "package demo;\n\nimport static org.junit.Assert.assertEquals;\n\nimport org.junit.Test;\n\npublic class CalcTest {\n    @Test\n    public void adds() {\n        assertEquals(3, Calc.add(1, 2));\n    }\n\n    @Test\n    public void doubles() {\n        assertEquals(2400, Calc.twice(1200));\n    }\n}\n",
    new_test: "doubles",
    code_path: "src/main/java/demo/Calc.java",
    wrong: "package demo;\n\npublic class Calc {\n    public static int add(int a, int b) {\n        return a + b;\n    }\n\n    public static int twice(int n) {\n        return n + 1;\n    }\n}\n",
    right: "package demo;\n\npublic class Calc {\n    public static int add(int a, int b) {\n        return a + b;\n    }\n\n    public static int twice(int n) {\n        return n + n;\n    }\n}\n",
    neat: "package demo;\n\npublic class Calc {\n    public static int add(int a, int b) {\n        return a + b;\n    }\n\n    public static int twice(int n) {\n        return add(n, n);\n    }\n}\n",
    new_item: "twice",
    symbol: "cannot find symbol",
};

pub(super) static CPP: Cycle = Cycle {
    needs: &["cmake", "ctest", GTEST],
    files: &[
        (
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.14)\nproject(demo CXX)\nenable_testing()\nfind_package(GTest REQUIRED)\nadd_executable(calc_test tests/calc_test.cpp)\ntarget_include_directories(calc_test PRIVATE include)\ntarget_link_libraries(calc_test GTest::gtest_main)\ninclude(GoogleTest)\ngtest_discover_tests(calc_test)\n",
        ),
        (
            "include/calc.h",
            "#pragma once\n\ninline int add(int a, int b) {\n    return a + b;\n}\n",
        ),
        (
            "tests/calc_test.cpp",
            "#include <gtest/gtest.h>\n\n#include \"calc.h\"\n\nTEST(CalcTest, Adds) {\n    EXPECT_EQ(add(1, 2), 3);\n}\n",
        ),
    ],
    test_path: "tests/calc_test.cpp",
    red: "#include <gtest/gtest.h>\n\n#include \"calc.h\"\n\nTEST(CalcTest, Adds) {\n    EXPECT_EQ(add(1, 2), 3);\n}\n\nTEST(CalcTest, Doubles) {\n    EXPECT_EQ(twice(1200), 2400);\n}\n",
    new_test: "Doubles",
    code_path: "include/calc.h",
    wrong: "#pragma once\n\ninline int add(int a, int b) {\n    return a + b;\n}\n\ninline int twice(int n) {\n    return n + 1;\n}\n",
    right: "#pragma once\n\ninline int add(int a, int b) {\n    return a + b;\n}\n\ninline int twice(int n) {\n    return n + n;\n}\n",
    neat: "#pragma once\n\ninline int add(int a, int b) {\n    return a + b;\n}\n\ninline int twice(int n) {\n    return add(n, n);\n}\n",
    new_item: "twice",
    symbol: "was not declared in this scope",
};

/// Without a framework: a program passes if it ends with 0, and CTest alone knows what it is called.
pub(super) static CPP_PROGRAMS: Cycle = Cycle {
    needs: &["cmake", "ctest"],
    files: &[
        (
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.14)\nproject(demo CXX)\nenable_testing()\nfile(GLOB tests CONFIGURE_DEPENDS tests/*_test.cpp)\nforeach(source ${tests})\n  get_filename_component(name ${source} NAME_WE)\n  add_executable(${name} ${source})\n  target_include_directories(${name} PRIVATE include)\n  add_test(NAME ${name} COMMAND ${name})\nendforeach()\n",
        ),
        (
            "include/calc.h",
            "#pragma once\n\ninline int add(int a, int b) {\n    return a + b;\n}\n",
        ),
        (
            "tests/add_test.cpp",
            "#include <cassert>\n\n#include \"calc.h\"\n\nint main() {\n    assert(add(1, 2) == 3);\n}\n",
        ),
        (
            "include/twice.h",
            "#pragma once\n\nstruct Twice {\n    int of(int n) const;\n};\n\ninline int Twice::of(int n) const {\n    return n;\n}\n",
        ),
    ],
    test_path: "tests/twice_test.cpp",
    red: "#include <cassert>\n#include <cstdio>\n\n#include \"twice.h\"\n\nint main() {\n    int given = Twice().of(1200);\n    std::fprintf(stderr, \"%d\\n\", given);\n    assert(given == 2400);\n}\n",
    new_test: "twice_test",
    code_path: "include/twice.h",
    wrong: "#pragma once\n\nstruct Twice {\n    int of(int n) const;\n};\n\ninline int Twice::of(int n) const {\n    return n + 1;\n}\n\nint more();\n",
    right: "#pragma once\n\nstruct Twice {\n    int of(int n) const;\n};\n\ninline int Twice::of(int n) const {\n    return n + n;\n}\n\nint more();\n",
    neat: "#pragma once\n\nstruct Twice {\n    int of(int n) const;\n};\n\ninline int Twice::of(int n) const {\n    return 2 * n;\n}\n\nint more();\n",
    new_item: "more",
    symbol: "1200",
};
