//! Notifications of other nodes, on one connection and one channel for each store.
//!
//! A pooler that shares connections accepts `LISTEN` and delivers nothing. So each new connection
//! proves itself by a notification to itself before the store relies on it.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

use super::changes::{CHANNEL_PREFIX, Changes};
use super::connection::Connector;
use super::error::PostgresError;

pub(super) struct Listener {
    pub(super) connector: Arc<Connector>,
    pub(super) changes: Arc<Changes>,
}

impl Listener {
    /// Receives notifications until the store is dropped.
    pub(super) async fn run(self) {
        loop {
            let outcome = self.listen().await;
            self.changes.notified.store(false, Ordering::Relaxed);
            // The next read finds what was not notified.
            self.changes.leases.wake.notify_one();
            let pause = match outcome {
                Ok(SelfTest::Passed) => RECONNECT_INTERVAL,
                Ok(SelfTest::Failed) => {
                    tracing::info!("the database delivers no notifications; changes are polled");
                    RETRY_INTERVAL
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot listen for notifications; changes are polled");
                    RECONNECT_INTERVAL
                }
            };
            sleep(pause).await;
        }
    }

    /// Connects, tests the connection, and receives notifications until it is lost.
    async fn listen(&self) -> Result<SelfTest, PostgresError> {
        let (client, mut connection) = self.connector.open().await?;
        let (sender, mut notifications) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(_) = message
                    && sender.send(()).is_err()
                {
                    return;
                }
            }
        });
        let channel = format!("{CHANNEL_PREFIX}{}", self.changes.writer);
        client
            .batch_execute(&format!("LISTEN \"{channel}\""))
            .await?;
        let test = "SELECT pg_notify($1, 'test')";
        // The reading connection sends it, as other nodes do.
        let _ = self
            .changes
            .link
            .query(test, &[(&channel, Type::TEXT)])
            .await;
        if !matches!(
            timeout(SELF_TEST_TIMEOUT, notifications.recv()).await,
            Ok(Some(()))
        ) {
            return Ok(SelfTest::Failed);
        }
        self.changes.notified.store(true, Ordering::Relaxed);
        self.changes.leases.wake.notify_one();
        while notifications.recv().await.is_some() {
            self.changes.leases.wake.notify_one();
        }
        Ok(SelfTest::Passed)
    }
}

/// Whether a connection delivered its own notification.
enum SelfTest {
    Passed,
    Failed,
}

const SELF_TEST_TIMEOUT: Duration = Duration::from_secs(3);

/// The pause before a lost connection is made again.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// The pause after a failed self-test.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
