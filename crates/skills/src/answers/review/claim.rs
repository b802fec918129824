//! One finding as a model wrote it: read with patience, then held to its words.

use serde_json::Value;

use super::scope::ReviewScope;
use super::{FindingSource, ReviewFinding, Severity};
use supervisor_text::words;

/// Bytes of each field that are kept.
const QUOTE: usize = 400;
const WHY: usize = 800;
const FIX: usize = 800;
const RULE: usize = 80;

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
    /// The error says what is wrong with it.
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
                "is no object with `severity`, `file`, `line`, `quote` and `why`",
            ));
        }
        let (file, said) = (text("file"), text("severity"));
        if file.is_empty() {
            return Err(String::from("names no `file`"));
        }
        let severity = Severity::ALL
            .into_iter()
            .find(|s| s.word().eq_ignore_ascii_case(&said))
            .ok_or_else(|| {
                let known = words::one_of(Severity::ALL.map(Severity::word));
                format!(
                    "its severity is `{}` instead of {known}",
                    words::cut_end(&words::plain(&said), 40)
                )
            })?;
        let (line, to) = lines(given.get("line"));
        let line = line.ok_or("names no `line`")?;
        let end_line = lines(given.get("end_line"))
            .0
            .or(to)
            .filter(|end| *end != 0);
        // Kept as it is: a quote may begin with an empty line.
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

    /// The finding, if everything it cites is there and it names a defect.
    pub(super) fn hold(self, scope: &ReviewScope) -> Result<ReviewFinding, String> {
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
        let tidy = |text: &str, most| words::cut_end(&words::plain(text), most).into_owned();
        Ok(ReviewFinding {
            severity: self.severity,
            file: cited.file,
            line: from,
            corrected_from: cited.corrected_from,
            end_line: (to > from).then_some(to),
            quote: tidy(cited.text.trim(), QUOTE),
            rule: tidy(&self.rule, RULE),
            why: tidy(&self.why, WHY),
            fix: tidy(&self.fix, FIX),
            also: Vec::new(),
            source: FindingSource::Model,
        })
    }
}

/// `12`, `"12"` or `"12-14"`.
fn lines(value: Option<&Value>) -> (Option<usize>, Option<usize>) {
    match value {
        Some(Value::Number(n)) => (n.as_u64().and_then(|n| usize::try_from(n).ok()), None),
        Some(Value::String(text)) => {
            let (from, to) = text.split_once(['-', '–']).unwrap_or((text, ""));
            (from.trim().parse().ok(), to.trim().parse().ok())
        }
        _ => (None, None),
    }
}
