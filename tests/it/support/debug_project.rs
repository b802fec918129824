//! A small project whose command fails, and an answer about it that holds.

use serde_json::{Value, json};

use crate::support::scenario::Scenario;

pub(crate) const SCRIPT: &str = "#!/bin/sh
# Prints the first field of the first row.
rows=$(cat \"$1\")
first=${rows%% *}
if [ -z \"$first\" ]; then
    echo \"report.sh:6: RowError: the first row has no fields\" >&2
    exit 3
fi
echo \"$first\"
";
pub(crate) const ERROR: &str = "report.sh:6: RowError: the first row has no fields";
pub(crate) const REPRO: &str = "sh report.sh empty.txt";

/// Tiers `small`, `medium` and `large`, of which these are asked; nobody judges.
pub(crate) fn project(tiers: &[&str]) -> Scenario {
    with_files(
        tiers,
        &[
            ("report.sh", SCRIPT),
            ("empty.txt", ""),
            ("full.txt", "one two\n"),
        ],
    )
}

pub(crate) fn with_files(tiers: &[&str], files: &[(&str, &str)]) -> Scenario {
    let chain: Vec<String> = tiers.iter().map(|t| format!("\"{t}\"")).collect();
    Scenario::chain(tiers, files).settings(&format!(
        "[skills.debug]\nchain = [{}]\ntests_s = 120\n",
        chain.join(", ")
    ))
}

/// Three causes, each with a line that is there. The first search comes out as it says where the others predict otherwise;
/// theirs do not come out.
pub(crate) fn sound() -> Value {
    let one = |likelihood: &str,
               title: &str,
               mechanism: &str,
               line: usize,
               quote: &str,
               search: (&str, &str, &str)| {
        let (pattern, if_true, if_false) = search;
        json!({"likelihood": likelihood, "title": title, "mechanism": mechanism,
               "evidence": [{"file": "report.sh", "line": line, "quote": quote}],
               "confirm": {"search": {"pattern": pattern, "file": "report.sh"}},
               "expect_if_true": if_true, "expect_if_false": if_false})
    };
    json!({"hypotheses": [
        one("high", "an empty file is not told from a bad one",
            "`cat` of an empty file gives nothing, so that `first` is empty and the guard takes it for a broken row",
            4, "first=${rows%% *}", (r"empty file|-s .\$1", "not_found", "found")),
        one("medium", "leading blanks hide the field",
            "`%% *` cuts at the first blank, and in a row that begins with one everything behind is thrown away",
            5, "if [ -z \"$first\" ]; then", (r"tr -s|blank", "found", "not_found")),
        one("low", "the argument is another path",
            "the caller names a file that another process has just truncated and is about to write anew",
            3, "rows=$(cat \"$1\")", (r"process|lock \$1", "found", "not_found")),
    ]})
}

/// The sound answer, changed.
pub(crate) fn spoilt(change: impl Fn(&mut Vec<Value>)) -> Value {
    let mut answer = sound();
    change(answer["hypotheses"].as_array_mut().unwrap());
    answer
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("no `{key}` in {value}"))
}
