//! Facts that documents must state: every limit is in `docs/limits.md`, with its real default where
//! that is a number.

#![expect(clippy::unwrap_used, reason = "a test fails if a file is missing")]

use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// The public fields of the struct that begins with `head`.
fn fields(source: &str, head: &str) -> Vec<String> {
    let body = source.split_once(head).unwrap().1;
    let body = body.split_once("\n}").unwrap().0;
    body.lines()
        .filter_map(|line| line.trim().strip_prefix("pub "))
        .filter_map(|line| line.split(':').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_limit_is_documented() {
    // V1-RM-4, V1-RM-5.
    let limits = read("docs/limits.md");
    let policy = read("crates/outlast-engine/src/policy.rs");
    let http = read("crates/outlast/src/transport/http/options.rs");
    let groups = ["quota", "sizes"];
    let mut settings = fields(&policy, "pub struct Policy {");
    settings.retain(|field| !groups.contains(&field.as_str()));
    for (group, head) in [
        ("quota", "pub struct Quota {"),
        ("sizes", "pub struct SizeLimits {"),
    ] {
        let members = fields(&policy, head);
        settings.extend(members.iter().map(|field| format!("{group}.{field}")));
    }
    settings.extend(fields(&http, "pub struct HttpOptions {"));
    for (file, head) in [
        ("client/client.rs", "pub struct ClientOptions {"),
        ("client/connection.rs", "pub struct ReconnectPolicy {"),
        ("client/receiver/options.rs", "pub struct ReceiverOptions {"),
        (
            "transport/http_client/options.rs",
            "pub struct HttpClientOptions {",
        ),
    ] {
        settings.extend(fields(&read(&format!("crates/outlast/src/{file}")), head));
    }
    assert!(settings.len() > 50, "{settings:?}");
    for setting in settings {
        assert!(
            limits.contains(&format!("`{setting}`")),
            "docs/limits.md does not name `{setting}`"
        );
    }
}

#[test]
fn the_owner_without_a_token_is_documented() {
    // V1-SEC-5, V1-SEC-6, S2-65.
    for (document, text) in [
        (
            "docs/gateway.md",
            "| over HTTP, without a token, legacy era | its session |",
        ),
        (
            "docs/gateway.md",
            "| over stdio, also with `outlast stdio` | the local user |",
        ),
        ("docs/gateway.md", "a secret of 128 random bits"),
        ("docs/limits.md", "| `default_ttl_ms` | 3,600,000 (1 h) |"),
        ("docs/limits.md", "| `max_ttl_ms` | 3,600,000 (1 h) |"),
        ("docs/limits.md", "| `quota.owner_open` | 32 |"),
    ] {
        assert!(
            read(document).contains(text),
            "{document} does not contain: {text}"
        );
    }
}
