//! Prompts, and completion of their arguments.

use outlast::content;
use outlast::prompts::{Prompt, Prompts, Requirement, assistant, user};
use serde_json::{Value, json};

use crate::harness::StdioClient;

fn prompts() -> Prompts {
    let greet = Prompt::new("greet", "greets", |args| async move {
        let name = args.text("name")?;
        Ok(vec![
            user(content::text_block(format!("Greet {name}."))),
            assistant(content::text_block("Hello!")),
        ])
    });
    let greet = greet
        .argument("name", "whom", Requirement::Required)
        .argument("tone", "how", Requirement::Optional)
        .complete("name", |input| async move {
            let names = (0..150).map(|n| format!("{}{n}", input.text));
            let others = input.others.into_values();
            others.chain(names).collect()
        });
    let broken = Prompt::new("broken", "fails", |_| async { Err("no words".into()) });
    Prompts::new().with(greet).with(broken)
}

async fn connect_user(prompts: &Prompts) -> (StdioClient, Value) {
    let mut client = StdioClient::of(|own| own.prompts(prompts.clone())).await;
    let received = client.introduce("2025-11-25", json!({})).await;
    (client, received["capabilities"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_server_declares_only_what_it_has() {
    let (_, capabilities) = connect_user(&prompts()).await;
    assert_eq!(capabilities["prompts"], json!({ "listChanged": true }));
    assert_eq!(capabilities["completions"], json!({}));
    assert_eq!(capabilities.get("resources"), None);
    let (_, capabilities) = connect_user(&Prompts::new()).await;
    assert_eq!(capabilities.get("completions"), None);
    let mut without = StdioClient::new().await;
    for method in ["prompts/list", "prompts/get", "resources/list"] {
        let rejected = without.call(method, json!({ "name": "greet" })).await;
        assert_eq!(rejected["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_is_listed_and_rendered_with_its_arguments() {
    let (mut client, _) = connect_user(&prompts()).await;
    let listed = client.call("prompts/list", json!({})).await;
    let listed = &listed["result"]["prompts"];
    assert_eq!(
        listed[0],
        json!({ "name": "broken", "description": "fails" })
    );
    assert_eq!(
        listed[1]["arguments"],
        json!([
            { "name": "name", "description": "whom", "required": true },
            { "name": "tone", "description": "how", "required": false },
        ])
    );
    let params = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    let got = client.call("prompts/get", params).await;
    assert_eq!(
        got["result"],
        json!({
            "description": "greets",
            "messages": [
                { "role": "user", "content": { "type": "text", "text": "Greet Ada." } },
                { "role": "assistant", "content": { "type": "text", "text": "Hello!" } },
            ],
        })
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_prompt_requests_are_rejected() {
    let (mut client, _) = connect_user(&prompts()).await;
    for (params, code) in [
        (json!({}), -32602),
        (json!({ "name": "unknown" }), -32602),
        (json!({ "name": "greet" }), -32602),
        (json!({ "name": "greet", "arguments": [] }), -32602),
        (json!({ "name": "broken" }), -32603),
    ] {
        let rejected = client.call("prompts/get", params).await;
        assert_eq!(rejected["error"]["code"], code, "{rejected}");
    }
    let rejected = client.call("prompts/list", json!({ "cursor": "x" })).await;
    assert_eq!(rejected["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_completion_has_at_most_a_hundred_values() {
    let (mut client, _) = connect_user(&prompts()).await;
    let about = |name: &str, argument: &str| {
        json!({
            "ref": { "type": "ref/prompt", "name": name },
            "argument": { "name": argument, "value": "a" },
            "context": { "arguments": { "tone": "kind" } },
        })
    };
    let got = client
        .call("completion/complete", about("greet", "name"))
        .await;
    let completion = &got["result"]["completion"];
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!(completion["values"][0], "kind");
    assert_eq!(completion["values"][1], "a0");
    assert_eq!(
        (&completion["total"], &completion["hasMore"]),
        (&json!(151), &json!(true))
    );
    let got = client
        .call("completion/complete", about("greet", "tone"))
        .await;
    assert_eq!(got["result"]["completion"]["values"], json!([]));
    for odd in [
        about("unknown", "name"),
        json!({}),
        json!({ "ref": { "type": "ref/odd" } }),
    ] {
        let rejected = client.call("completion/complete", odd).await;
        assert_eq!(rejected["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_list_is_sent() {
    let prompts = prompts();
    let (mut client, _) = connect_user(&prompts).await;
    prompts.remove("unknown");
    prompts.remove("broken");
    client
        .next_message("notifications/prompts/list_changed")
        .await;
    prompts.add(Prompt::new("more", "another", |_| async { Ok(Vec::new()) }));
    client
        .next_message("notifications/prompts/list_changed")
        .await;
    let listed = client.call("prompts/list", json!({})).await;
    let names: Vec<_> = listed["result"]["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|prompt| prompt["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["greet", "more"]);
    assert_eq!(client.early(), None);
}

#[tokio::test]
async fn a_prompt_can_send_an_input_request() {
    let prompt = Prompt::with_input("letter", "a letter", |_, cx| async move {
        let form = json!({
            "message": "To whom?",
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
        });
        let response = cx.elicit_raw(form).await?;
        Ok(vec![user(content::text_block(format!(
            "Dear {}",
            response["content"]["name"]
        )))])
    });
    let prompts = Prompts::new().with(prompt);
    let mut client = StdioClient::of(|own| own.prompts(prompts)).await;
    client
        .introduce("2025-11-25", json!({ "elicitation": {} }))
        .await;
    let asked_for = client
        .send("prompts/get", json!({ "name": "letter" }))
        .await;
    let input_request = client.next_message("elicitation/create").await;
    assert_eq!(input_request["params"]["message"], "To whom?");
    let response = json!({ "action": "accept", "content": { "name": "Ada" } });
    client
        .write(json!({ "jsonrpc": "2.0", "id": input_request["id"], "result": response }))
        .await;
    let got = client.response_to(asked_for).await;
    assert_eq!(
        got["result"]["messages"][0]["content"]["text"],
        "Dear \"Ada\""
    );
}
