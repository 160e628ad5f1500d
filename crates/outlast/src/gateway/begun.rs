//! Calls that begin before their task is there: a V1 server says at once whether it takes a task, so that its refusal can be
//! the answer to the request, and what it grants is known when our task is made (BR-CREATE-2, BR-CREATE-5, BD-1).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_engine::engine::CallContext;
use outlast_engine::{Origin, Outcome};
use outlast_wire::v1::TaskSupport;
use tokio::time::{Instant, timeout_at};

use super::again::Round;
use super::connection::{Connection, UnderWay};
use super::{Turn, Upstream, pages, result};
use crate::back::{CallRefused, Execution, Generation};
use crate::front::{Arrival, Begun, Client};

/// A call at the upstream that waits for its task here.
pub(super) struct Ahead {
    pub(super) connection: Arc<Connection>,
    pub(super) under_way: UnderWay,
    pub(super) execution: Execution,
    pub(super) turn: Turn,
}

/// The same until its runner takes it. If none does, the call is cancelled: nobody would ever hear of it.
struct Waiting(Mutex<Option<Ahead>>);

impl Waiting {
    fn take(&self) -> Option<Ahead> {
        // The critical section is a take.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let ahead = self.take();
        if let (Some(ahead), Ok(runtime)) = (ahead, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                if let Err(error) = ahead.execution.cancel().await {
                    tracing::info!(
                        error = error.brief(),
                        "a call that nobody waits for was not cancelled"
                    );
                }
            });
        }
    }
}

impl Upstream {
    /// Begins a call whose upstream makes a V1 task of it; `None` if it does not, or cannot begin yet.
    pub(super) async fn begin_ahead(
        &self,
        call: &Origin,
        ttl: u64,
        client: &Arc<Client>,
    ) -> Result<Option<Begun>, Outcome> {
        let until = Instant::now() + PATIENCE;
        let starting = self.start_ahead(call, ttl, client);
        let ahead = match timeout_at(until, starting).await {
            Ok(Some(ahead)) => ahead?,
            // Whatever is in the way is in the way of the task.
            Ok(None) | Err(_) => return Ok(None),
        };
        let mut updates = ahead.execution.updates();
        let waiting = Waiting(Mutex::new(Some(ahead)));
        // One that takes its time to say so is not waited for.
        let view = timeout_at(until, updates.known()).await.ok().flatten();
        let view = view.as_ref();
        if let Some(Ok(refused @ Outcome::Error(..))) = view.and_then(|view| view.ended.as_ref())
            && view.is_some_and(|view| view.task.is_none())
            // What it demands of the caller is seen to when there is a call.
            && !pages::is_demand(refused)
        {
            return Err(refused.clone());
        }
        let task = view.and_then(|view| view.task.as_ref());
        Ok(Some(Begun {
            immediate: view
                .and_then(|view| view.immediate_response.as_deref())
                .map(Into::into),
            ttl: task.and_then(|task| task.ttl_ms),
            work: Arc::new(waiting),
        }))
    }

    /// Makes the call, if the upstream would make a task of it and it can be made now. Dropping this makes none.
    async fn start_ahead(
        &self,
        call: &Origin,
        ttl: u64,
        client: &Arc<Client>,
    ) -> Option<Result<Ahead, Outcome>> {
        let tool = call.tool.as_deref();
        let connection = self.connection(client).await.ok()?;
        let generation = connection.server().generation;
        if !matches!(generation, Generation::V1(tasks) if tasks.tools_call) {
            return None;
        }
        let list = connection.back.tools().await.ok()?;
        let known = connection.catalogue.traits(&list, tool.unwrap_or_default());
        if known.support == TaskSupport::Forbidden {
            return None;
        }
        let turn = self.turn(tool).await;
        let connection = self.connection_for_call(client).await.ok()?;
        let under_way = connection.reserve();
        // It asks nothing before it begins.
        let round = Round::None;
        let begun = self.begin(&connection, &under_way, call, Some(ttl), client, round);
        Some(match begun.await {
            Ok(execution) => Ok(Ahead {
                connection,
                under_way,
                execution,
                turn,
            }),
            Err(CallRefused::Fault(fault)) => Err(result::of_fault(&self.name, fault)),
            Err(refusal) => Err(result::internal(format!("{}: {refusal}", self.name))),
        })
    }
}

/// The call that was begun for this task, if it was and nobody has it.
pub(super) fn ahead(cx: &CallContext) -> Option<Ahead> {
    let arrival = cx.parts::<Arrival>()?;
    let waiting = arrival.begun.clone()?.downcast::<Waiting>().ok()?;
    waiting.take()
}

/// How long an upstream may take to be reached and to say that it has made a task.
const PATIENCE: Duration = Duration::from_secs(3);
