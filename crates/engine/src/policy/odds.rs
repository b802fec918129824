//! How often something happens, and how sure that is: Beta distributions and intervals of rates.

use serde::{Deserialize, Serialize};

/// Standard deviations of a normal distribution that hold 90 % and 95 % of it.
const Z_90: f64 = 1.645;
const Z_95: f64 = 1.96;

/// The posterior of a rate after so many successes and failures, those of the prior included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beta {
    pub accepted: f64,
    pub against: f64,
}

/// Where a rate lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Beta {
    /// Both are made positive: a distribution with a zero is none.
    pub fn new(accepted: f64, against: f64) -> Self {
        let positive = |n: f64| if n.is_finite() && n > 1e-3 { n } else { 1e-3 };
        Self {
            accepted: positive(accepted),
            against: positive(against),
        }
    }

    pub fn mean(self) -> f64 {
        self.accepted / (self.accepted + self.against)
    }

    /// About 90 % of it, by the normal approximation on its own deviation, within 0 and 1.
    pub fn interval(self) -> Interval {
        let (n, mean) = (self.accepted + self.against, self.mean());
        let deviation = (mean * (1.0 - mean) / (n + 1.0)).sqrt();
        Interval {
            low: (mean - Z_90 * deviation).max(0.0),
            high: (mean + Z_90 * deviation).min(1.0),
        }
    }

    /// One draw: the share of one gamma variable in the sum of two.
    pub fn sample(self, dice: &mut fastrand::Rng) -> f64 {
        let (a, b) = (gamma(self.accepted, dice), gamma(self.against, dice));
        if a + b > 0.0 {
            a / (a + b)
        } else {
            self.mean()
        }
    }
}

/// The 95 % interval of a rate that was seen `yes` times in `of`, after Wilson: sensible also for none and for all.
pub fn rate_interval(yes: usize, of: usize) -> Interval {
    if of == 0 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    let (n, p, z) = (of as f64, yes as f64 / of as f64, Z_95);
    let (centre, spread) = (
        p + z * z / (2.0 * n),
        z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt(),
    );
    let scale = 1.0 + z * z / n;
    Interval {
        low: ((centre - spread) / scale).max(0.0),
        high: ((centre + spread) / scale).min(1.0),
    }
}

/// A gamma variable of this shape, after Marsaglia and Tsang.
fn gamma(shape: f64, dice: &mut fastrand::Rng) -> f64 {
    if shape < 1.0 {
        let lifted = gamma(shape + 1.0, dice);
        return lifted * dice.f64().max(f64::MIN_POSITIVE).powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(dice);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && dice.f64().max(f64::MIN_POSITIVE).ln() < 0.5 * x * x + d - d * v + d * v.ln()
        {
            return d * v;
        }
    }
}

/// A standard normal variable, after Box and Muller.
fn normal(dice: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * dice.f64().max(f64::MIN_POSITIVE).ln()).sqrt();
    radius * (std::f64::consts::TAU * dice.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_spread_of_their_distribution() {
        let mut dice = fastrand::Rng::with_seed(7);
        for (a, b) in [(1.0, 1.0), (1.0, 13.0), (30.0, 10.0), (0.5, 0.5)] {
            let beta = Beta::new(a, b);
            let draws: Vec<f64> = (0..20_000).map(|_| beta.sample(&mut dice)).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance =
                draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / draws.len() as f64;
            let expected = a * b / ((a + b).powi(2) * (a + b + 1.0));
            assert!((mean - beta.mean()).abs() < 0.01, "{a} {b}: {mean}");
            assert!(
                (variance - expected).abs() < 0.005,
                "{a} {b}: {variance} and not {expected}"
            );
        }
    }

    #[test]
    fn an_interval_is_wide_where_little_was_seen_and_never_leaves_the_range_of_a_rate() {
        let none = rate_interval(0, 12);
        assert!(
            none.low == 0.0 && none.high > 0.2 && none.high < 0.3,
            "{none:?}"
        );
        let all = rate_interval(96, 96);
        assert!(all.high == 1.0 && all.low > 0.95, "{all:?}");
        assert_eq!(
            rate_interval(0, 0),
            Interval {
                low: 0.0,
                high: 1.0
            }
        );
        let beta = Beta::new(1.0, 1.0).interval();
        assert!(
            beta.low >= 0.0 && beta.high <= 1.0 && beta.high - beta.low > 0.8,
            "{beta:?}"
        );
    }
}
