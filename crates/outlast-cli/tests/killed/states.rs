//! The states of a call in which the gateway is killed, how a client reaches them, and the expected
//! result.

use std::time::Duration;

use outlast_testkit::mcp::caller::{CallEnd, Caller, ClientKind, accepting};
use outlast_testkit::mcp::endpoint::Transport;
use serde_json::{Value, json};

use crate::cell::{Cell, Recovery, ServerKind};
use crate::client::{Continuation, end_of, end_of_call, listed_names, status, task_in, until};
use crate::gateway::ATTACHED;
use crate::harness::Harness;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallState {
    /// The server runs it, and no client has a handle.
    Unstored,
    Working,
    Asked,
    Answered,
    Finished,
}

pub(crate) const CALL_STATES: [CallState; 5] = [
    CallState::Unstored,
    CallState::Working,
    CallState::Asked,
    CallState::Answered,
    CallState::Finished,
];

impl CallState {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Unstored => "before it is stored",
            Self::Working => "working",
            Self::Asked => "input required",
            Self::Answered => "answered",
            Self::Finished => "finished",
        }
    }
}

/// One interrupted call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) cell: Cell,
    pub(crate) state: CallState,
    /// Whether the tool is read-only.
    pub(crate) may_repeat: bool,
}

impl Case {
    /// Starts a call, kills the gateway in the state, and checks the result.
    pub(crate) async fn run(self) {
        // Long enough that nothing is stored, or so short that everything is.
        let grace = if self.state == CallState::Unstored {
            60_000
        } else {
            50
        };
        let mut harness = Harness::new(self.cell, grace);
        let mut caller = harness.caller(self.cell).await;
        let continuation = self.reach(&harness, &mut caller).await;
        caller.disconnect();
        harness.kill_and_start();
        caller.reconnect(&harness.endpoint()).await;
        caller.leaves_input_open = false;
        self.check(&harness, &mut caller, continuation).await;
    }

    fn params(self) -> Value {
        let tool = if self.may_repeat { "reads" } else { "once" };
        let arguments = match self.state {
            CallState::Asked | CallState::Answered => json!({ "ask": true }),
            _ => json!({}),
        };
        json!({ "name": tool, "arguments": arguments })
    }

    /// Brings a call into the state.
    async fn reach(self, harness: &Harness, caller: &mut Caller) -> Continuation {
        let mut params = self.params();
        if self.cell.client == ClientKind::V1 {
            params["task"] = json!({});
        }
        caller.leaves_input_open = self.state == CallState::Asked;
        let id = caller.send("tools/call", params.clone()).await;
        let kind = self.cell.client;
        match self.state {
            CallState::Unstored => {
                // A call that requests a task is stored before the server receives it, so this
                // state does not exist.
                if kind != ClientKind::V1 {
                    harness.until_runs(1).await;
                }
                return Continuation::Nothing;
            }
            CallState::Asked if kind == ClientKind::PlainLegacy => {
                caller.wait_for_notification("elicitation/create").await;
                harness.until_stored("state = 'awaiting_input'").await;
                self.until_attached(harness).await;
                return Continuation::Nothing;
            }
            _ => {}
        }
        let mut begun = caller.response_to(id).await;
        let is_asked = begun["result"]["resultType"] == "input_required";
        match self.state {
            // The input request comes before the task, or without one.
            CallState::Asked if is_asked => return Continuation::Retry(params, begun),
            CallState::Answered if is_asked => {
                begun = caller.retry(params, &begun["result"]).await;
            }
            _ => {}
        }
        let task = task_in(&begun).unwrap_or_else(|| panic!("{begun}"));
        match self.state {
            CallState::Asked => until(caller, &task, "input_required").await,
            CallState::Answered => answer(caller, &task, harness).await,
            CallState::Finished => {
                harness.release_calls();
                until(caller, &task, "completed").await;
            }
            CallState::Working | CallState::Unstored => {}
        }
        harness.until_runs(1).await;
        if self.state != CallState::Finished {
            self.until_attached(harness).await;
        }
        Continuation::Task(task)
    }

    /// Waits until the gateway has stored the handle of the server's task, which the server creates
    /// after its own grace period.
    async fn until_attached(self, harness: &Harness) {
        if self.cell.recovery(self.may_repeat) == Recovery::Resumed {
            harness.until_stored(ATTACHED).await;
        }
    }

    async fn check(self, harness: &Harness, caller: &mut Caller, continuation: Continuation) {
        if self.state == CallState::Unstored {
            return self.check_unstored(harness, caller).await;
        }
        let recovery = self.recovery(&continuation);
        if self.state == CallState::Answered {
            // Input requests now come from a new attempt.
            caller.responder = match recovery {
                Recovery::RunsAgain => accepting,
                _ => |method, _| panic!("{method} was answered before"),
            };
        }
        harness.release_calls();
        let ended = end_of_call(caller, &continuation).await;
        let runs = match recovery {
            Recovery::RunsAgain => 2,
            Recovery::Resumed | Recovery::Unknown => 1,
        };
        match (recovery, &ended) {
            (Recovery::Resumed | Recovery::RunsAgain, CallEnd::Result(result)) => {
                assert_eq!(result["content"][0]["text"], "through", "{result}");
            }
            (Recovery::Unknown, CallEnd::Error(-32603 | -32602, why)) => {
                assert!(why.contains("unknown"), "{why}");
            }
            (recovery, ended) => panic!("{recovery:?} was promised, and it ended with {ended:?}"),
        }
        // Long enough for a second call, which would be an error.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(harness.runs(), runs, "runs");
    }

    /// The guaranteed result of a call in this state.
    fn recovery(self, continuation: &Continuation) -> Recovery {
        let Cell {
            server,
            server_transport,
            ..
        } = self.cell;
        match (self.state, continuation) {
            (CallState::Finished, _) => Recovery::Resumed,
            // A suspended call has no task, and a retry never runs it a second time.
            (CallState::Asked, Continuation::Retry(..)) => Recovery::Unknown,
            // Input requests of a modern server without tasks outlive the gateway, as long as the
            // server keeps its state.
            (CallState::Asked, _)
                if server == ServerKind::PlainModern && server_transport == Transport::Http =>
            {
                Recovery::Resumed
            }
            _ => self.cell.recovery(self.may_repeat),
        }
    }

    /// No task was acknowledged, so none exists or it ends by the rules; and the gateway works.
    async fn check_unstored(self, harness: &Harness, caller: &mut Caller) {
        harness.release_calls();
        tokio::time::sleep(Duration::from_millis(500)).await;
        for task in listed_names(caller).await {
            match end_of(caller, &task).await {
                CallEnd::Result(_) => {}
                CallEnd::Error(-32603, why) if why.contains("unknown") => {}
                other => panic!("{other:?}"),
            }
        }
        let before = harness.runs();
        assert!(
            before <= if self.may_repeat { 2 } else { 1 },
            "{before} runs"
        );
        let ended = caller.call("reads", json!({})).await;
        assert!(matches!(ended, CallEnd::Result(_)), "{ended:?}");
        assert_eq!(harness.runs(), before + 1);
    }
}

/// Answers the input request of a task, and waits until the tool has the response.
async fn answer(caller: &mut Caller, task: &Value, harness: &Harness) {
    let mut answered = Vec::new();
    for _ in 0..1_500 {
        if harness.is_answered() {
            return;
        }
        if caller.kind == ClientKind::V2 {
            let got = caller.request("tasks/get", task.clone()).await;
            let asks = &got["result"]["inputRequests"];
            if asks.is_object() {
                caller.update(&task["taskId"], asks, &mut answered).await;
            }
        } else {
            // An input request that arrives as a request is answered while the client reads.
            status(caller, task).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{task} has no answer");
}
