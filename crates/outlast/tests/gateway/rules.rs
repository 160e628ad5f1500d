//! Rules of the bridge that need a server which does exactly what the test says.

use std::time::Duration;

use outlast::client::Era;
use outlast::gateway::{Settings, Upstream};
use outlast_testkit::mcp::caller::{Caller, Ending, KINDS, Kind};
use serde_json::{Value, json};

use crate::caller::{connect, connect_able};
use crate::cell::SERVERS;
use crate::events::task_in;
use crate::outside::connected;
use crate::scripted::{self, Server, capabilities, task};
use crate::upstream::{Stage, gateway, quick};

const RELATED: &str = "io.modelcontextprotocol/related-task";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const WITH_TASKS: [Kind; 2] = [Kind::V1, Kind::V2];

/// Begins a call of which a V1 server makes a task that works, with a minute between two looks.
async fn begun(caller: &mut Caller, server: &mut Server) -> Value {
    let making = async {
        server.list(&[("slow", "optional")]).await;
        let call = server.asked("tools/call").await;
        let made = json!({ "task": task("working", 60_000) });
        server.reply(&call, made).await;
    };
    let (answer, ()) = tokio::join!(caller.begin(json!({ "name": "slow" })), making);
    answer
}

/// The task that a creation names.
fn named(begun: &Value) -> Value {
    json!({ "taskId": task_in(begun) })
}

async fn status(caller: &mut Caller, task: &Value) -> Value {
    // News travel first.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let got = caller.request("tasks/get", task.clone()).await;
    got["result"]["status"].clone()
}

async fn tell(server: &mut Server, status: &str) {
    let told = task(status, 60_000);
    server.notify("notifications/tasks/status", told).await;
}

fn form(message: &str) -> Value {
    json!({ "message": message, "requestedSchema": { "type": "object" } })
}

fn statuses(caller: &Caller) -> Vec<&str> {
    let of_task = |told: &&Value| told["method"] == "notifications/tasks/status";
    let told = caller.told.iter().filter(of_task);
    told.map(|told| told["params"]["status"].as_str().unwrap())
        .collect()
}

/// A client before a modern server that the test plays.
pub(crate) async fn before_modern(kind: Kind, can: Value) -> (Caller, Server) {
    let (target, mut servers) = scripted::target();
    let (_, front) = gateway(Upstream::new("played", target, modern())).await;
    let connecting = tokio::spawn(async move { connect_able(kind, &front, "by-hand", can).await });
    let mut server = servers.next().await;
    discovered(&mut server).await;
    (connecting.await.unwrap(), server)
}

/// The settings for a modern server.
pub(crate) fn modern() -> Settings {
    Settings {
        era: Era::Modern,
        ..quick()
    }
}

/// Introduces a modern server that does tasks.
pub(crate) async fn discovered(server: &mut Server) {
    let asked = server.asked("server/discover").await;
    let about = json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {}, "extensions": { EXTENSION: {} } },
        "ttlMs": 0,
        "cacheScope": "private",
    });
    server.reply(&asked, about).await;
}

/// A V2 task as the server shows it.
fn modern_task(kind: &str, status: &str, message: &str) -> Value {
    json!({
        "resultType": kind, "taskId": "t1", "status": status, "statusMessage": message,
        "createdAt": "2026-01-10T08:00:00Z", "lastUpdatedAt": "2026-01-10T08:00:00Z",
        "ttlMs": 600_000, "pollIntervalMs": 1_000,
    })
}

/// Answers the lists that the gateway asks for, and then the call.
pub(crate) async fn modern_call(server: &mut Server) -> Value {
    let list = server.asked("tools/list").await;
    let tool = json!({ "name": "slow", "inputSchema": { "type": "object" } });
    let tools = json!({ "resultType": "complete", "tools": [tool], "ttlMs": 60_000, "cacheScope": "private" });
    server.reply(&list, tools).await;
    server.asked("tools/call").await
}

#[tokio::test(start_paused = true)]
async fn a_task_changes_as_its_generation_says_however_its_server_jumps() {
    // BR-GEN-4, BR-GEN-5, BR-NT-3, BD-7.
    for kind in WITH_TASKS {
        let (mut caller, mut server) = connected(kind, capabilities()).await;
        let begun = begun(&mut caller, &mut server).await;
        let id = named(&begun);
        // BD-7: the question is not here yet.
        tell(&mut server, "input_required").await;
        let fetch = server.asked("tasks/result").await;
        assert_eq!(status(&mut caller, &id).await, "working", "{kind:?}");
        // BR-NT-3: it has ended, and its outcome is not here yet.
        tell(&mut server, "completed").await;
        assert_eq!(status(&mut caller, &id).await, "working", "{kind:?}");
        // What has ended does not work again.
        tell(&mut server, "working").await;
        server.reply(&fetch, scripted::text("done")).await;
        assert_eq!(status(&mut caller, &id).await, "completed", "{kind:?}");
        tell(&mut server, "failed").await;
        assert_eq!(status(&mut caller, &id).await, "completed", "{kind:?}");
        if kind == Kind::V1 {
            assert_eq!(statuses(&caller), ["completed"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn looks_of_a_client_are_answered_from_the_record_and_so_are_its_lists() {
    // BR-GEN-8, BR-LT-1: this server lists no tasks, and is not asked to.
    for kind in WITH_TASKS {
        let mut can = capabilities();
        can["tasks"].as_object_mut().unwrap().remove("list");
        let (mut caller, mut server) = connected(kind, can).await;
        let begun = begun(&mut caller, &mut server).await;
        let id = named(&begun);
        for _ in 0..100 {
            let got = caller.request("tasks/get", id.clone()).await;
            assert_eq!(got["result"]["status"], "working", "{kind:?}");
        }
        if kind == Kind::V1 {
            let listed = caller.request("tasks/list", json!({})).await;
            let tasks = listed["result"]["tasks"].as_array().unwrap();
            assert_eq!(tasks.len(), 1);
            assert_eq!(tasks[0]["taskId"], id["taskId"]);
        }
        server.silence(Duration::from_secs(30)).await;
        // One look, at the pace of the server.
        let look = server.asked("tasks/get").await;
        server.reply(&look, task("working", 60_000)).await;
        server.silence(Duration::from_secs(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_result_that_is_cut_is_begun_again_while_input_is_required() {
    // BR-RES-5.
    let (mut caller, mut server) = connected(Kind::V2, capabilities()).await;
    let begun = begun(&mut caller, &mut server).await;
    tell(&mut server, "input_required").await;
    for _ in 0..3 {
        let fetch = server.asked("tasks/result").await;
        server.refuse(&fetch, -32_603, "cut").await;
        let look = server.asked("tasks/get").await;
        server.reply(&look, task("input_required", 1_000)).await;
    }
    let fetch = server.asked("tasks/result").await;
    let mut question = form("Who?");
    question["_meta"][RELATED] = json!({ "taskId": "t1" });
    server.ask("q", "elicitation/create", question).await;
    let finishing = tokio::spawn(async move { caller.finish(json!({}), begun).await });
    let answer = server.answer("q").await;
    assert_eq!(answer["result"]["content"]["name"], "Ada/Who?");
    server.reply(&fetch, scripted::text("done")).await;
    assert!(matches!(finishing.await.unwrap(), Ending::Result(_)));
}

#[tokio::test(start_paused = true)]
async fn what_has_been_answered_or_has_ended_is_not_cancelled() {
    // BR-CAN-3, BR-CAN-10.
    let (mut caller, mut server) = connected(Kind::V1, capabilities()).await;
    let begun = begun(&mut caller, &mut server).await;
    let id = named(&begun);
    let cancelled = json!({ "requestId": begun["id"] });
    caller.notify("notifications/cancelled", cancelled).await;
    assert_eq!(status(&mut caller, &id).await, "working");
    server.silence(Duration::from_secs(1)).await;
    tell(&mut server, "completed").await;
    let fetch = server.asked("tasks/result").await;
    server.reply(&fetch, scripted::text("done")).await;
    assert_eq!(status(&mut caller, &id).await, "completed");
    let refused = caller.request("tasks/cancel", id.clone()).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    server.silence(Duration::from_secs(1)).await;
    assert_eq!(status(&mut caller, &id).await, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_its_server_cancels_is_cancelled_for_everybody() {
    // BR-CAN-11, bridge §14.4.
    for kind in KINDS {
        let (mut caller, mut server) = connected(kind, capabilities()).await;
        let calling = tokio::spawn(async move { caller.call("slow", json!({})).await });
        server.list(&[("slow", "required")]).await;
        let call = server.asked("tools/call").await;
        let made = json!({ "task": task("working", 60_000) });
        server.reply(&call, made).await;
        // Longer than the grace window.
        tokio::time::sleep(Duration::from_millis(500)).await;
        tell(&mut server, "cancelled").await;
        let ended = calling.await.unwrap();
        let is_so = match (&ended, kind) {
            (Ending::Cancelled, _) => true,
            (Ending::Error(-32603, why), Kind::PlainLegacy | Kind::PlainModern) => {
                why.contains("cancelled")
            }
            _ => false,
        };
        assert!(is_so, "{kind:?}: {ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_call_that_is_cancelled_is_answered_for_its_server_and_gone_for_its_client()
{
    // BR-CAN-12, BR-CAN-6.
    for kind in WITH_TASKS {
        let (mut caller, mut server) = connected(kind, json!({ "tools": {} })).await;
        caller.silent = true;
        let asking = async {
            server.list(&[("slow", "forbidden")]).await;
            let call = server.asked("tools/call").await;
            server.ask("q", "elicitation/create", form("Who?")).await;
            call
        };
        let (begun, call) = tokio::join!(caller.begin(json!({ "name": "slow" })), asking);
        let id = named(&begun);
        while status(&mut caller, &id).await != "input_required" {}
        let got = caller.request("tasks/get", id.clone()).await;
        let ack = caller.request("tasks/cancel", id.clone()).await;
        assert!(ack.get("error").is_none(), "{ack}");
        let answer = server.answer("q").await;
        assert_eq!(answer["result"]["action"], "cancel", "{kind:?}: {answer}");
        let told = server.told("notifications/cancelled").await;
        assert_eq!(told["params"]["requestId"], call["id"]);
        while status(&mut caller, &id).await != "cancelled" {}
        let gone = caller.request("tasks/get", id.clone()).await;
        assert!(gone["result"].get("inputRequests").is_none(), "{gone}");
        // Late answers are ignored.
        let accept = json!({ "action": "accept", "content": {} });
        if kind == Kind::V2 {
            let keys = got["result"]["inputRequests"].as_object().unwrap();
            let key = keys.keys().next().unwrap();
            let update = json!({ "taskId": id["taskId"], "inputResponses": { key: accept } });
            let taken = caller.request("tasks/update", update).await;
            assert!(taken.get("error").is_none(), "{taken}");
        } else {
            let asked = caller.until_told("elicitation/create").await;
            let late = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": accept });
            caller.write(late).await;
        }
        assert_eq!(status(&mut caller, &id).await, "cancelled");
        server.silence(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_caller_that_leaves_before_its_task_is_made_takes_the_work_along_and_a_legacy_one_does_not()
 {
    // BR-CREATE-10, BR-CAN-13.
    let (mut caller, mut server) = connected(Kind::V2, capabilities()).await;
    let request = caller.send("tools/call", json!({ "name": "slow" })).await;
    server.list(&[("slow", "optional")]).await;
    let call = server.asked("tools/call").await;
    let cancelled = json!({ "requestId": request });
    caller.notify("notifications/cancelled", cancelled).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let made = json!({ "task": task("working", 60_000) });
    server.reply(&call, made.clone()).await;
    let cancel = server.asked("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "t1");

    let (target, mut servers) = scripted::target();
    let (_, front) = gateway(Upstream::new("played", target, quick())).await;
    let calling = front.clone();
    let left = tokio::spawn(async move {
        let mut caller = connect(Kind::V1, &calling).await;
        let params = json!({ "name": "slow", "task": {} });
        caller.send("tools/call", params).await;
        // Until it is on its way.
        tokio::time::sleep(Duration::from_millis(500)).await;
    });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    server.list(&[("slow", "optional")]).await;
    let call = server.asked("tools/call").await;
    left.await.unwrap();
    server.reply(&call, made).await;
    let mut caller = connect(Kind::V1, &front).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let listed = caller.request("tasks/list", json!({})).await;
    let tasks = listed["result"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "{listed}");
    assert_eq!(tasks[0]["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_a_server_makes_at_its_client_is_hosted_by_the_gateway() {
    // BR-CH-1.
    for kind in WITH_TASKS {
        let (mut caller, mut server) = connected(kind, capabilities()).await;
        let begun = begun(&mut caller, &mut server).await;
        let mut question = form("Who?");
        question["task"] = json!({ "ttl": 60_000 });
        question["_meta"][RELATED] = json!({ "taskId": "t1" });
        server.ask("q", "elicitation/create", question).await;
        let made = server.answer("q").await;
        let hosted = &made["result"]["task"];
        assert_eq!(hosted["status"], "working", "{kind:?}: {made}");
        let id = json!({ "taskId": hosted["taskId"] });
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.ask("g", "tasks/get", id.clone()).await;
        let shown = server.answer("g").await;
        assert_eq!(shown["result"]["status"], "input_required", "{shown}");
        server.ask("r", "tasks/result", id.clone()).await;
        let finishing = tokio::spawn(async move {
            let ended = caller.finish(json!({}), begun).await;
            (caller, ended)
        });
        let result = server.answer("r").await;
        let said = &result["result"];
        assert_eq!(said["content"]["name"], "Ada/Who?", "{kind:?}: {result}");
        assert_eq!(said["_meta"][RELATED], id, "{result}");
        tell(&mut server, "completed").await;
        let fetch = server.asked("tasks/result").await;
        server.reply(&fetch, scripted::text("done")).await;
        let (caller, ended) = finishing.await.unwrap();
        assert!(matches!(ended, Ending::Result(_)), "{kind:?}");
        // The client was asked in its own way, and for no task.
        let (method, params) = &caller.asked[0];
        assert_eq!(method, "elicitation/create");
        assert!(params.get("task").is_none(), "{params}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_client_can_be_asked_is_declared_to_a_modern_server_with_every_request() {
    // BR-NEG-7, BR-NEG-8.
    for kind in KINDS {
        for (can, declared) in [
            (json!({}), json!({})),
            (
                json!({ "roots": { "listChanged": true }, "elicitation": {} }),
                json!({ "roots": {}, "elicitation": { "form": {} } }),
            ),
            (
                json!({ "sampling": { "tools": {} } }),
                json!({ "sampling": { "tools": {} } }),
            ),
        ] {
            let (mut caller, mut server) = before_modern(kind, can).await;
            let calling = tokio::spawn(async move { caller.call("slow", json!({})).await });
            let call = modern_call(&mut server).await;
            let mut expected = declared.clone();
            expected["extensions"][EXTENSION] = json!({});
            let made = modern_task("task", "working", "begun");
            server.reply(&call, made).await;
            let look = server.asked("tasks/get").await;
            for request in [&call, &look] {
                let said = &request["params"]["_meta"][CAPABILITIES];
                assert_eq!(*said, expected, "{kind:?}: {request}");
            }
            let mut ended = modern_task("complete", "completed", "over");
            ended["result"] = scripted::text("done");
            ended["result"]["resultType"] = json!("complete");
            server.reply(&look, ended).await;
            let ended = calling.await.unwrap();
            assert!(matches!(ended, Ending::Result(_)), "{kind:?}: {ended:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn words_of_a_v2_task_are_words_of_a_v1_task_and_no_progress() {
    // BR-PG-4, BD-18.
    let (mut caller, mut server) = before_modern(Kind::V1, json!({})).await;
    let params = json!({ "name": "slow", "task": {}, "_meta": { "progressToken": "mine" } });
    let making = async {
        let call = modern_call(&mut server).await;
        server
            .reply(&call, modern_task("task", "working", "begun"))
            .await;
    };
    let (begun, ()) = tokio::join!(caller.request("tools/call", params), making);
    let id = named(&begun);
    let mut times = Vec::new();
    for words in ["a third", "two thirds"] {
        let look = server.asked("tasks/get").await;
        // The clock of the engine is that of the wall.
        std::thread::sleep(Duration::from_millis(20));
        server
            .reply(&look, modern_task("complete", "working", words))
            .await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let got = caller.request("tasks/get", id.clone()).await;
        assert_eq!(got["result"]["statusMessage"], words);
        times.push(got["result"]["lastUpdatedAt"].as_str().unwrap().to_owned());
    }
    assert!(times[0] < times[1], "{times:?}");
    let told = caller
        .told
        .iter()
        .map(|told| told["method"].as_str().unwrap());
    let told: Vec<_> = told.collect();
    assert!(told.contains(&"notifications/tasks/status"), "{told:?}");
    assert!(!told.contains(&"notifications/progress"), "{told:?}");
}

/// A client that can be asked to open pages.
async fn opens_pages(kind: Kind) -> (Caller, Server) {
    let (target, mut servers) = scripted::target();
    let (_, front) = gateway(Upstream::new("played", target, quick())).await;
    let can = json!({ "elicitation": { "form": {}, "url": {} } });
    let connecting = tokio::spawn(async move { connect_able(kind, &front, "by-hand", can).await });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    (connecting.await.unwrap(), server)
}

fn page() -> Value {
    json!({ "mode": "url", "message": "Sign in", "url": "https://example.org/in", "elicitationId": "e1" })
}

#[tokio::test(start_paused = true)]
async fn only_a_legacy_client_hears_what_a_page_is_called() {
    // BR-IN-10.
    for kind in KINDS {
        let (mut caller, mut server) = opens_pages(kind).await;
        let calling = tokio::spawn(async move {
            let ended = caller.call("slow", json!({})).await;
            (caller, ended)
        });
        server.list(&[("slow", "forbidden")]).await;
        let call = server.asked("tools/call").await;
        server.ask("q", "elicitation/create", page()).await;
        assert_eq!(server.answer("q").await["result"]["action"], "accept");
        let done = json!({ "elicitationId": "e1" });
        server
            .notify("notifications/elicitation/complete", done.clone())
            .await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.reply(&call, scripted::text("in")).await;
        let (caller, ended) = calling.await.unwrap();
        assert!(matches!(ended, Ending::Result(_)), "{kind:?}: {ended:?}");
        let complete = |told: &&Value| told["method"] == "notifications/elicitation/complete";
        let complete = caller
            .told
            .iter()
            .find(complete)
            .map(|told| &told["params"]);
        let (_, asked) = &caller.asked[0];
        assert_eq!(asked["url"], "https://example.org/in");
        match kind {
            Kind::PlainLegacy | Kind::V1 => {
                assert_eq!(asked["elicitationId"], "e1", "{kind:?}");
                assert_eq!(complete, Some(&done), "{kind:?}");
            }
            Kind::PlainModern | Kind::V2 => {
                assert!(asked.get("elicitationId").is_none(), "{kind:?}: {asked}");
                assert_eq!(complete, None, "{kind:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_modern_server_gets_a_name_for_a_legacy_client() {
    // BR-IN-10.
    let can = json!({ "elicitation": { "form": {}, "url": {} } });
    let (mut caller, mut server) = before_modern(Kind::PlainLegacy, can).await;
    let calling = tokio::spawn(async move {
        let ended = caller.call("slow", json!({})).await;
        (caller, ended)
    });
    let call = modern_call(&mut server).await;
    let mut page = page();
    page.as_object_mut().unwrap().remove("elicitationId");
    let asks = json!({ "k": { "method": "elicitation/create", "params": page } });
    let asked =
        json!({ "resultType": "input_required", "inputRequests": asks, "requestState": "s" });
    server.reply(&call, asked).await;
    let again = server.asked("tools/call").await;
    assert_eq!(again["params"]["inputResponses"]["k"]["action"], "accept");
    let mut done = scripted::text("in");
    done["resultType"] = json!("complete");
    server.reply(&again, done).await;
    let (caller, ended) = calling.await.unwrap();
    assert!(matches!(ended, Ending::Result(_)), "{ended:?}");
    let name = caller.asked[0].1["elicitationId"].as_str().unwrap();
    assert!(!name.is_empty());
}

/// Refuses a call because a page has to be opened first.
async fn demand(server: &mut Server, call: &Value) {
    let error =
        json!({ "code": -32042, "message": "sign in first", "data": { "elicitations": [page()] } });
    server
        .write(json!({ "jsonrpc": "2.0", "id": call["id"], "error": error }))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_must_be_opened_first_is_asked_for_in_the_way_of_the_caller() {
    // BR-IN-11.
    for kind in KINDS {
        let (mut caller, mut server) = opens_pages(kind).await;
        let params = json!({ "name": "slow" });
        let calling = tokio::spawn(async move {
            let answer = caller.begin(params.clone()).await;
            let ended = caller.finish(params, answer.clone()).await;
            (answer, ended)
        });
        server.list(&[("slow", "forbidden")]).await;
        let call = server.asked("tools/call").await;
        demand(&mut server, &call).await;
        if matches!(kind, Kind::PlainModern | Kind::V2) {
            let again = server.asked("tools/call").await;
            server.reply(&again, scripted::text("in")).await;
            let (answer, ended) = calling.await.unwrap();
            let result = &answer["result"];
            assert_eq!(result["resultType"], "input_required", "{kind:?}: {answer}");
            let Ending::Result(result) = ended else {
                panic!("{kind:?}: {ended:?}");
            };
            assert_eq!(result["content"][0]["text"], "in");
        } else {
            let (_, ended) = calling.await.unwrap();
            let passed = Ending::Error(-32042, "sign in first".into());
            assert_eq!(ended, passed, "{kind:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_caller_that_opens_no_pages_is_told_what_it_lacks() {
    // BR-IN-11.
    for kind in [Kind::PlainModern, Kind::V2] {
        let (mut caller, mut server) = connected(kind, json!({ "tools": {} })).await;
        let calling = tokio::spawn(async move { caller.begin(json!({ "name": "slow" })).await });
        server.list(&[("slow", "forbidden")]).await;
        let call = server.asked("tools/call").await;
        demand(&mut server, &call).await;
        let answer = calling.await.unwrap();
        assert_eq!(answer["error"]["code"], -32021, "{kind:?}: {answer}");
        let required = &answer["error"]["data"]["requiredCapabilities"];
        assert_eq!(*required, json!({ "elicitation": { "url": {} } }));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_task_may_ask_is_what_its_creation_declared() {
    // BD-8: a poll that declares less sees the question all the same.
    for server in SERVERS {
        let stage = Stage::new(server).await;
        let mut caller = connect(Kind::V2, &stage.front).await;
        let begun = caller.begin(json!({ "name": "late" })).await;
        let id = named(&begun);
        caller.can = json!({});
        for _ in 0..100 {
            if status(&mut caller, &id).await == "input_required" {
                break;
            }
        }
        let got = caller.request("tasks/get", id).await;
        let asked = got["result"]["inputRequests"].as_object().unwrap();
        assert_eq!(asked.len(), 1, "{server:?}");
        let ended = caller.finish(json!({}), begun).await;
        assert!(matches!(ended, Ending::Result(_)), "{server:?}: {ended:?}");
    }
}
