//! Every kind of client with every kind of server: each cell of bridge §3, with the events of bridge §17.

use outlast_testkit::mcp::caller::{Answers, Ending, KINDS, Kind, accepting, declining};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::cell::{SERVERS, Server};
use crate::upstream::Stage;

/// What happens, by the tool that makes it happen, and how the caller answers.
const EVENTS: [(&str, &str, Answers); 11] = [
    ("completed", "echo", accepting),
    ("tool error", "fails", accepting),
    ("protocol error", "broken", accepting),
    ("one input", "ask", accepting),
    ("input before the work", "first", accepting),
    ("two parallel inputs", "two", accepting),
    ("input after a while", "late", accepting),
    ("input refused", "ask", declining),
    ("sampling", "think", accepting),
    ("roots", "roots", accepting),
    ("read-only", "reads", accepting),
];

#[tokio::test(start_paused = true)]
async fn the_result_through_the_gateway_is_the_direct_one_in_every_cell() {
    // BR-RES-2, BR-GEN-6, BR-CREATE-1, BR-CREATE-2, BR-CREATE-4, BR-CREATE-5, BD-2, BR-IN-7, bridge §8: a, b → i … iv.
    for server in SERVERS {
        let stage = Stage::new(server).await;
        for (event, tool, answers) in EVENTS {
            let mut direct = connect(Kind::PlainLegacy, &stage.direct).await;
            direct.answers = answers;
            let expected = direct.call(tool, json!({ "say": "x" })).await;
            for kind in KINDS {
                let mut caller = connect(kind, &stage.front).await;
                caller.answers = answers;
                let ended = caller.call(tool, json!({ "say": "x" })).await;
                assert_eq!(ended, expected, "{kind:?} → {server:?}: {event}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_long_ends_with_its_result_in_every_cell() {
    // Bridge §17: slow back.
    for server in SERVERS {
        for kind in KINDS {
            let stage = Stage::new(server).await;
            let mut caller = connect(kind, &stage.front).await;
            let gate = stage.gate.clone();
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_secs(7)).await;
                gate.add_permits(1);
            });
            let ended = caller.call("gated", json!({})).await;
            let Ending::Result(result) = ended else {
                panic!("{kind:?} → {server:?}: {ended:?}");
            };
            assert_eq!(result["content"][0]["text"], "through");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_cancels_stops_the_work_behind_the_gateway_in_every_cell() {
    // BR-CAN-1, BR-CAN-4, BR-CAN-6, BR-CAN-7, BR-CAN-9.
    for server in SERVERS {
        for kind in KINDS {
            let stage = Stage::new(server).await;
            let mut caller = connect(kind, &stage.front).await;
            let mut params = json!({ "name": "gated" });
            if kind == Kind::V1 {
                params["task"] = json!({});
            }
            let id = caller.send("tools/call", params).await;
            stage.until_waiting(1).await;
            caller.cancel(id).await;
            stage.until_waiting(0).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_runs_only_as_a_task_is_callable_by_everyone() {
    // BR-CREATE-7, BD-3, BD-13: driven for those who have no tasks.
    for server in [Server::V1, Server::V2] {
        let stage = Stage::new(server).await;
        for kind in KINDS {
            let mut caller = connect(kind, &stage.front).await;
            let Ending::Result(result) = caller.call("must", json!({})).await else {
                panic!("{kind:?} → {server:?}");
            };
            assert_eq!(result["content"][0]["text"], "done", "{kind:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_declared_and_listed_is_what_the_gateway_does() {
    // BR-NEG-3, BR-NEG-4, BR-NEG-9, BR-NEG-10, BR-LIST-1, BR-LIST-2, BR-LIST-3, BR-LIST-4.
    for server in SERVERS {
        let stage = Stage::new(server).await;
        for kind in KINDS {
            let mut caller = connect(kind, &stage.front).await;
            let can = caller.about["capabilities"].clone();
            let cell = format!("{kind:?} → {server:?}: {can}");
            let v1 = can.get("tasks").is_some();
            let v2 = can["extensions"]
                .get("io.modelcontextprotocol/tasks")
                .is_some();
            let modern = matches!(kind, Kind::PlainModern | Kind::V2);
            assert_eq!((v1, v2), (kind == Kind::V1, modern), "{cell}");
            assert_eq!(caller.about["instructions"], "Be kind.", "{cell}");
            let listed = caller.request("tools/list", json!({})).await;
            let tools = listed["result"]["tools"].as_array().unwrap();
            let helper = |tool: &&Value| tool["name"].as_str().unwrap().starts_with("task_");
            let helpers = tools.iter().filter(helper).count();
            let without_tasks = matches!(kind, Kind::PlainLegacy | Kind::PlainModern);
            assert_eq!(helpers, if without_tasks { 3 } else { 0 }, "{cell}");
            for tool in tools {
                let support = &tool["execution"]["taskSupport"];
                let expected = match kind {
                    Kind::V1 => json!("optional"),
                    _ => Value::Null,
                };
                assert_eq!(*support, expected, "{cell}: {tool}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_of_the_server_is_progress_or_words() {
    // BR-PG-1, BR-PG-2, BR-PG-3.
    for server in SERVERS {
        for kind in KINDS {
            let stage = Stage::new(server).await;
            let mut caller = connect(kind, &stage.front).await;
            let params = json!({ "name": "gated", "_meta": { "progressToken": "mine" } });
            let (cell, gate) = (format!("{kind:?} → {server:?}"), stage.gate.clone());
            if kind == Kind::V2 {
                let begun = caller.begin(params).await;
                let task = json!({ "taskId": begun["result"]["taskId"] });
                let got = caller.request("tasks/get", task).await;
                assert_eq!(got["result"]["statusMessage"], "1 of 2", "{cell}");
                continue;
            }
            let mut called = params.clone();
            if kind == Kind::V1 {
                called["task"] = json!({});
            }
            let id = caller.send("tools/call", called).await;
            let told = caller.until_told("notifications/progress").await;
            assert_eq!(told["params"]["progressToken"], "mine", "{cell}");
            assert_eq!(told["params"]["progress"], 1.0, "{cell}");
            gate.add_permits(1);
            let answer = caller.answer_to(id).await;
            let ended = caller.finish(params, answer).await;
            assert!(matches!(ended, Ending::Result(_)), "{cell}: {ended:?}");
        }
    }
}

#[tokio::test]
async fn the_result_is_the_direct_one_with_the_server_at_a_url_as_well() {
    // Bridge §17: the back over HTTP. Several callers at once share a connection, and each is asked its own questions.
    for server in SERVERS {
        let (stage, _listening) = Stage::over_http(server).await;
        for (event, tool, answers) in EVENTS.into_iter().filter(|(_, tool, _)| *tool != "late") {
            let mut direct = connect(Kind::PlainLegacy, &stage.direct).await;
            direct.answers = answers;
            let expected = direct.call(tool, json!({ "say": "x" })).await;
            let calls = KINDS.map(|kind| {
                let front = stage.front.clone();
                tokio::spawn(async move {
                    let mut caller = connect(kind, &front).await;
                    caller.answers = answers;
                    (kind, caller.call(tool, json!({ "say": "x" })).await)
                })
            });
            for call in calls {
                let (kind, ended) = call.await.unwrap();
                assert_eq!(ended, expected, "{kind:?} → {server:?}: {event}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_longer_than_it_may_is_stopped_behind_the_gateway() {
    for kind in KINDS {
        let mut settings = crate::upstream::quick();
        settings.every_tool.timeout = Some(std::time::Duration::from_secs(20));
        let stage = Stage::with(Server::V1, settings).await;
        let mut caller = connect(kind, &stage.front).await;
        let ended = caller.call("gated", json!({})).await;
        let Ending::Error(-32603, why) = ended else {
            panic!("{kind:?}: {ended:?}");
        };
        assert!(why.contains("timeoutMs"), "{why}");
        stage.until_waiting(0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_may_be_under_way_at_once_wait_for_their_turn() {
    let mut settings = crate::upstream::quick();
    settings.concurrency = Some(1);
    let stage = Stage::with(Server::PlainLegacy, settings).await;
    let mut caller = connect(Kind::V1, &stage.front).await;
    let begin = json!({ "name": "gated", "task": {} });
    let first = caller.request("tools/call", begin.clone()).await;
    let second = caller.request("tools/call", begin).await;
    stage.until_waiting(1).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    stage.until_waiting(1).await;
    // Queued is working.
    let id = json!({ "taskId": second["result"]["task"]["taskId"] });
    let got = caller.request("tasks/get", id).await;
    assert_eq!(got["result"]["status"], "working");
    stage.gate.add_permits(2);
    for begun in [first, second] {
        let ended = caller.finish(json!({}), begun).await;
        assert!(matches!(ended, Ending::Result(_)), "{ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_modern_server_asks_before_it_begins_is_asked_so_and_under_its_own_name() {
    // Bridge §8: c → iii, and V2 / V2 of §14.
    for server in [Server::PlainModern, Server::V2] {
        let stage = Stage::new(server).await;
        for kind in [Kind::PlainModern, Kind::V2] {
            let mut caller = connect(kind, &stage.front).await;
            let params = json!({ "name": "first" });
            let asked = caller.begin(params.clone()).await;
            let result = &asked["result"];
            assert_eq!(
                result["resultType"], "input_required",
                "{kind:?} → {server:?}"
            );
            assert_eq!(result["inputRequests"]["who"]["params"]["message"], "Who?");
            let ended = caller.finish(params, asked).await;
            assert!(
                matches!(ended, Ending::Result(_)),
                "{kind:?} → {server:?}: {ended:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_published_matrix_is_what_was_shown() {
    let mut rows = String::new();
    for kind in KINDS {
        for server in SERVERS {
            let pipe = Stage::new(server).await;
            let (http, _listening) = Stage::over_http(server).await;
            let (on_a_pipe, at_a_url) = (shown(kind, &pipe).await, shown(kind, &http).await);
            let row = format!(
                "| {} | {} | {on_a_pipe} | {at_a_url} |\n",
                kind.word(),
                server.word()
            );
            rows.push_str(&row);
        }
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/interop.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    // The table ends with an empty line.
    let (published, after) = rest.split_once("\n\n").unwrap();
    let rows = rows.trim_end();
    if std::env::var_os("OUTLAST_WRITE_DOCS").is_some() {
        std::fs::write(file, format!("{before}{BEGIN}{rows}\n\n{after}")).unwrap();
    }
    assert_eq!(
        published, rows,
        "OUTLAST_WRITE_DOCS=1 writes what is true now"
    );
    assert_eq!(
        rows.matches("10 of 10").count(),
        KINDS.len() * SERVERS.len() * 2
    );
}

/// How many of the events come out as they do without the gateway.
async fn shown(kind: Kind, stage: &Stage) -> String {
    let events = EVENTS.into_iter().filter(|(_, tool, _)| *tool != "late");
    let (mut same, mut all) = (0, 0);
    for (_, tool, answers) in events {
        let mut direct = connect(Kind::PlainLegacy, &stage.direct).await;
        let mut through = connect(kind, &stage.front).await;
        (direct.answers, through.answers) = (answers, answers);
        let arguments = json!({ "say": "x" });
        let expected = direct.call(tool, arguments.clone()).await;
        all += 1;
        same += usize::from(through.call(tool, arguments).await == expected);
    }
    format!("{same} of {all}")
}

/// What the rows of the table follow in the document.
const BEGIN: &str = "|---|---|---|---|\n";
