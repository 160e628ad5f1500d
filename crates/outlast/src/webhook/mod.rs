//! Webhooks: HTTP requests to other programs when the status of a task changes, so that a person
//! is reached without polling.
//!
//! A delivery is a record that is stored in the same transaction as the change, so a killed process
//! loses none. It is sent until the receiver accepts it, at least once: a receiver ignores an id
//! that it knows. Requests are signed by the rules of
//! [Standard Webhooks](https://www.standardwebhooks.com).
//!
//! | where | what |
//! |---|---|
//! | `secret` | the signature |
//! | `delivery` | the stored record and the body of the request |
//! | `sender` | sends due deliveries, and repeats failed ones |

mod delivery;
mod secret;
mod sender;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_engine::Task;
use outlast_engine::engine::StatusRecorder;
use outlast_engine::store::RecordWrite;
use tokio::sync::Notify;

use crate::log_limit::LogLimit;
use delivery::Delivery;

pub use outlast_engine::store::{Status, Statuses};
pub use secret::{InvalidSecret, WebhookSecret};
pub(crate) use sender::Sender;

/// A receiver of status changes.
///
/// ```no_run
/// use outlast::Outlast;
/// use outlast::webhook::{Status, Webhook, WebhookSecret};
///
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let webhook = Webhook::new("chat", "https://chat.example.com/hook".parse()?, secret)
///     .with_statuses([Status::InputRequired, Status::Failed].into_iter().collect());
/// let outlast = Outlast::builder().webhooks(vec![webhook]).build();
/// # drop(outlast);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Webhook {
    /// Its name, which must stay the same over restarts: deliveries are stored under it.
    pub name: Arc<str>,
    /// The URL to which deliveries are posted.
    pub url: reqwest::Url,
    /// The key of the signatures.
    pub secret: WebhookSecret,
    /// The statuses that are delivered when a task gets them.
    pub statuses: Statuses,
}

impl Webhook {
    /// A receiver of input requests and of ends.
    pub fn new(name: impl Into<Arc<str>>, url: reqwest::Url, secret: WebhookSecret) -> Self {
        Self {
            name: name.into(),
            url,
            secret,
            statuses: DEFAULT_STATUSES.into_iter().collect(),
        }
    }
}

outlast_engine::option_setters! { Webhook:
    set with_statuses(statuses: Statuses);
}

/// The webhooks of a gateway.
#[derive(Debug)]
pub(crate) struct Webhooks {
    all: Vec<Webhook>,
    /// Notifies the sender of new deliveries.
    added: Notify,
    /// The number of stored deliveries: those that the last scan found, and those added since.
    pending: AtomicUsize,
}

impl Webhooks {
    pub(crate) fn new(all: Vec<Webhook>) -> Arc<Self> {
        Arc::new(Self {
            all,
            added: Notify::new(),
            pending: AtomicUsize::new(0),
        })
    }

    /// Counts a delivery, unless too many wait.
    fn admit(&self, task: &Task) -> bool {
        if self.pending.fetch_add(1, Ordering::Relaxed) < MAX_PENDING_DELIVERIES {
            return true;
        }
        self.pending.fetch_sub(1, Ordering::Relaxed);
        DROPPED.log(|left_out| {
            let most = MAX_PENDING_DELIVERIES;
            tracing::error!(task = %task.id, most, left_out, "too many webhook deliveries wait; a status change is not delivered");
        });
        false
    }
}

impl StatusRecorder for Webhooks {
    fn records(&self, task: &Task) -> Vec<RecordWrite> {
        let status = Status::of_task(task);
        let wanted = self
            .all
            .iter()
            .filter(|webhook| webhook.statuses.contains(status));
        let admitted = wanted.filter(|_| self.admit(task));
        let records = admitted.map(|webhook| Delivery::new(webhook, task).record());
        records.map(RecordWrite::Put).collect()
    }

    fn stored(&self) {
        self.added.notify_one();
    }
}

/// The statuses that a webhook gets by default.
const DEFAULT_STATUSES: [Status; 4] = [
    Status::InputRequired,
    Status::Completed,
    Status::Failed,
    Status::Cancelled,
];

/// The most deliveries that wait. Further status changes are not delivered.
const MAX_PENDING_DELIVERIES: usize = 10_000;

static DROPPED: LogLimit = LogLimit::new();
