use super::turn::TryRecord;
use super::*;
use crate::Attempt;
use supervisor_settings::TierKind;

const MINUTE: f64 = 0.1;

fn class() -> TaskClass {
    TaskClass {
        skill: "tdd_green".into(),
        language: "python".into(),
        size: TaskSize::Small,
    }
}

fn tier(
    model: &str,
    kind: TierKind,
    accepted: u32,
    against: u32,
    usd: f64,
    seconds: f64,
) -> PolicyTier {
    let judged = accepted + against;
    let record = TurnRecord {
        accepted,
        against,
        unable: 0,
        at_first: accepted,
        usd: usd * f64::from(judged),
        usd_turns: judged,
        seconds: seconds * f64::from(judged),
        ..TurnRecord::default()
    };
    PolicyTier {
        model: model.into(),
        tries: 1,
        class_record: record,
        all: record,
        prior: TierPrior::of(kind, None, None),
    }
}

fn usual(tiers: &[PolicyTier]) -> PolicyDecision {
    choose(tiers, &class(), MINUTE, Draw::Mean).expect("something to choose")
}

#[test]
fn records_decide_order_of_chain() {
    let top = || tier("top", TierKind::Subagent, 19, 1, 0.4, 60.0);
    let local = |accepted, against| tier("local", TierKind::Local, accepted, against, 0.0, 60.0);
    for (tiers, order, skipped) in [
        // Without data the configured chain is used.
        (
            vec![
                local(0, 0),
                tier("top", TierKind::Subagent, 0, 0, 0.4, 60.0),
            ],
            "local top",
            "",
        ),
        (vec![local(15, 5), top()], "local top", ""),
        // Fails nearly always: its minutes cost more than it saves, and after the top tier it is
        // worthless.
        (vec![local(0, 12), top()], "top", "local"),
        (vec![local(1, 19), top()], "top", "local"),
        // Right half of the time, but its time costs more than the top tier: it comes second.
        (
            vec![tier("slow", TierKind::Local, 10, 10, 0.0, 600.0), top()],
            "top slow",
            "",
        ),
        // Of three, only the middle one is worth asking first.
        (
            vec![
                local(0, 20),
                tier("middle", TierKind::Local, 16, 4, 0.0, 30.0),
                top(),
            ],
            "middle top",
            "local",
        ),
        // An equally good but cheaper tier comes first, even if it was configured last.
        (
            vec![tier("dear", TierKind::Subagent, 19, 1, 0.9, 60.0), top()],
            "top dear",
            "",
        ),
    ] {
        let decision = usual(&tiers);
        assert_eq!(decision.order.join(" "), order, "{decision:#?}");
        assert_eq!(decision.skipped.join(" "), skipped, "{decision:#?}");
    }
    assert_eq!(choose(&[top()], &class(), MINUTE, Draw::Mean), None);
}

#[test]
fn models_are_kept_and_top_tier_is_asked() {
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..500 {
        let tiers: Vec<PolicyTier> = (0..rng.usize(2..5))
            .map(|n| {
                let kind = if rng.bool() {
                    TierKind::Local
                } else {
                    TierKind::Subagent
                };
                tier(
                    &format!("m{n}"),
                    kind,
                    rng.u32(0..9),
                    rng.u32(0..30),
                    rng.f64(),
                    rng.f64() * 300.0,
                )
            })
            .collect();
        let decision = choose(&tiers, &class(), MINUTE, Draw::Random(&mut rng)).expect("a choice");
        let mut all: Vec<&String> = decision.order.iter().chain(&decision.skipped).collect();
        all.sort();
        assert_eq!(
            all,
            tiers.iter().map(|tier| &tier.model).collect::<Vec<_>>()
        );
        assert!(
            decision
                .order
                .contains(&tiers.last().expect("two or more").model)
        );
    }
}

#[test]
fn sentence_names_model_record_and_price() {
    let tiers = [
        tier("smol", TierKind::Local, 0, 12, 0.0, 40.0),
        tier("top", TierKind::Subagent, 9, 1, 0.25, 50.0),
    ];
    assert_eq!(
        usual(&tiers).sentence,
        "`top` is asked first for tdd_green in python (small); `smol` is skipped: accepted in 0 of 12 turns here, and \
         7 % are expected; a call then takes $0.250 and 0.9 min on average instead of $0.232 and 1.5 min"
    );
    let even = [
        tier("good", TierKind::Local, 9, 1, 0.0, 20.0),
        tier("top", TierKind::Subagent, 9, 1, 0.25, 50.0),
    ];
    assert_eq!(
        usual(&even).sentence,
        "the chain is walked as it is written: no other way looks cheaper for tdd_green in python (small)"
    );
}

#[test]
fn number_of_tries_follows_record_of_tries() {
    let top = || tier("top", TierKind::Subagent, 19, 1, 0.4, 60.0);
    // 20 first tries, 8 of them accepted, then this many second tries of 30 s each.
    let local = |accepted: u32, lost: u32, allowed: u32| {
        let mut local = tier("local", TierKind::Local, 8, 12, 0.0, 30.0);
        let second = TryRecord {
            accepted,
            lost,
            usd_tries: accepted + lost,
            seconds: 30.0 * 12.0,
            usd: 0.0,
        };
        (
            local.class_record.further[0],
            local.class_record.accepted,
            local.class_record.against,
        ) = (second, 8 + accepted, 12 - accepted);
        local.class_record.seconds += second.seconds;
        PolicyTier {
            all: local.class_record,
            tries: allowed,
            ..local
        }
    };
    for (tiers, tries) in [
        (vec![local(6, 6, 2), top()], vec![2, 1]),
        (vec![local(0, 12, 2), top()], vec![1, 1]),
        (vec![local(6, 6, 1), top()], vec![1, 1]),
        // Nothing is known about a third try, so it is assumed to be as good as the second.
        (vec![local(6, 6, 3), top()], vec![3, 1]),
        (vec![local(0, 12, 3), top()], vec![1, 1]),
        // The last tier has all its tries, because nothing follows it.
        (
            vec![local(6, 6, 2), PolicyTier { tries: 2, ..top() }],
            vec![2, 2],
        ),
    ] {
        let decision = usual(&tiers);
        assert_eq!(decision.tries, tries, "{decision:#?}");
    }
    assert_eq!(
        usual(&[local(0, 12, 2), top()]).sentence,
        "the chain is walked in its order for tdd_green in python (small); `local` is asked once and not 2 times: a \
         second try was accepted in 0 of 12 here, and 6 % are expected; a call then takes $0.228 and 1.1 min on average \
         instead of $0.215 and 1.4 min"
    );
}

#[test]
fn turns_are_counted_per_try() {
    use crate::ModelEvidence::{Against, For};
    let one = |evidence, usd, seconds| CountedTry {
        evidence,
        usd,
        seconds,
    };
    let tries = [
        one(Some(Against), Some(0.1), 1.0),
        one(None, Some(0.2), 2.0),
        one(Some(For), Some(0.4), 4.0),
    ];
    let turn = TurnRecord::of_tries(tries).expect("a turn");
    let (first, second) = (turn.tries_at(0), turn.tries_at(1));
    assert_eq!(
        (first.accepted, first.lost, second.accepted, second.lost),
        (0, 1, 1, 0)
    );
    assert!(
        (first.usd - 0.3).abs() < 1e-9 && (first.seconds - 3.0).abs() < 1e-9,
        "an outage takes its time: {first:?}"
    );
    assert!(
        (second.usd - 0.4).abs() < 1e-9 && (second.seconds - 4.0).abs() < 1e-9,
        "{second:?}"
    );
    let unpriced = TurnRecord::of_tries([tries[0], one(Some(Against), None, 1.0)]).expect("a turn");
    assert_eq!(
        (
            unpriced.usd,
            unpriced.usd_turns,
            unpriced.tries_at(1).usd_tries
        ),
        (0.0, 0, 0)
    );
    let many = TurnRecord::of_tries([tries[0]; 5]).expect("a turn");
    assert_eq!(
        (
            many.tries_at(0).lost,
            many.tries_at(1).lost,
            many.tries_at(2).lost,
            many.tries_at(9).lost
        ),
        (1, 1, 3, 3)
    );
    // A passport from before later tries were counted.
    let old: TurnRecord = serde_json::from_str(
        r#"{"accepted": 3, "against": 5, "at_first": 2, "usd": 0.8, "usd_turns": 8, "seconds": 80.0}"#,
    )
    .expect("still read");
    assert_eq!(
        (
            old.tries_at(0).accepted,
            old.tries_at(0).lost,
            old.tries_at(1).judged()
        ),
        (2, 6, 0)
    );
}

#[test]
fn other_task_kinds_only_shape_the_prior() {
    let elsewhere = TurnRecord {
        accepted: 0,
        against: 400,
        usd_turns: 400,
        seconds: 400.0,
        ..TurnRecord::default()
    };
    let mut tier = tier("m", TierKind::Local, 0, 0, 0.0, 1.0);
    tier.all = elsewhere;
    assert!(
        (tier.acceptance_at(0).mean() - 1.0 / 8.0).abs() < 1e-9,
        "{:?}",
        tier.acceptance_at(0)
    );
    tier.class_record = TurnRecord {
        accepted: 12,
        at_first: 12,
        ..TurnRecord::default()
    };
    (tier.all.accepted, tier.all.at_first) = (12, 12);
    assert!(
        tier.acceptance_at(0).mean() > 0.6,
        "here it was right each time: {:?}",
        tier.acceptance_at(0)
    );
}

#[test]
fn turns_count_only_evidence_about_the_model() {
    let attempt = |cause: &str, usd: Option<f64>| -> Attempt {
        serde_json::from_value(serde_json::json!({
            "attempt": 1, "model": "m", "tier": "local", "duration_ms": 1500, "cause": cause, "cost_usd": usd,
            "tokens_in": 5,
        }))
        .expect("an attempt")
    };
    let turn = |attempts: &[Attempt]| TurnRecord::of_turn(attempts);
    let second = turn(&[
        attempt("rejected", Some(0.1)),
        attempt("accepted", Some(0.2)),
    ])
    .expect("a turn");
    assert_eq!(
        (second.accepted, second.against, second.at_first),
        (1, 0, 0)
    );
    assert!(
        (second.usd - 0.3).abs() < 1e-9 && (second.seconds - 3.0).abs() < 1e-9,
        "{second:?}"
    );
    let first = turn(&[attempt("accepted", None)]).expect("a turn");
    assert_eq!(
        (first.accepted, first.at_first, first.usd_turns),
        (1, 1, 0),
        "its cost is unknown, and not zero"
    );
    for cause in ["rejected", "unreadable", "tampered"] {
        assert_eq!(
            turn(&[attempt(cause, None)]).map(|t| t.against),
            Some(1),
            "{cause}"
        );
    }
    let mut slow = attempt("infra", None);
    slow.unfinished = true;
    for unable in [attempt("incapable", None), slow.clone()] {
        let turn = turn(&[unable]).expect("a turn");
        assert_eq!(
            (turn.accepted, turn.against, turn.unable),
            (0, 0, 1),
            "its answers are not bad, it has none"
        );
        assert!(turn.seconds > 1.0, "the time is lost all the same");
    }
    let second_accepted = turn(&[slow, attempt("accepted", None)]).expect("a turn");
    assert_eq!((second_accepted.accepted, second_accepted.unable), (1, 0));
    let unsent = Attempt {
        tokens_in: None,
        ..attempt("incapable", None)
    };
    assert_eq!(
        turn(&[unsent]),
        None,
        "no question went out, so nothing was measured"
    );
    for cause in [
        "infra",
        "quota",
        "setup",
        "cancelled",
        "cannot_verify",
        "contradiction",
        "budget",
    ] {
        assert_eq!(turn(&[attempt(cause, None)]), None, "{cause}");
    }
    assert_eq!(turn(&[]), None);
}

#[test]
fn advice_is_given_only_where_delegation_loses() {
    let top = || tier("top", TierKind::Subagent, 18, 2, 0.10, 40.0);
    let local = |accepted, against, seconds| {
        tier("local", TierKind::Local, accepted, against, 0.0, seconds)
    };
    for (tiers, is_learned, is_advised, why) in [
        (
            vec![local(1, 11, 240.0), top()],
            false,
            true,
            "four minutes lost",
        ),
        (
            vec![local(1, 6, 240.0), top()],
            false,
            false,
            "too few turns",
        ),
        (vec![local(10, 2, 30.0), top()], false, false, "it pays"),
        (
            vec![local(1, 11, 240.0), top()],
            true,
            false,
            "the local tier is skipped",
        ),
        (
            vec![local(1, 11, 2.0), top()],
            false,
            false,
            "a try costs next to nothing",
        ),
    ] {
        let given = advice(&usual(&tiers), is_learned);
        assert_eq!(given.is_some(), is_advised, "{why}: {given:?}");
    }
    insta::assert_snapshot!(
        advice(&usual(&[local(1, 11, 240.0), top()]), false).expect("advice"),
        @"tdd_green in python (small) is not expected to pay here: expected $0.10 and 4 min by this call, against $0.13 and 48 s if you do it yourself (reckoned as `top`); `local` was accepted in 1 of 12 turns"
    );
}
