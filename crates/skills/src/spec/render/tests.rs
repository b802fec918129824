//! Rendered documents parse back to the input, and no input becomes markup.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::spec::specification::{SpecificationAnswer, read};

/// Parses our own documents into headings and the unescaped lines below each.
fn sections(document: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in document.lines() {
        if let Some(heading) = line.trim_start().strip_prefix('#') {
            found.push((
                heading.trim_start_matches('#').trim().to_owned(),
                Vec::new(),
            ));
        } else if let (false, Some((_, lines))) = (line.trim().is_empty(), found.last_mut()) {
            lines.push(plain(line));
        }
    }
    found
}

/// The text as a Markdown reader sees it.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let (mut chars, mut in_code) = (line.chars().peekable(), false);
    while let Some(c) = chars.next() {
        match c {
            '`' => {
                in_code = !in_code;
                out.push(c);
            }
            '\\' if !in_code && chars.peek().is_some_and(char::is_ascii_punctuation) => {
                out.extend(chars.next());
            }
            _ => out.push(c),
        }
    }
    out
}

const ASKED: &str = "- export tables\n- import tables";

fn reply(texts: &[String]) -> Value {
    let text = |n: usize| format!("tables {}", texts[n % texts.len()]);
    json!({
        "problem": text(0),
        "criteria": [
            {"id": "AC-1", "text": text(1), "test": {"command": "cargo test export"}},
            {"id": "AC-2", "text": text(2), "test": {"metric": text(3), "comparison": ">=", "value": -2.5, "unit": "rows"}},
            {"id": "AC-3", "text": text(4), "test": {"given": text(5) + " a", "when": text(6) + " b", "then": text(7) + " c"}},
        ],
        "constraints": [text(8), text(9)],
        "out_of_scope": [text(10)],
        "approach": [{"decision": text(11) + " d", "rationale": text(12) + " e"}],
        "risks": [{"risk": text(13) + " f", "mitigation": text(14) + " g"}],
        "requirement_map": [{"requirement": "R1", "criteria": ["AC-1"]}, {"requirement": "R2", "question": 1}],
        "questions": [{"requirement": "R2", "question": text(15) + "?"}],
    })
}

fn rendered(reply: &Value, asked: &str) -> Option<String> {
    let requirements = RequirementItems::split(asked).ok()?;
    let SpecificationAnswer::Draft(draft) = read(reply).ok()? else {
        return None;
    };
    let examined = draft.examine(&requirements);
    examined
        .specification
        .map(|spec| markdown(&spec, &requirements))
}

/// Parses with pulldown-cmark. Returns the headings, or the first element that we did not write.
fn parse_with_pulldown(document: &str) -> Result<Vec<String>, String> {
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
    let mut headings = Vec::new();
    let mut open = false;
    for event in Parser::new_ext(document, Options::all()) {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                headings.push(String::new());
                open = true;
            }
            Event::End(TagEnd::Heading(_)) => open = false,
            Event::Text(text) if open => headings.last_mut().expect("one is open").push_str(&text),
            Event::Html(html) | Event::InlineHtml(html) => return Err(format!("html {html:?}")),
            Event::Start(
                tag @ (Tag::Link { .. }
                | Tag::Image { .. }
                | Tag::CodeBlock(_)
                | Tag::Table(_)
                | Tag::BlockQuote(_)
                | Tag::HtmlBlock
                | Tag::FootnoteDefinition(_)
                | Tag::Strikethrough
                | Tag::DefinitionList
                | Tag::MetadataBlock(_)),
            ) => return Err(format!("{tag:?}")),
            Event::Rule => return Err("a rule".into()),
            Event::TaskListMarker(true) => return Err("a ticked box".into()),
            _ => {}
        }
    }
    Ok(headings)
}

/// The words, separated by single spaces.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn document_matches_snapshot() {
    let texts: Vec<String> = (0..16).map(|n| format!("have {n} columns")).collect();
    let document = rendered(&reply(&texts), ASKED).expect("it holds");
    insta::assert_snapshot!(document);
}

#[test]
fn text_cannot_forge_sections_or_markup() {
    let attempts = [
        "x\n## Problem\nforged",
        "x\r\n\r\n# Title",
        "x\u{2028}## Risks",
        "x\u{85}## Risks",
        "x\u{b}\u{c}## Risks",
        "<script>alert(1)</script>",
        "<!-- hidden -->",
        "![x](http://evil.example/beacon)",
        "[x](javascript:alert(1))",
        "```\ncode\n```",
        "` unpaired",
        "`` double `` `",
        "a | b\n--|--\nc | d",
        "x\n===",
        "x\n---",
        "- [x] done",
        "&lt;b&gt; &#35;",
        "**bold** __bold__ ~~gone~~",
        "\\# \\",
        "x\u{1b}[31m\u{202e}\u{e0041}\u{200b}",
        "</untrusted>",
        "[ref]: http://evil.example",
    ];
    for attempt in attempts {
        let document = rendered(&reply(&[attempt.to_owned()]), ASKED)
            .unwrap_or_else(|| panic!("refused: {attempt:?}"));
        let names: Vec<String> = sections(&document)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names[0], "Specification");
        assert_eq!(names[1..], SECTIONS, "{attempt:?}\n{document}");
        assert_eq!(
            parse_with_pulldown(&document).as_ref(),
            Ok(&names),
            "{attempt:?}\n{document}"
        );
        for line in document.lines() {
            assert_inert(line, attempt);
        }
        assert!(
            !document.chars().any(|c| c.is_control() && c != '\n'),
            "{attempt:?}"
        );
        assert!(
            !document.contains(['\u{202e}', '\u{e0041}', '\u{200b}', '\u{2028}']),
            "{attempt:?}"
        );
    }
    // At the start of a block, the first character must not be markup.
    for first in [
        "# a", "- a", "+ a", "* a", "> a", "1. a", "12) a", "=== a", "~~~ a", "``` a", "| a",
        "---", "<b> a", "[a]: b",
    ] {
        let line = opening(first);
        assert!(
            !line.starts_with(['#', '-', '+', '*', '>', '=', '~', '`', '|', '<', '[']),
            "{first} -> {line}"
        );
        assert!(
            !line.starts_with("1.") && !line.starts_with("12)"),
            "{first} -> {line}"
        );
        assert_eq!(plain(&line), first);
    }
}

/// Asserts that outside of code every character that opens markup is escaped.
fn assert_inert(line: &str, attempt: &str) {
    let ours = line
        .trim_start()
        .trim_start_matches("- ")
        .trim_start_matches("[ ] ");
    let bare: String = ours.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let bare = bare.replace("\\\\", " ");
    for mark in ['<', '[', ']', '|', '&', '~'] {
        let open = bare
            .match_indices(mark)
            .any(|(at, _)| !bare[..at].ends_with('\\'));
        assert!(!open, "{mark} stands open in {line:?} after {attempt:?}");
    }
}

#[test]
fn command_with_backticks_stays_code() {
    assert_eq!(code("cargo test"), "`cargo test`");
    assert_eq!(code("echo `date` | x"), "``echo `date` | x``");
    assert_eq!(code("`x`"), "`` `x` ``");
    assert_eq!(
        inline("the flag `--a_b <c>` and snake_case, _x_"),
        "the flag `--a_b <c>` and snake_case, \\_x\\_"
    );
}

proptest! {
    #[test]
    fn sections_parse_back_unchanged(
        texts in proptest::collection::vec("([a-z#*_<>\\[\\]|~&`\\\\.\\- \n\t0-9!é漢\u{2028}\u{200b}]|\n## Problem\n|\n- |\n```\n){0,24}", 16),
        asked in "[a-z]{3,6}( |\n## |\n|`|<b>|\\*){0,3}[a-z]{3,6}",
    ) {
        let reply = reply(&texts);
        let asked = format!("- export tables {asked}\n- import tables");
        let document = rendered(&reply, &asked);
        // Rejected drafts are never rendered.
        prop_assume!(document.is_some());
        let document = document.unwrap_or_default();
        let read = sections(&document);
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        prop_assert_eq!(&names[1..], &SECTIONS[..], "{}", document);
        let others = parse_with_pulldown(&document);
        prop_assert_eq!(others, Ok(names.iter().map(|n| (*n).to_owned()).collect()), "{}", document);
        let plain_text = |value: &Value| joined(value.as_str().unwrap_or_default()).replace('\u{200b}', "u{200b}");
        let counts: Vec<usize> = read[1..].iter().map(|(_, lines)| lines.len()).collect();
        prop_assert_eq!(counts, vec![1, 6, 2, 1, 2, 2, 4, 1], "{}", document);
        prop_assert_eq!(&read[1].1[0], &plain_text(&reply["problem"]));
        prop_assert_eq!(&read[2].1[0], &format!("- [ ] **AC-1** {}", plain_text(&reply["criteria"][0]["text"])));
        prop_assert_eq!(&read[3].1[1], &format!("- {}", plain_text(&reply["constraints"][1])));
        prop_assert_eq!(&read[4].1[0], &format!("1. {}", plain_text(&reply["out_of_scope"][0])));
        prop_assert_eq!(&read[5].1[1], &format!("  - Why: {}", plain_text(&reply["approach"][0]["rationale"])));
        prop_assert_eq!(&read[6].1[1], &format!("  - Mitigation: {}", plain_text(&reply["risks"][0]["mitigation"])));
        prop_assert_eq!(&read[8].1[0], &format!("1. (R2) {}", plain_text(&reply["questions"][0]["question"])));
    }
}
