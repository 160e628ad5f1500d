//! The nodes of a database, for a program that is not one of them.

use outlast_engine::store::NodeStatus;
use tokio_postgres::Client;

use super::connection::Connector;
use super::error::PostgresError;
use super::options::PostgresUrl;
use super::row;
use super::schema::quote;

/// The nodes that share the database at `url`, in the order of their ids. Changes nothing.
pub async fn nodes(url: &PostgresUrl) -> Result<Vec<NodeStatus>, PostgresError> {
    let options = url.options(|name| std::env::var(name).ok())?;
    let client: Client = Connector::new(&options)?.connect().await?;
    let rows = client
        .query_typed(&statement(&quote(&options.schema)), &[])
        .await?;
    let nodes = rows.iter().map(row::node).collect::<Result<_, _>>();
    nodes.map_err(|error| PostgresError::Row(error.to_string()))
}

/// The statement that lists the nodes of a quoted schema.
pub(super) fn statement(schema: &str) -> String {
    format!(
        "SELECT node, epoch, state, address, open_tasks,
             (1000 * extract(epoch FROM expires - clock_timestamp()))::bigint AS lease
         FROM {schema}.node_overview ORDER BY node"
    )
}
