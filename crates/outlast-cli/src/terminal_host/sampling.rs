//! A sampling request on the terminal. The user answers in place of a model, or declines.

use outlast::wire::Raw;
use serde_json::{Value, json};

use super::lines::Lines;
use super::{QUOTE, UserReply};
use crate::terminal::{self, say};

/// Shows the request and reads the answer.
pub(super) async fn answer(params: &Value, lines: &Lines) -> UserReply {
    if let Some(system) = params["systemPrompt"].as_str() {
        quote("system", system);
    }
    for message in params["messages"].as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or("?");
        quote(role, &content_text(&message["content"]));
    }
    for tool in params["tools"].as_array().into_iter().flatten() {
        quote("with tool", tool["name"].as_str().unwrap_or("?"));
    }
    match lines
        .choose("[y]es, type the response yourself; [d]ecline", &["y", "d"])
        .await
    {
        Some("y") => {}
        Some(_) => return UserReply::Decline,
        None => return UserReply::Cancel,
    }
    say!("  the response, in one line:");
    match lines.next().await {
        Some(text) => UserReply::Respond(Raw::from(&json!({
            "role": "assistant",
            "content": { "type": "text", "text": text },
            "model": "a person at a terminal",
            "stopReason": "endTurn",
        }))),
        None => UserReply::Cancel,
    }
}

/// Prints text of the server, with each line marked.
fn quote(what: &str, text: &str) {
    terminal::quote(QUOTE, &format!("{what}: {text}"));
}

/// The text of a message, or the type of other content.
fn content_text(content: &Value) -> String {
    let one = |content: &Value| match content["text"].as_str() {
        Some(text) => text.to_owned(),
        None => format!("[{}]", content["type"].as_str().unwrap_or("content")),
    };
    match content.as_array() {
        Some(several) => several.iter().map(one).collect::<Vec<_>>().join(" "),
        None => one(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_any_content_is_shown() {
        assert_eq!(content_text(&json!({ "type": "text", "text": "hi" })), "hi");
        assert_eq!(
            content_text(&json!([{ "type": "text", "text": "hi" }, { "type": "image" }])),
            "hi [image]"
        );
        assert_eq!(content_text(&json!(7)), "[content]");
    }
}
