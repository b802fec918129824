//! The tables, made and changed by numbered files. The first process that connects creates them while the others wait.

use tokio_postgres::{Client, Error};

/// In order; the number of a file is its place from 1. A file that was released is never changed.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_start.sql")];

/// Any number of our own.
const LOCK: i64 = 0x7375_7065_7276_6973;

pub(crate) async fn migrate(client: &Client) -> Result<(), Error> {
    if version(client).await? >= MIGRATIONS.len() {
        return Ok(());
    }
    client
        .execute("select pg_advisory_lock($1)", &[&LOCK])
        .await?;
    // After an error the connection is given up, and the lock with it.
    apply(client).await?;
    let unlock = "select pg_advisory_unlock($1)";
    client.execute(unlock, &[&LOCK]).await.map(drop)
}

async fn apply(client: &Client) -> Result<(), Error> {
    client
        .batch_execute(
            "create schema if not exists supervisor;
             create table if not exists supervisor.migration (number integer primary key, at timestamptz not null default now());",
        )
        .await?;
    // Another process may have done it while we waited for the lock.
    let done = version(client).await?;
    for (number, text) in (1..).zip(MIGRATIONS).skip(done) {
        let number: i32 = number;
        client
            .batch_execute(&format!(
                "begin; {text}; insert into supervisor.migration (number) values ({number}); commit;"
            ))
            .await?;
    }
    Ok(())
}

/// How many files were applied. A database of a later version has more than we know, which is fine.
async fn version(client: &Client) -> Result<usize, Error> {
    let exists = "select to_regclass('supervisor.migration') is not null";
    if !client.query_one(exists, &[]).await?.get::<_, bool>(0) {
        return Ok(0);
    }
    let count = "select count(*) from supervisor.migration";
    let count: i64 = client.query_one(count, &[]).await?.get(0);
    Ok(usize::try_from(count).unwrap_or(0))
}
