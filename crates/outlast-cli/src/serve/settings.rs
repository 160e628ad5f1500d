//! The `outlast` object of a server in the configuration file: the gateway's settings for that
//! server.

use std::time::Duration;

use outlast::client::Era;
use outlast::gateway::{Isolate, Settings, TaskMode, ToolSettings};
use outlast::task::RetryClass;
use serde_json::{Map, Value};

use super::access;
use crate::nearest::nearest;

/// Reads the object. An unknown key is an error.
pub(crate) fn read(object: &Value) -> Result<Settings, String> {
    let members = object
        .as_object()
        .ok_or_else(|| with_schema("`outlast` must be an object"))?;
    let mut settings = Settings::default();
    for (key, value) in members {
        match key.as_str() {
            "era" => {
                settings.era = match value.as_str() {
                    Some("auto") => Era::Auto,
                    Some("legacy") => Era::Legacy,
                    Some("modern") => Era::Modern,
                    _ => return Err(wrong(key, "\"auto\", \"legacy\" or \"modern\"")),
                };
            }
            "isolate" => {
                settings.isolate = match value.as_str() {
                    Some("owner") => Isolate::Owner,
                    Some("call") => Isolate::Call,
                    _ => return Err(wrong(key, "\"owner\" or \"call\"")),
                };
            }
            "trust" => {
                settings.trust_annotations =
                    value.as_bool().ok_or_else(|| wrong(key, "true or false"))?;
            }
            "budgetMs" => settings.wait_budget = Some(millis(key, value)?),
            "tickets" => {
                settings.tickets = value.as_bool().ok_or_else(|| wrong(key, "true or false"))?;
            }
            "allowTools" => settings.tool_lists.allow = Some(access::tools(key, value)?),
            "denyTools" => settings.tool_lists.deny = access::tools(key, value)?,
            "principals" => settings.principals = access::principals(key, value)?,
            "concurrency" => settings.concurrency = Some(count(key, value)?),
            "openCalls" => settings.max_open_calls = Some(count(key, value)?),
            "openCallsPerOwner" => settings.max_open_calls_per_owner = Some(count(key, value)?),
            "connections" => settings.max_connections = count(key, value)?,
            "connectionsPerOwner" => settings.max_connections_per_owner = count(key, value)?,
            "idleMs" => settings.idle_timeout = millis(key, value)?,
            "startMs" => settings.handshake_timeout = millis(key, value)?,
            "tools" => {
                let tools = value.as_object().ok_or_else(|| wrong(key, "an object"))?;
                for (tool, settings_of_tool) in tools {
                    let of_tool = |error: String| format!("tool {tool}: {error}");
                    let settings_of_tool = settings_of_tool
                        .as_object()
                        .ok_or_else(|| of_tool(with_schema("it must be an object")))?;
                    settings
                        .tools
                        .insert(tool.clone(), read_tool(settings_of_tool).map_err(of_tool)?);
                }
            }
            _ if TOOL_KEYS.contains(&key.as_str()) => set(&mut settings.tool_defaults, key, value)?,
            _ => return Err(unknown(key, &[&TOOL_KEYS[..], &SERVER_KEYS[..]].concat())),
        }
    }
    Ok(settings)
}

fn read_tool(members: &Map<String, Value>) -> Result<ToolSettings, String> {
    let mut settings = ToolSettings::default();
    for (key, value) in members {
        match key.as_str() {
            "concurrency" => settings.concurrency = Some(count(key, value)?),
            _ if TOOL_KEYS.contains(&key.as_str()) => set(&mut settings, key, value)?,
            _ => return Err(unknown(key, &[&TOOL_KEYS[..], &["concurrency"]].concat())),
        }
    }
    Ok(settings)
}

/// Sets a key that applies to a tool or to all tools of a server.
fn set(settings: &mut ToolSettings, key: &str, value: &Value) -> Result<(), String> {
    match key {
        "task" => {
            settings.task = Some(match value.as_str() {
                Some("auto") => TaskMode::Auto,
                Some("always") => TaskMode::Always,
                Some("never") => TaskMode::Never,
                _ => return Err(wrong(key, "\"auto\", \"always\" or \"never\"")),
            });
        }
        "retry" => {
            settings.retry = Some(match value.as_str() {
                Some("rerun") => RetryClass::Rerun,
                Some("never") => RetryClass::Never,
                _ => return Err(wrong(key, "\"rerun\" or \"never\"")),
            });
        }
        "graceMs" => settings.grace = Some(millis(key, value)?),
        "ttlMs" => settings.ttl = Some(Duration::from_millis(parse_whole_number(key, value)?)),
        "timeoutMs" => settings.timeout = Some(millis(key, value)?),
        _ => return Err(unknown(key, &TOOL_KEYS)),
    }
    Ok(())
}

pub(super) fn parse_whole_number(key: &str, value: &Value) -> Result<u64, String> {
    value
        .as_u64()
        .ok_or_else(|| wrong(key, "a whole number, 0 or more"))
}

pub(super) fn millis(key: &str, value: &Value) -> Result<Duration, String> {
    parse_whole_number(key, value).map(Duration::from_millis)
}

pub(super) fn count(key: &str, value: &Value) -> Result<usize, String> {
    let found = parse_whole_number(key, value)?;
    match usize::try_from(found) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(wrong(key, "a number above zero")),
    }
}

pub(super) fn wrong(key: &str, expected: &str) -> String {
    with_schema(&format!("`{key}` must be {expected}"))
}

/// Adds the next step to a message about a value of the wrong type.
pub(super) fn with_schema(why: &str) -> String {
    format!("{why}\n  next: `outlast schema` prints the values of every setting")
}

pub(super) fn unknown(key: &str, known: &[&str]) -> String {
    let next = match nearest(key, known) {
        Some(found) => format!("write `{found}`"),
        None => format!("use one of: {}", known.join(", ")),
    };
    format!("`{key}` is not known\n  next: {next}")
}

/// The keys for a tool, or for all tools of a server.
pub(crate) const TOOL_KEYS: [&str; 5] = ["task", "graceMs", "ttlMs", "timeoutMs", "retry"];

/// The keys for a server only.
pub(crate) const SERVER_KEYS: [&str; 16] = [
    "era",
    "trust",
    "budgetMs",
    "tickets",
    "isolate",
    "concurrency",
    "openCalls",
    "openCallsPerOwner",
    "connections",
    "connectionsPerOwner",
    "idleMs",
    "startMs",
    "allowTools",
    "denyTools",
    "principals",
    "tools",
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_setting_is_read() {
        let settings = read(&json!({
            "task": "always", "graceMs": 100, "ttlMs": 5_000, "timeoutMs": 60_000, "retry": "never",
            "era": "legacy", "isolate": "call", "concurrency": 2, "connections": 3, "openCalls": 7, "openCallsPerOwner": 8, "connectionsPerOwner": 9, "idleMs": 4, "startMs": 5, "budgetMs": 6, "tickets": false, "trust": false,
            "allowTools": ["read_*"], "denyTools": ["read_secret"],
            "principals": { "ada": { "denyTools": ["read_mail"], "headers": { "X-Key": "k" }, "env": { "KEY": "k" } } },
            "tools": { "slow": { "task": "never", "concurrency": 1, "retry": "rerun" } },
        }))
        .unwrap();
        assert_eq!(settings.tool_defaults.task, Some(TaskMode::Always));
        assert_eq!(
            settings.tool_defaults.grace,
            Some(Duration::from_millis(100))
        );
        assert_eq!(settings.tool_defaults.ttl, Some(Duration::from_secs(5)));
        assert_eq!(settings.wait_budget, Some(Duration::from_millis(6)));
        assert!(!settings.tickets && !settings.trust_annotations);
        assert_eq!(settings.era, Era::Legacy);
        assert_eq!(settings.isolate, Isolate::Call);
        assert_eq!(
            (settings.concurrency, settings.max_connections),
            (Some(2), 3)
        );
        assert_eq!(
            (settings.max_open_calls, settings.max_open_calls_per_owner),
            (Some(7), Some(8))
        );
        assert_eq!(settings.max_connections_per_owner, 9);
        let lists = &settings.tool_lists;
        assert_eq!(
            (lists.allow.as_ref().unwrap().len(), lists.deny.len()),
            (1, 1)
        );
        let ada = &settings.principals["ada"];
        assert_eq!((ada.tools.allow.is_none(), ada.tools.deny.len()), (true, 1));
        assert_eq!((&*ada.headers["X-Key"], &*ada.env["KEY"]), ("k", "k"));
        let slow = &settings.tools["slow"];
        assert_eq!(
            (slow.task, slow.concurrency),
            (Some(TaskMode::Never), Some(1))
        );
        assert_eq!(slow.retry, Some(RetryClass::Rerun));
    }

    #[test]
    fn an_unknown_setting_is_refused_with_the_nearest_one() {
        let message = |object: Value| read(&object).unwrap_err();
        assert!(message(json!({ "grace": 1 })).contains("write `graceMs`"));
        assert!(
            message(json!({ "tools": { "x": { "timeoutMS": 1 } } }))
                .contains("tool x: `timeoutMS`")
        );
        assert!(message(json!({ "banana": 1 })).contains("use one of: task"));
        assert!(message(json!({ "task": "sometimes" })).contains("\"auto\""));
        assert!(message(json!({ "concurrency": 0 })).contains("above zero"));
        assert!(message(json!({ "ttlMs": -1 })).contains("whole number"));
        assert!(message(json!({ "allowTools": "x" })).contains("list of names"));
        let wrong = json!({ "principals": { "ada": { "header": {} } } });
        let why = message(wrong);
        assert!(
            why.contains("principal ada") && why.contains("write `headers`"),
            "{why}"
        );
        for wrong in [
            json!([]),
            json!({ "tools": { "x": 5 } }),
            json!({ "trust": 1 }),
        ] {
            let why = message(wrong);
            assert!(why.contains("next: `outlast schema`"), "{why}");
        }
    }
}
