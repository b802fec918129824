//! Removes what surrounds an answer: reasoning, chat template tokens, a byte order mark. Tags
//! inside of code are kept: only a tag at the start of a line counts.

use std::borrow::Cow;

use super::rule::ParseRule;

const TAGS: &[&str] = &["think", "thinking", "thought", "reasoning"];

/// The answer without reasoning.
pub(super) struct VisibleText<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) rules: Vec<ParseRule>,
    /// The text was not empty, but all of it was reasoning.
    pub(super) only_thoughts: bool,
}

pub(super) fn without_thoughts(text: &str) -> VisibleText<'_> {
    let mut rules = Vec::new();
    let had_text = !text.trim().is_empty();
    let text = text.trim_start_matches('\u{feff}');
    let text = without_tokens(text, &mut rules);
    let mut rest: Cow<'_, str> = text;
    for tag in TAGS {
        if let Some(left) = strip_tag(&rest, tag) {
            rules.push(ParseRule::Thoughts);
            rest = Cow::Owned(left);
        }
    }
    let only_thoughts = had_text && rest.trim().is_empty();
    VisibleText {
        text: rest,
        rules,
        only_thoughts,
    }
}

/// Maximum number of reasoning blocks removed from one answer.
const MAX_BLOCKS: usize = 64;

/// The text without the reasoning in this tag; `None` if there is none.
fn strip_tag(text: &str, tag: &str) -> Option<String> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let mut left: Option<String> = None;
    for _ in 0..MAX_BLOCKS {
        match strip_tag_once(left.as_deref().unwrap_or(text), &open, &close) {
            Some(next) => left = Some(next),
            None => break,
        }
    }
    left
}

fn strip_tag_once(text: &str, open: &str, close: &str) -> Option<String> {
    let first_open = at_line_start(text, open);
    // The prompt template opened the reasoning, so everything before the closing tag belongs to it.
    // The closing tag may be anywhere except inside a line of code, such as in a string.
    if let Some(end) = text[..first_open.unwrap_or(text.len())].rfind(close) {
        let after = &text[end + close.len()..];
        let line_end = after.lines().next().unwrap_or_default().trim();
        let line_start = text[..end].rsplit('\n').next().unwrap_or_default().trim();
        let in_object = text.trim_start().starts_with(['{', '['])
            && line_end.contains('"')
            && !line_end.starts_with('{');
        if !in_object
            && (line_start.is_empty()
                || line_end.is_empty()
                || line_end.starts_with(['{', '`', '[', '<']))
        {
            return Some(after.to_owned());
        }
    }
    let (before, after) = (&text[..first_open?], &text[first_open? + open.len()..]);
    Some(match after.find(close) {
        Some(end) => format!("{before}{}", &after[end + close.len()..]),
        // Never closed: the answer came before, or is part of the reasoning.
        None if before.trim().is_empty() => after.to_owned(),
        None => before.to_owned(),
    })
}

/// The first occurrence of the needle at the start of a line, ignoring white space.
fn at_line_start(text: &str, needle: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(step) = text[from..].find(needle) {
        let at = from + step;
        if text[..at]
            .rsplit('\n')
            .next()
            .is_some_and(|line| line.trim().is_empty())
        {
            return Some(at);
        }
        from = at + needle.len();
    }
    None
}

/// The last message of a channel, without the tokens around it.
fn without_tokens<'t>(text: &'t str, rules: &mut Vec<ParseRule>) -> Cow<'t, str> {
    const FINAL: &str = "<|channel|>final";
    const MESSAGE: &str = "<|message|>";
    let mut rest = text;
    if let Some(at) = rest.rfind(FINAL)
        && let Some(message) = rest[at..].find(MESSAGE)
    {
        rest = &rest[at + message + MESSAGE.len()..];
    }
    for end in [
        "<|end|>",
        "<|return|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "</s>",
    ] {
        rest = rest.trim_end().strip_suffix(end).unwrap_or(rest);
    }
    for start in [
        "<|im_start|>assistant",
        "<|start|>assistant",
        "<|assistant|>",
        "[TOOL_CALLS]",
        "<|python_tag|>",
    ] {
        rest = rest.trim_start().strip_prefix(start).unwrap_or(rest);
    }
    if rest.len() != text.len() && rest.trim() != text.trim() {
        rules.push(ParseRule::TemplateTokens);
    }
    Cow::Borrowed(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> String {
        without_thoughts(text).text.trim().to_owned()
    }

    #[test]
    fn reasoning_is_removed() {
        for text in [
            "answer",
            "<think>maybe</think>answer",
            "<think>\nmaybe ```\n</think>\n\nanswer",
            "it was opened by the template\n</think>\nanswer",
            "<think>a</think>\n<think>b</think>\nanswer",
            "<thinking>a</thinking>answer",
            "<think>answer",
            "answer\n<think>was that right?",
            "\u{feff}answer<|im_end|>",
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>answer<|return|>",
        ] {
            assert_eq!(left(text), "answer", "{text}");
        }
        assert!(without_thoughts("<think>all of it</think>").only_thoughts);
        assert!(!without_thoughts(" \n").only_thoughts);
    }

    #[test]
    fn tag_inside_code_is_kept() {
        let code = "src/strip.py\n```python\nEND = \"</think>\"\nSTART = '<think>'\n```";
        assert_eq!(left(code), code);
        let object = r#"{"edits": [{"path": "a", "content": "x </think> y"}]}"#;
        assert_eq!(left(object), object);
    }
}
