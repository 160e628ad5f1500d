//! `outlast doctor`: prints what a server supports in each era of the protocol, and its problems.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast::TaskSupport;
use outlast::client::{
    self, Client, ClientOptions, Era, Generation, ServerDescription, Target, ToolInfo,
};
use outlast::transport::link::TransportError;
use serde_json::{Value, json};

use crate::args::Doctor;
use crate::connect::connect;
use crate::exit::Failure;
use crate::sessions::Purpose;
use crate::target;
use crate::terminal::{self, Column, StyledLine, Tone, table};
use crate::terminal_host::TerminalHost;
use crate::tools::{arguments, support};

/// The result of the examination.
struct Findings {
    server: ServerDescription,
    other: OtherEra,
    connected_ms: u128,
    tools: Arc<[ToolInfo]>,
    /// Problems, each with its effect on a caller.
    noticed: Vec<String>,
}

/// What is known about the server in the era that was not used for the first connection.
enum OtherEra {
    Present(Box<ServerDescription>),
    /// The server responded that it does not support that era.
    Absent,
    /// The reason why it could not be determined.
    Unknown(String),
}

pub(crate) async fn run(doctor: Doctor) -> Result<(), Failure> {
    let server = target::resolve(&doctor.server_args, doctor.target.as_deref())?;
    let target = server.target.clone();
    let began = Instant::now();
    let connection = connect(server, &TerminalHost::Deferred, Purpose::Calls).await?;
    let connected_ms = began.elapsed().as_millis();
    let found = examine(&connection.client, connected_ms).await;
    // A server may hold a lock, so its process ends before a second one starts.
    connection.close().await;
    let mut found = found?;
    let other = if found.server.is_modern() {
        Era::Legacy
    } else {
        Era::Modern
    };
    found.other = other_era(target, other).await;
    if doctor.json {
        terminal::out_json(&as_json(&found).to_string());
    } else {
        print(&found);
    }
    Ok(())
}

async fn examine(client: &Client, connected_ms: u128) -> Result<Findings, Failure> {
    let server = client.server().await?;
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
    noticed.extend(contradictions(server.generation, &tools));
    Ok(Findings {
        server,
        other: OtherEra::Unknown("not tried yet".into()),
        connected_ms,
        tools,
        noticed,
    })
}

/// Connects a second time, in the other era.
async fn other_era(target: Target, era: Era) -> OtherEra {
    let options = ClientOptions::default()
        .with_era(era)
        .with_handshake_timeout(OTHER_ERA_TIMEOUT);
    let found = match Client::connect(target, options).await {
        Ok(client) => {
            let server = client.server().await;
            client.close().await;
            server
        }
        Err(fault) => Err(fault),
    };
    match found {
        Ok(server) => OtherEra::Present(Box::new(server)),
        Err(fault) if is_refusal(&fault, era) => OtherEra::Absent,
        Err(fault) => OtherEra::Unknown(fault.to_string()),
    }
}

/// Whether the error means that the server does not support `era`. Other errors do not show that.
fn is_refusal(fault: &client::Error, era: Era) -> bool {
    match fault {
        client::Error::Peer(_) | client::Error::Unsupported(_) => true,
        // A3-1: a legacy server may not respond to `server/discover`.
        client::Error::TimedOut(_) => era == Era::Modern,
        client::Error::Transport(TransportError::Refused { status, .. }) => {
            matches!(status, 400 | 404 | 405 | 406 | 415)
        }
        _ => false,
    }
}

/// Returns the contradictions in what the server declares.
fn contradictions(generation: Generation, tools: &[ToolInfo]) -> Vec<String> {
    let mut noticed = Vec::new();
    let willing: Vec<_> = tools
        .iter()
        .filter(|tool| tool.task_support != TaskSupport::Forbidden)
        .map(|tool| &*tool.name)
        .collect();
    match (generation.supports_tool_tasks(), willing.is_empty()) {
        (false, false) => noticed.push(format!(
            "tools declare that they run as tasks ({}), but the server does not: they are called without tasks",
            willing.join(", ")
        )),
        (true, true) if !tools.is_empty() => {
            noticed.push("it supports tasks, but no tool declares that it runs as one: all are called without tasks".into());
        }
        _ => {}
    }
    if generation.supports_tool_tasks() && !generation.cancels() {
        noticed.push("its tasks cannot be cancelled".into());
    }
    // V2 has no `tasks/list` at all.
    if matches!(generation, Generation::V1(_)) && !generation.lists() {
        noticed.push("its tasks cannot be listed: store their ids".into());
    }
    for tool in tools {
        let raw: Value = tool.raw.open().unwrap_or_default();
        if raw["inputSchema"]["type"] != "object" {
            noticed.push(format!(
                "the input schema of tool {} is not an object",
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
    let name = StyledLine::new()
        .text(text_or_unknown(&info["name"]))
        .text(" ")
        .text(text_or_unknown(&info["version"]));
    show("server", name);
    let connected = format!(" (connected in {connected_ms} ms)");
    let protocol = StyledLine::new().text(&server.version);
    show("protocol", protocol.tone(Tone::Muted, connected));
    show("tasks", tasks_line(server.generation));
    show("offers", capability_names(server));
    match other {
        OtherEra::Present(other) => {
            show("also", &*other.version);
            show("  tasks", tasks_line(other.generation));
            show("  offers", capability_names(other));
        }
        OtherEra::Absent if server.is_modern() => show("also", "nothing older"),
        OtherEra::Absent => show("also", "nothing newer"),
        OtherEra::Unknown(reason) => {
            let which = if server.is_modern() { "older" } else { "newer" };
            let unknown = format!("unknown: no connection in the {which} era: {reason}");
            show("also", StyledLine::new().tone(Tone::Warning, unknown));
        }
    }
    if !tools.is_empty() {
        terminal::out(StyledLine::new().tone(Tone::Strong, "tools"));
    }
    let rows: Vec<_> = tools.iter().map(row).collect();
    let width = terminal::out_width().map(|width| width.saturating_sub(INDENT.len()));
    for line in table(&COLUMNS, &rows, width).iter().skip(1) {
        terminal::out(StyledLine::from(INDENT).line(line));
    }
    for sentence in noticed {
        // Not cut: it is what the user looks for.
        terminal::out(label("noticed").tone(Tone::Warning, sentence));
    }
}

/// Prints one fact, cut to the terminal.
fn show(name: &str, fact: impl Into<StyledLine>) {
    terminal::out_cut(label(name).line(&fact.into()));
}

/// The name of a fact, in the first column.
fn label(name: &str) -> StyledLine {
    let name = StyledLine::new().tone(Tone::Strong, name);
    name.pad(LABEL_COLUMNS, false)
}

fn row(tool: &ToolInfo) -> Vec<StyledLine> {
    let tone = match tool.task_support {
        TaskSupport::Forbidden => Tone::Muted,
        TaskSupport::Optional | TaskSupport::Required => Tone::Success,
    };
    let support = format!("task {}", support(tool.task_support));
    vec![
        StyledLine::new().text(&tool.name),
        StyledLine::new().tone(tone, support),
        StyledLine::new().tone(Tone::Muted, signature(tool)),
    ]
}

fn tasks_line(generation: Generation) -> StyledLine {
    let tone = if generation.supports_tool_tasks() {
        Tone::Success
    } else {
        Tone::Muted
    };
    StyledLine::new().tone(tone, tasks(generation))
}

/// Lists the names of the declared capabilities.
fn capability_names(server: &ServerDescription) -> String {
    let capabilities: Value = server.capabilities.open().unwrap_or_default();
    let names = capabilities
        .as_object()
        .map(|all| all.keys().map(String::as_str).collect::<Vec<_>>());
    names.unwrap_or_default().join(", ")
}

/// What a server declares in one era.
fn era_as_json(server: &ServerDescription) -> Value {
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
        OtherEra::Present(other) => era_as_json(other),
        OtherEra::Absent => json!({ "absent": true }),
        OtherEra::Unknown(reason) => json!({ "unknown": reason }),
    };
    let this = era_as_json(&found.server);
    let (modern, legacy) = if found.server.is_modern() {
        (&this, &other)
    } else {
        (&other, &this)
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

/// Describes the server's task support.
fn tasks(generation: Generation) -> String {
    match generation {
        Generation::V2 => return "V2: the server decides for each call".into(),
        generation if !generation.supports_tool_tasks() => return "none".into(),
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

/// `name, name?` for a tool: its arguments, optional ones with a question mark.
fn signature(tool: &ToolInfo) -> String {
    let names = arguments(tool).into_iter().map(|argument| {
        if argument.required {
            argument.name
        } else {
            format!("{}?", argument.name)
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

fn text_or_unknown(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// The columns of the tools; the heading is not printed.
const COLUMNS: [Column; 3] = [
    Column::new("").cuts(),
    Column::new(""),
    Column::new("").cuts().optional(1),
];

const INDENT: &str = "  ";

const LABEL_COLUMNS: usize = 10;

/// How long a server may take to respond in the other era.
const OTHER_ERA_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::wire::{Raw, ServerTasks};

    fn tool(name: &str, task_support: TaskSupport, raw: &Value) -> ToolInfo {
        ToolInfo {
            name: name.into(),
            task_support,
            raw: Raw::encode(raw).unwrap(),
        }
    }

    #[test]
    fn only_a_refusal_shows_that_an_era_is_absent() {
        let ended = client::Error::Transport(TransportError::Ended {
            status: "exit status: 1".into(),
            printed: "the store is in use".into(),
        });
        let silent = client::Error::TimedOut(OTHER_ERA_TIMEOUT);
        let refused = client::Error::Unsupported("MCP 2026-07-28".into());
        for era in [Era::Legacy, Era::Modern] {
            assert!(!is_refusal(&ended, era));
            assert!(is_refusal(&refused, era));
        }
        assert!(is_refusal(&silent, Era::Modern));
        assert!(!is_refusal(&silent, Era::Legacy));
    }

    #[test]
    fn contradictory_declarations_are_reported() {
        let fine = json!({ "inputSchema": { "type": "object" } });
        let willing = [tool("a", TaskSupport::Optional, &fine)];
        let unwilling = [tool("b", TaskSupport::Forbidden, &json!({}))];
        let some = Generation::V1(ServerTasks {
            tools_call: true,
            cancel: true,
            list: true,
        });
        assert_eq!(contradictions(some, &willing), [""; 0]);
        assert!(contradictions(Generation::None, &willing)[0].contains("called without tasks"));
        let odd = contradictions(some, &unwilling);
        assert!(odd[0].contains("no tool declares"), "{odd:?}");
        assert!(odd[1].contains("the input schema of tool b"), "{odd:?}");
        let bare = Generation::V1(ServerTasks {
            tools_call: true,
            cancel: false,
            list: false,
        });
        assert_eq!(contradictions(bare, &willing).len(), 2);
    }
}
