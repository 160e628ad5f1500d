//! The gateway is killed while a relay runs: the host keeps its connection.

use outlast_testkit::until;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    call_echo, close_host, gateway_pid, kill_gateway, start_host, status, stdout_of,
};

#[test]
fn a_host_keeps_its_server_when_the_gateway_is_killed() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut host = start_host(home);
    // A task that has ended, one that may run again, and one that may not.
    let ended = host.task("wait", json!({ "ms": 1 }));
    let result = host.call("tasks/result", json!({ "taskId": ended }));
    assert_eq!(result["result"]["content"][0]["text"], "waited", "{result}");
    let gate = home.join("gate");
    let again = host.task("read", json!({ "file": gate }));
    let once = host.task("wait", json!({ "ms": 3_600_000 }));
    let waiting = host.send("tasks/result", json!({ "taskId": again }));
    let plain = host.send(
        "tools/call",
        json!({ "name": "wait", "arguments": { "ms": 3_600_000 } }),
    );
    until("all calls run", || status(home)["gateway"]["calls"] == 3);
    let before = kill_gateway(home);
    // The outcome of the call without a task is unknown. Its caller gets an error with its id.
    let lost = host.response_to(plain);
    assert_eq!(lost["error"]["code"], -32603, "{lost}");
    let why = lost["error"]["message"].as_str().expect("a text");
    assert!(why.contains("outcome is unknown"), "{why}");
    assert_eq!(lost["error"]["data"]["outcome"], "unknown", "{lost}");
    // The wait for the task continues, and the call runs again at the same server.
    std::fs::write(&gate, "").expect("it is written");
    let result = host.response_to(waiting);
    assert_eq!(result["result"]["content"][0]["text"], "read", "{result}");
    let task = host.call("tasks/get", json!({ "taskId": once }));
    assert_eq!(task["result"]["status"], "failed", "{task}");
    let result = host.call("tasks/result", json!({ "taskId": ended }));
    assert_eq!(result["result"]["content"][0]["text"], "waited", "{result}");
    call_echo(&mut host, "still here");
    assert_ne!(gateway_pid(home), before);
    // The host received one response for each request, and no second result of `initialize`.
    assert!(
        host.early()
            .iter()
            .all(|message| message.get("method").is_some()),
        "{:?}",
        host.early()
    );
    close_host(host);
}

#[test]
fn a_gateway_ends_when_its_folder_is_deleted() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut host = start_host(home);
    // A task that runs keeps the gateway running.
    host.task("wait", json!({ "ms": 3_600_000 }));
    let gateway = gateway_pid(home);
    close_host(host);
    std::fs::remove_dir_all(home.join("outlast")).expect("it is deleted");
    until("the gateway ends", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", gateway.as_raw_nonzero()));
        // A process that no other process waits for stays as a zombie.
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
}

#[test]
fn an_input_request_of_a_task_survives_the_gateway() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut host = start_host(home);
    let task = host.task("ask", json!({}));
    let waiting = host.send("tasks/result", json!({ "taskId": task }));
    let input_request = host.next_request();
    assert_eq!(
        input_request["method"], "elicitation/create",
        "{input_request}"
    );
    kill_gateway(home);
    let result = host.response_to(waiting);
    // It did not run again, because its tool does not allow that.
    assert!(
        result["error"]["message"]
            .as_str()
            .is_some_and(|why| why.contains("unknown")),
        "{result}"
    );
    let requests = host
        .early()
        .iter()
        .filter(|message| message["id"] == input_request["id"]);
    assert_eq!(requests.count(), 0, "{:?}", host.early());
    host.write(
        &json!({ "jsonrpc": "2.0", "id": input_request["id"], "result": { "action": "decline" } }),
    );
    call_echo(&mut host, "still here");
    close_host(host);
}

#[test]
fn a_plain_calls_input_request_is_cancelled_at_the_host() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut host = start_host(home);
    let call = host.send("tools/call", json!({ "name": "ask", "arguments": {} }));
    let input_request = host.next_request();
    kill_gateway(home);
    let lost = host.response_to(call);
    assert_eq!(lost["error"]["code"], -32603, "{lost}");
    call_echo(&mut host, "still here");
    let is_cancelled = |message: &Value| {
        message["method"] == "notifications/cancelled"
            && message["params"]["requestId"] == input_request["id"]
    };
    let task_question =
        input_request["params"]["_meta"]["io.modelcontextprotocol/related-task"].is_object();
    assert!(
        task_question || host.early().iter().any(is_cancelled),
        "{:?}",
        host.early()
    );
    close_host(host);
}

#[test]
fn a_stopping_gateway_finishes_calls_and_loses_no_request() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let gate = home.join("gate");
    let mut host = start_host(home);
    let running = host.send(
        "tools/call",
        json!({ "name": "wait", "arguments": { "file": gate } }),
    );
    until("the call runs", || status(home)["gateway"]["calls"] == 1);
    let before = gateway_pid(home);
    kill_process(before, Signal::TERM).expect("it runs");
    // Requests that it no longer accepts wait for the next gateway, which starts after this one has
    // ended.
    let requests: Vec<_> = (0..20)
        .map(|number| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let arguments = json!({ "say": format!("request {number}") });
            host.send(
                "tools/call",
                json!({ "name": "echo", "arguments": arguments }),
            )
        })
        .collect();
    until("the gateway stops", || status(home)["running"] == false);
    std::fs::write(&gate, "").expect("it is written");
    let result = host.response_to(running);
    assert_eq!(result["result"]["content"][0]["text"], "waited", "{result}");
    for (number, id) in requests.into_iter().enumerate() {
        let stdout_of = host.response_to(id);
        let expected = format!("request {number}");
        assert_eq!(
            stdout_of["result"]["content"][0]["text"], expected,
            "{stdout_of}"
        );
    }
    call_echo(&mut host, "after its end");
    assert_ne!(gateway_pid(home), before);
    close_host(host);
}

#[test]
fn a_stopped_gateway_restarts_when_the_host_needs_it() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut host = start_host(home);
    call_echo(&mut host, "one");
    let before = gateway_pid(home);
    let stopped = stdout_of(home, &["gateway", "stop"]);
    assert_eq!(
        stopped,
        format!("stopped process {}", before.as_raw_nonzero())
    );
    assert_eq!(status(home)["running"], false);
    call_echo(&mut host, "two");
    assert_ne!(gateway_pid(home), before);
    close_host(host);
}
