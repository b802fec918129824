//! The arguments of the three tools, and the one shape they become.

use crate::skills::common::{Common, filled, params};

params!(RedParams {
    /// The behaviour to test
    spec: String,
    /// File for the test
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test_path: Option<String>,
    /// Test command, if not the detected one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test_cmd: Option<String>,
});

params!(GreenParams {
    /// Red test: file, or `file::name`
    test_path: String,
    /// Test command, if not the detected one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test_cmd: Option<String>,
});

params!(RefactorParams {
    /// File of the tests
    test_path: String,
    /// File to improve
    impl_path: String,
    /// Test command, if not the detected one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test_cmd: Option<String>,
});

/// What a call asks for, whichever the phase.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) common: Common,
    pub(super) test_cmd: Option<String>,
    pub(super) goal: Goal,
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
    /// The phase's own arguments that may not be empty.
    pub(super) fn required(&self) -> Vec<(&'static str, &str)> {
        match &self.goal {
            Goal::Red { spec, .. } => vec![("spec", spec)],
            Goal::Green { test_path } => vec![("test_path", test_path)],
            Goal::Refactor { test_path, impl_path } => vec![("test_path", test_path), ("impl_path", impl_path)],
        }
    }
}

impl From<RedParams> for Asked {
    fn from(p: RedParams) -> Self {
        let goal = Goal::Red { spec: p.spec.clone(), test_path: filled(p.test_path.as_deref()) };
        Self { common: p.common(), test_cmd: filled(p.test_cmd.as_deref()), goal }
    }
}

impl From<GreenParams> for Asked {
    fn from(p: GreenParams) -> Self {
        let goal = Goal::Green { test_path: p.test_path.clone() };
        Self { common: p.common(), test_cmd: filled(p.test_cmd.as_deref()), goal }
    }
}

impl From<RefactorParams> for Asked {
    fn from(p: RefactorParams) -> Self {
        let goal = Goal::Refactor { test_path: p.test_path.clone(), impl_path: p.impl_path.clone() };
        Self { common: p.common(), test_cmd: filled(p.test_cmd.as_deref()), goal }
    }
}
