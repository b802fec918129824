//! What a campaign says when it is over.

use std::collections::BTreeMap;

use super::CaseReport;
use super::oracle::CaseEnd;

/// One line a class, by dimension.
pub(super) fn table(reports: &[CaseReport]) -> String {
    let mut classes: BTreeMap<(&str, &str), Vec<&CaseReport>> = BTreeMap::new();
    for report in reports {
        for class in report.case.classes() {
            classes.entry(class).or_default().push(report);
        }
    }
    let mut lines = vec![format!(
        "{:<30} {:>5} {:>8} {:>7} {:>8} {:>5} {:>9} {:>7}",
        "class", "cases", "accepted", "refused", "no reply", "wrong", "slowest s", "peak MB"
    )];
    lines.extend(
        classes
            .into_iter()
            .map(|((dimension, name), of)| line(&format!("{dimension} {name}"), &of)),
    );
    lines.push(line("all", &reports.iter().collect::<Vec<_>>()));
    lines.join("\n")
}

fn line(name: &str, reports: &[&CaseReport]) -> String {
    let ended = |end| {
        reports
            .iter()
            .filter(|report| report.end == Some(end))
            .count()
    };
    let slowest = reports
        .iter()
        .map(|report| report.took.as_secs_f64())
        .fold(0.0, f64::max);
    let peak = reports
        .iter()
        .map(|report| report.peak_kb)
        .max()
        .unwrap_or(0)
        / 1000;
    format!(
        "{name:<30} {:>5} {:>8} {:>7} {:>8} {:>5} {slowest:>9.1} {peak:>7}",
        reports.len(),
        ended(CaseEnd::Accepted),
        ended(CaseEnd::Refused),
        ended(CaseEnd::NoReply),
        reports
            .iter()
            .filter(|report| !report.wrong.is_empty())
            .count(),
    )
}

/// How to run it again, and what was wrong.
pub(super) fn failure(report: &CaseReport) -> String {
    format!(
        "SUPERVISOR_FAULTS_CASE={}\n    {}",
        report.case,
        report.wrong.join("\n    ")
    )
}
