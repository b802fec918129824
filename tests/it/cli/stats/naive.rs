//! The same figures counted a second time, plainly and slowly, on JSON as it lies there. Shares no code with what it
//! checks, not even the types.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) since: Option<&'static str>,
    pub(super) skill: Option<&'static str>,
    pub(super) session: Option<&'static str>,
}

impl Filter {
    pub(super) fn arguments(&self) -> Vec<&str> {
        let flags = [
            ("--since", self.since),
            ("--skill", self.skill),
            ("--session", self.session),
        ];
        flags
            .iter()
            .filter_map(|(flag, value)| Some([*flag, (*value)?]))
            .flatten()
            .collect()
    }

    /// All times in that log are UTC with as many digits, so that text sorts as time does.
    fn since(&self) -> Option<String> {
        self.since.map(|since| {
            if since.contains('T') {
                since.to_owned()
            } else {
                format!("{since}T00:00:00Z")
            }
        })
    }

    fn wants(&self, call: &Value) -> bool {
        self.wants_skill(call)
            && self.since().is_none_or(|since| {
                time(call).is_some_and(|time| time >= since.trim_end_matches('Z'))
            })
    }

    fn wants_skill(&self, call: &Value) -> bool {
        let skill = call["skill"].as_str().unwrap_or("");
        self.skill
            .is_none_or(|wanted| skill == wanted || skill.starts_with(&format!("{wanted}_")))
    }
}

/// Without its last letter, so that a fraction of a second sorts after none.
fn time(call: &Value) -> Option<&str> {
    Some(call["timestamp"].as_str()?.trim_end_matches('Z'))
}

pub(super) fn count(directory: &Path, filter: &Filter) -> Value {
    let (mut calls, mut sessions) = (Vec::new(), BTreeSet::new());
    let (mut torn, mut broken, mut left_out, mut undated) = (0, 0, 0, 0);
    for (session, lines) in super::lines(directory) {
        if filter.session.is_some_and(|wanted| wanted != session) {
            continue;
        }
        for line in lines.iter().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str::<Value>(line) {
                Err(error) if error.is_eof() => torn += 1,
                Ok(mut call)
                    if call.is_object()
                        && (call["skill"].is_null() || call["skill"].is_string()) =>
                {
                    upgrade(&mut call);
                    left_out += all_attempts(&call).len() - attempts(&call).len();
                    undated += u64::from(
                        filter.since.is_some()
                            && filter.wants_skill(&call)
                            && time(&call).is_none(),
                    );
                    if filter.wants(&call) {
                        sessions.insert(session.clone());
                        calls.push(call);
                    }
                }
                _ => broken += 1,
            }
        }
    }
    let skills: BTreeSet<&str> = calls
        .iter()
        .map(|call| call["skill"].as_str().unwrap_or(""))
        .collect();
    let of = |skill: &str| {
        calls
            .iter()
            .filter(|c| c["skill"].as_str().unwrap_or("") == skill)
            .collect::<Vec<_>>()
    };
    let rows: Vec<Value> = skills.iter().map(|name| skill(name, &of(name))).collect();
    let advice: Vec<Value> = rows.iter().flat_map(advice).collect();
    let times: BTreeSet<&str> = calls
        .iter()
        .filter_map(|call| call["timestamp"].as_str())
        .collect();
    json!({
        "v": 1,
        "filter": {"since": filter.since(), "skill": filter.skill, "session": filter.session, "project": null},
        "sessions": sessions.len(),
        "from": times.first(),
        "to": times.last(),
        "skills": rows,
        "total": figures(&calls.iter().collect::<Vec<_>>()),
        "advice": advice,
        "unread": {"files": 0, "torn": torn, "broken": broken, "too_long": 0, "attempts": left_out, "undated": undated},
    })
}

/// Older lines: the tool is in `skill`, attempts have no tier, and a refusal has no cause.
fn upgrade(call: &mut Value) {
    if call["tool"].is_string() {
        call["skill"] = call["tool"].take();
    }
    let attempts = call.get_mut("attempts").and_then(Value::as_array_mut);
    for attempt in attempts.into_iter().flatten().filter(|a| a.is_object()) {
        if attempt["tier"].is_null() {
            let is_claude = attempt["model"]
                .as_str()
                .is_some_and(|m| m.starts_with("claude-"));
            attempt["tier"] = json!(if is_claude { "subagent" } else { "local" });
        }
        if attempt["cause"].is_null() && attempt["verdict"] == "escalate" {
            attempt["cause"] = json!("rejected");
        }
    }
}

fn all_attempts(call: &Value) -> Vec<&Value> {
    call["attempts"].as_array().into_iter().flatten().collect()
}

fn attempts(call: &Value) -> Vec<&Value> {
    let known = |a: &&Value| {
        ["local", "subagent", "managed"]
            .iter()
            .any(|tier| a["tier"] == *tier)
    };
    all_attempts(call).into_iter().filter(known).collect()
}

fn asked(call: &Value) -> Vec<&Value> {
    attempts(call)
        .into_iter()
        .filter(|a| !is_skipped(a))
        .collect()
}

/// Left out before anything was used.
fn is_skipped(attempt: &Value) -> bool {
    attempt["cause"] == "skipped" && attempt["tokens_in"].is_null() && attempt["cost_usd"].is_null()
}

fn skill(name: &str, calls: &[&Value]) -> Value {
    let mut by_model: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for attempt in calls.iter().flat_map(|call| attempts(call)) {
        by_model
            .entry(attempt["model"].as_str().unwrap_or(""))
            .or_default()
            .push(attempt);
    }
    // Both tiers of that log sort by name as they rank.
    let tier = |attempts: &[&'_ Value]| {
        attempts
            .iter()
            .map(|a| a["tier"].as_str().unwrap().to_owned())
            .min()
            .unwrap()
    };
    let mut models: Vec<Value> = by_model
        .iter()
        .map(|(model, all)| row(&tier(all), model, all))
        .collect();
    models.sort_by_key(|row| format!("{} {}", row["tier"], row["model"]));
    let mut all = json!({"skill": name, "models": models});
    all.as_object_mut()
        .unwrap()
        .extend(figures(calls).as_object().unwrap().clone());
    all
}

fn figures(calls: &[&Value]) -> Value {
    let ended = |words: &[&str]| {
        let word = |call: &Value| call["final_status"].as_str().unwrap_or("").to_lowercase();
        calls
            .iter()
            .filter(|call| words.contains(&word(call).as_str()))
            .count()
    };
    let (pass, fail, error) = (ended(&["pass", "ok"]), ended(&["fail"]), ended(&["error"]));
    let costs: Vec<&Value> = calls
        .iter()
        .flat_map(|call| asked(call))
        .map(|a| &a["cost_usd"])
        .collect();
    let top = |call: &Value| call["top_tier"]["cost_usd"].as_f64();
    let basis = |word: &str| {
        calls
            .iter()
            .filter(|c| top(c).is_some() && c["top_tier"]["basis"] == word)
            .count()
    };
    let both: Vec<&&Value> = calls
        .iter()
        .filter(|c| top(c).is_some() && asked(c).iter().all(|a| a["cost_usd"].is_number()))
        .collect();
    let spent = |call: &Value| {
        asked(call)
            .iter()
            .map(|a| a["cost_usd"].as_f64().unwrap())
            .sum::<f64>()
    };
    json!({
        "calls": calls.len(), "wrong_arguments": 0, "pass": pass, "fail": fail, "error": error, "other": calls.len() - pass - fail - error,
        "cost_usd": costs.iter().filter_map(|cost| cost.as_f64()).sum::<f64>(),
        "cost_unknown": costs.iter().filter(|cost| cost.is_null()).count(),
        "top_tier": {
            "cost_usd": calls.iter().filter_map(|call| top(call)).sum::<f64>(),
            "asked": basis("asked"), "estimated": basis("estimated"), "no_model_asked": basis("no_model_asked"),
            "unknown": calls.iter().filter(|call| top(call).is_none()).count(),
        },
        "compared": {
            "calls": both.len(),
            "cost_usd": both.iter().map(|call| spent(call)).sum::<f64>(),
            "top_tier_cost_usd": both.iter().filter_map(|call| top(call)).sum::<f64>(),
        },
    })
}

fn row(tier: &str, model: &str, attempts: &[&Value]) -> Value {
    let mut causes = Map::new();
    for cause in attempts.iter().filter_map(|a| a["cause"].as_str()) {
        causes[cause] = json!(causes.entry(cause).or_insert(json!(0)).as_u64().unwrap() + 1);
    }
    let asked: Vec<&&Value> = attempts.iter().filter(|a| !is_skipped(a)).collect();
    let n = |which: &dyn Fn(&Value) -> bool| asked.iter().filter(|a| which(a)).count();
    let without_cause = |a: &Value, verdict: &str| a["cause"].is_null() && a["verdict"] == verdict;
    let accepted = n(&|a| a["cause"] == "accepted" || without_cause(a, "accept"));
    let rejected = n(&|a| {
        ["rejected", "tampered", "unreadable"]
            .iter()
            .any(|cause| a["cause"] == *cause)
    });
    let no_answer = [
        "skipped",
        "infra",
        "quota",
        "incapable",
        "refused",
        "setup",
        "budget",
        "cancelled",
    ];
    let errors =
        n(&|a| no_answer.iter().any(|cause| a["cause"] == *cause) || without_cause(a, "error"));
    let (warm, cold) = (
        n(&|a| a["warm_start"] == true),
        n(&|a| a["warm_start"] == false),
    );
    let durations: Vec<u64> = asked
        .iter()
        .map(|a| a["duration_ms"].as_u64().unwrap_or(0))
        .collect();
    let sum = |field: &str| asked.iter().filter_map(|a| a[field].as_u64()).sum::<u64>();
    let counted = |a: &Value| a["tokens_in"].is_number() && a["tokens_out"].is_number();
    json!({
        "model": model, "tier": tier, "attempts": asked.len(), "skipped": attempts.len() - asked.len(),
        "accepted": accepted, "rejected": rejected, "errors": errors,
        "other": asked.len() - accepted - rejected - errors,
        "causes": causes,
        "accept_rate": part(accepted, rejected),
        "median_ms": percentile(&durations, 50), "p95_ms": percentile(&durations, 95),
        "warm": warm, "cold": cold, "warm_unknown": n(&|a| a["warm_start"].is_null()), "warm_share": part(warm, cold),
        "tokens_in": sum("tokens_in"), "tokens_out": sum("tokens_out"), "tokens_unknown": n(&|a| !counted(a)),
        "cost_usd": asked.iter().filter_map(|a| a["cost_usd"].as_f64()).sum::<f64>(),
        "cost_unknown": n(&|a| a["cost_usd"].is_null()),
        "price_missing": n(&|a| a["cost_usd"].is_null() && counted(a)),
    })
}

/// The least of the durations that so many of them do not exceed: by trying each.
fn percentile(durations: &[u64], percent: usize) -> Option<u64> {
    let enough = |limit: &u64| {
        durations.iter().filter(|d| *d <= limit).count() * 100 >= percent * durations.len()
    };
    durations.iter().copied().filter(enough).min()
}

fn part(yes: usize, no: usize) -> Option<f64> {
    if yes + no == 0 {
        None
    } else {
        Some(yes as f64 / (yes + no) as f64)
    }
}

fn advice(skill: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    for model in skill["models"].as_array().unwrap() {
        let (yes, no) = (
            model["accepted"].as_u64().unwrap(),
            model["rejected"].as_u64().unwrap(),
        );
        // Below three in ten, in whole numbers.
        if yes + no >= 10 && yes * 10 < 3 * (yes + no) {
            found.push(json!({
                "skill": skill["skill"], "model": model["model"], "accepted": yes, "judged": yes + no,
                "accept_rate": yes as f64 / (yes + no) as f64,
            }));
        }
    }
    found
}
