//! The numbered migrations of the tables.

use tokio_postgres::Client;

use super::error::PostgresError;

/// Creates or upgrades the tables in `schema`. One program at a time does it.
pub(super) async fn migrate(client: &mut Client, schema: &str) -> Result<(), PostgresError> {
    let quoted = quote(schema);
    let encoding = client.query_typed("SHOW server_encoding", &[]).await?;
    let encoding: String = encoding.first().map(|row| row.get(0)).unwrap_or_default();
    if encoding != "UTF8" {
        return Err(PostgresError::Encoding(encoding));
    }
    let transaction = client.transaction().await?;
    transaction
        .batch_execute(&format!(
            "SELECT pg_advisory_xact_lock({MIGRATION_LOCK});
             CREATE SCHEMA IF NOT EXISTS {quoted};
             SET LOCAL search_path = {quoted};
             CREATE TABLE IF NOT EXISTS migrations (
                 version INT PRIMARY KEY,
                 -- Whether programs of the version before can use the tables.
                 additive BOOLEAN NOT NULL,
                 applied TIMESTAMPTZ NOT NULL DEFAULT now()
             )"
        ))
        .await?;
    let rows = transaction
        .query_typed(
            "SELECT version, additive FROM migrations ORDER BY version",
            &[],
        )
        .await?;
    let found = rows.last().map_or(0, |row| row.get::<_, i32>(0));
    let usable =
        found <= VERSION || (found == VERSION + 1 && rows.last().is_some_and(|row| row.get(1)));
    if !usable {
        let schema = schema.to_owned();
        return Err(PostgresError::Newer {
            schema,
            found,
            known: VERSION,
        });
    }
    for (version, sql) in MIGRATIONS.iter().filter(|(version, _)| *version > found) {
        transaction.batch_execute(sql).await?;
        transaction
            .batch_execute(&format!(
                "INSERT INTO migrations (version, additive) VALUES ({version}, true)"
            ))
            .await?;
    }
    Ok(transaction.commit().await?)
}

/// A name in a statement.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

const MIGRATIONS: &[(i32, &str)] = &[(1, include_str!("sql/v1.sql"))];

/// The schema version that this program writes.
const VERSION: i32 = 1;

/// The advisory lock of migrations: `OutS`.
const MIGRATION_LOCK: u32 = 0x4f75_7453;
