//! A simulated database that several nodes share: a memory store, leases on simulated time, and
//! outages. It keeps the rules of the tables in PostgreSQL.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use outlast_engine::store::{Reason, StoreEvents};
use outlast_engine::{MemoryStore, NodeId, Store, StoreError};
use outlast_store::postgres::{HEARTBEAT, LEASE};
use tokio::time::Instant;

use crate::node_store::Link;
use crate::observed::Observed;

pub(crate) struct Database {
    pub(crate) tasks: MemoryStore,
    leases: Mutex<BTreeMap<NodeId, Lease>>,
    state: Observed<State>,
    fault: Option<Fault>,
    started: Mutex<Instant>,
}

/// A rule that a database breaks on purpose, which the checks must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Some acknowledged tasks are not stored.
    LosesTasks,
    /// After an outage, nodes are marked as lost before they can renew.
    MarksEarly,
    /// Tasks of nodes that were lost are not offered.
    OffersNothing,
}

/// Whether the database executes statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Up,
    /// Statements wait.
    Stalled,
    /// Statements fail.
    Down,
}

struct Lease {
    epoch: u64,
    expires: Instant,
    lost: bool,
    /// `None` after the process gave up without leaving.
    link: Option<Arc<Link>>,
}

impl Database {
    pub(crate) fn new(fault: Option<Fault>) -> Arc<Self> {
        Arc::new(Self {
            tasks: MemoryStore::new(),
            leases: Mutex::default(),
            state: Observed::new(State::Up),
            fault,
            started: Mutex::new(Instant::now()),
        })
    }

    pub(crate) fn set(&self, state: State) {
        if state == State::Up && self.state.get() == State::Down {
            *self.started.lock().expect("no test panics here") = Instant::now();
        }
        self.state.set(state);
    }

    /// Resolves when a statement arrives or fails.
    pub(crate) async fn reached(&self) -> Result<(), StoreError> {
        match self.state.wait_for(|state| state != State::Stalled).await {
            State::Up => Ok(()),
            State::Down | State::Stalled => Err(unavailable("the database is down")),
        }
    }

    pub(crate) async fn join(
        &self,
        node: NodeId,
        link: &Arc<Link>,
    ) -> Result<(u64, StoreEvents), StoreError> {
        let events = self.tasks.join(node).await?;
        let mut leases = self.leases();
        let epoch = leases.get(&node).map_or(0, |lease| lease.epoch) + 1;
        let lease = Lease {
            epoch,
            expires: Instant::now() + LEASE,
            lost: false,
            link: Some(link.clone()),
        };
        leases.insert(node, lease);
        Ok((epoch, events))
    }

    pub(crate) async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.leases().remove(&node);
        self.tasks.leave(node).await
    }

    /// A process gave up a node, perhaps without leaving.
    pub(crate) fn given_up(&self, node: NodeId) {
        if let Some(lease) = self.leases().get_mut(&node) {
            lease.link = None;
        }
    }

    /// Renews a lease that was not lost.
    pub(crate) fn renew(&self, node: NodeId, epoch: u64) -> bool {
        let mut leases = self.leases();
        let own = leases.get_mut(&node);
        let own = own.filter(|lease| lease.epoch == epoch && !lease.lost);
        own.is_some_and(|lease| {
            lease.expires = Instant::now() + LEASE;
            true
        })
    }

    /// Refuses a write of a node that was lost.
    pub(crate) fn check_lease(&self, node: NodeId) -> Result<(), StoreError> {
        match self.leases().get(&node) {
            Some(lease) if lease.lost => Err(unavailable("the lease of this node was lost")),
            _ => Ok(()),
        }
    }

    /// Marks the nodes as lost whose lease has lapsed.
    pub(crate) async fn mark_lost_nodes(&self) {
        let now = Instant::now();
        let started = *self.started.lock().expect("no test panics here");
        if now - started < LEASE && !self.breaks(Fault::MarksEarly) {
            return;
        }
        let mut lost = Vec::new();
        for (node, lease) in self.leases().iter_mut() {
            if !lease.lost && lease.expires < now {
                // A node that could renew all the time does not lose its lease because of an outage.
                let link = lease.link.as_ref();
                let healthy = link.and_then(|link| link.healthy_since());
                assert!(
                    healthy.is_none_or(|since| now - since < LEASE + HEARTBEAT),
                    "node {node:?} could renew since {healthy:?} and was marked as lost"
                );
                lease.lost = true;
                lost.push(*node);
            }
        }
        for node in lost {
            self.tasks.leave(node).await.expect("memory does not fail");
        }
    }

    pub(crate) fn breaks(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn leases(&self) -> MutexGuard<'_, BTreeMap<NodeId, Lease>> {
        self.leases.lock().expect("no test panics here")
    }
}

pub(crate) fn unavailable(why: &'static str) -> StoreError {
    StoreError::Unavailable(Reason::new(why))
}

/// How long a node waits for a reply.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
