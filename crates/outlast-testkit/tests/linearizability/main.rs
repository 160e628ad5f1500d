//! Histories of clients that work at once: each task behaves as if they had come one after the
//! other (P2).

mod clients;
mod history;
mod spec;
mod wrong_store;

use std::sync::Arc;

use outlast_engine::{MemoryStore, Store};
use outlast_store::{Postgres, PostgresUrl, Sqlite, SqliteOptions};
use outlast_testkit::PostgresServer;

use clients::{EngineClient, create, open, round};
use history::History;
use wrong_store::{WrongBehaviour, WrongStore};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_in_memory_are_linearizable() {
    let mut steps = 0;
    for seed in 0..150 {
        let history = round(vec![Arc::new(MemoryStore::new())], seed, 4, 3).await;
        steps += history
            .check()
            .unwrap_or_else(|odd| panic!("seed {seed}: {odd}"));
    }
    println!("{steps} events explained");
    assert!(steps >= 150 * MIN_EVENTS, "only {steps} events");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_in_sqlite_are_linearizable() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut steps = 0;
    for seed in 0..40 {
        let path = folder.path().join(format!("{seed}.db"));
        let store = Sqlite::open(&path, SqliteOptions::default()).await;
        let history = round(vec![Arc::new(store.expect("a new file"))], seed, 4, 3).await;
        steps += history
            .check()
            .unwrap_or_else(|odd| panic!("seed {seed}: {odd}"));
    }
    println!("{steps} events explained");
    assert!(steps >= 40 * MIN_EVENTS, "only {steps} events");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_in_postgres_are_linearizable() {
    on_postgres(20, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_of_two_nodes_are_linearizable() {
    on_postgres(20, 2).await;
}

/// Runs rounds on a database that several nodes share.
async fn on_postgres(rounds: u64, nodes: usize) {
    let mut steps = 0;
    for seed in 0..rounds {
        let url = PostgresUrl::new(PostgresServer::shared().fresh_url());
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..nodes {
            let store = Postgres::open(&url).await;
            stores.push(Arc::new(store.expect("the database runs")));
        }
        let history = round(stores, seed, 4, 3).await;
        steps += history
            .check()
            .unwrap_or_else(|odd| panic!("seed {seed}: {odd}"));
    }
    println!("{steps} events explained");
    assert!(steps >= rounds as usize * MIN_EVENTS, "only {steps} events");
}

#[tokio::test]
async fn a_store_that_returns_old_states_is_detected() {
    let history = Arc::new(History::default());
    let engine = open(
        Arc::new(WrongStore::new(WrongBehaviour::OldReads)),
        &history,
    )
    .await;
    let id = create(&engine, &history).await;
    let client = EngineClient {
        engine,
        history: history.clone(),
        number: 1,
    };
    client.get(id).await;
    client.cancel(id).await;
    client.get(id).await;
    client.get(id).await;
    assert!(history.check().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_lets_a_task_end_twice_is_detected() {
    // The two cancellations do not overlap in every round, and only then does the store show its
    // fault.
    for _ in 0..MAX_ROUNDS {
        if cancel_twice_at_once().await.check().is_err() {
            return;
        }
    }
    panic!("{MAX_ROUNDS} rounds show no task that ends twice");
}

/// The history of a task that two clients cancel at the same time, in a store that lets both
/// succeed.
async fn cancel_twice_at_once() -> Arc<History> {
    let history = Arc::new(History::default());
    let engine = open(Arc::new(WrongStore::new(WrongBehaviour::TwoEnds)), &history).await;
    let id = create(&engine, &history).await;
    let start = Arc::new(tokio::sync::Barrier::new(2));
    let clients = [1, 2].map(|number| {
        let client = EngineClient {
            engine: engine.clone(),
            history: history.clone(),
            number,
        };
        let start = start.clone();
        tokio::spawn(async move {
            start.wait().await;
            client.cancel(id).await;
        })
    });
    for client in clients {
        client.await.expect("no client fails");
    }
    history
}

/// How many rounds two cancellations get to overlap.
const MAX_ROUNDS: usize = 500;

/// What every round has at least: three creations, and four clients that read, answer, await and
/// read each task. Each operation begins and ends.
const MIN_EVENTS: usize = 2 * (3 + 4 * 3 * 4);
