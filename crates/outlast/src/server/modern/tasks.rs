//! `tasks/get`, `tasks/update` and `tasks/cancel`: immediate replies in every state of the task.

use outlast_engine::engine::EngineError;
use outlast_engine::store::Snapshot;
use outlast_engine::{Scope, TaskId};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::neutral::InputRequestView;
use outlast_wire::{Raw, RawRef, codes, params, v2};

use super::finish::DraftReply;
use super::{ModernRequest, input_responses};
use crate::engine_errors::to_wire;
use crate::server::McpServer;

impl ModernRequest {
    /// V2-GET-1 to V2-GET-7, V2-GET-12.
    pub(super) async fn get_task(
        &self,
        params: Option<RawRef<'_>>,
    ) -> Result<DraftReply, ErrorObject> {
        let found = self.find(&params::task_id(params)?).await?;
        self.server
            .detailed(&found, v2::get_result)
            .await
            .map(DraftReply::Local)
    }

    /// V2-UPD-9 to V2-UPD-18: the input responses are durable when this is acknowledged.
    pub(super) async fn update_task(
        &self,
        params: Option<RawRef<'_>>,
    ) -> Result<DraftReply, ErrorObject> {
        let update = v2::Update::read(params)?;
        let found = self.find(&update.task).await?;
        self.respond_to_task(&found, update.input_responses).await?;
        Ok(DraftReply::Final(v2::ack()))
    }

    /// Applies input responses to the open requests of a task.
    pub(super) async fn respond_to_task(
        &self,
        found: &Snapshot,
        answers: Vec<v2::InputResponseEntry>,
    ) -> Result<(), ErrorObject> {
        let open = match found {
            Snapshot::Open(task) => task.outstanding(),
            Snapshot::Ended(_) => None,
        };
        let answers = input_responses::matching(open, answers)?;
        if !answers.is_empty() {
            let scope = Scope::OwnedBy(found.owner().clone());
            let answered = self
                .server
                .engine
                .provide_input(&scope, found.id(), answers)
                .await;
            answered.map_err(|error| to_wire(&error))?;
        }
        Ok(())
    }

    /// V2-CANCEL-2 to V2-CANCEL-8: the cancel request is durable when this is acknowledged. A task
    /// that has ended is not changed.
    pub(super) async fn cancel_task(
        &self,
        params: Option<RawRef<'_>>,
    ) -> Result<DraftReply, ErrorObject> {
        let found = self.find(&params::task_id(params)?).await?;
        let scope = Scope::OwnedBy(found.owner().clone());
        match self.server.engine.request_cancel(&scope, found.id()).await {
            Ok(()) => Ok(DraftReply::Final(v2::ack())),
            Err(error) => Err(to_wire(&error)),
        }
    }

    /// The task with this id, if the caller may access it. All other cases give the same error.
    pub(super) async fn find(&self, name: &str) -> Result<Snapshot, ErrorObject> {
        let id: TaskId = name.parse().map_err(|_| codes::task_not_found())?;
        match self.server.engine.get(&self.caller.scope(), id).await {
            Ok(found) if self.caller.may_see(found.owner()) => Ok(found),
            Ok(_) => Err(codes::task_not_found()),
            Err(error) => Err(to_wire(&error)),
        }
    }
}

impl McpServer {
    /// Writes a task with its input requests or its outcome.
    pub(super) async fn detailed(
        &self,
        task: &Snapshot,
        write: impl FnOnce(
            &outlast_wire::neutral::TaskView<'_>,
            Option<&Raw>,
            &[InputRequestView<'_>],
        ) -> Result<Raw, v2::Unwritable>,
    ) -> Result<Raw, ErrorObject> {
        let text = task.id().text();
        let view = task.view(&text, self.engine.now());
        let written = match task {
            Snapshot::Open(task) => {
                let asks = task.outstanding().into_iter().flat_map(|all| all.views());
                write(&view, None, &asks.collect::<Vec<_>>())
            }
            Snapshot::Ended(summary) if !summary.ending.has_body() => write(&view, None, &[]),
            Snapshot::Ended(summary) => {
                let scope = Scope::OwnedBy(summary.owner.clone());
                match self.engine.store().body(&scope, summary.id).await {
                    Ok(Some(body)) => write(&view, Some(&body), &[]),
                    // It expired after the first read.
                    Ok(None) => return Err(to_wire(&EngineError::Expired)),
                    Err(error) => return Err(to_wire(&error.into())),
                }
            }
        };
        written.map_err(|error| codes::internal(error.to_string()))
    }
}
