//! The servers of a host's configuration file: `mcpServers`, or `servers` as VS Code writes it.

use std::collections::BTreeMap;

use jsonc_parser::ParseOptions;
use outlast::client::ConnectionName;
use serde::Deserialize;

use super::address::{Address, ConnectionSpec};

/// Why a file was not imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It is not JSON.
    #[error("the file is not JSON: {0}")]
    Json(String),
    /// It has no servers.
    #[error("the file has no servers under `mcpServers` or `servers`")]
    Empty,
    /// A server cannot be used.
    #[error("server {server}: {why}")]
    Server {
        /// Its name.
        server: String,
        /// Why.
        why: String,
    },
}

#[derive(Deserialize)]
struct ConfigFile {
    #[serde(default, alias = "mcpServers")]
    servers: BTreeMap<String, ServerEntry>,
}

/// The keys that are read. Hosts may write others, which are ignored.
#[derive(Deserialize)]
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
}

/// The servers of a file. Comments and trailing commas are accepted. `source` names the file.
pub fn import_servers(text: &str, source: &str) -> Result<Vec<ConnectionSpec>, ImportError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let file: ConfigFile = jsonc_parser::parse_to_serde_value(text, &options)
        .map_err(|error| ImportError::Json(error.to_string()))?;
    if file.servers.is_empty() {
        return Err(ImportError::Empty);
    }
    let specs = file.servers.into_iter().map(|(name, server)| {
        let address = server.address().map_err(|why| ImportError::Server {
            server: name.clone(),
            why,
        })?;
        Ok(ConnectionSpec::new(
            ConnectionName::new(name, source),
            address,
        ))
    });
    specs.collect()
}

impl ServerEntry {
    fn address(self) -> Result<Address, String> {
        let all = [&self.url, &self.command, &self.cwd];
        let texts = all.into_iter().flatten();
        let texts = texts
            .chain(&self.args)
            .chain(self.env.values())
            .chain(self.headers.values());
        for text in texts {
            if let Some((_, rest)) = text.split_once("${") {
                let variable = rest.split('}').next().unwrap_or_default();
                return Err(format!(
                    "it uses the variable `${{{variable}}}`, which only its host knows; write its value"
                ));
            }
        }
        if self.kind.as_deref() == Some("sse") {
            return Err("the transport `sse` of 2024-11-05 is not supported".into());
        }
        match (self.url, self.command) {
            (Some(url), _) => {
                let headers: Vec<_> = self.headers.into_iter().collect();
                match Address::url(&url, "")? {
                    Address::Url { url, .. } => Ok(Address::Url { url, headers }),
                    other => Ok(other),
                }
            }
            (None, Some(program)) => Ok(Address::Command {
                program,
                args: self.args,
                env: self.env,
                directory: self.cwd.map(Into::into),
            }),
            (None, None) => Err("it has neither `url` nor `command`".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_and_both_kinds_of_server_are_read() {
        let text = r#"{ // a comment
            "mcpServers": {
                "files": { "command": "npx", "args": ["-y", "x"], "env": { "KEY": "secret" } },
                "web": { "type": "http", "url": "https://example.org/mcp", "headers": { "X-Key": "1" }, },
            },
        }"#;
        let specs = import_servers(text, "mcp.json").unwrap();
        let shown: Vec<_> = specs
            .iter()
            .map(|spec| {
                (
                    &*spec.name.server,
                    spec.address.text(),
                    spec.address.secret_names(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("files", "npx -y x".to_owned(), vec!["KEY".to_owned()]),
                (
                    "web",
                    "https://example.org/mcp".to_owned(),
                    vec!["X-Key".to_owned()]
                ),
            ]
        );
        assert_eq!(&*specs[0].name.source, "mcp.json");
        assert!(import_servers(r#"{"servers":{"a":{"command":"x"}}}"#, "f").is_ok());
    }

    #[test]
    fn an_unusable_file_is_refused_with_the_reason() {
        for (text, reason) in [
            ("{", "not JSON"),
            ("{}", "has no servers"),
            (r#"{"servers":{"a":{}}}"#, "neither `url` nor `command`"),
            (
                r#"{"servers":{"a":{"command":"x","args":["${input:key}"]}}}"#,
                "`${input:key}`",
            ),
            (
                r#"{"servers":{"a":{"type":"sse","url":"http://x/"}}}"#,
                "not supported",
            ),
            (
                r#"{"servers":{"a":{"url":"ftp://x/"}}}"#,
                "must begin with http",
            ),
        ] {
            let error = import_servers(text, "f").unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
