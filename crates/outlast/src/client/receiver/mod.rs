//! Tasks that the client hosts for a server: its sampling and elicitation requests (seeds 000 and
//! 001).
//!
//! Each client has a separate engine for them, and each connection is a separate owner: no server
//! reaches the tasks of another server (S0-19), and a new session does not reach those of the
//! previous one. The tasks are not durable: they end with their connection.

mod abort;
mod options;
mod runner;
mod task_methods;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{EngineError, NewCall};
use outlast_engine::task::TtlPolicy;
use outlast_engine::{
    Engine, InputKind, InputKinds, MemoryStore, Origin, Owner, Policy, Quota, Scope,
};
use outlast_wire::v1::{ClientTasks, TaskRequest};
use outlast_wire::{Raw, object, v1};

use super::handler::{CONNECTION_ENDED, ClientHandler, ServerInputRequest};
use super::hosted_tasks::HostedTasks;
use super::rpc::RpcChannel;
use super::rpc_handler::HandlerReply;
use crate::engine_errors::to_wire;

pub(super) use abort::AbortReasons;
pub use options::{OnDecline, ReceiverOptions, ReceiverTtl, WaitingStatus};

/// Hosts tasks for a server.
pub(crate) struct Receiver {
    engine: Engine,
    options: ReceiverOptions,
    reasons: AbortReasons,
}

impl Receiver {
    /// Opens a receiver whose tasks run at `handler`.
    pub(crate) async fn open(
        options: ReceiverOptions,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<Self, EngineError> {
        let policy = Policy::default()
            .with_max_ttl(options.max_ttl)
            // Client-hosted tasks are kept for their TTL (S1-25).
            .with_ttl_policy(TtlPolicy::Strict)
            .with_poll_interval(options.poll_interval)
            .with_quota(Quota::default().with_owner_open(options.max_open_tasks));
        let reasons = AbortReasons::default();
        let runner = Arc::new(runner::HandlerRunner {
            handler,
            options: options.clone(),
            reasons: reasons.clone(),
        });
        let (engine, _) = Engine::builder(Arc::new(MemoryStore::new()))
            .policy(policy)
            .runner(RUNNER, runner)
            .open()
            .await?;
        Ok(Self {
            engine,
            options,
            reasons,
        })
    }

    /// Adds the task capabilities (S0-25, S0-26, S1-46): only for requests whose base capability is
    /// declared (S1-24), and never `tools.call` (S0-85).
    pub(crate) fn declare(capabilities: &Raw, accepts: InputKinds) -> Raw {
        let any = |kinds: &[InputKind]| kinds.iter().any(|kind| accepts.contains(*kind));
        let tasks = ClientTasks {
            list: true,
            cancel: true,
            sampling: any(&[InputKind::Sample, InputKind::SampleWithTools]),
            elicitation: any(&[InputKind::ElicitForm, InputKind::ElicitUrl]),
        };
        let declared = tasks.declare(capabilities.borrow());
        declared.unwrap_or_else(|_| capabilities.clone())
    }

    /// Creates a task for an input request that asks for one; otherwise returns the request (S0-21,
    /// S1-13).
    pub(crate) async fn create_task(
        self: &Arc<Self>,
        channel: &Arc<RpcChannel>,
        request: ServerInputRequest,
    ) -> Result<HandlerReply, ServerInputRequest> {
        // V1-CREATE-9.
        if request.kind == InputKind::Roots {
            return Err(request);
        }
        let task_request = match TaskRequest::read(request.params.as_ref().map(Raw::borrow)) {
            Ok(Some(task_request)) => task_request,
            Ok(None) => return Err(request),
            Err(error) => return Ok(HandlerReply::error(&error)),
        };
        let params = request.params.as_ref();
        let params = params.and_then(|params| object::remove(params.borrow(), &["task"]).ok());
        let request = ServerInputRequest { params, ..request };
        let owner = owner_of(channel);
        let mut call = NewCall::new(owner.clone(), origin(&request));
        // S1-25: evaluated for each task.
        let ttl_ms = task_request
            .ttl_ms
            .unwrap_or_else(|| self.options.ttl.millis());
        call.ttl = Some(Duration::from_millis(ttl_ms));
        call.local_data = Some(Arc::new(request));
        let created = match self.engine.create(call).await {
            Ok(created) => created,
            Err(error) => return Ok(HandlerReply::error(&to_wire(&error))),
        };
        let task = created.task();
        let text = task.id.text();
        let answer = v1::create_result(&task.view(&text, self.engine.now()), None);
        let (receiver, channel, id) = (self.clone(), channel.clone(), task.id);
        // S1-33: the create result goes out before the first notification.
        Ok(HandlerReply::result(answer).then(move |_| {
            tokio::spawn(receiver.send_status_changes(channel, Scope::OwnedBy(owner), id));
        }))
    }

    /// The hosted tasks of a connection, for the host program.
    pub(crate) fn hosted_tasks(&self, channel: &RpcChannel) -> HostedTasks {
        let message = self.options.waiting_message.clone();
        HostedTasks::new(self.engine.clone(), owner_of(channel))
            .of_receiver(message, self.reasons.clone())
    }

    /// Ends the tasks of a closed connection and deletes their records (S1-27, S1-58).
    pub(crate) async fn end_tasks(&self, channel: &RpcChannel) {
        let owner = owner_of(channel);
        let scope = Scope::OwnedBy(owner.clone());
        // Each round deletes what it has read, so the next one reads the rest.
        while let Ok(page) = self.engine.page(&owner, None, DELETE_PAGE_TASKS).await {
            let mut deleted = 0;
            for task in &page.tasks {
                let id = task.id();
                if task.ending().is_none() {
                    self.reasons.set(id, CONNECTION_ENDED);
                    // A task that ends by itself at this moment is deleted too.
                    let _ = self.engine.cancel_now(&scope, id).await;
                }
                if let Ok(true) = self.engine.delete_ended(&scope, id).await {
                    deleted += 1;
                }
            }
            if deleted == 0 {
                return;
            }
        }
    }
}

fn owner_of(channel: &RpcChannel) -> Owner {
    Owner::session(format!("connection-{}", channel.serial()))
}

fn origin(request: &ServerInputRequest) -> Origin {
    let mut origin = Origin::new(request.kind.method(), RUNNER, InputKinds::all());
    origin.params = request.params.clone();
    origin
}

/// How many tasks of a closed connection are deleted at a time.
const DELETE_PAGE_TASKS: usize = 100;

/// The name of the runner in the engine.
const RUNNER: &str = "host";
