//! `confirm_and_sample`: asks the user of the client, then its model.

use outlast::schemars::JsonSchema;
use outlast::tools::{Hints, SamplingRequest};
use outlast::{TaskSupport, Tool, current, text};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct Writing {
    /// What the line is about.
    topic: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "outlast::schemars")]
struct Confirmation {
    /// Write it.
    confirm: bool,
}

/// The tool. As a task it is `input_required` until the user responds. Without a task it sends its
/// requests on the stream of the response.
pub(crate) fn confirm_and_sample() -> Tool {
    Tool::typed(
        "confirm_and_sample",
        "Asks before it writes a line",
        |args: Writing, cx| async move {
            let message = format!("Write about {}?", args.topic);
            let form = cx.elicit::<Confirmation>(&message).await?.accepted();
            if !form.is_some_and(|form| form.confirm) {
                return Ok(text("Nothing was written."));
            }
            Ok(text(line_about(&args.topic).await?))
        },
    )
    .task(TaskSupport::Optional)
    // It can be repeated: if the process is killed, it asks again.
    .hints(Hints::READ_ONLY)
}

/// Asks the model. `current` returns the context of the running tool.
async fn line_about(topic: &str) -> Result<String, String> {
    let cx = current().ok_or("no tool is running")?;
    let request = SamplingRequest::new(topic)
        .system_prompt("Write one line about what the user names.")
        .max_tokens(100);
    let response = cx.sample(request).await;
    let response = response.map_err(|error| error.to_string())?;
    Ok(response.text().to_owned())
}
