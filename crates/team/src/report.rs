//! Renders a checkpoint's report, and the message sent to the coordinator.

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

use super::report_format::{ReportSection, SectionContent};
use super::sidecar::CheckpointSidecar;
use super::team_dirs::TeamDirs;
use super::verdict::{CheckFinding, CheckGroup, CheckOutcome};
use supervisor_text::words;

/// Prefix of every line we send.
pub const TAG: &str = "[supervisor]";

/// The checkpoint in the title of a form.
static CHECKPOINT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"CHECKPOINT-(N+|\d{3,})\b").expect("valid regex"));

pub fn report_file(place: &TeamDirs, task: &str) -> String {
    place.output(&format!("{task}-report.md"))
}

/// Renders Markdown; deterministic for a given sidecar.
pub fn render(sidecar: &CheckpointSidecar) -> String {
    let sections = sidecar.format.sections();
    let mut text = String::new();
    for section in &sections {
        let content = section.content();
        let is_empty = match content {
            SectionContent::Override => sidecar.overridden.is_none(),
            SectionContent::Evidence => {
                sidecar.checks.iter().all(|check| check.evidence.is_empty())
            }
            _ => false,
        };
        if is_empty {
            continue;
        }
        let title = match content {
            SectionContent::Title => CHECKPOINT.replace_all(&section.title, &sidecar.task_id),
            SectionContent::Verdict => verdict_title(&section.title, sidecar).into(),
            _ => section.title.as_str().into(),
        };
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{} {title}", "#".repeat(section.level));
        write_section(&mut text, content, section.level, sidecar, &sections);
    }
    text
}

fn write_section(
    text: &mut String,
    content: SectionContent,
    level: usize,
    sidecar: &CheckpointSidecar,
    sections: &[ReportSection],
) {
    match content {
        SectionContent::Title => {
            let _ = write!(text, "\n{}\n", summary_line(sidecar));
        }
        SectionContent::Scope => {
            let _ = write!(text, "\nTasks checked: [{}]\n", sidecar.scope.join(", "));
            if !sidecar.progress.is_empty() {
                let _ = writeln!(text, "Pipeline: {}", cell(&sidecar.progress));
            }
        }
        SectionContent::Results => {
            for (title, group) in GROUPS {
                let own = SectionContent::Group(group);
                if !sections.iter().any(|section| section.content() == own) {
                    let _ = write!(text, "\n{} {title}\n", "#".repeat(level + 1));
                    results(text, sidecar, group);
                }
            }
        }
        SectionContent::Group(group) => results(text, sidecar, group),
        SectionContent::Verdict => {
            let scored = &sidecar.scored;
            let _ = write!(
                text,
                "\n{} counted, {} not applicable, trend {}.\n",
                words::count(scored.counted, "check"),
                scored.not_applicable,
                sidecar.trend.word()
            );
        }
        SectionContent::Override => {
            if let Some(o) = &sidecar.overridden {
                let _ = write!(
                    text,
                    "\nBy {} at {}: {}\n",
                    cell(&o.by),
                    o.at,
                    cell(&o.reason)
                );
            }
        }
        SectionContent::Evidence => evidence(text, &sidecar.checks),
        SectionContent::Recommendations => {
            let risks = sidecar.checks.iter().filter(|c| is_risk(c));
            list(text, risks.map(|c| format!("{}: {}", c.title, c.details)));
        }
        SectionContent::Risks => list(text, risks(sidecar).into_iter()),
        SectionContent::Unknown => {
            text.push_str("\nNot filled: a checkpoint has nothing for this section.\n");
        }
    }
}

/// `Verdict: WARN (score: 0.75)`, from which recovery reads; under a title of its own in a role
/// spec's form.
fn verdict_title(title: &str, sidecar: &CheckpointSidecar) -> String {
    let name = title.split(':').next().unwrap_or(title).trim();
    let scored = &sidecar.scored;
    let word = scored.verdict.word().to_uppercase();
    let verdict = format!("Verdict: {word} (score: {:.2})", scored.score);
    if name.eq_ignore_ascii_case("verdict") {
        verdict
    } else {
        format!("{name}\n\n{verdict}")
    }
}

const GROUPS: [(&str, CheckGroup); 3] = [
    ("Consistency", CheckGroup::Consistency),
    ("Process Compliance", CheckGroup::Process),
    ("Execution Health", CheckGroup::Health),
];

fn results(text: &mut String, sidecar: &CheckpointSidecar, group: CheckGroup) {
    text.push_str("\n| Check | Result | Details |\n|-------|--------|---------|\n");
    for check in sidecar.checks.iter().filter(|check| check.group == group) {
        let critical = if check.critical && check.outcome == CheckOutcome::Fail {
            " (critical)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "| {} | {}{critical} | {} |",
            cell(&check.title),
            check.outcome.word(),
            cell(&check.details)
        );
    }
}

fn summary_line(sidecar: &CheckpointSidecar) -> String {
    format!(
        "{}; revision {}, {}.",
        cell(&sidecar.name),
        sidecar.revision,
        sidecar.at
    )
}

fn evidence(text: &mut String, checks: &[CheckFinding]) {
    text.push('\n');
    for check in checks {
        for place in &check.evidence {
            let line = if place.line == 0 {
                String::new()
            } else {
                format!(":{}", place.line)
            };
            let _ = writeln!(
                text,
                "- {}: `{}{line}` {}",
                check.id,
                place.file,
                cell(&place.text)
            );
        }
    }
}

fn list(text: &mut String, lines: impl Iterator<Item = String>) {
    text.push('\n');
    let before = text.len();
    for line in lines {
        let _ = writeln!(text, "- {}", cell(&line));
    }
    if text.len() == before {
        text.push_str("- None\n");
    }
}

fn is_risk(check: &CheckFinding) -> bool {
    matches!(check.outcome, CheckOutcome::Warn | CheckOutcome::Fail)
}

/// One line per risk, as added to the team's wisdom.
pub fn risks(sidecar: &CheckpointSidecar) -> Vec<String> {
    let line =
        |check: &CheckFinding| format!("{} {}: {}", sidecar.task_id, check.title, check.details);
    sidecar
        .checks
        .iter()
        .filter(|check| is_risk(check))
        .map(line)
        .collect()
}

/// The message for the coordinator. Each line starts with the tag.
pub fn message_text(sidecar: &CheckpointSidecar, report: &str) -> String {
    let findings = sidecar
        .key_findings()
        .into_iter()
        .take(3)
        .collect::<Vec<_>>()
        .join("; ");
    let lines = [
        format!("{} complete.", sidecar.task_id),
        format!(
            "Verdict: {} (score: {:.2})",
            sidecar.scored.verdict.word(),
            sidecar.scored.score
        ),
        format!("Findings: {findings}"),
        format!("Risks: {} logged", sidecar.scored.risks),
        format!("Quality trend: {}", sidecar.trend.word()),
        format!("Artifact: {report}"),
    ];
    with_tag(&lines.join("\n"))
}

pub fn with_tag(text: &str) -> String {
    text.lines()
        .map(|line| format!("{TAG} {}", words::plain(line)))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Sanitizes untrusted text for a line or table cell: no line breaks, bars or markup.
fn cell(text: &str) -> String {
    words::plain(text)
        .replace('\n', " ")
        .replace('|', "\\|")
        .replace('<', "&lt;")
}
