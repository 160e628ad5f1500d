//! `outlast completions bash` in a real shell, and what `outlast` prints about itself.

#[path = "launcher/outlast.rs"]
mod launcher;

use std::path::Path;
use std::process::{Command, Output};

use outlast_testkit::RunCommand;
use serde_json::Value;
use tempfile::TempDir;

use launcher::outlast;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The candidates for the last of `words`.
fn completions(home: &Path, words: &[&str]) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_outlast"));
    let folder = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["--norc", "-c", SHELL, "bash"])
        .args(words)
        .env("PATH", format!("{folder}:{path}"))
        .env("XDG_DATA_HOME", home)
        .current_dir(home)
        .run();
    assert!(output.status.success(), "{output:?}");
    text(&output)
        .lines()
        .map(|word| word.trim().to_owned())
        .collect()
}

/// Completes the words as bash does after a tabulator.
const SHELL: &str = r#"
source <(outlast completions bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
function=$(complete -p outlast | sed 's/.*-F \([^ ]*\).*/\1/')
$function outlast "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

#[test]
fn a_shell_completes_servers_tools_and_task_ids() {
    let home = TempDir::new().expect("a folder");
    let demo = outlast(home.path()).args(["demo", "--step-ms", "5"]).run();
    assert!(demo.status.success());
    let config = r#"{ "mcpServers": { "files": { "command": "x" }, "web": { "command": "y" } } }"#;
    std::fs::write(home.path().join("mcp.json"), config).expect("it is written");

    let commands = completions(home.path(), &["outlast", "comp"]);
    assert_eq!(commands, ["completions"]);
    let servers = completions(home.path(), &["outlast", "tools", "f"]);
    assert_eq!(servers, ["files"]);
    let tools = completions(home.path(), &["outlast", "call", "web", "count"]);
    assert_eq!(tools, ["countdown"]);

    let list = outlast(home.path()).args(["tasks", "list", "--json"]).run();
    let list: Value = serde_json::from_slice(&list.stdout).expect("JSON");
    let id = list[0]["taskId"].as_str().expect("a task").to_owned();
    let ids = completions(home.path(), &["outlast", "tasks", "get", &id[..12]]);
    assert_eq!(ids, [id]);
    let ids = completions(home.path(), &["outlast", "tasks", "get", ""]);
    assert!(ids.len() >= 6, "servers and tasks: {ids:?}");
}

#[test]
fn every_shell_has_a_script() {
    let home = TempDir::new().expect("a folder");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = outlast(home.path()).args(["completions", shell]).run();
        assert!(output.status.success(), "{shell}: {output:?}");
        assert!(text(&output).contains("COMPLETE"), "{shell}");
    }
}

#[test]
fn outlast_alone_names_the_first_commands() {
    let home = TempDir::new().expect("a folder");
    let output = outlast(home.path()).run();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    for command in ["outlast demo", "outlast serve", "outlast adopt", "--help"] {
        assert!(shown.contains(command), "{command}: {shown}");
    }
}

#[test]
fn the_version_names_commit_and_date_if_git_knows_them() {
    let home = TempDir::new().expect("a folder");
    let output = outlast(home.path()).arg("--version").run();
    let shown = text(&output);
    let version = env!("CARGO_PKG_VERSION");
    let rest = shown
        .trim()
        .strip_prefix(&format!("outlast {version}"))
        .expect("the version comes first");
    // A copy without a repository has no commit.
    if let Some(inner) = rest.strip_prefix(" (") {
        let (commit, date) = inner
            .strip_suffix(')')
            .and_then(|inner| inner.split_once(' '))
            .expect("a commit and a date");
        assert!(commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(date.len(), "2026-01-01".len(), "{date}");
    } else {
        assert_eq!(rest, "");
    }
}

#[test]
fn the_schema_of_the_configuration_file_is_printed_unchanged() {
    let home = TempDir::new().expect("a folder");
    let output = outlast(home.path()).arg("schema").run();
    let published = include_str!("../../../docs/configuration.schema.json");
    assert_eq!(text(&output), published);
}
