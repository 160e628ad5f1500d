//! The leases of the nodes that joined through this store.
//!
//! The clock of the database decides when a lease has lapsed. A node that finds lapsed leases marks
//! their nodes as lost: from then on the database refuses writes of these nodes, and other nodes may
//! claim their tasks. Locally, a node writes only until its *trust window* ends: the start of its last
//! successful renewal plus the lease minus a margin. `renewals` says when a node may mark others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use outlast_engine::store::{StoreEvent, StoreEvents};
use outlast_engine::{Committed, NodeId, StoreError, Task};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval};
use tokio_postgres::types::Type;

use super::columns::bounded;
use super::connection::{Failed, Link, Parameter, unavailable};
use super::renewals::{HEARTBEAT, Renewals, TRUST_WINDOW};
use super::row::{self, COLUMNS};

pub(super) struct Leases {
    link: Arc<Link>,
    /// The quoted schema.
    schema: String,
    /// The id of this store.
    writer: i64,
    joined: Mutex<HashMap<NodeId, Joined>>,
    /// What the nodes published, for a node that joins again after its row was deleted.
    addresses: Mutex<HashMap<NodeId, Arc<str>>>,
    /// The number of the last change that was read. Locked while changes are read.
    pub(super) cursor: tokio::sync::Mutex<i64>,
    /// Notified when there may be changes to read.
    pub(super) wake: Arc<Notify>,
    /// Notified when other nodes have changes to read.
    pub(super) announce: Arc<Notify>,
    /// Nodes whose last claim may have offered tasks although it failed.
    unknown_claims: Mutex<HashSet<NodeId>>,
}

struct Joined {
    epoch: i64,
    /// The end of the trust window.
    trusted_until: Instant,
    events: mpsc::UnboundedSender<StoreEvent>,
}

impl Leases {
    pub(super) fn new(
        link: Arc<Link>,
        schema: String,
        writer: i64,
        wake: Arc<Notify>,
        announce: Arc<Notify>,
    ) -> Self {
        Self {
            link,
            schema,
            writer,
            joined: Mutex::default(),
            addresses: Mutex::default(),
            cursor: tokio::sync::Mutex::new(0),
            wake,
            announce,
            unknown_claims: Mutex::default(),
        }
    }

    pub(super) async fn join(&self, node: NodeId) -> Result<StoreEvents, StoreError> {
        let mut cursor = self.cursor.lock().await;
        let sql = format!(
            "SELECT epoch, last FROM {}.join_node($1, $2, $3, $4)",
            self.schema
        );
        let number = node.0.cast_signed();
        let address = self.addresses.lock().get(&node).cloned();
        let address = address.as_deref();
        let parameters: [Parameter<'_>; 4] = [
            (&number, Type::INT8),
            (&self.writer, Type::INT8),
            (&address, Type::TEXT),
            (&LEASE_MS, Type::INT8),
        ];
        let begun = Instant::now();
        let rows = self.link.query(&sql, &parameters).await?;
        let row = rows
            .first()
            .ok_or_else(|| unavailable("the database returned no row"))?;
        let (events, receiver) = mpsc::unbounded_channel();
        let (epoch, last): (i64, i64) = (row.get(0), row.get(1));
        let mut joined = self.joined.lock();
        if joined.is_empty() {
            *cursor = last;
        }
        let trusted_until = begun + TRUST_WINDOW;
        joined.insert(
            node,
            Joined {
                epoch,
                trusted_until,
                events,
            },
        );
        // The loop that reads changes waits while no node is joined.
        self.wake.notify_one();
        Ok(receiver)
    }

    pub(super) async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.joined.lock().remove(&node);
        self.addresses.lock().remove(&node);
        let sql = format!("SELECT {}.leave_node($1)", self.schema);
        let number = node.0.cast_signed();
        self.link.query(&sql, &[(&number, Type::INT8)]).await?;
        self.wake.notify_one();
        self.announce.notify_one();
        Ok(())
    }

    pub(super) async fn publish_address(
        &self,
        node: NodeId,
        address: &str,
    ) -> Result<(), StoreError> {
        self.addresses.lock().insert(node, address.into());
        let sql = format!(
            "UPDATE {}.nodes SET address = $2 WHERE node = $1",
            self.schema
        );
        let number = node.0.cast_signed();
        let parameters: [Parameter<'_>; 2] = [(&number, Type::INT8), (&address, Type::TEXT)];
        self.link.query(&sql, &parameters).await?;
        Ok(())
    }

    /// Refuses a node of this store whose trust window has ended.
    pub(super) fn check_trust(&self, node: NodeId) -> Result<(), StoreError> {
        match self.joined.lock().get(&node) {
            Some(own) if own.trusted_until <= Instant::now() => Err(unavailable(
                "the lease of this node was not renewed in time",
            )),
            _ => Ok(()),
        }
    }

    pub(super) async fn claim(
        &self,
        node: NodeId,
        limit: usize,
    ) -> Result<Vec<Committed<Task>>, StoreError> {
        self.check_trust(node)?;
        let sql = format!(
            "SELECT {COLUMNS} FROM {}.claim_tasks($1, $2, $3)",
            self.schema
        );
        let (number, limit) = (node.0.cast_signed(), bounded(limit as u64));
        let again = self.unknown_claims.lock().contains(&node);
        let parameters: [Parameter<'_>; 3] = [
            (&number, Type::INT8),
            (&limit, Type::INT8),
            (&again, Type::BOOL),
        ];
        match self.link.query_once(&sql, &parameters).await {
            Ok(rows) => {
                self.unknown_claims.lock().remove(&node);
                rows.iter().map(row::committed).collect()
            }
            Err(failed) => {
                if let Failed::Lost(_) = failed {
                    self.unknown_claims.lock().insert(node);
                }
                Err(failed.error())
            }
        }
    }

    /// Renews the leases until the store is dropped.
    pub(super) async fn renew_loop(self: Arc<Self>) {
        let mut ticks = interval(HEARTBEAT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renewals = Renewals::default();
        loop {
            ticks.tick().await;
            if self.joined.lock().is_empty() {
                renewals.failed();
                continue;
            }
            match self.renew().await {
                Ok(()) => renewals.succeeded(Instant::now()),
                Err(error) => {
                    tracing::warn!(%error, "cannot renew the lease of this node; retrying");
                    renewals.failed();
                    continue;
                }
            }
            if renewals.may_mark_lost(Instant::now())
                && let Err(error) = self.mark_lost_nodes().await
            {
                tracing::warn!(%error, "cannot look for nodes whose lease lapsed; retrying");
            }
        }
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let (nodes, epochs): (Vec<i64>, Vec<i64>) = {
            let joined = self.joined.lock();
            joined
                .iter()
                .map(|(node, own)| (node.0.cast_signed(), own.epoch))
                .unzip()
        };
        let cursor = *self.cursor.lock().await;
        let sql = format!("SELECT {}.renew_nodes($1, $2, $3, $4)", self.schema);
        let parameters: [Parameter<'_>; 4] = [
            (&nodes, Type::INT8_ARRAY),
            (&epochs, Type::INT8_ARRAY),
            (&cursor, Type::INT8),
            (&LEASE_MS, Type::INT8),
        ];
        let begun = Instant::now();
        let rows = self.link.query(&sql, &parameters).await?;
        let renewed: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let mut joined = self.joined.lock();
        for (number, epoch) in nodes.into_iter().zip(epochs) {
            let node = NodeId(number.cast_unsigned());
            // The node may have left or joined again in the meantime.
            let Some(own) = joined.get_mut(&node).filter(|own| own.epoch == epoch) else {
                continue;
            };
            if renewed.contains(&number) {
                own.trusted_until = begun + TRUST_WINDOW;
            } else {
                tracing::warn!(
                    node = number,
                    epoch,
                    "the lease of this node was lost; it joins again"
                );
                let _ = own.events.send(StoreEvent::LeaseLost);
                joined.remove(&node);
            }
        }
        Ok(())
    }

    async fn mark_lost_nodes(&self) -> Result<(), StoreError> {
        let sql = format!("SELECT {}.mark_lost_nodes($1)", self.schema);
        let rows = self.link.query(&sql, &[(&LEASE_MS, Type::INT8)]).await?;
        if rows.first().is_some_and(|row| row.get::<_, i64>(0) > 0) {
            self.wake.notify_one();
            self.announce.notify_one();
        }
        Ok(())
    }

    /// Whether a node is joined.
    pub(super) fn has_nodes(&self) -> bool {
        !self.joined.lock().is_empty()
    }

    /// Sends an event to the nodes of this store, except to the one that caused it.
    pub(super) fn send(&self, from: NodeId, event: &StoreEvent) {
        for (_, other) in self.joined.lock().iter().filter(|(node, _)| **node != from) {
            // An engine that does not listen is about to leave.
            let _ = other.events.send(event.clone());
        }
    }
}

const LEASE_MS: i64 = 10_000;
