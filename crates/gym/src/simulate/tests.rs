use super::*;

/// One user: what a try of the local model takes and how often it is right, and the same of the top tier.
#[derive(Clone, Copy)]
struct SimulatedUser {
    local: f64,
    /// If the first try was wrong.
    again: f64,
    seconds: f64,
    usd: f64,
    top: f64,
    top_usd: f64,
}

impl SimulatedUser {
    fn world(self) -> KnownRates {
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
        };
        let top = TierRates {
            first: self.top,
            second: self.top,
            usd: self.top_usd,
            seconds: 60.0,
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
    // As published, a try at a time.
    user(0.34, 0.0, 180.0, 0.24, 0.766, 1.82),
    // The second try is about as good as the first, better, nearly always right, and nearly never.
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

/// The cheapest of always the same way, of those that ask the top tier: each order, with one try of the local model and two.
fn best_fixed(world: &KnownRates, calls: usize, seed: u64) -> f64 {
    let way = |order: &[usize], tries| SimulatedPolicy::Fixed {
        order: order.to_vec(),
        tries,
    };
    [
        way(&[0, 1], 1),
        way(&[0, 1], 2),
        way(&[1, 0], 1),
        way(&[1, 0], 2),
        way(&[1], 1),
    ]
    .iter()
    .map(|policy| total(&simulate(world, policy, calls, MINUTE, seed)))
    .fold(f64::INFINITY, f64::min)
}

#[expect(clippy::print_stderr, reason = "figures are worth reading")]
fn show(line: &str) {
    eprintln!("{line}");
}

#[test]
fn for_users_whose_models_have_known_rates_learning_pays() {
    let mut missed = Vec::new();
    for user in USERS {
        let world = user.world();
        let (mut to_best, mut to_static, mut to_single) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..SEEDS {
            let run = |policy| simulate(&world, &policy, 200, MINUTE, seed);
            let learned = run(SimulatedPolicy::Learned);
            to_best.push(total(&learned) / best_fixed(&world, 200, seed));
            let later = |tries| {
                total(&learned[50..]) / total(&run(SimulatedPolicy::Static { tries })[50..])
            };
            to_static.push(later(2));
            to_single.push(later(1));
        }
        let [to_best, to_static, to_single] =
            [to_best, to_static, to_single].map(|ratios| Spread::of(&ratios));
        let spread = |spread: Spread| format!("{:.3} ± {:.3}", spread.mean, spread.half_width);
        let told = format!(
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
        show(&told);
        if to_best.mean > 1.10 || to_static.mean > 1.05 {
            missed.push(told);
        }
    }
    assert!(
        missed.is_empty(),
        "10 % above the best fixed policy, or 5 % above the chain as written:\n{}",
        missed.join("\n")
    );
}

#[test]
fn a_simulation_is_the_same_for_the_same_seed_and_another_for_another() {
    let world = user(0.5, 0.2, 30.0, 0.0, 0.9, 0.3).world();
    let run = |seed| simulate(&world, &SimulatedPolicy::Learned, 100, MINUTE, seed);
    assert_eq!(run(4), run(4));
    assert_ne!(run(4), run(5));
}

#[test]
fn a_model_that_is_never_right_is_skipped_after_at_most_twelve_turns() {
    for seed in 0..SEEDS {
        let world = user(0.0, 0.0, 30.0, 0.0, 0.95, 0.3).world();
        let mut asked = 0;
        for call in simulate(&world, &SimulatedPolicy::Learned, 60, MINUTE, seed) {
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
fn published_rates_can_be_read_and_are_rates() {
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
fn a_second_try_that_was_left_out_is_one_that_the_model_made_at_another_task() {
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
        let world = recorded_from_gym(tiers(), outcomes).expect("tasks");
        let calls = simulate(
            &world,
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
    // No second try follows an answer that cannot be read.
    let unreadable = outcome("go/a", "local", &[Unreadable]);
    assert!(accepted_at_two_tries(vec![unreadable, repaired, top()]) < 40);
    assert_eq!(
        accepted_at_two_tries(vec![single, top()]),
        0,
        "none was ever made"
    );
}
