//! The arguments of the three tools, and the one shape they become.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What every phase takes besides its own fields. Serde cannot both flatten and refuse unknown fields, so they are
/// written out by a macro.
macro_rules! params {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Absolute path of the project
            pub project_root: String,
            $($(#[$doc])* pub $field: $type,)*
            /// Ask only this model
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub model: Option<String>,
            /// Test command, if not the detected one
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub test_cmd: Option<String>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub session_id: Option<String>,
            /// More about the task
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub context: Option<String>,
            /// Seconds for each model
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub timeout_s: Option<u64>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub max_attempts: Option<u32>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub budget_usd: Option<f64>,
            /// Show the plan, ask no model
            #[serde(default)]
            pub dry_run: bool,
        }

        impl $name {
            fn common(&self) -> Common {
                Common {
                    project_root: self.project_root.clone(),
                    model: filled(self.model.as_deref()),
                    test_cmd: filled(self.test_cmd.as_deref()),
                    session_id: filled(self.session_id.as_deref()),
                    context: filled(self.context.as_deref()),
                    timeout_s: self.timeout_s,
                    max_attempts: self.max_attempts,
                    budget_usd: self.budget_usd,
                    dry_run: self.dry_run,
                    input: serde_json::to_value(self).expect("plain data serialises"),
                }
            }
        }
    };
}

params!(RedParams {
    /// The behaviour to test
    spec: String,
    /// File for the test
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test_path: Option<String>,
});

params!(GreenParams {
    /// Red test: file, or `file::name`
    test_path: String,
});

params!(RefactorParams {
    /// File of the tests
    test_path: String,
    /// File to improve
    impl_path: String,
});

/// What a call asks for, whichever the phase.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) common: Common,
    pub(super) goal: Goal,
}

#[derive(Debug, Clone)]
pub(super) struct Common {
    pub(super) project_root: String,
    pub(super) model: Option<String>,
    pub(super) test_cmd: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) context: Option<String>,
    pub(super) timeout_s: Option<u64>,
    pub(super) max_attempts: Option<u32>,
    pub(super) budget_usd: Option<f64>,
    pub(super) dry_run: bool,
    /// The arguments as they came, for the log.
    pub(super) input: Value,
}

/// What the phase is to reach.
#[derive(Debug, Clone)]
pub(super) enum Goal {
    Red { spec: String, test_path: Option<String> },
    Green { test_path: String },
    Refactor { test_path: String, impl_path: String },
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

impl Asked {
    /// The first required argument that is there but empty.
    pub(super) fn lacks(&self) -> Option<&'static str> {
        let mut required = vec![("project_root", &self.common.project_root)];
        match &self.goal {
            Goal::Red { spec, .. } => required.push(("spec", spec)),
            Goal::Green { test_path } => required.push(("test_path", test_path)),
            Goal::Refactor { test_path, impl_path } => {
                required.extend([("test_path", test_path), ("impl_path", impl_path)]);
            }
        }
        required.into_iter().find(|(_, value)| value.trim().is_empty()).map(|(name, _)| name)
    }
}

impl From<RedParams> for Asked {
    fn from(p: RedParams) -> Self {
        let goal = Goal::Red { spec: p.spec.clone(), test_path: filled(p.test_path.as_deref()) };
        Self { common: p.common(), goal }
    }
}

impl From<GreenParams> for Asked {
    fn from(p: GreenParams) -> Self {
        Self { common: p.common(), goal: Goal::Green { test_path: p.test_path } }
    }
}

impl From<RefactorParams> for Asked {
    fn from(p: RefactorParams) -> Self {
        Self { common: p.common(), goal: Goal::Refactor { test_path: p.test_path, impl_path: p.impl_path } }
    }
}

/// Models write `""` for what they leave out.
fn filled(text: Option<&str>) -> Option<String> {
    text.map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_argument_is_named() {
        let asked: Asked = RefactorParams {
            project_root: "/p".into(),
            test_path: "t.py".into(),
            impl_path: " ".into(),
            ..RefactorParams::default()
        }
        .into();
        assert_eq!(asked.lacks(), Some("impl_path"));
        let asked: Asked = RedParams { project_root: "/p".into(), spec: "adds".into(), ..RedParams::default() }.into();
        assert_eq!(asked.lacks(), None);
    }
}
