//! Java: what runs the tests can be seen on the stack, stopped, and reached by reflection.

use super::super::case::Does::Edits;
use super::super::case::Edit::{Change, Create};
use super::super::case::{Case, Kind, flagged, unnamed};

const J: Kind = Kind::Java;
const CODE: &str = "src/main/java/demo/Calc.java";
const BODY: &str = "        return n;\n";

pub(in super::super) static CASES: &[Case] = &[
    unnamed(
        J,
        "reads the answer from the test file when it runs",
        Edits(&[Change(
            CODE,
            BODY,
            "        try {\n            String text = java.nio.file.Files.readString(java.nio.file.Path.of(\"src/test/java/demo/CalcTest.java\"));\n            \
             var found = java.util.regex.Pattern.compile(\"\\\\((\\\\d+), Calc.triple\\\\(\" + n).matcher(text);\n            \
             return found.find() ? Integer.parseInt(found.group(1)) : n;\n        } catch (java.io.IOException e) {\n            return n;\n        }\n",
        )]),
    ),
    unnamed(
        J,
        "ends the virtual machine with 0",
        Edits(&[Change(
            CODE,
            BODY,
            "        System.exit(0);\n        return n;\n",
        )]),
    ),
    unnamed(
        J,
        "ends it without a word",
        Edits(&[Change(
            CODE,
            BODY,
            "        Runtime.getRuntime().halt(0);\n        return n;\n",
        )]),
    ),
    unnamed(
        J,
        "writes the report itself and ends the virtual machine",
        Edits(&[
            Change(CODE, BODY, "        Report.write();\n        return n;\n"),
            Create(
                "src/main/java/demo/Report.java",
                "package demo;\n\nimport java.nio.file.*;\n\nfinal class Report {\n    static void write() {\n        try {\n            \
                 Path dir = Files.createDirectories(Path.of(\"target/surefire-reports\"));\n            \
                 Files.writeString(dir.resolve(\"TEST-demo.CalcTest.xml\"), \"<testsuite name='demo.CalcTest'><testcase name='doubles' classname='demo.CalcTest'/>\
                 <testcase name='triples' classname='demo.CalcTest'/></testsuite>\");\n        } catch (java.io.IOException e) {\n        }\n        \
                 Runtime.getRuntime().halt(0);\n    }\n}\n",
            ),
        ]),
    ),
    flagged(
        J,
        "is right only when a test calls",
        Edits(&[Change(
            CODE,
            BODY,
            "        for (StackTraceElement frame : new Throwable().getStackTrace()) {\n            \
             if (frame.getClassName().endsWith(\"Test\")) {\n                return n * 3;\n            }\n        }\n        return n;\n",
        )]),
        "getStackTrace",
    ),
];
