//! `server.json`: the entry of the MCP registry. It needs the URL of the repository, which the
//! release workflow sets.

use std::path::Path;

use serde_json::{Value, json};

use super::{REPOSITORY, VERSION, write as write_file};

/// Writes `server.json` if the repository is known.
pub(super) fn write(folder: &Path) -> Result<(), String> {
    let Ok(url) = std::env::var(REPOSITORY) else {
        println!("no server.json: {REPOSITORY} is not set");
        return Ok(());
    };
    let name = name_of(&url).ok_or_else(|| {
        format!("{REPOSITORY} must be https://github.com/OWNER/NAME, but is {url}")
    })?;
    let text = serde_json::to_string_pretty(&entry(&name, &url));
    let text = text.map_err(|error| error.to_string())?;
    write_file(&folder.join("server.json"), &(text + "\n"))
}

/// The name of the entry, if the repository is known.
pub(super) fn name() -> Option<String> {
    name_of(&std::env::var(REPOSITORY).ok()?)
}

fn name_of(url: &str) -> Option<String> {
    let (owner, repository) = url.strip_prefix("https://github.com/")?.split_once('/')?;
    let is_name = |text: &str| !text.is_empty() && !text.contains('/');
    (is_name(owner) && is_name(repository)).then(|| format!("io.github.{owner}/outlast"))
}

fn entry(name: &str, url: &str) -> Value {
    let package = |registry: &str, runtime: &str| {
        json!({
            "registryType": registry,
            "identifier": "outlast",
            "version": VERSION,
            "runtimeHint": runtime,
            "transport": { "type": "stdio" },
            "packageArguments": [
                { "type": "positional", "value": "stdio" },
                { "type": "positional", "value": "--" },
                {
                    "type": "positional",
                    "valueHint": "command",
                    "description": "The command of the MCP server that gets durable tasks, and its arguments",
                    "isRequired": true,
                    "isRepeated": true,
                },
            ],
        })
    };
    json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": name,
        "description": env!("CARGO_PKG_DESCRIPTION"),
        "version": VERSION,
        "repository": { "url": url, "source": "github" },
        "packages": [package("npm", "npx"), package("pypi", "uvx")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_is_named_after_the_owner_of_the_repository() {
        let name = name_of("https://github.com/ada/outlast").unwrap();
        assert_eq!(name, "io.github.ada/outlast");
        for wrong in [
            "http://github.com/a/b",
            "https://github.com/a",
            "https://github.com/a/b/c",
        ] {
            assert_eq!(name_of(wrong), None, "{wrong}");
        }
        let entry = entry(&name, "https://github.com/ada/outlast");
        assert_eq!(entry["version"], VERSION);
        // The registry allows 100 characters.
        assert!(entry["description"].as_str().unwrap().len() <= 100);
    }
}
