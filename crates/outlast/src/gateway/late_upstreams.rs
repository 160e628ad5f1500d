//! Recovered tasks whose upstream is not known when the gateway starts. They wait until it is
//! added.
//!
//! The command and environment of a server that a relay names are not stored. A restarted gateway
//! gets them when the relay connects again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, Runner};
use outlast_engine::task::ResumeState;
use outlast_engine::{Origin, Outcome};
use tokio::sync::watch;

use super::{Upstream, runner};

/// Runs recovered calls by upstreams that are added after the start.
pub(super) struct LateUpstreams {
    added: watch::Sender<BTreeMap<Arc<str>, Arc<Upstream>>>,
    limit: Duration,
}

/// Why a call does not run.
enum NotRun {
    Cancelled,
    /// The upstream was not added in time.
    Absent,
}

impl LateUpstreams {
    /// Calls wait up to `limit` for their upstream.
    pub(super) fn new(limit: Duration) -> Self {
        let added = watch::Sender::default();
        Self { added, limit }
    }

    /// Adds an upstream. Calls that wait for it continue.
    pub(super) fn add(&self, upstream: &Arc<Upstream>) {
        let (name, upstream) = (upstream.runner().clone(), upstream.clone());
        self.added.send_modify(|added| {
            added.insert(name, upstream);
        });
    }

    async fn upstream(&self, call: &Origin, cx: &CallContext) -> Result<Arc<Upstream>, NotRun> {
        let mut added = self.added.subscribe();
        let found = async {
            loop {
                if let Some(upstream) = added.borrow_and_update().get(&call.runner) {
                    return Ok(upstream.clone());
                }
                if added.changed().await.is_err() {
                    return Err(NotRun::Absent);
                }
            }
        };
        tokio::select! {
            biased;
            () = cx.cancelled() => Err(NotRun::Cancelled),
            found = found => found,
            () = tokio::time::sleep(self.limit) => Err(NotRun::Absent),
        }
    }
}

#[async_trait]
impl Runner for LateUpstreams {
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        match self.upstream(&call, &cx).await {
            Ok(upstream) => upstream.run(call, cx).await,
            Err(not_run) => not_run.outcome(),
        }
    }

    async fn reattach(
        &self,
        call: Arc<Origin>,
        handle: ResumeState,
        cx: CallContext,
    ) -> Option<Outcome> {
        match self.upstream(&call, &cx).await {
            Ok(upstream) => upstream.reattach(call, handle, cx).await,
            Err(not_run) => Some(not_run.outcome()),
        }
    }

    fn can_reattach(&self) -> bool {
        true
    }

    fn cleanup_timeout(&self) -> Duration {
        runner::CLEANUP_TIMEOUT
    }
}

impl NotRun {
    fn outcome(self) -> Outcome {
        match self {
            Self::Cancelled => Outcome::Cancelled,
            Self::Absent => Outcome::unknown(
                "the gateway stopped while this call was running, and no client named its server again in time: the \
                 outcome is unknown, and it was not run again",
            ),
        }
    }
}
