//! Settings of the whole gateway that are not limits of requests: webhooks, the audit file and the
//! retention of ended tasks.

use std::io;
use std::path::PathBuf;

use outlast::engine::{Retention, RetentionLimits};
use outlast::webhook::{Webhook, WebhookSecret};
use outlast_engine::store::{Status, Statuses};
use serde_json::{Map, Value};
use url::Url;

use super::settings::{count, millis, parse_whole_number, unknown, with_schema, wrong};
use crate::exit::Failure;
use crate::logs::BoundedFile;

/// Where the audit trail is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditFile {
    path: PathBuf,
    max_bytes: u64,
    files: usize,
}

impl AuditFile {
    /// Opens the file.
    pub(super) fn open(&self) -> Result<BoundedFile, Failure> {
        let opened = BoundedFile::with_limits(&self.path, self.max_bytes, self.files);
        opened.map_err(|error: io::Error| {
            Failure::Usage(format!(
                "cannot write the audit file {}: {error}\n  next: correct `file` under `audit`",
                self.path.display()
            ))
        })
    }
}

/// Reads `audit`.
pub(super) fn audit(key: &str, value: &Value) -> Result<AuditFile, String> {
    let expected = || wrong(key, "an object with `file`");
    let members = value.as_object().ok_or_else(expected)?;
    let mut audit = AuditFile {
        path: members
            .get("file")
            .and_then(Value::as_str)
            .ok_or_else(expected)?
            .into(),
        max_bytes: AUDIT_FILE_BYTES,
        files: AUDIT_FILES,
    };
    for (key, value) in members {
        match key.as_str() {
            "file" => {}
            "maxBytes" => audit.max_bytes = count(key, value)? as u64,
            "files" => {
                audit.files = count(key, value)?;
                if audit.files > MAX_AUDIT_FILES {
                    return Err(wrong(key, "a number from 1 to 100"));
                }
            }
            _ => return Err(unknown(key, &AUDIT_KEYS)),
        }
    }
    Ok(audit)
}

/// Reads `retention`.
pub(super) fn retention(key: &str, value: &Value) -> Result<Retention, String> {
    let members = value.as_object().ok_or_else(|| wrong(key, "an object"))?;
    let mut retention = Retention::default();
    for (key, value) in members {
        let limits = match key.as_str() {
            "completed" => &mut retention.completed,
            "failed" => &mut retention.failed,
            "cancelled" => &mut retention.cancelled,
            _ => return Err(unknown(key, &["completed", "failed", "cancelled"])),
        };
        let members = value.as_object().ok_or_else(|| wrong(key, "an object"))?;
        *limits = retention_limits(members)?;
    }
    Ok(retention)
}

fn retention_limits(members: &Map<String, Value>) -> Result<RetentionLimits, String> {
    let mut limits = RetentionLimits::default();
    for (key, value) in members {
        match key.as_str() {
            "ageMs" => limits.age = Some(millis(key, value)?),
            "count" => limits.count = Some(parse_whole_number(key, value)?),
            "bytes" => limits.bytes = Some(parse_whole_number(key, value)?),
            _ => return Err(unknown(key, &RETENTION_KEYS)),
        }
    }
    Ok(limits)
}

/// Reads `publicUrl`.
pub(super) fn public_url(key: &str, value: &Value) -> Result<String, String> {
    Ok(http_url(key, value)?.to_string())
}

/// Reads `webhooks`.
pub(super) fn webhooks(key: &str, value: &Value) -> Result<Vec<Webhook>, String> {
    let members = value.as_object().ok_or_else(|| wrong(key, "an object"))?;
    if members.len() > MAX_WEBHOOKS {
        return Err(wrong(key, "an object with at most 16 members"));
    }
    let webhooks = members.iter().map(|(name, value)| {
        let of_one = |why: String| format!("webhook {name}: {why}");
        webhook(name, value).map_err(of_one)
    });
    webhooks.collect()
}

fn webhook(name: &str, value: &Value) -> Result<Webhook, String> {
    let members = value
        .as_object()
        .ok_or_else(|| with_schema("it must be an object"))?;
    let is_name = !name.is_empty() && name.len() <= 100 && !name.contains('/');
    if !is_name {
        return Err("its name must have 1 to 100 bytes and no `/`".into());
    }
    let (mut url, mut secret, mut statuses) = (None, None, None);
    for (key, value) in members {
        match key.as_str() {
            "url" => url = Some(http_url(key, value)?),
            "secret" => {
                let text = value.as_str().unwrap_or_default();
                let parsed = WebhookSecret::parse(text);
                secret = Some(parsed.map_err(|why| format!("`{key}`: {why}"))?);
            }
            "on" => statuses = Some(status_set(key, value)?),
            _ => return Err(unknown(key, &WEBHOOK_KEYS)),
        }
    }
    let url = url.ok_or("`url` is missing")?;
    let secret = secret.ok_or("`secret` is missing")?;
    let webhook = Webhook::new(name, url, secret);
    Ok(match statuses {
        Some(statuses) => webhook.with_statuses(statuses),
        None => webhook,
    })
}

fn status_set(key: &str, value: &Value) -> Result<Statuses, String> {
    let expected = || {
        let words = Status::ALL.map(Status::word).join(", ");
        wrong(key, &format!("a list of one or more of: {words}"))
    };
    let words = value.as_array().filter(|words| !words.is_empty());
    let words = words.ok_or_else(expected)?.iter();
    let statuses = words.map(|word| word.as_str().and_then(Status::parse).ok_or_else(expected));
    statuses.collect()
}

fn http_url(key: &str, value: &Value) -> Result<Url, String> {
    let text = value.as_str().unwrap_or_default();
    let is_http = text.starts_with("http://") || text.starts_with("https://");
    let url = is_http.then(|| Url::parse(text).ok()).flatten();
    url.ok_or_else(|| wrong(key, "a URL that begins with http:// or https://"))
}

const MAX_WEBHOOKS: usize = 16;

/// The size of an audit file.
const AUDIT_FILE_BYTES: u64 = 10 << 20;

/// How many older audit files are kept.
const AUDIT_FILES: usize = 5;

const MAX_AUDIT_FILES: usize = 100;

/// The keys of the audit file.
pub(crate) const AUDIT_KEYS: [&str; 3] = ["file", "maxBytes", "files"];

/// The keys of the limits of tasks that ended in one way.
pub(crate) const RETENTION_KEYS: [&str; 3] = ["ageMs", "count", "bytes"];

/// The keys of a webhook.
pub(crate) const WEBHOOK_KEYS: [&str; 3] = ["url", "secret", "on"];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn a_webhook_needs_a_url_and_a_strong_secret() {
        let read = |value: Value| webhooks("webhooks", &json!({ "team": value }));
        let url = "https://example.org/hook";
        let found = read(json!({ "url": url, "secret": SECRET })).unwrap();
        assert_eq!((&*found[0].name, found[0].url.as_str()), ("team", url));
        assert!(found[0].statuses.contains(Status::InputRequired));
        assert!(!found[0].statuses.contains(Status::Working));
        let found = read(json!({ "url": url, "secret": SECRET, "on": ["working"] })).unwrap();
        assert!(found[0].statuses.contains(Status::Working));
        assert!(!found[0].statuses.contains(Status::Failed));
        for (value, expected) in [
            (json!({ "secret": SECRET }), "`url` is missing"),
            (json!({ "url": url }), "`secret` is missing"),
            (json!({ "url": url, "secret": "short" }), "openssl rand"),
            (json!({ "url": "ftp://x", "secret": SECRET }), "http://"),
            (
                json!({ "url": url, "secret": SECRET, "on": ["done"] }),
                "input_required",
            ),
            (
                json!({ "url": url, "secret": SECRET, "on": [] }),
                "one or more",
            ),
            (json!({ "uri": url, "secret": SECRET }), "write `url`"),
        ] {
            let why = read(value.clone()).unwrap_err();
            assert!(
                why.contains(expected) && why.contains("webhook team"),
                "{value}: {why}"
            );
        }
    }

    #[test]
    fn audit_and_retention_are_read() {
        let read = audit(
            "audit",
            &json!({ "file": "a.log", "maxBytes": 7, "files": 2 }),
        )
        .unwrap();
        assert_eq!((read.max_bytes, read.files), (7, 2));
        let refused = audit("audit", &json!({ "file": "a.log", "files": 101 }));
        assert!(refused.unwrap_err().contains("100"));
        assert!(audit("audit", &json!({})).unwrap_err().contains("`file`"));
        let limits = json!({ "failed": { "ageMs": 1, "count": 2, "bytes": 0 } });
        let read = retention("retention", &limits).unwrap();
        let failed = RetentionLimits::default()
            .with_age(Duration::from_millis(1))
            .with_count(2)
            .with_bytes(0);
        assert_eq!(read.failed, failed);
        assert_eq!(read.completed, RetentionLimits::default());
        assert!(retention("retention", &json!({ "ended": {} })).is_err());
    }
}
