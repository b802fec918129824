//! The arguments of the four tools, and the request type they are converted to.

use serde::{Deserialize, Serialize};

use super::check::CheckArgument;
use crate::common::{filled, params};
use supervisor_engine::call::CallArguments;
use supervisor_verify::ResultCheck;

params!(RedParams {
    /// The behaviour to test, in one sentence
    spec: String,
    /// File in which to write the test
    test_path: Option<String>,
    /// Command that runs the tests, if not the detected one
    test_cmd: Option<String>,
    /// JUnit files that `test_cmd` writes
    test_report: Option<String>,
});

params!(GreenParams {
    /// Failing test: file or `file::name`, or a list; left out: all that are red
    test_path: Option<TestPaths>,
    /// Command that runs the tests, if not the detected one
    test_cmd: Option<String>,
    /// JUnit files that `test_cmd` writes
    test_report: Option<String>,
    /// Dependencies the answer may add: names, or true
    allow_dependencies: Option<AllowedDependencies>,
    /// How many hidden tests another model writes
    twins: Option<u32>,
    /// Answers per first ask; tests select
    samples: Option<u32>,
    /// Instead of a test: {kind: rows, query, database, expected}, {kind: files, command, expected, input}, {kind: command, command, paths} or {kind: docs, path}
    check: Option<CheckArgument>,
});

params!(RefactorParams {
    /// File with the tests of that code
    test_path: String,
    /// File of code to improve
    impl_path: String,
    /// Command that runs the tests, if not the detected one
    test_cmd: Option<String>,
    /// JUnit files that `test_cmd` writes
    test_report: Option<String>,
    /// Dependencies the answer may add: names, or true
    allow_dependencies: Option<AllowedDependencies>,
});

params!(CycleParams {
    /// Behaviours to add in turn: one, or a list
    criteria: Criteria,
    /// Refactor after each passing criterion
    #[serde(default)]
    refactor: bool,
    /// The last phase of each criterion
    stop_at: Option<StopAt>,
    /// Commit each green criterion
    #[serde(default)]
    commit: bool,
    /// File in which to write the tests
    test_path: Option<String>,
    /// Command that runs the tests, if not the detected one
    test_cmd: Option<String>,
    /// JUnit files that `test_cmd` writes
    test_report: Option<String>,
    /// Dependencies the answer may add: names, or true
    allow_dependencies: Option<AllowedDependencies>,
});

/// The last phase of each criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum StopAt {
    Red,
    Green,
    Refactor,
}

/// Behaviours, as models write them: a sentence, a list, or a list in one text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Criteria {
    Several(Vec<String>),
    One(String),
    #[default]
    None,
}

impl Criteria {
    /// The criteria without empty ones.
    pub(super) fn list(&self) -> Vec<String> {
        let texts = match self {
            Self::Several(texts) => texts.clone(),
            Self::One(text) => list_items(text).unwrap_or_else(|| vec![text.clone()]),
            Self::None => Vec::new(),
        };
        texts
            .iter()
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect()
    }
}

/// The items of a text in which every line is a list item.
fn list_items(text: &str) -> Option<Vec<String>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let item = |line: &str| {
        let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = match line.len() == numbered.len() {
            true => line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")),
            false => numbered
                .strip_prefix(". ")
                .or_else(|| numbered.strip_prefix(") ")),
        };
        rest.map(str::to_owned)
    };
    lines
        .map(item)
        .collect::<Option<Vec<_>>>()
        .filter(|items| !items.is_empty())
}

impl schemars::JsonSchema for Criteria {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Criteria".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    }
}

/// Tests to make green: one, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TestPaths {
    One(String),
    Several(Vec<String>),
}

impl TestPaths {
    /// The paths without empty ones.
    pub(super) fn list(&self) -> Vec<String> {
        let paths = match self {
            Self::One(path) => std::slice::from_ref(path),
            Self::Several(paths) => paths,
        };
        let filled_paths = paths.iter().filter_map(|path| filled(Some(path)));
        filled_paths.collect()
    }
}

impl schemars::JsonSchema for TestPaths {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TestPaths".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Criteria::json_schema(generator)
    }
}

/// Which dependencies an answer may add to the manifests of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllowedDependencies {
    #[default]
    None,
    All(bool),
    Named(Vec<String>),
}

impl AllowedDependencies {
    /// Whether any dependency may be added.
    pub(super) fn any(&self) -> bool {
        match self {
            Self::None | Self::All(false) => false,
            Self::All(true) => true,
            Self::Named(names) => !names.is_empty(),
        }
    }

    pub(super) fn allow(&self, name: &str) -> bool {
        match self {
            Self::Named(names) => names.iter().any(|known| known == name),
            other => other.any(),
        }
    }
}

impl schemars::JsonSchema for AllowedDependencies {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AllowedDependencies".into()
    }

    fn inline_schema() -> bool {
        true
    }

    // Kept minimal: the schema costs tokens in every conversation.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "string"}}]})
    }
}

/// Arguments of a phase, common to all phases.
#[derive(Debug, Clone)]
pub(super) struct TddRequest {
    pub(super) common: CallArguments,
    pub(super) test_cmd: Option<String>,
    pub(super) test_report: Option<String>,
    pub(super) allow_dependencies: AllowedDependencies,
    /// What must pass in the place of a test.
    pub(super) check: Option<ResultCheck>,
    pub(super) goal: Goal,
}

/// The phase and its specific arguments.
#[derive(Debug, Clone)]
pub(super) enum Goal {
    Red {
        spec: String,
        test_path: Option<String>,
    },
    Green {
        /// Empty: the file of a test that is red now.
        test_path: String,
    },
    Refactor {
        test_path: String,
        impl_path: String,
    },
}

impl Goal {
    pub(super) fn skill(&self) -> &'static str {
        match self {
            Self::Red { .. } => "tdd_red",
            Self::Green { .. } => "tdd_green",
            Self::Refactor { .. } => "tdd_refactor",
        }
    }

    pub(super) fn phase(&self) -> &'static str {
        match self {
            Self::Red { .. } => "red",
            Self::Green { .. } => "green",
            Self::Refactor { .. } => "refactor",
        }
    }
}

impl TddRequest {
    /// The phase's own arguments that must not be empty.
    pub(super) fn required(&self) -> Vec<(&'static str, &str)> {
        match &self.goal {
            Goal::Red { spec, .. } => vec![("spec", spec)],
            Goal::Green { .. } => Vec::new(),
            Goal::Refactor {
                test_path,
                impl_path,
            } => vec![("test_path", test_path), ("impl_path", impl_path)],
        }
    }
}

impl From<RedParams> for TddRequest {
    fn from(p: RedParams) -> Self {
        let goal = Goal::Red {
            spec: p.spec.clone(),
            test_path: filled(p.test_path.as_deref()),
        };
        Self {
            common: p.common(),
            test_cmd: filled(p.test_cmd.as_deref()),
            test_report: filled(p.test_report.as_deref()),
            allow_dependencies: AllowedDependencies::None,
            check: None,
            goal,
        }
    }
}

impl From<GreenParams> for TddRequest {
    fn from(p: GreenParams) -> Self {
        let mut named = p
            .test_path
            .as_ref()
            .map(TestPaths::list)
            .unwrap_or_default();
        named.truncate(1);
        let goal = Goal::Green {
            test_path: named.pop().unwrap_or_default(),
        };
        Self {
            common: CallArguments {
                twins: p.twins,
                samples: p.samples,
                ..p.common()
            },
            test_cmd: filled(p.test_cmd.as_deref()),
            test_report: filled(p.test_report.as_deref()),
            allow_dependencies: p.allow_dependencies.unwrap_or_default(),
            check: p.check.map(|check| check.0),
            goal,
        }
    }
}

impl From<RefactorParams> for TddRequest {
    fn from(p: RefactorParams) -> Self {
        let goal = Goal::Refactor {
            test_path: p.test_path.clone(),
            impl_path: p.impl_path.clone(),
        };
        Self {
            common: p.common(),
            test_cmd: filled(p.test_cmd.as_deref()),
            test_report: filled(p.test_report.as_deref()),
            allow_dependencies: p.allow_dependencies.unwrap_or_default(),
            check: None,
            goal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_are_parsed_from_text_or_list() {
        let list = |written: serde_json::Value| {
            serde_json::from_value::<Criteria>(written)
                .expect("criteria")
                .list()
        };
        assert_eq!(
            list(serde_json::json!("one - a\nsentence")),
            ["one - a\nsentence"]
        );
        assert_eq!(list(serde_json::json!(["a", " ", "b "])), ["a", "b"]);
        assert_eq!(
            list(serde_json::json!("- a\n\n* b\n1. c\n22) d")),
            ["a", "b", "c", "d"]
        );
        assert_eq!(
            list(serde_json::json!("-5 is negative")),
            ["-5 is negative"]
        );
        assert!(list(serde_json::json!("  ")).is_empty());
    }
}
