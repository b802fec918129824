//! Renders a specification as Markdown. The structure is ours; every text in it is untrusted and
//! escaped, so that it can neither start a block nor open markup that swallows the next text.

use std::fmt::Write as _;

use super::specification::{CriterionTest, RequirementItems, Specification};
use supervisor_text::words;

/// The headings, in order. The last is written only if there are questions.
pub(super) const SECTIONS: [&str; 8] = [
    "Problem",
    "Success criteria",
    "Constraints",
    "Out of scope",
    "Approach",
    "Risks",
    "Requirements map",
    "Open questions",
];

/// Max bytes of a requirement repeated in the map.
const MAX_REQUIREMENT_BYTES: usize = 400;

/// Renders the specification as Markdown.
pub(super) fn markdown(spec: &Specification, requirements: &RequirementItems) -> String {
    let mut out = String::from("# Specification\n");
    let mut section = |n: usize, lines: String| {
        let _ = write!(out, "\n## {}\n\n{lines}", SECTIONS[n]);
    };
    section(0, format!("{}\n", opening(&spec.problem)));
    let criteria = spec.criteria.iter().map(|criterion| {
        let (id, text) = (inline(&criterion.id), inline(&criterion.text));
        format!(
            "- [ ] **{id}** {text}\n  - Test: {}\n",
            test(&criterion.test)
        )
    });
    section(1, criteria.collect());
    section(
        2,
        spec.constraints
            .iter()
            .map(|text| format!("- {}\n", opening(text)))
            .collect(),
    );
    section(
        3,
        numbered(spec.out_of_scope.iter().map(|text| opening(text))),
    );
    let approach = spec.approach.iter();
    section(
        4,
        approach
            .map(|d| {
                format!(
                    "- {}\n  - Why: {}\n",
                    opening(&d.decision),
                    inline(&d.rationale)
                )
            })
            .collect(),
    );
    let risks = spec.risks.iter();
    section(
        5,
        risks
            .map(|r| {
                format!(
                    "- {}\n  - Mitigation: {}\n",
                    opening(&r.risk),
                    inline(&r.mitigation)
                )
            })
            .collect(),
    );
    let map = spec
        .requirement_map
        .iter()
        .zip(requirements.iter())
        .map(|(route, (id, text))| {
            let mut targets = route.criteria.clone();
            targets.extend(
                route
                    .out_of_scope
                    .iter()
                    .map(|n| format!("out of scope {n}")),
            );
            targets.extend(route.questions.iter().map(|n| format!("question {n}")));
            targets.extend(route.background.then(|| String::from("background")));
            let targets: Vec<String> = targets.iter().map(|t| inline(t)).collect();
            format!(
                "- **{id}** → {}\n  - Asked: {}\n",
                targets.join(", "),
                inline(&words::cut_end(text, MAX_REQUIREMENT_BYTES))
            )
        });
    section(6, map.collect());
    if !spec.questions.is_empty() {
        let questions = spec.questions.iter();
        section(
            7,
            numbered(
                questions
                    .map(|q| format!("({}) {}", inline(q.requirement.trim()), inline(&q.question))),
            ),
        );
    }
    out
}

fn numbered(lines: impl Iterator<Item = String>) -> String {
    lines
        .enumerate()
        .map(|(n, line)| format!("{}. {line}\n", n + 1))
        .collect()
}

fn test(test: &CriterionTest) -> String {
    match test {
        CriterionTest::Command(command) => format!("{} succeeds", code(command)),
        CriterionTest::Number {
            metric,
            comparison,
            value,
            unit,
        } => [metric, *comparison, value, unit].map(inline).join(" "),
        CriterionTest::Scenario { given, when, then } => {
            format!(
                "*Given* {} *when* {} *then* {}",
                inline(given),
                inline(when),
                inline(then)
            )
        }
    }
}

/// Escapes text to one line on which Markdown and HTML see only text. Pairs of single backticks
/// stay, since authors mark code with them.
pub(super) fn inline(text: &str) -> String {
    let line = one_line(text);
    let parts: Vec<&str> = line.split('`').collect();
    // Backticks pair up only if their number is even and every pair has content; two in a row would
    // open another kind of code span.
    let paired = parts.len() % 2 == 1
        && parts.len() > 1
        && parts
            .iter()
            .skip(1)
            .step_by(2)
            .all(|code| !code.trim().is_empty())
        && !line.contains("``");
    let mut out = String::with_capacity(line.len() + 16);
    for (n, part) in parts.iter().enumerate() {
        if paired && n % 2 == 1 {
            let _ = write!(out, "`{part}`");
            continue;
        }
        if n > 0 && !paired {
            out.push_str("\\`");
        }
        escape(part, &mut out);
    }
    out
}

/// Like [`inline`] for the start of a block: also escapes a leading character that would begin a
/// heading, list, quote or rule.
fn opening(text: &str) -> String {
    let text = inline(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if text.starts_with(['#', '-', '+', '=']) {
        format!("\\{text}")
    } else if digits > 0 && text[digits..].starts_with(['.', ')']) {
        format!("{}\\{}", &text[..digits], &text[digits..])
    } else {
        text
    }
}

/// A code span, fenced by as many backticks as the command requires.
fn code(command: &str) -> String {
    let command = one_line(command);
    let longest = command
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let pad = if command.starts_with('`') || command.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{command}{pad}{fence}")
}

fn escape(text: &str, out: &mut String) {
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let after = rest.peek().copied().unwrap_or(' ');
        let special = match c {
            '\\' | '*' | '[' | ']' | '<' | '>' | '|' | '~' | '&' => true,
            // Inside a word an underscore is not markup, and names read better unescaped.
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(c);
        before = c;
    }
}

/// Collapses whitespace and makes invisible characters visible.
fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(joined.len());
    for c in words::plain(&joined).chars() {
        match c {
            // Invisible to people but read by models: tags, joiners, variation selectors.
            '\u{ad}'
            | '\u{200b}'
            | '\u{2060}'..='\u{2064}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}' => {
                let _ = write!(out, "u{{{:x}}}", c as u32);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
