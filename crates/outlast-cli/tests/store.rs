//! `outlast store backup` while another process uses the store.

#[path = "launcher/outlast.rs"]
mod launcher;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use outlast_testkit::{RunCommand, RunningCommand};
use serde_json::Value;

use launcher::outlast;

#[test]
fn a_store_in_use_is_copied_but_replaced_by_force() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, copy) = (
        folder.path().join("tasks.db"),
        folder.path().join("copy.db"),
    );
    let missing = backup(&store, &copy, &[]);
    assert_eq!(missing.status.code(), Some(5), "{missing:?}");

    let demo = start_demo(&store);
    let before = list_tasks(&store);
    assert_eq!(before.len(), 4, "{before:?}");
    let done = backup(&store, &copy, &[]);
    assert!(done.status.success(), "{done:?}");
    let output = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(output.contains("clear text"), "{output}");
    assert_eq!(ids(&list_tasks(&copy)), ids(&before));
    let mode = std::fs::metadata(&copy).expect("a copy").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);

    let bytes = std::fs::read(&copy).expect("the copy");
    let refused = backup(&store, &copy, &[]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let output = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(output.contains("--force"), "{output}");
    assert!(std::fs::read(&copy).expect("the copy") == bytes);
    let forced = backup(&store, &copy, &["--force"]);
    assert!(forced.status.success(), "{forced:?}");
    drop(demo);

    // The copy is a store: a server starts on it and continues the running tasks.
    let again = with_store(&["demo", "--step-ms", "5"], &copy).run();
    assert!(again.status.success(), "{again:?}");
    let is_open = |task: &Value| task["status"] == "working";
    assert!(!list_tasks(&copy).iter().any(is_open));
}

/// Starts a demo whose tasks take long, and waits until its input request has a response.
fn start_demo(store: &Path) -> RunningCommand {
    let mut demo = RunningCommand::start(&mut with_store(&["demo", "--step-ms", "60000"], store));
    let answered = |line: &str| line.starts_with("confirm") && line.contains("Completed");
    demo.find("the answer to the question", answered);
    demo
}

fn backup(store: &Path, copy: &Path, more: &[&str]) -> Output {
    let mut command = with_store(&["store", "backup"], store);
    command.arg(copy).args(more).run()
}

fn list_tasks(store: &Path) -> Vec<Value> {
    let list = with_store(&["tasks", "list", "--json"], store).run();
    let list = serde_json::from_slice::<Value>(&list.stdout);
    let list = list.expect("JSON");
    list.as_array().expect("an array").clone()
}

fn ids(tasks: &[Value]) -> Vec<&str> {
    let ids = tasks.iter().map(|task| task["taskId"].as_str());
    ids.map(|id| id.expect("an id")).collect()
}

/// `outlast` with `args` on this store.
fn with_store(args: &[&str], store: &Path) -> Command {
    let mut command = outlast(store.parent().expect("a folder"));
    command.args(args).arg("--store").arg(store);
    command
}
