//! `tools/call`: one way to run it, two ways to deliver it (S2-11, S2-38).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{Event, NewCall, RunningCall};
use outlast_engine::{Accepts, Committed, Outcome, Task};
use outlast_wire::envelope::{Id, write};
use outlast_wire::v1::{TaskRequest, TaskSupport};
use outlast_wire::{Raw, Status, codes, meta, notice, v1};

use crate::front::errors::to_wire;
use crate::front::follow::{progress_params, question_id};
use crate::front::{RUNNER, Reply, Session, StreamId, audit};
use crate::tools::Tool;

impl Session {
    pub(super) async fn call_tool(
        self: &Arc<Self>,
        params: Option<Raw>,
        tasks: bool,
        stream: StreamId,
    ) -> Reply {
        let Some(params) = params else {
            return Reply::from(codes::invalid_params("`name` must be a string"));
        };
        let Some(name) = outlast_wire::tool::called(params.borrow()) else {
            return Reply::from(codes::invalid_params("`name` must be a string"));
        };
        let Some(tool) = self.front.tools.get(&name) else {
            return Reply::from(codes::invalid_params(format!("unknown tool: {name}")));
        };
        // V1-CAP-11: without the capability, `task` is not even looked at.
        let wish = match tasks
            .then(|| TaskRequest::read(Some(params.borrow())))
            .transpose()
        {
            Ok(wish) => wish.flatten(),
            Err(error) => return Reply::from(error),
        };
        match (wish, tool.support()) {
            (Some(_), TaskSupport::Forbidden) => {
                // V1-TOOL-3: before anything runs.
                let why = format!("tool {name} does not run as a task; call it without `task`");
                return Reply::from(refused(why));
            }
            (None, TaskSupport::Required) if tasks => {
                // V1-TOOL-6.
                let why = format!("tool {name} runs only as a task; call it with `task`");
                return Reply::from(refused(why));
            }
            _ => {}
        }
        let token = meta::progress_token(params.borrow());
        let mut call = self.new_call(tool, params.clone(), token.as_ref());
        match wish {
            Some(wish) => {
                call.ttl = wish.ttl_ms;
                self.create(call, tool.immediate_response()).await
            }
            None => match self.front.engine.start(call) {
                Ok(running) => self.run_plainly(running, token, stream).await,
                Err(error) => Reply::from(to_wire(&error)),
            },
        }
    }

    fn new_call(&self, tool: &Tool, params: Raw, token: Option<&Id>) -> NewCall {
        let accepts = self.peer().map_or(Accepts::NONE, |peer| peer.accepts());
        let mut origin = self
            .front
            .tools
            .origin(RUNNER, tool.name(), params, accepts);
        origin.progress_token = token.map(Id::to_raw);
        NewCall::new(self.owner.clone(), origin)
    }

    /// Stored, then answered: the handle works when the client has it (V1-CREATE-12).
    async fn create(self: &Arc<Self>, call: NewCall, immediate: Option<&str>) -> Reply {
        match self.front.engine.create(call).await {
            Ok(created) => {
                let task = created.task();
                audit::created(&self.owner, task.id);
                // The creation itself says that it works.
                self.front
                    .follow(self, task.id, Some((Status::Working, None)));
                Reply::Result(accepted(task, immediate))
            }
            Err(error) => Reply::from(to_wire(&error)),
        }
    }

    /// Runs a call whose caller waits: progress, log messages and questions travel before the answer, on its stream.
    /// Dropping this stops the work.
    async fn run_plainly(
        &self,
        mut running: RunningCall,
        token: Option<Id>,
        stream: StreamId,
    ) -> Reply {
        let call = running.id();
        let mut answers = self.expect_answers(call);
        let mut asked = BTreeSet::new();
        let mut unheard = 0;
        loop {
            tokio::select! {
                biased;
                event = running.event() => match event {
                    Some(Event::Progress(progress)) => {
                        let params = token.as_ref().and_then(|token| progress_params(token, &progress, None));
                        if let Some(params) = params {
                            let line = write::notification(notice::PROGRESS, Some(params.borrow()));
                            self.board.send(stream, line);
                        }
                    }
                    Some(Event::Plain(state)) => {
                        for ask in state.outstanding().into_iter().flat_map(|all| all.views()) {
                            if asked.insert(ask.key.to_owned()) {
                                let params = ask.params.map(Raw::borrow);
                                let line = write::request(&question_id(call, ask.key), ask.method, params);
                                self.board.send(stream, line);
                            }
                        }
                    }
                    Some(Event::Log(log)) => {
                        if let Some(line) = self.log_line(&log, None) {
                            self.board.send(stream, line);
                        }
                    }
                    Some(Event::Stored(_)) => {}
                    None => return delivered(running.outcome().await),
                },
                // A question that nobody can hear is not waited for for ever; a stream may be resumed meanwhile.
                () = tokio::time::sleep(LOOK), if !asked.is_empty() => {
                    unheard = if self.board.is_live(stream) { 0 } else { unheard + 1 };
                    if unheard >= LOOKS {
                        return Reply::Nothing;
                    }
                }
                Some((key, answer)) = answers.next() => {
                    // A question that is not open any more takes no answer.
                    let _ = running.answer([(key, answer)].into()).await;
                }
            }
        }
    }
}

/// Only a task that is stored is announced.
fn accepted(task: &Committed<Task>, immediate: Option<&str>) -> Raw {
    let text = task.id.text();
    v1::create_result(&task.view(&text), immediate)
}

/// An outcome as the answer to the request itself.
fn delivered(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Result(body) | Outcome::ToolError(body, _) => Reply::Result(body),
        Outcome::Error(error, ..) => Reply::Error(error),
        Outcome::Cancelled => Reply::from(codes::internal("the call was cancelled")),
    }
}

/// -32601 with a reason that says what to do.
fn refused(why: String) -> outlast_wire::envelope::ErrorObject {
    outlast_wire::envelope::ErrorObject::new(codes::METHOD_NOT_FOUND, why)
}

/// How often a call that has asked looks whether its caller is still there.
const LOOK: Duration = Duration::from_secs(30);

/// How many looks in a row may find nobody.
const LOOKS: u32 = 10;
