//! Calls that ask before they are answered (V2-MRTR).

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Stage, named};
use crate::stdio_client::{Pipe, no_tasks};

/// Calls a tool that asks, and returns its answer.
async fn asked(pipe: &mut Pipe, tool: &str) -> Value {
    let asked = pipe.tool(tool).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert!(asked["requestState"].is_string());
    asked
}

fn key(asked: &Value) -> String {
    let requests = asked["inputRequests"].as_object().unwrap();
    requests.keys().next().unwrap().clone()
}

fn retry(tool: &str, asked: &Value, answer: Value) -> Value {
    json!({
        "name": tool,
        "requestState": asked["requestState"],
        "inputResponses": { key(asked): answer },
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_no_task_asks_by_its_answer_and_is_resumed_by_the_retry() {
    // V2-MRTR-1, V2-MRTR-2, V2-MRTR-3, V2-STDIO-2: and runs once.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let asked = asked(&mut pipe, "plain").await;
    let request = &asked["inputRequests"][key(&asked)];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "Who?");
    let said = pipe
        .call("tools/call", retry("plain", &asked, named("Ada")))
        .await;
    assert_eq!(said["result"]["resultType"], "complete");
    assert_eq!(said["result"]["content"][0]["text"], "Hello, \"Ada\"!");
    assert_eq!(said["result"].get("requestState"), None);
    assert_eq!(stage.begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_state_is_good_once() {
    // V2-MRTR-5, BR-IN-4: a replay is refused and runs nothing.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let asked = asked(&mut pipe, "plain").await;
    let retry = retry("plain", &asked, named("Ada"));
    pipe.call("tools/call", retry.clone()).await;
    let replayed = pipe.call("tools/call", retry).await;
    assert_eq!(replayed["error"]["code"], -32602);
    let why = replayed["error"]["message"].as_str().unwrap();
    assert!(why.contains("outcome is unknown"), "{why}");
    assert_eq!(stage.begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_was_touched_or_belongs_elsewhere_is_refused() {
    // V2-MRTR-5: and stays good for its own request.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let asked = asked(&mut pipe, "plain").await;
    let good = retry("plain", &asked, named("Ada"));
    let state = asked["requestState"].as_str().unwrap();
    let (mut touched, mut other_tool, mut other_arguments) =
        (good.clone(), good.clone(), good.clone());
    touched["requestState"] = json!(format!("{state}-TAMPERED"));
    other_tool["name"] = json!("first");
    other_arguments["arguments"] = json!({ "sneaky": true });
    let mut odd = good.clone();
    odd["requestState"] = json!(7);
    for bad in [touched, other_tool, other_arguments, odd] {
        let refused = pipe.call("tools/call", bad).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let said = pipe.call("tools/call", good).await;
    assert_eq!(said["result"]["resultType"], "complete");
    assert_eq!(stage.begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_caller_never_comes_back_is_stopped() {
    // V2-MRTR-6, BR-IN-5.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let asked = asked(&mut pipe, "plain").await;
    assert_eq!(stage.engine.running(), 1);
    tokio::time::sleep(Duration::from_secs(16 * 60)).await;
    stage.until_idle().await;
    let late = pipe
        .call("tools/call", retry("plain", &asked, named("Ada")))
        .await;
    assert_eq!(late["error"]["code"], -32602);
    assert_eq!(stage.begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_asked_again_and_what_is_malformed_refused() {
    // V2-MRTR-10.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let first = asked(&mut pipe, "plain").await;
    let malformed = retry("plain", &first, json!(12345));
    let refused = pipe.call("tools/call", malformed).await;
    assert_eq!(refused["error"]["code"], -32602);
    let nothing = json!({
        "name": "plain", "requestState": first["requestState"],
        "inputResponses": { "wrong": named("Ada") },
    });
    let again = pipe.call("tools/call", nothing).await["result"].clone();
    assert_eq!(again["resultType"], "input_required");
    assert_eq!(again["inputRequests"], first["inputRequests"]);
    assert_ne!(again["requestState"], first["requestState"]);
    let mut answer = retry("plain", &again, named("Ada"));
    answer["inputResponses"]["extra"] = json!({ "action": "accept" });
    let said = pipe.call("tools/call", answer).await;
    assert_eq!(said["result"]["resultType"], "complete");
    // The state of an earlier round is of no use.
    let replayed = pipe
        .call("tools/call", retry("plain", &first, named("Ada")))
        .await;
    assert_eq!(replayed["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn questions_that_are_put_together_travel_together() {
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let params = json!({ "name": "two" });
    let asked = pipe.call_with("tools/call", params, no_tasks()).await["result"].clone();
    let keys: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 2);
    let retry = json!({
        "name": "two", "requestState": asked["requestState"],
        "inputResponses": { keys[0]: named("Ada"), keys[1]: named("Bob") },
    });
    let said = pipe.call_with("tools/call", retry, no_tasks()).await;
    assert_eq!(said["result"]["content"][0]["text"], "\"Ada\" \"Bob\"");
}

#[tokio::test(start_paused = true)]
async fn every_round_of_questions_has_a_state_of_its_own() {
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let params = json!({ "name": "again" });
    let one = pipe.call_with("tools/call", params, no_tasks()).await["result"].clone();
    let answer = retry("again", &one, named("Ada"));
    let two = pipe.call_with("tools/call", answer, no_tasks()).await["result"].clone();
    assert_eq!(two["resultType"], "input_required");
    assert_ne!(key(&one), key(&two));
    assert_ne!(one["requestState"], two["requestState"]);
    let answer = retry("again", &two, named("Ada"));
    let done = pipe.call_with("tools/call", answer, no_tasks()).await;
    assert_eq!(done["result"]["content"][0]["text"], "asked");
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_before_the_work_is_asked_before_the_task() {
    // V2-CREATE-7: also of a caller that takes tasks; a quick end is then inline.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let asked = asked(&mut pipe, "first").await;
    assert_eq!(key(&asked), "who");
    let said = pipe
        .call("tools/call", retry("first", &asked, named("Ada")))
        .await;
    assert_eq!(said["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test(start_paused = true)]
async fn a_call_asks_first_and_becomes_a_task_after() {
    // V2-CREATE-7, V2-CREATE-8, V2-UPD-17.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let asked = asked(&mut pipe, "first_then_task").await;
    let answer = retry("first_then_task", &asked, named("Ada"));
    let created = pipe.call("tools/call", answer).await["result"].clone();
    assert_eq!(created["resultType"], "task");
    assert_eq!(created.get("requestState"), None);
    assert_eq!(created.get("inputRequests"), None);
    let task = created["taskId"].as_str().unwrap();
    let done = pipe.until(task, "completed").await;
    assert_eq!(done.get("requestState"), None);
    assert_eq!(done["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_come_before_its_question() {
    // V2-MRTR-10: with others that nobody asked for.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let answers = json!({ "who": named("Ada"), "extra": 7 });
    let params = json!({ "name": "first", "inputResponses": answers });
    let said = pipe.call("tools/call", params).await;
    assert_eq!(said["result"]["content"][0]["text"], "Hello, \"Ada\"!");
    let params = json!({ "name": "first", "inputResponses": { "who": 12345 } });
    assert_eq!(
        pipe.call("tools/call", params).await["error"]["code"],
        -32602
    );
    let params = json!({ "name": "first", "inputResponses": null });
    assert_eq!(
        pipe.call("tools/call", params).await["error"]["code"],
        -32602
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_is_not_asked_what_it_did_not_declare() {
    // V2-MRTR-4, V2-UPD-16.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let params = json!({ "name": "plain" });
    let can = json!({ "sampling": {} });
    let told = pipe.call_with("tools/call", params, can).await;
    assert_eq!(told["result"]["isError"], true);
    let why = told["result"]["content"][0]["text"].as_str().unwrap();
    assert!(why.contains("does not support form elicitation"), "{why}");
}

#[tokio::test]
async fn a_parked_call_ends_with_its_server_and_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let stage = Stage::on_file(&file).await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let asked = asked(&mut pipe, "plain").await;
    stage.fall().await;
    let stage = Stage::on_file(&file).await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let lost = pipe
        .call("tools/call", retry("plain", &asked, named("Ada")))
        .await;
    assert_eq!(lost["error"]["code"], -32602);
    let why = lost["error"]["message"].as_str().unwrap();
    assert!(why.contains("outcome is unknown"), "{why}");
    assert_eq!(stage.begun(), 0);
    stage.fall().await;
}
