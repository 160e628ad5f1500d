//! Which tools of an upstream a caller may use, and the credentials of a caller at the upstream.

use std::collections::BTreeMap;

use outlast_engine::Owner;

use super::Settings;

/// Lists of tools. A tool may be used if it is allowed and not denied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolLists {
    /// The tools that may be used; without a list, all.
    pub allow: Option<Vec<ToolPattern>>,
    /// The tools that may not be used.
    pub deny: Vec<ToolPattern>,
}

outlast_engine::option_setters! { ToolLists:
    maybe with_allow(allow: Vec<ToolPattern>);
    set with_deny(deny: Vec<ToolPattern>);
}

/// The name of a tool, in which each `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern(Box<str>);

/// What applies to one caller, in addition to the settings of the upstream.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrincipalSettings {
    /// The tools that it may use, of those that the settings of the upstream allow.
    pub tools: ToolLists,
    /// Headers of its requests to an upstream at a URL. They replace those of the upstream with the
    /// same name.
    pub headers: BTreeMap<String, String>,
    /// Environment variables of its processes of an upstream that is a command.
    pub env: BTreeMap<String, String>,
}

outlast_engine::option_setters! { PrincipalSettings:
    set with_tools(tools: ToolLists);
    set with_headers(headers: BTreeMap<String, String>);
    set with_env(env: BTreeMap<String, String>);
}

impl ToolPattern {
    /// The pattern `text`.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    fn matches(&self, tool: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = tool.strip_prefix(first) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            // A pattern without `*`.
            return rest.is_empty();
        };
        for part in parts {
            let Some(at) = rest.find(part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

impl ToolLists {
    fn allow(&self, tool: &str) -> bool {
        let is_in = |list: &[ToolPattern]| list.iter().any(|pattern| pattern.matches(tool));
        self.allow.as_deref().is_none_or(is_in) && !is_in(&self.deny)
    }
}

impl std::fmt::Debug for PrincipalSettings {
    /// Omits the values of headers and variables, which are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrincipalSettings")
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Whether `owner` may use `tool`.
    pub(super) fn allows(&self, owner: &Owner, tool: &str) -> bool {
        let of_owner = || self.principal(owner);
        self.tool_lists.allow(tool) && of_owner().is_none_or(|found| found.tools.allow(tool))
    }

    /// Whether `owner` may use every tool.
    pub(super) fn allows_all(&self, owner: &Owner) -> bool {
        let has_none = |lists: &ToolLists| *lists == ToolLists::default();
        has_none(&self.tool_lists)
            && self
                .principal(owner)
                .is_none_or(|found| has_none(&found.tools))
    }

    /// What applies to `owner`: the settings under its name, else those for every other caller.
    pub(super) fn principal(&self, owner: &Owner) -> Option<&PrincipalSettings> {
        let name = match owner {
            Owner::Principal(name) => Some(&**name),
            Owner::Local => Some(LOCAL),
            Owner::Session(_) | Owner::Address(_) => None,
        };
        name.and_then(|name| self.principals.get(name))
            .or_else(|| self.principals.get(ANY))
    }
}

/// The name of the local user.
const LOCAL: &str = "local";

/// The name of the settings for callers without their own.
const ANY: &str = "*";

#[cfg(test)]
mod tests {
    use super::*;

    fn list(patterns: &[&str]) -> Vec<ToolPattern> {
        patterns
            .iter()
            .map(|text| ToolPattern::new(*text))
            .collect()
    }

    #[test]
    fn a_pattern_matches_the_whole_name() {
        for (pattern, tool, expected) in [
            ("read", "read", true),
            ("read", "read_file", false),
            ("read", "", false),
            ("read_*", "read_file", true),
            ("read_*", "read_", true),
            ("read_*", "read", false),
            ("*_file", "read_file", true),
            ("*", "", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("ab*ba", "aba", false),
            ("", "x", false),
        ] {
            assert_eq!(
                ToolPattern::new(pattern).matches(tool),
                expected,
                "{pattern} {tool}"
            );
        }
    }

    #[test]
    fn both_lists_apply_to_a_caller() {
        let mut settings = Settings::default();
        let [ada, bob, local] = [
            Owner::principal("ada"),
            Owner::principal("bob"),
            Owner::Local,
        ];
        assert!(settings.allows(&ada, "any") && settings.allows_all(&ada));
        settings.tool_lists.deny = list(&["delete_*"]);
        let readers = PrincipalSettings {
            tools: ToolLists {
                allow: Some(list(&["read_*", "delete_*"])),
                deny: list(&["read_secret"]),
            },
            ..PrincipalSettings::default()
        };
        settings.principals.insert("ada".into(), readers);
        for (owner, tool, expected) in [
            (&ada, "read_file", true),
            (&ada, "read_secret", false),
            (&ada, "delete_file", false),
            (&ada, "write_file", false),
            (&bob, "write_file", true),
            (&bob, "delete_file", false),
        ] {
            assert_eq!(settings.allows(owner, tool), expected, "{owner} {tool}");
        }
        // Every other caller, and the local user by its name.
        let none = PrincipalSettings {
            tools: ToolLists {
                allow: Some(Vec::new()),
                deny: Vec::new(),
            },
            ..PrincipalSettings::default()
        };
        settings.principals.insert("*".into(), none);
        settings
            .principals
            .insert("local".into(), PrincipalSettings::default());
        assert!(!settings.allows(&bob, "write_file") && settings.allows(&local, "write_file"));
        assert!(!settings.allows(&Owner::session("s"), "read_file"));
    }
}
