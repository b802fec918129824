//! Sends the session log to the database. The log itself is the queue: for each session it is kept how far it was sent. What
//! was sent and not noted down is sent again, and the database knows it by its id.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use supervisor_engine::session::{SessionId, SessionLog};
use supervisor_settings::SharedPart;

use super::config::TeamConfig;
use super::database::{Database, DatabaseError};

/// Entries in one statement, and their bytes.
const MAX_BATCH: usize = 200;
const MAX_BATCH_BYTES: u64 = 4 << 20;
/// A longer line is not one of the log.
const MAX_LINE_BYTES: u64 = 2 << 20;

const INSERT: &str = "
with sent as (
    select * from jsonb_to_recordset($3::jsonb) as e(
        id text, session text, at timestamptz, tool text, status text, duration_ms bigint, cost_usd double precision,
        body jsonb, attempts jsonb)
), kept as (
    insert into supervisor.entry (team, person, id, session, at, tool, status, duration_ms, cost_usd, body)
    select $1, $2, id, session, at, tool, status, duration_ms, cost_usd, body from sent
    on conflict do nothing returning id
), tried as (
    insert into supervisor.attempt (team, person, entry, n, at, model, tier, cause, verified, tokens_in, tokens_out, cost_usd, duration_ms)
    select $1, $2, sent.id, a.n, sent.at, a.model, a.tier, a.cause, a.verified, a.tokens_in, a.tokens_out, a.cost_usd, a.duration_ms
    from sent join kept using (id), jsonb_to_recordset(sent.attempts) as a(
        n integer, model text, tier text, cause text, verified boolean, tokens_in bigint, tokens_out bigint,
        cost_usd double precision, duration_ms bigint)
    on conflict do nothing
)
select count(*) from kept";

#[derive(Debug)]
pub(crate) struct Outbox {
    log: SessionLog,
    folder: PathBuf,
    team: String,
    person: String,
    share: SharedPart,
    target: String,
}

/// How far each session was sent, in bytes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Progress {
    target: String,
    offsets: BTreeMap<String, u64>,
}

/// Entries of one session that follow each other.
struct Batch {
    rows: Vec<Value>,
    /// Where the next one begins.
    end: u64,
}

impl Outbox {
    pub(crate) fn new(log: SessionLog, folder: PathBuf, config: &TeamConfig) -> Self {
        Self {
            log,
            folder,
            team: config.team.clone(),
            person: config.person.clone(),
            share: config.share,
            target: config.target(),
        }
    }

    /// Sends everything new; returns how much of it the database did not have. Does nothing while another process of this
    /// user does it.
    pub(crate) async fn send(&self, database: &Database) -> Result<u64, DatabaseError> {
        let Some(_lock) = self.lock()? else {
            return Ok(0);
        };
        let mut progress = self.read_progress();
        let mut sent = 0;
        for session in self.log.sessions().unwrap_or_default() {
            loop {
                let offset = progress.offsets.get(session.as_str()).copied();
                let offset = offset.unwrap_or(0);
                let batch = tokio::task::block_in_place(|| self.next_batch(&session, offset))?;
                if batch.end == offset {
                    break;
                }
                sent += self.insert(database, &batch.rows).await?;
                let name = session.as_str().to_owned();
                progress.offsets.insert(name, batch.end);
                self.write_progress(&progress)?;
            }
        }
        Ok(sent)
    }

    /// Inserts the rows. One that the database refuses is left out, so that it does not hold up the others.
    async fn insert(&self, database: &Database, rows: &[Value]) -> Result<u64, DatabaseError> {
        match self.insert_all(database, rows).await {
            Err(error) if error.is_refusal() => {}
            done => return done,
        }
        let mut sent = 0;
        for row in rows {
            match self.insert_all(database, std::slice::from_ref(row)).await {
                Ok(one) => sent += one,
                Err(error) if error.is_refusal() => {
                    tracing::warn!("call {} is not shared: {error}", row["id"]);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    async fn insert_all(&self, database: &Database, rows: &[Value]) -> Result<u64, DatabaseError> {
        if rows.is_empty() {
            return Ok(0);
        }
        let rows = Value::from(rows);
        let found = database
            .query(INSERT, &[&self.team, &self.person, &rows])
            .await?;
        let count: i64 = found.first().map_or(0, |row| row.get(0));
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The entries from this place on, as far as their lines are complete.
    fn next_batch(&self, session: &SessionId, offset: u64) -> io::Result<Batch> {
        let mut batch = Batch {
            rows: Vec::new(),
            end: offset,
        };
        let mut file = match File::open(self.log.path(session)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(batch),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(offset))?;
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        while batch.rows.len() < MAX_BATCH && batch.end - offset < MAX_BATCH_BYTES {
            line.clear();
            let taken = io::Read::take(&mut reader, MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
            let is_whole = line.last() == Some(&b'\n');
            if !is_whole && (taken as u64) < MAX_LINE_BYTES {
                break; // it is still being written
            }
            let at = batch.end;
            batch.end += taken as u64;
            let entry = serde_json::from_slice::<Value>(&line).ok();
            batch.rows.extend(
                entry
                    .filter(|_| is_whole)
                    .map(|entry| self.row(session, at, entry)),
            );
        }
        Ok(batch)
    }

    /// An entry as the database takes it.
    fn row(&self, session: &SessionId, at: u64, mut entry: Value) -> Value {
        remove_nul(&mut entry);
        let attempts = entry["attempts"].as_array().cloned().unwrap_or_default();
        let cost = |value: &Value| value.as_f64().filter(|usd| usd.is_finite());
        let cost_usd: f64 = attempts.iter().filter_map(|a| cost(&a["cost_usd"])).sum();
        let attempts: Vec<Value> = (1..)
            .zip(&attempts)
            .map(|(n, attempt)| {
                let n: u32 = n;
                json!({
                    "n": n,
                    "model": attempt["model"].as_str().unwrap_or_default(),
                    "tier": attempt["tier"].as_str().unwrap_or_default(),
                    "cause": attempt["cause"].as_str().unwrap_or_default(),
                    "verified": attempt["verified"].as_bool().unwrap_or_default(),
                    "tokens_in": attempt["tokens_in"].as_i64(),
                    "tokens_out": attempt["tokens_out"].as_i64(),
                    "cost_usd": cost(&attempt["cost_usd"]),
                    "duration_ms": attempt["duration_ms"].as_i64().unwrap_or(0),
                })
            })
            .collect();
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let id = match text("call") {
            // Entries of callers and of earlier versions have none.
            call if call.is_empty() => format!("{session}@{at}"),
            call => call,
        };
        let time = text("timestamp").parse::<jiff::Timestamp>();
        let tool = match text("tool") {
            tool if tool.is_empty() => text("skill"),
            tool => tool,
        };
        let mut row = json!({
            "id": id,
            "session": session.as_str(),
            "at": time.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string(),
            "tool": tool,
            "status": text("final_status"),
            "duration_ms": entry["duration_ms"].as_i64().unwrap_or(0),
            "cost_usd": cost_usd,
            "attempts": attempts,
        });
        if self.share == SharedPart::Entries {
            row["body"] = entry;
        }
        row
    }

    /// One process at a time.
    fn lock(&self) -> io::Result<Option<File>> {
        fs::create_dir_all(&self.folder)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.folder.join("lock"))?;
        Ok(lock.try_lock().is_ok().then_some(lock))
    }

    fn path(&self) -> PathBuf {
        self.folder.join("sent.json")
    }

    /// Nothing, if it is missing, damaged or about another database: then everything is sent again.
    fn read_progress(&self) -> Progress {
        let text = fs::read(self.path()).unwrap_or_default();
        let read = serde_json::from_slice::<Progress>(&text).unwrap_or_default();
        match read.target == self.target {
            true => read,
            false => Progress {
                target: self.target.clone(),
                ..Progress::default()
            },
        }
    }

    fn write_progress(&self, progress: &Progress) -> io::Result<()> {
        let text = serde_json::to_vec(progress).map_err(io::Error::other)?;
        replace(&self.path(), &text)
    }
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(new, path)
}

/// Postgres keeps no NUL in text.
fn remove_nul(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = text.replace('\0', "\u{fffd}"),
        Value::Array(all) => all.iter_mut().for_each(remove_nul),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains('\0')) {
                fields.retain(|name, _| !name.contains('\0'));
            }
            fields.values_mut().for_each(remove_nul);
        }
        _ => {}
    }
}
