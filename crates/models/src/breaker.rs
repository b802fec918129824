//! Circuit breaker for model backends. It has one circuit per endpoint and one per model behind it.
//! A failure trips the circuit for a cooldown that grows with each failure; after that a single
//! question is let through as a probe. The current time is passed in by the caller.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{AskError, FailureBlame};
use supervisor_settings::BreakerSettings as Settings;

/// All circuits of one server. Clones are cheap and share state.
#[derive(Clone)]
pub struct Breaker {
    circuits: Arc<Mutex<Circuits>>,
    settings: Settings,
    /// Returns 0 to 1: the share of an extra tenth added to each cooldown, so that many servers do
    /// not retry at the same moment.
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

#[derive(Debug, Default)]
struct Circuits {
    states: HashMap<CircuitKey, CircuitState>,
    /// Numbers the probes, so that a late one cannot end the probe of its successor.
    probes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CircuitKey {
    Endpoint(String),
    Model(String, String),
}

#[derive(Debug, Default)]
struct CircuitState {
    failures: u32,
    malformed: u32,
    tripped: Option<TrippedCircuit>,
}

#[derive(Debug)]
struct TrippedCircuit {
    until: Instant,
    why: String,
    /// A probe is under way.
    probe: Option<u64>,
}

/// The question is not sent, because a circuit is tripped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    pub until: Instant,
    /// Until then.
    pub wait: Duration,
    pub why: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wait.as_secs_f64().ceil() {
            0.0 => write!(f, "{}, and another call is trying it now", self.why),
            seconds => write!(f, "{}, and is paused for another {seconds} s", self.why),
        }
    }
}

/// Permission to ask once. Dropping it without reporting a result (the call was cancelled) has no
/// effect on the circuits.
#[must_use = "say how the ask went"]
pub struct Pass {
    breaker: Breaker,
    keys: [CircuitKey; 2],
    probes: [Option<u64>; 2],
}

impl Breaker {
    pub fn new(settings: Settings) -> Self {
        Self::with_jitter(settings, fastrand::f64)
    }

    pub fn with_jitter(
        settings: Settings,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self {
            circuits: Arc::default(),
            settings,
            jitter: Arc::new(jitter),
        }
    }

    /// Checks whether `model` may be asked at `endpoint`. Both circuits must be closed, or due for
    /// their single probe.
    pub fn admit(&self, endpoint: &str, model: &str, now: Instant) -> Result<Pass, Skip> {
        let keys = [
            CircuitKey::Endpoint(endpoint.to_owned()),
            CircuitKey::Model(endpoint.to_owned(), model.to_owned()),
        ];
        let mut circuits = self.lock();
        for key in &keys {
            if let Some(tripped) = circuits
                .states
                .get(key)
                .and_then(|state| state.tripped.as_ref())
                && (now < tripped.until || tripped.probe.is_some())
            {
                return Err(Skip {
                    until: tripped.until,
                    wait: tripped.until.saturating_duration_since(now),
                    why: tripped.why.clone(),
                });
            }
        }
        circuits.probes += 1;
        let probe_id = circuits.probes;
        let mut probe = |key: &CircuitKey| {
            let tripped = circuits.states.get_mut(key)?.tripped.as_mut()?;
            tripped.probe = Some(probe_id);
            tripped.probe
        };
        let probes = [probe(&keys[0]), probe(&keys[1])];
        drop(circuits);
        Ok(Pass {
            breaker: self.clone(),
            keys,
            probes,
        })
    }

    /// Lets a question through although a circuit may be tripped: nobody else can be asked.
    pub fn admit_anyway(&self, endpoint: &str, model: &str) -> Pass {
        Pass {
            breaker: self.clone(),
            keys: [
                CircuitKey::Endpoint(endpoint.to_owned()),
                CircuitKey::Model(endpoint.to_owned(), model.to_owned()),
            ],
            probes: [None, None],
        }
    }

    fn lock(&self) -> MutexGuard<'_, Circuits> {
        self.circuits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// The model answered, well or badly: closes both circuits.
    pub fn answered(self) {
        let mut circuits = self.breaker.lock();
        for key in &self.keys {
            circuits.states.remove(key);
        }
    }

    /// Records that there was no answer.
    pub fn failed(self, why: &AskError, now: Instant) {
        let [endpoint, model] = &self.keys;
        let mut circuits = self.breaker.lock();
        match why.blame() {
            FailureBlame::Endpoint => self.trip(
                circuits.states.entry(endpoint.clone()).or_default(),
                why,
                now,
            ),
            FailureBlame::Model => {
                // The endpoint is up, since it returned an error for the model.
                circuits.states.remove(endpoint);
                let state = circuits.states.entry(model.clone()).or_default();
                let malformed = matches!(why, AskError::Malformed { .. });
                state.malformed = if malformed { state.malformed + 1 } else { 0 };
                if !malformed
                    || state.malformed >= self.breaker.settings.failures
                    || state.tripped.is_some()
                {
                    self.trip(state, why, now);
                }
            }
            // The failure tells nothing about endpoint or model, so the probe has no result. `drop`
            // releases it.
            FailureBlame::Neither => {}
        }
    }

    fn trip(&self, state: &mut CircuitState, why: &AskError, now: Instant) {
        state.failures = state.failures.saturating_add(1);
        let Settings {
            cooldown,
            max_cooldown,
            ..
        } = self.breaker.settings;
        let grown = cooldown.saturating_mul(state.failures).min(max_cooldown);
        let wait = why.retry_after().unwrap_or(grown);
        let wait = wait + wait.mul_f64(0.1 * (self.breaker.jitter)().clamp(0.0, 1.0));
        // Questions sent before the circuit tripped still end later. They must neither shorten the
        // cooldown nor end a running probe.
        let previous = state.tripped.as_ref();
        let until = previous.map_or(now + wait, |tripped| tripped.until.max(now + wait));
        let probe = previous
            .and_then(|tripped| tripped.probe)
            .filter(|probe| !self.probes.contains(&Some(*probe)));
        state.tripped = Some(TrippedCircuit {
            until,
            why: why.to_string(),
            probe,
        });
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut circuits = self.breaker.lock();
        for (key, probe) in self.keys.iter().zip(self.probes) {
            if let Some(tripped) = circuits
                .states
                .get_mut(key)
                .and_then(|state| state.tripped.as_mut())
                && probe.is_some()
                && tripped.probe == probe
            {
                tripped.probe = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_secs(30);
    const MAX_COOLDOWN: Duration = Duration::from_secs(600);
    const MALFORMED_IN_A_ROW: u32 = 3;
    const SETTINGS: Settings = Settings {
        failures: MALFORMED_IN_A_ROW,
        cooldown: STEP,
        max_cooldown: MAX_COOLDOWN,
    };
    use proptest::prelude::*;

    fn unreachable() -> AskError {
        AskError::Unreachable {
            backend: "gate".into(),
            address: "http://x".into(),
            why: "refused".into(),
        }
    }

    fn malformed_answer() -> AskError {
        AskError::Malformed {
            model: "m".into(),
            why: "no JSON".into(),
        }
    }

    fn timed_out() -> AskError {
        AskError::TimedOut {
            model: "m".into(),
            waited: STEP,
            setting: "limits.local_s".into(),
        }
    }

    fn limited(seconds: u64) -> AskError {
        let retry_after = Some(Duration::from_secs(seconds));
        AskError::RateLimited {
            backend: "gate".into(),
            detail: String::new(),
            retry_after,
        }
    }

    fn without_jitter() -> Breaker {
        Breaker::with_jitter(SETTINGS, || 0.0)
    }

    fn pass(breaker: &Breaker, model: &str, now: Instant) -> Pass {
        breaker
            .admit("gate", model, now)
            .unwrap_or_else(|skip| panic!("{skip}"))
    }

    #[test]
    fn unreachable_endpoint_is_skipped_with_growing_cooldown() {
        let (breaker, mut now) = (without_jitter(), Instant::now());
        for n in 1..=30 {
            pass(&breaker, "m", now).failed(&unreachable(), now);
            let wait = (STEP * n).min(MAX_COOLDOWN);
            let skip = breaker
                .admit("gate", "other", now + wait - Duration::from_millis(1))
                .err()
                .expect("tripped");
            assert_eq!(skip.until, now + wait, "after {n} failures");
            assert!(skip.to_string().contains("cannot be reached"), "{skip}");
            assert!(breaker.admit("elsewhere", "m", now).is_ok());
            now += wait;
        }
    }

    #[test]
    fn skip_says_how_long_the_pause_lasts() {
        let (breaker, now) = (without_jitter(), Instant::now());
        pass(&breaker, "m", now).failed(&timed_out(), now);
        let later = now + Duration::from_millis(2_500);
        let skip = breaker.admit("gate", "m", later).err().expect("tripped");
        assert_eq!(
            skip.to_string(),
            "paused for another 28 s: `m` gave no answer within 30 s"
        );
        breaker.admit_anyway("gate", "m").answered();
        assert!(breaker.admit("gate", "m", later).is_ok(), "it works again");
    }

    #[test]
    fn due_circuit_admits_one_probe_at_a_time() {
        let (breaker, now) = (without_jitter(), Instant::now());
        pass(&breaker, "m", now).failed(&unreachable(), now);
        let due = now + STEP;
        let probe = pass(&breaker, "m", due);
        assert!(
            breaker.admit("gate", "m", due).is_err(),
            "a second one while the first is out"
        );
        assert!(breaker.admit("gate", "other", due).is_err());
        drop(probe);
        pass(&breaker, "m", due).answered();
        let (_a, _b) = (pass(&breaker, "m", due), pass(&breaker, "m", due));
    }

    #[test]
    fn consecutive_malformed_answers_trip_only_the_model() {
        let (breaker, now) = (without_jitter(), Instant::now());
        for _ in 1..MALFORMED_IN_A_ROW {
            pass(&breaker, "m", now).failed(&malformed_answer(), now);
        }
        pass(&breaker, "m", now).answered();
        for _ in 0..MALFORMED_IN_A_ROW {
            pass(&breaker, "m", now).failed(&malformed_answer(), now);
        }
        assert!(breaker.admit("gate", "m", now).is_err());
        assert!(breaker.admit("gate", "other", now).is_ok());
    }

    #[test]
    fn timeout_trips_only_that_model() {
        let (breaker, now) = (without_jitter(), Instant::now());
        pass(&breaker, "m", now).failed(&timed_out(), now);
        assert!(breaker.admit("gate", "m", now).is_err());
        assert!(breaker.admit("gate", "other", now).is_ok());
    }

    #[test]
    fn server_retry_after_replaces_the_cooldown() {
        for seconds in [3, 7200] {
            let (breaker, now) = (without_jitter(), Instant::now());
            pass(&breaker, "m", now).failed(&limited(seconds), now);
            let until = now + Duration::from_secs(seconds);
            assert!(
                breaker
                    .admit("gate", "m", until - Duration::from_millis(1))
                    .is_err()
            );
            assert!(breaker.admit("gate", "m", until).is_ok());
        }
    }

    #[test]
    fn setup_errors_do_not_trip() {
        let (breaker, now) = (without_jitter(), Instant::now());
        let why = AskError::NotLoggedIn {
            backend: "gate".into(),
            detail: String::new(),
        };
        pass(&breaker, "m", now).failed(&why, now);
        assert!(breaker.admit("gate", "m", now).is_ok());
    }

    #[test]
    fn failed_endpoint_probe_releases_the_model_probe() {
        let (breaker, now) = (without_jitter(), Instant::now());
        let (a, b) = (pass(&breaker, "m", now), pass(&breaker, "m", now));
        a.failed(&timed_out(), now);
        b.failed(&unreachable(), now);
        pass(&breaker, "m", now + STEP).failed(&unreachable(), now + STEP);
        pass(&breaker, "m", now + STEP * 3).answered();
    }

    #[derive(Debug, Clone)]
    enum Act {
        Wait(u64),
        Ask(bool),
        End(usize, usize),
    }

    proptest! {
        /// Whatever happens, a tripped circuit admits nothing before its cooldown ends and at most
        /// one probe after that, and it never stays tripped forever.
        #[test]
        fn circuits_trip_for_bounded_time_and_admit_one_probe(acts in proptest::collection::vec(prop_oneof![
            (0..700_u64).prop_map(Act::Wait),
            any::<bool>().prop_map(Act::Ask),
            (0..8_usize, 0..6_usize).prop_map(|(which, how)| Act::End(which, how)),
        ], 0..80)) {
            let breaker = Breaker::with_jitter(SETTINGS, || 1.0);
            let mut now = Instant::now();
            let mut passes: Vec<Pass> = Vec::new();
            let (mut not_before, mut probing) = (now, None);
            for act in acts {
                match act {
                    Act::Wait(seconds) => now += Duration::from_secs(seconds),
                    Act::Ask(other) => {
                        match breaker.admit("gate", if other { "o" } else { "m" }, now) {
                            Ok(pass) => {
                                prop_assert!(now >= not_before, "admitted before the server's own wait was over");
                                prop_assert_eq!(probing, None, "admitted while the endpoint is being probed");
                                probing = pass.probes[0];
                                passes.push(pass);
                            }
                            Err(skip) => prop_assert!(skip.until <= now + MAX_COOLDOWN.mul_f64(1.1) || !passes.is_empty()),
                        }
                    }
                    Act::End(which, how) if which < passes.len() => {
                        let pass = passes.swap_remove(which);
                        if pass.probes[0] == probing || matches!(how, 0 | 3 | 4) {
                            probing = None;
                        }
                        match how {
                            0 => { not_before = now; pass.answered(); }
                            1 => pass.failed(&unreachable(), now),
                            2 => { not_before = not_before.max(now + Duration::from_secs(90)); pass.failed(&limited(90), now); }
                            3 => { not_before = now; pass.failed(&timed_out(), now); }
                            4 => { not_before = now; pass.failed(&malformed_answer(), now); }
                            _ => drop(pass),
                        }
                    }
                    Act::End(..) => {}
                }
            }
            drop(passes);
            now += MAX_COOLDOWN * 2;
            prop_assert!(breaker.admit("gate", "m", now).is_ok(), "tripped forever");
        }
    }
}
