//! The actions of a client before and after the gateway is killed.

use std::time::Duration;

use outlast_testkit::mcp::caller::{self, CallEnd, Caller, ClientKind};
use serde_json::{Value, json};

/// How a client whose call was interrupted continues.
pub(crate) enum Continuation {
    /// With the name of a task or a ticket.
    Task(Value),
    /// The client knows no task, and can only list tasks.
    Nothing,
    /// With a retry and input responses: the params of the call, and the result with the input
    /// requests.
    Retry(Value, Value),
}

/// The task that a response names.
pub(crate) fn task_in(answer: &Value) -> Option<Value> {
    let task = caller::task_in(answer)?;
    Some(json!({ "taskId": task }))
}

/// The status of a task, in the words of the client's generation.
pub(crate) async fn status(caller: &mut Caller, task: &Value) -> String {
    let got = if caller.kind.has_tasks() {
        caller.request("tasks/get", task.clone()).await
    } else {
        let status = json!({ "name": "task_status", "arguments": task });
        caller.request("tools/call", status).await["result"]["structuredContent"].clone()
    };
    got.to_string()
}

/// Polls until a task has this status.
pub(crate) async fn until(caller: &mut Caller, task: &Value, word: &str) {
    let mut last_status = String::new();
    for _ in 0..1_500 {
        last_status = status(caller, task).await;
        if last_status.contains(word) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{task} is not {word} but {last_status}");
}

/// The names of all tasks that the client can list.
pub(crate) async fn listed_names(caller: &mut Caller) -> Vec<Value> {
    let all = match caller.kind {
        ClientKind::V1 => caller.request("tasks/list", json!({})).await["result"].clone(),
        // V2 has no list (BR-LT-2).
        ClientKind::V2 => return Vec::new(),
        ClientKind::PlainLegacy | ClientKind::PlainModern => {
            let status = json!({ "name": "task_status", "arguments": {} });
            caller.request("tools/call", status).await["result"]["structuredContent"].clone()
        }
    };
    let tasks = all["tasks"].as_array().unwrap_or_else(|| panic!("{all}"));
    let name = |task: &Value| json!({ "taskId": task["taskId"] });
    tasks.iter().map(name).collect()
}

/// Answers and polls a task until its end.
pub(crate) async fn end_of(caller: &mut Caller, task: &Value) -> CallEnd {
    let begun = match caller.kind {
        ClientKind::V1 => json!({ "result": { "task": task } }),
        ClientKind::V2 => json!({ "result": { "resultType": "task", "taskId": task["taskId"] } }),
        ClientKind::PlainLegacy | ClientKind::PlainModern => return caller.wait(task).await,
    };
    caller.finish(json!({}), begun).await
}

/// The end of the call, as its client finds it.
pub(crate) async fn end_of_call(caller: &mut Caller, continuation: &Continuation) -> CallEnd {
    match continuation {
        Continuation::Task(task) => end_of(caller, task).await,
        Continuation::Nothing => match &listed_names(caller).await[..] {
            [task] => end_of(caller, task).await,
            other => panic!("there are {other:?}"),
        },
        Continuation::Retry(params, request) => {
            caller.finish(params.clone(), request.clone()).await
        }
    }
}
