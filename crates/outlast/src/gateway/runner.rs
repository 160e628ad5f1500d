//! Sends the requests of clients to the upstream.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, Progress, Runner};
use outlast_engine::task::ResumeState;
use outlast_engine::{Attempt, Origin, Outcome};
use outlast_wire::{Raw, codes, log, meta, method, object, tool};

use super::connection::UpstreamConnection;
use super::upstream_call::{self, UpstreamCall};
use super::{ConcurrencyPermits, Upstream, errors, list, result};
use crate::client::{OmittedParams, ParamChanges};
use crate::server::{ClientHandle, RequestParts};

#[async_trait]
impl Runner for Upstream {
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        if &*call.method != tool::CALL {
            let client = caller(&call, &cx);
            let Some(_permits) = self.permits_unless_cancelled(&call, &cx).await else {
                return Outcome::Cancelled;
            };
            return self.request(&call, &cx, &client).await;
        }
        let mut prepared = match upstream_call::take(&cx) {
            Some(prepared) => prepared,
            None => {
                let client = caller(&call, &cx);
                let name = call.tool.as_deref().unwrap_or_default();
                if !self.settings.allows(client.owner(), name) {
                    return codes::invalid_params(format!("unknown tool: {name}")).into();
                }
                let permit = if cx.attempt() == Attempt(1) {
                    self.admit(client.owner())
                } else {
                    // The previous attempt was admitted.
                    Ok(self.admit_again(client.owner()))
                };
                match permit {
                    Ok(permit) => UpstreamCall::without_request(client, permit),
                    Err(error) => return error.into(),
                }
            }
        };
        let permits = match &mut prepared.prestarted {
            Some(prestarted) => Some(prestarted.take_permits()),
            None => self.permits_unless_cancelled(&call, &cx).await,
        };
        let Some(_permits) = permits else {
            return Outcome::Cancelled;
        };
        let client = prepared.client.clone();
        result::outcome(self.call(&call, &cx, prepared).await, &client)
    }

    async fn reattach(
        &self,
        call: Arc<Origin>,
        handle: ResumeState,
        cx: CallContext,
    ) -> Option<Outcome> {
        let client = caller(&call, &cx);
        let prepared =
            UpstreamCall::without_request(client.clone(), self.admit_again(client.owner()));
        // The call already runs at the upstream, so it does not wait for a permit.
        let _permits = self.free_permits(call.tool.as_deref());
        let outcome = self.resume_call(&handle, &call, &cx, prepared).await?;
        Some(result::outcome(outcome, &client))
    }

    /// Every stored resume state can be used. Only tasks of an upstream at a URL have one: a task
    /// of a child process ends with the process.
    fn can_reattach(&self) -> bool {
        true
    }

    /// Time to cancel the call at the upstream.
    fn cleanup_timeout(&self) -> Duration {
        CLEANUP_TIMEOUT
    }
}

impl Upstream {
    /// Waits until the call can start; `None` if it is cancelled before.
    async fn permits_unless_cancelled(
        &self,
        call: &Origin,
        cx: &CallContext,
    ) -> Option<ConcurrencyPermits> {
        tokio::select! {
            biased;
            permits = self.acquire_permits(call.tool.as_deref()) => Some(permits),
            () = cx.cancelled() => None,
        }
    }

    /// Sends any request except a tool call.
    async fn request(
        &self,
        call: &Origin,
        cx: &CallContext,
        client: &Arc<ClientHandle>,
    ) -> Outcome {
        let connection = match self.connection(client).await {
            Ok(connection) => connection,
            Err(error) => return error.into(),
        };
        let mut changes = ParamChanges {
            omit: CLIENT_HOP_PARAMS,
            ..ParamChanges::default()
        };
        if list::is_list(&call.method) {
            match list::upstream_cursor(call.params.as_ref()) {
                Ok(cursor) => changes.set.extend(cursor.map(|cursor| ("cursor", cursor))),
                Err(error) => return error.into(),
            }
        }
        if let Some(answered) = self.session_request(&connection, client, call).await {
            return answered;
        }
        let level = connection.log_level(client);
        changes
            .set_meta
            .extend(level.map(|level| (meta::LOG_LEVEL, level)));
        let active_call = connection.begin(cx);
        let call_context = cx.clone();
        let request = connection
            .upstream
            .long_request(&call.method, call.params.clone())
            .changed(changes)
            .keeping_type()
            .named(active_call.name())
            .progress(move |progress| {
                call_context.progress(Progress {
                    done: progress.progress,
                    total: progress.total,
                    message: progress.message.map(Into::into),
                });
            });
        let answered = tokio::select! {
            biased;
            answered = request.into_future() => answered,
            // Dropping the request cancels it at the upstream.
            () = cx.cancelled() => return Outcome::Cancelled,
        };
        match answered {
            Ok(answer) => {
                if &*call.method == log::SET_LEVEL {
                    connection.set_log_level(call);
                }
                let cursor = if list::is_list(&call.method) {
                    list::our_cursor(answer.borrow())
                } else {
                    None
                };
                let set = cursor.as_ref().map(|cursor| ("nextCursor", cursor));
                Outcome::Result(result::for_client(answer, client, set.as_slice()))
            }
            Err(fault) => errors::translate(
                result::of_client_error(&self.name, fault),
                &connection,
                client,
            ),
        }
    }
}

impl Upstream {
    /// Answers a request that configures a session; `None` for any other request. Several sessions
    /// share a connection, so the upstream gets only the first subscription to a resource and the
    /// last unsubscription. In the modern era the log level is sent with every request (BR-LG-1).
    async fn session_request(
        &self,
        connection: &UpstreamConnection,
        client: &ClientHandle,
        call: &Origin,
    ) -> Option<Outcome> {
        let member = |name| object::find(call.params.as_ref()?.borrow(), &[name])?.text();
        let done = match &*call.method {
            log::SET_LEVEL if connection.server().is_modern() => {
                connection.set_log_level(call);
                Ok(())
            }
            method::RESOURCES_SUBSCRIBE => {
                connection
                    .subscribe(client.session(), &member("uri")?)
                    .await
            }
            method::RESOURCES_UNSUBSCRIBE => {
                connection
                    .unsubscribe(client.session(), &member("uri")?)
                    .await
            }
            _ => return None,
        };
        Some(match done {
            Ok(()) => Outcome::Result(Raw::empty_object()),
            Err(fault) => result::of_client_error(&self.name, fault),
        })
    }
}

/// The caller, or a substitute if the call comes from a previous run of this process.
fn caller(call: &Origin, cx: &CallContext) -> Arc<ClientHandle> {
    match cx.local_data::<RequestParts>() {
        Some(arrival) => arrival.client.clone(),
        None => Arc::new(ClientHandle::absent(cx.owner().clone(), call.accepts)),
    }
}

/// What belongs to the hop between client and gateway and is not sent to the upstream (BR-GEN-1,
/// BR-CREATE-3).
pub(super) const CLIENT_HOP_PARAMS: OmittedParams = OmittedParams {
    members: &["task", "inputResponses", "requestState"],
    meta: &[
        meta::PROGRESS_TOKEN,
        meta::PROTOCOL_VERSION,
        meta::CLIENT_CAPABILITIES,
        meta::CLIENT_INFO,
        meta::RELATED_TASK,
    ],
};

/// How long a call can run after its task has ended, to cancel at the upstream.
pub(super) const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);
