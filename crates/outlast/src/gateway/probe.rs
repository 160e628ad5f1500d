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
use super::connection::{Connection, Resumption};
use crate::server::ClientHandle;

/// Whether a probe is running.
#[derive(Default)]
pub(super) struct Probing(watch::Sender<bool>);

/// Marks a probe as running until it is dropped.
struct UnderWay<'a>(&'a Probing);

impl Upstream {
    /// Connects once, without a client, and closes the connection. The error contains a next step.
    /// An upstream with an open connection is not probed.
    pub async fn probe(&self) -> Result<(), String> {
        if self.pool.len() > 0 {
            return Ok(());
        }
        let _under_way = self.probing.begin();
        let absent = Arc::new(ClientHandle::absent(Owner::Local, InputKinds::NONE));
        let way = self.way(self.settings.era);
        match Connection::open(&way, &absent, Resumption::default(), None).await {
            Ok(connection) => {
                connection.back.close().await;
                Ok(())
            }
            Err(error) => {
                self.unmet.store(true, Ordering::Relaxed);
                Err(error.message)
            }
        }
    }
}

impl Probing {
    fn begin(&self) -> UnderWay<'_> {
        self.0.send_replace(true);
        UnderWay(self)
    }

    /// Waits until no probe is running, for a limited time.
    pub(super) async fn done(&self) {
        let mut probing = self.0.subscribe();
        let done = probing.wait_for(|is_under_way| !is_under_way);
        let _ = tokio::time::timeout(PROBE_LIMIT, done).await;
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.0.send_replace(false);
    }
}

/// How long a connection waits for a probe, so that an upstream that does not respond delays the
/// clients only a little.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
