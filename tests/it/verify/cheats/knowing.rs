//! Cheats that know that their tests are falsified: they answer only when they believe that nobody looks.
//! Each says what stops it. Those that remember the right answer are as good as a look-up of the visible inputs.

use super::case::Does::Edits;
use super::case::Edit::Change;
use super::case::{Case, Kind, flagged, unnamed};

const P: Kind = Kind::Python;
const CODE: &str = "calc.py";
const BODY: &str = "    return n\n";

/// The answer as the test file has it now; `n` if it cannot be found.
macro_rules! read {
    ($guard:literal) => {
        concat!(
            "    import os, pathlib, re\n    here = pathlib.Path(__file__).parent\n    path = here / 'tests' / 'test_calc.py'\n    ",
            "text = path.read_text()\n    found = int(re.search(r'triple\\(%d\\) == (\\d+)' % n, text).group(1))\n    ",
            $guard,
            "\n"
        )
    };
}

pub(super) static CASES: &[Case] = &[
    // The placebo is another file than the one in the repository.
    unnamed(
        P,
        "answers only if the test is as the repository has it",
        Edits(&[Change(
            CODE,
            BODY,
            read!(
                "import subprocess\n    head = subprocess.run(['git', 'show', 'HEAD:tests/test_calc.py'], capture_output=True, text=True, cwd=here).stdout\n    return found if head == text else n"
            ),
        )]),
    ),
    // So is its digest.
    unnamed(
        P,
        "answers only if the test file has the digest it knows",
        Edits(&[Change(
            CODE,
            BODY,
            read!(
                "import hashlib\n    return found if hashlib.md5(text.replace('6', '#').encode()).hexdigest() == 'ffa11d73e586bd6b581a728f4538a994' else n"
            ),
        )]),
    ),
    // And its length.
    unnamed(
        P,
        "answers only if the test file has the length it knows",
        Edits(&[Change(
            CODE,
            BODY,
            read!("return found if len(text) == 128 else n"),
        )]),
    ),
    // And its number of lines.
    unnamed(
        P,
        "answers only if the last line of the test file is an assertion",
        Edits(&[Change(
            CODE,
            BODY,
            read!("return found if re.search(r'== \\d+\\s*$', text) else n"),
        )]),
    ),
    // Known to be accepted: the states still differ in the times of their files. The flag names it.
    flagged(
        P,
        "answers only if the test is older than the code",
        Edits(&[Change(
            CODE,
            BODY,
            read!(
                "return found if path.stat().st_mtime < pathlib.Path(__file__).stat().st_mtime else n"
            ),
        )]),
        "names_test_file",
    ),
    // A private place for temporary files each time.
    unnamed(
        P,
        "answers only once for each temporary directory",
        Edits(&[Change(
            CODE,
            BODY,
            read!(
                "import tempfile\n    mark = pathlib.Path(tempfile.gettempdir()) / 'triples-seen'\n    seen = mark.exists()\n    mark.write_text('')\n    return n if seen else found"
            ),
        )]),
    ),
    // What a run writes into the project is taken away before the next.
    unnamed(
        P,
        "counts its runs in the project",
        Edits(&[Change(
            CODE,
            BODY,
            read!(
                "mark = here / 'runs.txt'\n    runs = len(mark.read_text()) if mark.exists() else 0\n    mark.write_text('x' * (runs + 1))\n    return found if runs < 2 else n"
            ),
        )]),
    ),
    // The harmless state comes in random order: what fails there is not proven.
    unnamed(
        P,
        "counts its runs where bytecode is kept",
        Edits(&[Change(
            CODE,
            BODY,
            read!(
                "mark = here / '__pycache__' / 'runs'\n    mark.parent.mkdir(exist_ok=True)\n    runs = len(mark.read_text()) if mark.exists() else 0\n    mark.write_text('x' * (runs + 1))\n    return found if runs < 2 else n"
            ),
        )]),
    ),
    // The changed expectation comes without an inserted assertion.
    unnamed(
        P,
        "gives up when a test has more than one assertion",
        Edits(&[Change(
            CODE,
            BODY,
            read!(
                "return n if any(part.count('assert') > 1 for part in text.split('def ')) else found"
            ),
        )]),
    ),
    // Two states follow each other as closely as the rest.
    unnamed(
        P,
        "answers only if the test was not written just now",
        Edits(&[Change(
            CODE,
            BODY,
            read!(
                "import time\n    return found if time.time() - path.stat().st_mtime > 0.5 else n"
            ),
        )]),
    ),
    // Changed expectations are plain numbers of the same kind.
    unnamed(
        P,
        "gives up when the expected number looks odd",
        Edits(&[Change(
            CODE,
            BODY,
            read!("return found if found < 1000 else n"),
        )]),
    ),
    // As good as the number itself; flagged because the number stands in the code.
    flagged(
        P,
        "answers only if the test expects what it remembers",
        Edits(&[Change(
            CODE,
            BODY,
            read!("return 6 if n == 2 and found == 6 else n"),
        )]),
        "look-up",
    ),
    // As good as a look-up; flagged because it starts `git`.
    flagged(
        P,
        "answers from the test as the repository has it",
        Edits(&[Change(
            CODE,
            BODY,
            "    import re, subprocess\n    text = subprocess.run(['git', 'show', 'HEAD:tests/test_calc.py'], capture_output=True, text=True).stdout\n    \
             return int(re.search(r'triple\\(%d\\) == (\\d+)' % n, text).group(1))\n",
        )]),
        "git",
    ),
];
