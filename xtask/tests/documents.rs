//! Facts that documents must state: every limit is in `docs/limits.md`, and every requirement that
//! a source file quotes is explained in a document.

#![expect(clippy::unwrap_used, reason = "a test fails if a file is missing")]

use std::collections::BTreeSet;
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
        ("gateway/settings.rs", "pub struct Settings {"),
    ] {
        settings.extend(fields(&read(&format!("crates/outlast/src/{file}")), head));
    }
    settings.retain(|field| field != "tool_defaults");
    let gateway = read("crates/outlast/src/gateway/settings.rs");
    let of_tools = fields(&gateway, "pub struct ToolSettings {");
    settings.extend(
        of_tools
            .iter()
            .map(|field| format!("tool_defaults.{field}")),
    );
    assert!(settings.len() > 70, "{settings:?}");
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
        ("docs/limits.md", "| `default_ttl` | 1 h |"),
        ("docs/limits.md", "| `max_ttl` | 1 h |"),
        ("docs/limits.md", "| `quota.owner_open` | 32 |"),
    ] {
        assert!(
            read(document).contains(text),
            "{document} does not contain: {text}"
        );
    }
}

#[test]
fn every_quoted_requirement_is_explained() {
    let explained: BTreeSet<String> = ["docs/checklist.md", "docs/interpretations.md"]
        .iter()
        .flat_map(|path| {
            let document = read(path);
            let first_cells = document.lines().filter_map(|line| line.strip_prefix("| "));
            first_cells.flat_map(ids).collect::<Vec<_>>()
        })
        .collect();
    assert!(explained.len() > 1_000, "{}", explained.len());
    let mut sources = Vec::new();
    for folder in ["crates", "xtask", "peers"] {
        add_sources(folder, &mut sources);
    }
    let mut quoted = 0;
    for path in &sources {
        for id in ids(&read(path)) {
            quoted += 1;
            assert!(
                explained.contains(&id),
                "no document explains {id} of {path}"
            );
        }
    }
    assert!(quoted > 1_000, "{quoted}");
}

#[test]
fn every_file_of_the_walks_exists() {
    let architecture = read("docs/ARCHITECTURE.md");
    let walks = architecture.split_once("## Three walks").unwrap().1;
    let walks = walks.split_once("\n## ").unwrap().0;
    let walks: Vec<_> = walks.split("\n### ").skip(1).collect();
    assert_eq!(walks.len(), 3);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for walk in walks {
        let steps = walk.lines().filter(|line| line.starts_with("| "));
        let steps: Vec<_> = steps.filter_map(|line| line.split('|').nth(2)).collect();
        // The first row is the head of the table, without a path.
        let files: Vec<_> = steps.iter().flat_map(|step| step.split('`')).collect();
        let files: Vec<_> = files.iter().filter(|path| path.ends_with(".rs")).collect();
        for path in &files {
            let folder = if path.starts_with("engine/") {
                "crates/outlast-engine/src"
            } else {
                "crates/outlast/src"
            };
            assert!(
                root.join(folder).join(path).exists(),
                "{path} does not exist"
            );
        }
        // A reader opens at most eight files and sees the walk on one screen.
        assert!((5..=8).contains(&files.len()), "{files:?}");
        assert!(walk.lines().count() <= 30, "{}", walk.lines().count());
    }
}

/// The ids of requirements in `text`, such as `S0-1`, `A2-28` and `V1-CANCEL-3`.
fn ids(text: &str) -> Vec<String> {
    let is_separator = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    let words = text.split(is_separator).map(|word| word.trim_matches('-'));
    words
        .filter(|word| is_id(word))
        .map(str::to_owned)
        .collect()
}

fn is_id(word: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_name = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_uppercase());
    match word.split('-').collect::<Vec<_>>()[..] {
        [
            "A1" | "A2" | "A3" | "BD" | "S0" | "S1" | "S2" | "S3" | "S4",
            number,
        ] => is_number(number),
        ["V1" | "V2" | "BR", name, number] => is_name(name) && is_number(number),
        _ => false,
    }
}

/// Adds the paths of source files below `folder`, relative to the root of the project.
fn add_sources(folder: &str, sources: &mut Vec<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for entry in std::fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            add_sources(&path, sources);
        } else if [".rs", ".mjs", ".py"]
            .iter()
            .any(|ending| path.ends_with(ending))
        {
            sources.push(path);
        }
    }
}
