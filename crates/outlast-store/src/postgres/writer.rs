//! The writer: takes everything that is queued and executes it in one statement.
//!
//! A reply says whether the operation took place. If the connection is lost, the writer first starts
//! a new generation: the database then refuses the lost statement if it has not been executed yet.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::StoreError;
use tokio::sync::{Notify, mpsc};
use tokio::task::yield_now;
use tokio::time::sleep;
use tokio_postgres::types::Type;

use super::batch::{Operation, Refusal};
use super::connection::{Failed, Link, Parameter, unavailable};
use super::waves::Waves;

pub(super) struct Writer {
    pub(super) link: Link,
    /// The id of this store in the table `writers`.
    pub(super) id: i64,
    /// The quoted schema.
    pub(super) schema: String,
    /// Notified after a commit, for the nodes of this store.
    pub(super) wake: Arc<Notify>,
    /// Notified after a commit, for the nodes of other stores.
    pub(super) announce: Arc<Notify>,
    /// The generation of the connection, if it has started one.
    pub(super) generation: Option<i64>,
}

impl Writer {
    /// Executes operations until the queue is closed.
    pub(super) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Operation>) {
        let mut operations = Vec::new();
        while queue.recv_many(&mut operations, MAX_BATCH_OPERATIONS).await > 0 {
            let executed = operations.len();
            let mut waiting = std::mem::take(&mut operations).into_iter().peekable();
            while let Some(first) = waiting.next() {
                let mut size = first.size_bytes();
                let mut batch = vec![first];
                while let Some(next) =
                    waiting.next_if(|next| size + next.size_bytes() <= MAX_BATCH_BYTES)
                {
                    size += next.size_bytes();
                    batch.push(next);
                }
                self.execute_batch(batch).await;
            }
            // Callers that were just answered often have a next operation. If it shares the next sync
            // of the disk, it does not wait for two of them.
            for _ in 0..MAX_YIELDS {
                if queue.len() >= executed {
                    break;
                }
                yield_now().await;
            }
        }
    }

    /// Executes operations and replies to each.
    async fn execute_batch(&mut self, batch: Vec<Operation>) {
        match self.execute(&batch).await {
            Ok(refusals) => self.reply(batch, &refusals),
            // One operation that the database refuses must not fail the others.
            Err(Failed::Refused(_)) if batch.len() > 1 => {
                for operation in batch {
                    match self.execute(std::slice::from_ref(&operation)).await {
                        Ok(refusals) => self.reply(vec![operation], &refusals),
                        Err(failed) => operation.fail(failed.error()),
                    }
                }
            }
            Err(failed) => {
                let error = failed.error();
                batch
                    .into_iter()
                    .for_each(|operation| operation.fail(error.clone()));
            }
        }
    }

    /// Replies to operations that were executed. Each takes the refusals of its steps.
    fn reply(&self, batch: Vec<Operation>, refusals: &[Option<Refusal>]) {
        self.notify(&batch);
        let mut refusals = refusals;
        for operation in batch {
            let (own, rest) = refusals.split_at(operation.steps_len().min(refusals.len()));
            refusals = rest;
            operation.reply(own);
        }
    }

    /// Notifies the loops that read and announce changes.
    fn notify(&self, committed: &[Operation]) {
        if committed.iter().any(Operation::changes_tasks) {
            self.wake.notify_one();
            self.announce.notify_one();
        }
    }

    /// Executes operations in one transaction. Returns the refusal of each step, if it was refused.
    /// After an error none of them takes place later.
    async fn execute(&mut self, batch: &[Operation]) -> Result<Vec<Option<Refusal>>, Failed> {
        let (steps, len) = {
            let waves = Waves::of(batch);
            (waves.to_json(), waves.steps_len())
        };
        if len == 0 {
            return Ok(Vec::new());
        }
        let generation = self.start().await.map_err(Failed::NotSent)?;
        let sql = format!(
            "SELECT step, reply, existing FROM {}.write_batch($1, $2, $3::text::jsonb)",
            self.schema
        );
        let parameters: [Parameter<'_>; 3] = [
            (&self.id, Type::INT8),
            (&generation, Type::INT8),
            (&steps, Type::TEXT),
        ];
        match self.link.query_once(&sql, &parameters).await {
            Ok(rows) => {
                let mut refusals: Vec<_> = (0..len).map(|_| None).collect();
                for row in rows {
                    let step: i32 = row.get(0);
                    let refusal = Refusal {
                        word: row.get(1),
                        existing: row.get(2),
                    };
                    let place = usize::try_from(step).ok();
                    if let Some(place) = place.and_then(|step| refusals.get_mut(step)) {
                        *place = Some(refusal);
                    }
                }
                Ok(refusals)
            }
            Err(Failed::Refused(error)) => {
                // The generation may be the cause: another one is started before the next batch.
                self.generation = None;
                Err(Failed::Refused(error))
            }
            Err(lost) => {
                self.generation = None;
                for _ in 0..FENCE_ATTEMPTS {
                    if self.start().await.is_ok() {
                        break;
                    }
                    sleep(FENCE_RETRY_DELAY).await;
                }
                Err(lost)
            }
        }
    }

    /// The generation of this connection, started now if the connection is new.
    async fn start(&mut self) -> Result<i64, StoreError> {
        let (_, is_new) = self.link.session().await?;
        if let Some(started) = self.generation.filter(|_| !is_new) {
            return Ok(started);
        }
        self.generation = None;
        let sql = format!("SELECT {}.start_writer($1)", self.schema);
        let rows = self.link.query_once(&sql, &[(&self.id, Type::INT8)]).await;
        let rows = rows.map_err(Failed::error)?;
        self.generation = rows.first().map(|row| row.get(0));
        self.generation
            .ok_or_else(|| unavailable("the database returned no row"))
    }
}

/// The maximum number of operations in a statement.
const MAX_BATCH_OPERATIONS: usize = 512;

/// The maximum size of a statement with more than one operation, approximately.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// How often the writer lets other tasks run before the next batch.
const MAX_YIELDS: u32 = 32;

/// How often the writer tries to fence a lost statement before it replies.
const FENCE_ATTEMPTS: u32 = 10;

const FENCE_RETRY_DELAY: Duration = Duration::from_millis(200);
