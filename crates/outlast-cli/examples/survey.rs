//! A server on standard input and output whose tool asks with a form of several fields, and that
//! locks its store: `survey STORE`.

use outlast::{Server, TaskSupport, Tool, text};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = std::env::args().nth(1).ok_or("name a store")?;
    // A second process fails here while the first one runs.
    let store = outlast::store::open_store(&store.parse()?, Default::default()).await?;
    let survey = Tool::new(
        "survey",
        "Asks for several values and returns them.",
        |_, cx| async move {
            let form = json!({
                "mode": "form",
                "message": "About you:",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "name": { "type": "string", "title": "Your name", "minLength": 2 },
                        "mail": { "type": "string", "format": "email" },
                        "age": { "type": "integer", "minimum": 0, "maximum": 150 },
                        "colour": { "type": "string", "enum": ["red", "green"] },
                        "note": { "type": "string" },
                        "weekly": { "type": "boolean" },
                    },
                    "required": ["name", "mail", "age", "colour", "weekly"],
                },
            });
            let answer = cx.elicit_raw(form).await?;
            Ok(text(answer["content"].to_string()))
        },
    );
    let server = Server::builder("survey", "1")
        .store(store)
        .tool(survey.task(TaskSupport::Optional))
        .build();
    server.serve_stdio().await?;
    Ok(())
}
