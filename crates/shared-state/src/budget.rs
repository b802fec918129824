//! The budget of a day, for a person and for the team: reserved in one short transaction before an ask, settled in another
//! after it. What a process that died has reserved is free again when its lease is over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use supervisor_engine::budget::{SharedBudget, SharedBudgetFuture, SharedReservation};
use supervisor_settings::WhenDown;

use super::{DatabaseError, SharedState};

/// Settlements that wait for the database; further ones push out the oldest.
const MAX_WAITING: usize = 10_000;

/// What was used and is not charged yet, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Settlements(Mutex<VecDeque<Settlement>>);

#[derive(Debug, Clone)]
struct Settlement {
    id: String,
    usd: f64,
}

/// Shared with the team, as the engine sees it.
#[derive(Debug, Clone)]
pub struct TeamBudget(pub Arc<SharedState>);

#[derive(Debug)]
struct Reserved {
    state: Arc<SharedState>,
    id: String,
}

impl SharedBudget for TeamBudget {
    fn reserve(&self, usd: f64, lease: Duration) -> SharedBudgetFuture<'_> {
        Box::pin(async move {
            let random = |error| format!("no random bytes: {error}");
            let (a, b) = (
                getrandom::u64().map_err(random)?,
                getrandom::u64().map_err(random)?,
            );
            let id = format!("{a:016x}{b:016x}");
            let state = Arc::clone(&self.0);
            match state.reserve(&id, usd, lease).await {
                Ok(None) => {}
                Ok(Some(whose)) => return Err(used_up(whose)),
                Err(error) => {
                    state.database.report(&error);
                    if state.config.when_down == WhenDown::Stop {
                        return Err(format!(
                            "the team's budget cannot be asked ({error}), and `team.when_down` is `stop`; set it to `local_caps` to work \
                             within the budgets of this machine"
                        ));
                    }
                }
            }
            Ok(Box::new(Reserved { state, id }) as Box<dyn SharedReservation>)
        })
    }
}

fn used_up(whose: Cap) -> String {
    let whose = match whose {
        Cap::Person => "your",
        Cap::Team => "the team's",
    };
    format!(
        "{whose} budget for today (UTC) is used up or reserved; local models cost nothing, and `supervisor.cap` in the team's database has the caps"
    )
}

#[derive(Clone, Copy)]
enum Cap {
    Person,
    Team,
}

impl SharedReservation for Reserved {
    fn settle(self: Box<Self>, usd: f64) {
        let id = self.id.clone();
        let mut waiting = self.state.settlements.0.lock();
        if waiting.len() == MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(Settlement { id, usd });
        drop(waiting);
        self.state.wake();
    }
}

impl SharedState {
    /// Returns whose cap does not allow it.
    async fn reserve(
        &self,
        id: &str,
        usd: f64,
        lease: Duration,
    ) -> Result<Option<Cap>, DatabaseError> {
        let (team, person) = (&self.config.team, &self.config.person);
        let lease = lease.as_secs_f64();
        let rows = self
            .database
            .query(
                "select supervisor.reserve($1, $2, $3, $4, $5)",
                &[team, person, &id, &usd, &lease],
            )
            .await?;
        let whose: &str = rows.first().map_or("", |row| row.get(0));
        Ok(match whose {
            "" => None,
            "person" => Some(Cap::Person),
            _ => Some(Cap::Team),
        })
    }

    /// Charges what was used, also while the database could not be reached.
    pub(crate) async fn send_settlements(&self) -> Result<(), DatabaseError> {
        loop {
            let Some(next) = self.settlements.0.lock().front().cloned() else {
                return Ok(());
            };
            let (team, person) = (&self.config.team, &self.config.person);
            let settled = self
                .database
                .query(
                    "select supervisor.settle($1, $2, $3, $4)",
                    &[team, person, &next.id, &next.usd],
                )
                .await;
            match settled {
                Err(error) if !error.is_refusal() => return Err(error),
                Err(error) => tracing::warn!("a cost was refused by the team's database: {error}"),
                Ok(_) => {}
            }
            let mut waiting = self.settlements.0.lock();
            if waiting.front().is_some_and(|front| front.id == next.id) {
                waiting.pop_front();
            }
        }
    }
}
