//! `outlast tools`: the tools of a server, with their descriptions, arguments and task support.

use indexmap::IndexMap;
use outlast::TaskSupport;
use outlast::client::ToolInfo;
use outlast_wire::object;
use serde::Deserialize;
use serde_json::Value;

use crate::args::Tools;
use crate::connect::connect;
use crate::exit::Failure;
use crate::sessions::Purpose;
use crate::target;
use crate::terminal::{self, Column, StyledLine, Tone, table};
use crate::terminal_host::TerminalHost;

pub(crate) async fn run(args: Tools) -> Result<(), Failure> {
    let server = target::resolve(&args.server_args, args.target.as_deref())?;
    let connection = connect(server, &TerminalHost::Deferred, Purpose::Calls).await?;
    let tools = connection.client.tools().await;
    connection.close().await;
    let tools = tools?;
    if args.json {
        let raw: Vec<_> = tools.iter().map(|tool| tool.raw.as_str()).collect();
        terminal::out_json(&format!("[{}]", raw.join(",")));
    } else {
        tools.iter().for_each(print);
    }
    Ok(())
}

fn print(tool: &ToolInfo) {
    terminal::out_cut(StyledLine::new().tone(Tone::Strong, &tool.name).tone(
        Tone::Muted,
        format!("  task {}", support(tool.task_support)),
    ));
    let description = object::find(tool.raw.borrow(), &["description"]);
    for line in description
        .and_then(|text| text.text())
        .unwrap_or_default()
        .lines()
    {
        terminal::out_cut(format!("  {line}"));
    }
    let rows: Vec<_> = arguments(tool).iter().map(ToolArgument::row).collect();
    let width = terminal::out_width().map(|width| width.saturating_sub(INDENT.len()));
    for line in table(&COLUMNS, &rows, width).iter().skip(1) {
        terminal::out(StyledLine::from(INDENT).line(line));
    }
}

impl ToolArgument {
    fn row(&self) -> Vec<StyledLine> {
        let required = if self.required {
            StyledLine::new().tone(Tone::Active, "required")
        } else {
            StyledLine::new().tone(Tone::Muted, "optional")
        };
        vec![
            StyledLine::new().text(&self.name),
            StyledLine::new().tone(Tone::Muted, &self.kind),
            required,
            StyledLine::new().text(&self.description),
        ]
    }
}

/// The columns of the arguments; the heading is not printed.
const COLUMNS: [Column; 4] = [
    Column::new("").cuts(),
    Column::new("").cuts(),
    Column::new(""),
    Column::new("").cuts(),
];

const INDENT: &str = "    ";

/// One argument of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolArgument {
    pub(crate) name: String,
    pub(crate) required: bool,
    kind: String,
    description: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Schema {
    properties: IndexMap<String, Value>,
    required: Vec<String>,
}

/// Returns the arguments of a tool, in the order of its schema.
pub(crate) fn arguments(tool: &ToolInfo) -> Vec<ToolArgument> {
    let schema = object::find(tool.raw.borrow(), &["inputSchema"]);
    let schema: Schema = schema
        .and_then(|schema| schema.open().ok())
        .unwrap_or_default();
    let argument = |(name, property): (&String, &Value)| ToolArgument {
        name: name.clone(),
        required: schema.required.contains(name),
        kind: kind(property),
        description: property["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    };
    schema.properties.iter().map(argument).collect()
}

/// Describes the type of an argument.
fn kind(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<_> = values.iter().map(Value::to_string).collect();
        return values.join(" | ");
    }
    match (&property["type"], property["format"].as_str()) {
        (Value::String(kind), _) if kind == "array" => {
            format!("list of {}", kind_of_items(property))
        }
        (Value::String(_), Some(format)) => format.to_owned(),
        (Value::String(kind), None) => kind.clone(),
        (Value::Array(kinds), _) => {
            let kinds: Vec<_> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ => "any".into(),
    }
}

fn kind_of_items(property: &Value) -> String {
    property.get("items").map_or_else(|| "any".into(), kind)
}

/// The tool's task support, in the words of the specification.
pub(crate) fn support(support: TaskSupport) -> &'static str {
    match support {
        TaskSupport::Forbidden => "forbidden",
        TaskSupport::Optional => "optional",
        TaskSupport::Required => "required",
    }
}

#[cfg(test)]
mod tests {
    use outlast::wire::Raw;

    use super::*;

    #[test]
    fn arguments_follow_the_schema_order_and_name_their_types() {
        let raw = r#"{"name":"t","inputSchema":{"type":"object","required":["to"],"properties":{
            "to":{"type":"string","format":"email","description":"Whom"},
            "count":{"type":"integer"},
            "kind":{"enum":["a","b"]},
            "tags":{"type":"array","items":{"type":"string"}},
            "extra":{}}}}"#;
        let tool = ToolInfo {
            name: "t".into(),
            task_support: TaskSupport::Optional,
            raw: Raw::parse(raw.to_owned()).expect("it is JSON"),
        };
        let found: Vec<_> = arguments(&tool)
            .into_iter()
            .map(|argument| (argument.name, argument.kind, argument.required))
            .collect();
        let expected = [
            ("to", "email", true),
            ("count", "integer", false),
            ("kind", "\"a\" | \"b\"", false),
            ("tags", "list of string", false),
            ("extra", "any", false),
        ];
        let expected = expected.map(|(name, kind, required)| (name.into(), kind.into(), required));
        assert_eq!(found, expected);
    }
}
