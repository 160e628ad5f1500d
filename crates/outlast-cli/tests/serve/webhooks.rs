//! Webhooks of a gateway that is killed, with a real receiver.

use outlast::webhook::WebhookSecret;
use outlast_testkit::{example, until};
use serde_json::json;
use tempfile::TempDir;

use crate::gateway::GatewayProcess;
use crate::receiver::{ReceivedRequest, Receiver, ResponseMode};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A gateway for the sample server that delivers to `receiver`.
fn start(home: &TempDir, receiver: &Receiver, address: &str) -> GatewayProcess {
    let config = json!({
        "mcpServers": { "behind": { "command": example("behind") } },
        "outlast": { "webhooks": { "team": { "url": receiver.url, "secret": SECRET } } },
    });
    std::fs::write(home.path().join("mcp.json"), config.to_string()).expect("it is written");
    GatewayProcess::start(home.path(), address, &["--config", "mcp.json"], 1)
}

fn begin(gateway: &GatewayProcess, call: &[&str]) -> String {
    let how = ["--task", "--detach", "--as", "v1"];
    gateway.run_ok(&[&["call", "{}"], call, &how].concat())
}

/// Checks the request for a status of a task, and returns its id.
fn verify_request(request: &ReceivedRequest, task: &str, status: &str, authority: &str) -> String {
    let id = request.header("webhook-id").to_owned();
    let seconds = request
        .header("webhook-timestamp")
        .parse()
        .expect("seconds");
    let secret = WebhookSecret::parse(SECRET).expect("a secret");
    let signature = secret.sign(&id, seconds, &request.body);
    assert_eq!(request.header("webhook-signature"), signature);
    assert_eq!(request.header("content-type"), "application/json");
    let body = request.json();
    assert_eq!(body["type"], format!("task.{status}"));
    let data = &body["data"];
    assert_eq!(
        (&data["taskId"], &data["status"]),
        (&json!(task), &json!(status))
    );
    assert_eq!(
        (&data["server"], &data["owner"]),
        (&json!("behind"), &json!("principal:local"))
    );
    assert_eq!(data["url"], format!("http://{authority}/tasks/{task}"));
    id
}

#[test]
fn a_delivery_without_an_answer_is_repeated_after_a_kill() {
    let home = TempDir::new().expect("a folder");
    let receiver = Receiver::start(ResponseMode::Nothing);
    let gateway = start(&home, &receiver, "127.0.0.1:0");
    let task = begin(&gateway, &["wait", "ms=10"]);
    until("the delivery has begun", || receiver.requests().len() == 1);
    // The change is durable, and no receiver has accepted its delivery.
    let address = gateway.kill();
    receiver.answer(ResponseMode::Status(204));
    let gateway = start(&home, &receiver, &address);
    until("it is delivered again", || receiver.requests().len() == 2);
    let requests = receiver.requests();
    let ids = [&requests[0], &requests[1]]
        .map(|request| verify_request(request, &task, "completed", gateway.authority()));
    assert_eq!(ids[0], ids[1], "the receiver can ignore the second");
    // An accepted delivery is not repeated: the next one is of another task.
    let next = begin(&gateway, &["wait", "ms=1"]);
    until("the next is delivered", || receiver.requests().len() == 3);
    verify_request(
        &receiver.requests()[2],
        &next,
        "completed",
        gateway.authority(),
    );
}

#[test]
fn a_refused_delivery_is_retried_even_after_a_kill() {
    let home = TempDir::new().expect("a folder");
    let receiver = Receiver::start(ResponseMode::Status(503));
    let gateway = start(&home, &receiver, "127.0.0.1:0");
    // It asks for input, so that a person has to act.
    let task = begin(&gateway, &["ask"]);
    until("it is refused and repeated", || {
        receiver.requests().len() >= 2
    });
    let address = gateway.kill();
    let refused = receiver.requests().len();
    receiver.answer(ResponseMode::Status(200));
    let gateway = start(&home, &receiver, &address);
    let of_task = |status: &str| {
        let requests = receiver.requests();
        let mut accepted = requests.into_iter().skip(refused);
        accepted.find(|request| request.json()["data"]["status"] == status)
    };
    until("the input request is delivered", || {
        of_task("input_required").is_some()
    });
    let first = &receiver.requests()[0];
    let ids = [first.clone(), of_task("input_required").expect("a request")];
    let ids =
        ids.map(|request| verify_request(&request, &task, "input_required", gateway.authority()));
    assert_eq!(ids[0], ids[1]);
    // The kill has ended the call of a child process, which is a change of status, too.
    until("the end is delivered", || of_task("failed").is_some());
    assert!(gateway.log().contains("webhook delivery failed"));
    assert!(!gateway.log().contains(SECRET));
}
