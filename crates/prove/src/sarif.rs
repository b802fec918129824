//! The report as SARIF 2.1.0, for code scanning.

use std::path::Path;

use serde_json::{Value, json};

use crate::report::{Report, Verdict};

impl Report {
    /// The report as a SARIF log: regressions and weakened tests are errors, gaps and surviving mutants warnings.
    pub fn to_sarif(&self) -> Value {
        let mut results = Vec::new();
        let mut add = |rule: &str, level: &str, text: &str, place: Option<(&Path, usize)>| {
            let mut result = json!({
                "ruleId": rule, "level": level, "message": { "text": text },
            });
            if let Some((file, line)) = place {
                result["locations"] = json!([{ "physicalLocation": {
                    "artifactLocation": { "uri": file.to_string_lossy() },
                    "region": { "startLine": line },
                }}]);
            }
            results.push(result);
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
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "supervisor prove",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": [
                        { "id": "regression" }, { "id": "test-change" },
                        { "id": "missing-proof" }, { "id": "surviving-mutant" },
                    ],
                }},
                "invocations": [{ "executionSuccessful": true }],
                "properties": { "verdict": self.verdict.word(), "proven": self.verdict == Verdict::Proven },
                "results": results,
            }],
        })
    }
}
