//! Settings of callers: which tools they may use, and their credentials at a server.

use std::collections::BTreeMap;

use outlast::gateway::{PrincipalSettings, ToolLists, ToolPattern};
use serde_json::Value;

use super::settings::{unknown, with_schema, wrong};

/// Reads a list of names of tools.
pub(super) fn tools(key: &str, value: &Value) -> Result<Vec<ToolPattern>, String> {
    let expected = || {
        wrong(
            key,
            "a list of names of tools, in which `*` stands for any text",
        )
    };
    let names = value.as_array().ok_or_else(expected)?.iter();
    let names = names.map(|name| name.as_str().map(ToolPattern::new).ok_or_else(expected));
    names.collect()
}

/// Reads `principals`.
pub(super) fn principals(
    key: &str,
    value: &Value,
) -> Result<BTreeMap<String, PrincipalSettings>, String> {
    let all = value.as_object().ok_or_else(|| wrong(key, "an object"))?;
    let all = all.iter().map(|(name, of_one)| {
        let of_one = principal(of_one).map_err(|why| format!("principal {name}: {why}"))?;
        Ok((name.clone(), of_one))
    });
    all.collect()
}

fn principal(value: &Value) -> Result<PrincipalSettings, String> {
    let members = value
        .as_object()
        .ok_or_else(|| with_schema("it must be an object"))?;
    let mut settings = PrincipalSettings::default();
    let ToolLists { allow, deny, .. } = &mut settings.tools;
    for (key, value) in members {
        match key.as_str() {
            "allowTools" => *allow = Some(tools(key, value)?),
            "denyTools" => *deny = tools(key, value)?,
            "headers" => settings.headers = texts(key, value)?,
            "env" => settings.env = texts(key, value)?,
            _ => return Err(unknown(key, &KEYS)),
        }
    }
    Ok(settings)
}

fn texts(key: &str, value: &Value) -> Result<BTreeMap<String, String>, String> {
    let expected = || wrong(key, "an object of texts");
    let all = value.as_object().ok_or_else(expected)?.iter();
    let all = all.map(|(name, text)| {
        let text = text.as_str().ok_or_else(expected)?;
        Ok((name.clone(), text.to_owned()))
    });
    all.collect()
}

/// The keys for a principal.
pub(crate) const KEYS: [&str; 4] = ["allowTools", "denyTools", "headers", "env"];
