//! A second opinion on a checkpoint: the plainest count over the files of the test's session, with string search and
//! loops, and with nothing of the code that it is compared with.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use super::session::Pipeline;

/// Failures of these block, whatever the mean is.
const CRITICAL: [&str; 5] = [
    "goal_trace",
    "artifact_existence",
    "open_questions",
    "plan_coverage",
    "dependency_chain",
];

/// Every outcome, the score and the verdict of the sidecar are what the plain count finds.
pub(super) fn agrees(pipeline: &Pipeline, task: &str, sidecar: &Value) {
    let counted = Count::of(pipeline).outcomes(task);
    let checks = sidecar["checks"].as_array().unwrap();
    let outcome = |check: &Value| {
        (
            check["id"].as_str().unwrap().to_owned(),
            check["outcome"].as_str().unwrap().to_owned(),
        )
    };
    // A question is for a model, and there is none here.
    let told: BTreeMap<_, _> = checks
        .iter()
        .map(outcome)
        .filter(|(id, _)| id != "decision_words")
        .collect();
    let wanted: BTreeMap<_, _> = counted
        .iter()
        .map(|(id, o)| ((*id).to_owned(), (*o).to_owned()))
        .collect();
    assert_eq!(told, wanted, "{task}");
    let halves: usize = counted
        .iter()
        .map(|(_, o)| {
            ["fail", "warn", "pass"]
                .iter()
                .position(|w| w == o)
                .unwrap()
        })
        .sum();
    // In hundredths, rounded: a pass is 100, a warning 50.
    let hundredths = (halves * 100 + counted.len()) / (2 * counted.len());
    let blocks = counted
        .iter()
        .any(|(id, o)| *o == "fail" && CRITICAL.contains(id));
    let verdict = if blocks || halves < counted.len() {
        "block"
    } else if 10 * halves < 16 * counted.len() {
        "warn"
    } else {
        "pass"
    };
    assert_eq!(sidecar["verdict"], verdict, "{task}: {counted:?}");
    assert_eq!(
        format!("{:.2}", sidecar["score"].as_f64().unwrap()),
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    );
}

struct Count {
    /// The text of each file, by its name below the team's folder.
    files: BTreeMap<String, String>,
    messages: Vec<Value>,
}

impl Count {
    fn of(pipeline: &Pipeline) -> Self {
        let mut files = BTreeMap::new();
        for dir in [
            "spec",
            "spec/requirements",
            "spec/architecture",
            "spec/epics",
            "plan",
            "wisdom",
        ] {
            for entry in fs::read_dir(pipeline.team().join(dir))
                .unwrap()
                .flatten()
                .filter(|e| e.path().is_file())
            {
                let name = format!("{dir}/{}", entry.file_name().to_string_lossy());
                files.insert(name, fs::read_to_string(entry.path()).unwrap());
            }
        }
        let messages = pipeline
            .messages()
            .into_iter()
            .filter(|m| m["from"] != "supervisor")
            .collect();
        Self { files, messages }
    }

    fn outcomes(&self, task: &str) -> Vec<(&'static str, &'static str)> {
        let (goals, requirements) = (
            ids(&self.text("spec/product-brief"), "G-"),
            self.text("spec/requirements/"),
        );
        let mut all = match task {
            "CHECKPOINT-001" => vec![
                (
                    "goal_trace",
                    fails(goals.iter().any(|goal| !requirements.contains(goal))),
                ),
                (
                    "terminology",
                    self.terms(&["spec/product-brief", "spec/requirements/"]),
                ),
                (
                    "scope",
                    fails(requirements.contains("invoice") || requirements.contains("mobile")),
                ),
                ("decision_continuity", fails(contradicts(&self.decisions()))),
                (
                    "artifact_existence",
                    fails(goals.is_empty() || requirements.is_empty()),
                ),
            ],
            "CHECKPOINT-002" => vec![
                ("terminology", self.terms(&["spec/"])),
                ("decision_chain", fails(contradicts(&self.decisions()))),
                ("architecture_epics", fails(self.uncovered_components())),
                (
                    "artifact_existence",
                    fails(
                        self.text("spec/epics/").is_empty()
                            || self.text("spec/architecture/").is_empty(),
                    ),
                ),
                (
                    "quality_trend",
                    fails(self.scores().windows(2).any(|pair| pair[1] < pair[0] - 10)),
                ),
                (
                    "open_questions",
                    if self.text("spec/").contains("- [ ]") {
                        "warn"
                    } else {
                        "pass"
                    },
                ),
                (
                    "wisdom",
                    fails(contradicts(
                        &[self.decisions(), pairs(&self.text("wisdom/"))].concat(),
                    )),
                ),
            ],
            _ => self.plan(),
        };
        let of_kind = |kind: &str| self.messages.iter().filter(|m| m["type"] == kind).count();
        all.push(("error_patterns", fails(of_kind("error") > 2)));
        all.push((
            "activity",
            fails(
                self.messages
                    .iter()
                    .any(|m| m["data"]["status"] == "in_progress"),
            ),
        ));
        all.push(("spawns", fails(of_kind("fast_advance") > 1)));
        all
    }

    fn plan(&self) -> Vec<(&'static str, &'static str)> {
        let text = self.text("plan/");
        let plan: Value = serde_json::from_str(&text).unwrap();
        let tasks = plan["tasks"].as_array().unwrap();
        let uncovered = |(name, requirement): (&String, &String)| {
            name.contains("/REQ-")
                && requirement.contains("priority: Must")
                && !text.contains(&name["spec/requirements/".len()..][..7])
        };
        // Whoever can be reached from itself stands in a cycle.
        let waits: Vec<(&str, Vec<&str>)> = tasks
            .iter()
            .map(|t| {
                (
                    t["id"].as_str().unwrap(),
                    t["depends_on"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(Value::as_str)
                        .collect(),
                )
            })
            .collect();
        let reaches_itself = |start: &str| {
            let mut seen = BTreeSet::from([start]);
            for _ in 0..waits.len() {
                let next: Vec<&str> = waits
                    .iter()
                    .filter(|(id, _)| seen.contains(id))
                    .flat_map(|(_, on)| on.clone())
                    .collect();
                if next.contains(&start) {
                    return true;
                }
                seen.extend(next);
            }
            false
        };
        let files = tasks
            .iter()
            .flat_map(|t| t["files"].as_array().unwrap())
            .filter_map(Value::as_str);
        let modules: BTreeSet<&str> = files.map(|file| file.rsplit_once('/').unwrap().0).collect();
        let low = plan["complexity"] == "Low";
        vec![
            ("plan_coverage", fails(self.files.iter().any(uncovered))),
            ("complexity", fails(low && modules.len() > 4)),
            (
                "dependency_chain",
                fails(waits.iter().any(|(id, _)| reaches_itself(id))),
            ),
            (
                "execution_method",
                if low && plan["recommended_execution"] == "Agent" {
                    "pass"
                } else {
                    "warn"
                },
            ),
            ("upstream_consumed", fails(!text.contains("ADR-001"))),
            ("artifact_existence", fails(text.is_empty())),
        ]
    }

    /// All files whose names begin so, one after the other.
    fn text(&self, beginning: &str) -> String {
        self.files
            .iter()
            .filter(|(name, _)| name.starts_with(beginning))
            .map(|(_, text)| text.as_str())
            .collect()
    }

    fn terms(&self, places: &[&str]) -> &'static str {
        let text = places
            .iter()
            .map(|place| self.text(place))
            .collect::<String>()
            .to_lowercase();
        let both = |one: &str, other: &str| text.contains(one) && text.contains(other);
        if both("user", "customer") || both("order", "purchase") {
            "warn"
        } else {
            "pass"
        }
    }

    /// `key: value`, from what the roles said.
    fn decisions(&self) -> Vec<(String, String)> {
        let said = self
            .messages
            .iter()
            .flat_map(|m| m["data"]["decisions"].as_array().into_iter().flatten());
        said.filter_map(Value::as_str)
            .flat_map(|text| pairs(&format!("- {text}")))
            .collect()
    }

    /// In the order of the tasks; what was said last of one counts.
    fn scores(&self) -> Vec<i64> {
        let scored = |m: &Value| {
            Some((
                m["data"]["task_id"].as_str()?.to_owned(),
                m["data"]["quality_self_score"].as_i64()?,
            ))
        };
        self.messages
            .iter()
            .filter_map(scored)
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .collect()
    }

    fn uncovered_components(&self) -> bool {
        let (architecture, epics) = (self.text("spec/architecture/"), self.text("spec/epics/"));
        let rows = architecture
            .lines()
            .skip_while(|line| !line.starts_with("|---"))
            .skip(1)
            .take_while(|l| l.starts_with('|'));
        let mut names = rows
            .map(|row| row.split('|').nth(1).unwrap().trim().to_owned())
            .chain(ids(&architecture, "ADR-"));
        names.any(|name| !epics.contains(&name))
    }
}

fn fails(wrong: bool) -> &'static str {
    if wrong { "fail" } else { "pass" }
}

/// `G-001` and the like.
fn ids(text: &str, prefix: &str) -> BTreeSet<String> {
    text.match_indices(prefix)
        .filter_map(|(at, _)| text.get(at..at + prefix.len() + 3))
        .map(str::to_owned)
        .collect()
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let items = text
        .lines()
        .filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
    items
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn contradicts(pairs: &[(String, String)]) -> bool {
    pairs
        .iter()
        .any(|(key, value)| pairs.iter().any(|(k, v)| k == key && v != value))
}
