//! The server behind `outlast stdio -- COMMAND`, the command that `outlast adopt` writes into
//! files.
//!
//! A gateway that started this command would be its own upstream: the relay connects to the gateway
//! of the same store. So a gateway serves the inner command instead.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Parser;
use serde_json::Value;

use crate::args::Stdio;

/// The inner command of a relay.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BehindRelay {
    pub(crate) command: Vec<OsString>,
    /// The text after `--settings`, parsed.
    pub(crate) settings: Option<Value>,
}

/// Whether a command starts `outlast stdio`.
pub(crate) fn is_relay(program: &OsStr, args: &[impl AsRef<OsStr>]) -> bool {
    let is_outlast = Path::new(program)
        .file_stem()
        .is_some_and(|name| name == "outlast");
    is_outlast && args.first().is_some_and(|word| word.as_ref() == "stdio")
}

impl BehindRelay {
    /// Returns the server behind `command`, or `None` if the command is not a relay.
    pub(crate) fn of(command: &[impl AsRef<OsStr>]) -> Result<Option<Self>, String> {
        let [program, args @ ..] = command else {
            return Ok(None);
        };
        if !is_relay(program.as_ref(), args) {
            return Ok(None);
        }
        let words = args.iter().map(|word| word.as_ref().to_owned());
        let relay = Stdio::try_parse_from(words).ok();
        let relay = relay.filter(|relay| relay.config.is_none());
        let relay = relay.ok_or(
            "it starts through `outlast stdio`, so this gateway would serve itself\n  next: write the command of the \
             server in place of `outlast stdio …`",
        )?;
        let settings = relay.settings.map(|text| serde_json::from_str(&text));
        let settings = settings
            .transpose()
            .map_err(|error| super::not_an_object("--settings", &error))?;
        Ok(Some(match Self::of(&relay.command)? {
            Some(inner) => Self {
                settings: settings.or(inner.settings),
                ..inner
            },
            None => Self {
                command: relay.command,
                settings,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_inner_command_of_a_relay_is_found() {
        let settings = r#"{"graceMs":1}"#;
        for (command, expected) in [
            (&["npx", "-y", "outlast"][..], None),
            (&["outlast", "serve"], None),
            (
                &["outlast", "stdio", "--", "x", "--y"],
                Some((&["x", "--y"][..], None)),
            ),
            (
                &[
                    "/bin/outlast",
                    "stdio",
                    "--log",
                    "off",
                    "--settings",
                    settings,
                    "--",
                    "x",
                ],
                Some((&["x"], Some(json!({ "graceMs": 1 })))),
            ),
            (
                &[
                    "outlast",
                    "stdio",
                    "--",
                    "outlast",
                    "stdio",
                    "--settings",
                    settings,
                    "--",
                    "x",
                ],
                Some((&["x"], Some(json!({ "graceMs": 1 })))),
            ),
        ] {
            let expected = expected.map(|(command, settings)| BehindRelay {
                command: command.iter().map(OsString::from).collect(),
                settings,
            });
            assert_eq!(BehindRelay::of(command).unwrap(), expected, "{command:?}");
        }
        for command in [
            &["outlast", "stdio"][..],
            &["outlast", "stdio", "--config", "mcp.json"],
            &["outlast", "stdio", "--nonsense", "--", "x"],
        ] {
            let why = BehindRelay::of(command).unwrap_err();
            assert!(why.contains("would serve itself"), "{command:?}: {why}");
        }
        let broken = ["outlast", "stdio", "--settings", "{", "--", "x"];
        assert!(BehindRelay::of(&broken).unwrap_err().contains("--settings"));
    }
}
