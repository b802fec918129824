//! A finding as a model wrote it. It is parsed leniently and its citation is verified.

use serde_json::Value;

use super::scope::ReviewScope;
use super::{FindingSource, ReviewFinding, Severity};
use supervisor_text::words;

/// Max bytes kept of each field.
const MAX_QUOTE_BYTES: usize = 400;
const MAX_WHY_BYTES: usize = 800;
const MAX_FIX_BYTES: usize = 800;
const MAX_RULE_BYTES: usize = 80;

pub(super) struct FindingClaim {
    severity: Severity,
    file: String,
    line: usize,
    end_line: Option<usize>,
    quote: String,
    rule: String,
    why: String,
    fix: String,
}

impl FindingClaim {
    /// Parses a finding. The error says what is wrong with it.
    pub(super) fn read(given: &Value) -> Result<Self, String> {
        let text = |field: &str| {
            given
                .get(field)
                .and_then(Value::as_str)
                .map(str::trim)
                .unwrap_or_default()
                .to_owned()
        };
        if !given.is_object() {
            return Err(String::from(
                "is not an object with `severity`, `file`, `line`, `quote` and `why`",
            ));
        }
        let (file, severity_word) = (text("file"), text("severity"));
        if file.is_empty() {
            return Err(String::from("names no `file`"));
        }
        let severity = Severity::ALL
            .into_iter()
            .find(|s| s.word().eq_ignore_ascii_case(&severity_word))
            .ok_or_else(|| {
                let known = words::one_of(Severity::ALL.map(Severity::word));
                format!(
                    "its severity is `{}` instead of {known}",
                    words::cut_end(&words::plain(&severity_word), 40)
                )
            })?;
        let (line, to) = parse_lines(given.get("line"));
        let line = line.ok_or("names no `line`")?;
        let end_line = parse_lines(given.get("end_line"))
            .0
            .or(to)
            .filter(|end| *end != 0);
        // Not trimmed: a quote may start with an empty line.
        let quote = given
            .get("quote")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        Ok(Self {
            severity,
            file,
            line,
            end_line,
            quote,
            rule: text("rule"),
            why: text("why"),
            fix: text("fix"),
        })
    }

    /// Returns the finding if its citation is right and it describes a defect.
    pub(super) fn verify(self, scope: &ReviewScope) -> Result<ReviewFinding, String> {
        let cited = scope.quote(&self.file, self.line, self.end_line, &self.quote)?;
        if !cited.text.chars().any(char::is_alphanumeric) {
            return Err(format!(
                "`{}:{}` holds no word; cite the line that shows the defect",
                self.file, self.line
            ));
        }
        if !self.why.chars().any(char::is_alphanumeric) {
            return Err(String::from("its `why` is empty"));
        }
        let (from, to) = (*cited.lines.start(), *cited.lines.end());
        let tidy = |text: &str, max| words::short(text, max);
        Ok(ReviewFinding {
            severity: self.severity,
            file: cited.file,
            line: from,
            corrected_from: cited.corrected_from,
            end_line: (to > from).then_some(to),
            quote: tidy(cited.text.trim(), MAX_QUOTE_BYTES),
            rule: tidy(&self.rule, MAX_RULE_BYTES),
            why: tidy(&self.why, MAX_WHY_BYTES),
            fix: tidy(&self.fix, MAX_FIX_BYTES),
            also: Vec::new(),
            source: FindingSource::Model,
        })
    }
}

/// Parses `12`, `"12"` or `"12-14"`.
fn parse_lines(value: Option<&Value>) -> (Option<usize>, Option<usize>) {
    match value {
        Some(Value::Number(n)) => (n.as_u64().and_then(|n| usize::try_from(n).ok()), None),
        Some(Value::String(text)) => {
            let (from, to) = text.split_once(['-', '–']).unwrap_or((text, ""));
            (from.trim().parse().ok(), to.trim().parse().ok())
        }
        _ => (None, None),
    }
}
