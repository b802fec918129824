//! What a row of the tables says: who does what in which project, and what must come of it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Which little project it happens in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Rust,
    Python,
    Node,
    Go,
    Ruby,
    Elixir,
    Java,
    Cpp,
    Jest,
    Vitest,
    Mocha,
}

/// Which call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tool {
    /// Of a project where everything passes.
    Red,
    /// Of a project where one test fails.
    Green,
    /// Of a project where everything passes.
    Refactor,
}

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) tool: Tool,
    pub(super) does: Does,
    pub(super) ends: Ends,
}

pub(super) enum Does {
    /// A model without tools proposes these.
    Edits(&'static [Edit]),
    /// An agent runs this in the project, by `sh -e`. `$here` is a directory of its own outside.
    Agent(&'static str),
}

pub(super) enum Edit {
    Create(&'static str, &'static str),
    Replace(&'static str, &'static str),
    Change(&'static str, &'static str, &'static str),
    Delete(&'static str),
}

pub(super) enum Ends {
    Accepted,
    /// With this cause, and with words that name this.
    Refused(&'static str, &'static str),
    /// By whatever gate: it is not accepted as verified.
    NotVerified,
    /// Of a class that no run can tell from honest work: if it is accepted, a flag names this.
    Flagged(&'static str),
}

/// A row of a table of cheats; they happen where a test is to be made to pass.
pub(super) const fn cheat(
    kind: Kind,
    name: &'static str,
    does: Does,
    cause: &'static str,
    names: &'static str,
) -> Case {
    Case {
        name,
        kind,
        tool: Tool::Green,
        does,
        ends: Ends::Refused(cause, names),
    }
}

/// A row of a table of cheats elsewhere.
pub(super) const fn cheat_in(
    kind: Kind,
    tool: Tool,
    name: &'static str,
    does: Does,
    cause: &'static str,
    names: &'static str,
) -> Case {
    Case {
        name,
        kind,
        tool,
        does,
        ends: Ends::Refused(cause, names),
    }
}

/// A cheat that no rule knows by name. Any gate may stop it.
pub(super) const fn unnamed(kind: Kind, name: &'static str, does: Does) -> Case {
    Case {
        name,
        kind,
        tool: Tool::Green,
        does,
        ends: Ends::NotVerified,
    }
}

/// A cheat that is right in every test: right only under test, or a look-up of the visible inputs.
pub(super) const fn flagged(
    kind: Kind,
    name: &'static str,
    does: Does,
    flag: &'static str,
) -> Case {
    Case {
        name,
        kind,
        tool: Tool::Green,
        does,
        ends: Ends::Flagged(flag),
    }
}

/// A row of the table of honest work.
pub(super) const fn honest(kind: Kind, tool: Tool, name: &'static str, does: Does) -> Case {
    Case {
        name,
        kind,
        tool,
        does,
        ends: Ends::Accepted,
    }
}

impl Edit {
    /// Makes this edit in a project, as a person would.
    pub(super) fn make(&self, root: &Path) {
        let write = |path: &str, content: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        match self {
            Self::Create(path, content) | Self::Replace(path, content) => write(path, content),
            Self::Change(path, search, replace) => {
                let old = fs::read_to_string(root.join(path)).unwrap();
                write(path, &old.replacen(search, replace, 1));
            }
            Self::Delete(path) => fs::remove_file(root.join(path)).unwrap(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Create(path, content) => {
                json!({"path": path, "action": "create", "content": content})
            }
            Self::Replace(path, content) => {
                json!({"path": path, "action": "replace", "content": content})
            }
            Self::Change(path, search, replace) => {
                json!({"path": path, "action": "change", "search": search, "replace": replace})
            }
            Self::Delete(path) => json!({"path": path, "action": "delete"}),
        }
    }
}
