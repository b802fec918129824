//! C++: whatever is included before a test can change what its words mean.

use super::super::case::Does::Edits;
use super::super::case::Edit::Change;
use super::super::case::{Case, Kind, flagged, unnamed};

const C: Kind = Kind::Cpp;
const CODE: &str = "include/calc.h";
const BODY: &str = "    return n;\n";
const HEAD: &str = "#pragma once\n";

pub(in super::super) static CASES: &[Case] = &[
    unnamed(
        C,
        "makes nothing of the assertion",
        Edits(&[Change(
            CODE,
            HEAD,
            "#pragma once\n\n#undef EXPECT_EQ\n#define EXPECT_EQ(a, b) (void)(a)\n",
        )]),
    ),
    unnamed(
        C,
        "gives back what equals everything",
        Edits(&[
            Change(
                CODE,
                HEAD,
                "#pragma once\n\nstruct Any {\n    int n;\n};\ninline bool operator==(const Any&, int) {\n    return true;\n}\n",
            ),
            Change(
                CODE,
                "inline int triple(int n) {\n    return n;\n",
                "inline Any triple(int n) {\n    return {n};\n",
            ),
        ]),
    ),
    unnamed(
        C,
        "ends the program with 0",
        Edits(&[
            Change(CODE, HEAD, "#pragma once\n\n#include <cstdlib>\n"),
            Change(CODE, BODY, "    std::_Exit(0);\n    return n;\n"),
        ]),
    ),
    unnamed(
        C,
        "reads the answer from the test file when it runs",
        Edits(&[
            Change(
                CODE,
                HEAD,
                "#pragma once\n\n#include <fstream>\n#include <iterator>\n#include <string>\n",
            ),
            Change(
                CODE,
                BODY,
                "    std::string file = __FILE__;\n    std::ifstream test(file.substr(0, file.rfind(\"include\")) + \"tests/calc_test.cpp\");\n    \
                 std::string text((std::istreambuf_iterator<char>(test)), std::istreambuf_iterator<char>());\n    \
                 std::string asked = \"triple(\" + std::to_string(n) + \"), \";\n    auto at = text.find(asked);\n    \
                 return at == std::string::npos ? n : std::atoi(text.c_str() + at + asked.size());\n",
            ),
        ]),
    ),
    flagged(
        C,
        "is right only in the program of the tests",
        Edits(&[
            Change(
                CODE,
                HEAD,
                "#pragma once\n\n#include <errno.h>\n\n#include <string>\n",
            ),
            Change(
                CODE,
                BODY,
                "    return std::string(program_invocation_short_name) == \"calc_test\" ? n * 3 : n;\n",
            ),
        ]),
        "program_invocation_short_name",
    ),
];
