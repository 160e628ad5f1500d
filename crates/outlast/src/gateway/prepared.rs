//! A prepared call: its connection and its permit, for its runner.
//!
//! If the upstream creates a V1 task, the call is started before our task is stored. Such a server
//! decides at once whether it accepts a task, so its rejection can be the response to the request,
//! and its first status is known when our task is created (BR-CREATE-2, BR-CREATE-5, BD-1).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::CallContext;
use outlast_engine::{Origin, Outcome};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::active_calls::UnderWay;
use super::admission::CallPermit;
use super::again::Round;
use super::connection::Connection;
use super::owner::UpstreamOwner;
use super::{Turn, Upstream, again, pages};
use crate::client::{ExecutionStatus, OutcomeError};
use crate::server::{ClientHandle, PrestartInfo, RequestParts};

/// A call that is ready to run.
pub(super) struct Prepared {
    pub(super) client: Arc<ClientHandle>,
    /// The connection, unless the call opens its own.
    pub(super) connection: Option<Arc<Connection>>,
    /// Counts the call as open until this is dropped.
    pub(super) _permit: CallPermit,
    /// The call itself, if it runs already.
    pub(super) prestarted: Option<PrestartedCall>,
}

/// A prepared call between [`Backend::prepare`](crate::server::Backend::prepare) and its runner.
pub(super) struct Reserved(Mutex<Option<Prepared>>);

/// A call that runs at the upstream before its task is stored. Dropping it cancels it, because no
/// runner would return its outcome.
pub(super) struct PrestartedCall(Option<Started>);

/// What the runner of a prestarted call continues with.
pub(super) struct Started {
    pub(super) under_way: UnderWay,
    pub(super) running: Running,
    turn: Turn,
}

/// Drives the call to its end.
type Running = Pin<Box<dyn Future<Output = (Result<Outcome, OutcomeError>, UpstreamOwner)> + Send>>;

impl Prepared {
    /// A call that its runner prepares, without a request in this run of the process.
    pub(super) fn again(client: Arc<ClientHandle>, permit: CallPermit) -> Self {
        Self {
            client,
            connection: None,
            _permit: permit,
            prestarted: None,
        }
    }
}

impl Reserved {
    pub(super) fn new(prepared: Prepared) -> Self {
        Self(Mutex::new(Some(prepared)))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Option<Prepared>) -> T) -> T {
        work(&mut self.0.lock())
    }
}

impl PrestartedCall {
    pub(super) fn started(mut self) -> Option<Started> {
        self.0.take()
    }

    pub(super) fn take_turn(&mut self) -> Turn {
        self.0
            .as_mut()
            .map(|started| std::mem::take(&mut started.turn))
            .unwrap_or_default()
    }
}

impl Drop for PrestartedCall {
    fn drop(&mut self) {
        let started = self.0.take();
        if let (Some(started), Ok(runtime)) = (started, tokio::runtime::Handle::try_current()) {
            // Dropping the registration makes the controller cancel the call.
            drop(started.under_way);
            runtime.spawn(started.running);
        }
    }
}

impl Upstream {
    /// Starts a call whose upstream creates a V1 task, if that is possible within [`PATIENCE`].
    pub(super) async fn start_early(
        &self,
        reserved: &Reserved,
        call: &Origin,
        ttl: u64,
    ) -> Result<PrestartInfo, Outcome> {
        let parties = reserved.with(|prepared| {
            let prepared = prepared.as_ref()?;
            Some((prepared.client.clone(), prepared.connection.clone()))
        });
        let Some((client, connection)) = parties else {
            return Ok(PrestartInfo::default());
        };
        let until = Instant::now() + PATIENCE;
        let starting = self.start(call, ttl, &client, connection);
        let (mut started, mut known, connection) = match timeout_at(until, starting).await {
            Ok(Some(started)) => started?,
            // The runner gets the same error and reports it.
            Ok(None) | Err(_) => return Ok(PrestartInfo::default()),
        };
        // BR-CREATE-2: do not wait for a slower server.
        let first = timeout_at(until, async {
            tokio::select! {
                biased;
                ended = &mut started.running => Err(ended),
                view = known.wait_for(Option::is_some) => Ok(view.ok().and_then(|view| view.clone())),
            }
        });
        let view = match first.await {
            Ok(Ok(view)) => view,
            Ok(Err((Ok(refused @ Outcome::Error(..)), owner)))
                // The runner handles required url elicitations.
                if !owner.has_task() && !pages::is_demand(&refused) =>
            {
                return Err(refused);
            }
            Ok(Err(ended)) => {
                started.running = Box::pin(std::future::ready(ended));
                None
            }
            Err(_) => None,
        };
        reserved.with(|prepared| {
            if let Some(prepared) = prepared {
                prepared.prestarted = Some(PrestartedCall(Some(started)));
            }
        });
        Ok(PrestartInfo {
            message: view
                .as_ref()
                .and_then(|view| view.task.as_ref())
                .filter(|task| !task.status.is_terminal())
                .and_then(|task| task.message.as_deref())
                .map(Into::into),
            immediate: view
                .as_ref()
                .and_then(|view| view.immediate_response.as_deref())
                .map(Into::into),
            resume_state: view
                .as_ref()
                .and_then(|view| view.reference.as_deref())
                .and_then(|reference| again::handle(&connection, reference)),
        })
    }

    /// Starts the call; `None` if that is not possible now. Dropping the future starts nothing.
    async fn start(
        &self,
        call: &Origin,
        ttl: u64,
        client: &Arc<ClientHandle>,
        connection: Option<Arc<Connection>>,
    ) -> Option<
        Result<
            (
                Started,
                watch::Receiver<Option<ExecutionStatus>>,
                Arc<Connection>,
            ),
            Outcome,
        >,
    > {
        let turn = self.turn(call.tool.as_deref()).await;
        let connection = self.connection_of(connection, client).await.ok()?;
        let under_way = connection.reserve();
        // A V1 server sends no input requests before it starts.
        let made = self.make(
            &connection,
            &under_way,
            call,
            Some(ttl),
            client,
            Round::None,
        );
        let made = match made.check().await {
            Ok(made) => made,
            Err(refusal) => return Some(Err(self.not_made(refusal))),
        };
        let (mut owner, known) = self.owner_before_task(&connection, &under_way, call, client);
        let running = async move {
            let ended = made.drive(&mut owner).await;
            (ended, owner)
        };
        let started = Started {
            under_way,
            running: Box::pin(running),
            turn,
        };
        Some(Ok((started, known, connection)))
    }
}

/// Takes what was prepared for this call. A call of a previous run of this process has nothing.
pub(super) fn take(cx: &CallContext) -> Option<Prepared> {
    let arrival = cx.local_data::<RequestParts>()?;
    let reserved = arrival.reservation.as_ref()?.downcast_ref::<Reserved>()?;
    reserved.with(Option::take)
}

/// How long to wait for an upstream to connect and to report its task.
const PATIENCE: Duration = Duration::from_secs(3);
