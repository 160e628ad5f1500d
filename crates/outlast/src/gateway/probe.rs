//! Checks whether an upstream can be reached, before a client needs it.
//!
//! At a URL a probe opens a session and ends it. Connections wait until the probe ends, because a
//! server of the Python SDK 1.x creates no tasks in a session during which another session ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_engine::{InputKinds, Owner};
use tokio::sync::watch;

use super::Upstream;
use super::connection::{Resumption, UnreachableError, UpstreamConnection};
use crate::server::ClientHandle;

/// Whether a probe is running.
#[derive(Default)]
pub(super) struct ProbeState(watch::Sender<bool>);

/// Marks a probe as running until it is dropped.
struct ProbeGuard<'a>(&'a ProbeState);

impl Upstream {
    /// Connects once, without a client, and closes the connection. An upstream with an open
    /// connection is not probed.
    pub async fn probe(&self) -> Result<(), UnreachableError> {
        if self.pool.len() > 0 {
            return Ok(());
        }
        let _guard = self.probes.begin();
        let absent = Arc::new(ClientHandle::absent(Owner::Local, InputKinds::NONE));
        let spec = self.connect_spec(self.settings.era, absent.owner());
        match UpstreamConnection::connect(&spec, &absent, Resumption::default(), None).await {
            Ok(connection) => {
                connection.upstream.close().await;
                Ok(())
            }
            Err(fault) => {
                self.probe_failed.store(true, Ordering::Relaxed);
                Err(UnreachableError::new(&spec.name, &fault))
            }
        }
    }
}

impl ProbeState {
    fn begin(&self) -> ProbeGuard<'_> {
        self.0.send_replace(true);
        ProbeGuard(self)
    }

    /// Waits until no probe is running, for a limited time.
    pub(super) async fn wait_until_done(&self) {
        let mut probing = self.0.subscribe();
        let done = probing.wait_for(|is_running| !is_running);
        let _ = tokio::time::timeout(MAX_PROBE_WAIT, done).await;
    }
}

impl Drop for ProbeGuard<'_> {
    fn drop(&mut self) {
        self.0.0.send_replace(false);
    }
}

/// How long a connection waits for a probe, so that an upstream that does not respond delays the
/// clients only a little.
const MAX_PROBE_WAIT: Duration = Duration::from_secs(2);
