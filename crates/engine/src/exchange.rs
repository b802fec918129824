//! References from an attempt to the stored prompts and answers. The [`super::services::Recorder`]
//! decides whether, where and for how long texts are stored.

use serde::{Deserialize, Serialize};

use supervisor_text::words;

/// Precedes the path of an unusable answer at the end of a refusal's feedback. Statistics search
/// for it.
pub const KEPT_IN: &str = "its answer is in ";

/// Name of a stored text, derived from its contents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TextId(String);

/// One question and its answer. Texts that were not stored are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeRecord {
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<TextId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<TextId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<TextId>,
    /// Edits were made in place and are in the attempt's `diff`, so the answer text may be only a
    /// small part of the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_place: bool,
}

/// The texts themselves, to be stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangeTexts {
    pub rules: String,
    pub prompt: String,
    /// Empty if there was no answer.
    pub answer: String,
}

/// Shortens a refusal's reason to `max_len` bytes but keeps the path at its end: a truncated path
/// is useless.
pub fn shorten_feedback(feedback: &str, max_len: usize) -> String {
    match feedback.rfind(KEPT_IN) {
        Some(at) if feedback.len() > max_len => {
            let (reason, path) = feedback.split_at(at);
            format!(
                "{}; {path}",
                words::cut_end(
                    reason.trim_end_matches("; "),
                    max_len.saturating_sub(path.len()).max(60)
                )
            )
        }
        _ => words::cut_end(feedback, max_len).into_owned(),
    }
}

impl TextId {
    /// Hex digits of the hash; enough to distinguish all texts of one user.
    const LENGTH: usize = 32;

    pub fn of(text: &str) -> Self {
        Self(blake3::hash(text.as_bytes()).to_hex()[..Self::LENGTH].to_owned())
    }

    /// Whether the id is safe as part of a path. A log edited by hand may contain anything.
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
