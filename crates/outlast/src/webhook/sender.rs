//! Sends the stored deliveries. A failed delivery is repeated, with pauses that double.
//!
//! Before an attempt the sender moves the due time of the record, if it is still the one that it
//! read. So only one of several nodes makes the attempt, and after a kill it is made again.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_engine::store::{Record, RecordKey, RecordSwap, RecordWrite};
use outlast_engine::{Backoff, Engine, StoreError};
use outlast_wire::Timestamp;
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use tokio::task::JoinSet;

use super::delivery::{Delivery, KIND};
use super::{Webhook, Webhooks};
use crate::transport::http_client::client_to;

/// Sends the deliveries of one engine.
pub(crate) struct Sender {
    webhooks: Arc<Webhooks>,
    /// An HTTP client for each webhook, by name.
    clients: HashMap<Arc<str>, (Webhook, Client)>,
    engine: Engine,
    public_url: String,
    attempts: JoinSet<RecordKey>,
    /// The deliveries that are being sent.
    active: HashSet<RecordKey>,
}

impl Sender {
    /// A sender whose links begin with `public_url`.
    pub(crate) fn new(
        webhooks: Arc<Webhooks>,
        engine: Engine,
        public_url: String,
    ) -> io::Result<Self> {
        let clients = webhooks.all.iter().map(|webhook| {
            let client = client_to(&webhook.url).map_err(io::Error::other)?;
            Ok((webhook.name.clone(), (webhook.clone(), client)))
        });
        Ok(Self {
            clients: clients.collect::<io::Result<_>>()?,
            webhooks,
            engine,
            public_url,
            attempts: JoinSet::new(),
            active: HashSet::new(),
        })
    }

    /// Sends due deliveries until the future is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let pause = match self.begin_due().await {
                Ok(next) => next.clamp(MIN_SCAN_PAUSE, MAX_SCAN_PAUSE),
                Err(error) => {
                    tracing::warn!(%error, "cannot read webhook deliveries; retrying");
                    STORE_RETRY_PAUSE
                }
            };
            tokio::time::sleep(MIN_SCAN_PAUSE).await;
            let webhooks = self.webhooks.clone();
            tokio::select! {
                () = webhooks.added.notified() => {}
                Some(sent) = self.attempts.join_next() => {
                    if let Ok(key) = sent {
                        self.active.remove(&key);
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Starts the attempts that are due. Returns how long no further one is due.
    async fn begin_due(&mut self) -> Result<Duration, StoreError> {
        while let Some(sent) = self.attempts.try_join_next() {
            if let Ok(key) = sent {
                self.active.remove(&key);
            }
        }
        let now = self.engine.now();
        let records = self.engine.store().records(KIND, None, now).await?;
        self.webhooks
            .pending
            .store(records.len(), Ordering::Relaxed);
        let mut next = MAX_SCAN_PAUSE;
        for record in records {
            if self.active.contains(&record.key) {
                continue;
            }
            let Some(delivery) = Delivery::parse(&record) else {
                tracing::warn!(
                    key = &*record.key.key,
                    "a stored webhook delivery cannot be read; it is removed"
                );
                self.remove(record.key).await?;
                continue;
            };
            let wait = Duration::from_millis(Timestamp(delivery.due_ms).since(now));
            if !wait.is_zero() {
                next = next.min(wait);
            } else if self.active.len() < MAX_ACTIVE_DELIVERIES {
                self.begin(record, delivery).await?;
            }
        }
        Ok(next)
    }

    async fn begin(&mut self, record: Record, delivery: Delivery) -> Result<(), StoreError> {
        let Some((webhook, client)) = self.clients.get(&*delivery.webhook) else {
            tracing::warn!(
                webhook = delivery.webhook,
                "a webhook is not configured any more; its delivery is removed"
            );
            return self.remove(record.key).await;
        };
        self.active.insert(record.key.clone());
        let attempt = Attempt {
            engine: self.engine.clone(),
            webhook: webhook.clone(),
            client: client.clone(),
            body: delivery.body(&self.public_url),
            delivery,
        };
        self.attempts.spawn(async move {
            let key = record.key.clone();
            if let Err(error) = attempt.run(record).await {
                tracing::warn!(%error, "cannot store the state of a webhook delivery; it is sent again");
            }
            key
        });
        Ok(())
    }

    async fn remove(&self, key: RecordKey) -> Result<(), StoreError> {
        let write = vec![RecordWrite::Delete(key)];
        self.engine.store().write_records(write).await
    }
}

/// One attempt to send a delivery.
struct Attempt {
    engine: Engine,
    webhook: Webhook,
    client: Client,
    delivery: Delivery,
    body: String,
}

impl Attempt {
    async fn run(mut self, record: Record) -> Result<(), StoreError> {
        let now = self.engine.now();
        self.delivery.attempts = self.delivery.attempts.saturating_add(1);
        self.delivery.due_ms = now.plus(millis(SEND_TIMEOUT + CLAIM_MARGIN)).0;
        let claim = RecordSwap {
            expected: Some(record.bytes),
            record: self.delivery.record(),
        };
        if !self.engine.store().swap_record(claim, now).await? {
            // Another node sends it.
            return Ok(());
        }
        let id = self.delivery.id();
        let (webhook, attempts) = (&*self.webhook.name, self.delivery.attempts);
        let write = match self.send(&id).await {
            Ok(()) => {
                tracing::debug!(webhook, id, attempts, "webhook delivery accepted");
                RecordWrite::Delete(record.key)
            }
            Err(why) => {
                let now = self.engine.now();
                let due = now.plus(millis(RETRY_BACKOFF.after(attempts)));
                if due >= self.delivery.given_up() {
                    tracing::error!(webhook, id, attempts, why, "webhook delivery given up");
                    RecordWrite::Delete(record.key)
                } else {
                    tracing::warn!(
                        webhook,
                        id,
                        attempts,
                        why,
                        "webhook delivery failed; it is repeated"
                    );
                    self.delivery.due_ms = due.0;
                    RecordWrite::Put(self.delivery.record())
                }
            }
        };
        self.engine.store().write_records(vec![write]).await
    }

    /// Posts the body. The receiver accepts it with a status of 200 to 299.
    async fn send(&self, id: &str) -> Result<(), String> {
        // The signature has the time of the attempt, which the receiver compares with its clock.
        let seconds = self.engine.now().0 / 1_000;
        let request = self
            .client
            .post(self.webhook.url.clone())
            .timeout(SEND_TIMEOUT)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds)
            .header(
                "webhook-signature",
                self.webhook.secret.sign(id, seconds, &self.body),
            )
            .body(self.body.clone());
        let response = request
            .send()
            .await
            // The URL may contain a secret.
            .map_err(|error| error.without_url().to_string())?;
        let status = response.status();
        if status.is_success() {
            Ok(())
        } else {
            Err(format!("the receiver answered with {status}"))
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The pauses between the attempts to send a delivery.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(3_600));

/// How long a receiver may take to answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// How long after an attempt that did not end, because its process was killed, it is made again.
const CLAIM_MARGIN: Duration = Duration::from_secs(5);

/// How many deliveries are sent at the same time.
const MAX_ACTIVE_DELIVERIES: usize = 8;

/// The shortest pause between two scans of the records, so that a scan of many costs little.
const MIN_SCAN_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause, because another node may have left deliveries.
const MAX_SCAN_PAUSE: Duration = Duration::from_secs(30);

const STORE_RETRY_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour() {
        for (attempts, longest) in [
            (1, 1),
            (2, 2),
            (5, 16),
            (12, 2_048),
            (13, 3_600),
            (u32::MAX, 3_600),
        ] {
            let pause = RETRY_BACKOFF.after(attempts);
            let longest = Duration::from_secs(longest);
            assert!(
                pause <= longest && pause >= longest / 2,
                "{attempts}: {pause:?}"
            );
        }
    }
}
