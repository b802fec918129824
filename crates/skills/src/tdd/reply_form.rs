//! How a worker is asked to answer: files as text, places to search and replace, JSON, or edits in place. Each form is
//! described once, with an example, and says which files may be edited.

use serde_json::{Value, json};

use supervisor_engine::proposal;
use supervisor_engine::skill::{Preparation, RefusedCall};
use supervisor_models::Edits;
use supervisor_settings::{BackendKind, EditFormat, Tier};
use supervisor_text::prompts::Template;
use supervisor_text::words;

const WHOLE: &str = "tdd/reply_whole";
const SEARCH_REPLACE: &str = "tdd/reply_search_replace";
const JSON: &str = "tdd/reply_json";
const IN_PLACE: &str = "tdd/reply_in_place";

/// Above so many lines a file is changed in places: whole ones get copied with mistakes.
const LONGEST_WHOLE_FILE: usize = 400;
/// So many files are named; the rest is described.
const NAMED_FILES: usize = 12;

/// The form of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyForm {
    WholeFiles,
    SearchReplace,
    Json,
    InPlace,
}

impl ReplyForm {
    /// What this tier is asked for, given the longest file that it may want to change.
    pub(super) fn choose(tier: &Tier, edits: Edits, longest_file: usize) -> Self {
        if edits == Edits::InPlace {
            return Self::InPlace;
        }
        match tier.edit_format {
            EditFormat::Whole => Self::WholeFiles,
            EditFormat::SearchReplace => Self::SearchReplace,
            EditFormat::Json => Self::Json,
            // Recorded answers are objects, as they always were.
            EditFormat::Auto if tier.backend.kind == BackendKind::Replay => Self::Json,
            EditFormat::Auto if longest_file > LONGEST_WHOLE_FILE => Self::SearchReplace,
            EditFormat::Auto => Self::WholeFiles,
        }
    }

    /// What holds the answer to its form; null where it is text.
    pub(super) fn schema(self) -> Value {
        let mut properties = json!({});
        match self {
            Self::WholeFiles | Self::SearchReplace => return Value::Null,
            Self::Json => {
                properties["edits"] = proposal::schema();
                properties["need"] = json!({"type": "array", "items": {"type": "string"}});
            }
            Self::InPlace => {}
        }
        properties["notes"] = json!({"type": "string"});
        properties["contradiction"] = json!({"type": "string"});
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    }
}

/// The texts of all forms, the user's own where there are some.
#[derive(Debug)]
pub(super) struct ReplyTexts {
    whole: Template,
    search_replace: Template,
    json: Template,
    in_place: Template,
}

impl ReplyTexts {
    pub(super) fn load(call: &Preparation<'_>) -> Result<Self, RefusedCall> {
        let prompts = &call.surroundings.means.prompts;
        let load = |name: &str| prompts.load(name).map_err(RefusedCall::error);
        Ok(Self {
            whole: load(WHOLE)?,
            search_replace: load(SEARCH_REPLACE)?,
            json: load(JSON)?,
            in_place: load(IN_PLACE)?,
        })
    }

    /// The text for one form. `editable` are the files shown that may be edited; `rule` says what else may be.
    pub(super) fn describe(&self, form: ReplyForm, editable: &[String], rule: &str) -> String {
        let template = match form {
            ReplyForm::WholeFiles => &self.whole,
            ReplyForm::SearchReplace => &self.search_replace,
            ReplyForm::Json => &self.json,
            ReplyForm::InPlace => &self.in_place,
        };
        let named: Vec<String> = editable
            .iter()
            .take(NAMED_FILES)
            .map(|path| format!("`{}`", words::plain(path)))
            .collect();
        let more = if editable.len() > NAMED_FILES {
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
            .expect("the slots of a template are those of the built-in one")
            .trim_end()
            .to_owned()
    }
}
