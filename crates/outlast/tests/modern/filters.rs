//! The typed filter of `tasks/update`.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use outlast::prelude::*;
use outlast::server::{FilteredRequest, Middleware, RequestError};
use outlast::wire::Raw;
use serde_json::{Value, json};

use crate::harness::name_response;
use crate::stdio_client::StdioClient;

/// Writes names in capitals, refuses the name `Eve`, and records the tasks.
struct Names(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Middleware for Names {
    async fn update_task(&self, request: FilteredRequest<'_, Raw>) -> Result<Raw, RequestError> {
        let mut responses = request.input_responses();
        for response in responses.values_mut() {
            let name = response["content"]["name"].as_str().unwrap_or_default();
            if name == "Eve" {
                return Err(RequestError::invalid_params("Eve is not a name"));
            }
            response["content"]["name"] = name.to_uppercase().into();
        }
        let task = request.task_id().unwrap_or_default();
        self.0.lock().unwrap().push(task);
        request.with_input_responses(responses).run().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_changes_and_refuses_input_responses() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let who = Tool::new("who", "asks for a name", |_, cx| async move {
        let form = json!({
            "mode": "form",
            "message": "Who?",
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
        });
        let answer = cx.elicit_raw(form).await?;
        Ok(text(answer["content"]["name"].to_string()))
    });
    let server = Server::builder("test", "1")
        .tool(who.task(TaskSupport::Optional))
        .middleware(Names(seen.clone()))
        .build();
    let server = server.start().await.unwrap();
    let mut client = StdioClient::connect(server.mcp().clone());
    let task = client.task("who").await;
    let asks = client.until(&task, "input_required").await;
    let key = asks["inputRequests"].as_object().unwrap().keys().next();
    let key = key.unwrap().clone();
    let update = |response: Value| json!({ "taskId": task, "inputResponses": { &key: response } });
    let refused = client
        .call("tasks/update", update(name_response("Eve")))
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(refused["error"]["message"], "Eve is not a name");
    assert_eq!(client.status(&task).await["status"], "input_required");
    let ack = client
        .call("tasks/update", update(name_response("Ada")))
        .await;
    assert_eq!(ack["result"]["resultType"], "complete", "{ack}");
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "\"ADA\"");
    assert_eq!(*seen.lock().unwrap(), [task]);
}
