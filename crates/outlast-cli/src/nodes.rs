//! `outlast nodes`: the gateways and servers that share a database.

use std::time::Duration;

use outlast::store::{OpenError, StoreUrl};
use outlast_engine::store::{NodeState, NodeStatus};
use outlast_store::postgres;
use serde_json::{Value, json};

use crate::args::Nodes;
use crate::exit::Failure;
use crate::terminal::{self, Column, StyledLine, Tone, say, table};

pub(crate) async fn run(args: &Nodes) -> Result<(), Failure> {
    let StoreUrl::Postgres(url) = &args.store else {
        return Err(Failure::Usage(
            "only a database is shared by nodes; a store in a file has one process\n  next: name the database with \
             --store postgres://USER@HOST/DATABASE"
                .into(),
        ));
    };
    let nodes = postgres::nodes(url).await.map_err(OpenError::from)?;
    if args.json {
        let nodes: Value = nodes.iter().map(node_json).collect();
        terminal::out_json(&nodes.to_string());
    } else if nodes.is_empty() {
        say!("no node is joined; `outlast serve --store {url}` starts one");
    } else {
        let columns = [
            Column::new("NODE"),
            Column::new("STATE"),
            Column::new("LEASE").right(),
            Column::new("EPOCH").right().optional(1),
            Column::new("OPEN TASKS").right(),
            Column::new("ADDRESS").cuts().optional(2),
        ];
        let rows: Vec<_> = nodes.iter().map(row).collect();
        let lines = table(&columns, &rows, terminal::out_width());
        lines.into_iter().for_each(terminal::out);
    }
    Ok(())
}

fn row(node: &NodeStatus) -> Vec<StyledLine> {
    let tone = match node.state {
        NodeState::Joined => Tone::Plain,
        NodeState::Lapsed | NodeState::Lost => Tone::Warning,
    };
    vec![
        node.node.0.to_string().into(),
        StyledLine::new().tone(tone, node.state.word()),
        node.lease.map(seconds).unwrap_or_default().into(),
        node.epoch.to_string().into(),
        node.open_tasks.to_string().into(),
        node.address.as_deref().unwrap_or_default().into(),
    ]
}

fn seconds(lease: Duration) -> String {
    format!("{:.1} s", lease.as_secs_f64())
}

fn node_json(node: &NodeStatus) -> Value {
    json!({
        // A number of JSON has 53 bits.
        "node": node.node.0.to_string(),
        "state": node.state.word(),
        "leaseMs": node.lease.map(|lease| lease.as_millis() as u64),
        "epoch": node.epoch,
        "openTasks": node.open_tasks,
        "address": node.address.as_deref(),
    })
}
