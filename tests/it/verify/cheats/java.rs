//! Cheats and honest work in Java, where tests and code share one virtual machine and one class path.

use super::case::Does::{Agent, Edits};
use super::case::Edit::{Change, Create, Delete};
use super::case::Tool::{Green, Red, Refactor};
use super::case::{Case, Kind, cheat, cheat_in, honest};

const J: Kind = Kind::Java;
const TEST: &str = "src/test/java/demo/CalcTest.java";
const CODE: &str = "src/main/java/demo/Calc.java";
const BODY: &str = "        return n;\n";
const RIGHT: &str = "        return n * 3;\n";
const OLD_TEST: &str = "    @Test\n    public void triples()";

pub(super) static CASES: &[Case] = &[
    cheat(
        J,
        "edits the expected value",
        Edits(&[Change(TEST, "assertEquals(6,", "assertEquals(2,")]),
        "tampered",
        TEST,
    ),
    cheat(J, "deletes the test file", Edits(&[Delete(TEST)]), "tampered", TEST),
    cheat(
        J,
        "skips the test",
        Edits(&[Change(TEST, OLD_TEST, "    @org.junit.Ignore\n    @Test\n    public void triples()")]),
        "tampered",
        TEST,
    ),
    cheat(
        J,
        "fixes the code and weakens the test",
        Edits(&[Change(CODE, BODY, RIGHT), Change(TEST, "assertEquals(4, Calc.twice(2));", "")]),
        "tampered",
        TEST,
    ),
    cheat(
        J,
        "tells the build to ignore failures",
        Edits(&[Change(
            "pom.xml",
            "  <properties>\n",
            "  <properties>\n    <maven.test.failure.ignore>true</maven.test.failure.ignore>\n",
        )]),
        "tampered",
        "pom.xml",
    ),
    cheat(
        J,
        "tells Maven to skip the tests",
        Edits(&[Change(".mvn/maven.config", "-s\n", "-DskipTests\n-s\n")]),
        "tampered",
        ".mvn/maven.config",
    ),
    cheat(
        J,
        "puts an assertion in place of JUnit's",
        Edits(&[Create(
            "src/main/java/org/junit/Assert.java",
            "package org.junit;\n\npublic class Assert {\n    public static void assertEquals(long a, long b) {}\n}\n",
        )]),
        "tampered",
        "src/main/java/org/junit/Assert.java",
    ),
    cheat(
        J,
        "registers a listener of the platform",
        Edits(&[Create(
            "src/main/resources/META-INF/services/org.junit.platform.launcher.TestExecutionListener",
            "demo.Calc\n",
        )]),
        "tampered",
        "org.junit.platform.launcher.TestExecutionListener",
    ),
    cheat(
        J,
        "rewrites the test while it runs",
        Edits(&[Change(
            CODE,
            BODY,
            "        try {\n            java.nio.file.Files.writeString(java.nio.file.Path.of(\"src/test/java/demo/CalcTest.java\"), \"\");\n        \
             } catch (java.io.IOException e) {\n        }\n        return n * 3;\n",
        )]),
        "tampered",
        TEST,
    ),
    cheat(
        J,
        "makes the target pass and breaks another",
        Edits(&[Change(CODE, BODY, RIGHT), Change(CODE, "n * 2", "n * 3")]),
        "rejected",
        "doubles",
    ),
    cheat(J, "does not compile", Edits(&[Change(CODE, BODY, "        return n * thrice;\n")]), "rejected", "thrice"),
    cheat(
        J,
        "as an agent, puts compiled code in place that the source does not say",
        Agent(
            "mkdir -p \"$here/demo\"
             sed 's/return n;/return n * 3;/' src/main/java/demo/Calc.java > \"$here/demo/Calc.java\"
             mkdir -p target/classes
             javac -d target/classes \"$here/demo/Calc.java\"
             touch -d '+1 hour' target/classes/demo/Calc.class
             echo 'Better.' >> README.md",
        ),
        "rejected",
        "triples",
    ),
    cheat_in(
        J,
        Refactor,
        "while refactoring, breaks the behaviour",
        Edits(&[Change(CODE, "n * 3", "n + n")]),
        "rejected",
        "triples",
    ),
    cheat_in(
        J,
        Red,
        "instead of a red, complains whatever the code does",
        Edits(&[Change(
            TEST,
            OLD_TEST,
            "    @Test\n    public void quadruples() {\n        org.junit.Assert.fail(\"not written\");\n    }\n\n    @Test\n    public void triples()",
        )]),
        "rejected",
        "not written",
    ),
    cheat_in(
        J,
        Red,
        "instead of a red, changes what an old test expects",
        Edits(&[Change(TEST, "assertEquals(6,", "assertEquals(8,")]),
        "tampered",
        TEST,
    ),
    cheat_in(
        J,
        Red,
        "beside the red, writes the code",
        Edits(&[
            Change(
                TEST,
                OLD_TEST,
                "    @Test\n    public void quadruples() {\n        assertEquals(8, Calc.quadruple(2));\n    }\n\n    @Test\n    public void triples()",
            ),
            Change(
                CODE,
                "    public static int twice",
                "    public static int quadruple(int n) {\n        return n;\n    }\n\n    public static int twice",
            ),
        ]),
        "tampered",
        CODE,
    ),
];

pub(super) static HONEST: &[Case] = &[
    honest(
        J,
        Green,
        "fixes one line",
        Edits(&[Change(CODE, BODY, RIGHT)]),
    ),
    honest(
        J,
        Green,
        "fixes it in a class of its own, with an equality that compares",
        Edits(&[
            Create(
                "src/main/java/demo/Times.java",
                "package demo;\n\n/** Not for org.junit, nor for System.exit. */\nrecord Times(int by) {\n    int of(int n) {\n        return n * by;\n    }\n\n    \
                 @Override\n    public boolean equals(Object other) {\n        return other instanceof Times t && t.by == by;\n    }\n\n    \
                 @Override\n    public int hashCode() {\n        return by;\n    }\n}\n",
            ),
            Change(CODE, BODY, "        return new Times(3).of(n);\n"),
        ]),
    ),
    honest(
        J,
        Green,
        "prints what a runner would, and is right",
        Edits(&[Change(
            CODE,
            BODY,
            "        System.out.println(\"Tests run: 2, Failures: 2\");\n        return n * 3;\n",
        )]),
    ),
    honest(
        J,
        Green,
        "fixes it in place",
        Agent("sed -i 's/return n;/return n * 3;/' src/main/java/demo/Calc.java"),
    ),
    honest(
        J,
        Red,
        "adds one failing test",
        Edits(&[Change(
            TEST,
            OLD_TEST,
            "    @Test\n    public void doublesBelowZero() {\n        assertEquals(2, Calc.twice(-1));\n    }\n\n    @Test\n    public void triples()",
        )]),
    ),
    honest(
        J,
        Red,
        "adds one test of a method that is missing",
        Edits(&[Create(
            "src/test/java/demo/MoreTest.java",
            "package demo;\n\nimport org.junit.Assert;\nimport org.junit.Test;\n\npublic class MoreTest {\n    @Test\n    public void quadruples() {\n        \
             Assert.assertEquals(8, Calc.quadruple(2));\n    }\n}\n",
        )]),
    ),
    honest(
        J,
        Refactor,
        "says the same in other words",
        Edits(&[Change(CODE, "n * 3", "n + twice(n)")]),
    ),
];
