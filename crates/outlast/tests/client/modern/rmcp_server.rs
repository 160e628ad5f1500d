//! An rmcp 3.8 server with its own tasks, on a pipe.

use std::time::Duration;

use outlast::client::{Client, Era, Target, TaskPreference};
use outlast::task::Outcome;
use outlast::transport::duplex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
    CreateTaskResult, ErrorData, GetTaskParams, GetTaskResult, InputRequest, ServerCapabilities,
    ServerConfig, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, serve_server};
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};

use super::{filled_in, form};
use crate::harness::{raw, result_text, with_inbox};

#[derive(Clone, Default)]
struct RmcpServer(TaskManager);

impl rmcp::ServerHandler for RmcpServer {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_tasks();
        ServerConfig::new(can.build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let options = TaskOptions::new().with_poll_interval_ms(100);
        let done = || CallToolResult::success(vec![ContentBlock::text("done")]);
        let task = match &*request.name {
            "plain" => return Ok(done().into()),
            "slow" => self.0.spawn(options, move |_| {
                Box::pin(async move {
                    tokio::time::sleep(Duration::from_millis(150)).await;
                    Ok(done())
                })
            }),
            "broken" => self.0.spawn(options, |_| {
                Box::pin(async {
                    Err(TaskExit::Error(ErrorData::internal_error("it broke", None)))
                })
            }),
            "ask" => self.0.spawn(options, |cx| {
                Box::pin(async move {
                    let input_request: InputRequest = serde_json::from_value(form("Who?")).unwrap();
                    let answer = cx.request_input("who", input_request).await?;
                    let text = answer["content"]["x"].to_string();
                    Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
                })
            }),
            _ => self.0.spawn(options, |cx| {
                Box::pin(async move {
                    cx.cancelled().await;
                    Err(TaskExit::Cancelled)
                })
            }),
        };
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.0.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0
            .update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.cancel_task(&request.task_id)
    }
}

fn target() -> Target {
    let peer = RmcpServer::default();
    Target::other("rmcp", move || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let peer = peer.clone();
        tokio::spawn(async move {
            if let Ok(running) = serve_server(peer, theirs).await {
                let _ = running.waiting().await;
            }
        });
        let (read, write) = tokio::io::split(ours);
        Ok(duplex::over(read, write))
    })
}

#[tokio::test]
async fn the_tasks_of_an_rmcp_server_are_driven() {
    let work = async {
        let (inbox, options) = with_inbox();
        let options = options.with_era(Era::Auto);
        let client = Client::connect(target(), options).await.unwrap();
        let server = client.server().await.unwrap();
        assert!(server.is_modern() && server.generation.supports_tool_tasks());
        let call = client.call_tool("plain", ()).await.unwrap();
        assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
        let call = client
            .call_tool("slow", ())
            .task(TaskPreference::Require)
            .await
            .unwrap();
        assert!(call.task().await.is_some());
        assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
        let call = client.call_tool("broken", ()).await.unwrap();
        assert!(matches!(call.outcome().await, Ok(Outcome::Error(_, code, _)) if code.0 == -32603));
        let call = client.call_tool("ask", ()).await.unwrap();
        let item = inbox.first().await;
        assert_eq!(item.request.task, call.task().await);
        inbox.respond(item.id, raw(filled_in("Ann"))).unwrap();
        assert_eq!(result_text(&call.outcome().await.unwrap()), r#""Ann""#);
        let call = client.call_tool("endless", ()).await.unwrap();
        let task = call.task().await.unwrap();
        assert_eq!(call.cancel().await, Ok(()));
        assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
        let status = client.get_task(&task).await.unwrap().status;
        assert_eq!(status.to_string(), "cancelled");
        assert_eq!(
            client.get_task("no-such-task").await.unwrap_err().code(),
            Some(-32602)
        );
        client.close().await;
    };
    let done = tokio::time::timeout(Duration::from_secs(60), work).await;
    done.expect("it ends in time");
}
