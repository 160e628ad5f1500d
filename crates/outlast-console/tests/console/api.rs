//! Changes and reads by the API.

use axum::http::StatusCode;
use outlast_engine::Scope;
use serde_json::{Value, json};

use crate::harness::{ReceivedResponse, Site};

fn body(seen: &ReceivedResponse) -> Value {
    serde_json::from_str(&seen.text).expect("JSON")
}

#[tokio::test]
async fn cancel_is_one_operation_on_server_source_and_task() {
    let site = Site::start().await;
    let id = site.task("ada", "slow", "{}").await.to_string();
    let name = json!({ "server": "samples", "source": "store", "taskId": id });
    let foreign = site.post("bob-secret", "/api/v1/tasks/cancel", &name).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    let read_only = site.post("ada-reads", "/api/v1/tasks/cancel", &name).await;
    assert_eq!(read_only.status, StatusCode::FORBIDDEN);
    assert!(read_only.text.contains("`cancel`"), "{}", read_only.text);
    let done = site.post("ada-secret", "/api/v1/tasks/cancel", &name).await;
    assert_eq!(body(&done)["status"], "cancelled");
    let again = site.post("ada-secret", "/api/v1/tasks/cancel", &name).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.text.contains("already finished"), "{}", again.text);
}

#[tokio::test]
async fn a_list_has_filters_and_pages() {
    let site = Site::start().await;
    for _ in 0..3 {
        site.create_ended_task("ada", "echo", "{}").await;
    }
    site.create_ended_task("bob", "broken", "{}").await;
    let first = body(
        &site
            .get("root-secret", "/api/v1/tasks?limit=2&q=tool:echo")
            .await,
    );
    assert_eq!(first["tasks"].as_array().map(Vec::len), Some(2));
    let after = first["next"].as_str().expect("a next page");
    let next = format!("/api/v1/tasks?limit=2&q=tool:echo&after={after}");
    let second = body(&site.get("root-secret", &next).await);
    assert_eq!(second["tasks"].as_array().map(Vec::len), Some(1));
    assert_eq!(second["tasks"][0]["status"], "completed");
    let own = body(&site.get("bob-secret", "/api/v1/tasks").await);
    assert_eq!(own["tasks"].as_array().map(Vec::len), Some(1));
    let wrong = site.get("root-secret", "/api/v1/tasks?q=status:done").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_result_has_the_bytes_of_the_tool() {
    let site = Site::start().await;
    let result = r#"{\"content\":[],\"structuredContent\":{\"id\":9007199254740993}}"#;
    let id = site
        .create_ended_task("ada", "raw", &format!("{{\"result\":\"{result}\"}}"))
        .await;
    let seen = site
        .get("ada-secret", &format!("/api/v1/tasks/{id}/result"))
        .await;
    assert!(seen.text.contains("9007199254740993"), "{}", seen.text);
    let running = site.task("ada", "slow", "{}").await;
    let early = site
        .get("ada-secret", &format!("/api/v1/tasks/{running}/result"))
        .await;
    assert_eq!(early.status, StatusCode::CONFLICT);
    let task = body(&site.get("ada-secret", &format!("/api/v1/tasks/{id}")).await);
    assert_eq!(task["method"], "tools/call");
    assert_eq!(task["timeline"][0]["event"], "created");
}

#[tokio::test]
async fn a_repetition_needs_a_confirmation_unless_it_is_safe() {
    let site = Site::start().await;
    let id = site
        .create_ended_task("ada", "echo", "{\"text\":\"a\"}")
        .await
        .to_string();
    let asked = site
        .post(
            "ada-secret",
            "/api/v1/tasks/rerun",
            &json!({ "taskId": id }),
        )
        .await;
    assert_eq!(asked.status, StatusCode::CONFLICT);
    assert!(
        asked.text.contains("echo may have its effect twice"),
        "{}",
        asked.text
    );
    let sure = json!({ "taskId": id, "confirmed": true });
    let done = body(&site.post("ada-secret", "/api/v1/tasks/rerun", &sure).await);
    assert_ne!(done["taskId"], Value::Null);
    assert_ne!(done["taskId"], id.as_str());
    let read_only = site.post("ada-reads", "/api/v1/tasks/rerun", &sure).await;
    assert_eq!(read_only.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_deletion_can_be_undone() {
    let site = Site::start().await;
    let id = site.create_ended_task("ada", "echo", "{}").await;
    let name = json!({ "taskId": id.to_string() });
    let list = async || site.get("ada-secret", "/tasks").await.text;
    let open = site.task("ada", "slow", "{}").await.to_string();
    let refused = site
        .post(
            "ada-secret",
            "/api/v1/tasks/delete",
            &json!({ "taskId": open }),
        )
        .await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let deleted = site.post("ada-secret", "/api/v1/tasks/delete", &name).await;
    assert_eq!(body(&deleted)["undoSeconds"], 10);
    assert!(!list().await.contains(&id.to_string()));
    let foreign = site
        .post("bob-secret", "/api/v1/tasks/undelete", &name)
        .await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    let undone = site
        .post("ada-secret", "/api/v1/tasks/undelete", &name)
        .await;
    assert_eq!(undone.status, StatusCode::OK);
    assert!(list().await.contains(&id.to_string()));
}

#[tokio::test]
async fn a_deletion_of_all_that_match_can_be_undone() {
    let site = Site::start().await;
    for _ in 0..3 {
        site.create_ended_task("ada", "echo", "{}").await;
    }
    let all = json!({ "action": "delete", "query": "tool:echo" });
    let report = body(&site.post("ada-secret", "/api/v1/tasks/bulk", &all).await);
    assert_eq!(report["deleted"].as_array().map(Vec::len), Some(3));
    let list = async || {
        let list = body(&site.get("ada-secret", "/api/v1/tasks").await);
        list["tasks"].as_array().map(Vec::len)
    };
    assert_eq!(list().await, Some(0));
    let undo = json!({ "action": "undelete", "ids": report["deleted"] });
    let foreign = body(&site.post("bob-secret", "/api/v1/tasks/bulk", &undo).await);
    assert_eq!(foreign["changed"], 0);
    let report = body(&site.post("ada-secret", "/api/v1/tasks/bulk", &undo).await);
    assert_eq!(report["changed"], 3);
    assert_eq!(list().await, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_takes_place_after_the_time_for_an_undo() {
    let site = Site::start().await;
    let id = site.create_ended_task("ada", "echo", "{}").await;
    let name = json!({ "taskId": id.to_string() });
    site.post("ada-secret", "/api/v1/tasks/delete", &name).await;
    outlast_testkit::eventually("it is deleted", async || {
        site.engine().get(&Scope::AnyTask, id).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn an_action_on_many_states_its_number_and_its_refusals() {
    let site = Site::start().await;
    let ended = site
        .create_ended_task("ada", "echo", "{}")
        .await
        .to_string();
    let open = [
        site.task("ada", "slow", "{}").await.to_string(),
        site.task("ada", "slow", "{}").await.to_string(),
    ];
    site.task("bob", "slow", "{}").await;
    let dry = json!({ "action": "cancel", "query": "tool:slow", "dryRun": true });
    let counted = body(&site.post("ada-secret", "/api/v1/tasks/bulk", &dry).await);
    assert_eq!(
        (&counted["matched"], &counted["changed"]),
        (&json!(2), &json!(0))
    );
    let some = json!({ "action": "cancel", "ids": [ended, open[0]] });
    let report = body(&site.post("ada-secret", "/api/v1/tasks/bulk", &some).await);
    assert_eq!(report["changed"], 1);
    assert_eq!(report["refused"][0]["taskId"], ended.as_str());
    let all = json!({ "action": "cancel", "query": "" });
    let report = body(&site.post("ada-secret", "/api/v1/tasks/bulk", &all).await);
    assert_eq!(
        (&report["matched"], &report["changed"]),
        (&json!(1), &json!(1))
    );
    let read_only = site.post("ada-reads", "/api/v1/tasks/bulk", &all).await;
    assert_eq!(read_only.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_answer_reaches_the_task_once() {
    let site = Site::start().await;
    let id = site.task("ada", "ask", "{}").await;
    let path = format!("/api/v1/tasks/{id}");
    let key = outlast_testkit::wait_for("the question", async || {
        let task = body(&site.get("ada-secret", &path).await);
        task["inputRequests"][0]["key"].as_str().map(str::to_owned)
    })
    .await;
    let content = json!({ "action": "accept", "content": { "name": "Ada" } });
    let answer = json!({ "taskId": id.to_string(), "key": key, "result": content });
    let read_only = site
        .post("ada-reads", "/api/v1/tasks/answer", &answer)
        .await;
    assert_eq!(read_only.status, StatusCode::FORBIDDEN);
    let first = site
        .post("ada-secret", "/api/v1/tasks/answer", &answer)
        .await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.text);
    let second = site
        .post("ada-secret", "/api/v1/tasks/answer", &answer)
        .await;
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert!(
        second.text.contains("already answered by ada"),
        "{}",
        second.text
    );
    outlast_testkit::eventually("the result has the name", async || {
        let seen = site.get("ada-secret", &format!("{path}/result")).await;
        seen.status == StatusCode::OK && seen.text.contains("Ada")
    })
    .await;
}
