//! The store in PostgreSQL, on a real server that the tests start.

mod batches;
mod copied;
mod laws;
mod node;
mod nodes;
mod outages;
mod pooled;
mod schema;
mod tls;
mod two_stores;

use outlast_store::{Postgres, PostgresUrl};
use outlast_testkit::PostgresServer;
use tokio_postgres::{Client, NoTls};

async fn opened(url: &str) -> Postgres {
    let opened = Postgres::open(&PostgresUrl::new(url)).await;
    opened.expect("the database runs")
}

/// A connection to look at the tables.
async fn connected(server: &PostgresServer) -> Client {
    let port = server.port();
    let config = format!("host=127.0.0.1 port={port} user=outlast dbname=postgres");
    let connected = tokio_postgres::connect(&config, NoTls).await;
    let (client, connection) = connected.expect("the database runs");
    tokio::spawn(connection);
    client
}
