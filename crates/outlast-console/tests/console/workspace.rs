//! The pages of the workspace without a browser: tools, requests, connections, traffic.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use outlast::client::{ConnectionName, Target};
use outlast::server::Scopes;
use outlast::transport::http::{BearerTokens, Token};
use outlast_console::Console;
use outlast_console::workspace::{Address, ConnectionSpec};
use outlast_testkit::wait_for;

use crate::harness::{HOST, ReceivedResponse, Site};

/// A console that is connected to its own sample server, and a signed-in browser.
async fn connected() -> (Site, String, String) {
    let site = Site::start().await;
    let target = Target::in_process(site.server.mcp().clone());
    let address = Address::Other("in this process".into(), target);
    let spec = ConnectionSpec::new(ConnectionName::new("samples", "test"), address);
    let tokens = BearerTokens::shared([
        Token::new("root", "root-secret").with_scopes(Scopes::ALL),
        Token::new("ada", "ada-secret"),
        Token::new("ada", "ada-reads").with_scopes(Scopes::READ),
    ]);
    let console = Console::builder(site.engine().clone())
        .authenticate(tokens)
        .instance("test")
        .connection(spec)
        .build();
    let site = Site {
        service: console.clone().into_service(),
        console,
        ..site
    };
    let cookie = site.sign_in("root-secret").await;
    let csrf = site.csrf(&cookie).await;
    wait_for("the tools are shown", async || {
        let page = site.browse(&cookie, "/tools").await.text;
        page.contains("id=\"call-form\"").then_some(())
    })
    .await;
    (site, cookie, csrf)
}

/// Sends a form as a browser does.
async fn submit(site: &Site, cookie: &str, path: &str, pairs: &[(&str, &str)]) -> ReceivedResponse {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(pairs);
    let request = Request::post(path)
        .header(header::HOST, HOST)
        .header(header::ORIGIN, format!("http://{HOST}"))
        .header(header::COOKIE, cookie)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    site.send(request.body(Body::from(body.finish())).expect("a request"))
        .await
}

#[tokio::test]
async fn a_tool_is_called_once_and_its_result_is_text() {
    let (site, cookie, csrf) = connected().await;
    let json = r#"{"text":"<script>alert(1)</script>"}"#;
    let fields = [
        ("csrf", &*csrf),
        ("server", "samples"),
        ("source", "test"),
        ("tool", "echo"),
        ("key", "one"),
        ("mode", "json"),
        ("json", json),
        ("placement", "task"),
        ("ttl", "60"),
        ("op", "run"),
    ];
    for _ in 0..2 {
        let seen = submit(&site, &cookie, "/tools/call", &fields).await;
        assert_eq!(seen.status, StatusCode::SEE_OTHER, "{}", seen.text);
    }
    let page = wait_for("the call has ended", async || {
        let path = "/tools?server=samples&source=test&tool=echo";
        let page = site.browse(&cookie, path).await.text;
        page.contains("data-status=\"completed\"").then_some(page)
    })
    .await;
    assert_eq!(
        page.matches("class=\"call card\"").count(),
        1,
        "a double click makes one call"
    );
    assert!(!page.contains("<script>alert(1)"), "{page}");
    assert!(page.contains("&#60;script&#62;alert(1)"), "{page}");
    let traffic = site
        .browse(&cookie, "/traffic?method=tools/call")
        .await
        .text;
    assert_eq!(traffic.matches("class=\"message-row").count(), 2);
    let export = site
        .browse(&cookie, "/traffic/export?method=tools/call")
        .await
        .text;
    for line in export.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON on each line");
        assert_eq!(line["method"], "tools/call");
    }
}

#[tokio::test]
async fn requested_tasks_and_stored_tasks_are_listed_separately() {
    let (site, cookie, csrf) = connected().await;
    let fields = [
        ("csrf", &*csrf),
        ("server", "samples"),
        ("source", "test"),
        ("tool", "slow"),
        ("key", "three"),
        ("mode", "json"),
        ("json", "{}"),
        ("placement", "task"),
        ("ttl", "60"),
        ("op", "run"),
    ];
    submit(&site, &cookie, "/tools/call", &fields).await;
    site.create_ended_task("root", "echo", "{}").await;
    let row = wait_for("the task is listed", async || {
        let text = site
            .browse(&cookie, "/api/v1/tasks?q=origin:requested")
            .await
            .text;
        let list: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        list["tasks"].get(0).cloned()
    })
    .await;
    for (member, value) in [
        ("origin", "requested"),
        ("source", "test"),
        ("server", "samples"),
        ("tool", "slow"),
        ("status", "working"),
    ] {
        assert_eq!(row[member], value, "{row}");
    }
    // The other filters and the pages apply to both.
    for (search, origins) in [
        ("", "requested store"),
        ("origin:store", "store"),
        ("tool:slow status:open", "requested"),
        ("tool:slow status:failed", ""),
        ("server:other", ""),
        ("owner:ada", ""),
        ("age:%3C1h", "requested store"),
    ] {
        let path = format!("/api/v1/tasks?limit=1&q={}", search.replace(' ', "+"));
        let (mut found, mut after) = (std::collections::BTreeSet::new(), String::new());
        loop {
            let text = site
                .browse(&cookie, &format!("{path}&after={after}"))
                .await
                .text;
            let list: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            for task in list["tasks"].as_array().expect("tasks") {
                // The server of this test keeps the task of the call in the same store.
                if task["origin"] == "requested" || task["tool"] == "echo" {
                    let origin = task["origin"].as_str().expect("a word").to_owned();
                    assert!(found.insert(origin), "a task is on one page: {task}");
                }
            }
            match list["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => break,
            }
        }
        let found: Vec<_> = found.into_iter().collect();
        assert_eq!(found.join(" "), origins, "{search}");
    }
    let page = site.browse(&cookie, "/tasks").await.text;
    assert!(page.contains("data-origin=\"requested\""), "{page}");
    let wrong = site.browse(&cookie, "/tasks?q=origin:here").await.text;
    assert!(wrong.contains("is no origin"), "{wrong}");
}

#[tokio::test]
async fn wrong_arguments_keep_what_was_typed() {
    let (site, cookie, csrf) = connected().await;
    let fields = [
        ("csrf", &*csrf),
        ("server", "samples"),
        ("source", "test"),
        ("tool", "echo"),
        ("mode", "json"),
        ("json", "{ typed"),
        ("op", "run"),
    ];
    let seen = submit(&site, &cookie, "/tools/call", &fields).await;
    assert_eq!(seen.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(seen.text.contains("{ typed"), "the draft stays");
    assert!(seen.text.contains("id=\"call-faults\""));
}

#[tokio::test]
async fn a_request_is_answered_once_and_leaves_with_the_reason() {
    let (site, cookie, csrf) = connected().await;
    let fields = [
        ("csrf", &*csrf),
        ("server", "samples"),
        ("source", "test"),
        ("tool", "ask"),
        ("key", "two"),
        ("mode", "json"),
        ("json", "{}"),
        ("placement", "inline"),
        ("op", "run"),
    ];
    submit(&site, &cookie, "/tools/call", &fields).await;
    let (page, path) = wait_for("a request waits", async || {
        let page = site.browse(&cookie, "/requests").await.text;
        let (_, rest) = page.split_once("action=\"/requests/")?;
        let path = format!("/requests/{}", rest.split('"').next()?);
        Some((page, path))
    })
    .await;
    assert!(page.contains("What is &#60;your&#62; name?"), "{page}");
    let summary = site.browse(&cookie, "/api/v1/requests/summary").await.text;
    assert!(summary.contains("\"elicitations\":1"), "{summary}");
    let answer = [("csrf", &*csrf), ("op", "accept"), ("/name", "Ada")];
    let first = submit(&site, &cookie, &path, &answer).await;
    assert_eq!(first.status, StatusCode::SEE_OTHER, "{}", first.text);
    let second = submit(&site, &cookie, &path, &answer).await;
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert!(
        second.text.contains("already answered by root"),
        "{}",
        second.text
    );
    wait_for("the call has ended", async || {
        let path = "/tools?server=samples&source=test&tool=ask";
        let page = site.browse(&cookie, path).await.text;
        (page.contains("data-status=\"completed\"") && page.contains("Ada")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_views_are_json_without_secrets() {
    let (site, cookie, csrf) = connected().await;
    let fields = [
        ("csrf", &*csrf),
        ("kind", "url"),
        ("url", "http://127.0.0.1:9/mcp"),
        ("headers", "Authorization: Bearer hunter2"),
        ("name", "secret"),
    ];
    submit(&site, &cookie, "/connections/add", &fields).await;
    for (path, member) in [
        ("/api/v1/overview", "counts"),
        ("/api/v1/requests", "requests"),
        ("/api/v1/tools?server=samples&tool=echo", "tool"),
        ("/api/v1/calls", "calls"),
        ("/api/v1/connections", "connections"),
    ] {
        let seen = site.browse(&cookie, path).await;
        assert_eq!(seen.status, StatusCode::OK, "{path}: {}", seen.text);
        let value: serde_json::Value = serde_json::from_str(&seen.text).expect("JSON");
        assert!(!value[member].is_null(), "{path}: {value}");
        assert!(!seen.text.contains("hunter2") && !seen.text.contains(&csrf));
    }
}

#[tokio::test]
async fn a_command_needs_the_scope_to_operate() {
    let (site, ..) = connected().await;
    let cookie = site.sign_in("ada-secret").await;
    let csrf = site.csrf(&cookie).await;
    let fields = [("csrf", &*csrf), ("kind", "command"), ("command", "true")];
    let seen = submit(&site, &cookie, "/connections/add", &fields).await;
    assert_eq!(seen.status, StatusCode::FORBIDDEN, "{}", seen.text);
    let page = site.browse(&cookie, "/connections").await.text;
    assert!(!page.contains("id=\"add-command\""));
    let import = [
        ("csrf", &*csrf),
        ("file", r#"{"servers":{"a":{"command":"true"}}}"#),
    ];
    let seen = submit(&site, &cookie, "/connections/import", &import).await;
    assert_eq!(seen.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_token_that_only_reads_changes_nothing() {
    let (site, ..) = connected().await;
    let cookie = site.sign_in("ada-reads").await;
    let csrf = site.csrf(&cookie).await;
    for path in [
        "/tools/call",
        "/connections/add",
        "/connections/change",
        "/connections/settings",
        "/traffic/clear",
        "/requests/1-1",
        "/calls/1/cancel",
    ] {
        let seen = submit(&site, &cookie, path, &[("csrf", &csrf)]).await;
        assert_eq!(seen.status, StatusCode::FORBIDDEN, "{path}: {}", seen.text);
    }
}

#[tokio::test]
async fn headers_of_a_connection_are_never_shown() {
    let (site, cookie, csrf) = connected().await;
    let fields = [
        ("csrf", &*csrf),
        ("kind", "url"),
        ("url", "http://127.0.0.1:9/mcp"),
        ("headers", "Authorization: Bearer hunter2"),
        ("name", "<b>secret</b>"),
    ];
    let seen = submit(&site, &cookie, "/connections/add", &fields).await;
    assert_eq!(seen.status, StatusCode::SEE_OTHER, "{}", seen.text);
    let page = wait_for("the connection has failed", async || {
        let page = site.browse(&cookie, "/connections").await.text;
        page.contains("data-health=\"failed\"").then_some(page)
    })
    .await;
    assert!(!page.contains("hunter2") && !page.contains("<b>secret"));
    assert!(page.contains("Authorization (hidden)"), "{page}");
    assert!(page.contains("Check that a server listens"), "{page}");
}
