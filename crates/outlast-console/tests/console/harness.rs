//! A server with sample tools and a console, and a browser without scripts.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use outlast::prelude::*;
use outlast::server::{PreparedCall, Scopes};
use outlast::transport::http::{BearerTokens, Token};
use outlast::{RunningServer, text};
use outlast_console::{Console, ConsoleService};
use outlast_engine::Engine;
use outlast_engine::Owner;
use outlast_engine::engine::{CreatedTask, NewCall};
use outlast_engine::{InputKinds, Origin, Scope, TaskId};
use outlast_wire::Raw;
use tower::ServiceExt as _;

/// The host of the console in every request.
pub(crate) const HOST: &str = "127.0.0.1:8040";

pub(crate) struct Site {
    pub(crate) server: RunningServer,
    pub(crate) console: Console,
    pub(crate) service: ConsoleService,
}

/// A response without its body stream.
pub(crate) struct ReceivedResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Site {
    /// A console with the tokens of an operator, of two owners, and of one who only reads.
    pub(crate) async fn start() -> Self {
        Self::with(Server::builder("samples", "1.0")).await
    }

    pub(crate) async fn with(builder: outlast::ServerBuilder) -> Self {
        let slow = Tool::new("slow", "Never ends", |_, _| async {
            std::future::pending::<()>().await;
            Ok(text("done"))
        });
        let echo = Tool::new("echo", "Returns its arguments", |arguments, _| async move {
            Ok(text(
                arguments
                    .get("text")
                    .and_then(|text| text.as_str())
                    .unwrap_or(""),
            ))
        });
        let broken = Tool::new("broken", "Fails", |_, _| async { Err("it broke".into()) });
        let raw = Tool::new(
            "raw",
            "Returns a result as given",
            |arguments, _| async move {
                let text = arguments
                    .get("result")
                    .and_then(|text| text.as_str())
                    .unwrap_or("{}");
                Ok(serde_json::from_str(text).expect("JSON"))
            },
        );
        let large = Tool::new("large", "Returns a long text", |_, _| async move {
            Ok(text("x".repeat(12 << 20)))
        });
        let ask = Tool::new("ask", "Asks for a name", |_, cx| async move {
            let form = serde_json::json!({
                "message": "What is <your> name?",
                "requestedSchema": {
                    "type": "object",
                    "properties": { "name": { "type": "string" } },
                },
            });
            let answer = cx.elicit_raw(form).await?;
            Ok(text(answer.to_string()))
        });
        let builder = builder
            .tool(raw.task(TaskSupport::Optional))
            .tool(large.task(TaskSupport::Optional).hints(Hints::READ_ONLY))
            .tool(ask.task(TaskSupport::Optional))
            .tool(slow.task(TaskSupport::Optional))
            .tool(echo.task(TaskSupport::Optional))
            .tool(broken.task(TaskSupport::Optional));
        let server = builder.build().start().await.expect("a server");
        let tokens = BearerTokens::shared([
            Token::new("root", "root-secret").with_scopes(Scopes::ALL),
            Token::new("ada", "ada-secret"),
            Token::new("bob", "bob-secret"),
            Token::new("ada", "ada-reads").with_scopes(Scopes::READ),
        ]);
        let console = Console::builder(server.engine().clone())
            .authenticate(tokens)
            .sign_in_secret("root-secret")
            .instance("test")
            .token_hint("Ask, or run `outlast gateway token`.")
            .build();
        let service = console.clone().into_service();
        Self {
            server,
            console,
            service,
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.server.engine()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> ReceivedResponse {
        let response = self.service.clone().oneshot(request).await;
        let response = response.expect("the service never fails");
        let (head, body) = response.into_parts();
        let bytes = outlast_testkit::within("the body", to_bytes(body, 64 << 20)).await;
        let bytes = bytes.expect("a body");
        ReceivedResponse {
            status: head.status,
            headers: head.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    /// A GET with a bearer token, as a program sends it.
    pub(crate) async fn get(&self, token: &str, path: &str) -> ReceivedResponse {
        let request = Request::get(path)
            .header(header::HOST, HOST)
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        self.send(request.body(Body::empty()).expect("a request"))
            .await
    }

    /// A POST of JSON with a bearer token.
    pub(crate) async fn post(
        &self,
        token: &str,
        path: &str,
        body: &serde_json::Value,
    ) -> ReceivedResponse {
        let request = Request::post(path)
            .header(header::HOST, HOST)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(body.to_string().into()).expect("a request"))
            .await
    }

    /// Signs a browser in and returns its cookie.
    pub(crate) async fn sign_in(&self, token: &str) -> String {
        let seen = self.browse("", &format!("/?token={token}")).await;
        assert_eq!(seen.status, StatusCode::SEE_OTHER, "{}", seen.text);
        let cookie = seen.headers[header::SET_COOKIE].to_str().expect("ASCII");
        cookie.split(';').next().expect("a pair").to_owned()
    }

    /// A GET of a browser with a cookie.
    pub(crate) async fn browse(&self, cookie: &str, path: &str) -> ReceivedResponse {
        let request = Request::get(path)
            .header(header::HOST, HOST)
            .header(header::COOKIE, cookie);
        self.send(request.body(Body::empty()).expect("a request"))
            .await
    }

    /// The CSRF token of the pages of a browser.
    pub(crate) async fn csrf(&self, cookie: &str) -> String {
        let page = self.browse(cookie, "/").await.text;
        let (_, rest) = page
            .split_once("name=\"csrf\" content=\"")
            .expect("a token");
        rest.split('"').next().expect("its end").to_owned()
    }

    /// Creates a task and waits for its end.
    pub(crate) async fn create_ended_task(
        &self,
        owner: &str,
        tool: &str,
        arguments: &str,
    ) -> TaskId {
        let id = self.task(owner, tool, arguments).await;
        outlast_testkit::eventually("the task ends", async || {
            let found = self
                .engine()
                .get(&Scope::AnyTask, id)
                .await
                .expect("the task");
            found.ending().is_some()
        })
        .await;
        id
    }

    /// Creates a task.
    pub(crate) async fn task(&self, owner: &str, tool: &str, arguments: &str) -> TaskId {
        let params = format!("{{\"name\":{tool:?},\"arguments\":{arguments}}}");
        let runner = PreparedCall::new().runner;
        let origin = Origin {
            tool: Some(tool.into()),
            params: Some(Raw::parse(params).expect("JSON")),
            ..Origin::new("tools/call", runner, InputKinds::all())
        };
        let call = NewCall::new(Owner::principal(owner), origin);
        match self.engine().create(call).await.expect("a task") {
            CreatedTask::New(task) | CreatedTask::Existing(task) => task.id,
        }
    }
}
