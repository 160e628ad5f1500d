//! Prints the outcome of a call and selects the exit code, by the same rules for tasks in a store
//! and at a server.

use outlast::task::Outcome;
use outlast::wire::Raw;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::terminal;

/// Prints the outcome, as JSON or formatted. An outcome other than a result is a failure of the
/// command. The error of a call goes to standard error, except as JSON.
pub(crate) fn outcome(outcome: &Outcome, as_json: bool) -> Result<(), Failure> {
    match outcome {
        Outcome::Result(result) => {
            show(result, as_json);
            Ok(())
        }
        Outcome::ToolError(result, _) => {
            show(result, as_json);
            Err(Failure::Tool)
        }
        Outcome::Error(error, ..) => {
            if as_json {
                terminal::out_json(&format!("{{\"error\":{}}}", error.as_str()));
            } else {
                show_error(error);
            }
            if outcome.is_unknown() {
                Err(Failure::UnknownOutcome)
            } else {
                Err(Failure::Tool)
            }
        }
        Outcome::Cancelled => Err(Failure::Cancelled),
    }
}

fn show_error(error: &Raw) {
    let error: Value = error.open().unwrap_or_default();
    let message = error["message"].as_str().unwrap_or("an error");
    // Each line, because the message is text of a server.
    let text = format!("{message} ({})", error["code"]);
    text.lines().for_each(terminal::err);
}

fn show(result: &Raw, as_json: bool) {
    if as_json {
        terminal::out_json(result.as_str());
        return;
    }
    let opened: Value = result.open().unwrap_or_default();
    let blocks = opened["content"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    for block in blocks {
        match in_words(block) {
            // Many tools return JSON as text.
            text if text.starts_with(['{', '[']) && terminal::indented(&text).is_some() => {
                terminal::out_json(&text);
            }
            text => terminal::out_text(&text),
        }
    }
    if blocks.is_empty() {
        // No content to print: use the structured content, or the whole result.
        match opened.get("structuredContent") {
            Some(structured) => terminal::out_json(&structured.to_string()),
            None => terminal::out_json(result.as_str()),
        }
    }
}

/// Describes a content block: text unchanged, other kinds by type and size.
fn in_words(block: &Value) -> String {
    let about = |name: &str| block[name].as_str().unwrap_or("?");
    match block["type"].as_str() {
        Some("text") => about("text").to_owned(),
        Some(kind @ ("image" | "audio")) => {
            let size = block["data"].as_str().map_or(0, str::len) / 4 * 3;
            format!(
                "[{kind}: {}, about {size} bytes; --json shows it]",
                about("mimeType")
            )
        }
        Some("resource_link") => format!("[link: {} {}]", about("name"), about("uri")),
        Some("resource") => match block["resource"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => format!(
                "[resource: {}]",
                block["resource"]["uri"].as_str().unwrap_or("?")
            ),
        },
        _ => json!(block).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_blocks_are_described() {
        for (block, want) in [
            (json!({ "type": "text", "text": "hi" }), "hi"),
            (
                json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" }),
                "[image: image/png, about 3 bytes; --json shows it]",
            ),
            (
                json!({ "type": "resource_link", "name": "n", "uri": "file:///x" }),
                "[link: n file:///x]",
            ),
            (
                json!({ "type": "resource", "resource": { "uri": "u", "text": "body" } }),
                "body",
            ),
            (json!({ "type": "new" }), r#"{"type":"new"}"#),
        ] {
            assert_eq!(in_words(&block), want);
        }
    }

    #[test]
    fn every_outcome_has_its_exit_code() {
        let result = || Raw::parse(r#"{"content":[]}"#.into()).unwrap();
        let error = outlast::task::ErrorCode(-32000);
        for (made, expected) in [
            (
                Outcome::ToolError(result(), None),
                "the tool returned an error",
            ),
            (Outcome::error(error, "no"), "the tool returned an error"),
            (Outcome::unknown("stopped"), "the outcome is unknown"),
            (Outcome::Cancelled, "the call was cancelled"),
        ] {
            let failure = outcome(&made, true).unwrap_err().to_string();
            assert!(failure.starts_with(expected), "{made:?}: {failure}");
        }
        assert!(outcome(&Outcome::Result(result()), true).is_ok());
    }
}
