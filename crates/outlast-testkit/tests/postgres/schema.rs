//! Versions of the tables, and what a person can read in them.

use std::sync::Arc;

use outlast_engine::laws::fixtures::{ended, result, stored, task};
use outlast_engine::{Scope, Store};
use outlast_store::{Postgres, PostgresError, PostgresUrl};
use outlast_testkit::PostgresServer;

use crate::{connected, opened};

#[tokio::test]
async fn a_newer_version_is_refused_by_name() {
    let server = PostgresServer::shared();
    let url = server.url("from_the_future");
    opened(&url).await.close().await.unwrap();
    let client = connected(server).await;
    for (version, additive) in [(2, false), (3, true)] {
        let sql = format!(
            "DELETE FROM from_the_future.migrations WHERE version > 1;
             INSERT INTO from_the_future.migrations (version, additive) VALUES ({version}, {additive})"
        );
        client.batch_execute(&sql).await.unwrap();
        let refused = Postgres::open(&PostgresUrl::new(&url)).await.err();
        let refused = refused.expect("the version is unknown");
        assert!(matches!(refused, PostgresError::Newer { known: 1, .. }));
        let text = refused.to_string();
        assert!(text.contains("`from_the_future`"), "{text}");
        assert!(text.contains(&format!("version {version}")), "{text}");
    }
}

#[tokio::test]
async fn one_additive_version_newer_works() {
    let server = PostgresServer::shared();
    let url = server.url("additive");
    opened(&url).await.close().await.unwrap();
    let next = "ALTER TABLE additive.tasks ADD COLUMN colour TEXT;
                ALTER TABLE additive.records ADD COLUMN colour TEXT;
                INSERT INTO additive.migrations (version, additive) VALUES (2, true)";
    connected(server).await.batch_execute(next).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(opened(&url).await);
    let task = stored(&store, task(10)).await;
    ended(&store, &task, result("1")).await;
    outlast_engine::laws::records::record_is_read_back(&store).await;
    outlast_engine::laws::nodes::orphans_are_offered_once(&store).await;
}

#[tokio::test]
async fn several_programs_create_the_tables_at_once() {
    let url = PostgresServer::shared().url("at \"once\"");
    let url = url.replace(' ', "%20").replace('"', "%22");
    let opens = (0..8).map(|_| {
        let url = PostgresUrl::new(&url);
        tokio::spawn(async move { Postgres::open(&url).await.map(drop) })
    });
    for open in opens.collect::<Vec<_>>() {
        open.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn tables_show_tasks_to_people() {
    let server = PostgresServer::shared();
    let store: Arc<dyn Store> = Arc::new(opened(&server.url("readable")).await);
    let task = stored(&store, task(1)).await;
    ended(&store, &task, result("[1]")).await;
    let rows = connected(server)
        .await
        .query("SELECT id, state, body_size FROM readable.overview", &[])
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get::<_, String>("id"), task.id.to_string());
    assert_eq!(rows[0].get::<_, String>("state"), "result");
    assert_eq!(rows[0].get::<_, i32>("body_size"), 3);
}

#[tokio::test]
async fn schemas_are_separate_stores() {
    let server = PostgresServer::shared();
    let store: Arc<dyn Store> = Arc::new(opened(&server.url("one")).await);
    let other: Arc<dyn Store> = Arc::new(opened(&server.url("two")).await);
    let task = stored(&store, task(1)).await;
    let found = other.load(&Scope::AnyTask, task.id).await;
    assert_eq!(found.unwrap(), None);
}
