//! What was asked and what came back, as an attempt refers to it: by the names of texts that are kept beside the log.
//! Whether, where and for how long is the [`super::means::Recorder`]'s to know.

use serde::{Deserialize, Serialize};

use supervisor_text::words;

/// Before the path of an answer that could not be used, at the end of a refusal's feedback; statistics look for it.
pub const KEPT_IN: &str = "what it wrote is in ";

/// The name of a kept text, made of its contents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TextId(String);

/// One question and its answer. What was not kept is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeRecord {
    /// The rules that stood above the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<TextId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<TextId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<TextId>,
    /// The answer may be less than half of it: edits were made in place, and are in the attempt's `diff`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_place: bool,
}

/// The same as text, on its way to be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangeTexts {
    pub rules: String,
    pub prompt: String,
    /// Empty if nothing came back.
    pub answer: String,
}

/// At most so many bytes of a refusal's reason; the path at its end stays whole, because half a path is none.
pub fn shorten_feedback(feedback: &str, most: usize) -> String {
    match feedback.rfind(KEPT_IN) {
        Some(at) if feedback.len() > most => {
            let (reason, path) = feedback.split_at(at);
            format!(
                "{}; {path}",
                words::cut_end(
                    reason.trim_end_matches("; "),
                    most.saturating_sub(path.len()).max(60)
                )
            )
        }
        _ => words::cut_end(feedback, most).into_owned(),
    }
}

impl TextId {
    /// Bytes of a hash that are enough to tell all texts of one user apart.
    const LENGTH: usize = 32;

    pub fn of(text: &str) -> Self {
        Self(blake3::hash(text.as_bytes()).to_hex()[..Self::LENGTH].to_owned())
    }

    /// Safe to be part of a path; a log that was edited by hand may hold anything.
    pub fn is_valid(&self) -> bool {
        self.0.len() == Self::LENGTH
            && self
                .0
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ExchangeRecord {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
