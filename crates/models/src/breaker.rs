//! Who is not worth asking right now. One gate for each endpoint and one for each model behind it: after a failure it
//! stays shut for a while, longer each time, then lets a single question through to find out.
//! Knows failures and time, which is handed in. Does not know what was asked.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{AskError, FailureBlame};
use supervisor_settings::BreakerSettings as Settings;

/// All gates of one server. Cheap to clone; clones share them.
#[derive(Clone)]
pub struct Breaker {
    gates: Arc<Mutex<Gates>>,
    settings: Settings,
    /// From 0 to 1: how much of the extra tenth is added, so that many servers do not come back in one moment.
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

#[derive(Debug, Default)]
struct Gates {
    states: HashMap<Gate, State>,
    /// Numbers the probes, so that a late one cannot end its successor's turn.
    probes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Gate {
    Endpoint(String),
    Model(String, String),
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    malformed: u32,
    shut: Option<ShutGate>,
}

#[derive(Debug)]
struct ShutGate {
    until: Instant,
    why: String,
    /// A probe is under way.
    probe: Option<u64>,
}

/// Not worth asking now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    pub until: Instant,
    pub why: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not asked, because a moment ago {}", self.why)
    }
}

/// Leave to ask once. Dropped without a word (the call was cancelled), it counts as never given.
#[must_use = "say how the ask went"]
pub struct Pass {
    breaker: Breaker,
    gates: [Gate; 2],
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
            gates: Arc::default(),
            settings,
            jitter: Arc::new(jitter),
        }
    }

    /// May `model` be asked at `endpoint`? Both gates must be open, or due for their one probe.
    pub fn admit(&self, endpoint: &str, model: &str, now: Instant) -> Result<Pass, Skip> {
        let gates = [
            Gate::Endpoint(endpoint.to_owned()),
            Gate::Model(endpoint.to_owned(), model.to_owned()),
        ];
        let mut all = self.lock();
        for gate in &gates {
            if let Some(shut) = all.states.get(gate).and_then(|state| state.shut.as_ref())
                && (now < shut.until || shut.probe.is_some())
            {
                return Err(Skip {
                    until: shut.until,
                    why: shut.why.clone(),
                });
            }
        }
        all.probes += 1;
        let number = all.probes;
        let mut probe = |gate: &Gate| {
            let shut = all.states.get_mut(gate)?.shut.as_mut()?;
            shut.probe = Some(number);
            shut.probe
        };
        let probes = [probe(&gates[0]), probe(&gates[1])];
        drop(all);
        Ok(Pass {
            breaker: self.clone(),
            gates,
            probes,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Gates> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// The model answered, well or badly: both gates open.
    pub fn answered(self) {
        let mut all = self.breaker.lock();
        for gate in &self.gates {
            all.states.remove(gate);
        }
    }

    /// There was no answer.
    pub fn failed(self, why: &AskError, now: Instant) {
        let [endpoint, model] = &self.gates;
        let mut all = self.breaker.lock();
        match why.blame() {
            FailureBlame::Endpoint => {
                self.shut(all.states.entry(endpoint.clone()).or_default(), why, now)
            }
            FailureBlame::Model => {
                // An endpoint that answers for a model is there.
                all.states.remove(endpoint);
                let state = all.states.entry(model.clone()).or_default();
                let malformed = matches!(why, AskError::Malformed { .. });
                state.malformed = if malformed { state.malformed + 1 } else { 0 };
                if !malformed
                    || state.malformed >= self.breaker.settings.failures
                    || state.shut.is_some()
                {
                    self.shut(state, why, now);
                }
            }
            // It says nothing about either, so the probe has no result: `drop` gives the leave back.
            FailureBlame::Neither => {}
        }
    }

    fn shut(&self, state: &mut State, why: &AskError, now: Instant) {
        state.failures = state.failures.saturating_add(1);
        let Settings {
            cooldown,
            max_cooldown,
            ..
        } = self.breaker.settings;
        let grown = cooldown.saturating_mul(state.failures).min(max_cooldown);
        let wait = why.retry_after().unwrap_or(grown);
        let wait = wait + wait.mul_f64(0.1 * (self.breaker.jitter)().clamp(0.0, 1.0));
        // Questions asked before the gate was shut come to an end, too: they neither open it sooner nor end a probe.
        let before = state.shut.as_ref();
        let until = before.map_or(now + wait, |shut| shut.until.max(now + wait));
        let probe = before
            .and_then(|shut| shut.probe)
            .filter(|probe| !self.probes.contains(&Some(*probe)));
        state.shut = Some(ShutGate {
            until,
            why: why.to_string(),
            probe,
        });
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut all = self.breaker.lock();
        for (gate, probe) in self.gates.iter().zip(self.probes) {
            if let Some(shut) = all
                .states
                .get_mut(gate)
                .and_then(|state| state.shut.as_mut())
                && probe.is_some()
                && shut.probe == probe
            {
                shut.probe = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const STEP: Duration = Duration::from_secs(30);
    const LONGEST: Duration = Duration::from_secs(600);
    const MALFORMED_IN_A_ROW: u32 = 3;
    const SETTINGS: Settings = Settings {
        failures: MALFORMED_IN_A_ROW,
        cooldown: STEP,
        max_cooldown: LONGEST,
    };
    use proptest::prelude::*;

    fn dead() -> AskError {
        AskError::Unreachable {
            backend: "gate".into(),
            address: "http://x".into(),
            why: "refused".into(),
        }
    }

    fn garbage() -> AskError {
        AskError::Malformed {
            model: "m".into(),
            why: "no JSON".into(),
        }
    }

    fn slow() -> AskError {
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
            said: String::new(),
            retry_after,
        }
    }

    fn calm() -> Breaker {
        Breaker::with_jitter(SETTINGS, || 0.0)
    }

    fn pass(breaker: &Breaker, model: &str, now: Instant) -> Pass {
        breaker
            .admit("gate", model, now)
            .unwrap_or_else(|skip| panic!("{skip}"))
    }

    #[test]
    fn a_dead_endpoint_is_skipped_for_all_its_models_and_for_longer_each_time() {
        let (breaker, mut now) = (calm(), Instant::now());
        for n in 1..=30 {
            pass(&breaker, "m", now).failed(&dead(), now);
            let wait = (STEP * n).min(LONGEST);
            let skip = breaker
                .admit("gate", "other", now + wait - Duration::from_millis(1))
                .err()
                .expect("shut");
            assert_eq!(skip.until, now + wait, "after {n} failures");
            assert!(skip.to_string().contains("cannot be reached"), "{skip}");
            assert!(breaker.admit("elsewhere", "m", now).is_ok());
            now += wait;
        }
    }

    #[test]
    fn a_gate_that_is_due_lets_one_question_through_and_waits_for_its_end() {
        let (breaker, now) = (calm(), Instant::now());
        pass(&breaker, "m", now).failed(&dead(), now);
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
    fn malformed_answers_count_against_the_model_and_only_in_a_row() {
        let (breaker, now) = (calm(), Instant::now());
        for _ in 1..MALFORMED_IN_A_ROW {
            pass(&breaker, "m", now).failed(&garbage(), now);
        }
        pass(&breaker, "m", now).answered();
        for _ in 0..MALFORMED_IN_A_ROW {
            pass(&breaker, "m", now).failed(&garbage(), now);
        }
        assert!(breaker.admit("gate", "m", now).is_err());
        assert!(breaker.admit("gate", "other", now).is_ok());
    }

    #[test]
    fn a_model_that_times_out_leaves_its_neighbours_alone() {
        let (breaker, now) = (calm(), Instant::now());
        pass(&breaker, "m", now).failed(&slow(), now);
        assert!(breaker.admit("gate", "m", now).is_err());
        assert!(breaker.admit("gate", "other", now).is_ok());
    }

    #[test]
    fn the_servers_own_wait_is_kept_shorter_or_longer() {
        for seconds in [3, 7200] {
            let (breaker, now) = (calm(), Instant::now());
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
    fn what_only_a_person_can_mend_shuts_nothing() {
        let (breaker, now) = (calm(), Instant::now());
        let why = AskError::NotLoggedIn {
            backend: "gate".into(),
            said: String::new(),
        };
        pass(&breaker, "m", now).failed(&why, now);
        assert!(breaker.admit("gate", "m", now).is_ok());
    }

    #[test]
    fn a_probe_of_both_gates_that_finds_the_endpoint_dead_leaves_the_models_probe_to_others() {
        let (breaker, now) = (calm(), Instant::now());
        let (a, b) = (pass(&breaker, "m", now), pass(&breaker, "m", now));
        a.failed(&slow(), now);
        b.failed(&dead(), now);
        pass(&breaker, "m", now + STEP).failed(&dead(), now + STEP);
        pass(&breaker, "m", now + STEP * 3).answered();
    }

    #[derive(Debug, Clone)]
    enum Act {
        Wait(u64),
        Ask(bool),
        End(usize, usize),
    }

    proptest! {
        /// Whatever happens: a shut gate gives no leave before its time, at most one leave while it is being tried,
        /// and it is never shut for good.
        #[test]
        fn gates_shut_for_bounded_times_and_let_one_through(acts in proptest::collection::vec(prop_oneof![
            (0..700_u64).prop_map(Act::Wait),
            any::<bool>().prop_map(Act::Ask),
            (0..8_usize, 0..6_usize).prop_map(|(which, how)| Act::End(which, how)),
        ], 0..80)) {
            let breaker = Breaker::with_jitter(SETTINGS, || 1.0);
            let mut now = Instant::now();
            let mut out: Vec<Pass> = Vec::new();
            let (mut not_before, mut trying) = (now, None);
            for act in acts {
                match act {
                    Act::Wait(seconds) => now += Duration::from_secs(seconds),
                    Act::Ask(other) => {
                        match breaker.admit("gate", if other { "o" } else { "m" }, now) {
                            Ok(pass) => {
                                prop_assert!(now >= not_before, "leave before the server's own wait was over");
                                prop_assert_eq!(trying, None, "leave while another ask finds out about the endpoint");
                                trying = pass.probes[0];
                                out.push(pass);
                            }
                            Err(skip) => prop_assert!(skip.until <= now + LONGEST.mul_f64(1.1) || !out.is_empty()),
                        }
                    }
                    Act::End(which, how) if which < out.len() => {
                        let pass = out.swap_remove(which);
                        if pass.probes[0] == trying || matches!(how, 0 | 3 | 4) {
                            trying = None;
                        }
                        match how {
                            0 => { not_before = now; pass.answered(); }
                            1 => pass.failed(&dead(), now),
                            2 => { not_before = not_before.max(now + Duration::from_secs(90)); pass.failed(&limited(90), now); }
                            3 => { not_before = now; pass.failed(&slow(), now); }
                            4 => { not_before = now; pass.failed(&garbage(), now); }
                            _ => drop(pass),
                        }
                    }
                    Act::End(..) => {}
                }
            }
            drop(out);
            now += LONGEST * 2;
            prop_assert!(breaker.admit("gate", "m", now).is_ok(), "shut for good");
        }
    }
}
