//! The outcome of a call on standard output.

use outlast::engine::Outcome;
use outlast::wire::Raw;
use serde_json::{Value, json};

use crate::exit::Failure;

/// Prints what came out, as it stands or for people, and says how that went.
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
            match as_json {
                true => println!("{{\"error\":{}}}", error.as_str()),
                false => {
                    let error: Value = error.open().unwrap_or_default();
                    println!(
                        "{} ({})",
                        error["message"].as_str().unwrap_or("an error"),
                        error["code"]
                    );
                }
            }
            Err(Failure::Tool)
        }
        Outcome::Cancelled => Err(Failure::Cancelled),
    }
}

fn show(result: &Raw, as_json: bool) {
    if as_json {
        println!("{}", result.as_str());
        return;
    }
    let opened: Value = result.open().unwrap_or_default();
    let blocks = opened["content"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    for block in blocks {
        println!("{}", in_words(block));
    }
    if blocks.is_empty() {
        // Nothing meant for people: the structured content, or everything.
        let whole = opened
            .get("structuredContent")
            .map_or_else(|| result.as_str().to_owned(), Value::to_string);
        println!("{whole}");
    }
}

/// A content block in words: text as it is, the rest described.
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
    fn blocks_are_told_in_words() {
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
}
