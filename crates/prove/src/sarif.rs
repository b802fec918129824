//! SARIF 2.1.0, for code scanning: of a proof, and of anything else that has findings.

use std::path::Path;

use serde_json::{Value, json};

use crate::report::{Report, Verdict};

/// A SARIF log of one run.
#[derive(Debug)]
pub struct SarifLog {
    tool: String,
    version: String,
    /// Ids of the rules that results name.
    rules: Vec<String>,
    results: Vec<Value>,
    properties: Value,
}

impl SarifLog {
    /// A log without results. `tool` made it; `properties` are any facts about the run.
    pub fn new(tool: &str, version: &str, properties: Value) -> Self {
        Self {
            tool: tool.to_owned(),
            version: version.to_owned(),
            rules: Vec::new(),
            results: Vec::new(),
            properties,
        }
    }

    /// Adds a result. `level` is `error`, `warning` or `note`; `place` is a file relative to the repository, its first and
    /// its last line.
    pub fn add(
        &mut self,
        rule: &str,
        level: &str,
        text: &str,
        place: Option<(&Path, usize, usize)>,
    ) {
        if !self.rules.iter().any(|known| known == rule) {
            self.rules.push(rule.to_owned());
        }
        let mut result = json!({
            "ruleId": rule, "level": level, "message": { "text": text },
        });
        if let Some((file, line, end_line)) = place {
            let mut region = json!({ "startLine": line });
            if end_line > line {
                region["endLine"] = json!(end_line);
            }
            result["locations"] = json!([{ "physicalLocation": {
                "artifactLocation": { "uri": file.to_string_lossy() },
                "region": region,
            }}]);
        }
        self.results.push(result);
    }

    pub fn into_json(self) -> Value {
        let rules: Vec<Value> = self.rules.iter().map(|id| json!({ "id": id })).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": { "name": self.tool, "version": self.version, "rules": rules }},
                "invocations": [{ "executionSuccessful": true }],
                "properties": self.properties,
                "results": self.results,
            }],
        })
    }
}

impl Report {
    /// The report as a SARIF log: regressions and weakened tests are errors, gaps and surviving mutants warnings.
    pub fn to_sarif(&self) -> Value {
        let properties =
            json!({ "verdict": self.verdict.word(), "proven": self.verdict == Verdict::Proven });
        let mut log = SarifLog::new("supervisor prove", env!("CARGO_PKG_VERSION"), properties);
        let mut add = |rule: &str, level: &str, text: &str, place: Option<(&Path, usize)>| {
            log.add(
                rule,
                level,
                text,
                place.map(|(file, line)| (file, line, line)),
            );
        };
        for name in &self.regressions {
            add(
                "regression",
                "error",
                &format!("fails with the change: {name}"),
                None,
            );
        }
        for change in &self.test_changes {
            let level = if change.needs_permission() {
                "error"
            } else {
                "note"
            };
            let place = change
                .file
                .as_deref()
                .map(|file| (file, change.line.unwrap_or(1)));
            add("test-change", level, &change.to_string(), place);
        }
        for gap in &self.gaps {
            let text = format!("{} Next: {}.", gap.what, gap.next);
            add("missing-proof", "warning", &text, None);
        }
        for mutant in self.mutants.iter().flat_map(|mutants| &mutants.survived) {
            let text = format!(
                "no test fails if `{}` becomes `{}`",
                mutant.before, mutant.after
            );
            let place = Some((mutant.file.as_path(), mutant.line));
            add("surviving-mutant", "warning", &text, place);
        }
        log.into_json()
    }
}
