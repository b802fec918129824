use super::*;

fn world(local: f64, local_seconds: f64, local_usd: f64, top: f64, top_usd: f64) -> KnownRates {
    let tier = |model: &str, kind, rate, usd, seconds| {
        (SimulatedTier { model: model.into(), kind }, TierRates { first: rate, second: rate, usd, seconds })
    };
    KnownRates::new(
        vec![
            // Half the time per try, so that a refused turn of two tries takes as long as given.
            tier("local", TierKind::Local, local, local_usd / 2.0, local_seconds / 2.0),
            tier("top", TierKind::Subagent, top, top_usd, 60.0),
        ],
        false,
    )
}

const MINUTE: f64 = 0.1;
const SEEDS: u64 = 20;

fn total(calls: &[SimulatedCall]) -> f64 {
    calls.iter().map(|call| call.priced(MINUTE)).sum()
}

/// The cheapest of always the same way, of those that end at the top tier.
fn best_fixed(world: &KnownRates, calls: usize, seed: u64) -> f64 {
    [vec![0, 1], vec![1, 0], vec![1]]
        .into_iter()
        .map(|order| total(&simulate(world, &SimulatedPolicy::Fixed(order), calls, MINUTE, seed)))
        .fold(f64::INFINITY, f64::min)
}

#[expect(clippy::print_stderr, reason = "figures are worth reading")]
fn show(line: &str) {
    eprintln!("{line}");
}

#[test]
fn for_users_whose_models_have_known_rates_learning_pays() {
    // Rate, seconds and USD of a turn of the local model; rate and USD of the top tier.
    for (local, seconds, usd, top, top_usd) in [
        (0.02, 60.0, 0.0, 0.95, 0.30),
        (0.10, 120.0, 0.0, 0.95, 0.30),
        (0.30, 90.0, 0.0, 0.90, 0.30),
        (0.50, 60.0, 0.0, 0.95, 0.30),
        (0.70, 30.0, 0.0, 0.95, 0.50),
        (0.90, 45.0, 0.0, 0.90, 0.20),
        (0.60, 200.0, 0.02, 0.95, 0.15),
        (0.34, 180.0, 0.24, 0.766, 1.82),
    ] {
        let world = world(local, seconds, usd, top, top_usd);
        let (mut to_best, mut to_static) = (Vec::new(), Vec::new());
        for seed in 0..SEEDS {
            let learned = simulate(&world, &SimulatedPolicy::Learned, 200, MINUTE, seed);
            let fixed = simulate(&world, &SimulatedPolicy::Static { tries: 2 }, 200, MINUTE, seed);
            to_best.push(total(&learned) / best_fixed(&world, 200, seed));
            to_static.push(total(&learned[50..]) / total(&fixed[50..]));
        }
        let (to_best, to_static) = (Spread::of(&to_best), Spread::of(&to_static));
        let told = format!(
            "local {local} in {seconds} s for ${usd}, top {top} for ${top_usd}: {:.3} ± {:.3} of the best fixed policy, \
             from call 50 on {:.3} ± {:.3} of the static chain",
            to_best.mean, to_best.half_width, to_static.mean, to_static.half_width
        );
        show(&told);
        assert!(to_best.mean <= 1.10, "more than 10 % above the best fixed policy: {told}");
        assert!(to_static.mean <= 1.05, "more than 5 % above the static chain: {told}");
    }
}

#[test]
fn a_simulation_is_the_same_for_the_same_seed_and_another_for_another() {
    let world = world(0.5, 60.0, 0.0, 0.9, 0.3);
    let run = |seed| simulate(&world, &SimulatedPolicy::Learned, 100, MINUTE, seed);
    assert_eq!(run(4), run(4));
    assert_ne!(run(4), run(5));
}

#[test]
fn a_model_that_is_never_right_is_skipped_after_at_most_twelve_turns() {
    for seed in 0..SEEDS {
        let world = world(0.0, 60.0, 0.0, 0.95, 0.3);
        let mut asked = 0;
        for call in simulate(&world, &SimulatedPolicy::Learned, 60, MINUTE, seed) {
            // A call that asked both took longer than the top tier alone.
            asked += usize::from(call.minutes > 1.01);
        }
        assert!(asked <= 12 + 3, "seed {seed}: asked in {asked} of 60 calls, exploration included");
    }
}

#[test]
fn published_rates_can_be_read_and_are_rates() {
    let scenarios = published_scenarios();
    assert!(scenarios.len() >= 3);
    for scenario in scenarios {
        for rates in scenario.independent.rates.iter().chain(&scenario.nested.rates) {
            assert!(rates.first <= rates.second && rates.second <= 1.0 && rates.usd >= 0.0, "{}", scenario.name);
        }
        let compared = compare(&scenario.nested, 100, 3, 1, MINUTE);
        assert!(compared[0].saving.abs() < 1e-9, "the top tier saves nothing against itself");
    }
}
