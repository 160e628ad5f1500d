//! The events of open pages.

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, StatusCode, header};
use futures_util::StreamExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::harness::{HOST, Site};

/// An open stream.
struct Events {
    body: BodyDataStream,
    text: String,
}

impl Events {
    async fn open(site: &Site, token: &str) -> Self {
        let request = Request::get("/api/v1/events")
            .header(header::HOST, HOST)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .body(Body::empty())
            .expect("a request");
        let response = site
            .service
            .clone()
            .oneshot(request)
            .await
            .expect("a response");
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "text/event-stream"
        );
        let mut events = Self {
            body: response.into_body().into_data_stream(),
            text: String::new(),
        };
        assert_eq!(events.next().await.0, "hello");
        events
    }

    /// The next event with its data.
    async fn next(&mut self) -> (String, Value) {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let line = |name: &str| {
                    let mut lines = event.lines();
                    lines
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::trim)
                };
                let name = line("event:").map(str::to_owned);
                let data = serde_json::from_str(line("data:").unwrap_or("null")).expect("JSON");
                self.text = rest.to_owned();
                if let Some(name) = name {
                    return (name, data);
                }
                continue;
            }
            let chunk = outlast_testkit::within("an event", self.body.next()).await;
            let chunk = chunk.expect("an open stream").expect("bytes");
            self.text
                .push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
        }
    }
}

#[tokio::test]
async fn status_events_carry_the_revision() {
    let site = Site::start().await;
    let mut events = Events::open(&site, "root-secret").await;
    let id = site.create_ended_task("ada", "broken", "{}").await;
    let mut last = 0;
    loop {
        let (name, data) = events.next().await;
        assert_eq!(name, "mcpTaskStatus");
        assert_eq!(data["taskId"], id.to_string());
        assert_eq!(data["source"], "store");
        assert!(data["server"].is_string());
        let revision = data["revision"].as_u64().expect("a revision");
        assert!(revision >= last);
        last = revision;
        if data["status"] == "failed" {
            assert_eq!(data["statusMessage"], "it broke");
            return;
        }
    }
}

#[tokio::test]
async fn an_owner_receives_events_of_its_own_tasks_only() {
    let site = Site::start().await;
    let mut events = Events::open(&site, "bob-secret").await;
    site.create_ended_task("ada", "echo", "{}").await;
    let own = site.create_ended_task("bob", "echo", "{}").await;
    let (_, data) = events.next().await;
    assert_eq!(data["taskId"], own.to_string());
}

#[tokio::test]
async fn events_of_a_workspace_go_to_its_person_alone() {
    let site = Site::start().await;
    let mut operator = Events::open(&site, "root-secret").await;
    let mut owner = Events::open(&site, "ada-secret").await;
    // The connection of ada changes. The next event of the operator is about a task.
    let cookie = site.sign_in("ada-secret").await;
    let csrf = site.csrf(&cookie).await;
    let body = format!("csrf={csrf}&kind=url&url=http://127.0.0.1:9/mcp&name=mine");
    let request = Request::post("/connections/add")
        .header(header::HOST, HOST)
        .header(header::ORIGIN, format!("http://{HOST}"))
        .header(header::COOKIE, &cookie)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let seen = site.send(request.body(Body::from(body)).expect("a request"));
    assert_eq!(seen.await.status, StatusCode::SEE_OTHER);
    let (name, data) = owner.next().await;
    assert_eq!(
        (&*name, &data["server"]),
        ("connectionChanged", &"mine".into())
    );
    site.create_ended_task("ada", "echo", "{}").await;
    assert_eq!(operator.next().await.0, "mcpTaskStatus");
}

#[tokio::test]
async fn a_slow_reader_receives_resync() {
    let site = Site::start().await;
    let mut events = Events::open(&site, "root-secret").await;
    for round in 0..4 {
        let mut all = Vec::new();
        for at in 0..300 {
            // The number of open tasks of one owner is limited.
            all.push(site.task(&format!("{round}-{at}"), "echo", "{}").await);
        }
        let last = all.last().copied().expect("a task");
        outlast_testkit::eventually("all end", async || {
            let found = site
                .engine()
                .get(&outlast_engine::Scope::AnyTask, last)
                .await;
            found.is_ok_and(|task| task.ending().is_some())
        })
        .await;
    }
    let found = async {
        loop {
            if events.next().await.0 == "resync" {
                return;
            }
        }
    };
    outlast_testkit::within("resync", found).await;
}
