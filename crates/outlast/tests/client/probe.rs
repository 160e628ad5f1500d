//! A real server that creates tasks at the client: `examples/receiver_probe` in its own process. It
//! records what it sent and received (seed 001, S1-72 to S1-84).

use std::path::Path;
use std::time::Duration;

use outlast::client::{
    Client, ClientOptions, Execution, Inbox, InboxItemId, ReceiverOptions, ReceiverTtl, Target,
    TaskPreference,
};
use outlast::task::{InputKind, Outcome};
use outlast::transport::child::ChildOptions;
use outlast_testkit::example;
use serde_json::{Value, json};

use crate::harness::{TestInbox, raw, with_inbox};

const SAMPLING: &str = "sampling/createMessage";
const ELICITATION: &str = "elicitation/create";
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The time limit of a step.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// A client that hosts tasks, with an inbox, connected to a probe.
async fn client_with_probe(file: Option<&Path>) -> (Client, TestInbox) {
    let (inbox, options) = with_inbox();
    let receiver = ReceiverOptions::default()
        .with_poll_interval(Duration::from_millis(50))
        .with_ttl(ReceiverTtl::Fixed(Duration::from_secs(45)));
    let options = options.with_receiver_tasks(receiver);
    (connect(options, file).await, inbox)
}

async fn connect(options: ClientOptions, file: Option<&Path>) -> Client {
    let child = ChildOptions::new(example("receiver_probe")).args(file);
    Client::connect(Target::child(child), options)
        .await
        .unwrap()
}

async fn probe(client: &Client, arguments: Value) -> Execution {
    let call = client.call_tool("probe", Some(raw(arguments)));
    call.task(TaskPreference::Forbid).await.unwrap()
}

/// The server's record of one call.
struct ProbeRecord(Vec<Value>);

impl ProbeRecord {
    async fn of(call: Execution) -> Self {
        let settled = tokio::time::timeout(STEP_TIMEOUT, call.outcome()).await;
        let Outcome::Result(result) = settled.unwrap().unwrap() else {
            panic!("the probe has no result");
        };
        let result: Value = result.open().unwrap();
        let record = result["structuredContent"]["record"].as_array();
        Self(record.unwrap_or_else(|| panic!("{result}")).clone())
    }

    /// The responses to all requests of that method, in order.
    fn responses(&self, method: &str) -> Vec<&Value> {
        let sent = self.0.iter().map(|entry| &entry["sent"]);
        let sent = sent.filter(|request| request["method"] == method);
        let received = |id: &Value| {
            let mut received = self.0.iter().map(|entry| &entry["received"]);
            received.find(|message| message["id"] == *id).unwrap()
        };
        sent.map(|request| received(&request["id"])).collect()
    }

    /// The response to the only request of that method.
    fn response(&self, method: &str) -> &Value {
        let answers = self.responses(method);
        assert_eq!(answers.len(), 1, "{:?}", self.0);
        answers[0]
    }

    /// The created task, which is the immediate response to the request (S1-75).
    fn created_task(&self, method: &str) -> Value {
        assert_eq!(self.0[0]["sent"]["method"], method);
        let task = self.response(method)["result"]["task"].clone();
        assert_eq!(task["status"], "working");
        assert!(task["taskId"].as_str().unwrap().len() >= 22);
        task
    }

    /// The statuses of polls, or of notifications, without repetitions.
    fn statuses(&self, of_notifications: bool) -> Vec<String> {
        let received = self.0.iter().map(|entry| &entry["received"]);
        let shown = received.filter_map(|message| {
            if of_notifications {
                message["params"]["status"].as_str()
            } else {
                message["result"]["status"].as_str()
            }
        });
        let mut shown: Vec<_> = shown.map(str::to_owned).collect();
        shown.dedup();
        shown
    }

    /// The last status of the task in the list.
    fn listed_status(&self) -> Vec<&str> {
        let tasks = self.response("tasks/list")["result"]["tasks"].as_array();
        let tasks = tasks.unwrap().iter();
        tasks.filter_map(|task| task["status"].as_str()).collect()
    }
}

/// Waits until the server has recorded a matching line.
async fn until(file: &Path, wanted: impl Fn(&Value) -> bool) {
    let recorded = async {
        loop {
            let record = std::fs::read_to_string(file).unwrap();
            // The last line may be incomplete.
            let mut entries = record
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            if entries.any(|entry: Value| wanted(&entry)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(STEP_TIMEOUT, recorded).await.unwrap();
}

/// Waits until an item has left the inbox.
async fn until_removed(inbox: &Inbox, id: InboxItemId) {
    let waits = async {
        while inbox.item(id).is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(STEP_TIMEOUT, waits).await.unwrap();
}

#[tokio::test]
async fn a_server_creates_polls_and_fetches_a_sampling_task() {
    // S0-7 to S0-11, S0-96, S1-72 to S1-78, S1-80, S1-83, V1-NOTIF-6.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("record");
    let (client, inbox) = client_with_probe(Some(&file)).await;
    let call = probe(&client, json!({ "request": SAMPLING, "ttl": 60_000 })).await;
    let item = inbox.first().await;
    assert_eq!(item.request.kind, InputKind::Sample);
    // The user decides after the server has seen `input_required`.
    until(&file, |entry| {
        entry["received"]["result"]["status"] == "input_required"
    })
    .await;
    let said = json!({ "role": "assistant", "content": { "type": "text", "text": "Hello." }, "model": "m", "stopReason": "endTurn" });
    inbox.respond(item.id, raw(said.clone())).unwrap();
    let record = ProbeRecord::of(call).await;
    let task = record.created_task(SAMPLING);
    assert_eq!(task["ttl"], 60_000);
    let polled = record.statuses(false);
    let polled: Vec<_> = polled.iter().map(String::as_str).collect();
    assert!(
        polled.ends_with(&["input_required", "completed"]),
        "{polled:?}"
    );
    let notification = record.statuses(true);
    assert_eq!(notification[0], "input_required");
    assert_eq!(notification.last().unwrap(), "completed");
    let mut expected = said;
    expected["_meta"][RELATED] = json!({ "taskId": task["taskId"] });
    assert_eq!(record.response("tasks/result")["result"], expected);
    assert_eq!(record.listed_status(), ["completed"]);
    client.close().await;
}

#[tokio::test]
async fn a_server_gets_every_action_of_an_elicitation_task() {
    // S1-79, S1-60, S1-17, S1-51, V1-ELIC-7.
    let (client, inbox) = client_with_probe(None).await;
    for action in ["accept", "decline", "cancel"] {
        let call = probe(&client, json!({ "request": ELICITATION })).await;
        let item = inbox.first().await;
        let name = json!({ "action": "accept", "content": { "name": "Ann" } });
        match action {
            "accept" => inbox.respond(item.id, raw(name)).unwrap(),
            "decline" => inbox.decline(item.id).unwrap(),
            _ => inbox.cancel(item.id).unwrap(),
        }
        let record = ProbeRecord::of(call).await;
        let task = record.created_task(ELICITATION);
        // S1-83: the TTL that the client of this test chose.
        assert_eq!(task["ttl"], 45_000);
        let result = &record.response("tasks/result")["result"];
        assert_eq!(result["action"], action);
        assert_eq!(result["_meta"][RELATED]["taskId"], task["taskId"]);
        assert_eq!(result["content"].is_object(), action == "accept");
        assert!(
            record
                .listed_status()
                .iter()
                .all(|status| *status == "completed")
        );
    }
    client.close().await;
}

#[tokio::test]
async fn a_declined_sampling_task_fails_for_its_server() {
    // S0-14, S0-17, S0-75, S1-50, V1-SAMP-4.
    let (client, inbox) = client_with_probe(None).await;
    for closed in [false, true] {
        let call = probe(&client, json!({ "request": SAMPLING })).await;
        let item = inbox.first().await;
        if closed {
            inbox.cancel(item.id).unwrap();
        } else {
            inbox.decline(item.id).unwrap();
        }
        let record = ProbeRecord::of(call).await;
        let refused = json!({ "code": -1, "message": "User declined sampling request" });
        assert_eq!(record.response("tasks/result")["error"], refused);
        let last = record.responses("tasks/get").pop().unwrap()["result"].clone();
        assert_eq!(last["status"], "failed");
        assert_eq!(last["statusMessage"], "User declined sampling request");
        assert_eq!(record.statuses(true).last().unwrap(), "failed");
    }
    client.close().await;
}

#[tokio::test]
async fn a_cancelled_task_leaves_the_inbox() {
    // S0-95, S1-43, S1-45, S1-69, S0-39.
    let (client, inbox) = client_with_probe(None).await;
    for request in [SAMPLING, ELICITATION] {
        let call = probe(&client, json!({ "request": request, "then": "cancel" })).await;
        let item = inbox.first().await;
        let record = ProbeRecord::of(call).await;
        let cancels = record.responses("tasks/cancel");
        assert_eq!(cancels[0]["result"]["status"], "cancelled");
        assert_eq!(
            cancels[0]["result"]["statusMessage"],
            "Task cancelled by server"
        );
        assert_eq!(cancels[1]["error"]["code"], -32602);
        assert_eq!(record.response("tasks/result")["error"]["code"], -32603);
        let looks = record.responses("tasks/get");
        assert_eq!(looks.last().unwrap()["result"]["status"], "cancelled");
        assert_eq!(record.statuses(true).last().unwrap(), "cancelled");
        until_removed(&inbox, item.id).await;
    }
    client.close().await;
}

#[tokio::test]
async fn a_waiting_server_gets_the_expiry_error() {
    // S0-38, S0-66, S0-91, S1-19, S1-67.
    let (client, inbox) = client_with_probe(None).await;
    let arguments = json!({ "request": SAMPLING, "ttl": 300, "then": "wait" });
    let call = probe(&client, arguments).await;
    let item = inbox.first().await;
    let record = ProbeRecord::of(call).await;
    assert_eq!(record.created_task(SAMPLING)["ttl"], 300);
    assert_eq!(record.response("tasks/result")["error"]["code"], -32602);
    assert_eq!(record.response("tasks/get")["error"]["code"], -32602);
    assert!(record.listed_status().is_empty());
    // S1-45: a late response has no recipient.
    assert!(inbox.decline(item.id).is_err());
    client.close().await;
}

#[tokio::test]
async fn input_requests_of_a_dead_server_leave_the_inbox() {
    // S1-11, S1-27, S1-58.
    let (client, inbox) = client_with_probe(None).await;
    let call = probe(&client, json!({ "request": SAMPLING, "then": "leave" })).await;
    let item = inbox.first().await;
    assert!(call.outcome().await.is_err());
    until_removed(&inbox, item.id).await;
}

#[tokio::test]
async fn closing_the_client_empties_the_inbox() {
    // S1-11, S1-58: also for a server that is waiting for a result.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("record");
    let (client, inbox) = client_with_probe(Some(&file)).await;
    let arguments = json!({ "request": ELICITATION, "then": "wait" });
    let call = probe(&client, arguments).await;
    let item = inbox.first().await;
    client.close().await;
    assert!(call.outcome().await.is_err());
    assert!(inbox.decline(item.id).is_err());
    until(&file, |entry| entry["ended"] == true).await;
}

#[tokio::test]
async fn a_client_without_receiver_tasks_declares_none() {
    // S1-23, S1-84: the client declares, the server only reads.
    let (_, options) = with_inbox();
    let client = connect(options, None).await;
    let call = probe(&client, json!({ "request": SAMPLING })).await;
    let Ok(Outcome::Result(result)) = call.outcome().await else {
        panic!("the probe has no result");
    };
    assert!(result.as_str().contains("the client takes no such tasks"));
    client.close().await;
}
