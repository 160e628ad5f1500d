//! Every kind of client with every kind of server: the result through the gateway is the direct
//! one, also for slow calls, cancellation, progress and tools that run only as tasks.

use outlast_testkit::mcp::caller::{
    CLIENT_KINDS, CallEnd, ClientKind, Responder, accepting, declining,
};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::cell::{SERVER_KINDS, ServerKind};
use crate::harness::Harness;

/// An event, the tool that causes it, and the responses of the caller.
const EVENTS: [(&str, &str, Responder); 11] = [
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
async fn the_gateway_returns_the_direct_result_in_every_cell() {
    // BR-RES-2, BR-GEN-6, BR-CREATE-1, BR-CREATE-2, BR-CREATE-4, BR-CREATE-5, BD-2, BR-IN-7, bridge
    // Every kind of call, with and without input requests.
    for server in SERVER_KINDS {
        let harness = Harness::new(server).await;
        for (event, tool, answers) in EVENTS {
            let mut direct = connect(ClientKind::PlainLegacy, &harness.direct).await;
            direct.responder = answers;
            let expected = direct.call(tool, json!({ "say": "x" })).await;
            for kind in CLIENT_KINDS {
                let mut caller = connect(kind, &harness.mcp_server).await;
                caller.responder = answers;
                let ended = caller.call(tool, json!({ "say": "x" })).await;
                assert_eq!(ended, expected, "{kind:?} → {server:?}: {event}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_ends_with_its_result_in_every_cell() {
    for server in SERVER_KINDS {
        for kind in CLIENT_KINDS {
            let harness = Harness::new(server).await;
            let mut caller = connect(kind, &harness.mcp_server).await;
            let gate = harness.gate.clone();
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_secs(7)).await;
                gate.add_permits(1);
            });
            let ended = caller.call("gated", json!({})).await;
            let CallEnd::Result(result) = ended else {
                panic!("{kind:?} → {server:?}: {ended:?}");
            };
            assert_eq!(result["content"][0]["text"], "through");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_stops_the_server_call_in_every_cell() {
    // BR-CAN-1, BR-CAN-4, BR-CAN-6, BR-CAN-7, BR-CAN-9.
    for server in SERVER_KINDS {
        for kind in CLIENT_KINDS {
            let harness = Harness::new(server).await;
            let mut caller = connect(kind, &harness.mcp_server).await;
            let mut params = json!({ "name": "gated" });
            if kind == ClientKind::V1 {
                params["task"] = json!({});
            }
            let id = caller.send("tools/call", params).await;
            harness.until_waiting(1).await;
            caller.cancel(id).await;
            harness.until_waiting(0).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_only_tool_is_callable_by_every_client() {
    // BR-CREATE-7, BD-3, BD-13: the gateway drives the task for clients without tasks.
    for server in [ServerKind::V1, ServerKind::V2] {
        let harness = Harness::new(server).await;
        for kind in CLIENT_KINDS {
            let mut caller = connect(kind, &harness.mcp_server).await;
            let CallEnd::Result(result) = caller.call("must", json!({})).await else {
                panic!("{kind:?} → {server:?}");
            };
            assert_eq!(result["content"][0]["text"], "done", "{kind:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_gateway_declares_and_lists_its_own_task_support() {
    // BR-NEG-3, BR-NEG-4, BR-NEG-9, BR-NEG-10, BR-LIST-1, BR-LIST-2, BR-LIST-3, BR-LIST-4.
    for server in SERVER_KINDS {
        let harness = Harness::new(server).await;
        for kind in CLIENT_KINDS {
            let mut caller = connect(kind, &harness.mcp_server).await;
            let can = caller.server_info["capabilities"].clone();
            let cell = format!("{kind:?} → {server:?}: {can}");
            let v1 = can.get("tasks").is_some();
            let v2 = can["extensions"]
                .get("io.modelcontextprotocol/tasks")
                .is_some();
            let modern = matches!(kind, ClientKind::PlainModern | ClientKind::V2);
            assert_eq!((v1, v2), (kind == ClientKind::V1, modern), "{cell}");
            assert_eq!(caller.server_info["instructions"], "Be kind.", "{cell}");
            let listed = caller.request("tools/list", json!({})).await;
            let tools = listed["result"]["tools"].as_array().unwrap();
            let helper = |tool: &&Value| tool["name"].as_str().unwrap().starts_with("task_");
            let helpers = tools.iter().filter(helper).count();
            let without_tasks = matches!(kind, ClientKind::PlainLegacy | ClientKind::PlainModern);
            assert_eq!(helpers, if without_tasks { 3 } else { 0 }, "{cell}");
            for tool in tools {
                let support = &tool["execution"]["taskSupport"];
                let expected = match kind {
                    ClientKind::V1 => json!("optional"),
                    _ => Value::Null,
                };
                assert_eq!(*support, expected, "{cell}: {tool}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_forwarded_or_becomes_the_status_message() {
    // BR-PG-1, BR-PG-2, BR-PG-3.
    for server in SERVER_KINDS {
        for kind in CLIENT_KINDS {
            let harness = Harness::new(server).await;
            let mut caller = connect(kind, &harness.mcp_server).await;
            let params = json!({ "name": "gated", "_meta": { "progressToken": "mine" } });
            let (cell, gate) = (format!("{kind:?} → {server:?}"), harness.gate.clone());
            if kind == ClientKind::V2 {
                let begun = caller.begin(params).await;
                let task = json!({ "taskId": begun["result"]["taskId"] });
                let got = caller.request("tasks/get", task).await;
                assert_eq!(got["result"]["statusMessage"], "1 of 2", "{cell}");
                continue;
            }
            let mut called = params.clone();
            if kind == ClientKind::V1 {
                called["task"] = json!({});
            }
            let id = caller.send("tools/call", called).await;
            let notification = caller.wait_for_notification("notifications/progress").await;
            assert_eq!(notification["params"]["progressToken"], "mine", "{cell}");
            assert_eq!(notification["params"]["progress"], 1.0, "{cell}");
            gate.add_permits(1);
            let answer = caller.response_to(id).await;
            let ended = caller.finish(params, answer).await;
            assert!(matches!(ended, CallEnd::Result(_)), "{cell}: {ended:?}");
        }
    }
}

#[tokio::test]
async fn the_result_over_http_is_the_direct_one() {
    // The upstream is at a URL. Concurrent callers share a connection, and each gets its
    // own input requests.
    for server in SERVER_KINDS {
        let (harness, _listening) = Harness::over_http(server).await;
        for (event, tool, answers) in EVENTS.into_iter().filter(|(_, tool, _)| *tool != "late") {
            let mut direct = connect(ClientKind::PlainLegacy, &harness.direct).await;
            direct.responder = answers;
            let expected = direct.call(tool, json!({ "say": "x" })).await;
            let calls = CLIENT_KINDS.map(|kind| {
                let mcp_server = harness.mcp_server.clone();
                tokio::spawn(async move {
                    let mut caller = connect(kind, &mcp_server).await;
                    caller.responder = answers;
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
async fn an_overdue_call_is_cancelled_at_the_server() {
    for kind in CLIENT_KINDS {
        let mut settings = crate::harness::quick();
        settings.tool_defaults.timeout = Some(std::time::Duration::from_secs(20));
        let harness = Harness::with(ServerKind::V1, settings).await;
        let mut caller = connect(kind, &harness.mcp_server).await;
        let ended = caller.call("gated", json!({})).await;
        let CallEnd::Error(-32603, why) = ended else {
            panic!("{kind:?}: {ended:?}");
        };
        assert!(why.contains("timeoutMs"), "{why}");
        harness.until_waiting(0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_concurrency_limit_wait() {
    let mut settings = crate::harness::quick();
    settings.concurrency = Some(1);
    let harness = Harness::with(ServerKind::PlainLegacy, settings).await;
    let mut caller = connect(ClientKind::V1, &harness.mcp_server).await;
    let begin = json!({ "name": "gated", "task": {} });
    let first = caller.request("tools/call", begin.clone()).await;
    let second = caller.request("tools/call", begin).await;
    harness.until_waiting(1).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    harness.until_waiting(1).await;
    // A queued call is `working`.
    let id = json!({ "taskId": second["result"]["task"]["taskId"] });
    let got = caller.request("tasks/get", id).await;
    assert_eq!(got["result"]["status"], "working");
    harness.gate.add_permits(2);
    for begun in [first, second] {
        let ended = caller.finish(json!({}), begun).await;
        assert!(matches!(ended, CallEnd::Result(_)), "{ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_requests_before_the_work_pass_with_their_keys() {
    // A modern server asks before the work, and a modern client without tasks or with V2 answers.
    for server in [ServerKind::PlainModern, ServerKind::V2] {
        let harness = Harness::new(server).await;
        for kind in [ClientKind::PlainModern, ClientKind::V2] {
            let mut caller = connect(kind, &harness.mcp_server).await;
            let params = json!({ "name": "first" });
            let response = caller.begin(params.clone()).await;
            let result = &response["result"];
            assert_eq!(
                result["resultType"], "input_required",
                "{kind:?} → {server:?}"
            );
            assert_eq!(result["inputRequests"]["who"]["params"]["message"], "Who?");
            let ended = caller.finish(params, response).await;
            assert!(
                matches!(ended, CallEnd::Result(_)),
                "{kind:?} → {server:?}: {ended:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_published_matrix_matches_the_results() {
    let mut rows = String::new();
    for kind in CLIENT_KINDS {
        for server in SERVER_KINDS {
            let pipe = Harness::new(server).await;
            let (http, _listening) = Harness::over_http(server).await;
            let (on_a_pipe, at_a_url) = (
                count_equal_outcomes(kind, &pipe).await,
                count_equal_outcomes(kind, &http).await,
            );
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
    let (before, rest) = text.split_once(TABLE_HEAD).unwrap();
    // The table ends with an empty line.
    let (published, after) = rest.split_once("\n\n").unwrap();
    let rows = rows.trim_end();
    if std::env::var_os("OUTLAST_WRITE_DOCS").is_some() {
        std::fs::write(file, format!("{before}{TABLE_HEAD}{rows}\n\n{after}")).unwrap();
    }
    assert_eq!(
        published, rows,
        "OUTLAST_WRITE_DOCS=1 writes what is true now"
    );
    assert_eq!(
        rows.matches("10 of 10").count(),
        CLIENT_KINDS.len() * SERVER_KINDS.len() * 2
    );
}

/// How many events have the same outcome as without the gateway.
async fn count_equal_outcomes(kind: ClientKind, harness: &Harness) -> String {
    let events = EVENTS.into_iter().filter(|(_, tool, _)| *tool != "late");
    let (mut same, mut all) = (0, 0);
    for (_, tool, answers) in events {
        let mut direct = connect(ClientKind::PlainLegacy, &harness.direct).await;
        let mut through = connect(kind, &harness.mcp_server).await;
        (direct.responder, through.responder) = (answers, answers);
        let arguments = json!({ "say": "x" });
        let expected = direct.call(tool, arguments.clone()).await;
        all += 1;
        same += usize::from(through.call(tool, arguments).await == expected);
    }
    format!("{same} of {all}")
}

/// The text before the rows of the table in the document.
const TABLE_HEAD: &str = "|---|---|---|---|\n";
