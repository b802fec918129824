//! The formats in which a worker may be asked to answer: whole files, search and replace, JSON, or
//! edits in place. Each is described once, with an example and the files that may be edited.

use serde_json::{Value, json};

use supervisor_engine::evidence::Evidence;
use supervisor_engine::proposal;
use supervisor_engine::skill::{Preparation, RefusedCall};
use supervisor_models::Edits;
use supervisor_settings::{BackendKind, EditFormat, Repair, Tier};
use supervisor_text::prompts::Template;
use supervisor_text::words;

const WHOLE: &str = "tdd/reply_whole";
const SEARCH_REPLACE: &str = "tdd/reply_search_replace";
const JSON: &str = "tdd/reply_json";
const IN_PLACE: &str = "tdd/reply_in_place";
const REPAIR: &str = "tdd/repair";

/// Longer files are edited by search and replace, because models make mistakes when they copy them
/// whole.
const MAX_WHOLE_FILE_LINES: usize = 400;
/// Maximum number of editable files listed by name.
const MAX_NAMED_FILES: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyFormat {
    WholeFiles,
    SearchReplace,
    Json,
    InPlace,
}

impl ReplyFormat {
    /// The format for this tier. `longest_file` is the line count of the longest file it may edit.
    pub(super) fn choose(tier: &Tier, edits: Edits, longest_file: usize) -> Self {
        if edits == Edits::InPlace {
            return Self::InPlace;
        }
        match tier.edit_format {
            EditFormat::Whole => Self::WholeFiles,
            EditFormat::SearchReplace => Self::SearchReplace,
            EditFormat::Json => Self::Json,
            // Recordings contain JSON answers.
            EditFormat::Auto if tier.backend.kind == BackendKind::Replay => Self::Json,
            EditFormat::Auto if longest_file > MAX_WHOLE_FILE_LINES => Self::SearchReplace,
            EditFormat::Auto => Self::WholeFiles,
        }
    }

    /// JSON schema of the answer; null for text formats.
    pub(super) fn schema(self, asks_cause: bool) -> Value {
        let mut properties = json!({});
        match self {
            Self::WholeFiles | Self::SearchReplace => return Value::Null,
            Self::Json => {
                properties["edits"] = proposal::schema();
                if asks_cause {
                    // Servers that enforce a schema may keep its order, which is alphabetical.
                    properties["cause"] = json!({"type": "string"});
                }
                properties["need"] = json!({"type": "array", "items": {"type": "string"}});
            }
            Self::InPlace => {}
        }
        properties["notes"] = json!({"type": "string"});
        properties["contradiction"] = json!({"type": "string"});
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    }
}

/// The instructions for all formats; users can override them.
#[derive(Debug)]
pub(super) struct ReplyInstructions {
    whole: Template,
    search_replace: Template,
    json: Template,
    in_place: Template,
    /// Asks for the cause before a repair, if the settings want it.
    repair: Option<Template>,
}

impl ReplyInstructions {
    pub(super) fn load(call: &Preparation<'_>) -> Result<Self, RefusedCall> {
        let prompts = &call.environment.services.prompts;
        let load = |name: &str| prompts.load(name).map_err(RefusedCall::error);
        Ok(Self {
            whole: load(WHOLE)?,
            search_replace: load(SEARCH_REPLACE)?,
            json: load(JSON)?,
            in_place: load(IN_PLACE)?,
            repair: match call.route.repair {
                Repair::Cause => Some(load(REPAIR)?),
                Repair::Plain => None,
            },
        })
    }

    /// What is asked for before this tier repairs its own answer; empty if it is not the one that
    /// was refused, or is asked the plain way.
    pub(super) fn describe_repair(
        &self,
        form: ReplyFormat,
        tier: &Tier,
        evidence: &Evidence,
    ) -> String {
        let is_own = evidence.last_rejected() == Some(tier.name.0.as_str());
        let cause = match form {
            ReplyFormat::WholeFiles | ReplyFormat::SearchReplace => "one line `NOTES: …`",
            ReplyFormat::Json => "`cause` as the first field",
            ReplyFormat::InPlace => return String::new(),
        };
        match &self.repair {
            Some(template) if is_own => {
                let text = template
                    .fill(&[("cause", cause)])
                    .expect("loaded templates have the slots of the built-in one");
                format!("\n\n{}", text.trim_end())
            }
            _ => String::new(),
        }
    }

    /// The instructions for one format. `editable` lists the shown files that may be edited;
    /// `rule` describes what else may be.
    pub(super) fn describe(&self, form: ReplyFormat, editable: &[String], rule: &str) -> String {
        let template = match form {
            ReplyFormat::WholeFiles => &self.whole,
            ReplyFormat::SearchReplace => &self.search_replace,
            ReplyFormat::Json => &self.json,
            ReplyFormat::InPlace => &self.in_place,
        };
        let named: Vec<String> = editable
            .iter()
            .take(MAX_NAMED_FILES)
            .map(|path| format!("`{}`", words::plain(path)))
            .collect();
        let more = if editable.len() > MAX_NAMED_FILES {
            " and others shown above"
        } else {
            ""
        };
        let files = match named.as_slice() {
            [] => rule.to_owned(),
            _ => format!("You may edit {}{more}. {rule}", named.join(", ")),
        };
        template
            .fill(&[("files", &files)])
            .expect("loaded templates have the slots of the built-in one")
            .trim_end()
            .to_owned()
    }
}
