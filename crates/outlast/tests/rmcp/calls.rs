//! Tools of an rmcp server: listed, called plainly, called as tasks.

use serde_json::{Value, json};

use crate::client::{Client, Stage, text};

const RELATED: &str = "io.modelcontextprotocol/related-task";

#[tokio::test(start_paused = true)]
async fn the_server_introduces_itself_and_its_tasks_are_ours() {
    // V1-CAP-1, V1-CAP-3, S2-28.
    let mut stage = Stage::new().await;
    let mut client = Client::connect(stage.front.clone());
    let answer = client.introduce(json!({})).await;
    let about = &answer["result"];
    assert_eq!(about["protocolVersion"], "2025-11-25");
    assert_eq!(about["instructions"], "A lab.");
    let capabilities = &about["capabilities"];
    assert_eq!(
        capabilities["tasks"],
        json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
    );
    assert!(capabilities["prompts"].is_object() && capabilities["completions"].is_object());
    assert_eq!(capabilities["resources"]["subscribe"], true);
    // What rmcp says of tasks of its own is not passed on.
    assert_eq!(capabilities.get("extensions"), None);
    stage.hear("initialized").await;
}

#[tokio::test(start_paused = true)]
async fn tools_are_listed_with_the_support_they_declare_or_were_given() {
    // V1-TOOL-7, V1-TOOL-8.
    let stage = Stage::new().await;
    let mut client = stage.client().await;
    let mut support = Vec::new();
    let mut params = json!({});
    loop {
        let page = client.call("tools/list", params).await["result"].clone();
        for tool in page["tools"].as_array().unwrap() {
            let word = tool["execution"]["taskSupport"].as_str().map(str::to_owned);
            support.push((tool["name"].as_str().unwrap().to_owned(), word));
        }
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    let expected = [
        ("echo", None),
        ("gated", Some("optional")),
        ("boom", Some("optional")),
        ("declared", Some("required")),
    ];
    let expected = expected.map(|(name, word)| (name.to_owned(), word.map(str::to_owned)));
    assert_eq!(support, expected);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_refused_before_a_task_exists() {
    // V1-CREATE-10.
    let stage = Stage::new().await;
    let mut client = stage.client().await;
    for params in [
        json!({ "name": "none", "task": {} }),
        json!({ "name": "none" }),
        json!({ "name": "gated", "arguments": [], "task": {} }),
    ] {
        let refused = client.call("tools/call", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let listed = client.call("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");
}

#[tokio::test(start_paused = true)]
async fn support_is_checked_before_anything_runs() {
    // V1-TOOL-3, V1-TOOL-6: also for a tool on the second page.
    let stage = Stage::new().await;
    let mut client = stage.client().await;
    for params in [
        json!({ "name": "echo", "task": {} }),
        json!({ "name": "declared" }),
    ] {
        let refused = client.call("tools/call", params).await;
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    let task = client.task("declared").await;
    assert_eq!(text(&client.result(&task).await), "done");
}

#[tokio::test(start_paused = true)]
async fn a_plain_call_is_answered_with_its_result() {
    let stage = Stage::new().await;
    let mut client = stage.client().await;
    let params = json!({ "name": "echo", "arguments": { "say": "hi" } });
    let answer = client.call("tools/call", params).await;
    assert_eq!(text(&answer), r#"{"say":"hi"}"#);
    // V1-TLS-2: the handler refuses what it does not know.
    let unknown = client.call("tools/call", json!({ "name": "nobody" })).await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_call_runs_as_a_task_and_its_result_names_it() {
    // V1-CREATE-1, V1-RES-5.
    let mut stage = Stage::new().await;
    let mut client = stage.client().await;
    let task = client.task("gated").await;
    stage.hear("at the gate").await;
    assert_eq!(client.status(&task).await, "working");
    stage.equipment.gate.add_permits(1);
    let answer = client.result(&task).await;
    assert_eq!(text(&answer), "through");
    assert_eq!(answer["result"]["_meta"][RELATED]["taskId"], task.as_str());
    assert_eq!(client.status(&task).await, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_flagged_result_fails_the_task_and_is_its_result() {
    // V1-LIFE-8, A1-2.
    let stage = Stage::new().await;
    let mut client = stage.client().await;
    let task = client.task("flagged").await;
    let answer = client.result(&task).await;
    assert_eq!(answer["result"]["isError"], true);
    let now = client.call("tasks/get", json!({ "taskId": task })).await;
    assert_eq!(now["result"]["status"], "failed");
    assert_eq!(now["result"]["statusMessage"], "it broke");
}

#[tokio::test(start_paused = true)]
async fn progress_has_the_token_of_the_request_plainly_and_in_a_task() {
    // V1-PROG-1, V1-PROG-2.
    let stage = Stage::new().await;
    let mut client = stage.client().await;
    let params = json!({ "name": "steps", "_meta": { "progressToken": 77 } });
    let answer = client.call("tools/call", params).await;
    assert_eq!(text(&answer), "arrived");
    for step in 1..=3 {
        let told = client.told("notifications/progress").await;
        assert_eq!(told["params"]["progressToken"], 77);
        assert_eq!(told["params"]["progress"].as_f64(), Some(f64::from(step)));
        assert_eq!(told["params"].get("_meta"), None);
    }
    let task = client.task("steps").await;
    client.result(&task).await;
    let told = client.told("notifications/progress").await;
    assert_eq!(told["params"]["progressToken"], "p");
    assert_eq!(told["params"]["_meta"][RELATED]["taskId"], task.as_str());
    assert_eq!(client.tool("steps").await, "no token");
}

#[tokio::test(start_paused = true)]
async fn the_handler_knows_its_client_but_not_that_it_has_tasks() {
    let stage = Stage::new().await;
    let mut client = stage.client().await;
    let told: Value = serde_json::from_str(&client.tool("caller").await).unwrap();
    assert_eq!(told["name"], "by-hand");
    assert_eq!(told["version"], "2025-11-25");
    assert_eq!(
        told["capabilities"],
        json!({ "elicitation": {}, "sampling": {}, "roots": {} })
    );
    assert_eq!(told["host"], false);
}
