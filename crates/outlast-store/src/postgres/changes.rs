//! What other nodes changed: numbered rows that each node reads in order.
//!
//! The numbers are in the order of commits, because every write holds one lock. A notification only
//! causes an earlier read, so a lost one delays an event and loses none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_engine::store::StoreEvent;
use outlast_engine::{NodeId, StoreError};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::Type;

use super::connection::{Link, Parameter};
use super::leases::Leases;
use super::progress;

pub(super) struct Changes {
    pub(super) link: Arc<Link>,
    /// The quoted schema.
    pub(super) schema: String,
    /// The id of this store.
    pub(super) writer: i64,
    pub(super) leases: Arc<Leases>,
    /// Whether notifications arrive, so that there is no pooler.
    pub(super) notified: Arc<AtomicBool>,
}

impl Changes {
    /// Reads changes until the store is dropped.
    pub(super) async fn read_loop(self: Arc<Self>) {
        loop {
            let pause = if self.notified.load(Ordering::Relaxed) {
                POLL_INTERVAL_WITH_NOTIFICATIONS
            } else {
                POLL_INTERVAL
            };
            // At the end of the interval, changes are read without a notification.
            let _ = timeout(pause, self.leases.wake.notified()).await;
            loop {
                match self.read().await {
                    Ok(MAX_CHANGES) => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::debug!(%error, "cannot read the changes of other nodes; retrying");
                        break;
                    }
                }
            }
        }
    }

    /// Reads some changes and returns their number.
    async fn read(&self) -> Result<usize, StoreError> {
        let mut cursor = self.leases.cursor.lock().await;
        if !self.leases.has_nodes() {
            return Ok(0);
        }
        let sql = format!(
            "SELECT seq, node, task, progress FROM {}.changes WHERE seq > $1 ORDER BY seq LIMIT {MAX_CHANGES}",
            self.schema
        );
        let after = *cursor;
        let rows = self.link.query(&sql, &[(&after, Type::INT8)]).await?;
        for row in &rows {
            *cursor = row.get(0);
            let (from, task): (i64, Option<&str>) = (row.get(1), row.get(2));
            let reported: Option<&str> = row.get(3);
            let event = match (task.map(str::parse), reported.map(progress::read)) {
                (None, _) => StoreEvent::NodeLeft,
                (Some(Ok(id)), None) => StoreEvent::TaskChanged(id),
                (Some(Ok(id)), Some(Some(reported))) => StoreEvent::Progress(id, reported),
                (Some(_), _) => continue,
            };
            self.leases.send(NodeId(from.cast_unsigned()), &event);
        }
        Ok(rows.len())
    }

    /// Notifies the stores of other nodes until this store is dropped: at once after a commit, then
    /// after a pause, in which further commits share one notification. The pause grows with the time
    /// that a notification takes, so that a busy database sends few.
    pub(super) async fn announce_loop(self: Arc<Self>) {
        let sql = format!(
            "SELECT count(pg_notify('{CHANNEL_PREFIX}' || other.writer, '')) FROM
             (SELECT DISTINCT writer FROM {}.nodes WHERE NOT lost AND writer <> $1) AS other",
            self.schema
        );
        loop {
            self.leases.announce.notified().await;
            let parameters: [Parameter<'_>; 1] = [(&self.writer, Type::INT8)];
            let begun = Instant::now();
            // Without the notification, the other nodes read the changes later.
            let _ = self.link.query(&sql, &parameters).await;
            let pause = PAUSE_PER_ROUND_TRIP * begun.elapsed();
            sleep(pause.min(MAX_ANNOUNCE_PAUSE)).await;
        }
    }
}

/// The channel of a store is this prefix and its id.
pub(super) const CHANNEL_PREFIX: &str = "outlast_";

/// How often changes are read while notifications do not arrive.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

const POLL_INTERVAL_WITH_NOTIFICATIONS: Duration = Duration::from_secs(10);

/// The pause after a notification, as a multiple of the time that it took.
const PAUSE_PER_ROUND_TRIP: u32 = 2;

/// The longest pause after a notification.
const MAX_ANNOUNCE_PAUSE: Duration = Duration::from_millis(10);

/// The maximum number of changes in one read.
const MAX_CHANGES: usize = 1_000;
