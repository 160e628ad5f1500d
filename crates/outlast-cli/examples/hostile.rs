//! A server for the tests of the terminal: `hostile STORE ADDRESS`. Every text that it sends
//! contains escape sequences, direction marks and line breaks.

use std::time::Duration;

use outlast::tools::Hints;
use outlast::{Server, TaskSupport, Tool, text};
use serde_json::json;

/// Sets the window title, clears the screen, colours, changes the writing direction, and imitates a
/// line of `outlast`.
const HOSTILE: &str =
    "a\x1b]0;title\x07\x1b[2J\u{9b}31m\u{9d}52;c;aGk=\u{9c}\u{202e}b\r\nforged: line\rforged";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let store = args.next().ok_or("a store")?.parse()?;
    let address = args.next().ok_or("an address")?;
    eprintln!("{HOSTILE}");
    let wait = Tool::new("wait", HOSTILE, |_, cx| async move {
        cx.status(HOSTILE);
        tokio::time::sleep(Duration::from_secs(600)).await;
        Ok(text(HOSTILE))
    })
    .hints(Hints::READ_ONLY);
    let says = Tool::new("says", HOSTILE, |_, cx| async move {
        cx.status(HOSTILE);
        Ok(text(HOSTILE))
    });
    let structured = Tool::new("structured", HOSTILE, |_, _| async move {
        Ok(text(json!({ HOSTILE: HOSTILE }).to_string()))
    });
    let fails = Tool::new("fails", HOSTILE, |_, _| async move { Err(HOSTILE.into()) });
    let asks = Tool::new("asks", HOSTILE, |_, cx| async move {
        let field = json!({ "type": "string", "title": HOSTILE, "description": HOSTILE, "default": HOSTILE });
        let form = json!({
            "mode": "form",
            "message": HOSTILE,
            "requestedSchema": { "type": "object", "properties": { "name": field } },
        });
        cx.elicit_raw(form).await?;
        Ok(text("done"))
    });
    let opens = Tool::new("opens", HOSTILE, |_, cx| async move {
        let url = format!("https://example.com/{HOSTILE}");
        let page = json!({ "mode": "url", "message": HOSTILE, "url": url, "elicitationId": "1" });
        cx.elicit_raw(page).await?;
        Ok(text("done"))
    });
    let samples = Tool::new("samples", HOSTILE, |_, cx| async move {
        let message = json!({ "role": "user", "content": { "type": "text", "text": HOSTILE } });
        let request = json!({ "messages": [message], "systemPrompt": HOSTILE, "maxTokens": 9 });
        cx.sample_raw(request).await?;
        Ok(text("done"))
    });
    let named = Tool::new(
        "n\x1b[2J\u{202e}\nforged: tool",
        HOSTILE,
        |_, _| async move { Ok(text(HOSTILE)) },
    );
    let tools = [wait, says, structured, fails, asks, opens, samples, named];
    let tools = tools
        .into_iter()
        .map(|tool| tool.task(TaskSupport::Optional));
    let store = outlast::store::open_store(&store, Default::default()).await?;
    let server = Server::builder(HOSTILE, HOSTILE)
        .instructions(HOSTILE)
        .tools(tools)
        .store(store)
        .build();
    if address == "stdio" {
        return Ok(server.serve_stdio().await?);
    }
    let running = server.serve_http(&address).await?;
    println!("{}", running.url());
    // The test kills it.
    std::future::pending().await
}
