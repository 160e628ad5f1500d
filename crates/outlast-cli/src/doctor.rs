//! `outlast doctor`: what a server is and can do in each era, and what is odd about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast::TaskSupport;
use outlast::back::{Client, ClientOptions, Era, Generation, Server, Target, ToolInfo};
use serde_json::{Value, json};

use crate::args::Doctor;
use crate::connect::connect;
use crate::exit::Failure;
use crate::person::Person;
use crate::target;

/// What was found out.
struct Findings {
    server: Server,
    /// The same in the other era, or why not.
    other: Result<Server, String>,
    connected_ms: u128,
    tools: Arc<[ToolInfo]>,
    /// Sentences about what is odd, each with what it means for a caller.
    noticed: Vec<String>,
}

pub(crate) async fn run(doctor: Doctor) -> Result<(), Failure> {
    let server = target::resolve(&doctor.reach, doctor.target.as_deref())?;
    let target = server.target.clone();
    let began = Instant::now();
    let connected = connect(server, &Person::Away).await?;
    let connected_ms = began.elapsed().as_millis();
    let found = examine(&connected.client, target, connected_ms).await;
    connected.close().await;
    let found = found?;
    match doctor.json {
        true => println!("{}", as_json(&found)),
        false => print(&found),
    }
    Ok(())
}

async fn examine(client: &Client, target: Target, connected_ms: u128) -> Result<Findings, Failure> {
    let server = client.server().await?;
    let other = match server.is_modern() {
        true => Era::Legacy,
        false => Era::Modern,
    };
    let mut noticed = Vec::new();
    if let Err(fault) = client.ping().await {
        noticed.push(format!("it does not answer `ping`: {fault}"));
    }
    let capabilities: Value = server.capabilities.open().unwrap_or_default();
    let tools = match capabilities.get("tools") {
        None => {
            noticed.push("it declares no tools, so there is nothing to call".into());
            Vec::new().into()
        }
        Some(_) => match client.tools().await {
            Ok(tools) => tools,
            Err(fault) => {
                noticed.push(format!("its tools cannot be listed: {fault}"));
                Vec::new().into()
            }
        },
    };
    noticed.extend(oddities(server.generation, &tools));
    Ok(Findings {
        server,
        other: introduction(target, other).await,
        connected_ms,
        tools,
        noticed,
    })
}

/// How a server introduces itself in another era.
async fn introduction(target: Target, era: Era) -> Result<Server, String> {
    let options = ClientOptions {
        era,
        handshake: OTHER,
        ..ClientOptions::default()
    };
    let told = |fault: outlast::back::Fault| fault.to_string();
    let client = Client::connect(target, options).await.map_err(told)?;
    let server = client.server().await.map_err(told);
    client.close().await;
    server
}

/// What does not fit together.
fn oddities(generation: Generation, tools: &[ToolInfo]) -> Vec<String> {
    let mut noticed = Vec::new();
    let willing: Vec<_> = tools
        .iter()
        .filter(|tool| tool.task_support != TaskSupport::Forbidden)
        .map(|tool| &*tool.name)
        .collect();
    match (generation.takes_tool_tasks(), willing.is_empty()) {
        (false, false) => noticed.push(format!(
            "tools say that they run as tasks ({}), but the server does not declare it: they are called plainly",
            willing.join(", ")
        )),
        (true, true) if !tools.is_empty() => {
            noticed.push("it takes tasks, but no tool says that it runs as one: all are called plainly".into());
        }
        _ => {}
    }
    if generation.takes_tool_tasks() && !generation.cancels() {
        noticed.push("its tasks cannot be cancelled".into());
    }
    // In V2 nobody's can.
    if matches!(generation, Generation::V1(_)) && !generation.lists() {
        noticed.push("its tasks cannot be listed: keep the ids".into());
    }
    for tool in tools {
        let raw: Value = tool.raw.open().unwrap_or_default();
        if raw["inputSchema"]["type"] != "object" {
            noticed.push(format!(
                "tool {} has no schema of an object for its arguments",
                tool.name
            ));
        }
    }
    noticed
}

fn print(found: &Findings) {
    let Findings {
        server,
        other,
        connected_ms,
        tools,
        noticed,
    } = found;
    let info: Value = server
        .info
        .as_ref()
        .and_then(|info| info.open().ok())
        .unwrap_or_default();
    println!(
        "server    {} {}",
        said(&info["name"]),
        said(&info["version"])
    );
    println!(
        "protocol  {} (connected in {connected_ms} ms)",
        server.version
    );
    println!("tasks     {}", tasks(server.generation));
    println!("offers    {}", offers(server));
    match other {
        Ok(other) => {
            println!("also      {}", other.version);
            println!("  tasks   {}", tasks(other.generation));
            println!("  offers  {}", offers(other));
        }
        Err(_) if server.is_modern() => println!("also      nothing older"),
        Err(_) => println!("also      nothing newer"),
    }
    if !tools.is_empty() {
        println!("tools");
    }
    for tool in tools.iter() {
        println!(
            "  {:<32} task {:<9} {}",
            tool.name,
            support(tool.task_support),
            arguments(tool)
        );
    }
    for sentence in noticed {
        println!("noticed   {sentence}");
    }
}

/// What a server declares, by name.
fn offers(server: &Server) -> String {
    let capabilities: Value = server.capabilities.open().unwrap_or_default();
    let names = capabilities
        .as_object()
        .map(|all| all.keys().map(String::as_str).collect::<Vec<_>>());
    names.unwrap_or_default().join(", ")
}

/// What a server is in one era.
fn era_as_json(server: &Server) -> Value {
    json!({
        "protocolVersion": &*server.version,
        "capabilities": server.capabilities.open::<Value>().unwrap_or_default(),
        "tasks": tasks(server.generation),
    })
}

fn as_json(found: &Findings) -> Value {
    let open = |raw: &outlast::wire::Raw| raw.open::<Value>().unwrap_or_default();
    let tools: Vec<_> = found
        .tools
        .iter()
        .map(|tool| json!({ "name": &*tool.name, "taskSupport": support(tool.task_support), "tool": open(&tool.raw) }))
        .collect();
    let other = match &found.other {
        Ok(other) => era_as_json(other),
        Err(why) => json!({ "unavailable": why }),
    };
    let this = era_as_json(&found.server);
    let (modern, legacy) = match found.server.is_modern() {
        true => (&this, &other),
        false => (&other, &this),
    };
    json!({
        "serverInfo": found.server.info.as_ref().map(open),
        "protocolVersion": this["protocolVersion"],
        "capabilities": this["capabilities"],
        "tasks": this["tasks"],
        "eras": { "modern": modern, "legacy": legacy },
        "connectedMs": found.connected_ms as u64,
        "tools": tools,
        "noticed": found.noticed,
    })
}

/// How a server does tasks, in words.
fn tasks(generation: Generation) -> String {
    match generation {
        Generation::V2 => return "V2: the server decides for each call".into(),
        generation if !generation.takes_tool_tasks() => return "none".into(),
        _ => {}
    }
    let also: Vec<_> = [
        (generation.lists(), "list"),
        (generation.cancels(), "cancel"),
    ]
    .into_iter()
    .filter_map(|(can, what)| can.then_some(what))
    .collect();
    format!("V1: tools/call {}", also.join(" "))
        .trim_end()
        .into()
}

fn support(support: TaskSupport) -> &'static str {
    match support {
        TaskSupport::Forbidden => "forbidden",
        TaskSupport::Optional => "optional",
        TaskSupport::Required => "required",
    }
}

/// `name, name?` of a tool: what it takes.
fn arguments(tool: &ToolInfo) -> String {
    let raw: Value = tool.raw.open().unwrap_or_default();
    let schema = &raw["inputSchema"];
    let needed = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == name))
    };
    let Some(properties) = schema["properties"].as_object() else {
        return String::new();
    };
    let names = properties.keys().map(|name| match needed(name) {
        true => name.clone(),
        false => format!("{name}?"),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn said(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// How long a server may take to introduce itself in another era.
const OTHER: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::wire::{Raw, v1::ServerTasks};

    fn tool(name: &str, task_support: TaskSupport, raw: &Value) -> ToolInfo {
        ToolInfo {
            name: name.into(),
            task_support,
            raw: Raw::encode(raw).unwrap(),
        }
    }

    #[test]
    fn what_does_not_fit_is_noticed() {
        let fine = json!({ "inputSchema": { "type": "object" } });
        let willing = [tool("a", TaskSupport::Optional, &fine)];
        let unwilling = [tool("b", TaskSupport::Forbidden, &json!({}))];
        let some = Generation::V1(ServerTasks {
            tools_call: true,
            cancel: true,
            list: true,
        });
        assert_eq!(oddities(some, &willing), [""; 0]);
        assert!(oddities(Generation::None, &willing)[0].contains("called plainly"));
        let odd = oddities(some, &unwilling);
        assert!(odd[0].contains("no tool says"), "{odd:?}");
        assert!(odd[1].contains("tool b has no schema"), "{odd:?}");
        let bare = Generation::V1(ServerTasks {
            tools_call: true,
            cancel: false,
            list: false,
        });
        assert_eq!(oddities(bare, &willing).len(), 2);
    }
}
