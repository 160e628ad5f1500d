//! Whether an upstream can be reached at all, found out before any client needs it.
//!
//! At a URL a probe opens a session and ends it. Connections wait for that: a server of the Python SDK 1.x makes no tasks in a
//! session during which another session ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_engine::{InputKinds, Owner};
use tokio::sync::watch;

use super::Upstream;
use super::connection::{Connection, Resumption};
use crate::server::ClientHandle;

/// Whether a probe is under way.
#[derive(Default)]
pub(super) struct Probing(watch::Sender<bool>);

/// That a probe is under way, until this is dropped.
struct UnderWay<'a>(&'a Probing);

impl Upstream {
    /// Connects once, without a client, and closes the connection. If that fails: why, and what may help. An upstream that is
    /// connected to is not probed.
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

    /// Waits until no probe is under way, for a limited time.
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

/// How long a connection waits for a probe: an upstream that does not answer must not delay the clients for longer than it
/// does anyway.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
