//! What a team did and spent, for people.

use serde::Serialize;

use super::{DatabaseError, SharedState};

/// The calls of everybody in a team.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TeamFigures {
    pub team: String,
    pub people: i64,
    pub calls: i64,
    pub passed: i64,
    pub cost_usd: f64,
    /// The model with most attempts first.
    pub models: Vec<ModelFigures>,
    pub today: Today,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFigures {
    pub model: String,
    pub attempts: i64,
    pub accepted: i64,
    pub cost_usd: f64,
}

/// The budgets of today (UTC); no cap is `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Today {
    pub team_usd: f64,
    pub team_cap_usd: Option<f64>,
    pub own_usd: f64,
    pub own_cap_usd: Option<f64>,
}

const CALLS: &str = "
select count(distinct person), count(*), count(*) filter (where status = 'pass'), coalesce(sum(cost_usd), 0)
from supervisor.entry where team = $1 and at >= to_timestamp($2)";

const MODELS: &str = "
select model, count(*), count(*) filter (where cause = 'accepted'), coalesce(sum(cost_usd), 0)
from supervisor.attempt where team = $1 and at >= to_timestamp($2)
group by model order by count(*) desc, model limit 50";

const TODAY: &str = "
with used as (
    select person, usd from supervisor.spent where team = $1 and day = supervisor.today()
    union all
    select person, usd from supervisor.spend
    where team = $1 and day = supervisor.today() and not settled and expires > now()
)
select (select coalesce(sum(usd), 0)::float8 from used),
       (select day_usd::float8 from supervisor.cap where team = $1 and person = ''),
       (select coalesce(sum(usd), 0)::float8 from used where person = $2),
       (select day_usd::float8 from supervisor.cap where team = $1 and person = $2 and person <> '')";

impl SharedState {
    /// The figures since this time, in seconds since 1970.
    pub async fn figures(&self, since: f64) -> Result<TeamFigures, DatabaseError> {
        let (team, person) = (&self.config.team, &self.config.person);
        let calls = self.database.query(CALLS, &[team, &since]).await?;
        let models = self.database.query(MODELS, &[team, &since]).await?;
        let today = self.database.query(TODAY, &[team, person]).await?;
        let (calls, today) = (&calls[0], &today[0]);
        Ok(TeamFigures {
            team: team.clone(),
            people: calls.get(0),
            calls: calls.get(1),
            passed: calls.get(2),
            cost_usd: calls.get(3),
            models: models
                .iter()
                .map(|row| ModelFigures {
                    model: row.get(0),
                    attempts: row.get(1),
                    accepted: row.get(2),
                    cost_usd: row.get(3),
                })
                .collect(),
            today: Today {
                team_usd: today.get(0),
                team_cap_usd: today.get(1),
                own_usd: today.get(2),
                own_cap_usd: today.get(3),
            },
        })
    }
}
