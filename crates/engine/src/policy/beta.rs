//! Beta distributions and confidence intervals of rates.

use serde::{Deserialize, Serialize};

/// Standard deviations that contain 90 % and 95 % of a normal distribution.
const Z_90: f64 = 1.645;
const Z_95: f64 = 1.96;

/// Posterior of a rate after this many successes and failures, including those of the prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beta {
    pub accepted: f64,
    pub against: f64,
}

/// Bounds of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Beta {
    /// Both parameters are made positive, as the distribution requires.
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

    /// About 90 % of the distribution, by the normal approximation, clamped to 0..=1.
    pub fn interval(self) -> Interval {
        let (n, mean) = (self.accepted + self.against, self.mean());
        let deviation = (mean * (1.0 - mean) / (n + 1.0)).sqrt();
        Interval {
            low: (mean - Z_90 * deviation).max(0.0),
            high: (mean + Z_90 * deviation).min(1.0),
        }
    }

    /// Samples once: the share of one gamma variable in the sum of two.
    pub fn sample(self, rng: &mut fastrand::Rng) -> f64 {
        let (a, b) = (gamma(self.accepted, rng), gamma(self.against, rng));
        if a + b > 0.0 {
            a / (a + b)
        } else {
            self.mean()
        }
    }
}

/// The 95 % Wilson interval of a rate seen `yes` times in `of`. It is sensible even for none and
/// for all.
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

/// Samples a gamma variable of this shape (Marsaglia and Tsang).
fn gamma(shape: f64, rng: &mut fastrand::Rng) -> f64 {
    if shape < 1.0 {
        let lifted = gamma(shape + 1.0, rng);
        return lifted * rng.f64().max(f64::MIN_POSITIVE).powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && rng.f64().max(f64::MIN_POSITIVE).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// Samples a standard normal variable (Box and Muller).
fn normal(rng: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * rng.f64().max(f64::MIN_POSITIVE).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_expected_mean_and_variance() {
        let mut rng = fastrand::Rng::with_seed(7);
        for (a, b) in [(1.0, 1.0), (1.0, 13.0), (30.0, 10.0), (0.5, 0.5)] {
            let beta = Beta::new(a, b);
            let draws: Vec<f64> = (0..20_000).map(|_| beta.sample(&mut rng)).collect();
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
    fn intervals_narrow_with_data_and_stay_in_range() {
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
