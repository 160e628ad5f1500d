//! `tasks/get`, `tasks/list` and `tasks/cancel`: immediate replies, never a stream.

use outlast_engine::engine::{EngineError, TaskPage};
use outlast_engine::{Owner, TaskId};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{RawRef, codes, params, v1};

use super::LegacyRequest;
use crate::engine_errors::{cancel_to_wire, to_wire};
use crate::server::{McpServer, Reply, audit};

impl LegacyRequest<'_> {
    /// V1-GET-1, V1-GET-5, V1-META-6.
    pub(super) async fn get_task(self, params: Option<RawRef<'_>>) -> Reply {
        let id = match parse_task_id(params) {
            Ok(id) => id,
            Err(error) => return Reply::from(error),
        };
        match self
            .session
            .server
            .engine
            .get(&self.session.scope(), id)
            .await
        {
            Ok(task) => Reply::Result(v1::task(
                &task.view(&id.text(), self.session.server.engine.now()),
            )),
            Err(error) => self.error_reply(v1::method::GET, &error),
        }
    }

    /// V1-LIST-1 to V1-LIST-7.
    pub(super) async fn list_tasks(self, params: Option<RawRef<'_>>) -> Reply {
        let cursor = match params::cursor(params) {
            Ok(cursor) => cursor,
            Err(error) => return Reply::from(error),
        };
        match self
            .session
            .server
            .page(&self.session.owner, cursor.as_deref(), MAX_PAGE_TASKS)
            .await
        {
            Ok(page) => {
                let texts: Vec<_> = page.tasks.iter().map(|task| task.id().text()).collect();
                let now = self.session.server.engine.now();
                let views = page
                    .tasks
                    .iter()
                    .zip(&texts)
                    .map(|(task, text)| task.view(text, now));
                Reply::Result(v1::list_result(views, page.next.as_deref()))
            }
            Err(error) => Reply::from(to_wire(&error)),
        }
    }

    /// V1-CANCEL-1, V1-CANCEL-3, V1-CANCEL-7.
    pub(super) async fn cancel_task(self, params: Option<RawRef<'_>>) -> Reply {
        let id = match parse_task_id(params) {
            Ok(id) => id,
            Err(error) => return Reply::from(error),
        };
        match self
            .session
            .server
            .engine
            .cancel_now(&self.session.scope(), id)
            .await
        {
            Ok(task) => {
                let text = id.text();
                Reply::Result(v1::task(
                    &task.view(&text, self.session.server.engine.now()),
                ))
            }
            Err(error) => {
                self.audit_if_missing(v1::method::CANCEL, &error);
                let engine = &self.session.server.engine;
                Reply::from(cancel_to_wire(engine, &self.session.scope(), id, &error).await)
            }
        }
    }

    /// The reply for an engine error, with an audit event if the task does not exist.
    pub(super) fn error_reply(self, method: &str, error: &EngineError) -> Reply {
        self.audit_if_missing(method, error);
        Reply::from(to_wire(error))
    }

    fn audit_if_missing(self, method: &str, error: &EngineError) {
        if matches!(error, EngineError::NotFound) {
            audit::not_found(&self.session.owner, method);
        }
    }
}

impl McpServer {
    /// A page of the tasks of an owner at this endpoint.
    pub(in crate::server) async fn page(
        &self,
        owner: &Owner,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<TaskPage, EngineError> {
        let runner = self.backend.only_runner();
        let runner = runner.as_deref();
        self.engine
            .page_of_runner(owner, runner, cursor, limit)
            .await
    }
}

/// The task id in the params. A malformed id is an unknown task.
pub(super) fn parse_task_id(params: Option<RawRef<'_>>) -> Result<TaskId, ErrorObject> {
    params::task_id(params)?
        .parse()
        .map_err(|_| codes::task_not_found())
}

/// How many tasks are on a page.
const MAX_PAGE_TASKS: usize = 50;
