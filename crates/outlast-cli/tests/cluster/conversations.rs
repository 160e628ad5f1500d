//! Clients of both generations whose requests all reach another node than the one before.

use outlast_testkit::mcp::{HttpClient, HttpConnection, tasks_only, with_modern_meta};
use outlast_testkit::{LoadBalancer, wait_for};
use serde_json::{Value, json};

use crate::nodes::{Cluster, TOKEN};

#[tokio::test]
async fn every_node_answers_for_every_task_and_session() {
    let cluster = Cluster::start();
    for server in ["child", "legacy", "remote"] {
        v1_tasks(&cluster, server).await;
        v1_input(&cluster, server).await;
        v2_tasks(&cluster, server).await;
        v2_input(&cluster, server).await;
        suspended_call(&cluster, server).await;
    }
    cluster.assert_balanced();
    assert!(cluster.runs().values().all(|runs| *runs == 1));
}

#[tokio::test]
async fn a_session_continues_through_haproxy() {
    let cluster = Cluster::behind(LoadBalancer::haproxy);
    v1_tasks(&cluster, "remote").await;
    v1_input(&cluster, "child").await;
    v2_input(&cluster, "remote").await;
}

#[tokio::test]
async fn a_browser_that_signed_in_is_known_at_every_node() {
    let cluster = Cluster::start();
    let task = v2_task(
        &cluster.modern_client("child"),
        "once",
        call("child", "shown", 1_000),
        tasks_only(),
    )
    .await;
    let authority = cluster.balancer.address().to_string();
    let form = format!("token={TOKEN}&next=/");
    let origin = format!("http://{authority}");
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("origin", &origin),
    ];
    let signed_in = HttpConnection::open(&authority).send("POST", "/sign-in", &headers, &form);
    assert_eq!(signed_in.status, 303, "{signed_in:?}");
    let cookie = signed_in.header("set-cookie").expect("a cookie");
    let cookie = cookie.split(';').next().expect("a name and a value");
    for _ in 0..3 {
        let path = format!("/tasks/{task}");
        let page = HttpConnection::open(&authority).send("GET", &path, &[("cookie", cookie)], "");
        assert_eq!(page.status, 200, "{page:?}");
        assert!(page.body.contains(&task));
    }
}

/// Creates, reads, awaits, lists and cancels tasks.
async fn v1_tasks(cluster: &Cluster, server: &str) {
    let client = cluster.session(server).await;
    let task = client.task("once", call(server, "v1", 300)).await;
    client.until(&task, "completed").await;
    for _ in 0..3 {
        let result = client.response("tasks/result", json!({ "taskId": task }));
        assert_eq!(result.await["result"]["content"][0]["text"], "once");
    }
    let runs = client
        .task("once", call(server, "v1-cancelled", 600_000))
        .await;
    let cancelled = client.call("tasks/cancel", json!({ "taskId": runs })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    for _ in 0..3 {
        let listed = client.call("tasks/list", json!({})).await;
        let listed = listed["result"]["tasks"].as_array().expect("a list");
        let find = |id: &str| listed.iter().find(|task| task["taskId"] == id);
        assert_eq!(find(&task).expect("it is listed")["status"], "completed");
        assert_eq!(find(&runs).expect("it is listed")["status"], "cancelled");
    }
}

/// An input request is sent on the stream that the client holds at another node; the stream is
/// resumed, and the response is sent to a third node.
async fn v1_input(cluster: &Cluster, server: &str) {
    let client = cluster.session(server).await;
    let mut general = client.listen(None).await;
    let task = client.task("asks", call(server, "v1-asks", 0)).await;
    let (last, input_request) = general.next_message("elicitation/create").await;
    let status = client.status(&task).await;
    assert_eq!(status["result"]["status"], "input_required");
    drop(general);
    let mut general = client.listen(Some(&last)).await;
    client.respond(&input_request["id"], "Ada").await;
    general.next_message("notifications/tasks/status").await;
    client.until(&task, "completed").await;
    for _ in 0..3 {
        let result = client.response("tasks/result", json!({ "taskId": task }));
        assert_eq!(result.await["result"]["content"][0]["text"], "Hello, Ada!");
    }
    assert_eq!(client.delete_session().await.status, 204);
    for _ in 0..3 {
        assert_eq!(client.request("ping", json!({})).await.status, 404);
    }
}

/// Creates, reads, subscribes to and cancels tasks.
async fn v2_tasks(cluster: &Cluster, server: &str) {
    let client = cluster.modern_client(server);
    let task = v2_task(&client, "once", call(server, "v2", 2_500), tasks_only()).await;
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let listen = with_modern_meta(filter, tasks_only());
    let mut changes = client.request("subscriptions/listen", listen).await;
    assert!(changes.is_stream());
    loop {
        let event = changes.event().await.expect("the stream goes on");
        let params = &event.message.expect("a message")["params"];
        if params["status"] == "completed" {
            assert_eq!(params["result"]["content"][0]["text"], "once");
            break;
        }
    }
    for _ in 0..3 {
        let got = v2_get(&client, &task).await;
        assert_eq!(got["status"], "completed", "{got}");
    }
    let runs = call(server, "v2-cancelled", 600_000);
    let runs = v2_task(&client, "once", runs, tasks_only()).await;
    let cancel = client.modern_response("tasks/cancel", json!({ "taskId": runs }), tasks_only());
    let cancelled = cancel.await;
    assert!(cancelled.get("error").is_none(), "{cancelled}");
    wait_for("the task is cancelled", async || {
        let got = v2_get(&client, &runs).await;
        (got["status"] == "cancelled").then_some(())
    })
    .await;
}

/// A task asks, and the response is sent to another node.
async fn v2_input(cluster: &Cluster, server: &str) {
    let client = cluster.modern_client(server);
    let mut can = tasks_only();
    can["elicitation"] = json!({});
    let task = v2_task(&client, "asks", call(server, "v2-asks", 1_500), can.clone()).await;
    let asks = wait_for("the task asks", async || {
        let got = v2_get(&client, &task).await;
        (got["status"] == "input_required").then(|| got["inputRequests"].clone())
    })
    .await;
    let update = json!({ "taskId": task, "inputResponses": responses(&asks) });
    let updated = client.modern_response("tasks/update", update, can).await;
    assert!(updated.get("error").is_none(), "{updated}");
    let ended = wait_for("the task ends", async || {
        let got = v2_get(&client, &task).await;
        (got["status"] == "completed").then_some(got)
    })
    .await;
    assert_eq!(ended["result"]["content"][0]["text"], "Hello, Ada!");
}

/// A call without a task asks; the retry reaches another node.
async fn suspended_call(cluster: &Cluster, server: &str) {
    let client = cluster.modern_client(server);
    let can = || json!({ "elicitation": {} });
    let mut params = json!({ "name": "asks", "arguments": call(server, "mrtr", 0) });
    let asked = client.modern_response("tools/call", params.clone(), can());
    let asked = asked.await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = responses(&asked["inputRequests"]);
    let ended = client.modern_response("tools/call", params, can()).await;
    let text = &ended["result"]["content"][0]["text"];
    assert_eq!(text, "Hello, Ada!", "{ended}");
}

/// The arguments of a call.
fn call(server: &str, id: &str, ms: u64) -> Value {
    json!({ "id": format!("{server}-{id}"), "ms": ms })
}

/// Calls a tool that is slow enough to become a task, and returns the task's id.
async fn v2_task(client: &HttpClient, name: &str, arguments: Value, can: Value) -> String {
    let params = json!({ "name": name, "arguments": arguments });
    let created = client.modern_response("tools/call", params, can).await;
    let id = created["result"]["taskId"].as_str();
    id.unwrap_or_else(|| panic!("{created}")).to_owned()
}

async fn v2_get(client: &HttpClient, task: &str) -> Value {
    let got = client.modern_response("tasks/get", json!({ "taskId": task }), tasks_only());
    let got = got.await;
    assert!(got.get("result").is_some(), "{got}");
    got["result"].clone()
}

/// The responses to these input requests.
pub(crate) fn responses(requests: &Value) -> Value {
    let requests = requests.as_object().expect("an object");
    let response = json!({ "action": "accept", "content": { "name": "Ada" } });
    let responses = requests.keys().map(|key| (key.clone(), response.clone()));
    Value::Object(responses.collect())
}
