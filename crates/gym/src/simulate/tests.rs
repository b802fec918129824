use super::*;

/// One user: cost and success rates of a local model and of the top tier.
#[derive(Clone, Copy)]
struct SimulatedUser {
    local: f64,
    /// Success rate of the second try, if the first was wrong.
    again: f64,
    seconds: f64,
    usd: f64,
    top: f64,
    top_usd: f64,
}

impl SimulatedUser {
    fn source(self) -> KnownRates {
        let tier = |model: &str, kind, rates| {
            (
                SimulatedTier {
                    model: model.into(),
                    kind,
                },
                rates,
            )
        };
        let within_two = self.local + (1.0 - self.local) * self.again;
        let local = TierRates {
            first: self.local,
            second: within_two,
            usd: self.usd,
            seconds: self.seconds,
            samples: 1,
        };
        let top = TierRates {
            first: self.top,
            second: self.top,
            usd: self.top_usd,
            seconds: 60.0,
            samples: 1,
        };
        KnownRates::new(
            vec![
                tier("local", TierKind::Local, local),
                tier("top", TierKind::Subagent, top),
            ],
            false,
        )
    }
}

const fn user(
    local: f64,
    again: f64,
    seconds: f64,
    usd: f64,
    top: f64,
    top_usd: f64,
) -> SimulatedUser {
    SimulatedUser {
        local,
        again,
        seconds,
        usd,
        top,
        top_usd,
    }
}

const USERS: [SimulatedUser; 16] = [
    user(0.02, 0.0, 30.0, 0.0, 0.95, 0.30),
    user(0.10, 0.0, 60.0, 0.0, 0.95, 0.30),
    user(0.30, 0.0, 45.0, 0.0, 0.90, 0.30),
    user(0.50, 0.0, 30.0, 0.0, 0.95, 0.30),
    user(0.70, 0.0, 15.0, 0.0, 0.95, 0.50),
    user(0.90, 0.0, 22.5, 0.0, 0.90, 0.20),
    user(0.60, 0.0, 100.0, 0.01, 0.95, 0.15),
    user(0.34, 0.0, 90.0, 0.12, 0.766, 1.82),
    // Published rates, per try.
    user(0.34, 0.0, 180.0, 0.24, 0.766, 1.82),
    // The second try is about as good as the first, better, nearly always right, and nearly never
    // right.
    user(0.30, 0.30, 45.0, 0.0, 0.90, 0.30),
    user(0.21, 0.40, 60.0, 0.0, 0.83, 0.92),
    user(0.20, 0.95, 60.0, 0.0, 0.95, 0.30),
    user(0.05, 0.90, 60.0, 0.0, 0.95, 0.30),
    user(0.50, 0.05, 120.0, 0.0, 0.95, 0.30),
    user(0.70, 0.50, 30.0, 0.0, 0.95, 0.50),
    user(0.45, 0.25, 90.0, 0.02, 0.90, 0.40),
];

const MINUTE: f64 = 0.1;
const SEEDS: u64 = 20;

fn total(calls: &[SimulatedCall]) -> f64 {
    calls.iter().map(|call| call.priced(MINUTE)).sum()
}

/// Cost of the cheapest fixed order that asks the top tier: each order, with one and with two tries
/// of the local model.
fn best_fixed(source: &KnownRates, calls: usize, seed: u64) -> f64 {
    let plan = |order: &[usize], tries| SimulatedPolicy::Fixed {
        order: order.to_vec(),
        tries,
    };
    [
        plan(&[0, 1], 1),
        plan(&[0, 1], 2),
        plan(&[1, 0], 1),
        plan(&[1, 0], 2),
        plan(&[1], 1),
    ]
    .iter()
    .map(|policy| total(&simulate(source, policy, calls, MINUTE, seed)))
    .fold(f64::INFINITY, f64::min)
}

#[expect(clippy::print_stderr, reason = "figures are worth reading")]
fn show(line: &str) {
    eprintln!("{line}");
}

#[test]
fn learned_policy_is_near_best_fixed_policy() {
    let mut missed = Vec::new();
    for user in USERS {
        let source = user.source();
        let (mut to_best, mut to_static, mut to_single) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..SEEDS {
            let run = |policy| simulate(&source, &policy, 200, MINUTE, seed);
            let learned = run(SimulatedPolicy::Learned);
            to_best.push(total(&learned) / best_fixed(&source, 200, seed));
            let later = |tries| {
                total(&learned[50..]) / total(&run(SimulatedPolicy::Static { tries })[50..])
            };
            to_static.push(later(2));
            to_single.push(later(1));
        }
        let [to_best, to_static, to_single] =
            [to_best, to_static, to_single].map(|ratios| MeanInterval::of(&ratios));
        let spread =
            |spread: MeanInterval| format!("{:.3} ± {:.3}", spread.mean, spread.half_width);
        let row = format!(
            "| {:.0} %, then {:.0} %; {} s, ${} | {:.1} %, ${} | {} | {} | {} |",
            user.local * 100.0,
            user.again * 100.0,
            user.seconds,
            user.usd,
            user.top * 100.0,
            user.top_usd,
            spread(to_best),
            spread(to_static),
            spread(to_single),
        );
        show(&row);
        if to_best.mean > 1.10 || to_static.mean > 1.05 {
            missed.push(row);
        }
    }
    assert!(
        missed.is_empty(),
        "10 % above the best fixed policy, or 5 % above the chain as written:\n{}",
        missed.join("\n")
    );
}

#[test]
fn simulations_are_deterministic_by_seed() {
    let source = user(0.5, 0.2, 30.0, 0.0, 0.9, 0.3).source();
    let run = |seed| simulate(&source, &SimulatedPolicy::Learned, 100, MINUTE, seed);
    assert_eq!(run(4), run(4));
    assert_ne!(run(4), run(5));
}

#[test]
fn failing_model_is_soon_skipped() {
    for seed in 0..SEEDS {
        let source = user(0.0, 0.0, 30.0, 0.0, 0.95, 0.3).source();
        let mut asked = 0;
        for call in simulate(&source, &SimulatedPolicy::Learned, 60, MINUTE, seed) {
            // A call that asked both took longer than the top tier alone.
            asked += usize::from(call.minutes > 1.01);
        }
        assert!(
            asked <= 12 + 3,
            "seed {seed}: asked in {asked} of 60 calls, exploration included"
        );
    }
}

#[test]
fn published_rates_are_valid() {
    let scenarios = published_scenarios();
    assert!(scenarios.len() >= 3);
    for scenario in scenarios {
        for rates in scenario
            .independent
            .rates
            .iter()
            .chain(&scenario.nested.rates)
        {
            assert!(
                rates.first <= rates.second && rates.second <= 1.0 && rates.usd >= 0.0,
                "{}",
                scenario.name
            );
        }
        let compared = compare(&scenario.nested, 100, 3, 1, MINUTE);
        assert!(
            compared[0].saving.abs() < 1e-9,
            "the top tier saves nothing against itself"
        );
    }
}

#[test]
fn missing_second_tries_come_from_other_tasks() {
    use super::super::results::tests::outcome;
    use supervisor_engine::Cause::{Accepted, Rejected, Unreadable};
    let tier = |model: &str, kind| SimulatedTier {
        model: model.into(),
        kind,
    };
    let tiers = || {
        vec![
            tier("local", TierKind::Local),
            tier("top", TierKind::Subagent),
        ]
    };
    let top = || outcome("go/a", "top", &[Accepted]);
    let accepted_at_two_tries = |outcomes: Vec<_>| {
        let source = recorded_from_gym(tiers(), outcomes, 1).expect("tasks");
        let calls = simulate(
            &source,
            &SimulatedPolicy::Fixed {
                order: vec![0],
                tries: 2,
            },
            40,
            MINUTE,
            1,
        );
        calls.iter().filter(|call| call.accepted).count()
    };
    let repaired = outcome("go/b", "local", &[Rejected, Accepted]);
    let single = outcome("go/a", "local", &[Rejected]);
    assert_eq!(
        accepted_at_two_tries(vec![single.clone(), repaired.clone(), top()]),
        40
    );
    // No second try follows an unreadable answer.
    let unreadable = outcome("go/a", "local", &[Unreadable]);
    assert!(accepted_at_two_tries(vec![unreadable, repaired, top()]) < 40);
    assert_eq!(
        accepted_at_two_tries(vec![single, top()]),
        0,
        "none was ever made"
    );
}

#[test]
fn samples_raise_acceptance_and_cost_as_computed() {
    let local = SimulatedUser {
        local: 0.3,
        again: 0.0,
        seconds: 30.0,
        usd: 0.01,
        top: 0.9,
        top_usd: 0.3,
    };
    let calls = 4_000;
    for samples in [1, 2, 4] {
        let source = local.source().with_samples(samples);
        let policy = SimulatedPolicy::Fixed {
            order: vec![0],
            tries: 1,
        };
        let run = simulate(&source, &policy, calls, 0.1, 7);
        let accepted = run.iter().filter(|call| call.accepted).count();
        let share = accepted as f64 / calls as f64;
        let expected = 1.0 - 0.7_f64.powi(samples as i32);
        assert!(
            (share - expected).abs() < 0.025,
            "{samples}: {share} for {expected}"
        );
        let usd: f64 = run.iter().map(|call| call.usd).sum();
        let minutes: f64 = run.iter().map(|call| call.minutes).sum();
        let (answers, calls) = (f64::from(samples), calls as f64);
        assert!((usd - 0.01 * answers * calls).abs() < 1e-6);
        assert!((minutes - 0.5 * answers * calls).abs() < 1e-6);
    }
}
