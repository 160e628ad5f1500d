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

use super::active_calls::ActiveCall;
use super::admission::CallPermit;
use super::connection::UpstreamConnection;
use super::controller::UpstreamController;
use super::reattach::InputRound;
use super::{ConcurrencyPermits, Upstream, reattach, url_elicitation};
use crate::client::{ExecutionStatus, OutcomeError};
use crate::server::{ClientHandle, PrestartInfo, RequestParts};

/// A call that is ready to run.
pub(super) struct UpstreamCall {
    pub(super) client: Arc<ClientHandle>,
    /// The connection, unless the call opens its own.
    pub(super) connection: Option<Arc<UpstreamConnection>>,
    /// Counts the call as open until this is dropped.
    pub(super) _permit: CallPermit,
    /// The call itself, if it runs already.
    pub(super) prestarted: Option<PrestartedCall>,
}

/// A prepared call between [`Backend::prepare`](crate::server::Backend::prepare) and its runner.
pub(super) struct CallReservation(Mutex<Option<UpstreamCall>>);

/// A call that runs at the upstream before its task is stored. Dropping it cancels it, because no
/// runner would return its outcome.
pub(super) struct PrestartedCall(Option<StartedCall>);

/// What the runner of a prestarted call continues with.
pub(super) struct StartedCall {
    pub(super) active_call: ActiveCall,
    pub(super) running: CallFuture,
    permits: ConcurrencyPermits,
}

/// Drives the call to its end.
type CallFuture =
    Pin<Box<dyn Future<Output = (Result<Outcome, OutcomeError>, UpstreamController)> + Send>>;

impl UpstreamCall {
    /// A call that its runner prepares, without a request in this run of the process.
    pub(super) fn without_request(client: Arc<ClientHandle>, permit: CallPermit) -> Self {
        Self {
            client,
            connection: None,
            _permit: permit,
            prestarted: None,
        }
    }
}

impl CallReservation {
    pub(super) fn new(prepared: UpstreamCall) -> Self {
        Self(Mutex::new(Some(prepared)))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Option<UpstreamCall>) -> T) -> T {
        work(&mut self.0.lock())
    }
}

impl PrestartedCall {
    pub(super) fn into_started(mut self) -> Option<StartedCall> {
        self.0.take()
    }

    pub(super) fn take_permits(&mut self) -> ConcurrencyPermits {
        self.0
            .as_mut()
            .map(|started| std::mem::take(&mut started.permits))
            .unwrap_or_default()
    }
}

impl Drop for PrestartedCall {
    fn drop(&mut self) {
        let started = self.0.take();
        if let (Some(started), Ok(runtime)) = (started, tokio::runtime::Handle::try_current()) {
            // Dropping the registration makes the controller cancel the call.
            drop(started.active_call);
            runtime.spawn(started.running);
        }
    }
}

impl Upstream {
    /// Starts a call whose upstream creates a V1 task, if that is possible within
    /// [`PRESTART_TIMEOUT`].
    pub(super) async fn prestart_call(
        &self,
        reserved: &CallReservation,
        call: &Origin,
        ttl: u64,
    ) -> Result<PrestartInfo, Outcome> {
        let client_and_connection = reserved.with(|prepared| {
            let prepared = prepared.as_ref()?;
            Some((prepared.client.clone(), prepared.connection.clone()))
        });
        let Some((client, connection)) = client_and_connection else {
            return Ok(PrestartInfo::default());
        };
        let until = Instant::now() + PRESTART_TIMEOUT;
        let starting = self.start(call, ttl, &client, connection);
        let (mut started, mut status, connection) = match timeout_at(until, starting).await {
            Ok(Some(started)) => started?,
            // The runner gets the same error and reports it.
            Ok(None) | Err(_) => return Ok(PrestartInfo::default()),
        };
        // BR-CREATE-2: do not wait for a slower server.
        let first = timeout_at(until, async {
            tokio::select! {
                biased;
                ended = &mut started.running => Err(ended),
                view = status.wait_for(Option::is_some) => Ok(view.ok().and_then(|view| view.clone())),
            }
        });
        let view = match first.await {
            Ok(Ok(view)) => view,
            Ok(Err((Ok(refused @ Outcome::Error(..)), controller)))
                // The runner handles required url elicitations.
                if !controller.has_task() && !url_elicitation::requires_urls(&refused) =>
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
                .and_then(|reference| reattach::resume_state(&connection, reference)),
        })
    }

    /// Starts the call; `None` if that is not possible now. Dropping the future starts nothing.
    async fn start(
        &self,
        call: &Origin,
        ttl: u64,
        client: &Arc<ClientHandle>,
        connection: Option<Arc<UpstreamConnection>>,
    ) -> Option<
        Result<
            (
                StartedCall,
                watch::Receiver<Option<ExecutionStatus>>,
                Arc<UpstreamConnection>,
            ),
            Outcome,
        >,
    > {
        let permits = self.acquire_permits(call.tool.as_deref()).await;
        let connection = self.call_connection(connection, client).await.ok()?;
        let active_call = connection.reserve();
        // A V1 server sends no input requests before it starts.
        let request = self.build_call(
            &connection,
            &active_call,
            call,
            Some(ttl),
            client,
            InputRound::None,
        );
        let request = match request.check().await {
            Ok(request) => request,
            Err(refusal) => return Some(Err(self.not_sent(refusal))),
        };
        let (mut controller, status) =
            self.pending_controller(&connection, &active_call, call, client);
        let running = async move {
            let ended = request.drive(&mut controller).await;
            (ended, controller)
        };
        let started = StartedCall {
            active_call,
            running: Box::pin(running),
            permits,
        };
        Some(Ok((started, status, connection)))
    }
}

/// Takes what was prepared for this call. A call of a previous run of this process has nothing.
pub(super) fn take(cx: &CallContext) -> Option<UpstreamCall> {
    let arrival = cx.local_data::<RequestParts>()?;
    let reserved = arrival
        .reservation
        .as_ref()?
        .downcast_ref::<CallReservation>()?;
    reserved.with(Option::take)
}

/// How long to wait for an upstream to connect and to report its task.
const PRESTART_TIMEOUT: Duration = Duration::from_secs(3);
