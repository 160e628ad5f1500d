//! `outlast call`: calls a tool of any server, as a task if possible.

mod arguments;
mod follow;
pub(crate) mod print;
mod status;

use std::time::Duration;

use outlast::client::{Client, TaskPreference};
use outlast::task::Outcome;
use outlast::wire::Raw;
use serde_json::{Map, Value, json};

use crate::args::Call;
use crate::connect::{ServerConnection, connect};
use crate::exit::Failure;
use crate::nearest::nearest;
use crate::sessions::Purpose;
use crate::target;
use crate::task_location::TaskLocation;
use crate::terminal::{self, clean};
use crate::terminal_host::TerminalHost;

pub(crate) use follow::{End, Interrupt, follow};
pub(crate) use status::{CallStatus, SHORT_ID_CHARS, Spinner, bar, spinner_style};

pub(crate) async fn run(mut call: Call) -> Result<(), Failure> {
    let mut words = std::mem::take(&mut call.words);
    if !call.server_args.command.is_empty()
        && let [url, _, ..] = &words[..]
        && target::is_url(url)
    {
        return Err(target::both_given(url));
    }
    let server = target::take(&call.server_args, &mut words)?;
    let (Some(server), false) = (server, words.is_empty()) else {
        return Err(Failure::Usage(
            "no tool is given\n  next: `outlast tools` with the same target lists the tools".into(),
        ));
    };
    let (tool, words) = (words.remove(0), words);
    let host = match TerminalHost::detect(call.input) {
        // The input requests of a detached task wait for `outlast tasks answer` or `watch`.
        TerminalHost::Absent if call.detach && !call.input.no_input => TerminalHost::Deferred,
        host => host,
    };
    let location = TaskLocation::of(&server);
    let connection = connect(server, &host, Purpose::Calls).await?;
    let done = run_call(&connection, &call, &location, &tool, &words, &host).await;
    connection.close().await;
    done
}

async fn run_call(
    connection: &ServerConnection,
    call: &Call,
    location: &TaskLocation,
    tool: &str,
    words: &[String],
    host: &TerminalHost,
) -> Result<(), Failure> {
    let client = &connection.client;
    let spinner = Spinner::on(format!("Asking {} for its tools", location.server()));
    let schema = schema_of(client, tool).await?;
    drop(spinner);
    let given = parse_args_object(call.args.as_deref())?;
    let arguments = arguments::read(&schema, words, given);
    let arguments = arguments.map_err(|wrong| Failure::Usage(wrong.to_string()))?;
    let arguments = Raw::encode(&arguments).map_err(std::io::Error::from)?;
    let preference = match (call.task || call.detach, call.no_task) {
        (true, _) => TaskPreference::Require,
        (_, true) => TaskPreference::Forbid,
        _ => call.server_args.how.preference(),
    };
    let mut request = client.call_tool(tool, Some(arguments)).task(preference);
    if let Some(ttl) = call.ttl {
        request = request.ttl(Duration::from_millis(ttl));
    }
    let execution = connection.hub.follow(&connection.name, request.await?);
    if call.detach && execution.task().await.is_some() {
        let task = execution.detach().await.unwrap_or_default();
        connection.keep_session(Some(&task));
        print_detached(location, &task, call.json);
        return Ok(());
    }
    match follow(&execution, host, Interrupt::Ask).await {
        End::Settled(Ok(outcome), _) => {
            print::outcome(&outcome, call.json).map_err(|failure| match failure {
                Failure::Tool if lacks_input_support(&outcome, host) => Failure::ToolWithoutInput,
                other => other,
            })
        }
        End::Settled(Err(why), task) => {
            connection.keep_session(task.as_deref());
            Err(location.failure(why, task.as_deref()))
        }
        End::Detached(task) => {
            connection.keep_session(Some(&task));
            print_detached(location, &task, call.json);
            Ok(())
        }
    }
}

/// Whether an error names a kind of input request, and this client accepts none.
fn lacks_input_support(outcome: &Outcome, host: &TerminalHost) -> bool {
    let text = match outcome {
        Outcome::ToolError(result, _) => result.as_str(),
        Outcome::Error(error, ..) => error.as_str(),
        Outcome::Result(_) | Outcome::Cancelled => return false,
    };
    let text = text.to_lowercase();
    let names_input = text.contains("elicitation") || text.contains("sampling");
    names_input && matches!(host, TerminalHost::Absent)
}

/// Prints the id of the detached task and how to get its result.
fn print_detached(location: &TaskLocation, task: &str, as_json: bool) {
    if as_json {
        terminal::show!("{}", json!({ "target": location.server(), "taskId": task }));
    } else {
        terminal::show!("{task}");
    }
    location.print_next_step(task);
}

/// Returns the schema of the tool's arguments.
async fn schema_of(client: &Client, tool: &str) -> Result<Value, Failure> {
    let tools = client.tools().await?;
    let Some(found) = tools.iter().find(|info| &*info.name == tool) else {
        let names: Vec<_> = tools.iter().map(|info| &*info.name).collect();
        let next = match nearest(tool, &names) {
            Some(name) => format!("call {name}; `outlast tools` with the same target lists all"),
            None if names.len() <= MAX_LISTED_TOOLS => format!("call one of: {}", names.join(", ")),
            None => "`outlast tools` with the same target lists them".into(),
        };
        return Err(Failure::Usage(format!(
            "the server has no tool {tool}\n  next: {}",
            clean(&next)
        )));
    };
    let raw: Value = found.raw.open().unwrap_or_default();
    Ok(raw["inputSchema"].clone())
}

/// Parses the arguments that were given as one JSON object.
fn parse_args_object(args: Option<&str>) -> Result<Map<String, Value>, Failure> {
    let Some(text) = args else {
        return Ok(Map::new());
    };
    let text = match text.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            Failure::Usage(format!(
                "--args: {path}: {error}\n  next: check the path after `@`"
            ))
        })?,
        None => text.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::Usage(format!(
            "--args is not a JSON object: {error}\n  next: write it as '{{\"name\": \"value\"}}', or use NAME=VALUE"
        ))
    })
}

/// Up to this number of tools, an error lists all their names.
const MAX_LISTED_TOOLS: usize = 8;
