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
    write_entry(folder, &url)
}

/// Writes `server.json` for the repository, by default for an example, and checks it by the rules
/// of the registry.
pub(super) fn check(folder: &Path) -> Result<(), String> {
    let url = std::env::var(REPOSITORY).unwrap_or_else(|_| EXAMPLE_REPOSITORY.to_owned());
    write_entry(folder, &url)?;
    let path = folder.join("server.json");
    let text = std::fs::read_to_string(&path).map_err(|error| super::file_error(&path, &error))?;
    let entry: Value =
        serde_json::from_str(&text).map_err(|error| super::file_error(&path, &error.into()))?;
    violation(&entry).map_or(Ok(()), |rule| Err(format!("{}: {rule}", path.display())))
}

fn write_entry(folder: &Path, url: &str) -> Result<(), String> {
    let name = name_of(url).ok_or_else(|| {
        format!("{REPOSITORY} must be https://github.com/OWNER/NAME, but is {url}")
    })?;
    let text = serde_json::to_string_pretty(&entry(&name, url));
    let text = text.map_err(|error| error.to_string())?;
    write_file(&folder.join("server.json"), &(text + "\n"))
}

/// The first rule of the schema of 2025-12-11 that an entry breaks. The schema is at the URL in
/// `$schema`; these are its rules for the members that our entry has.
fn violation(entry: &Value) -> Option<&'static str> {
    let text = |value: &Value, limits: std::ops::RangeInclusive<usize>| {
        value
            .as_str()
            .is_some_and(|text| limits.contains(&text.chars().count()))
    };
    let rules = [
        (is_name(&entry["name"]), "`name` is not NAMESPACE/NAME"),
        (
            text(&entry["description"], 1..=100),
            "`description` needs 1 to 100 characters",
        ),
        (
            is_version(&entry["version"]),
            "`version` is not one version",
        ),
        (
            entry["repository"]["url"]
                .as_str()
                .is_some_and(|url| url.starts_with("https://")),
            "`repository.url` is not a URL",
        ),
        (
            text(&entry["repository"]["source"], 1..=100),
            "`repository.source` is missing",
        ),
        (
            entry["packages"]
                .as_array()
                .is_some_and(|all| !all.is_empty()),
            "`packages` is empty",
        ),
    ];
    let broken = rules
        .into_iter()
        .find(|(holds, _)| !holds)
        .map(|(_, rule)| rule);
    broken.or_else(|| {
        let packages = entry["packages"].as_array()?;
        packages.iter().find_map(package_violation)
    })
}

fn package_violation(package: &Value) -> Option<&'static str> {
    if !matches!(package["registryType"].as_str(), Some("npm" | "pypi")) {
        return Some("`registryType` of a package is not npm or pypi");
    }
    if package["identifier"].as_str().is_none_or(str::is_empty) {
        return Some("`identifier` of a package is missing");
    }
    if !is_version(&package["version"]) {
        return Some("`version` of a package is not one version");
    }
    if package["transport"] != json!({ "type": "stdio" }) {
        return Some("`transport` of a package is not stdio");
    }
    let Some(arguments) = package["packageArguments"].as_array() else {
        return Some("`packageArguments` is not a list");
    };
    let is_argument = |argument: &Value| {
        argument["type"] == "positional"
            && (argument["value"].is_string() || argument["valueHint"].is_string())
    };
    let all_arguments = arguments.iter().all(is_argument);
    (!all_arguments).then_some("a positional argument needs `value` or `valueHint`")
}

/// A reverse-DNS namespace, one slash, and a name: 3 to 200 characters.
fn is_name(name: &Value) -> bool {
    let Some((namespace, name)) = name.as_str().and_then(|name| name.split_once('/')) else {
        return false;
    };
    let are_of = |text: &str, others: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || others.contains(c))
    };
    are_of(namespace, ".-") && are_of(name, "._-") && namespace.len() + name.len() < 200
}

/// A version, and not a range such as `^1.0`, `>=1` or `1.x`.
fn is_version(version: &Value) -> bool {
    let Some(version) = version.as_str() else {
        return false;
    };
    let is_range =
        version.contains(['^', '~', '<', '>', '=', '*', ' ', '|']) || version.ends_with(".x");
    !is_range && version.len() <= 255 && version.starts_with(|c: char| c.is_ascii_digit())
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

/// For a check without a repository.
const EXAMPLE_REPOSITORY: &str = "https://github.com/example/outlast";

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
    fn an_entry_names_its_owner_and_keeps_the_rules() {
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
        assert_eq!(violation(&entry), None);
        for (pointer, wrong) in [
            ("/name", json!("outlast")),
            ("/description", json!("x".repeat(101))),
            ("/version", json!("^1.0")),
            ("/repository/url", json!("ssh")),
            ("/packages", json!([])),
            ("/packages/0/registryType", json!("cargo")),
            ("/packages/1/identifier", json!("")),
            ("/packages/0/packageArguments/2/valueHint", json!(null)),
        ] {
            let mut changed = entry.clone();
            *changed.pointer_mut(pointer).unwrap() = wrong;
            assert!(violation(&changed).is_some(), "{pointer}");
        }
    }
}
