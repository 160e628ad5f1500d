//! The configuration file of a host: `mcpServers`, or `servers` as VS Code writes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::variables::Variables;
use super::{jsonc, url};
use crate::exit::Failure;

#[derive(Debug)]
pub(crate) struct Config {
    path: PathBuf,
    servers: BTreeMap<String, ServerEntry>,
    outlast: Option<Value>,
}

/// How a server is reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ServerAddress {
    Http {
        url: String,
        headers: Vec<(String, String)>,
    },
    Command {
        program: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        directory: Option<PathBuf>,
    },
}

#[derive(Debug, Deserialize)]
struct ConfigFile {
    #[serde(default, alias = "mcpServers")]
    servers: BTreeMap<String, ServerEntry>,
    /// Limits of the whole gateway.
    outlast: Option<Value>,
}

/// The keys that Outlast reads. Hosts may write others, which are ignored.
#[derive(Debug, Deserialize)]
struct ServerEntry {
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    /// The gateway's settings for this server.
    outlast: Option<Value>,
}

impl Config {
    /// Reads the file at `path`, or the first of the usual files that exists.
    pub(crate) fn find(path: Option<&Path>) -> Result<Self, Failure> {
        let path = match path {
            Some(path) => path,
            None => DEFAULT_PATHS.iter().map(Path::new).find(|path| path.is_file()).ok_or_else(|| {
                Failure::Usage(format!(
                    "there is no configuration file in this folder ({})\n  next: name one with --config, or give a URL such as http://127.0.0.1:8040/mcp",
                    DEFAULT_PATHS.join(", ")
                ))
            })?,
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::Usage(format!(
                "{}: {error}\n  next: check the path after --config",
                path.display()
            ))
        })?;
        let file: ConfigFile = jsonc::read(&text).map_err(|error| {
            Failure::Usage(format!(
                "{}: {error}\n  next: correct the file",
                path.display()
            ))
        })?;
        Ok(Self {
            path: path.to_owned(),
            servers: file.servers,
            outlast: file.outlast,
        })
    }

    /// The settings of the whole gateway, with variables replaced.
    pub(crate) fn limits(&self) -> Result<Option<Value>, Failure> {
        let filled = self.outlast.as_ref().map(|object| self.filled(object));
        filled.transpose().map_err(|why| self.wrong_in_all(&why))
    }

    /// A value in whose texts the variables are replaced.
    fn filled(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => Value::String(Variables::for_file(&self.path).fill(text)?),
            Value::Array(all) => {
                let all = all.iter().map(|one| self.filled(one));
                Value::Array(all.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let members = members.iter();
                let members = members.map(|(name, one)| Ok((name.clone(), self.filled(one)?)));
                Value::Object(members.collect::<Result<_, String>>()?)
            }
            other => other.clone(),
        })
    }

    /// The error for an invalid limit.
    pub(crate) fn wrong_in_all(&self, what: &str) -> Failure {
        Failure::Usage(format!("{}: {what}", self.path.display()))
    }

    /// The names of all servers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// The gateway's settings for a server, with variables replaced.
    pub(crate) fn settings(&self, name: &str) -> Result<Option<Value>, Failure> {
        let object = self
            .servers
            .get(name)
            .and_then(|server| server.outlast.as_ref());
        let filled = object.map(|object| self.filled(object));
        filled.transpose().map_err(|why| self.wrong(name, &why))
    }

    /// The error for an invalid setting of a server.
    pub(crate) fn wrong(&self, name: &str, what: &str) -> Failure {
        Failure::Usage(format!("{}: server {name}: {what}", self.path.display()))
    }

    /// Returns how the server with this name is reached.
    pub(crate) fn address(&self, name: &str) -> Result<ServerAddress, Failure> {
        let wrong = |what: String| self.wrong(name, &what);
        let Some(server) = self.servers.get(name) else {
            let known: Vec<_> = self.servers.keys().map(String::as_str).collect();
            return Err(Failure::Usage(format!(
                "{} has no server {name}\n  next: {}",
                self.path.display(),
                if known.is_empty() {
                    "add servers under `mcpServers`".to_owned()
                } else {
                    format!("name one of: {}", known.join(", "))
                }
            )));
        };
        if server.kind.as_deref() == Some("sse") {
            return Err(wrong(
                "the transport `sse` of 2024-11-05 is not supported\n  next: if the server also speaks Streamable HTTP, write \
                 `\"type\": \"http\"` and its URL"
                    .into(),
            ));
        }
        let variables = Variables::for_file(&self.path);
        let fill = |text: &str| variables.fill(text).map_err(&wrong);
        let fill_all = |map: &BTreeMap<String, String>| {
            map.iter()
                .map(|(name, value)| Ok((name.clone(), fill(value)?)))
                .collect::<Result<BTreeMap<_, _>, Failure>>()
        };
        match (&server.url, &server.command) {
            (Some(url), None) => Ok(ServerAddress::Http {
                url: url::required(&fill(url)?).map_err(&wrong)?,
                headers: fill_all(&server.headers)?.into_iter().collect(),
            }),
            (None, Some(program)) => Ok(ServerAddress::Command {
                program: fill(program)?,
                args: server
                    .args
                    .iter()
                    .map(|arg| fill(arg))
                    .collect::<Result<_, _>>()?,
                env: fill_all(&server.env)?,
                directory: server.cwd.as_deref().map(fill).transpose()?.map(Into::into),
            }),
            _ => Err(wrong(
                "it has neither `url` nor `command`\n  next: add one of them".into(),
            )),
        }
    }
}

/// The usual paths of the file.
const DEFAULT_PATHS: [&str; 3] = [".mcp.json", "mcp.json", ".vscode/mcp.json"];

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let file: ConfigFile = jsonc::read(text).unwrap();
        Config {
            path: "mcp.json".into(),
            servers: file.servers,
            outlast: file.outlast,
        }
    }

    #[test]
    fn both_spellings_and_both_kinds_of_server_are_read() {
        let config = config(
            r#"{ // what hosts write
                "$schema": "./configuration.schema.json",
                "mcpServers": {
                    "files": { "command": "npx", "args": ["-y", "x"], "env": { "A": "${env:CARGO_PKG_NAME}" } },
                    "web": { "type": "http", "url": "https://example.org/mcp", "headers": { "X-Key": "1" }, },
                },
            }"#,
        );
        let ServerAddress::Command {
            program, args, env, ..
        } = config.address("files").unwrap()
        else {
            panic!("a command");
        };
        assert_eq!(
            (program.as_str(), args.len(), env["A"].as_str()),
            ("npx", 2, "outlast-cli")
        );
        let ServerAddress::Http { url, headers } = config.address("web").unwrap() else {
            panic!("a URL");
        };
        assert_eq!(
            (url.as_str(), headers.len()),
            ("https://example.org/mcp", 1)
        );
    }

    #[test]
    fn a_configured_url_with_a_port_needs_no_scheme() {
        let config = config(
            r#"{ "servers": { "a": { "url": "localhost:8040/mcp" }, "b": { "url": "example.org/mcp" } } }"#,
        );
        let ServerAddress::Http { url, .. } = config.address("a").unwrap() else {
            panic!("a URL");
        };
        assert_eq!(url, "http://localhost:8040/mcp");
        let error = config.address("b").unwrap_err().to_string();
        assert!(
            error.contains("example.org/mcp is not a URL") && error.contains("next:"),
            "{error}"
        );
    }

    #[test]
    fn a_transport_that_is_not_supported_is_refused_by_name() {
        let config = config(r#"{ "servers": { "a": { "type": "sse", "url": "http://x/sse" } } }"#);
        let error = config.address("a").unwrap_err().to_string();
        assert!(error.contains("`sse`"), "{error}");
    }

    #[test]
    fn variables_in_settings_are_replaced() {
        let config = config(
            r#"{
                "outlast": { "audit": { "file": "${CARGO_PKG_NAME}.log", "files": 2 } },
                "servers": {
                    "a": { "url": "http://x", "outlast": { "principals": { "ada": { "headers": { "X": "${env:CARGO_PKG_NAME}" } } } } },
                    "b": { "url": "http://x", "outlast": { "denyTools": ["${OUTLAST_NO_SUCH_VARIABLE}"] } },
                },
            }"#,
        );
        let limits = config.limits().unwrap().unwrap();
        assert_eq!(limits["audit"]["file"], "outlast-cli.log");
        assert_eq!(limits["audit"]["files"], 2);
        let settings = config.settings("a").unwrap().unwrap();
        assert_eq!(settings["principals"]["ada"]["headers"]["X"], "outlast-cli");
        let why = config.settings("b").unwrap_err().to_string();
        assert!(
            why.contains("server b") && why.contains("OUTLAST_NO_SUCH_VARIABLE"),
            "{why}"
        );
    }

    #[test]
    fn a_missing_server_is_named() {
        let config = config(
            r#"{ "servers": { "a": { "command": "${OUTLAST_NO_SUCH_VARIABLE}" }, "b": {} } }"#,
        );
        let error_text = |name: &str| config.address(name).unwrap_err().to_string();
        assert!(error_text("a").contains("OUTLAST_NO_SUCH_VARIABLE is not set"));
        assert!(error_text("b").contains("neither `url` nor `command`"));
        assert!(error_text("c").contains("name one of: a, b"));
    }
}
