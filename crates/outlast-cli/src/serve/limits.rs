//! The `outlast` object of a whole configuration file: limits for each owner and for the gateway.
//! What else it contains is read in `operation.rs`.

use std::num::NonZeroU32;
use std::time::Duration;

use outlast::engine::Retention;
use outlast::task::{Policy, TtlPolicy};
use outlast::transport::http::HttpOptions;
use outlast::webhook::Webhook;
use serde_json::Value;

use super::operation::{self, AuditFile};
use super::settings::{count, millis, parse_whole_number, unknown, with_schema, wrong};

/// The limits of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(super) policy: Policy,
    /// Only the limits in these options are used.
    pub(super) http: HttpOptions,
    pub(super) webhooks: Vec<Webhook>,
    pub(super) public_url: Option<String>,
    pub(super) audit: Option<AuditFile>,
    pub(super) retention: Retention,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            policy: outlast::gateway::policy(),
            http: HttpOptions::default(),
            webhooks: Vec::new(),
            public_url: None,
            audit: None,
            retention: Retention::default(),
        }
    }
}

/// Reads the object. An unknown key is an error.
pub(crate) fn read(object: &Value) -> Result<Limits, String> {
    let members = object
        .as_object()
        .ok_or_else(|| with_schema("`outlast` must be an object"))?;
    let mut limits = Limits::default();
    let (policy, http) = (&mut limits.policy, &mut limits.http);
    for (key, value) in members {
        match key.as_str() {
            "openTasksPerOwner" => policy.quota.owner_open = small(key, value)?,
            "tasksPerOwner" => policy.quota.owner_retained = small(key, value)?,
            "openTasks" => policy.quota.open = count(key, value)? as u64,
            "tasks" => policy.quota.retained = count(key, value)? as u64,
            "payloadBytes" => policy.sizes.payload_bytes = count(key, value)?,
            "ttlCapMs" => policy.max_ttl = positive(key, value)?,
            "ttlPolicy" => {
                policy.ttl_policy = match value.as_str() {
                    Some("keep-live") => TtlPolicy::KeepLive,
                    Some("strict") => TtlPolicy::Strict,
                    _ => return Err(wrong(key, "\"keep-live\" or \"strict\"")),
                }
            }
            "runLimitMs" => policy.run_limit = Some(positive(key, value)?),
            "sessions" => http.max_sessions = count(key, value)?,
            "sessionsPerOwner" => http.max_sessions_per_owner = count(key, value)?,
            "sessionIdleMs" => http.session_idle_timeout = millis(key, value)?,
            "bodyBytes" => http.max_unfinished_body_bytes = count(key, value)?,
            "requestsPerSecond" => {
                http.max_requests_per_second = NonZeroU32::new(small(key, value)?);
            }
            "streams" => http.max_streams_per_session = count(key, value)?,
            "connections" => http.max_connections = count(key, value)?,
            "webhooks" => limits.webhooks = operation::webhooks(key, value)?,
            "publicUrl" => limits.public_url = Some(operation::public_url(key, value)?),
            "audit" => limits.audit = Some(operation::audit(key, value)?),
            "retention" => limits.retention = operation::retention(key, value)?,
            _ => return Err(unknown(key, &KEYS)),
        }
    }
    Ok(limits)
}

fn positive(key: &str, value: &Value) -> Result<Duration, String> {
    count(key, value)?;
    millis(key, value)
}

fn small(key: &str, value: &Value) -> Result<u32, String> {
    count(key, value)?;
    u32::try_from(parse_whole_number(key, value)?).map_err(|_| wrong(key, "at most 4294967295"))
}

/// The keys of the object.
pub(crate) const KEYS: [&str; 19] = [
    "openTasksPerOwner",
    "tasksPerOwner",
    "openTasks",
    "tasks",
    "payloadBytes",
    "ttlCapMs",
    "ttlPolicy",
    "runLimitMs",
    "sessions",
    "sessionsPerOwner",
    "sessionIdleMs",
    "bodyBytes",
    "requestsPerSecond",
    "streams",
    "connections",
    "webhooks",
    "publicUrl",
    "audit",
    "retention",
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_limit_is_read_and_a_mistyped_one_is_reported() {
        let others = ["ttlPolicy", "webhooks", "publicUrl", "audit", "retention"];
        let numbers = KEYS.iter().filter(|key| !others.contains(key));
        let object: serde_json::Map<_, _> =
            numbers.map(|key| (key.to_string(), json!(7))).collect();
        let limits = read(&Value::Object(object)).unwrap();
        let quota = limits.policy.quota;
        assert_eq!(
            (quota.owner_open, quota.owner_retained, quota.retained),
            (7, 7, 7)
        );
        assert_eq!(quota.open, 7);
        assert_eq!(
            (limits.policy.max_ttl, limits.policy.run_limit),
            (Duration::from_millis(7), Some(Duration::from_millis(7)))
        );
        assert_eq!(limits.policy.sizes.payload_bytes, 7);
        let http = limits.http;
        assert_eq!(
            (
                http.max_sessions,
                http.max_streams_per_session,
                http.max_connections
            ),
            (7, 7, 7)
        );
        assert_eq!(
            (http.max_sessions_per_owner, http.max_unfinished_body_bytes),
            (7, 7)
        );
        assert_eq!(http.session_idle_timeout, Duration::from_millis(7));
        assert_eq!(http.max_requests_per_second, NonZeroU32::new(7));
        assert_eq!(limits.policy.ttl_policy, TtlPolicy::KeepLive);
        let strict = read(&json!({ "ttlPolicy": "strict" })).unwrap();
        assert_eq!(strict.policy.ttl_policy, TtlPolicy::Strict);
        assert!(read(&json!({ "ttlPolicy": "lax" })).is_err());
        let message = read(&json!({ "openTasksPerOwners": 1 })).unwrap_err();
        assert!(message.contains("write `openTasksPerOwner`"), "{message}");
        assert!(
            read(&json!({ "tasks": 0 }))
                .unwrap_err()
                .contains("above zero")
        );
    }
}
