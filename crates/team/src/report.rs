//! Renders a checkpoint's report, and the message sent to the coordinator.

use std::fmt::Write as _;

use super::sidecar::CheckpointSidecar;
use super::team_dirs::TeamDirs;
use super::verdict::{CheckFinding, CheckGroup, CheckOutcome};
use supervisor_text::words;

/// Prefix of every line we send.
pub const TAG: &str = "[supervisor]";

pub fn report_file(place: &TeamDirs, task: &str) -> String {
    place.output(&format!("{task}-report.md"))
}

/// Renders Markdown; deterministic for a given sidecar.
pub fn render(sidecar: &CheckpointSidecar) -> String {
    let mut text = format!(
        "# Checkpoint Report: {}\n\n{}\n",
        sidecar.task_id,
        summary_line(sidecar)
    );
    let _ = write!(
        text,
        "\n## Scope\n\nTasks checked: [{}]\n",
        sidecar.scope.join(", ")
    );
    if !sidecar.progress.is_empty() {
        let _ = writeln!(text, "Pipeline: {}", cell(&sidecar.progress));
    }
    text += "\n## Results\n";
    for (title, group) in [
        ("Consistency", CheckGroup::Consistency),
        ("Process Compliance", CheckGroup::Process),
        ("Execution Health", CheckGroup::Health),
    ] {
        let _ = write!(
            text,
            "\n### {title}\n\n| Check | Result | Details |\n|-------|--------|---------|\n"
        );
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
    let scored = &sidecar.scored;
    let _ = write!(
        text,
        "\n## Verdict: {} (score: {:.2})\n",
        scored.verdict.word().to_uppercase(),
        scored.score
    );
    let _ = write!(
        text,
        "\n{} counted, {} not applicable, trend {}.\n",
        words::count(scored.counted, "check"),
        scored.not_applicable,
        sidecar.trend.word()
    );
    if let Some(o) = &sidecar.overridden {
        let _ = write!(
            text,
            "\n## Override\n\nBy {} at {}: {}\n",
            cell(&o.by),
            o.at,
            cell(&o.reason)
        );
    }
    evidence(&mut text, &sidecar.checks);
    text += "\n## Recommendations\n\n";
    list(
        &mut text,
        sidecar
            .checks
            .iter()
            .filter(|c| is_risk(c))
            .map(|c| format!("{}: {}", c.title, c.details)),
    );
    text += "\n## Risks Logged\n\n";
    list(&mut text, risks(sidecar).into_iter());
    text
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
    if checks.iter().all(|check| check.evidence.is_empty()) {
        return;
    }
    text.push_str("\n## Evidence\n\n");
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
