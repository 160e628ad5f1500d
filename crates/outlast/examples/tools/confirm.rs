//! `confirm_and_sample`: asks the user of the client, then its model.

use outlast::schemars::JsonSchema;
use outlast::tools::Hints;
use outlast::{TaskSupport, Tool, current, text};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct Writing {
    /// What the line is about.
    topic: String,
}

/// The tool. As a task it is `input_required` until the user responds. Without a task it sends its
/// requests on the stream of the response.
pub(crate) fn confirm_and_sample() -> Tool {
    Tool::typed(
        "confirm_and_sample",
        "Asks before it writes a line",
        |args: Writing, cx| async move {
            let answer = cx.elicit(confirmation(&args.topic)).await?;
            if answer["action"] != "accept" || answer["content"]["confirm"] != true {
                return Ok(text("Nothing was written."));
            }
            Ok(text(line_about(&args.topic).await?))
        },
    )
    .task(TaskSupport::Optional)
    // It can be repeated: if the process is killed, it asks again.
    .hints(Hints::READ_ONLY)
}

fn confirmation(topic: &str) -> Value {
    json!({
        "mode": "form",
        "message": format!("Write about {topic}?"),
        "requestedSchema": {
            "type": "object",
            "properties": { "confirm": { "type": "boolean", "title": "Write it" } },
            "required": ["confirm"],
        },
    })
}

/// Asks the model. The context of the running tool is available by `current`.
async fn line_about(topic: &str) -> Result<String, String> {
    let cx = current().ok_or("no tool is running")?;
    let message = json!({ "role": "user", "content": { "type": "text", "text": topic } });
    let asked = cx.sample(json!({
        "messages": [message],
        "systemPrompt": "Write one line about what the user names.",
        "maxTokens": 100,
    }));
    let said = asked.await.map_err(|error| error.to_string())?;
    Ok(said["content"]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}
