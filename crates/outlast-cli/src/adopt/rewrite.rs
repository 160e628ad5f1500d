//! Rewrites the server entries in the text of a configuration file. The rest of the text is
//! unchanged.

use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstRootNode};

use crate::target::{JSONC, is_relay};

/// The new text, and the change made to each server.
pub(super) struct RewriteResult {
    pub(super) text: String,
    pub(super) servers: Vec<(String, ServerChange)>,
}

/// What was done with a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ServerChange {
    /// The server now starts with this command.
    Changed(String),
    /// The server was not changed, for this reason.
    Unchanged(&'static str),
}

impl RewriteResult {
    /// Whether any server was changed.
    pub(super) fn is_changed(&self) -> bool {
        let mut changes = self.servers.iter();
        changes.any(|(_, change)| matches!(change, ServerChange::Changed(_)))
    }
}

/// Rewrites every server with a command to start through `program stdio -- COMMAND`.
pub(super) fn adopt(text: &str, program: &str) -> Result<RewriteResult, String> {
    rewrite(text, |server| adopt_one(server, program))
}

/// Rewrites every server that starts through `outlast stdio -- COMMAND` to start with its command
/// alone.
pub(super) fn undo(text: &str) -> Result<RewriteResult, String> {
    rewrite(text, undo_one)
}

fn rewrite(
    text: &str,
    change: impl Fn(&CstObject) -> ServerChange,
) -> Result<RewriteResult, String> {
    let root = CstRootNode::parse(text, &JSONC).map_err(|error| error.to_string())?;
    let file = root.object_value().ok_or("it is not a JSON object")?;
    let mut servers = Vec::new();
    for group in GROUPS.iter().filter_map(|name| file.object_value(name)) {
        for property in group.properties() {
            let name = property.decoded_name().unwrap_or_default();
            let change = match property.object_value() {
                Some(server) => change(&server),
                None => ServerChange::Unchanged("it is not an object"),
            };
            servers.push((name, change));
        }
    }
    let text = root.to_string();
    Ok(RewriteResult { text, servers })
}

fn adopt_one(server: &CstObject, program: &str) -> ServerChange {
    let Some(command) = text_of(server, "command") else {
        return ServerChange::Unchanged(if server.get("url").is_some() {
            "it is at a URL, which the host reaches itself; `outlast serve --config FILE` gives it tasks"
        } else {
            "it has no command"
        });
    };
    let Some(args) = CommandArgs::of(server) else {
        return ServerChange::Unchanged("its `args` are not a list of strings");
    };
    if args.start_relay(&command) {
        return ServerChange::Unchanged("it starts through `outlast stdio` already");
    }
    let mut words = vec!["stdio".to_owned()];
    if let Some(settings) = server.object_value("outlast") {
        let settings = settings.to_serde_value().map(|value| value.to_string());
        words.extend(
            settings
                .into_iter()
                .flat_map(|json| ["--settings".to_owned(), json]),
        );
    }
    words.extend(["--".to_owned(), command.clone()]);
    match &args.array {
        Some(array) => {
            // The last word first, always at the front: an insertion in the middle adds a space.
            for word in words.into_iter().rev() {
                array.insert(0, CstInputValue::String(word));
            }
        }
        None => {
            let words = words.into_iter().map(CstInputValue::String).collect();
            let after = server
                .get("command")
                .map_or(0, |found| found.property_index() + 1);
            server.insert(after, "args", CstInputValue::Array(words));
        }
    }
    set_command(server, program);
    ServerChange::Changed(command_line(&command, &args.words))
}

fn undo_one(server: &CstObject) -> ServerChange {
    let command = text_of(server, "command").unwrap_or_default();
    let args = CommandArgs::of(server).unwrap_or_default();
    if !args.start_relay(&command) {
        return ServerChange::Unchanged("it does not start through `outlast stdio`");
    }
    let end = args.words.iter().position(|word| word == "--");
    let Some((end, command)) = end.and_then(|end| Some((end, args.words.get(end + 1)?))) else {
        return ServerChange::Unchanged("its command is in another file (`--config`)");
    };
    let rest = &args.words[end + 2..];
    if let Some(array) = &args.array {
        for element in array.elements().into_iter().take(end + 2) {
            element.remove();
        }
    }
    if let Some(args) = server.get("args").filter(|_| rest.is_empty()) {
        args.remove();
    }
    set_command(server, command);
    ServerChange::Changed(command_line(command, rest))
}

#[derive(Default)]
struct CommandArgs {
    /// `None` if the server has no `args`.
    array: Option<CstArray>,
    words: Vec<String>,
}

impl CommandArgs {
    fn of(server: &CstObject) -> Option<Self> {
        let Some(property) = server.get("args") else {
            return Some(Self::default());
        };
        let array = property.array_value()?;
        let words = array.elements().into_iter();
        let words = words.map(|word| word.as_string_lit()?.decoded_value().ok());
        Some(Self {
            words: words.collect::<Option<_>>()?,
            array: Some(array),
        })
    }

    /// Whether the server starts through `outlast stdio`.
    fn start_relay(&self, command: &str) -> bool {
        is_relay(command.as_ref(), &self.words)
    }
}

fn text_of(server: &CstObject, name: &str) -> Option<String> {
    let value = server.get(name)?.value()?;
    value.as_string_lit()?.decoded_value().ok()
}

fn set_command(server: &CstObject, command: &str) {
    if let Some(property) = server.get("command") {
        property.set_value(CstInputValue::String(command.to_owned()));
    }
}

fn command_line(command: &str, args: &[String]) -> String {
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    words.collect::<Vec<_>>().join(" ")
}

/// The names that hosts use for the object with their servers.
const GROUPS: [&str; 2] = ["mcpServers", "servers"];

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
  // my servers
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "some-server" /* the newest */],
      "env": { "KEY": "${KEY}" }
    },
    "plain": { "command": "server" }, // no arguments
    "web": { "type": "http", "url": "https://example.org/mcp" },
  },
}
"#;

    /// Removes all white space, because an object on one line may be written on several.
    fn squeezed(text: &str) -> String {
        text.split_whitespace().collect()
    }

    #[test]
    fn servers_go_through_the_relay_and_everything_else_stays() {
        let adopted = adopt(FILE, "/bin/outlast").unwrap();
        let want = FILE
            .replace(r#""npx""#, r#""/bin/outlast""#)
            .replace(r#"["-y""#, r#"["stdio", "--", "npx", "-y""#)
            .replace(
                r#"{ "command": "server" }"#,
                r#"{ "command": "/bin/outlast", "args": ["stdio", "--", "server"] }"#,
            );
        assert_eq!(squeezed(&adopted.text), squeezed(&want));
        let args = r#""args": ["stdio", "--", "npx", "-y", "some-server""#;
        assert!(adopted.text.contains(args), "{}", adopted.text);
        assert!(adopted.is_changed());
        let changes: Vec<_> = adopted.servers.iter().map(|(_, change)| change).collect();
        assert_eq!(
            *changes[0],
            ServerChange::Changed("npx -y some-server".into())
        );
        assert!(matches!(changes[2], ServerChange::Unchanged(why) if why.contains("URL")));
        // A second run changes nothing.
        let again = adopt(&adopted.text, "/bin/outlast").unwrap();
        assert!(!again.is_changed());
        assert_eq!(again.text, adopted.text);
        let undone = undo(&adopted.text).unwrap();
        assert_eq!(squeezed(&undone.text), squeezed(FILE));
    }

    #[test]
    fn server_settings_go_to_the_relay_in_both_spellings() {
        let file = r#"{ "servers": { "a": { "type": "stdio", "command": "x", "outlast": { "graceMs": 1 } } }, "inputs": [] }"#;
        let adopted = adopt(file, "outlast").unwrap().text;
        assert!(
            adopted.contains(r#""args": ["stdio", "--settings", "{\"graceMs\":1}", "--", "x"]"#),
            "{adopted}"
        );
        assert_eq!(squeezed(&undo(&adopted).unwrap().text), squeezed(file));
    }

    #[test]
    fn a_file_that_is_not_json_is_refused_by_line() {
        let error = adopt("{\n?\n}", "outlast").err().unwrap();
        assert!(error.contains("line 2"), "{error}");
        assert!(adopt("[]", "outlast").is_err());
    }
}
