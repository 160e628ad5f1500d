//! Checks the documents: their commands run and print what the documents show, their links lead to
//! files, and the messages that they quote exist. `cargo test --doc` compiles their Rust code.
//!
//! The language of a code block decides what happens to it:
//!
//! | language | what the test does |
//! |---|---|
//! | `console` | runs each line after `$ `; the lines that follow must be printed, in this order |
//! | `sh` | runs each line; it must succeed |
//! | `jsonc`, `json` after `<!-- config: … -->` | starts a gateway with this configuration file |
//! | any language after `<!-- file: NAME -->` | writes the file for the commands that follow |
//! | `rust`, `toml`, `json`, `text` | nothing |
//!
//! In an expected line, `…` matches any text, ids and long numbers may differ, and the width of
//! columns is ignored. A command that cannot run here is in [`NOT_RUN`] with a reason.

#![cfg(unix)]

mod commands;
mod expected;
mod markdown;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use commands::DocumentRunner;
use markdown::{CodeBlock, blocks};

/// Commands that do not run in this test: their prefix, and the reason.
const NOT_RUN: [(&str, &str); 11] = [
    ("cargo ", "builds or tests the workspace; CI runs it"),
    ("claude mcp add", "changes the configuration of Claude Code"),
    (
        "outlast serve --url https://example.org",
        "needs a server on the internet",
    ),
    (
        "outlast serve --config servers.json",
        "the file is the reader's own",
    ),
    ("outlast doctor TARGET", "the target is the reader's own"),
    (
        "outlast gateway status ",
        "needs a gateway in the background, which tests/stdio starts",
    ),
    (
        "outlast gateway logs ",
        "needs a gateway in the background, which tests/stdio starts",
    ),
    (
        "outlast store backup",
        "needs a store; tests/store.rs runs it",
    ),
    (
        "outlast tasks prune",
        "needs a gateway; tests/serve/settings.rs runs it",
    ),
    ("docker ", "needs Docker"),
    ("sqlite3 ", "needs the program sqlite3"),
];

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    crates.canonicalize().expect("the workspace exists")
}

/// The documents: their paths relative to the root, and their text.
fn documents() -> Vec<(String, String)> {
    let mut paths = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    let folder = std::fs::read_dir(root().join("docs")).expect("there is a folder docs");
    for entry in folder {
        let name = entry.expect("it can be listed").file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".md") {
            paths.push(format!("docs/{name}"));
        }
    }
    paths.sort();
    let read = |path: String| {
        let text = std::fs::read_to_string(root().join(&path)).expect("it can be read");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn commands_print_what_the_documents_show() {
    let mut skipped = BTreeSet::new();
    for (path, text) in documents() {
        let mut runner = None;
        for block in blocks(&text) {
            run_block(&path, &block, &mut runner, &mut skipped);
        }
    }
    let unused: Vec<_> = NOT_RUN
        .iter()
        .filter(|(begin, _)| !skipped.contains(begin))
        .collect();
    assert!(unused.is_empty(), "no document has {unused:?}");
}

/// Executes a code block of `path`.
fn run_block(
    path: &str,
    block: &CodeBlock,
    runner: &mut Option<DocumentRunner>,
    skipped: &mut BTreeSet<&'static str>,
) {
    let at = format!("{path}:{}", block.line);
    if let Some(name) = block.directive("file") {
        let runner = runner.get_or_insert_with(DocumentRunner::new);
        return runner.write(name, &block.text);
    }
    if block.directive("config").is_some() {
        let runner = runner.get_or_insert_with(DocumentRunner::new);
        return runner.check_configuration(&at, &block.text);
    }
    let commands = match block.language.as_str() {
        "console" => block.console(),
        "sh" => block.shell(),
        "rust" | "rust,no_run" | "toml" | "json" | "jsonc" | "html" | "text" | "" => return,
        other => panic!("{at}: no rule for the language {other}"),
    };
    for (command, printed) in commands {
        if let Some((begin, _)) = NOT_RUN.iter().find(|(begin, _)| command.starts_with(begin)) {
            skipped.insert(*begin);
            continue;
        }
        let runner = runner.get_or_insert_with(DocumentRunner::new);
        runner.run(&at, &command, &printed);
    }
}

#[test]
fn links_lead_to_files() {
    for (path, text) in documents() {
        let folder = root().join(&path);
        let folder = folder.parent().expect("a file is in a folder");
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.starts_with("https://") {
                continue;
            }
            assert!(
                folder.join(file).exists(),
                "{path}: {target} does not exist"
            );
        }
    }
}

#[test]
fn lines_of_documents_fit_into_120_columns() {
    for (path, text) in documents() {
        for (index, line) in text.lines().enumerate() {
            // A row of a table cannot be wrapped.
            let fits = line.starts_with('|') || line.chars().count() <= 120;
            assert!(fits, "{path}:{} has more than 120 columns", index + 1);
        }
    }
}

#[test]
fn messages_quoted_in_troubleshooting_exist() {
    let sources = sources();
    let (_, text) = documents()
        .into_iter()
        .find(|(path, _)| path == "docs/troubleshooting.md")
        .expect("it exists");
    let symptoms = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| line.split('|').nth(1));
    let mut checked = 0;
    for symptom in symptoms {
        for quoted in symptom.split('`').skip(1).step_by(2) {
            for part in quoted.split('…').map(str::trim) {
                let part = part.trim_matches([':', ';', ',']);
                assert!(
                    part.len() < 4 || sources.contains(part),
                    "docs/troubleshooting.md quotes a message that no program prints: {quoted}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked}");
}

/// The source of all crates, with joined string literals, and the snapshot of the messages.
fn sources() -> String {
    let mut text = String::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("it can be listed") {
            let path = entry.expect("it can be listed").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "tests" {
                folders.push(path);
            } else if name.ends_with(".rs") {
                let source = std::fs::read_to_string(&path).expect("it can be read");
                text.extend(source.split("\\\n").map(str::trim_start));
            }
        }
    }
    let snapshot = "crates/outlast-cli/tests/snapshots/messages.txt";
    text + &std::fs::read_to_string(root().join(snapshot)).expect("the snapshot exists")
}
